"""The path of one foot aloft: quintics that go on from where the last ones are, never from the measured foot.

A foot is above its place before it comes down, and comes down at a set speed until it touches. A new place or time of landing changes the path from now on; position, velocity and
acceleration go on.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.planning.walking.program_kernels import PEAK
from contact_id_controller.plans.goals import FootPath

APEX_SHARE = 0.4
"""Of a swing, after which the foot is highest."""

NEAR_S = 0.02
"""A foot this near to its highest point, or beyond it, is led down from where it is."""

STEEPEST = 2.2
"""Of what is left of the usual rise: the square of its share of time, times this, is the share of the height that a foot
still rises at most. The usual rise is below that everywhere."""

SHORTEST_S = 1e-4
"""Between two points of a path."""

KEPT_S = 0.03
"""A foot this near to the end of its way along the ground keeps its place: any other one asks too much of it."""

LATEST_SHARE = 0.4
"""Of the time until landing in which a foot moves along the ground at least."""

WAITS = 0.2
"""Share of a swing in which a foot that goes up by its lift, or more, does not move along the ground yet, and in which one
that goes down so far does not move along it any more: the edge between both is passed above it."""

LATER = 0.1
"""Share of a swing by which one that goes down so far is highest later."""


@kernel
def _sample(begin_s, duration_s, coefficients, t_s, out):
    """Write position, velocity, acceleration of a ``Quintic`` at t_s into out (3, d); after its end its speed stays."""
    since = t_s - begin_s
    u = min(max(since / duration_s, 0.0), 1.0)
    for k in range(coefficients.shape[1]):
        c = coefficients[:, k]
        x = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))
        v = c[1] + u * (2.0 * c[2] + u * (3.0 * c[3] + u * (4.0 * c[4] + u * 5.0 * c[5])))
        a = 2.0 * c[2] + u * (6.0 * c[3] + u * (12.0 * c[4] + u * 20.0 * c[5]))
        out[0, k], out[1, k], out[2, k] = x, v / duration_s, a / duration_s**2
        if since > duration_s:
            out[0, k] += (since - duration_s) * out[1, k]
            out[2, k] = 0.0


@kernel
def _sample_swing(along, height, t_s, out):
    """Write a foot's place, velocity and acceleration at t_s into out (3, 6); along, height: ``Quintic`` of its columns."""
    level, above = np.empty((3, 5)), np.empty((3, 1))
    _sample(along[0], along[1], along[2], t_s, level)
    _sample(height[0], height[1], height[2], t_s, above)
    for k in range(3):
        for d in range(5):
            out[k, d if d < 2 else d + 1] = level[k, d]
        out[k, 2] = above[k, 0]


@kernel
def _fit(duration_s, motion, goal, speed, out):
    """Write the coefficients c (6, d) of x(t) = sum_i c_i (t / T)^i into ``out``, T = ``duration_s``.

    x, x' and x'' at 0 are motion (3, d), m, m/s and m/s^2; at T: goal (d,), speed along each axis, and 0.
    """
    h = duration_s
    for k in range(goal.shape[0]):
        x, v, a = motion[0, k], motion[1, k] * h, motion[2, k] * h * h
        w, change = speed * h, goal[k] - motion[0, k]
        out[0, k], out[1, k], out[2, k] = x, v, 0.5 * a
        out[3, k] = 10.0 * change - 6.0 * v - 4.0 * w - 1.5 * a
        out[4, k] = -15.0 * change + 8.0 * v + 7.0 * w + 1.5 * a
        out[5, k] = 6.0 * change - 3.0 * (v + w) - 0.5 * a


class Quintic(NamedTuple):
    """x(u) = sum_k coefficients_k u^k with u = (t - begin_s) / duration_s; coefficients (6, d)."""

    begin_s: float
    duration_s: float
    coefficients: np.ndarray

    @property
    def end_s(self) -> float:
        """When it ends."""
        return self.begin_s + self.duration_s

    def at(self, t_s: float) -> np.ndarray:
        """Position, velocity, acceleration (3, d); before the beginning its own, after the end on in its direction."""
        out = np.empty((3, self.coefficients.shape[1]))
        _sample(self.begin_s, self.duration_s, self.coefficients, t_s, out)
        return out


def quintic(
    begin_s: float, motion: np.ndarray, end_s: float, goal: np.ndarray, speed: float
) -> Quintic:
    """From a motion (3, d) to a place (d,) with a speed there, the same along all axes, and no acceleration."""
    coefficients = np.empty((6, len(goal)))
    _fit(end_s - begin_s, np.ascontiguousarray(motion), goal, speed, coefficients)
    return Quintic(begin_s, end_s - begin_s, coefficients)


