"""Touching with an arm: contact by measured force, not by the modelled place of a surface.

For a robot with a fixed base, and for those of its contacts that are to press with a commanded force. The force along
the normal n of a contact is measured by the motors' torques and the motion from one state to the next,

    r = M (v - v_before) / h + C v + g - S^T tau        felt = n^T L J M^-1 r,        L = (J M^-1 J^T)^-1 (3, 3),

low-passed; its value in the air, an error of the model, is subtracted. L is the effective mass that a surface meets:
without sliding it receives the impulse -n^T L J v, also if the hand moves along it.

Before touchdown, near the modelled surface and while the plan approaches it, that impulse is bounded by F T, F the
commanded force and T the time of an impact between stiff bodies: the peak stays near F. Speed along the surface gets at
most half of it. If the plan has arrived without contact, the hand continues at this speed, a bounded distance
beyond the surface. A hand that sinks below its plan is bounded, too. Torques at their limits change neither that speed
nor a pressing force as long as others can make up for them (`step_kernels.share_torques`).

In contact the force alone is controlled along the normal; it grows from the measured to the commanded value; the
plan's height is ignored, and the surface may be soft. A bounded integral removes the error due to the model's.
A hand that falls as it presses touches nothing: what it felt is the model's error, such as that of a tool it has not.
A contact that is lost is approached again. One that the plan moves along the surface slides there, as for wiping:
friction against the planned speed is fed forward, with the coefficient told, then the measured one. Where friction is
so large that pushing along the surface jams the arm, mu n . L t > t . L t for its direction t, contact is lost.

Source: De Luca and Mattone, "Sensorless robot collision detection and hybrid force/motion control", ICRA 2005, for the
measured force; Khatib, "A unified approach for motion and force control of robot manipulators", 1987, eq. 51, for L.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.control.contact_estimate import PARTED_M
from contact_id_controller.control.course import Course
from contact_id_controller.control.delay_estimate import learn_arm_delay
from contact_id_controller.control.disturbance import LONGEST_S, unexplained
from contact_id_controller.control.feedback import project
from contact_id_controller.control.period import Period
from contact_id_controller.control.step_kernels import BY_MEASUREMENT, UNKNOWN_GAP_M
from contact_id_controller.geometry import FeetOnGround
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
)
from contact_id_controller.kernels.spatial import link_motion, point_acceleration, point_column
from contact_id_controller.robot import RobotModel

Numbers = NDArray[np.float64]

EARLY_M = 0.011
"""Height above the modelled surface where the bounded speed begins: a centimetre of error, and a margin."""
LATE_M = 0.03
"""Depth below it to which the hand searches for the surface."""
AWARE_M = 0.1
"""Height above it from which the model's error is estimated: a second or two before the touch."""
IMPACT_S = 0.0033
"""Time T of an impact between stiff bodies. MuJoCo's default ground takes 2 ms: the peak is half again the force."""
ALONG = 0.5
"""Share of the impulse that speed along the surface may have."""
BRAKE_M_S2 = 1.0
"""Deceleration to the bounded speed."""
APPROACH_S = 0.005
"""Time constant of the speed of approach: some periods, as that of a planned touchdown."""
PLANNED_M = 0.002
"""A plan that brings the hand this near to the modelled surface is one to touch it."""
RELEASED_M = 0.001
"""A plan this far above the hand, and off the surface, lifts it."""
SINKS = 0.5
"""Share of the bounded speed at which a hand below its plan falls, and does not just bear more than its model."""
LOOK_S = 1.0
"""Preview time for a plan that approaches the surface."""
FELT_S = 0.002
"""Time constant of the measured force: two periods of 1 ms, against noise of the speeds."""
LEARNT_S = 0.1
"""Time constant of the force measured in the air, which is known after twice that time."""
DRIFT = 0.04
"""Share of the commanded force by which it changes near the modelled surface: a soft one's force grows as slowly."""
EVIDENCE = 0.25
"""Share of the commanded force that is a contact when measured, and at which pressing begins. An undetected contact
that is pressed by the approach alone gets IMPACT_S / APPROACH_S of it."""
SURPRISE = 0.5
"""The same more than `EARLY_M` above the modelled surface: a hand that meets something there was faster."""
FALLS_M_S = 0.1
"""A hand that presses and has gained so much speed has nothing below it: what it feels is an error of the model."""
LOST = 0.25
"""Share of the pressing force below which contact is lost."""
BUILD_S = 0.03
"""Time over which the force grows to the commanded one."""
CORRECT_S = 0.1
"""Time constant of the integral of the force error, and its largest share of the commanded force."""
CORRECTION = 0.5
SLIDES_M_S = 0.001
"""Planned speed along the surface from which a contact slides; it is held below."""
FLAT = 0.1
"""Largest planned speed along the normal, as a share of that along the surface: a plan that comes down is no slide."""
FULL_M_S = 0.002
"""Planned speed v over which friction grows, as tanh(v / FULL_M_S)."""
RUBS_S = 0.02
"""Time constant of the measured coefficient of friction. While the hand sticks it is a bound from below only."""
MOVES = 0.5
"""Share of the planned speed along the surface from which a contact does not stick."""
MOST_FRICTION = 2.0
"""Largest coefficient that is taken for one of friction."""
SINGULAR = 1e-6
"""Share of the mobility of a contact that is added to it, for directions in which it does not move."""


