"""Stance places and swings of the feet: when each lifts off and where it lands."""

from __future__ import annotations

import cmath
import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.planning.gait.base_motion import BaseMotion, Fading
from contact_id_controller.planning.gait.foot_path import (
    LIFTING,
    STEEPEST,
    FootPath,
    Stance,
    Swing,
    swing_shares,
)
from contact_id_controller.planning.gait.gait_clock import GaitClock
from contact_id_controller.planning.gait.gaits import GRAVITY_M_S2, gait_of
from contact_id_controller.planning.gait.ground import AS_BELIEVED_M, Ground
from contact_id_controller.planning.gait.joint_motion import ROLL_IN_S
from contact_id_controller.planning.gait.measurement import Measured
from contact_id_controller.settings.gait import GaitSettings

AIM_UNTIL = 0.7
"""Share of a swing after which its target is fixed."""

AT_HOME_M = 0.01
"""Without a command a robot keeps stepping until its feet are this close to their nominal places."""

WAY = tuple((np.arange(3, 10) / 12.0).tolist())
"""Shares of a swing at which it must clear obstacles; lift-off and touchdown are outside."""

SINK_M = 0.003
"""Distance below its present height to which a foot without contact is planned to continue, until it touches; the
resulting joint error remains until a later plan."""

SPEED_SHARE = 0.6
"""Share of the foot speed that a leg's joints allow in the standing posture which a swing may use: at its ends legs
are longer, and the joints also lift the foot."""

LIFT_SHARE = 1.15
"""Share of the speed upwards that a leg's joints allow a foot there: folded legs are faster."""

SHORTEST_STANCE = 0.5
"""Least duty factor to which a stance is shortened: a trot then always has two feet on the ground."""

SHORTEST_CYCLE = 0.5
"""Least share of the configured period to which a cycle is shortened: joint accelerations then are four times as
large."""

DIFFERENCE_S = 1e-3
"""Time step of the difference quotient for the speed of the nominal foot places."""

ELSEWHERE = 0.5
"""Share of `tracking_time_constant_s` that is left where level ground is not as believed: base and feet err more."""

LANDING_S, SETTLE_S = 0.02, 0.1
"""Time constant with which the plan goes to where a foot has landed, and how long: 4 % are left then."""

NEAR_M = 0.05
"""Distance from the plan, m, up to which it does."""

PUSHED = 0.5
"""Share of the error of velocity that the nominal places can stop, from which on the base is pushed; walks err by .1."""

LAST_CYCLES = 4
"""Cycles without a command after which the gait stops in any case."""


class LegLimits(NamedTuple):
    """Limits of the feet that keep all legs within joint speed and reach.

    Attributes:
        speed_m_s, lift_speed_m_s: speeds of a foot relative to the base that every leg can give, horizontal and upwards.
        hips: (L,) complex, m, base frame: from below each hip to its foot's nominal place.
        reach_m: (L,) m, horizontal distance from below its hip that each foot can reach.
        below_m: (L,) m, height of each hip above the foot's nominal place.
    """

    speed_m_s: float
    lift_speed_m_s: float
    hips: np.ndarray
    reach_m: np.ndarray
    below_m: np.ndarray

    def half_stride(self, way: complex, rise_m: float = 0.0) -> float:
        """Largest distance, m, that every foot can be from its nominal place, along ``way`` or against it.

        way: direction, complex of length 1, base frame.  rise_m: height above the nominal places.
        """
        along = np.abs(np.real(self.hips * np.conj(way)))
        rest = self.reach_m**2 - np.abs(self.hips) ** 2 + along**2
        rest += rise_m * (2.0 * self.below_m - rise_m)
        return float(np.min(np.sqrt(np.maximum(rest, 0.0)) - along))


