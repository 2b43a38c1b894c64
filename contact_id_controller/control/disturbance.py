"""Disturbance observer of the base wrench: pushes, pulls and payloads that the model does not contain.

The motors' torques tau and the motion from one state to the next give the generalized force that they do not explain:

    r = M (v - v_before) / h + C v + g - tau = J^T f + (w, 0)

Contact forces f act on the joints: those of the last solution, with the smallest change that the joint rows
of r require. The remaining base rows, low-passed, are the disturbance w, force and moment on the base:

    w += (r_base - J_base^T f - w) h / T

It is fed forward: the next problem contains it as a force on the base. Under soles the remaining joint rows are
low-passed and fed forward, too: arms and swing legs carry no f, and their masses differ from the model as well. Its slow
part is interpreted as a payload: the downward force is its weight, and the moment gives the place. Summed over states,
M (v - v_before) is momentum; no acceleration is measured or estimated, so an estimator that has taken a load for gravity
counts nothing twice.

While contacts are uncertain - just changed, so that impacts count; none; no solution - and while other torques than the
controller's are sent, w is not updated but fades; the payload is kept.

Source: De Luca and Mattone, "Sensorless robot collision detection and hybrid force/motion control", ICRA 2005, for the
residual; the split between feet and base is this module's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.control.delay_estimate import BETTER, learn_delay
from contact_id_controller.control.motor_estimate import (
    EXPLAINS,
    LATE_S,
    MEANS,
    SURE,
    learn_motors,
    rubbed,
)
from contact_id_controller.control.period import Period
from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
)
from contact_id_controller.kernels.spatial import point_column
from contact_id_controller.robot import RobotModel

OBSERVED_S = 0.1
"""Time constant of the observer. With .05 s, walks with a payload err less by a third; with unmodelled rotors,
friction and delay w then swings half again as far."""

FIRST_S = 0.02
"""Initial time constant, which grows with the time of observation: a load is known before the robot has yielded to
it."""

PAYLOAD_S = 1.0
"""Time constant of the payload estimate: longer than a stride, whose pushes cancel. Under soles that of the whole
wrench where `Balance` controls the base."""

SETTLED_S = 0.004
"""Time after a change of contacts, plus the delay for predicted states, without update: an impact takes some
periods."""

FADES_S = 1.0
"""Time constant with which the wrench fades while contacts are uncertain."""

LONGEST_S = 0.02
"""Largest time between states over which their difference is used."""

NEAR_M = 0.02
"""Gap up to which a foot may carry force, in contact by plan or not: it touches down early, or lifts off late.
Otherwise its impact was taken for a disturbance, and a light robot's walk went five times as far off its plan."""

LEVERLESS = 1e-4
"""Regularisation relative to the mean square lever of joints: forces with a smaller lever are not measured, and kept
as in the solution."""

LEAST_PAYLOAD = 0.01
"""Share of the robot's mass below which a payload's place is not computed: it would be a quotient of noise."""

RATE = 1.0
"""Bound of the estimate's rate under soles, of the greatest force and moment, 1/s. A push is answered by the base's
feedback: fed forward besides, it requires of soles twice what stops it."""

BASE = 6
"""Number of coordinates of a floating base, the first ones."""

NOT_SEEN = math.nan
"""Time of a state that is not observed."""


class Payload(NamedTuple):
    """Payload estimated from the slow part of the disturbance.

    Attributes:
        mass_kg: negative where the robot is lighter than modelled.
        place_m: (3,) centre of mass in the base's frame, the point next to the base's origin on the line of its
            weight; None if the mass is too small.
    """

    mass_kg: float
    place_m: NDArray[np.float64] | None


def bounds(robot: RobotModel, limit: float) -> NDArray[np.float64]:
    """Largest force, N, and moment, N·m, (2,): the share ``limit`` of the robot's weight.

    The moment is that of this force at the radius of gyration about the base's origin, in the neutral configuration.
    """
    inertia = pin.crba(robot.model, robot.model.createData(), robot.neutral())
    gyration_m = math.sqrt(0.5 * np.trace(inertia[3:BASE, 3:BASE]) / robot.mass)
    return limit * robot.weight * np.array([1.0, gyration_m])


def room(robot: RobotModel, contacts: int) -> dict[str, NDArray[np.generic]]:
    """Allocate the arrays of a ``Period`` that only the observer uses, by name."""
    rows, nv = 3 * contacts, robot.nv
    return {
        "before": np.zeros(nv),
        "stood": np.zeros(contacts, dtype=bool),
        "seen_s": np.array([-math.inf, -math.inf, 0.0]),
        "external": np.zeros(nv),
        "load": np.zeros(BASE),
        "rest": np.zeros(nv),
        "axes": np.zeros((rows, nv)),
        "gram": np.zeros((rows, rows)),
        "felt": np.zeros(rows),
        "carried": np.full((contacts, 3), math.nan),
    }


