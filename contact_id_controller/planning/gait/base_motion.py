"""Planned motion of the base in closed form, from a velocity command and where the base is.

Each of the horizontal position (a complex number x + iy) and yaw is the sum of a reference, whose
velocity approaches the commanded one, and an offset that fades: the plan begins where and as fast
as the last one was, and ends on the reference, which runs through where the robot really is.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_id_controller.planning.gait.balance import Tilt


@dataclasses.dataclass(frozen=True)
class Fading:
    """A critically damped decay: e'' = -2 e' / T - e / T^2. Numbers or arrays, real or complex."""

    value: complex | np.ndarray
    rate: complex | np.ndarray
    time_constant_s: float

    def at(self, s):
        """e, e', e'' at time s since the start; s a number or an array that broadcasts."""
        time = self.time_constant_s
        slope = self.rate + self.value / time
        decay = np.exp(-s / time)
        return (
            (self.value + slope * s) * decay,
            (self.rate - slope * s / time) * decay,
            (slope * s / time - slope - self.rate) / time * decay,
        )


@dataclasses.dataclass(frozen=True)
class Track:
    """One complex (or real) coordinate of the base; times s since the plan's start.

    Reference velocity: target e^(i turn s) + (rate - target) e^(-s / T), so that a command given
    in a turning base frame is followed exactly.
    """

    position: complex
    rate: complex
    target_rate: complex
    turn_rate: float
    time_constant_s: float
    offset: Fading

    def reference(self, s):
        """Reference position, velocity, acceleration."""
        time, turn = self.time_constant_s, self.turn_rate
        missing = (self.rate - self.target_rate) * np.exp(-s / time)
        turning, arc = self.target_rate + 0.0 * s, self.target_rate * s
        if turn:
            turning = self.target_rate * np.exp(1j * turn * s)
            # Its integral, accurate for small angles too.
            arc = arc * np.exp(0.5j * turn * s) * np.sinc(turn * s / (2.0 * np.pi))
        travel = arc + (self.rate - self.target_rate - missing) * time
        return self.position + travel, turning + missing, 1j * turn * turning - missing / time

    def at(self, s):
        """Planned position, velocity, acceleration."""
        reference, offset = self.reference(s), self.offset.at(s)
        return tuple(r + e for r, e in zip(reference, offset))

    def continued(
        self, s: float, error: complex, target_rate: complex, turn_rate: float, max_change: float
    ) -> Track:
        """The track of a new plan that starts at s, from position and velocity of this one.

        `error`: measured minus planned position. `max_change` bounds the change of the reference's
        velocity.
        """
        position, velocity, _ = self.at(s)
        rate = self.reference(s)[1]
        change = target_rate - rate
        if abs(change) > max_change:
            target_rate = rate + change * (max_change / abs(change))
        fading = Fading(-error, velocity - rate, self.offset.time_constant_s)
        return Track(position + error, rate, target_rate, turn_rate, self.time_constant_s, fading)


@dataclasses.dataclass(frozen=True)
class BaseSamples:
    """Base motion at p times, world frame: m, rad, s; rotations from base to world."""

    position: np.ndarray  # (p, 3)
    rotation: np.ndarray  # (p, 3, 3)
    velocity: np.ndarray  # (p, 3)
    spin: np.ndarray  # (p, 3)
    acceleration: np.ndarray  # (p, 3)
    spin_rate: np.ndarray  # (p, 3)


@dataclasses.dataclass(frozen=True)
class BaseMotion:
    """Planned motion of the base from `start_s` on: horizontal, yaw, and height, roll, pitch."""

    start_s: float
    planar: Track
    yaw: Track
    tilt: Tilt

    def pose(self, t_s: float) -> tuple[complex, float]:
        """Horizontal position x + iy and yaw at one time."""
        s = t_s - self.start_s
        return self.planar.at(s)[0], float(np.real(self.yaw.at(s)[0]))

    def velocity(self, t_s: float) -> complex:
        """Horizontal velocity of the reference."""
        return self.planar.reference(t_s - self.start_s)[1]

    def sample(self, times_s: np.ndarray) -> BaseSamples:
        """Pose, velocity and acceleration at the times (p,)."""
        s = np.asarray(times_s) - self.start_s
        planar = self.planar.at(s)
        yaw = [np.real(part) for part in self.yaw.at(s)]
        tilt = self.tilt.at(s)
        linear = [
            np.column_stack([part.real, part.imag, lift[:, 0]]) for part, lift in zip(planar, tilt)
        ]
        angles = [np.column_stack([lean[:, 1:], turn]) for lean, turn in zip(tilt, yaw)]
        rotation, spin, spin_rate = euler_motion(*angles)
        return BaseSamples(linear[0], rotation, linear[1], spin, linear[2], spin_rate)


def euler_motion(angles: np.ndarray, rates: np.ndarray, rates2: np.ndarray):
    """Rotation, angular velocity and acceleration in the world frame from roll, pitch, yaw.

    R = Rz(yaw) Ry(pitch) Rx(roll); inputs (p, 3) with their first two time derivatives; results
    (p, 3, 3), (p, 3), (p, 3).
    """
    roll, pitch, yaw = angles.T
    cr, sr, cp, sp, cy, sy = (f(a) for a in (roll, pitch, yaw) for f in (np.cos, np.sin))
    zero, one = np.zeros_like(roll), np.ones_like(roll)
    rotation = np.stack(
        [
            np.stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr], axis=1),
            np.stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr], axis=1),
            np.stack([-sp, cp * sr, cp * cr], axis=1),
        ],
        axis=1,
    )
    # Axes of the three rates in the world, and how the first two turn.
    axes = np.stack(
        [
            np.stack([cy * cp, sy * cp, -sp], axis=1),
            np.stack([-sy, cy, zero], axis=1),
            np.stack([zero, zero, one], axis=1),
        ],
        axis=1,
    )
    d_pitch, d_yaw = rates[:, 1], rates[:, 2]
    turning = np.stack(
        [
            np.stack(
                [
                    -sy * cp * d_yaw - cy * sp * d_pitch,
                    cy * cp * d_yaw - sy * sp * d_pitch,
                    -cp * d_pitch,
                ],
                axis=1,
            ),
            np.stack([-cy * d_yaw, -sy * d_yaw, zero], axis=1),
            np.zeros_like(rates),
        ],
        axis=1,
    )
    spin = np.einsum("pk,pki->pi", rates, axes)
    spin_rate = np.einsum("pk,pki->pi", rates2, axes) + np.einsum("pk,pki->pi", rates, turning)
    return rotation, spin, spin_rate
