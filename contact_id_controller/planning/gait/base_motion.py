"""Planned motion of the base in closed form, from a velocity command and the measured base.

Each of the horizontal position (a complex number x + iy) and yaw is the sum of a reference, whose
velocity approaches the commanded one, and an offset that fades: the plan begins with position and velocity
of the last one, and converges to the reference, which runs through the measured position.
"""

from __future__ import annotations

import cmath
import dataclasses
from functools import cached_property
from typing import Any

import numpy as np

from contact_id_controller.planning.gait.path_kernels import (
    fading,
    reference,
    sample_base,
    sample_tilt,
    sway_at,
)
from contact_id_controller.planning.gait.support_motion import COORDINATES, SupportMotion

NO_MOTION = np.empty(0), np.empty((3, 0, COORDINATES))
"""Starts and states of no motion."""


@dataclasses.dataclass(frozen=True)
class Fading:
    """A critically damped decay: e'' = -2 e' / T - e / T^2. Numbers or arrays, real or complex."""

    value: complex | np.ndarray
    rate: complex | np.ndarray
    time_constant_s: float

    def at(self, s: float) -> tuple[float, float, float]:
        """e, e', e'' at time s since the start; s a number or an array that broadcasts."""
        return fading(self.value, self.rate, self.time_constant_s, s)


@dataclasses.dataclass(frozen=True)
class Tilt:
    """Planned height, roll, pitch: nominal values and an offset that fades."""

    nominal: np.ndarray  # (3,)
    offset: Fading  # arrays (3,)

    @property
    def numbers(self) -> np.ndarray:
        """Values as an array (3, 3), for ``path_kernels``."""
        return np.array((self.nominal, self.offset.value, self.offset.rate))

    def at(self, s: float) -> np.ndarray:
        """(height, roll, pitch) and their first two derivatives at a time, s from the start: (3, 3)."""
        out = np.empty((3, 3))
        sample_tilt(self.numbers, self.offset.time_constant_s, s, out)
        return out


@dataclasses.dataclass(frozen=True)
class Sway:
    """Displacement of the base by the motion of a gait and an offset that fades, coordinates as of ``SupportMotion``.

    start_s: at which the offset begins to fade.  cycle_s: beginning of a cycle of the gait.
    """

    start_s: float
    offset: Fading  # arrays (5,)
    motion: SupportMotion | None = None
    cycle_s: float = 0.0

    @classmethod
    def none(cls, start_s: float, time_constant_s: float) -> Sway:
        """Zero displacement."""
        return cls(start_s, Fading(np.zeros(COORDINATES), np.zeros(COORDINATES), time_constant_s))

    def at(self, times_s: np.ndarray, pick_s: np.ndarray) -> np.ndarray:
        """Displacement, rate and acceleration (3, p, 5) at times (p,); pick_s (p,): times for the look-up of phases."""
        rest, past_s = self.offset, (times_s - self.start_s)[:, None]
        sway = np.array(fading(rest.value, rest.rate, rest.time_constant_s, past_s))
        if self.motion is not None:
            sway += self.motion.at(times_s - self.cycle_s, pick_s - self.cycle_s)
        return sway

    def now(self, t_s: float) -> np.ndarray:
        """Displacement and rate (2, 5) at one time: what `at` has there, without arrays of times."""
        rest, motion, past_s = self.offset, self.motion, t_s - self.start_s
        if motion is None:
            return sway_at(past_s, self.fades, rest.time_constant_s, 0.0, *NO_MOTION)
        phase = (t_s - self.cycle_s) % motion.gait.period_s
        return sway_at(
            past_s, self.fades, rest.time_constant_s, phase, motion.starts, motion.states
        )

    @cached_property
    def fades(self) -> np.ndarray:
        """Value and rate (2, 5) of the offset."""
        return np.array([self.offset.value, self.offset.rate])

    def continued(self, start_s: float, motion: SupportMotion | None, cycle_s: float) -> Sway:
        """Sway of a plan that starts at ``start_s`` with displacement and rate of this one."""
        start, fade_s = np.array([start_s]), self.offset.time_constant_s
        new = dataclasses.replace(Sway.none(start_s, fade_s), motion=motion, cycle_s=cycle_s)
        place, rate, _ = (self.at(start, start) - new.at(start, start))[:, 0]
        return dataclasses.replace(new, offset=Fading(place, rate, fade_s))


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

    def reference(self, s: float) -> tuple[float, float, float]:
        """Reference position, velocity, acceleration at time s."""
        return reference(
            self.position, self.rate, self.target_rate, self.turn_rate, self.time_constant_s, s
        )

    def at(self, s: float) -> tuple[float, ...]:
        """Planned position, velocity, acceleration at time s: reference plus offset."""
        reference, offset = self.reference(s), self.offset.at(s)
        return tuple(r + e for r, e in zip(reference, offset))

    @property
    def numbers(self) -> tuple[list[Any], list[float]]:
        """Values for ``path_kernels``: motion, and turn rate with the two time constants."""
        offset = self.offset
        motion = [self.position, self.rate, self.target_rate, offset.value, offset.rate]
        return motion, [self.turn_rate, self.time_constant_s, offset.time_constant_s]

    def continued(
        self,
        s: float,
        error: complex,
        target_rate: complex,
        turn_rate: float,
        max_change: float,
        fade_s: float,
    ) -> Track:
        """Track of a new plan that starts at s with position and velocity of this one.

        `error`: measured minus planned position. `max_change` bounds the change of the reference's
        velocity. `fade_s`: time constant of the offset.
        """
        position, velocity, _ = self.at(s)
        rate = self.reference(s)[1]
        change = target_rate - rate
        if abs(change) > max_change:
            target_rate = rate + change * (max_change / abs(change))
        fading = Fading(-error, velocity - rate, fade_s)
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
    quaternion: np.ndarray  # (p, 4) xyzw, of the rotation