class SwingShape(NamedTuple):
    """What swings keep to.

    Attributes:
        lift_m: of the highest point above the ground.
        land_m_s: speed downwards at the landing.
        rest_s: before landing, in which the foot does not move along the ground.
    """

    lift_m: float
    land_m_s: float
    rest_s: float


class Footing(NamedTuple):
    """The ground where a foot lands.

    Attributes:
        height_m: at its middle.  slope (2,): of its plane, along x and y of the world.
        over_m: of the highest ground on the way; None: the ground is level.
    """

    height_m: float
    slope: np.ndarray = np.zeros(2)
    over_m: float | None = None


class Swing:
    """One foot's way through the air.

    Args:
        shape: see there.
        lifted_s: when it leaves the ground.  place (3,): of its ground point then, m, world.
        yaw: rad.  lands_s: when it shall land.  slope (2,): of the plane on which it stands.

    Attributes:
        place: see above.  along: of x, y, yaw and slopes.  up, down: of the height, one after the other; up may be None.
        climbs: share of the lift by which the foot goes up, or down (negative), at most 1.
    """

    def __init__(
        self,
        shape: SwingShape,
        lifted_s: float,
        place: np.ndarray,
        yaw: float,
        lands_s: float,
        slope: np.ndarray | None = None,
    ):
        self.shape, self.lifted_s, self.lands_s = shape, lifted_s, lands_s
        self._rises_s = APEX_SHARE * (lands_s - lifted_s)
        self.place, self._edge_m, self.climbs = np.array(place, dtype=float), float(place[2]), 0.0
        end_s = self._stops_s(lifted_s, lands_s)
        rest = np.zeros((3, 5))
        rest[0, :3] = *place[:2], yaw
        if slope is not None:
            rest[0, 3:] = slope
        self.along = quintic(lifted_s, rest, end_s, rest[0], 0.0)
        self.up: Quintic | None = None
        self.down = quintic(lifted_s, np.array([place[2:], [0.0], [0.0]]), lands_s, place[2:], 0.0)
        self._rise(lifted_s, Footing(float(place[2])))

    def aim(
        self, now_s: float, lands_s: float, goal: np.ndarray | None, yaw: float, ground: Footing
    ) -> None:
        """From now on land elsewhere: at goal (2,), m, on that ground, at another time.

        No goal: it keeps its place, as must a foot that is about to land (``keeps_place``).
        """
        self.lands_s = lands_s
        if ground.over_m is not None:
            rise = (ground.height_m - float(self.place[2])) / self.shape.lift_m
            self.climbs = min(max(rise, -1.0), 1.0)
        if goal is not None:
            motion, end_s = self.along.at(now_s), self._stops_s(now_s, lands_s)
            nearest = motion[0, 2] + math.remainder(yaw - motion[0, 2], 2.0 * math.pi)
            begin_s = now_s + self.waits_s(now_s)
            target = np.array([*goal, nearest, *ground.slope])
            self.along = quintic(begin_s, motion, max(end_s, begin_s + NEAR_S), target, 0.0)
        if lands_s - now_s > NEAR_S:
            self._rise(now_s, ground)

    def down_s(self, now_s: float, most: float) -> float:
        """In which a quintic with an acceleration of at most ``most``, m/s^2, comes down to where it lifted, s.

        As in the step program: h + v T / 2 <= (a T^2 - v^2 / a) / PEAK.
        """
        height, speed = self.at(now_s)[:2, 2].tolist()
        height, half = max(height - float(self.place[2]), 0.0), 0.25 * PEAK * speed / most
        square = half * half + (PEAK * height + speed * speed / most) / most
        return half + math.sqrt(square)

    def over_s(self, now_s: float) -> float:
        """In which a foot that climbs lands at the earliest, s: sooner it would not get over the edge by half of its lift.

        What is left of the rise takes the time in which ``STEEPEST`` allows it; then the foot comes down.
        """
        if self.climbs <= 0.0 or self.up is None or not now_s < self.up.end_s:
            return 0.0
        top, since_s = self._edge_m + 0.5 * self.shape.lift_m, now_s - self.lifted_s
        left = max(top - float(self.up.at(now_s)[0, 0]), 0.0) / (top - float(self.place[2]))
        return (since_s + self._rises_s * math.sqrt(left / STEEPEST)) / APEX_SHARE - since_s

    def keeps_place(self, now_s: float, lands_s: float) -> bool:
        """Whether it is too late for another place if it lands at that time."""
        return not lands_s - now_s > self.rests_s() + KEPT_S

    def is_on_its_way(self, now_s: float) -> bool:
        """Whether it is too late to go to another height."""
        return now_s - self.lifted_s > WAITS * (self.lands_s - self.lifted_s)

    def waits_s(self, now_s: float) -> float:
        """How long the foot only rises yet before it moves along the ground."""
        if self.climbs <= 0.0 or self.along.at(now_s)[1].any():
            return 0.0
        return max(
            self.lifted_s + WAITS * self.climbs * (self.lands_s - self.lifted_s) - now_s, 0.0
        )

    def rests_s(self) -> float:
        """How long the foot only comes down before it lands."""
        if self.climbs >= 0.0:
            return self.shape.rest_s
        return self.shape.rest_s - WAITS * self.climbs * (self.lands_s - self.lifted_s)

    @property
    def goal(self) -> np.ndarray:
        """Where it lands (2,), m."""
        return np.asarray(self.along.coefficients[:, :2].sum(axis=0))

    def at(self, t_s: float) -> np.ndarray:
        """x, y, z of the ground point, yaw and slopes; velocity; acceleration: (3, 6)."""
        out = np.empty((3, 6))
        self._fill(t_s, out)
        return out

    def _fill(self, t_s: float, out: np.ndarray) -> None:
        up = self.up
        height = up if up is not None and t_s < up.end_s else self.down
        _sample_swing(tuple(self.along), tuple(height), t_s, out)

    def path(self, now_s: float, early_s: float) -> FootPath:
        """The path from now on, its times from now; early_s: after lift-off, from when on a touch is a landing.

        Between its points each coordinate is part of one quintic, which is what the points are joined by.
        """
        knots = [now_s, self.along.begin_s, self.along.end_s, self.down.end_s, self.lands_s]
        if self.up is not None:
            knots.append(self.up.end_s)
        last_s = max(self.lands_s, now_s + SHORTEST_S)
        taken = [now_s]
        for t_s in sorted(knots):  # those that should be one differ by rounding
            if taken[-1] + SHORTEST_S < t_s < last_s - SHORTEST_S:
                taken.append(t_s)
        times = np.array([*taken, last_s])
        points = np.empty((len(times), 3, 6))
        for t_s, point in zip(times.tolist(), points):
            self._fill(t_s, point)
        if last_s >= self.along.end_s:
            points[-1, 1:, :2] = points[-1, 1:, 3:] = 0.0
        lands = self.lifted_s + early_s - now_s
        return FootPath(times - now_s, points[:, 0], points[:, 1], points[:, 2], lands)

    def _stops_s(self, now_s: float, lands_s: float) -> float:
        """When a motion along the ground that begins now ends."""
        lands_s = max(lands_s, now_s + NEAR_S)
        return max(lands_s - self.rests_s(), now_s + LATEST_SHARE * (lands_s - now_s))

    def _lowered(self, begin_s: float, motion: np.ndarray, ground: np.ndarray) -> Quintic:
        """The way down from a motion (3, 1): the last of it, where a sole may touch early, at the speed of the landing."""
        left_s, speed = self.lands_s - begin_s, self.shape.land_m_s
        slow_s = min(self.shape.rest_s, (1.0 - LATEST_SHARE) * left_s)
        return quintic(begin_s, motion, self.lands_s - slow_s, ground + speed * slow_s, -speed)

    def _rise(self, now_s: float, footing: Footing) -> None:
        """Plan the height from where it is: up to the highest point, if that is still ahead, and down."""
        motion, share = self.at(now_s)[:, 2:3], APEX_SHARE + LATER * max(-self.climbs, 0.0)
        apex_s = self.lifted_s + share * (self.lands_s - self.lifted_s)
        ground = np.array([footing.height_m])
        over = ground if footing.over_m is None else np.array([footing.over_m])
        self._edge_m = float(over[0])
        if now_s < apex_s - NEAR_S:
            share = STEEPEST * ((apex_s - now_s) / self._rises_s) ** 2
            if footing.over_m is None:
                highest = np.maximum(motion[0], ground) + share * self.shape.lift_m
            else:
                highest = motion[0] + share * (over + self.shape.lift_m - float(self.place[2]))
            top = np.minimum(over + self.shape.lift_m, highest)
            self.up = quintic(now_s, motion, apex_s, top, 0.0)
            rest = np.array([top, [0.0], [0.0]])
            self.down = self._lowered(apex_s, rest, ground)
        elif self.up is not None and now_s < self.up.end_s and footing.over_m is not None:
            # It brakes: going on from here as it does would lead it below the edge.
            end_s = self.up.end_s
            self.down = self._lowered(end_s, self.up.at(end_s), ground)
        else:
            self.up = None
            self.down = self._lowered(now_s, motion, ground)
