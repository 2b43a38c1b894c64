"""Inverse and forward dynamics, written so that few operations are left: run on floats or on a trace.

Everything is expressed in link frames with conventional proper accelerations (angular velocity, angular
acceleration, acceleration of the origin): neither linear velocities nor the base's velocity are needed.
Forward dynamics is the elimination, link by link from the leaves, of the paper's system D d + b = 0:
f_i = IA_i a_i + pA_i is what is left of a branch (articulated_body, the order of ABA), or the links go
first and the joint accelerations last (composite_body, the order of CRBA with L^T D L).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.papers.sparse_dynamics_tracer import Scalar, Trace, inverse, is_zero
from experiments.papers.sparse_dynamics_trees import Tree, skew

X, Z = 0, 2
OTHERS = ((1, 2), (2, 0), (0, 1))
"""Axis -> the two others, so that the three are right-handed."""
UNKNOWN_WRENCH = 2  # of the wrench on a load cell's link: the couple about z
CELLS = (0, 1, 3, 4, 5)
"""What a load cell of figure 2 measures of a wrench (couple, force): all but the couple about z."""


class State(NamedTuple):
    """Inputs, scalars or floats.

    cosine, sine: of the joint angles (n,).  velocity, torque, acceleration: of the joints (n,).
    gravity: the base's acceleration minus gravity (3,), in the frame of the base.
    """

    cosine: Sequence
    sine: Sequence
    velocity: Sequence
    torque: Sequence
    acceleration: Sequence
    gravity: Sequence


ALONG_FIRST_JOINT = (0.0, 0.0, 9.81)


def traced_state(trace: Trace, links: int, gravity: Sequence[float] | None = None) -> State:
    """Inputs of a trace. gravity: constants; None: three inputs, gravity in any direction."""
    names = ("cosine", "sine", "velocity", "torque", "acceleration")
    return State(
        *(trace.variables(name, links) for name in names),
        trace.variables("gravity", 3) if gravity is None else gravity,
    )


class Turn(NamedTuple):
    """Rotation of a child's frame about an axis, with the products that turn matrices."""

    axis: int
    c: float | Scalar
    s: float | Scalar
    ss: float | Scalar
    cs: float | Scalar


def turn_about(axis: int, c, s) -> Turn:
    """From cosine and sine, scalars or floats."""
    return Turn(axis, c, s, s * s, c * s)


class Joint(NamedTuple):
    """Where a link's frame lies in its parent's: twist and shift about x, then rotation and shift about z."""

    twist: Turn
    shift_x: float
    rotation: Turn
    shift_z: float


def joints_of(tree: Tree, state: State) -> list[Joint]:
    """At the state's angles."""
    return [
        Joint(
            turn_about(X, float(np.cos(twist)), float(np.sin(twist))),
            float(a),
            turn_about(Z, c, s),
            float(d),
        )
        for twist, a, d, c, s in zip(
            tree.twist, tree.shift_x, tree.shift_z, state.cosine, state.sine
        )
    ]


# Vectors and matrices of scalars


def _vector(*entries) -> np.ndarray:
    vector = np.empty(len(entries), object)
    vector[:] = entries
    return vector


def _zeros(n: int = 3) -> np.ndarray:
    return _vector(*([0.0] * n))


def _times(matrix, vector) -> np.ndarray:
    """Matrix times vector, each row summed from the left."""
    return _vector(*(sum(m * v for m, v in zip(row, vector)) for row in matrix))


