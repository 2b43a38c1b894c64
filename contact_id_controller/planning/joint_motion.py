"""Joint motion of a plan, from the motion of its base and of its feet in the world."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_id_controller.control.interpolation import segment_coefficients
from contact_id_controller.lcp._compile import kernel
from contact_id_controller.planning.base_motion import BaseSamples, Fading
from contact_id_controller.planning.foot_path import FootPath, Stance
from contact_id_controller.planning.leg_kernels import (
    MAX_STEP_RAD,
    apply,
    apply_transposed,
    bias,
    cross,
    reach,
    safe_inverse,
)
from contact_id_controller.planning.legs import Legs

UNREACHABLE_M = 1e-5
"""Residual from which a foot's target counts as out of reach."""

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
        """Centres of the feet (L, 3) at one time, held at the ends of the plan."""
        t_s = min(max(t_s, self.times_s[0]), self.times_s[-1])
        k = min(int(np.searchsorted(self.times_s, t_s, side="right")), len(self.times_s) - 1)
        two = slice(k - 1, k + 1)
        coefficients = segment_coefficients(
            self.times_s[two],
            self.foot_position[two].reshape(2, -1),
            self.foot_velocity[two].reshape(2, -1),
        )[0]
        u = (t_s - self.times_s[k - 1]) / (self.times_s[k] - self.times_s[k - 1])
        return (u ** np.arange(4) @ coefficients).reshape(self.foot_position.shape[1:])


def plan_joints(
    legs: Legs,
    paths: list[FootPath],
    base: BaseSamples,
    times_s: np.ndarray,
    pick_s: np.ndarray,
    guess: np.ndarray,
    roll_radius_m: float = 0.0,
) -> PlannedMotion:
    """Joint motion that moves base and feet as planned, at the times (p,).

    Each posture is found from the one before, moved on with its velocity and acceleration. With
    x the centre of a foot relative to the base, in base axes: x(q) = x_planned, J qd = xd and
    J qdd = xdd - dJ/dt qd. A standing foot of radius r rolls without slip, so its centre moves
    with r w x n (w: spin of its link, n: upwards) on top of the path; the w in it depends on qd,
    so both are solved for together, and the way rolled is integrated from point to point.

    A target out of reach is replaced by the nearest point within; velocities and accelerations of
    that leg are then differences of its positions.

    Args:
        paths: one per foot; where one lifts off, the start of its swing is moved, in place, to
            where the foot has rolled.
        pick_s: (p,) times that say on which side of a lift-off or touchdown a point lies.
        guess: (na,) joints near the first posture, knees on the wanted side.
        roll_radius_m: radius of the feet; 0: centres of standing feet are at rest.
    """
    count, (number, _) = len(times_s), legs.columns.shape
    (position, velocity, acceleration), stance = _path_samples(paths, times_s, pick_s)
    grip = _grip(paths, times_s, pick_s, stance, roll_radius_m)
    motion = np.zeros((3, count, number, 3))
    roll = np.zeros((3, number, 3))
    residual = np.zeros(number)
    screws, homes = legs.chains(guess)
    lifting = [k for k in range(1, count) if (stance[k - 1] & ~stance[k]).any()]
    for first, end in zip([0, *lifting], [*lifting, count]):
        if first:
            step_s = times_s[first] - times_s[first - 1]
            for leg in np.flatnonzero(stance[first - 1] & ~stance[first]):
                way = roll[0, leg] + (roll[1, leg] + 0.5 * step_s * roll[2, leg]) * step_s
                speed = roll[1, leg] + step_s * roll[2, leg]
                paths[leg].displace(pick_s[first], way, speed)
                later, _ = paths[leg].at(times_s[first:], pick_s[first:])
                for part, values in zip((position, velocity, acceleration), later):
                    part[first:, leg] = values
                roll[:, leg] = 0.0
        _solve_points(
            first, end, times_s, base.position, base.rotation, base.velocity, base.spin,
            base.acceleration, base.spin_rate, position, velocity, acceleration, grip,
            screws, homes, legs.lower, legs.upper, guess[legs.columns], roll, motion, residual,
        )
    for leg in np.flatnonzero(residual > UNREACHABLE_M):
        for order in range(2 if count > 1 else 0):
            motion[order + 1, :, leg] = np.gradient(motion[order, :, leg], times_s, axis=0)
    joints = np.zeros((3, count, legs.robot.na))
    joints[0] = guess
    joints[:, :, legs.columns.ravel()] = motion.reshape(3, count, -1)
    return PlannedMotion(times_s, *joints, position, velocity, stance, residual)


def warm_up(legs: Legs) -> None:
    """Compile the kernels, or load them from their cache, before the first plan."""
    joints = np.zeros(legs.robot.na)
    times, still, level = np.zeros(1), np.zeros((1, 3)), np.eye(3)[None]
    base = BaseSamples(still, level, still, still, still, still)
    paths = [
        FootPath([Stance(0.0, place, Fading(np.zeros(3), np.zeros(3), 1.0), -np.inf)])
        for place in legs.centers(legs.configuration(joints))
    ]
    plan_joints(legs, paths, base, times, times, joints, 0.01)


def _path_samples(paths, times_s, pick_s):
    """Position, velocity, acceleration (p, L, 3) along the paths, and stance (p, L)."""
    motions, standing = zip(*(path.at(times_s, pick_s) for path in paths))
    return [np.stack(part, axis=1) for part in zip(*motions)], np.stack(standing, axis=1)


