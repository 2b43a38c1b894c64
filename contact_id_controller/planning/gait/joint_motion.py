"""Joint motion of a plan, from the motion of its base and of its feet in the world."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba.experimental import structref

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.planning.gait.base_motion import (
    BaseMotion,
    BaseSamples,
    Fading,
    Sway,
    Tilt,
    Track,
)
from contact_id_controller.planning.gait.foot_path import FootPath, Stance, swing_shares
from contact_id_controller.planning.gait.leg_kernels import (
    MAX_STEP_RAD,
    add,
    apply,
    apply_transposed,
    bias,
    cross,
    reach,
    safe_inverse,
)
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.planning.gait.path_kernels import centers_at, find_grip, sample_path

UNREACHABLE_M = 1e-5
"""Residual from which a foot's target counts as out of reach."""

FASTEST_RAD_S = 20.0
"""Bound of the joint speed of legs whose target is out of reach, where the robot has none lower."""

MAX_ITERATIONS = 30
"""Iterations for one posture."""

ROLL_IN_S = 0.02
"""Time after touchdown over which a foot begins to roll; it lands with its centre at rest."""


@dataclasses.dataclass(frozen=True)
class PlannedMotion:
    """A plan at p times: joints (p, na); centres of the feet in the world (p, L, 3); SI."""

    times_s: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    foot_position: np.ndarray
    foot_velocity: np.ndarray
    stance: np.ndarray  # (p, L) bool
    residual_m: np.ndarray  # (L,), the worst of the plan

    def centers(self, t_s: float) -> np.ndarray:
        """Centres of the feet (L, 3), m, world, at one time; outside the plan those of its ends."""
        t_s = min(max(t_s, self.times_s[0]), self.times_s[-1])
        out = np.empty(self.foot_position.shape[1:])
        centers_at(self.times_s, self.foot_position, self.foot_velocity, t_s, out)
        return out


def plan_joints(
    legs: Legs,
    paths: list[FootPath],
    base: BaseSamples,
    times_s: np.ndarray,
    pick_s: np.ndarray,
    guess: np.ndarray,
    roll_radius_m: float = 0.0,
) -> PlannedMotion:
    """Compute the joint motion that moves base and feet as planned, at the times (p,).

    Each posture is solved from the one before, extrapolated with its velocity and acceleration. With
    x the centre of a foot relative to the base, in base axes: x(q) = x_planned, J qd = xd and
    J qdd = xdd - dJ/dt qd. A foot of radius r in stance rolls without slip, so its centre moves
    with r w x n (w: angular velocity of its link, n: upwards) on top of the path; the w in it depends on qd,
    so both are solved for together, and the rolled displacement is integrated from point to point.

    A target out of reach is replaced by the nearest point within. The nearest point may jump, so
    speed of that leg is bounded, and its velocities and accelerations are differences of positions.

    Args:
        paths: one per foot; at lift-off the start of its swing is moved, in place, to
            where the foot has rolled.
        pick_s: (p,) times for the look-up of contact modes, see ``knots``.
        guess: (na,) joints near the first posture, knees bent to the desired side.
        roll_radius_m: radius of the feet; 0: centres of feet in stance are at rest.
    """
    count, (number, _) = len(times_s), legs.columns.shape
    position, velocity, acceleration = np.empty((3, count, number, 3))
    stance, landed = np.empty((count, number), dtype=bool), np.empty((count, number))
    whole = position, velocity, acceleration, stance, landed
    for leg, path in enumerate(paths):
        sample_path(path.rows, times_s, pick_s, leg, *whole)
    grip = np.empty((2, count, number))
    find_grip(times_s, stance, landed, roll_radius_m, ROLL_IN_S, grip)
    motion = np.zeros((3, count, number, 3))
    roll = np.zeros((3, number, 3))
    residual = np.zeros(number)
    screws, homes = legs.chains(guess)
    points = _Motion(
        times=times_s,
        base_position=base.position,
        base_rotation=base.rotation,
        base_velocity=base.velocity,
        base_spin=base.spin,
        base_acceleration=base.acceleration,
        base_spin_rate=base.spin_rate,
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        grip=grip,
        screws=screws,
        homes=homes,
        lower=legs.lower,
        upper=legs.upper,
        guess=guess[legs.columns],
        roll=roll,
        joints=motion,
        residual=residual,
    )
    lifting = (np.flatnonzero((stance[:-1] & ~stance[1:]).any(axis=1)) + 1).tolist()
    for first, end in zip([0, *lifting], [*lifting, count]):
        if first:
            step_s = times_s[first] - times_s[first - 1]
            for leg in np.flatnonzero(stance[first - 1] & ~stance[first]).tolist():
                way = roll[0, leg] + (roll[1, leg] + 0.5 * step_s * roll[2, leg]) * step_s
                speed = roll[1, leg] + step_s * roll[2, leg]
                paths[leg].displace(pick_s[first], way, speed)
                later = (part[first:] for part in whole)
                sample_path(paths[leg].rows, times_s[first:], pick_s[first:], leg, *later)
                roll[:, leg] = 0.0
        _solve_points(first, end, points)
    for leg in np.flatnonzero(residual > UNREACHABLE_M).tolist():
        fastest = legs.robot.velocity_limits[legs.columns[leg]]
        _tame(times_s, motion[:, :, leg], np.minimum(fastest, FASTEST_RAD_S))
    joints = np.zeros((3, count, legs.robot.na))
    joints[0] = guess
    joints[:, :, legs.columns.ravel()] = motion.reshape(3, count, -1)
    q, dq, ddq = joints
    return PlannedMotion(times_s, q, dq, ddq, position, velocity, stance, residual)