def _cross(a, b) -> np.ndarray:
    return _vector(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def _symmetric(matrix) -> np.ndarray:
    matrix[np.tril_indices(3, -1)] = matrix.T[np.tril_indices(3, -1)]
    return matrix


def _turned(turn: Turn, v) -> np.ndarray:
    """A vector of the parent in the child's axes."""
    i, j = OTHERS[turn.axis]
    w = v.copy()
    w[i], w[j] = turn.c * v[i] + turn.s * v[j], turn.c * v[j] - turn.s * v[i]
    return w


def _turned_back(turn: Turn, v) -> np.ndarray:
    """A vector of the child in the parent's axes."""
    i, j = OTHERS[turn.axis]
    w = v.copy()
    w[i], w[j] = turn.c * v[i] - turn.s * v[j], turn.c * v[j] + turn.s * v[i]
    return w


def _into(joint: Joint, v) -> np.ndarray:
    return _turned(joint.rotation, _turned(joint.twist, v))


def _out_of(joint: Joint, v) -> np.ndarray:
    return _turned_back(joint.twist, _turned_back(joint.rotation, v))


def _turned_matrix(turn: Turn, M, symmetric: bool) -> np.ndarray:
    """R M R^T from the child's into the parent's axes.

    Trace and antisymmetric part of the 2 x 2 block across the axis do not change: 4 products turn it.
    """
    k, (i, j) = turn.axis, OTHERS[turn.axis]
    N = M.copy()
    spread, shear = M[i, i] - M[j, j], M[i, j] + M[j, i]
    e, g = turn.ss * spread + turn.cs * shear, turn.cs * spread - turn.ss * shear
    N[i, i], N[j, j] = M[i, i] - e, M[j, j] + e
    N[i, j], N[j, i] = M[i, j] + g, M[j, i] + g
    N[i, k] = turn.c * M[i, k] - turn.s * M[j, k]
    N[j, k] = turn.s * M[i, k] + turn.c * M[j, k]
    if symmetric:
        N[j, i], N[k, i], N[k, j] = N[i, j], N[i, k], N[j, k]
    else:
        N[k, i] = turn.c * M[k, i] - turn.s * M[k, j]
        N[k, j] = turn.s * M[k, i] + turn.c * M[k, j]
    return N


def _shifted_wrench(couple, force, axis: int, shift: float):
    """About a point that lies the shift back along the axis."""
    if is_zero(shift):
        return couple, force
    i, j = OTHERS[axis]
    couple = couple.copy()
    couple[i], couple[j] = couple[i] - shift * force[j], couple[j] + shift * force[i]
    return couple, force


def _wrench_of_parent(joint: Joint, couple, force):
    """A link's wrench in its parent's frame."""
    couple, force = _shifted_wrench(couple, force, Z, joint.shift_z)
    couple, force = _out_of(joint, couple), _out_of(joint, force)
    return _shifted_wrench(couple, force, X, joint.shift_x)


def _acceleration_at(angular, linear, axis: int, shift: float) -> np.ndarray:
    """Linear acceleration of a point the shift further along the axis, without velocities."""
    if is_zero(shift):
        return linear
    i, j = OTHERS[axis]
    linear = linear.copy()
    linear[i], linear[j] = linear[i] + shift * angular[j], linear[j] - shift * angular[i]
    return linear


# Velocities and what they cause


def _products(w) -> np.ndarray:
    """xx, yy, zz, xy, xz, yz of the angular velocity: all that velocities contribute."""
    x, y, z = w
    return _vector(x * x, y * y, z * z, x * y, x * z, y * z)


def _motion_of_points(o, angular) -> np.ndarray:
    """W (3, 3): a point r of the link accelerates by W r relative to the origin."""
    x, y, z = angular
    return np.array(
        [
            [-(o[1] + o[2]), o[3] - z, o[4] + y],
            [o[3] + z, -(o[0] + o[2]), o[5] - x],
            [o[4] - y, o[5] + x, -(o[0] + o[1])],
        ],
        dtype=object,
    )


def _acceleration_of_origin(joint: Joint, W) -> np.ndarray:
    """Of a link's origin relative to its parent's, in the parent's axes."""
    linear = _vector(*(W[:, 0] * joint.shift_x))
    if is_zero(joint.shift_z):
        return linear
    _, y, z = _turned_back(joint.twist, _vector(0.0, 0.0, joint.shift_z))
    return linear + _vector(*(W[k, 1] * y + W[k, 2] * z for k in range(3)))


def _velocity_step(joint: Joint, parent, velocity):
    """Angular velocity of a link without and with its own joint's."""
    carried = _into(joint, parent)
    w = carried.copy()
    w[Z] = w[Z] + velocity
    return carried, w


# Inverse dynamics


def inverse_dynamics(
    tree: Tree, state: State, accelerations: Sequence | None = None, wrench: Sequence | None = None
):
    """Recursive Newton-Euler: joint torques (n), and couple and force on each link from its parent.

    accelerations: of the joints (n), 0 for none: the bias.
    wrench: (couple, force) (6,) on the last link from outside, in its frame.
    """
    joints, n = joints_of(tree, state), tree.links
    w, dw, W, linear, wrenches = ([None] * n for _ in range(5))
    for i, (joint, parent) in enumerate(zip(joints, tree.parents)):
        rate = state.velocity[i]
        on_link = parent >= 0
        carried, w[i] = _velocity_step(joint, w[parent] if on_link else _zeros(), rate)
        angular = _into(joint, dw[parent] if on_link else _zeros())
        own = 0.0 if accelerations is None else accelerations[i]
        dw[i] = _vector(
            angular[0] + carried[1] * rate, angular[1] - carried[0] * rate, angular[2] + own
        )
        o = _products(w[i])
        W[i] = _motion_of_points(o, dw[i])
        if on_link:
            moved = linear[parent] + _acceleration_of_origin(joint, W[parent])
        else:
            moved = _vector(*state.gravity)
        linear[i] = _into(joint, moved)
        couple = _euler_couple(tree.inertia[i], o, dw[i])
        couple = couple + _cross(tree.moment[i].astype(object), linear[i])
        wrenches[i] = (couple, tree.mass[i] * linear[i] + _times(W[i], tree.moment[i]))
    if wrench is not None:
        couple, force = wrenches[-1]
        wrenches[-1] = (couple - _vector(*wrench[:3]), force - _vector(*wrench[3:]))
    for i in reversed(range(n)):
        parent = tree.parents[i]
        if parent >= 0:
            couple, force = _wrench_of_parent(joints[i], *wrenches[i])
            wrenches[parent] = (wrenches[parent][0] + couple, wrenches[parent][1] + force)
    return [couple[Z] for couple, _ in wrenches], wrenches


def _euler_couple(I, o, dw) -> np.ndarray:
    """I dw + w x I w about the link's origin, each constant once."""
    return _vector(
        I[0, 0] * dw[0]
        + (I[2, 2] - I[1, 1]) * o[5]
        + I[0, 1] * (dw[1] - o[4])
        + I[0, 2] * (dw[2] + o[3])
        + I[1, 2] * (o[1] - o[2]),
        I[1, 1] * dw[1]
        + (I[0, 0] - I[2, 2]) * o[4]
        + I[0, 1] * (dw[0] + o[5])
        + I[1, 2] * (dw[2] - o[3])
        + I[0, 2] * (o[2] - o[0]),
        I[2, 2] * dw[2]
        + (I[1, 1] - I[0, 0]) * o[3]
        + I[0, 2] * (dw[0] - o[5])
        + I[1, 2] * (dw[1] + o[4])
        + I[0, 1] * (o[0] - o[1]),
    )


# Forward dynamics, leaf to root


class _Eliminated(NamedTuple):
    """What is left of a link's joint: row of the inertia, divided by the pivot, and the residual."""

    gain_angular: np.ndarray
    gain_linear: np.ndarray
    residual: Scalar


def articulated_body(tree: Tree, state: State) -> list:
    """Joint accelerations (n): the elimination goes link by link from the leaves."""
    joints, n = joints_of(tree, state), tree.links
    couplings, inertias, biases = _velocity_terms(tree, state, joints)
    eliminated: list = [None] * n
    for i in reversed(range(n)):
        eliminated[i], inertia, bias = _eliminate(
            inertias[i], biases[i], couplings[i], state.torque[i]
        )
        parent = tree.parents[i]
        if parent >= 0:
            blocks, (couple, force) = _of_parent(joints[i], inertia, bias)
            A, B, C = (old + new for old, new in zip(inertias[parent], blocks))
            inertias[parent] = (_symmetric(A), B, _symmetric(C))
            biases[parent] = (biases[parent][0] + couple, biases[parent][1] + force)
    return _accelerations(tree, state, joints, couplings, eliminated)


def _velocity_terms(tree: Tree, state: State, joints):
    """Accelerations that velocities cause across each joint, and each link's inertia and bias wrench."""
    n = tree.links
    w, W = [None] * n, [None] * n
    couplings, inertias, biases = [], [], []
    for i, (joint, parent) in enumerate(zip(joints, tree.parents)):
        rate, I, h = state.velocity[i], tree.inertia[i], tree.moment[i]
        carried, w[i] = _velocity_step(joint, w[parent] if parent >= 0 else _zeros(), rate)
        o = _products(w[i])
        W[i] = _motion_of_points(o, (0.0, 0.0, 0.0))
        linear = (
            _into(joint, _acceleration_of_origin(joint, W[parent])) if parent >= 0 else _zeros()
        )
        couplings.append((_vector(carried[1] * rate, -(carried[0] * rate), 0.0), linear))
        couple = _vector(
            I[2, 1] * (o[1] - o[2]) + (I[2, 2] - I[1, 1]) * o[5] + I[2, 0] * o[3] - I[1, 0] * o[4],
            I[0, 2] * (o[2] - o[0]) + (I[0, 0] - I[2, 2]) * o[4] + I[0, 1] * o[5] - I[2, 1] * o[3],
            I[1, 0] * (o[0] - o[1]) + (I[1, 1] - I[0, 0]) * o[3] + I[1, 2] * o[4] - I[0, 2] * o[5],
        )
        biases.append((couple, _times(W[i], h)))
        inertias.append(
            (I.astype(object), skew(h).astype(object), (tree.mass[i] * np.eye(3)).astype(object))
        )
    return couplings, inertias, biases


def _eliminate(inertia, bias, coupling, torque):
    """One joint out of f = [A B; B^T C] a + bias: what it leaves, and its solution for later.

    Row and column of the joint's axis vanish: 15 of 21 entries are left.
    """
    A, B, C = (block.copy() for block in inertia)
    couple, force = (part.copy() for part in bias)
    row_angular, row_linear, pivot = A[:, Z].copy(), B[Z].copy(), inverse(A[Z, Z])
    residual = torque - couple[Z]
    angular = _vector(row_angular[0] * pivot, row_angular[1] * pivot, 1.0)
    linear = _vector(*(entry * pivot for entry in row_linear))
    for a in range(2):
        for b in range(a, 2):
            A[a, b] = A[b, a] = A[a, b] - angular[a] * row_angular[b]
        for b in range(3):
            B[a, b] = B[a, b] - angular[a] * row_linear[b]
    for a in range(3):
        for b in range(a, 3):
            C[a, b] = C[b, a] = C[a, b] - linear[a] * row_linear[b]
    A[Z], A[:, Z], B[Z] = 0.0, 0.0, 0.0
    (x, y, _), moved = coupling
    for k in range(2):
        couple[k] = couple[k] + angular[k] * residual
        couple[k] = couple[k] + A[k, 0] * x + A[k, 1] * y
        couple[k] = couple[k] + B[k, 0] * moved[0] + B[k, 1] * moved[1] + B[k, 2] * moved[2]
    couple[Z] = torque
    for k in range(3):
        force[k] = force[k] + linear[k] * residual + B[0, k] * x + B[1, k] * y
        force[k] = force[k] + C[k, 0] * moved[0] + C[k, 1] * moved[1] + C[k, 2] * moved[2]
    return _Eliminated(angular, linear, residual * pivot), (A, B, C), (couple, force)


def _of_parent(joint: Joint, inertia, bias):
    """Articulated inertia [A B; B^T C] and bias wrench of a link in its parent's frame."""
    blocks = _shifted_inertia(*inertia, Z, joint.shift_z)
    for turn in (joint.rotation, joint.twist):
        blocks = tuple(
            _turned_matrix(turn, block, symmetric)
            for block, symmetric in zip(blocks, (True, False, True))
        )
    blocks = _shifted_inertia(*blocks, X, joint.shift_x)
    return blocks, _wrench_of_parent(joint, *bias)


def _shifted_inertia(A, B, C, axis: int, shift: float):
    """[A B; B^T C] about a point that lies the shift back along the axis.

    With p the shift's vector: B' = B + [p] C, A' = A + [p] B^T + B' [p]^T.
    """
    if is_zero(shift):
        return A, B, C
    k, (i, j) = axis, OTHERS[axis]
    A2, B2 = A.copy(), B.copy()
    for c in range(3):
        B2[i, c], B2[j, c] = B[i, c] - shift * C[j, c], B[j, c] + shift * C[i, c]
    A2[k, i] = A2[i, k] = A[k, i] - shift * B2[k, j]
    A2[k, j] = A2[j, k] = A[k, j] + shift * B2[k, i]
    A2[i, i] = A[i, i] - shift * (B[i, j] + B2[i, j])
    A2[j, j] = A[j, j] + shift * (B[j, i] + B2[j, i])
    A2[i, j] = A2[j, i] = A[i, j] - shift * (B[j, j] - B2[i, i])
    return A2, B2, C


def _accelerations(tree: Tree, state: State, joints, couplings, eliminated) -> list:
    """Of the joints, from the root to the leaves."""
    links, solution = [], []
    for i, (joint, parent) in enumerate(zip(joints, tree.parents)):
        angular, linear = links[parent] if parent >= 0 else (_zeros(), _vector(*state.gravity))
        linear = _acceleration_at(angular, linear, X, joint.shift_x)
        angular, linear = _into(joint, angular), _into(joint, linear)
        linear = _acceleration_at(angular, linear, Z, joint.shift_z)
        (x, y, _), moved = couplings[i]
        angular, linear = _vector(angular[0] + x, angular[1] + y, angular[2]), linear + moved
        turn, pull, own = eliminated[i]
        about_z = own - (
            turn[0] * angular[0]
            + turn[1] * angular[1]
            + pull[0] * linear[0]
            + pull[1] * linear[1]
            + pull[2] * linear[2]
        )
        solution.append(about_z - angular[Z])
        angular[Z] = about_z
        links.append((angular, linear))
    return solution


# Forward dynamics, joint accelerations last


def composite_body(tree: Tree, state: State) -> list:
    """Joint accelerations (n): joint space inertia, then sparse L^T D L from the leaves."""
    bias, _ = inverse_dynamics(tree, state)
    M = joint_space_inertia(tree, state)
    return _solve_in_tree(tree, M, [tau - h for tau, h in zip(state.torque, bias)])


def joint_space_inertia(tree: Tree, state: State) -> np.ndarray:
    """M (n, n), where two joints lie on one path; 0 elsewhere."""
    joints, n = joints_of(tree, state), tree.links
    inertias, moments = _composites(tree, joints)
    M = np.full((n, n), 0.0, dtype=object)
    for i in range(n):
        wrench, j = _unit_wrench(inertias[i], moments[i]), i
        M[i, i] = wrench[0][Z]
        while tree.parents[j] >= 0:
            wrench, j = _wrench_of_parent(joints[j], *wrench), tree.parents[j]
            M[i, j] = M[j, i] = wrench[0][Z]
    return M


def _unit_wrench(inertia, moment):
    """Couple and force that turn a rigid branch by 1 rad/s^2 about its first joint."""
    return inertia[:, Z].copy(), _vector(-moment[1], moment[0], 0.0)


def _composites(tree: Tree, joints):
    """Inertia and moment of each link with all that hangs on it, about the link's origin."""
    inertias, moments = [I.astype(object) for I in tree.inertia], [_vector(*h) for h in tree.moment]
    masses = [float(m) for m in tree.mass]
    for i in reversed(range(tree.links)):
        parent, joint = tree.parents[i], joints[i]
        if parent < 0:
            continue
        I, h = _shifted_body(inertias[i], moments[i], masses[i], Z, joint.shift_z)
        for turn in (joint.rotation, joint.twist):
            I, h = _turned_matrix(turn, I, True), _turned_back(turn, h)
        I, h = _shifted_body(I, h, masses[i], X, joint.shift_x)
        inertias[parent] = _symmetric(inertias[parent] + I)
        moments[parent] = moments[parent] + h
        masses[parent] += masses[i]
    return inertias, moments


def _shifted_body(I, h, mass: float, axis: int, shift: float):
    """Inertia and moment of a rigid body about a point that lies the shift back along the axis."""
    if is_zero(shift):
        return I, h
    k, (i, j) = axis, OTHERS[axis]
    I, h = I.copy(), h.copy()
    across = h[k] * (2.0 * shift) + shift * shift * mass
    I[i, i], I[j, j] = I[i, i] + across, I[j, j] + across
    I[k, i] = I[i, k] = I[k, i] - shift * h[i]
    I[k, j] = I[j, k] = I[k, j] - shift * h[j]
    h[k] = h[k] + shift * mass
    return I, h


def _solve_in_tree(tree: Tree, M, right) -> list:
    """M x = right by L^T D L, which keeps M's zeros (Featherstone 2008, section 6.5)."""
    n, L, x = tree.links, M.copy(), list(right)
    paths = [_ancestors(tree, i) for i in range(n)]
    pivots: list = [None] * n
    for k in reversed(range(n)):
        pivots[k] = inverse(L[k, k])
        for at, i in enumerate(paths[k]):
            factor = L[k, i] * pivots[k]
            for j in paths[k][at:]:
                L[i, j] = L[i, j] - factor * L[k, j]
            L[k, i] = factor
    for i in reversed(range(n)):
        for j in paths[i]:
            x[j] = x[j] - L[i, j] * x[i]
    x = [value * pivot for value, pivot in zip(x, pivots)]
    for i in range(n):
        for j in paths[i]:
            x[i] = x[i] - L[i, j] * x[j]
    return x


def _ancestors(tree: Tree, i: int) -> list[int]:
    path = []
    while tree.parents[i] >= 0:
        i = tree.parents[i]
        path.append(i)
    return path


# Two load cells


def unknown_accelerations(links: int) -> tuple[int, ...]:
    """Joints whose acceleration figure 2's set does not have: the first two and the last two."""
    return (0, 1, links - 2, links - 1)


def load_cells(tree: Tree, state: State, first: Sequence, last: Sequence):
    """Figure 2: joint torques (n), joint accelerations (n), wrench (6) on the last link of a chain.

    first: (5,) ``CELLS`` of the wrench on the first link from the base.  last: the same of the wrench
    on the last link from outside. Everything is affine in the four accelerations of
    ``unknown_accelerations`` and the last couple about z: five equations, then inverse dynamics.
    """
    joints, n = joints_of(tree, state), tree.links
    unknown = unknown_accelerations(n)
    accelerations = [0.0 if i in unknown else state.acceleration[i] for i in range(n)]
    wrench = [0.0] * 6
    for cell, value in zip(CELLS, last):
        wrench[cell] = value
    _, wrenches = inverse_dynamics(tree, state, accelerations, wrench)
    right = [wanted - found for wanted, found in zip(first, _cells(*wrenches[0]))]
    inertias, moments = _composites(tree, joints)
    columns = [
        _cells(*_at_first_link(joints, k, *_unit_wrench(inertias[k], moments[k]))) for k in unknown
    ]
    columns.append(_cells(*_at_first_link(joints, n - 1, _vector(0.0, 0.0, -1.0), _zeros())))
    solution = _solve([list(row) for row in zip(*columns)], right)
    for i, value in zip(unknown, solution):
        accelerations[i] = value
    wrench[UNKNOWN_WRENCH] = solution[-1]
    torques, _ = inverse_dynamics(tree, state, accelerations, wrench)
    return torques, accelerations, wrench


def _cells(couple, force) -> list:
    both = [*couple, *force]
    return [both[i] for i in CELLS]


def _at_first_link(joints, link: int, couple, force):
    """A link's wrench in the frame of link 0 of a chain."""
    for joint in joints[link:0:-1]:
        couple, force = _wrench_of_parent(joint, couple, force)
    return couple, force


def _solve(A, b) -> list:
    """A x = b by elimination in the order given; rows whose pivot is constant wait."""
    n, b = len(b), list(b)
    for k in range(n):
        p = next(r for r in range(k, n) if not is_zero(A[r][k]))
        A[k], A[p], b[k], b[p] = A[p], A[k], b[p], b[k]
        pivot = inverse(A[k][k])
        for r in range(k + 1, n):
            factor = A[r][k] * pivot
            for c in range(k + 1, n):
                A[r][c] = A[r][c] - factor * A[k][c]
            b[r] = b[r] - factor * b[k]
    x: list = [None] * n
    for k in reversed(range(n)):
        value = b[k]
        for c in range(k + 1, n):
            value = value - A[k][c] * x[c]
        x[k] = value * inverse(A[k][k])
    return x
