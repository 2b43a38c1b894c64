"""What a set of sensors determines, found before the robot moves, with names for what it does not.

Structural rank (a maximum matching in the pattern of the paper's system) is necessary only: two point
feet have full structural rank and yet the force along the line between them is unobservable. The numeric
rank at a few configurations decides, and the null space names what is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.csgraph import structural_rank

from contact_id_controller.estimation.layout import Layout
from contact_id_controller.estimation.newton_euler_system import SWAP, newton_euler_system
from contact_id_controller.estimation.rows import ACCELERATION, WRENCH
from contact_id_controller.estimation.sensors import COMPONENTS, JointEffort, Row
from contact_id_controller.estimation.tree import Mechanism
from contact_id_controller.exceptions import ConfigurationError, choices

STATES = 3
RANK = 1e-9  # singular values below this share of the largest count as zero
FELT = 1e-7  # an output is unobservable if the null space moves it by more


@dataclasses.dataclass(frozen=True)
class Observability:
    """What the sensors of an estimator determine.

    Attributes:
        unknowns: of the paper's system (link accelerations, wrenches, efforts, external wrenches, joint
            accelerations).  rank: how many of them are determined.  structural_rank: what the pattern
            of the equations alone would allow.
        unobservable: names of the quantities that are not determined.
        directions: in words, what moves together unseen.
        undetermined: number of unknowns that neither sensors nor regularisation determine.
        states: the (q, v) it was tried at.
    """

    unknowns: int
    rank: int
    structural_rank: int
    unobservable: tuple[str, ...]
    directions: tuple[str, ...]
    undetermined: int
    states: tuple[Any, ...]
    efforts: Probe

    def sentence(self) -> str:
        """One line for a person: what is missing."""
        shown = ", ".join(self.unobservable[:8]) + (", ..." if len(self.unobservable) > 8 else "")
        return (
            f"the sensors leave {self.undetermined} unknowns undetermined: {shown}"
            f" ({'; '.join(self.directions)}); add a sensor, or give regularisation for them"
        )


class Probe:
    """Coefficients of an estimator's outputs on its unknowns (a_0, z), in the state last swept."""

    def __init__(self, rows: list[Row]):
        self.rows = rows
        self.labels = [row.label for row in rows]

    def matrix(self, estimator: Any) -> np.ndarray:
        """Derivative (rows, 6 + N) of what each row measures by the unknowns, in the state last swept.

        Columns: spatial acceleration of the base (linear, angular; at the world's origin), then the joint accelerations
        and components of contact wrenches in the order of ``layout.labels``. A wrench row is what the link receives
        from its parent, so that contact wrenches on what it carries count negatively.
        """
        layout, tree = estimator._layout, estimator.mechanism.tree
        motion, units = layout.system.motion, layout.system.units
        columns, limbs = layout.columns, layout.limbs
        T = np.zeros((len(self.rows), 6 + len(layout.labels)))
        for k, row in enumerate(self.rows):
            R, p = motion.R[row.carrier].reshape(3, 3), motion.p[row.carrier]
            linear, angular, j = R @ row.vector[:3], R @ row.vector[3:], row.link
            if row.kind == WRENCH:
                r = np.concatenate([linear + np.cross(p, angular), angular])
                base = _inertia(motion.Ic[j]) @ r
                for i in range(max(j, 1), tree.end[j]):
                    if columns.joint[i] >= 0:
                        at = 6 + limbs.column[tree.limb[i]] + columns.joint[i]
                        T[k, at] = r @ motion.P[i]
                for indices in layout.components.values():
                    for index in indices:
                        c = layout.component_place[index]
                        link = columns.wrench_link[c]
                        if columns.wrench[c] >= 0 and j <= link < tree.end[j]:
                            at = limbs.column[layout.wrenches[index].limb] + columns.wrench[c]
                            T[k, 6 + at] = -r @ units[c]
                above = tree.parent[j] if j else 0
            else:
                r = base = np.concatenate([linear, angular + np.cross(p, linear)])
                above = j
            T[k, :6] = base
            while above > 0:
                if columns.joint[above] >= 0:
                    at = 6 + limbs.column[tree.limb[above]] + columns.joint[above]
                    T[k, at] = base @ motion.S[above]
                above = tree.parent[above]
        return T