def _tame(times_s: np.ndarray, motion: np.ndarray, fastest: np.ndarray) -> None:
    """Bound the speed of a leg, motion (3, p, 3), in place, and differentiate its positions again."""
    position = motion[0]
    for k in range(1, len(times_s)):
        bound = fastest * (times_s[k] - times_s[k - 1])
        position[k] = np.clip(position[k], position[k - 1] - bound, position[k - 1] + bound)
    for order in range(2 if len(times_s) > 1 else 0):
        motion[order + 1] = np.gradient(motion[order], times_s, axis=0)


def warm_up(legs: Legs) -> None:
    """Compile the kernels, or load them from their cache, before the first plan."""
    joints, times, rest = np.zeros(legs.robot.na), np.array([0.0, 1.0]), Fading(0.0, 0.0, 1.0)
    still = Track(0.0, 0.0, 0.0, 0.0, 1.0, rest)
    tilt = Tilt(np.zeros(3), Fading(np.zeros(3), np.zeros(3), 1.0))
    tilt.at(0.0)
    swing_shares("cubic", (0.5,))
    motion = BaseMotion(0.0, still, still, tilt, Sway.none(0.0, 1.0))
    motion.swayed(0.0)
    base = motion.sample(times, times)
    paths = [
        FootPath([Stance(0.0, place, Fading(np.zeros(3), np.zeros(3), 1.0), -np.inf)])
        for place in legs.centers(legs.configuration(joints))
    ]
    plan_joints(legs, paths, base, times, times, joints, 0.01).centers(0.5)


class _Motion(Struct):
    """Inputs and results of the legs' inverse kinematics, at p points for L legs; world frame, SI.

    Attributes:
        times: (p,).
        base_position, base_velocity, base_spin, base_acceleration, base_spin_rate: (p, 3).
        base_rotation: (p, 3, 3).
        position, velocity, acceleration: (p, L, 3) of the feet, to which rolling is added.
        grip: (2, p, L) see ``find_grip``.
        screws (L, 3, 6), homes (L, 3): see ``Legs.chains``.  lower, upper, guess: (L, 3) rad.
        roll: (3, L, 3) displacement by rolling, rate and acceleration at the last point solved.
        joints: out, (3, p, L, 3) positions, velocities, accelerations.
        residual: out, (L,) m, the largest of each leg.
    """

    times: np.ndarray
    base_position: np.ndarray
    base_rotation: np.ndarray
    base_velocity: np.ndarray
    base_spin: np.ndarray
    base_acceleration: np.ndarray
    base_spin_rate: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    grip: np.ndarray
    screws: np.ndarray
    homes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    guess: np.ndarray
    roll: np.ndarray
    joints: np.ndarray
    residual: np.ndarray


@structref.register
class _MotionType(StructType):
    """numba's type of `_Motion`."""


_pack = packing(_Motion, _MotionType)


@kernel
def _packed(values):
    """The struct ``_Motion``, from the tuple of its fields' values."""
    return _pack(values)


_Motion.packed = staticmethod(_packed)