def forget(period: Period) -> None:
    """Reset the observer."""
    period.before[:] = period.external[:] = 0.0
    period.load[:], period.stood[:] = 0.0, False
    period.seen_s[:] = -math.inf, -math.inf, 0.0


@kernel
def unexplained(period, elapsed):
    """Write r into ``rest`` (nv,): generalized force besides the commanded torques and modelled joint friction."""
    M, v, before = period.inertia, period.v, period.before
    out, bias, actuated = period.rest, period.bias, period.settings.actuated
    nv, rate = v.shape[0], 1.0 / elapsed
    for i in range(nv):
        out[i] = bias[i]
    for k in range(nv):  # by columns, as they lie in memory
        column, change = M[:, k], (v[k] - before[k]) * rate
        total = column[k] * change
        for i in range(k):
            total += column[i] * ((v[i] - before[i]) * rate)
            out[i] += column[i] * change
        out[k] += total
    commanded = period.commanded
    for j in range(actuated.shape[0]):
        out[actuated[j]] += rubbed(period, j, v[actuated[j]]) - commanded[j]


@kernel
def _take_foreseen_forces(period, near, which):
    """Subtract from ``rest`` the solution's forces on feet near the ground; returns the number of these feet.

    Their Jacobian's rows are written to ``axes``, their links to near (n,), and their indices to which (n,), in order.
    """
    J, points, forces, gaps = period.jacobian, period.points, period.forces, period.gaps
    supports, links = period.settings.supports, period.settings.links
    axes, rest, feet = period.axes, period.rest, 0
    for i in range(gaps.shape[0]):
        if gaps[i] > NEAR_M:
            continue
        a, b, c = forces[i, 0], forces[i, 1], forces[i, 2]
        row, moves = 3 * feet, supports[links[i]]
        for k in range(rest.shape[0]):
            if moves[k]:
                ax, ay, az = point_column(J, k, points[i])
                axes[row, k], axes[row + 1, k], axes[row + 2, k] = ax, ay, az
                rest[k] -= ax * a + ay * b + az * c
        near[feet], which[feet] = links[i], i
        feet += 1
    return feet