def observe(estimator: Any, regularisation: float | Mapping[str, float] | None) -> Observability:
    """Try an estimator's sensors at random states inside the joint limits.

    Raises:
        ConfigurationError: a regularisation that names nothing unobservable.
    """
    layout, mechanism = estimator._layout, estimator.mechanism
    model = estimator.robot.model
    states = _states(model)
    fewest, null = model.nv + len(layout.labels) + 7, np.zeros((0, 0))  # more than there are
    for q, v in states:
        w = v[3:6] if mechanism.floating else np.zeros(3)
        A, _, B = estimator._assemble(q, v, w, np.array([0.0, 0.0, 1.0]))
        vectors = _null_space(estimator, A, B)
        if vectors.shape[1] < fewest:
            fewest, null, state = vectors.shape[1], vectors, (q, v)
    efforts = Probe(_effort_rows(mechanism))
    unobservable, directions = [], []
    if fewest:
        q, v = state
        estimator._assemble(
            q, v, v[3:6] if mechanism.floating else np.zeros(3), np.array([0.0, 0.0, 1.0])
        )
        unobservable = _names(estimator, null, efforts)
        directions = [_words(estimator, null[:, k]) for k in range(fewest)]
    pattern, unknowns = _system(estimator, *states[0])
    undetermined = fewest
    if fewest and regularisation is not None:
        _regularise(layout, regularisation, null, unobservable)
        vectors = _null_space(
            estimator,
            *estimator._assemble(*state, _w(mechanism, state), np.array([0.0, 0.0, 1.0]))[::2],
        )
        undetermined = vectors.shape[1]
    elif isinstance(regularisation, Mapping):
        _check_names(regularisation, [])
    return Observability(
        unknowns, unknowns - fewest, int(structural_rank(pattern)), tuple(unobservable),
        tuple(directions), undetermined, tuple(states), efforts,
    )  # fmt: skip


def _w(mechanism: Mechanism, state: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return state[1][3:6] if mechanism.floating else np.zeros(3)


def _states(model: pin.Model) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random configurations inside the joint limits, velocities of ordinary size."""
    rng = np.random.default_rng(0)
    lower = np.where(np.isfinite(model.lowerPositionLimit), model.lowerPositionLimit, -np.pi)
    upper = np.where(np.isfinite(model.upperPositionLimit), model.upperPositionLimit, np.pi)
    lower, upper = np.maximum(lower, -1e3), np.minimum(upper, 1e3)
    neutral, found = pin.neutral(model), []
    for _ in range(STATES):
        step = rng.uniform(-1.0, 1.0, model.nv)
        q = pin.integrate(model, neutral, step)
        for joint in range(1, model.njoints):
            if model.joints[joint].nq == 1:
                at = model.joints[joint].idx_q
                q[at] = rng.uniform(lower[at], upper[at])
        found.append((q, rng.normal(size=model.nv)))
    return found


def _null_space(estimator: Any, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Directions of (a_0, z) that no row, prior or equation sees, (6 + N, k)."""
    layout = estimator._layout
    scale = np.where(layout.rows.exact == 1, 1.0, np.sqrt(layout.rows.weight))
    parts = [A * scale[:, None]]
    parts.append(np.diag(np.concatenate([np.zeros(6), np.sqrt(layout.columns.prior)])))
    if estimator.mechanism.floating:
        parts.append(B)
    else:
        parts.append(np.eye(6, A.shape[1]))
    whole = np.vstack(parts)
    whole = whole / np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), 1e-300)
    lengths = np.maximum(np.linalg.norm(whole, axis=0), 1e-12)
    _, values, right = scipy.linalg.svd(whole / lengths)
    values = np.concatenate([values, np.zeros(right.shape[0] - len(values))])
    vectors = (right[values <= RANK * values.max()] / lengths).T
    return np.linalg.qr(vectors)[0] if vectors.size else vectors.reshape(A.shape[1], 0)


def _effort_rows(mechanism: Mechanism) -> Any:
    return JointEffort(1.0).rows(mechanism, {})


def _names(estimator: Any, null: Any, efforts: Any) -> list[str]:
    """What the null space moves: unknowns, joint efforts, components of joint wrenches."""
    layout, found = estimator._layout, []
    largest = np.abs(null).max()
    for k, axis in enumerate(("x", "y", "z", "about x", "about y", "about z")):
        if np.abs(null[k]).max() > FELT * largest:
            found.append(f"base acceleration {axis}")
    for k, label in enumerate(layout.labels):
        if np.abs(null[6 + k]).max() > FELT * largest:
            found.append(label)
    moved = np.abs(efforts.matrix(estimator) @ null).max(axis=1)
    found += [f"effort of {name}" for name, m in zip(efforts.labels, moved) if m > FELT * largest]
    wrenches = Probe([
        Row(WRENCH, link, link, np.eye(6)[k], f"joint wrench {COMPONENTS[k]} of {name}")
        for link, name in enumerate(estimator.joint_names, start=1) for k in range(6)
    ])  # fmt: skip
    moved = np.abs(wrenches.matrix(estimator) @ null).max(axis=1)
    return found + [name for name, m in zip(wrenches.labels, moved) if m > FELT * largest]