def _grip(paths, times_s, pick_s, stance, radius_m) -> np.ndarray:
    """Radius with which each foot rolls and its rate of change, (2, p, L): 0 in the air."""
    landed = np.column_stack([path.landed(pick_s) for path in paths])
    u = np.clip((times_s[:, None] - landed) / ROLL_IN_S, 0.0, 1.0)
    grip = radius_m * np.stack([u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u) / ROLL_IN_S])
    return np.where(stance, grip, 0.0)


@kernel
def _solve_points(first, end, times, base_position, base_rotation, base_velocity, base_spin,
                  base_acceleration, base_spin_rate, position, velocity, acceleration, grip,
                  screws, homes, lower, upper, guess, roll, motion, residual):
    """Solve the legs at the points first ... end - 1; see `plan_joints`.

    In and out: feet in the world (p, L, 3), to which rolling is added; roll (3, L, 3), its
    displacement, rate and acceleration at the last point; residual (L,). Out: motion (3, p, L, 3).
    """
    spin, spin_rate, work, rolled = np.empty(3), np.empty(3), np.empty((5, 3)), np.empty((3, 3))
    for k in range(first, end):
        rotation = base_rotation[k]
        apply_transposed(rotation, base_spin[k], spin)
        apply_transposed(rotation, base_spin_rate[k], spin_rate)
        step = times[k] - times[k - 1] if k else 0.0
        for leg in range(screws.shape[0]):
            if k:
                for j in range(3):
                    change = motion[1, k - 1, leg, j] + 0.5 * step * motion[2, k - 1, leg, j]
                    change = min(max(change * step, -MAX_STEP_RAD), MAX_STEP_RAD)
                    motion[0, k, leg, j] = motion[0, k - 1, leg, j] + change
            else:
                motion[0, k, leg] = guess[leg]
            rolled[0] = roll[0, leg] + (roll[1, leg] + 0.5 * step * roll[2, leg]) * step
            error = 0.0
            # The way rolled is extrapolated, then integrated with what was found at its end.
            for attempt in range(2 if grip[0, k, leg] > 0.0 else 1):
                place = position[k, leg] + rolled[0] - base_position[k]
                apply_transposed(rotation, place, work[0])
                apply_transposed(rotation, velocity[k, leg] - base_velocity[k], work[1])
                apply_transposed(rotation, acceleration[k, leg] - base_acceleration[k], work[2])
                error = _solve_leg(
                    work[0], work[1], work[2], rotation[2], spin, spin_rate, grip[0, k, leg],
                    grip[1, k, leg], screws[leg], homes[leg], lower[leg], upper[leg],
                    motion[:, k, leg], work[3:],
                )
                apply(rotation, work[3], rolled[1])
                apply(rotation, work[4], rolled[2])
                if attempt == 0 and grip[0, k, leg] > 0.0:
                    rolled[0] = (roll[0, leg] + 0.5 * step * (roll[1, leg] + rolled[1])
                                 + step * step / 12.0 * (roll[2, leg] - rolled[2]))
            residual[leg] = max(residual[leg], error)
            position[k, leg] += rolled[0]
            velocity[k, leg] += rolled[1]
            acceleration[k, leg] += rolled[2]
            roll[:, leg] = rolled


@kernel
def _solve_leg(arm, drift, push, up, spin, spin_rate, radius, radius_rate, screws, home, lower,
               upper, joints, roll):
    """Solve one leg at one point, all in base axes; returns the residual of its position.

    arm, drift, push: position, velocity, acceleration of the foot relative to the base, the latter
    two without the base's turning; up: normal of the ground; spin, spin_rate: of the base; radius
    with its rate: of rolling; joints (3, 3): first guess in, positions, velocities, accelerations
    out; roll (2, 3): velocity and acceleration of the centre by rolling, out.
    """
    axes, linear, angular = np.empty((3, 6)), np.empty((3, 3)), np.empty((3, 3))
    center, work, turning = np.empty(3), np.empty(3), np.empty(3)
    link_spin, link_rate = np.empty(3), np.empty(3)
    error = reach(
        screws, home, arm, lower, upper, MAX_ITERATIONS, joints[0], axes, center, linear, angular
    )
    inverse = np.empty((3, 3))
    for j in range(3):
        cross(angular[:, j].copy(), up, work)
        linear[:, j] -= radius * work
    safe_inverse(linear, inverse)

    # Velocity: J_linear qd = xd + r (J_angular qd + spin) x n.
    cross(arm, spin, turning)
    relative = drift + turning
    cross(spin, up, work)
    apply(inverse, relative + radius * work, joints[1])
    apply(angular, joints[1], work)
    link_spin[:] = work + spin
    cross(link_spin, up, roll[0])
    roll[0] *= radius
    relative += roll[0]

    # Acceleration: the derivative of the same.
    wanted, linear_bias = push.copy(), np.empty(3)
    bias(axes, center, joints[1], linear_bias, link_rate)
    cross(spin, link_spin, work)
    link_rate += spin_rate + work
    wanted -= linear_bias
    cross(arm, spin_rate, work)
    wanted += work
    cross(turning, spin, work)
    wanted -= work
    cross(relative, spin, work)
    wanted += 2.0 * work
    cross(radius * link_rate + radius_rate * link_spin, up, work)
    apply(inverse, wanted + work, joints[2])
    apply(angular, joints[2], work)
    link_rate += work
    cross(radius * link_rate + radius_rate * link_spin, up, roll[1])
    return error