@kernel
def _motion(period, i, J, drift):
    """Write the Jacobian J (3, nv) of the velocity of contact i in the world, and drift (3,) = Jdot v, m/s2."""
    settings, axes, point = period.settings, period.jacobian, period.points[i]
    link, supports = settings.links[i], settings.supports
    for k in range(J.shape[1]):
        if supports[link, k]:
            J[0, k], J[1, k], J[2, k] = point_column(axes, k, point)
        else:
            J[0, k] = J[1, k] = J[2, k] = 0.0
    twist, bias, work = np.empty((len(supports), 6)), np.empty((len(supports), 6)), np.empty(3)
    link_motion(axes, period.v, supports, settings.coordinate_joint, twist, bias)
    point_acceleration(twist[link], bias[link], point, drift, work)


@kernel
def _masses(period, J, normal, out, force, moved):
    """Write out (3,) = L n, kg, L = (J M^-1 J^T)^-1 the contact's effective mass, and force (3,) = L J M^-1 r, N.

    That force would have moved the contact as the unexplained r (nv,) did, ``period.rest``.
    J (3, nv); normal n (3,); moved (3, nv): J M^-1. Zero where M is not positive definite.

    Source: Khatib, A unified approach for motion and force control of robot manipulators (1987).
    """
    nv = J.shape[1]
    inertia = np.empty((nv, nv))
    for a in range(nv):
        for b in range(a, nv):
            inertia[a, b] = inertia[b, a] = period.inertia[a, b]
    mobility = np.zeros((3, 3))
    out[:] = force[:] = 0.0
    moved[:] = 0.0
    if not cholesky(inertia, nv, 0.0):
        return
    for d in range(3):
        for k in range(nv):
            moved[d, k] = J[d, k]
        forward_substitute(inertia, nv, moved[d])
        backward_substitute(inertia, nv, moved[d])
        for k in range(nv):
            force[d] += moved[d, k] * period.rest[k]
    trace = 0.0
    for a in range(3):
        out[a] = normal[a]
        for b in range(3):
            for k in range(nv):
                mobility[a, b] += moved[a, k] * J[b, k]
        trace += mobility[a, a]
    for a in range(3):
        mobility[a, a] += SINGULAR * trace
    if cholesky(mobility, 3, 0.0):
        for right in (out, force):
            forward_substitute(mobility, 3, right)
            backward_substitute(mobility, 3, right)


GIVEN = ("_robot", "_feet", "asked", "_friction", "_numbers", "_plan_data")
"""What a controller's own settings give."""