class Footsteps:
    """Paths of the feet; each plan extends those of the plan before.

    Args:
        settings: of the gait.
        ground: gives heights of footholds.
        home: (L, 3) nominal places of the feet relative to the base, m, base axes.
        switch_s: switches up to this long after the start of a plan count as past.
        limits: of the legs.
    """

    def __init__(
        self,
        settings: GaitSettings,
        ground: Ground,
        home: np.ndarray,
        switch_s: float,
        limits: LegLimits,
    ):
        self._settings, self._ground = settings, ground
        self._home_m, self._home = home, home[:, 0] + 1j * home[:, 1]
        self._switch_s, self._limits = switch_s, limits
        self.capture_s = math.sqrt(max(float(limits.below_m.mean()), 0.0) / GRAVITY_M_S2)
        """Shift of the footholds per error of base velocity, s, that stops a pushed base: an inverted pendulum."""
        self._missed_s = 0.0
        self._highest_m = settings.step_height_m
        """Height of the highest swing of the last plan."""
        self._gait = gait_of(settings, self._home, settings.gait, limits.below_m.mean())
        self._changed = False
        self.paths: list[FootPath] = []
        self.clock: GaitClock | None = None
        self._idle_since_s: float | None = None
        # When the stance began in which each foot last met the ground; infinite: in none yet.
        self._met_s = np.full(len(self._home), np.inf)
        # Until when each foot is led to where it landed.
        self._settled_s = np.full(len(self._home), -np.inf)

    def begin(self, start_s: float, centers: np.ndarray, contact: np.ndarray | None = None) -> None:
        """Put all feet in stance at centers (L, 3), m, world, and stop the gait.

        contact (L,) bool: measured contact; None: unknown.
        """
        self.clock = self._idle_since_s = None
        self._met_s[:] = np.inf
        self._ground.begin(centers, np.zeros(len(centers), bool) if contact is None else contact)
        self.paths = [
            FootPath(
                [self._settle(foot, start_s, center, center, np.zeros(3), -np.inf, self.tracking_s)]
            )
            for foot, center in enumerate(centers)
        ]

    def standing(self, t_s: float) -> np.ndarray:
        """Feet in stance at a planned time, (L,) bool."""
        return np.array([path.active(t_s).standing for path in self.paths])

    def places(self) -> np.ndarray:
        """Footholds (L, 3), m, world: centre of each foot in its stance, or where its current swing lands."""
        return np.array([path.segments[0].place for path in self.paths])

    def lowest(self) -> np.ndarray:
        """Lowest planned foothold of each foot, (L,) m: height of its centre."""
        return np.array([min(part.place[2] for part in path.segments) for path in self.paths])

    @property
    def stance_s(self) -> float:
        """Duration of a stance, s."""
        return self._gait.stance_s if self.clock is None else self.clock.stance_s

    @property
    def tracking_s(self) -> float:
        """Time constant, s, with which the plan moves to where base and standing feet are."""
        settings = self._settings
        surprised = settings.ground == "level" and self._ground.follows
        return settings.tracking_time_constant_s * (ELSEWHERE if surprised else 1.0)

    def take_gait(self, name: str) -> None:
        """Change to another gait: now if all feet are in stance, otherwise when all swinging feet have landed."""
        below_m = self._limits.below_m.mean()
        gait = gait_of(self._settings, self._home, name, below_m)
        self._changed = gait != self._gait
        self._gait = gait

    def is_pushed(self, slip: complex) -> bool:
        """Whether a base that is off its planned velocity by ``slip``, m/s, base frame, is pushed.

        As an inverted pendulum it would come to rest ``PUSHED`` of the way to the foremost nominal place, or beyond.
        """
        way = self.capture_s * abs(slip) ** 2
        return way > PUSHED * float(np.max(np.real(self._home * np.conj(slip))))

    def descending(self, now_s: float) -> np.ndarray:
        """Feet (L,) bool in a swing that a contact ends."""
        active = [path.active(now_s) for path in self.paths]
        return np.array([isinstance(now, Swing) and self._descends(now, now_s) for now in active])

    def has_met(self, now_s: float, measured: Measured) -> bool:
        """Whether a foot has met the ground in its swing, above or below its foothold."""
        if measured.contact is None:
            return False
        for foot in np.flatnonzero(measured.contact):
            now = self.paths[foot].active(now_s)
            off = abs(measured.centers[foot, 2] - now.place[2]) > AS_BELIEVED_M
            if isinstance(now, Swing) and off and self._descends(now, now_s):
                return True
        return False

    def hurry(self, start_s: float) -> None:
        """Let the feet that lift off next do so at ``start_s`` if all stand then."""
        if self.clock is None or not self.standing(start_s + self._switch_s).all():
            return
        lifts_s = [self.clock.next_swing(foot, start_s)[0] for foot in range(len(self._home))]
        sooner_s = min(lifts_s) - start_s
        self.clock = dataclasses.replace(self.clock, start_s=self.clock.start_s - sooner_s)

    def run_clock(self, start_s: float, moves: bool, base: BaseMotion) -> None:
        """Start the gait if the robot shall move; stop it when all feet stand at their nominal places.

        It also stops after ``LAST_CYCLES`` cycles without a command. base: planned motion, to which cycle and duty
        factor are fitted; start_s: of the plan.
        """
        settings = self._settings
        if moves or settings.step_in_place:
            self._idle_since_s = None
            clock = self.clock
            if clock is None or self._changed:
                landings = [s.end_s for s in self._active(start_s) if isinstance(s, Swing)]
                clock = GaitClock(max([start_s, *landings]), *self._gait)
                self._changed = False
            self.clock = self._fitted(clock, start_s, base)
            changed_s = abs(self.clock.period_s - clock.period_s)
            self._missed_s = max(0.0, self.clock.swing_s - clock.swing_s) + changed_s
        elif self.clock is not None:
            if self._idle_since_s is None:
                self._idle_since_s = start_s
            patience_s = LAST_CYCLES * self._gait.period_s
            late = start_s - self._idle_since_s > patience_s
            all_stand = self.standing(start_s + self._switch_s).all()
            if all_stand and (late or self._at_home(start_s, base)):
                self.clock = None

    def _fitted(self, clock: GaitClock, start_s: float, base: BaseMotion) -> GaitClock:
        """Shorten cycle and stances so that stances fit the legs' reach and swings the joints' speed.

        The phase is kept.
        """
        gait = self._gait
        ways = [self._way_of_feet(t, base) for t in (start_s, start_s + gait.period_s)]
        way = max(ways, key=abs)
        speed, period_s = abs(way), gait.period_s
        if speed > 0.0:
            stance_s = 2.0 * self._limits.half_stride(way / speed) / speed
            shorter_s = max(stance_s / self._duty(speed, period_s), SHORTEST_CYCLE * period_s)
            period_s = min(period_s, shorter_s)
        duty = self._duty(speed, period_s)
        begun = (start_s - clock.start_s) / clock.period_s
        return dataclasses.replace(
            clock, start_s=start_s - begun * period_s, period_s=period_s, duty_factor=duty
        )

    def _duty(self, speed: float, period_s: float) -> float:
        """Duty factor with which feet can swing while the base moves at ``speed``, m/s.

        A foot advances v T in its swing of duration s; with a profile whose largest slope is k its speed relative to
        the base is at most k v T / s - v; where it rises fastest, it rises with k_z h / s, h the last plan's highest.
        """
        limits, profile, way = self._limits, self._settings.swing_profile, speed * period_s
        needed_s = STEEPEST[profile] * way / (SPEED_SHARE * limits.speed_m_s + speed)
        rising, along = LIFTING[profile]
        rise_s = rising * self._highest_m / limits.lift_speed_m_s
        share = LIFT_SHARE + speed / limits.speed_m_s
        needed_s = max(needed_s, (along * way / limits.speed_m_s + rise_s) / share)
        return min(self._gait.duty_factor, max(SHORTEST_STANCE, 1.0 - needed_s / period_s))

    def _way_of_feet(self, t_s: float, base: BaseMotion) -> complex:
        """Velocity (complex, m/s, base frame) of the nominal foot place that moves fastest at a time."""
        (p0, yaw0), (p1, yaw1) = base.pose(t_s), base.pose(t_s + DIFFERENCE_S)
        way = p1 - p0 + self._home * (cmath.exp(1j * yaw1) - cmath.exp(1j * yaw0))
        return complex(way[np.abs(way).argmax()] / DIFFERENCE_S * cmath.exp(-1j * yaw0))

    def extend(
        self,
        now_s: float,
        start_s: float,
        end_s: float,
        base: BaseMotion,
        measured: Measured,
        planned_now: np.ndarray,
        planned: np.ndarray,
        shift: complex,
    ) -> None:
        """Replace the paths by those from `start_s` to `end_s` that continue the last plan's.

        A foot that touches down early begins its stance, one in stance fades to its measured place, soon after its
        touchdown quickly (see ``_settles``), and a swing is aimed at its new foothold until ``AIM_UNTIL`` of its
        duration.

        Args:
            now_s: time of the state.  base: planned motion of the base.
            measured: at `now_s`.
            planned_now, planned: (L, 3) the last plan's centres at `now_s` and at `start_s`; the new paths begin at
                the latter.
            shift: of all footholds, x + iy in m, world.
        """
        paths = []
        for foot, path in enumerate(self.paths):
            active = path.active(start_s + self._switch_s)
            touches = None if measured.contact is None else bool(measured.contact[foot])
            there, before = measured.centers[foot], path.active(now_s)
            error = there - planned_now[foot]
            landed = bool(touches) and isinstance(before, Swing) and self._descends(before, now_s)
            if isinstance(active, Swing) and not landed:
                if start_s < active.begin_s + AIM_UNTIL * (active.end_s - active.begin_s):
                    active = active.aimed_at(
                        start_s, self._foothold(foot, active.end_s, base, shift)
                    )
                segments: list[Stance | Swing] = [active, Stance.after(active)]
            else:
                early = isinstance(active, Swing)
                landed_s = start_s if early else active.landed_s
                rate = active.at(np.array([start_s]))[1][0]
                # An error of a foot that was in the air then does not concern its foothold.
                stood = before is active and not early
                place, fade_s = planned[foot] + error * stood, self.tracking_s
                if early:  # the swing goes on until the plan begins
                    place, error = there, there - planned[foot]
                meets = early or (stood and bool(touches))
                if (meets or landed) and self._settles(foot, start_s, landed_s, base, there, error):
                    place, fade_s, meets = there, LANDING_S, True
                    if early:  # the ground has stopped it
                        planned[foot], rate = there, np.zeros(3)
                if meets and not early:
                    self._met_s[foot] = landed_s
                # One that has met the ground may carry nothing for a while, and stands there still; one that was felt
                # in its swing, and no longer is, goes on down.
                hangs = stood and touches is False and self._met_s[foot] != landed_s
                segments = [
                    self._settle(
                        foot, start_s, planned[foot], place, rate, landed_s, fade_s, hangs, meets
                    )
                ]
            self._add_swings(foot, segments, end_s, base, shift)
            paths.append(FootPath(segments))
        self.paths = paths
        swings = [s for path in paths for s in path.segments if isinstance(s, Swing)]
        self._highest_m = max([self._settings.step_height_m, *(s.height_m for s in swings)])

    def switches(self) -> tuple[list[float], list[float]]:
        """Times of lift-off and touchdown, s; times of other kinks of the paths, s (mid-swing, end of the roll-in)."""
        swings = [s for path in self.paths for s in path.segments if isinstance(s, Swing)]
        return (
            [t for swing in swings for t in (swing.begin_s, swing.end_s)],
            [t for swing in swings for t in (swing.middle_s, swing.end_s + ROLL_IN_S)],
        )

    def _active(self, start_s: float) -> list[Stance | Swing]:
        return [path.active(start_s + self._switch_s) for path in self.paths]

    def _add_swings(self, foot: Any, segments: Any, end_s: float, base: Any, shift: Any) -> None:
        """Append in place this foot's swings by the clock, with the stances after them, up to ``end_s``.

        Args:
            base: motion of the base, from which footholds follow.
            shift: x + iy, m, added to each foothold.
        """
        if self.clock is None:
            return
        settings = self._settings
        missed_s = self._missed_s if len(segments) == 1 else 0.0
        lift_s, land_s = self.clock.next_swing(foot, segments[-1].begin_s, missed_s)
        while lift_s < end_s:
            position, velocity, _ = segments[-1].at(np.array([lift_s]))
            target = self._foothold(foot, land_s, base, shift)
            swing = Swing(
                lift_s,
                land_s,
                position[0],
                velocity[0],
                target,
                self._swing_height(position[0], target),
                settings.swing_profile,
            )
            segments += [swing, Stance.after(swing)]
            lift_s, land_s = self.clock.next_swing(foot, land_s)

    def _foothold(self, foot: int, land_s: float, base: BaseMotion, shift: complex) -> np.ndarray:
        """Foothold (3,), m, of a foot that lands at `land_s`: its nominal place in the middle of its stance."""
        position, yaw = base.pose(land_s + 0.5 * self.stance_s)
        place = position + self._home[foot] * cmath.exp(1j * yaw) + shift
        return self._ground.foothold(foot, place)

    def _settles(
        self,
        foot: int,
        start_s: float,
        landed_s: float,
        base: BaseMotion,
        place: np.ndarray,
        error: np.ndarray,
    ) -> bool:
        """Whether a foot that has touched down fades to its measured place with ``LANDING_S``.

        For ``SETTLE_S``, if it was off the plan, while it is within ``NEAR_M`` of that and legs reach the place until
        the stance ends.

        place, error (3,): its centre and that less the planned one, m, world.
        """
        off = float(np.linalg.norm(error))
        if not self._ground.follows or off > NEAR_M or np.isinf(landed_s):
            return False
        if self._met_s[foot] != landed_s:
            self._settled_s[foot] = start_s + SETTLE_S if off > AS_BELIEVED_M else -np.inf
        if start_s >= self._settled_s[foot]:
            return False
        end_s = np.array([landed_s + self.stance_s])
        at_end = base.sample(end_s, end_s)
        away = (place - at_end.position[0]) @ at_end.rotation[0] - self._home_m[foot]
        way = complex(away[0], away[1])
        far = abs(way)
        return far == 0.0 or far < self._limits.half_stride(way / far, away[2])

    def _swing_height(self, start: np.ndarray, target: np.ndarray) -> float:
        """Height, m, of a swing above the straight line, raised by obstacles up to ``max_step_height_m``."""
        settings = self._settings
        share, bump = swing_shares(settings.swing_profile, WAY)
        height = settings.step_height_m + self._ground.obstacle(start, target, share, bump)
        return min(height, max(settings.step_height_m, settings.max_step_height_m))

    def _descends(self, swing: Swing, now_s: float) -> bool:
        """Whether a contact of this swing counts as touchdown: on ground without a known height, past mid-swing."""
        return self._ground.follows and now_s > swing.middle_s

    def _at_home(self, t_s: float, base: BaseMotion) -> bool:
        position, yaw = base.pose(t_s)
        homes = position + self._home * cmath.exp(1j * yaw)
        places = np.array([path.active(t_s).place for path in self.paths])
        return bool(np.all(np.abs(places[:, 0] + 1j * places[:, 1] - homes) < AT_HOME_M))

    def _settle(
        self,
        foot: int,
        start_s: float,
        center: np.ndarray,
        place: np.ndarray,
        rate: np.ndarray,
        landed_s: float,
        fade_s: float,
        hangs: bool = False,
        touches: bool = False,
    ) -> Stance:
        """Stance that fades from ``center`` (3,), with velocity ``rate`` (3,), to ``place`` (3,) on the ground; world.

        fade_s: time constant.
        hangs: in stance by plan but without contact since touchdown.  touches: contact is measured.
        """
        if not hangs:
            self._ground.feel(foot, place, touches)
        height = self._ground.stands(foot, place)
        if hangs and self._ground.follows:
            height = min(height, place[2] - SINK_M)
        place = np.array([place[0], place[1], height])
        return Stance(start_s, place, Fading(center - place, rate, fade_s), landed_s)