@kernel
def _solve_points(first, end, legs):
    """Solve the legs, a `_Motion`, at the points first ... end - 1; see `plan_joints`."""
    # Opened once: within a loop each field would be counted as a reference.
    times, guess, roll, motion = legs.times, legs.guess, legs.roll, legs.joints
    base_position, base_rotation = legs.base_position, legs.base_rotation
    base_velocity = legs.base_velocity
    base_spin, base_acceleration = legs.base_spin, legs.base_acceleration
    base_spin_rate = legs.base_spin_rate
    position, velocity, acceleration = legs.position, legs.velocity, legs.acceleration
    screws, homes, lower, upper = legs.screws, legs.homes, legs.lower, legs.upper
    grip, residual = legs.grip, legs.residual
    spin, spin_rate, work, relative = np.empty(3), np.empty(3), np.empty((5, 3)), np.empty(3)
    rolled = np.empty((3, 3))
    for k in range(first, end):
        rotation = base_rotation[k]
        apply_transposed(rotation, base_spin[k], spin)
        apply_transposed(rotation, base_spin_rate[k], spin_rate)
        step = times[k] - times[k - 1] if k else 0.0
        for leg in range(screws.shape[0]):
            for j in range(3):
                if k == 0:
                    motion[0, k, leg, j] = guess[leg, j]
                    continue
                change = motion[1, k - 1, leg, j] + 0.5 * step * motion[2, k - 1, leg, j]
                change = min(max(change * step, -MAX_STEP_RAD), MAX_STEP_RAD)
                motion[0, k, leg, j] = motion[0, k - 1, leg, j] + change
            for i in range(3):
                rolled[0, i] = (
                    roll[0, leg, i] + (roll[1, leg, i] + 0.5 * step * roll[2, leg, i]) * step
                )
            rolls = grip[0, k, leg] > 0.0
            error = 0.0
            # The displacement by rolling is extrapolated, then integrated with the velocity found at its end.
            for attempt in range(2 if rolls else 1):
                for i in range(3):
                    relative[i] = position[k, leg, i] + rolled[0, i] - base_position[k, i]
                apply_transposed(rotation, relative, work[0])
                for i in range(3):
                    relative[i] = velocity[k, leg, i] - base_velocity[k, i]
                apply_transposed(rotation, relative, work[1])
                for i in range(3):
                    relative[i] = acceleration[k, leg, i] - base_acceleration[k, i]
                apply_transposed(rotation, relative, work[2])
                error = _solve_leg(
                    work,
                    rotation[2],
                    spin,
                    spin_rate,
                    grip[0, k, leg],
                    grip[1, k, leg],
                    screws[leg],
                    homes[leg],
                    lower[leg],
                    upper[leg],
                    motion[:, k, leg],
                )
                apply(rotation, work[3], rolled[1])
                apply(rotation, work[4], rolled[2])
                if rolls and attempt == 0:
                    for i in range(3):
                        rolled[0, i] = (
                            roll[0, leg, i]
                            + 0.5 * step * (roll[1, leg, i] + rolled[1, i])
                            + step * step / 12.0 * (roll[2, leg, i] - rolled[2, i])
                        )
            residual[leg] = max(residual[leg], error)
            add(rolled[0], 1.0, position[k, leg])
            add(rolled[1], 1.0, velocity[k, leg])
            add(rolled[2], 1.0, acceleration[k, leg])
            for order in range(3):
                for i in range(3):
                    roll[order, leg, i] = rolled[order, i]


@kernel
def _solve_leg(foot, up, spin, spin_rate, radius, radius_rate, screws, home, lower, upper, joints):
    """Solve one leg at one point, all in base axes; returns the residual of its position.

    foot (5, 3): in, position, velocity and acceleration relative to the base, the latter two
    without the base's turning; out, in the last two rows, velocity and acceleration of the centre
    by rolling. up: normal of the ground; spin, spin_rate: of the base; radius with its rate: of
    rolling; joints (3, 3): first guess in, positions, velocities, accelerations out.
    """
    axes, linear, angular = np.empty((2, 3, 3)), np.empty((3, 3)), np.empty((3, 3))
    center, work, wanted, inverse = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    turning, link_spin, link_rate = np.empty(3), np.empty(3), np.empty(3)
    error = reach(
        screws,
        home,
        foot[0],
        lower,
        upper,
        MAX_ITERATIONS,
        joints[0],
        axes,
        center,
        linear,
        angular,
    )
    for j in range(3):
        cross(angular[:, j], up, work)
        add(work, -radius, linear[:, j])
    safe_inverse(linear, inverse)

    # Velocity: J_linear qd = xd + r (J_angular qd + spin) x n.
    cross(foot[0], spin, turning)
    add(turning, 1.0, foot[1])
    cross(spin, up, work)
    for i in range(3):
        wanted[i] = foot[1, i] + radius * work[i]
    apply(inverse, wanted, joints[1])
    apply(angular, joints[1], link_spin)
    add(spin, 1.0, link_spin)
    cross(link_spin, up, work)
    for i in range(3):
        foot[3, i] = radius * work[i]
    add(foot[3], 1.0, foot[1])

    # Acceleration: the derivative of the same.
    bias(axes, center, joints[1], wanted, link_rate)
    for i in range(3):
        wanted[i] = foot[2, i] - wanted[i]
    cross(foot[0], spin_rate, work)
    add(work, 1.0, wanted)
    cross(turning, spin, work)
    add(work, -1.0, wanted)
    cross(foot[1], spin, work)
    add(work, 2.0, wanted)
    cross(spin, link_spin, work)
    add(work, 1.0, link_rate)
    add(spin_rate, 1.0, link_rate)
    for i in range(3):
        turning[i] = radius * link_rate[i] + radius_rate * link_spin[i]
    cross(turning, up, work)
    add(work, 1.0, wanted)
    apply(inverse, wanted, joints[2])
    apply(angular, joints[2], work)
    add(work, radius, turning)
    cross(turning, up, foot[4])
    return error
