"""A motion within a robot's limits that tells the parameters that a log did not.

Each joint moves on a Fourier series, eased in and out, so that it begins and ends at rest. The series' middle and
amplitudes are those for which the condition number of the regressor of the base parameters is least: of the log's rows
and the planned ones together, each weighted by the noise that the log had. Amplitudes shrink until positions, velocities
and torques (of the identified robot, friction included) keep a margin to their limits.

Source: Swevers et al., *Optimal robot excitation and identification*, 1997.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.optimize import minimize

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import write_text
from contact_id_controller.identification.identify import Identified
from contact_id_controller.identification.model_fit import Rows, drives_of, reduced_information
from contact_id_controller.identification.pseudo_inertia import COORDINATES
from contact_id_controller.identification.smoothing import Motion
from contact_id_controller.identification.told import base_space, rigid_information

Array = NDArray[np.float64]

HARMONICS = 5
EASE_S = 1.0
"""Time in which the series comes and goes, at most an eighth of the motion."""

MARGIN = 0.9
"""Of the limits of position, velocity and effort, that the motion keeps to."""

HALF_TURN = np.pi
"""Range of a joint without limits, rad, to either side."""

LOOKED_AT, WRITTEN_HZ = 80, 100.0
"""Instants of a motion that is judged while planning; rate of the plan."""

FIRST, BEST, ROUNDS = 60, 2, 12
"""Random series to begin with, those that are improved, and steps of the improvement."""

HALVINGS = 12
"""Times that amplitudes shrink by .7."""

FLOOR = 1e-14
"""Least eigenvalue of an information, of the largest one: below is rounding."""


@dataclasses.dataclass(frozen=True)
class Excitation:
    """A motion at rest at both ends.

    Attributes:
        joints: names.  time (n,) s; q, v, a (n, na).
        before, after: condition number of the log, and of both together.
    """

    joints: tuple[str, ...]
    time: Array
    q: Array
    v: Array
    a: Array
    before: float
    after: float

    @property
    def summary(self) -> str:
        """One line."""
        return (
            f"Planned: {self.time[-1]:.0f} s; condition number of the base regressor {self.before:.3g} with this log, "
            f"{self.after:.3g} with both. The plan keeps the limits of the URDF; it knows no obstacle and no collision "
            "of links: look at it in a simulation first."
        )


def plan_excitation(found: Identified, duration_s: float, rounds: int = ROUNDS) -> Excitation:
    """Plan the motion which, with the log, makes the condition number of the regressor of the base parameters small.

    Args:
        found: the robot as identified from the log.  duration_s: of the motion.
        rounds: steps of the optimiser, from each of the ``BEST`` of ``FIRST`` random series.

    Raises:
        ConfigurationError: a joint without a limit of velocity, or no motion within the limits of effort.
    """
    planner = _Planner(found, duration_s)
    generator = np.random.default_rng(0)
    starts = [planner.random(generator) for _ in range(FIRST)]
    starts.sort(key=planner.cost)
    best = min(
        (
            minimize(
                planner.cost, start, method="L-BFGS-B", options={"maxiter": rounds, "eps": 1e-3}
            ).x
            for start in starts[:BEST]
        ),
        key=planner.cost,
    )
    after = planner.condition(best)
    if not np.isfinite(after):
        raise ConfigurationError(
            "no motion was found within the limits of effort: the identified robot needs more to hold itself"
        )
    time = np.arange(0.0, duration_s + 0.5 / WRITTEN_HZ, 1.0 / WRITTEN_HZ)
    return Excitation(
        tuple(found.robot.joint_names),
        time,
        *planner.motion(best, time),
        planner.condition(None),
        after,
    )


def write_plan(plan: Excitation, path: Path) -> None:
    """Write a plan as .csv: time, then positions, velocities and accelerations of each joint.

    Raises:
        RecordError: the file cannot be written.
    """
    names = [f"{kind}_{joint}" for kind in ("q", "v", "a") for joint in plan.joints]
    table = np.column_stack([plan.time, plan.q, plan.v, plan.a])
    rows = [",".join(f"{value:.9g}" for value in row) for row in table]
    write_text(path, "\n".join([",".join(["time", *names]), *rows]) + "\n")


class _Planner:
    """Condition numbers of motions of one robot; a motion is (na * (1 + 2 harmonics),) numbers."""

    def __init__(self, found: Identified, duration_s: float):
        robot = found.robot
        without = [
            n for n, v in zip(robot.joint_names, robot.velocity_limits) if not np.isfinite(v)
        ]
        if without:
            raise ConfigurationError(
                f"joint {without[0]!r} has no limit of velocity in the URDF; state one to plan a motion"
            )
        self.found, self.robot, self.duration = found, robot, duration_s
        low = np.where(np.isfinite(robot.lower), robot.lower, -HALF_TURN)
        high = np.where(np.isfinite(robot.upper), robot.upper, HALF_TURN)
        self.middle, self.half = 0.5 * (low + high), 0.5 * MARGIN * (high - low)
        self.space = base_space(robot, found.fit.belief)
        self.known = found.fit.information
        self.looked = np.linspace(0.0, duration_s, LOOKED_AT)
        self.usual = found.shapes
        self.identified = pin.Model(robot.model)
        self.identified.armature = np.zeros(robot.nv)  # drives have the rotors
        for k, body in enumerate(found.fit.parameters.bodies.reshape(-1, COORDINATES)):
            self.identified.inertias[k + 1] = pin.Inertia.FromDynamicParameters(body)
        self.data = self.identified.createData()

    def random(self, generator: np.random.Generator) -> Array:
        """Numbers of a motion, most of which is slow."""
        shape = (self.robot.na, 1 + 2 * HARMONICS)
        numbers = generator.normal(size=shape)
        numbers[:, 0] *= 0.5
        return numbers.ravel()

    def motion(self, numbers: Array, time: Array) -> tuple[Array, Array, Array]:
        """q, v, a (n, na) at times (n,), within the limits of position, velocity and effort.

        The position is that of the middle, where amplitudes shrink to nothing.
        """
        rows = numbers.reshape(self.robot.na, -1)
        middle = self.middle + 0.5 * self.half * np.tanh(rows[:, 0])
        room = self.half - np.abs(middle - self.middle)
        fine = np.linspace(0.0, self.duration, 401)
        phase = 2.0 * np.pi / self.duration * np.outer(fine, np.arange(1, HARMONICS + 1))
        waves = np.concatenate([np.sin(phase), np.cos(phase)], axis=1) @ rows[:, 1:].T
        ease = min(EASE_S, 0.125 * self.duration)
        share = np.clip(np.minimum(fine, self.duration - fine) / ease, 0.0, 1.0)
        waves *= (share**3 * (10.0 - 15.0 * share + 6.0 * share**2))[:, None]
        waves *= room / np.maximum(np.abs(waves).max(axis=0), 1e-12)
        spline = make_interp_spline(fine, waves, k=5)
        fastest = np.abs(spline(fine, nu=1)).max(axis=0)
        size = np.minimum(1.0, MARGIN * self.robot.velocity_limits / np.maximum(fastest, 1e-12))
        size *= self._within_effort(spline, middle, size)
        return middle + size * spline(time), size * spline(time, nu=1), size * spline(time, nu=2)

    def _within_effort(self, spline: object, middle: Array, size: Array) -> float:
        """Share of the amplitudes at which torques keep their limits; 0: not even at rest."""
        t = self.looked
        waves = [spline(t, nu=k) for k in range(3)]  # type: ignore[operator]
        share = 1.0
        for _ in range(HALVINGS):
            q, v, a = (share * size * wave for wave in waves)
            torque = self._torques(middle + q, v, a)
            if (np.abs(torque) <= MARGIN * self.robot.effort_limits).all():
                return share
            share *= 0.7
        return 0.0

    def _torques(self, q: Array, v: Array, a: Array) -> Array:
        """Torques of the identified robot, friction included, (n, na) N·m."""
        robot, whole = self.robot, np.zeros((3, len(q), self.robot.nv))
        whole[1][:, robot.actuated], whole[2][:, robot.actuated] = v, a
        configurations = np.tile(robot.neutral(), (len(q), 1))
        robot.put_joints(configurations, q)
        torque = np.array(
            [
                pin.rnea(self.identified, self.data, *each)[robot.actuated]
                for each in zip(configurations, whole[1], whole[2])
            ]
        )
        drives = drives_of(Motion(self.looked, q, v, a, q), self.usual)
        torque += np.einsum("jnk,jk->nj", drives, self.found.fit.parameters.drives)
        return torque

    def condition(self, numbers: Array | None) -> float:
        """Condition number of the base regressor, with the log's rows; infinite for a motion that stands."""
        information = self.known
        if numbers is not None:
            q, v, a = self.motion(numbers, self.looked)
            if not np.any(v):
                return np.inf
            rows = Rows.of(self.robot, Motion(self.looked, q, v, a, 0.0 * q), self.usual)
            every = self.duration * WRITTEN_HZ / LOOKED_AT
            information = information + every * reduced_information(self.found.fit, rows)
        base = self.space.T @ rigid_information(self.found.fit, information) @ self.space
        values = np.linalg.eigvalsh(base)
        return float(np.sqrt(values[-1] / max(values[0], FLOOR * values[-1])))

    def cost(self, numbers: Array) -> float:
        """Logarithm of the condition number, finite."""
        return min(float(np.log(self.condition(numbers))), 50.0)