def _words(estimator: Any, direction: np.ndarray) -> str:
    """One direction of the null space for people."""
    layout = estimator._layout
    size = np.abs(direction).max()
    at = [k for k in range(len(layout.labels)) if abs(direction[6 + k]) > 1e-6 * size]
    touched = sorted({layout.labels[k].partition(" of ")[2] for k in at})
    if len(touched) == 2 and all(name in layout.components for name in touched):
        forces = []
        for name in touched:
            force = np.zeros(3)
            for index in layout.components[name]:
                place = layout.component_place[index]
                column = layout.columns.wrench[place]
                if column >= 0:
                    amount = direction[
                        6 + layout.limbs.column[layout.wrenches[index].limb] + column
                    ]
                    force += amount * layout.system.units[place, :3]
            forces.append(force)
        if np.abs(forces[0] + forces[1]).max() <= 1e-6 * np.abs(forces[0]).max():
            return f"opposite forces on {touched[0]} and {touched[1]} along the line between them"
    base = np.abs(direction[:6]).max() > 1e-6 * size
    names = (["the base's acceleration"] if base else []) + [layout.labels[k] for k in at]
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"{shown} together"


def _regularise(
    layout: Layout,
    regularisation: float | Mapping[str, float] | None,
    null: Any,
    unobservable: Sequence[str],
) -> None:
    """Give a prior to unknowns that the sensors do not determine, so that the system can be factored.

    Args:
        regularisation: standard deviation for all of them, or one by label.
        null: null space of the weighted rows; its first six rows are the base's acceleration.
    """
    moved = np.abs(null[6:]).max(axis=1) > FELT * np.abs(null).max()
    labels = [label for label, m in zip(layout.labels, moved) if m]
    if isinstance(regularisation, Mapping):
        _check_names(regularisation, labels)
        chosen: dict[str, Any] = dict(regularisation)
    else:
        chosen = dict.fromkeys(labels, regularisation)
    for label, noise in chosen.items():
        layout.add_prior(layout.labels.index(label), float(noise))


def _check_names(regularisation: Mapping[str, float], labels: Sequence[str]) -> None:
    unknown = [name for name in regularisation if name not in labels]
    if unknown:
        raise ConfigurationError(
            f"regularisation names {unknown[0]!r}, which is not undetermined; "
            f"undetermined are {choices(labels) if labels else 'none'}"
        )


def _system(estimator: Any, q: np.ndarray, v: np.ndarray) -> tuple[sparse.csr_matrix, int]:
    """Pattern of the paper's [D; Y] with this estimator's sensors, and its number of unknowns."""
    system = newton_euler_system(estimator.robot, q, v)
    layout, mechanism = estimator._layout, estimator.mechanism
    width = system.D.shape[1]
    rows = [system.D]

    def add(quantity: Any, joint: int, block: np.ndarray) -> None:
        matrix = sparse.lil_matrix((len(block), width))
        matrix[:, system.columns[quantity, joint]] = block
        rows.append(matrix)

    if mechanism.floating:
        add("tau", 1, np.eye(6))
    for unknown, joint in zip(layout.joints, mechanism.joints[1:]):
        if unknown.noise is not None:
            add("qdd", joint, np.eye(1))
    at: dict[int, list[Any]] = {}
    for index, unknown in enumerate(layout.wrenches):
        link, vector, _ = layout._geometry[index]
        at.setdefault(mechanism.joints[link], []).append((unknown, vector))
    for joint in mechanism.joints:
        if joint == 0:
            continue
        wrenches = [vector for unknown, vector in at.get(joint, []) if unknown.noise is None]
        columns = np.array(wrenches).reshape(-1, 6).T
        known = scipy.linalg.null_space(columns.T).T if columns.size else np.eye(6)
        known = np.where(np.abs(known) < 1e-12, 0.0, known)
        if len(known):
            add("fx", joint, known @ SWAP.T)
    for m in range(len(layout.rows.kind)):
        joint = mechanism.joints[layout.rows.link[m]]
        vector = layout.rows.vector[m]
        if layout.rows.carrier[m] != layout.rows.link[m]:
            carrier = mechanism.joints[layout.rows.carrier[m]]
            data = estimator.robot.model.createData()
            pin.forwardKinematics(estimator.robot.model, data, q)
            placement = data.oMi[joint].inverse() * data.oMi[carrier]
            vector = placement.toActionMatrix() @ vector
        quantity = "a" if layout.rows.kind[m] == ACCELERATION else "f"
        add(quantity, joint, (SWAP @ vector)[None])
    return sparse.vstack(rows).tocsr(), width


def _inertia(I: np.ndarray) -> np.ndarray:
    """(6, 6) from the ten numbers of ``Motion.Ic``, linear part first."""
    h = np.array([[0.0, -I[8], I[7]], [I[8], 0.0, -I[6]], [-I[7], I[6], 0.0]])
    J = np.array([[I[0], I[1], I[2]], [I[1], I[3], I[4]], [I[2], I[4], I[5]]])
    return np.block([[I[9] * np.eye(3), -h], [h, J]])