@kernel
def _take_felt_forces(period, near, feet):
    """Subtract from ``rest`` the smallest additional forces on the first ``feet`` feet that explain its joint rows."""
    axes, gram, felt, rest = period.axes, period.gram, period.felt, period.rest
    supports, actuated = period.settings.supports, period.settings.actuated
    rows, trace = 3 * feet, 0.0
    for a in range(rows):
        felt[a] = 0.0
        for b in range(a + 1):
            gram[a, b] = 0.0
    for i in range(feet):
        row = 3 * i
        for j in range(actuated.shape[0]):
            k = actuated[j]
            if not supports[near[i], k]:
                continue
            for d in range(3):
                felt[row + d] += axes[row + d, k] * rest[k]
            for other in range(i + 1):
                if supports[near[other], k]:
                    for d in range(3):
                        for e in range(3):
                            gram[row + d, 3 * other + e] += (
                                axes[row + d, k] * axes[3 * other + e, k]
                            )
        for d in range(3):
            trace += gram[row + d, row + d]
    for a in range(rows):
        gram[a, a] += LEVERLESS * trace / rows
    if rows == 0 or not cholesky(gram, rows, 0.0):
        return
    forward_substitute(gram, rows, felt)
    backward_substitute(gram, rows, felt)
    for a in range(rows):
        for k in range(rest.shape[0]):
            if k < BASE or supports[near[a // 3], k]:
                rest[k] -= axes[a, k] * felt[a]


@bare_kernel
def _bounded(wrench, bounds):
    """Shorten force and moment of a wrench (6+,) in place to ``bounds`` (2,); returns False if they are not finite."""
    for part in range(2):
        a, b, c = wrench[3 * part], wrench[3 * part + 1], wrench[3 * part + 2]
        size = np.sqrt(a * a + b * b + c * c)
        if not size < np.inf:
            return False
        if size > bounds[part]:
            for i in range(3 * part, 3 * part + 3):
                wrench[i] *= bounds[part] / size
    return True


@kernel
def _in_doubt(time_s, period):
    """Whether contacts are missing or changed recently, or other torques were sent.

    Stores contacts for the next period.
    """
    contact, stood, none = period.contact, period.stood, True
    for i in range(stood.shape[0]):
        if contact[i] != stood[i]:
            period.seen_s[1] = time_s
        stood[i] = contact[i]
        none = none and not contact[i]
    decided, commanded, others = period.decided, period.commanded, False
    for j in range(decided.shape[0]):
        others = others or commanded[j] != decided[j]
    return none or others or not time_s - period.seen_s[1] >= SETTLED_S + period.delay[1]


@kernel
def _learn(period, elapsed, observed_s):
    """Low-pass ``rest`` (nv,) into ``external`` with a time constant, s; elapsed: since the last state, s.

    Under soles the joint rows are fed forward, too; all rows change in step, or a torque between two links would turn
    the base. For round feet the motors are estimated instead. Where `Balance` controls the base, its rows alone count,
    over `PAYLOAD_S`: with the joints' G1 landed at .6 m/s in a driven walk.
    """
    external, load, rest, settings = period.external, period.load, period.rest, period.settings
    share, count, most = elapsed / observed_s, BASE, settings.bounds[1]
    if settings.soles and settings.balanced:
        share = elapsed / PAYLOAD_S
    elif settings.soles:
        count = rest.shape[0]
        for part in range(2):
            square = 0.0
            for i in range(3 * part, 3 * part + 3):
                square += (rest[i] - external[i]) ** 2
            if square > 0.0:
                share = min(share, RATE * settings.bounds[part] * elapsed / np.sqrt(square))
    for k in range(count):
        wanted = rest[k] if k < BASE else min(max(rest[k], -most), most)
        external[k] += (wanted - external[k]) * share
    for i in range(BASE):
        load[i] += (external[i] - load[i]) * elapsed / PAYLOAD_S


@kernel
def observe(time_s, period):
    """Update the estimates from the state of ``period`` and the torques and forces of the period before.

    To be called before those of this period are written.

    Args:
        time_s: of the state; negative infinity: this period has no solution.
        period: ``Period``; its ``external``, ``load`` and ``seen_s`` are changed.
    """
    external, rest = period.external, period.rest
    elapsed = time_s - period.seen_s[0]
    period.seen_s[0] = time_s
    fill(period.carried, np.nan)
    lasted = 0.0 < elapsed <= LONGEST_S
    if lasted:
        if not period.settings.estimates:  # of this state, before the solution
            unexplained(period, elapsed)
        if not period.settings.soles:  # a sole on its edge is neither in the air nor held
            learn_motors(period, elapsed)
            if period.settings.lags > 0:
                learn_delay(period, elapsed, LATE_S, 0.0, MEANS, BETTER, EXPLAINS, SURE)
    doubt = _in_doubt(time_s, period) or not lasted
    if not doubt:
        count = period.gaps.shape[0]
        near, which = np.empty(count, np.int64), np.empty(count, np.int64)
        feet = _take_foreseen_forces(period, near, which)
        _take_felt_forces(period, near, feet)
        for k in range(feet):
            i = which[k]
            for d in range(3):
                period.carried[i, d] = period.forces[i, d] + period.felt[3 * k + d]
        doubt = not _bounded(rest, period.settings.bounds)
    if not doubt:
        period.seen_s[2] += elapsed
    assign(period.before, period.v)
    assign(period.sensed_before, period.sensed_v)
    if not doubt:
        _learn(period, elapsed, min(FIRST_S + period.seen_s[2], OBSERVED_S))
        return
    for k in range(external.shape[0]):
        external[k] -= external[k] * period.settings.period_s / FADES_S


class Disturbance:
    """Observed disturbance of a robot with a floating base.

    Args:
        robot: the controller's model.
        period: of the controller.

    Attributes:
        wrench: (6,) fed forward: force, N, and moment about the base's origin, N·m, in the base's frame; a view.
        bounds: (2,) largest force, N, and moment, N·m.  squares: (2,) of the values beyond which it is rejected.
    """

    def __init__(self, robot: RobotModel, period: Period) -> None:
        gravity = np.array(robot.model.gravity.linear)
        self._gravity = float(np.linalg.norm(gravity))
        self._down = gravity / (self._gravity or 1.0)
        self._least_kg = LEAST_PAYLOAD * robot.mass
        self._period, self.bounds = period, period.settings.bounds
        self.wrench = period.external[:BASE]
        # Shortened and averaged, it may be a rounding beyond.
        self.squares = np.square(1.001 * self.bounds)

    @property
    def payload(self) -> Payload:
        """Payload estimated from the slow part of the wrench at the last state."""
        x, y, z, w = self._period.q[3:7].tolist()
        down = pin.Quaternion(w, x, y, z).toRotationMatrix().T @ self._down
        force, moment = self._period.load[:3], self._period.load[3:]
        if not self._gravity:
            return Payload(0.0, None)
        mass = float(force @ down) / self._gravity
        if abs(mass) < self._least_kg:
            return Payload(mass, None)
        return Payload(mass, np.cross(down, moment) / (mass * self._gravity))

    def figures(self) -> dict[str, str]:
        """Names and values for the diagnostics."""
        mass_kg, place = self.payload
        return {
            "disturbance force (N)": _words(self.wrench[:3]),
            "disturbance moment (N m)": _words(self.wrench[3:]),
            "payload (kg)": f"{mass_kg:.3g}",
            "payload at (m)": "unknown" if place is None else _words(place),
        }

    def forget(self) -> None:
        """Reset the observer."""
        forget(self._period)


def _words(numbers: NDArray[np.float64]) -> str:
    return ", ".join(f"{each:.3g}" for each in numbers.tolist())