@dataclasses.dataclass(frozen=True)
class BaseMotion:
    """Planned motion of the base from `start_s` on: horizontal, yaw, tilt (height, roll, pitch), with sway about it."""

    start_s: float
    planar: Track
    yaw: Track
    tilt: Tilt
    sway: Sway

    def pose(self, t_s: float) -> tuple[complex, float]:
        """Horizontal position x + iy and yaw at one time, without sway."""
        s = t_s - self.start_s
        return self.planar.at(s)[0], float(np.real(self.yaw.at(s)[0]))

    def velocity(self, t_s: float) -> complex:
        """Horizontal velocity x + iy, m/s, of the reference."""
        return self.planar.reference(t_s - self.start_s)[1]

    def swayed(self, t_s: float) -> tuple[complex, complex]:
        """Horizontal displacement by sway at one time, x + iy, m, world frame, and its rate."""
        yaw, yaw_rate, _ = (complex(part).real for part in self.yaw.at(t_s - self.start_s))
        sway = self.sway.now(t_s)
        place, rate = complex(*sway[0, :2]), complex(*sway[1, :2])
        turn = cmath.exp(1j * yaw)
        return place * turn, (rate + 1j * yaw_rate * place) * turn

    def sample(self, times_s: np.ndarray, pick_s: np.ndarray) -> BaseSamples:
        """Pose, velocity and acceleration at the times (p,).

        pick_s (p,): times for the look-up of phases, see ``knots``.
        """
        count = len(times_s)
        tracks, rates = zip(self.planar.numbers, self.yaw.numbers)
        linear, spins = np.empty((3, count, 3)), np.empty((2, count, 3))
        rotation, quaternion = np.empty((count, 3, 3)), np.empty((count, 4))
        sample_base(
            times_s - self.start_s,
            np.array(tracks, dtype=complex),
            np.array(rates, dtype=float),
            self.tilt.numbers,
            self.tilt.offset.time_constant_s,
            self.sway.at(times_s, pick_s),
            linear,
            rotation,
            spins,
            quaternion,
        )
        return BaseSamples(
            linear[0], rotation, linear[1], spins[0], linear[2], spins[1], quaternion
        )