class Touch:
    """The pressing contacts of one controller.

    Args:
        robot: with a fixed base.  feet: its n contacts.  asked: (n,) N, commanded force of each; 0: none.
        friction: (n,) coefficients; infinite: it never slides.

    Attributes:
        touches, slides: (n,) bool.  felt, unmodelled: (n, 3) N, world frame: measured force, and its part in the air.
        more, pressing: (n,) N, along the normals: the force's correction, and the force commanded now.
        rubs: (n,): friction coefficients of contacts that slide, as measured.
    """

    def __init__(
        self, robot: RobotModel, feet: FeetOnGround, asked: Numbers, friction: Numbers
    ) -> None:
        self._robot, self._feet, self.asked = robot, feet, asked.copy()
        self._friction = friction
        self._numbers = [int(i) for i in np.flatnonzero(asked > 0.0)]
        self._plan_data = robot.model.createData()
        n = len(asked)
        self.touches, self.slides, self._approaches = np.zeros((3, n), dtype=bool)
        self.felt, self.unmodelled = np.zeros((n, 3)), np.zeros((n, 3))
        self.more, self.pressing, self.rubs = np.zeros(n), np.zeros(n), np.zeros(n)
        self._gaps, self._aired, self._met, self._entered = *np.zeros((3, n)), np.zeros((n, 3))
        self._arrived, self._stands = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self._masses, self._drifts, self._raw = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(3)
        self._jacobians, self._moved = np.zeros((2, n, 3, robot.nv))
        self.forget()

    def forget(self) -> None:
        """Reset; contacts at the surface at the next state count as established."""
        self._last_s, self._fresh, self._elapsed = -math.inf, True, 0.0
        for numbers in (self.felt, self.unmodelled, self.more, self.pressing, self._aired):
            numbers[:] = 0.0
        self.touches[:] = self._approaches[:] = False
        self.rubs[:] = self._friction

    def copy(self) -> Touch:
        """An independent copy."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(other, name, value.copy())
        return other

    def take_over(self, other: Touch) -> None:
        """Go on as another one of the same contacts; robot, forces asked and friction stay its own."""
        changed = self._friction != other._friction
        for name, value in vars(other.copy()).items():
            if name not in GIVEN:
                setattr(self, name, value)
        self.rubs[changed] = self._friction[changed]

    def look(self, time_s: float, course: Course, period: Period) -> None:
        """Update contact, before all other detection: contacts that touch or approach are none by geometry.

        time_s: of the state.  course: plans.  period: with feet, state and plan of the period.
        """
        elapsed = time_s - self._last_s
        lasted = 0.0 < elapsed <= LONGEST_S
        near = [i for i in self._numbers if self.touches[i] or period.gaps[i] < AWARE_M]
        if lasted and period.settings.lags > 0:
            free = not (period.contact.any() or self.touches.any()) and min(period.gaps) > EARLY_M
            learn_arm_delay(period, elapsed, free)
        period.sensed_before[:] = period.sensed_v
        if near:
            if lasted:
                unexplained(period, elapsed)
            now = self._planned_gaps(course, time_s, period, near)
            later = self._planned_gaps(course, time_s + LOOK_S, period, near)
        for i in self._numbers:
            if i not in near:
                self.touches[i] = self._approaches[i] = False
                self.felt[i] = self.unmodelled[i] = self._aired[i] = 0.0
                continue
            _motion(period, i, self._jacobians[i], self._drifts[i])
            raw, J = self._raw, self._jacobians[i]
            _masses(period, J, period.normals[i], self._masses[i], raw, self._moved[i])
            if lasted:
                self.felt[i] += (raw - self.felt[i]) * elapsed / (elapsed + FELT_S)
            self._decide(i, period, now[i], min(now[i], later[i]), elapsed if lasted else 0.0)
        self._last_s, self._fresh, period.before[:] = time_s, False, period.v

    def _decide(self, i: int, period: Period, now: float, lowest: float, elapsed: float) -> None:
        """Decide whether contact i touches or approaches.

        now, lowest: planned gaps, m, now and the least of now and soon.
        """
        gap, asked = period.gaps[i], self.asked[i]
        wanted, normal = bool(period.planned[i]) and lowest <= PLANNED_M, period.normals[i]
        if now > max(PLANNED_M, gap + RELEASED_M) and self.touches[i]:
            rises = normal @ self._jacobians[i][:, self._robot.actuated] @ period.reference[1]
            wanted = wanted and rises < 0.0
        feels = float(normal @ (self.felt[i] - self.unmodelled[i]))
        by_sensor = bool(period.settings.sources & BY_MEASUREMENT)
        down = -float(normal @ self._jacobians[i] @ period.v)
        if by_sensor:
            begins = lasts = bool(period.measured[i])
        else:
            begins = feels > EVIDENCE * asked
            if gap > EARLY_M:
                begins = self._aired[i] > 2.0 * LEARNT_S and feels > SURPRISE * asked
            lasts = feels > LOST * self.pressing[i]
        if self._fresh and abs(gap) <= PARTED_M:
            begins, self.pressing[i], self.felt[i] = True, asked, asked * normal
        if not wanted:
            self.touches[i] = False
        elif self.touches[i]:
            self.touches[i] = lasts
            if not by_sensor and down > self._met[i] + FALLS_M_S:
                self.touches[i], self._aired[i] = False, math.inf
                self.unmodelled[i] = self._entered[i] = self.felt[i]
        elif begins:
            self.touches[i], self._met[i] = True, max(down, 0.0)
            self.pressing[i] = max(self.pressing[i], EVIDENCE * asked)
            known = float(normal @ self.unmodelled[i])
            self.more[i] = np.clip(known, -CORRECTION * asked, CORRECTION * asked)
        self._stands[i] = period.planned[i]
        # A hand below its plan, too: joints at their limits do not hold it.
        falls = down * float(self._masses[i] @ normal) > SINKS * self._allowed(i)
        sinks = falls and gap < lowest - RELEASED_M
        self._approaches[i] = (wanted or sinks) and not self.touches[i]
        self._arrived[i] = now <= PLANNED_M
        if self.touches[i]:
            self._press(i, feels, elapsed)
        else:
            self.pressing[i] = self.more[i] = 0.0
            if gap > PARTED_M or not begins:  # it does not lie there, unplanned
                self._learn(i, gap, elapsed)
        self._gaps[i], self._elapsed = gap, elapsed
        # The contacts are this module's: see `settle`.
        period.planned[i], period.gaps[i] = False, max(gap, UNKNOWN_GAP_M)

    def _learn(self, i: int, gap: float, elapsed: float) -> None:
        """Learn the force that is measured in the air; near the modelled surface little more of it once it is known."""
        known, most = self.unmodelled[i], DRIFT * self.asked[i]
        known += (self.felt[i] - known) * elapsed / LEARNT_S
        if gap > EARLY_M or self._aired[i] <= 2.0 * LEARNT_S:
            self._aired[i] += elapsed
            self._entered[i] = known
        else:
            change = known - self._entered[i]
            known[:] = self._entered[i] + change * min(
                1.0, most / max(np.linalg.norm(change), most)
            )

    def _press(self, i: int, feels: float, elapsed: float) -> None:
        """Ramp up the force of a contact, then correct it by the measured one."""
        asked, grown = self.asked[i], self.pressing[i] - self.more[i]
        if grown < asked:
            grown = min(asked, grown + asked * elapsed / BUILD_S)
        else:
            most = CORRECTION * asked
            more = self.more[i] + (asked - feels) * elapsed / CORRECT_S
            self.more[i] = min(max(more, -most), most)
        self.pressing[i] = max(grown + self.more[i], EVIDENCE * asked)

    def _allowed(self, i: int) -> float:
        """Largest impulse, N s, at a contact's gap."""
        gap, bound = self._gaps[i], self.asked[i] * IMPACT_S
        if gap > EARLY_M:
            mass = float(np.linalg.norm(self._masses[i]))
            return math.sqrt(bound**2 + 2.0 * BRAKE_M_S2 * (gap - EARLY_M) * mass**2)
        return min(bound, max(gap + LATE_M, 0.0) * bound / (LATE_M - EARLY_M))

    def settle(self, time_s: float, period: Period) -> None:
        """Change the ``acceleration`` (nv,) of a period for touching and approaching contacts, and mark these in it."""
        settings, acceleration = period.settings, period.acceleration
        period.pressed[:] = period.rubbed[:] = period.parting[:] = 0.0
        self.slides[:] = False
        for i in self._numbers:
            period.planned[i] = self._stands[i] or period.planned[i]
            if self.touches[i]:
                period.parting[i] = self._masses[i] @ self._moved[i]
                self.slides[i] = self._slide(i, period)
                if not self.slides[i]:
                    self._hold(i, period)
                period.contact[i] = not self.slides[i]  # the model would hold it
                period.touching[i] = period.landed[i] = True
                if not period.last[i]:
                    period.last[i], period.since_s[i] = True, time_s
                period.pressed[i] = self.pressing[i]
            elif self._approaches[i]:
                period.parting[i] = period.normals[i] @ self._moved[i]
                self._approach(i, period)
        period.desired[:] = acceleration[settings.actuated]

    def _approach(self, i: int, period: Period) -> None:
        """Bound the speeds towards and along the surface; if the plan has arrived, approach at the bound."""
        J, n = self._jacobians[i], period.normals[i]
        speed = J @ period.v
        planned = J @ period.acceleration + self._drifts[i]
        allowed, mass = self._allowed(i), float(self._masses[i] @ n)
        along = mass * n - self._masses[i]  # speed in this direction adds to the impulse
        weight = float(np.linalg.norm(along))
        wanted = planned.copy()
        if weight > SINGULAR * mass:
            way = along / weight
            fastest = ALONG * allowed / weight
            most = (fastest - way @ speed) / APPROACH_S
            wanted += min(most - way @ planned, 0.0) * way
            allowed -= weight * min(max(way @ speed, 0.0), fastest)
        towards = -(allowed / mass + n @ speed) / APPROACH_S - n @ self.unmodelled[i] / mass
        change = towards - n @ planned
        wanted += (change if self._arrived[i] else max(change, 0.0)) * n
        change = wanted - planned
        # Of all three directions: joints that slow one down do not speed up another.
        if change.any():
            self._project(J, change, period)

    def _slide(self, i: int, period: Period) -> bool:
        """Move contact i along the surface if the plan does; write the friction on it.

        Feedback acts by a force F along the surface, n . L a = 0 for its acceleration a: a hand that sticks, or feels
        other friction than is fed forward, presses no more. The planned acceleration has no part along n.
        """
        J, n, planned = self._jacobians[i], period.normals[i], np.zeros((2, self._robot.nv))
        planned[:, self._robot.actuated] = period.reference[1:]
        along = J @ planned[0]
        down = float(n @ along)
        along -= down * n
        speed = float(np.linalg.norm(along))
        slides = self._arrived[i] and FLAT * speed > max(FLAT * SLIDES_M_S, abs(down))
        if not slides or not math.isfinite(self._friction[i]):
            return False
        way, felt, mass = along / speed, self.felt[i] - self.unmodelled[i], self._masses[i]
        if n @ felt > EVIDENCE * self.asked[i]:
            seen = min(max(float(-way @ felt / (n @ felt)), 0.0), MOST_FRICTION)
            if seen > self.rubs[i] or way @ (J @ period.v) > MOVES * speed:
                self.rubs[i] += (seen - self.rubs[i]) * self._elapsed / (self._elapsed + RUBS_S)
        share = math.tanh(speed / FULL_M_S)
        period.rubbed[i] = -share * self.rubs[i] * self.pressing[i] * way
        back = J @ (period.acceleration - planned[1])
        back -= (n @ back) * n
        rise = -float(mass @ back) / float(mass @ n)
        self._project(J, (rise - n @ (self._drifts[i] + J @ period.acceleration)) * n, period)
        return True

    def _hold(self, i: int, period: Period) -> None:
        """Remove acceleration along the normal; speed along the surface fades, as at all contacts in stance."""
        J = self._jacobians[i]
        speed, n, settings = J @ period.v, period.normals[i], period.settings
        closing = -float(n @ speed)
        wanted = -(speed + closing * n) / settings.contact_time_constant_s
        self._project(J, wanted - self._drifts[i] - J @ period.acceleration, period)
        period.gaps[i] = max(closing, 0.0) * settings.period_s

    def _project(self, rows: Numbers, rest: Numbers, period: Period) -> None:
        project(rows.copy(), rest, np.zeros(len(rest)), period.weights, period.acceleration)

    def _planned_gaps(
        self, course: Course, time_s: float, period: Period, near: list[int]
    ) -> dict[int, float]:
        """Gap, m, of contacts ``near`` at the planned joints of a time."""
        robot, data = self._robot, self._plan_data
        q = period.q.copy()
        robot.put_joints(q, course.reference_at(time_s).position)
        pin.forwardKinematics(robot.model, data, q)
        gaps = {}
        for i in near:
            link, normal = int(self._feet.links[i]), period.normals[i]
            center = period.points[i] + self._feet.feet[i].radius_m * normal
            planned = data.oMi[link].act(robot.data.oMi[link].actInv(center))
            gaps[i] = float(period.gaps[i] + normal @ (planned - center))
        return gaps
