"""Plans a motion within a robot's limits that determines parameters that a log did not.

Each joint moves on a Fourier series, eased in and out, so that it begins and ends at rest. The series' middle and
amplitudes minimise the condition number of the regressor of the base parameters: of the log's rows and the planned
ones together, each weighted by the log's noise. Amplitudes shrink until positions, velocities and torques (of the
identified robot, friction included) keep a margin to their limits.

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
"""Time in which the series is faded in and out, at most an eighth of the motion."""

MARGIN = 0.9
"""Share of the limits of position, velocity and effort that the motion uses."""

HALF_TURN = np.pi
"""Range of a joint without limits, rad, to either side."""

LOOKED_AT, WRITTEN_HZ = 80, 100.0
"""Samples at which a motion is evaluated while planning; rate of the written plan."""

FIRST, BEST, ROUNDS = 60, 2, 12
"""Number of initial random series, of those that are optimised, and of the optimiser's steps."""

HALVINGS = 12
"""Largest number of reductions of the amplitudes, by the factor 0.7 each."""

FLOOR = 1e-14
"""Least eigenvalue of an information matrix, relative to the largest one: smaller ones are rounding."""


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
            f"{self.after:.3g} with both. The plan keeps the URDF's limits; obstacles and self-collision are not "
            "checked: play it in a simulation first."
        )


def plan_excitation(found: Identified, duration_s: float, rounds: int = ROUNDS) -> Excitation:
    """Plan the motion that minimises the condition number of the base-parameter regressor of log and motion together.

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
            "no motion was found within the effort limits: the identified robot exceeds them when it holds still"
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
    """Condition numbers of motions of one robot; a motion is given by its coefficients (na * (1 + 2 HARMONICS),).

    Each joint has a row: the offset of its middle, then HARMONICS coefficients of sines and as many of cosines.
    """

    def __init__(self, found: Identified, duration_s: float):
        robot = found.robot
        without = [
            n for n, v in zip(robot.joint_names, robot.velocity_limits) if not np.isfinite(v)
        ]
        if without:
            raise ConfigurationError(
                f"joint {without[0]!r} has no velocity limit in the URDF; state one to plan a motion"
            )
        self.found, self.robot, self.duration = found, robot, duration_s
        low = np.where(np.isfinite(robot.lower), robot.lower, -HALF_TURN)
        high = np.where(np.isfinite(robot.upper), robot.upper, HALF_TURN)
        self.middle, self.half = 0.5 * (low + high), 0.5 * MARGIN * (high - low)
        self.space = base_space(robot, found.fit.belief)
        self.log_information = found.fit.information
        self.sample_times_s = np.linspace(0.0, duration_s, LOOKED_AT)
        self.drive_shapes = found.shapes
        self.identified = pin.Model(robot.model)
        self.identified.armature = np.zeros(robot.nv)  # drives have the rotors
        for k, body in enumerate(found.fit.parameters.bodies.reshape(-1, COORDINATES)):
            self.identified.inertias[k + 1] = pin.Inertia.FromDynamicParameters(body)
        self.data = self.identified.createData()

    def random(self, generator: np.random.Generator) -> Array:
        """Random coefficients of a motion."""
        shape = (self.robot.na, 1 + 2 * HARMONICS)
        coefficients = generator.normal(size=shape)
        coefficients[:, 0] *= 0.5
        return coefficients.ravel()

    def motion(self, coefficients: Array, time: Array) -> tuple[Array, Array, Array]:
        """q, v, a (n, na) at times (n,), s, within the limits of position, velocity and effort.

        Amplitudes are as large as the limits allow; 0 if not even the torques at rest in the middle keep theirs.
        """
        rows = coefficients.reshape(self.robot.na, -1)
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
        """Factor on the amplitudes with which torques keep their limits; 0: they do not after HALVINGS reductions.

        spline: motion about ``middle`` (na,), rad; size (na,): factor that is applied already.
        """
        t = self.sample_times_s
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
        """Torques (n, na), N·m, of the identified robot, friction included, for q, v, a (n, na)."""
        robot = self.robot
        velocities, accelerations = np.zeros((2, len(q), robot.nv))
        velocities[:, robot.actuated], accelerations[:, robot.actuated] = v, a
        configurations = np.tile(robot.neutral(), (len(q), 1))
        robot.put_joints(configurations, q)
        torque = np.array(
            [
                pin.rnea(self.identified, self.data, *each)[robot.actuated]
                for each in zip(configurations, velocities, accelerations)
            ]
        )
        drives = drives_of(Motion(self.sample_times_s, q, v, a, q), self.drive_shapes)
        torque += np.einsum("jnk,jk->nj", drives, self.found.fit.parameters.drives)
        return torque

    def condition(self, coefficients: Array | None) -> float:
        """Condition number of the base-parameter regressor of the log and one motion; None: of the log alone.

        It is the square root of that of the information: the log's plus the motion's, sampled at ``sample_times_s`` and
        scaled to the samples that will be recorded, projected onto the base parameters by ``space``. Infinite for a
        motion without velocity.
        """
        information = self.log_information
        if coefficients is not None:
            q, v, a = self.motion(coefficients, self.sample_times_s)
            if not np.any(v):
                return np.inf
            rows = Rows.of(
                self.robot, Motion(self.sample_times_s, q, v, a, 0.0 * q), self.drive_shapes
            )
            every = self.duration * WRITTEN_HZ / LOOKED_AT
            information = information + every * reduced_information(self.found.fit, rows)
        base = self.space.T @ rigid_information(self.found.fit, information) @ self.space
        values = np.linalg.eigvalsh(base)
        return float(np.sqrt(values[-1] / max(values[0], FLOOR * values[-1])))

    def cost(self, coefficients: Array) -> float:
        """Logarithm of the condition number, at most 50."""
        return min(float(np.log(self.condition(coefficients))), 50.0)
