"""Walks where a velocity says, and steps where a push makes it: goals of the whole body, a hundred times a second.

Kept from one plan to the next: the sequence of contacts, the last foothold, the paths of the feet aloft, the velocity
asked for and its trim. Everything else is measured.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence as Ordered
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.geometry import HeightField, SphereFoot
from contact_id_controller.planning.gait.command import VelocityCommand, WaypointFollower
from contact_id_controller.planning.gait.ground import refuse_ground
from contact_id_controller.planning.gait.measurement import check_state
from contact_id_controller.planning.walking.areas import Area, Areas, brought_into, spot
from contact_id_controller.planning.walking.body import Body
from contact_id_controller.planning.walking.crossing import Crossing
from contact_id_controller.planning.walking.feet import Footing, Quintic, Swing, SwingShape, quintic
from contact_id_controller.planning.walking.program import (
    Landing,
    landing_within,
    next_landing,
    reaches,
)
from contact_id_controller.planning.walking.program_kernels import aside
from contact_id_controller.planning.walking.sequence import Event, Patience, Sequence
from contact_id_controller.planning.walking.step_rules import Rules, Situation, Weights
from contact_id_controller.planning.walking.support import region_of
from contact_id_controller.plans.goals import ComGoal, Heading, Posture, TaskGoals
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.gait import MAX_YAW_RATE_RAD_S, STEP, GaitSettings

CANDIDATES = 7
"""Times of landing that are tried, beside the usual one and that of the last plan."""

EARLIEST, LATEST = 0.45, 1.5
"""Shares of the usual swing between which a landing may lie. Earlier ones hold more of a push, but G1's legs do not follow
from .4 on."""

FIXED, FIXED_S = 0.2, 0.06
"""Before a landing its time is not changed any more: share of the usual swing, and least time. Of TALOS' feet that had to
land .07 s sooner, .06 s before, one came down along the ground with .67 m/s."""

FIRST_SHIFTS = (0.005, 0.05, 0.1, 0.2, 0.3)
"""Durations of the first shift of weight that are tried, s."""

EARLY = 0.35
"""Share of the usual swing from which on a touch is a landing."""

LATE_S = 0.1
"""A foot that has not touched so long after its time counts as standing."""

LAND_M_S = 0.1
"""Speed downwards at the planned landing."""

HORIZON_S = 0.3
"""For which a plan is good when no other comes."""

AT_HOME_M = 0.03
"""A walk ends when the feet are this near to their usual places."""

SLOW = 1e-3
"""A velocity below this, m/s or rad/s, is none."""

TRIM_GAIN, MOST_TRIM, BELIEVED = 0.2, 0.1, 0.15
"""Of what the mean velocity of two steps lacks: share that is added, largest sum, largest miss that counts, m/s."""

TURN_RATIO = 2.0
"""Yaw acceleration, rad/s^2, per m/s^2."""

ASTRAY_M = 0.3
"""Of a foot from its path: ten times what a push moves it by."""

MOST_AHEAD_RAD = 0.4
"""Of the heading that is asked before that of the base: one that does not turn is not wound up."""

BEHIND = 0.15
"""Share of a swing by which a foot, which begins at rest, lets the base turn on before it follows."""

HELD = 0.5
"""Share of a sole in which the centre of pressure accelerates the walk: the rest is for balance."""

COMMANDED = 0.8
"""Share of a step's room that a command may take: the rest is for balance."""

ASIDE = 0.8
"""Of that, share of the room aside: only a push needs all that legs reach."""

WARM_UP_S, WARM_UP_PERIOD_S = 2.0, 0.02
"""Longest time until a first foot lifts, and between the plans until then."""

SETTLED_S = 0.05
"""The height of the centre of mass has no other goal so shortly before a landing."""

NOWHERE = np.zeros((0, 2)), np.zeros(0)
ANYWHERE = np.full((2, 2), np.nan)


class WalkingPlanner:
    """Plans of one robot; ``plan`` continues the last one.

    Args:
        robot: with a floating base.  contacts: round feet, and the corners of flat ones.
        posture: (na,) in which it stands and which it keeps otherwise.
        gait: of four feet.  lift_m: of feet aloft.  acceleration_m_s2: with which a velocity is reached.
        swing_s: usual duration of a swing; 0: what follows from the height.
        surface: height map of the ground; None: it is level.  search_m: how far from its usual place a foothold may be
            moved to a flat area of the map; 0: a sole's length.  most_step_m: highest step up, down, and over what lies
            on the way of a foot.

    Raises:
        ConfigurationError: see ``Body``; also a posture of another size, or a map under more feet than two.
    """

    lead_s = 0.0
    """A plan begins at its state: goals lead from the measured motion on."""

    parts = ("contacts", "goals")
    """Of its plans, the one that is waited for last."""

    is_due = None
    """Nobody looks whether a plan is due sooner: each begins at its state, and they follow each other quickly."""

    def __init__(
        self,
        robot: RobotModel,
        contacts: Ordered[SphereFoot],
        posture: np.ndarray,
        *,
        gait: str = "trot",
        lift_m: float = 0.06,
        acceleration_m_s2: float = 0.5,
        swing_s: float = 0.0,
        surface: HeightField | None = None,
        search_m: float = 0.0,
        most_step_m: float = 0.1,
    ):
        if posture.shape != (robot.na,):
            raise ConfigurationError(
                f"parameter 'posture' has {posture.size} values, must have one for each of the {robot.na} joints"
            )
        self.body = body = Body(robot, contacts, posture, gait)
        rules, self.weights = body.rules, Weights()
        if swing_s > 0.0:
            rules = rules._replace(
                swing_s=swing_s,
                double_s=rules.double_s * swing_s / rules.swing_s,
                settle_s=rules.settle_s * swing_s / rules.swing_s,
            )
        self.rules = rules
        self._most_m_s2 = self._fastest(acceleration_m_s2)
        self._room = self._in_room()
        self._fixed_s = max(FIXED * rules.swing_s, FIXED_S)
        self._shares_s = rules.swing_s * np.linspace(EARLIEST, LATEST, CANDIDATES)
        self._inside = np.tile(body.half_sizes - body.margin_m, 2)
        self.rests = body.flat or len(body.frames) > 2
        """Whether it can stand still: on two points no robot does."""
        if surface is not None and len(body.frames) != 2:
            raise ConfigurationError(
                f"parameter 'ground' is 'map', must be 'level' with gait {STEP} of {len(body.frames)} feet"
            )
        search_m = search_m or 2.0 * float(body.half_sizes[0])
        self._areas = None if surface is None else Areas(surface, body.half_sizes, search_m)
        self._most_step_m = most_step_m
        self._shape = SwingShape(lift_m, LAND_M_S, rules.settle_s)
        self._asked = VelocityCommand(turns=True)
        self._follower: WaypointFollower | None = None
        self.settings: GaitSettings | None = None
        self.reset()

    @classmethod
    def of(
        cls, robot: RobotModel, settings: GaitSettings, surface: HeightField | None = None
    ) -> WalkingPlanner:
        """The planner of a gait's settings.

        Raises:
            ConfigurationError: see above, and ``refuse_ground``.
        """
        refuse_ground(settings, surface)
        planner = cls(
            robot,
            settings.contacts,
            np.array(settings.posture, dtype=float),
            lift_m=settings.step_height_m,
            acceleration_m_s2=settings.max_acceleration_m_s2,
            surface=surface,
            search_m=settings.foothold_search_m,
            most_step_m=settings.max_step_height_m,
        )
        planner.settings = settings
        planner._follower = WaypointFollower(
            settings.waypoints(), settings.speed_m_s, settings.heading, MAX_YAW_RATE_RAD_S
        )
        return planner

    def set_gait(self, name: str) -> None:
        """Refuse every other gait: feet step as the motion requires.

        Raises:
            ConfigurationError: always, but for the gait that it has.
        """
        if name != STEP:
            raise ConfigurationError(f"no gait {name!r}: this planner has only {STEP!r}")

    def reset(self) -> None:
        """Forget all plans: the next one begins with all feet on the ground."""
        rules = self.rules
        patience = Patience(rules.double_s, rules.swing_s, EARLY * rules.swing_s, LATE_S)
        self.sequence = Sequence(patience)
        self.velocity, self._trim, self.heading = np.zeros(3), np.zeros(2), 0.0
        self._last_s: float | None = None
        self._half_s = 0.0
        self._bounded: tuple[float, ...] = ()
        self.landing: Landing | None = None
        self._swings: dict[int, Swing] = {}
        self._landed_s = np.zeros(len(self.body.frames))
        self._marks: list[tuple[float, np.ndarray, np.ndarray, float]] = []
        self._anchor = np.zeros(2)
        self._area: Area | None = None
        self._owed = np.zeros(2)
        self._clear_m, self._held = np.full((2, 2), np.inf), np.zeros(2, dtype=bool)
        self._blocked, self._looks = False, False
        self._slopes = np.zeros((len(self.body.frames), 2))
        self._level: Quintic | None = None

    def warm_up(self) -> None:
        """Compile what a walk needs: the first step of a robot that stands in its posture, of which nothing is kept."""
        asked, follower = self._asked, self._follower
        self.set_velocity((10.0 * SLOW, 0.0))
        robot, time_s = self.body.robot, 0.0
        q, v = robot.configuration([0, 0, 0, 0, 0, 0, 1], self.body.posture), np.zeros(robot.nv)
        while not self._swings and time_s < WARM_UP_S:
            self.plan(time_s, q, v)
            time_s += WARM_UP_PERIOD_S
        self._asked, self._follower = asked, follower
        self.reset()

    def set_velocity(
        self, linear: Any = (0.0, 0.0), yaw_rate: float = 0.0, frame: str = "base"
    ) -> None:
        """Walk with a velocity (x, y) in m/s, in the `base` or `world` frame, and a yaw rate, until the next call.

        Raises:
            ConfigurationError: a frame of another name, or numbers that are not finite.
        """
        self._asked, self._follower = VelocityCommand.of(linear, yaw_rate, frame), None

    def plan(
        self, time_s: float, q: np.ndarray, v: np.ndarray, contact: np.ndarray | None = None
    ) -> Plan:
        """The plan that starts with the state (time, q, v).

        contact: (L,) bool, which feet touch the ground, in the order of ``body.frames``; where it is not known they
        touch when they are planned to.

        Raises:
            StateError: a state of wrong size or not finite.
        """
        check_state(self.body.robot, len(self.body.frames), time_s, q, v, contact)
        self.body.measure(q, v)
        try:
            return self._continue(time_s, contact)
        except ContactIdError:
            self.reset()  # what was planned so far may hold the same numbers
            raise

    def _continue(self, time_s: float, contact: np.ndarray | None) -> Plan:
        """The plan that continues the last one, from the measured state."""
        restarted = self._last_s is None or not 0.0 <= time_s - self._last_s < HORIZON_S
        if restarted or self._astray(time_s):
            restarted = True
            self._begin(time_s)
        body, sequence = self.body, self.sequence
        elapsed_s = time_s - (self._last_s or time_s)
        self._follow_command(elapsed_s)
        self._last_s, self._half_s = time_s, 0.5 * elapsed_s
        touches = self._touches(time_s, contact)
        if sequence.standing:
            self._maybe_begin(time_s)
        aloft = 1 - sequence.carry
        event = sequence.advance(
            time_s,
            touches,
            self._may_rest(touches),
            sequence.both and body.stretched(body.groups[aloft]),
            self._half_s,
        )
        if event is Event.LANDED:
            self._land(time_s)
            if sequence.patience.double_s == 0.0:
                event = sequence.advance(time_s, np.array([True, True]), False, False, 0.0)
        if event is Event.LIFTED:
            self._lift(time_s)
        elif event is Event.RESTED:
            self.landing, self._anchor = None, body.group_places().mean(axis=0)
        if not sequence.standing:
            if sequence.both and self._outside() > 0.0:
                self._choose_again(time_s)
            self._step(time_s)
        return self._output(time_s, restarted)

    # Measurements and commands

    def _begin(self, time_s: float) -> None:
        """Begin with all feet where they stand, on the slopes of the map."""
        self.reset()
        self.heading = self.body.heading
        self._anchor = self.body.group_places().mean(axis=0)
        self.sequence.begun_s = time_s
        if self._areas is not None:
            for k, (place, yaw) in enumerate(zip(self.body.places, self.body.yaws.tolist())):
                for area in self._areas.near(place[:2], yaw, True)[:1]:
                    self._slopes[k] = area.slope

    def _astray(self, time_s: float) -> bool:
        """Whether a foot aloft is far from its path: the robot, or what it calls its place, was moved."""
        return any(
            not math.dist(swing.at(time_s)[0, :3].tolist(), self.body.places[k].tolist()) < ASTRAY_M
            for k, swing in self._swings.items()
        )

    def _follow_command(self, elapsed_s: float) -> None:
        """Bring the velocity nearer to the commanded one, and turn."""
        if self._follower is not None and len(self._follower.points):
            self._asked = self._follower.command(complex(*self.body.com[:2]), self.heading)
        commanded = self._commanded()
        asked = np.array([*self._in_reach(commanded), self._turn()])
        less = np.abs(asked[:2] - commanded).max() > SLOW
        self._bounded = tuple(asked[:2].tolist()) if less else ()
        asked[:2] = self._where_ground_is(asked[:2])
        most = self._most_m_s2 * elapsed_s
        self.velocity += np.minimum(np.maximum(asked - self.velocity, -most), most)
        if not self.sequence.standing:
            ahead = self.heading + self.velocity[2] * elapsed_s - self.body.heading
            ahead = math.remainder(ahead, 2.0 * math.pi)
            self.heading = self.body.heading + min(max(ahead, -MOST_AHEAD_RAD), MOST_AHEAD_RAD)

    def _turn(self) -> float:
        """The commanded yaw rate, rad/s, or the largest."""
        return min(max(self._asked.yaw_rate, -MAX_YAW_RATE_RAD_S), MAX_YAW_RATE_RAD_S)

    def _commanded(self) -> np.ndarray:
        """The commanded velocity (2,), m/s, heading frame."""
        way = self._asked.velocity
        if not self._asked.turns:
            way *= cmath.exp(-1j * self.heading)
        return np.array([way.real, way.imag])

    def _where_ground_is(self, velocity: np.ndarray) -> np.ndarray:
        """What of a velocity (2,), m/s, heading frame, leads in a step no further than ground on which feet may stand."""
        if self._areas is None:
            return velocity
        most = self._clear_m.min(axis=0) / (self.rules.swing_s + self.rules.double_s)
        return np.minimum(np.maximum(velocity, -most), most)

    def _look_ahead(self) -> None:
        """Find how far the ground continues along the commanded velocity, forwards and aside, for the swing foot."""
        if self._areas is None:
            return
        aloft, longest_m = 1 - self.sequence.carry, COMMANDED * float(self.rules.reach[0])
        crossing, turn, commanded = self._crossing(), _rotation(self.heading), self._commanded()
        for d, speed in enumerate(commanded.tolist()):
            clear_m = np.inf
            if abs(speed) > SLOW:
                clear_m = crossing.clear_m(math.copysign(1.0, speed) * turn[:, d], longest_m)
            self._clear_m[aloft, d] = clear_m
        step_m = np.abs(commanded) * (self.rules.swing_s + self.rules.double_s)
        needed_m = np.maximum(step_m, 2.0 * AT_HOME_M) if self._blocked else AT_HOME_M
        self._blocked = bool((self._clear_m < needed_m).any())

    def _unreachable(self) -> tuple[str, ...]:
        """The feet without ground to step on: reported until there is some for a whole step again."""
        return self.body.frames if self._blocked or self._held.any() else ()

    def _fastest(self, most: float) -> np.ndarray:
        """Acceleration (3,) of the velocity, m/s^2, rad/s^2: at most what the centre of pressure holds in half of a sole."""
        rules = self.rules
        held = HELD * rules.rate**2 * rules.sole
        held = np.minimum(np.where(held > 0.0, held, np.inf), most)
        return np.array([*held, most * TURN_RATIO])

    def _in_room(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Axes of a step, along and aside, as columns (2, 2), and least and largest velocity (2,) along them, m/s."""
        rules, (x, y) = self.rules, aside(self.rules.offset)
        wide = ASIDE * 0.5 * (rules.width[1] - rules.width[0])
        room = np.array([[rules.reach[1], wide], [rules.reach[0], wide]])
        room *= COMMANDED / (rules.swing_s + rules.double_s)
        return np.array([[y, x], [-x, y]]), -room[0], room[1]

    def _in_reach(self, velocity: np.ndarray) -> np.ndarray:
        """The velocity (2,), m/s, heading frame, or what steps hold of it."""
        turn, least, most = self._room
        return np.asarray(turn @ np.minimum(np.maximum(velocity @ turn, least), most))

    def _stepped(self) -> np.ndarray:
        """Velocity (2,) that steps are planned for, m/s, heading frame."""
        return self._in_reach(self.velocity[:2] + self._trim)

    def _touches(self, time_s: float, contact: np.ndarray | None) -> np.ndarray:
        """Which groups touch, all their feet, (2,) bool."""
        if contact is None:
            planned = self.sequence.stands()
            early = time_s < self.sequence.ends_s - self._half_s
            return planned if early else np.array([True, True])
        return np.array([all(contact[k] for k in group) for group in self.body.groups])

    @property
    def _moves(self) -> bool:
        asked = max(abs(self._asked.velocity), abs(self._asked.yaw_rate))
        return bool(asked > SLOW or np.abs(self.velocity).max() > SLOW)

    def _xi(self) -> np.ndarray:
        return self.body.com[:2] + self.body.speed[:2] / self.rules.rate

    def _region(self, groups: Ordered[int]) -> tuple[np.ndarray, np.ndarray]:
        """Where the centre of pressure may be planned on these groups.

        On one sole: in a rectangle of its size along the heading, as the steps' boxes are. In its own, turned by a
        degree, a millimetre aside, which grows with the divergent component, would be bought with all of its length.
        """
        body, feet = self.body, [k for group in groups for k in self.body.groups[group]]
        if len(feet) == 1 and body.flat:
            c, s = math.cos(-self.heading), math.sin(-self.heading)
            normals = np.array([[c, -s], [s, c], [-c, s], [-s, -c]])
            return normals, normals @ body.places[feet[0], :2] + self._inside
        normals, bounds = region_of(body.points(feet), body.margin_m)
        return normals, bounds

    def _outside(self) -> float:
        """How far xi is outside of what stands, m."""
        normals, bounds = self._region((0, 1))
        return float((normals @ self._xi() - bounds).max())

    # Events

    def _maybe_begin(self, time_s: float) -> None:
        """Begin to step if a velocity is commanded, or the robot would fall."""
        if self.rests and not self._moves and self._outside() < 0.0:
            return
        self._clear_m[:], self._held[:], self._blocked = np.inf, False, False
        carry, after_s = self._first_step()
        self.sequence.begin(time_s, carry, after_s)
        self._marks.clear()

    def _choose_again(self, time_s: float) -> None:
        """Of a robot pushed beyond its feet in a shift the other group may step: one that has just landed goes out again."""
        carry, after_s = self._first_step()
        if carry != self.sequence.carry:
            self.sequence.change(time_s, carry, after_s)
            self.landing = None
            self._marks.clear()

    def _first_step(self) -> tuple[int, float]:
        """Which group shall carry first, and after how long the other one lifts: the cheapest.

        Who would fall swings as fast as feet can. In the usual time only the far foot, nearly in place, would seem to
        be quick enough, and nothing stops a fall to the side of the near one.
        """
        usual = self._widened()
        best = (math.inf, 0, usual.double_s)
        times = np.array(FIRST_SHIFTS if usual.double_s else FIRST_SHIFTS[:1])
        for share in (1.0, EARLIEST) if self._outside() > 0.0 else (1.0,):
            rules = usual._replace(swing_s=share * usual.swing_s)
            for carry in (0, 1):
                situation = self._situation(carry, True, 0.0, 0.0)
                landing = next_landing(rules, self.weights, situation, times)
                if landing is not None and landing.cost < best[0]:
                    best = (landing.cost, carry, landing.after_s)
        return best[1], best[2]

    def _may_rest(self, touches: np.ndarray) -> bool:
        if not self.rests or self._moves or not self.sequence.both or not touches.all():
            return False
        places = self.body.group_places()
        apart = _rotation(-self.heading) @ (places[0] - places[1]) - self.rules.offset
        return bool(np.abs(apart).max() < AT_HOME_M and self._outside() < -0.5 * self.body.margin_m)

    def _land(self, time_s: float) -> None:
        """End the swing: the feet stand, and what the walk lacks is learnt."""
        self._landed_s[list(self._swings)] = time_s
        for k, swing in self._swings.items():
            self._slopes[k] = swing.along.at(time_s)[0, 3:]
        self._swings.clear()
        self.landing = None
        self._learn(time_s)
        self._owe()

    def _owe(self) -> None:
        """How far (2,), m, world, steps are behind the velocity as areas end: at most by a step, and along it."""
        if self._areas is None:
            return
        step = _rotation(self.heading) @ self.velocity[:2]
        step *= self.rules.swing_s + self.rules.double_s
        length = float(np.linalg.norm(step))
        way = step / length if length > 0.0 else step
        feet, aside_m = self.body.group_places(), _rotation(self.heading) @ self.rules.offset
        lands = self.sequence.carry
        made = feet[lands] - feet[1 - lands] + (-aside_m if lands == 0 else aside_m)
        behind = float(way @ (self._owed + step - made))
        self._owed = min(max(behind, 0.0), length) * way

    def _learn(self, time_s: float) -> None:
        """Learn the error of the pendulum model: mean velocity over two steps, less the commanded one."""
        self._marks.append(
            (time_s, self.body.com[:2].copy(), self.velocity[:2].copy(), self.heading)
        )
        if len(self._marks) < 3:
            return
        (begin_s, begin, _, first), _, (end_s, end, asked, last) = self._marks[-3:]
        del self._marks[:-2]
        half = 0.5 * math.remainder(last - first, 2.0 * math.pi)
        straight = 1.0 / float(np.sinc(half / math.pi))  # of the way along the arc
        mean = straight * (end - begin) / (end_s - begin_s)
        missed = asked - _rotation(half - last) @ mean
        if np.abs(missed).max() < BELIEVED:
            self._trim = np.clip(self._trim + TRIM_GAIN * missed, -MOST_TRIM, MOST_TRIM)

    def _lift(self, time_s: float) -> None:
        """Begin the swing of the group that does not carry."""
        body, sequence = self.body, self.sequence
        self.landing = None
        for k in body.groups[1 - sequence.carry]:
            self._swings[k] = Swing(
                self._shape,
                time_s,
                body.places[k],
                float(body.yaws[k]),
                sequence.ends_s,
                self._slopes[k],
            )
        self._looks = True

    # Steps

    def _situation(self, carry: int, both: bool, nominal_s: float, left_s: float) -> Situation:
        """Where everything is, for the program."""
        body, aloft, previous = self.body, ANYWHERE, ANYWHERE[0]
        normals, bounds = self._region((0, 1) if both else (carry,))
        if not both and self._swings:
            motions = [swing.at(self._last_s or 0.0)[:2, :2] for swing in self._swings.values()]
            aloft = motions[0] if len(motions) == 1 else np.array(motions).mean(axis=0)
            if self.landing is not None:
                previous = self.landing.footholds[0]
        wanted = _rotation(self.heading) @ self._stepped()
        return Situation(
            com=body.com[:2].copy(),
            speed=body.speed[:2].copy(),
            feet=body.group_places(),
            carry=carry,
            both=both,
            heading=self.heading,
            turn=float(self.velocity[2]),
            velocity=wanted,
            hull_normals=normals,
            hull_bounds=bounds,
            area_normals=NOWHERE[0],
            area_bounds=NOWHERE[1],
            aloft=aloft,
            previous=previous,
            nominal_s=nominal_s,
            left_s=left_s,
        )

    def _widened(self) -> Rules:
        """The rules with steps wide enough to go aside: the inner one keeps room for balance."""
        rules = self.rules
        if not rules.offset.any():
            return rules
        size = math.sqrt(rules.offset @ rules.offset)
        way = np.array(aside(rules.offset))
        room = abs(float(way @ self._stepped())) * (rules.swing_s + rules.double_s) / COMMANDED
        wide = min(rules.width[0] + room, rules.width[1] - room)
        return rules._replace(offset=way * wide) if wide > size else rules

    def _step(self, time_s: float) -> None:
        """Solve for the next event, and lead the feet aloft there."""
        sequence, rules = self.sequence, self._widened()
        left_s = max(sequence.ends_s - time_s, 1e-3)
        if sequence.both:
            situation = self._situation(sequence.carry, True, left_s, left_s)
            times = np.array([left_s, 0.5 * left_s, min(left_s, 1e-3)])
            # With the last plan of a shift the load must get there before the other group lifts.
            if left_s <= max(3.0 * self._half_s, 2e-3):
                normals, bounds = self._region((sequence.carry,))
                situation = situation._replace(hull_normals=normals, hull_bounds=bounds)
                times = times[:1]
        else:
            elapsed_s = time_s - sequence.lifted_s
            nominal_s = max(rules.swing_s - elapsed_s, 0.0)
            situation = self._situation(sequence.carry, False, nominal_s, left_s)
            times = np.array([left_s])
            if left_s >= self._fixed_s:
                range_s = (self._shares_s - elapsed_s).tolist()
                soon_s = max(self._fixed_s, range_s[0], self._down_s(time_s))
                tried = [left_s, nominal_s, soon_s, *range_s]
                over_s = max((swing.over_s(time_s) for swing in self._swings.values()), default=0.0)
                tried = [max(t, over_s) for t in tried if t >= self._fixed_s]
                times = np.array(list(dict.fromkeys(tried)))
        landing = self._land_on_ground(rules, situation, times)
        if not sequence.both and left_s >= FIXED_S:
            landing = self._set_down(time_s, rules, situation, landing)
        if landing is None:
            return
        self.landing = landing
        late = not sequence.both and time_s > sequence.ends_s
        if not late:
            sequence.ends_s = time_s + landing.after_s
        if not sequence.both:
            self._aim(time_s, landing)

    def _set_down(
        self, time_s: float, rules: Rules, situation: Situation, landing: Landing | None
    ) -> Landing | None:
        """The landing, or a cheaper one that puts the feet aloft down near where they are, before the earliest swing ends.

        For a robot that falls away from them, beyond the feet that carry: these have to step next. On a map feet keep
        their area.
        """
        down_s = np.array([max(FIXED_S, self._down_s(time_s))])
        soon = down_s[0] < EARLIEST * rules.swing_s - (time_s - self.sequence.lifted_s)
        if not soon or not self.body.flat or self._areas is not None:
            return landing
        way = _rotation(self.heading) @ np.array(aside(rules.offset))
        away = float(way @ (self._xi() - situation.feet[situation.carry]))
        if (away if situation.carry == 0 else -away) < 0.0:
            return landing
        still = rules._replace(foot_speed=0.0)
        near = next_landing(still, self.weights, situation, down_s)
        cheaper = near is not None and (landing is None or near.cost < landing.cost)
        return near if cheaper else landing

    def _down_s(self, time_s: float) -> float:
        """In which the feet aloft can be on the ground, s."""
        most = self.rules.foot_acceleration
        return max((swing.down_s(time_s, most) for swing in self._swings.values()), default=0.0)

    def _land_on_ground(
        self, rules: Rules, situation: Situation, times: np.ndarray
    ) -> Landing | None:
        """The cheapest landing; with a map, on the area of the foothold of level ground, or the cheapest near it.

        Areas count as if that foothold were ahead by what steps are behind the velocity: else a walk could stay before an
        edge from which the next area is as far as the last place. A foot that is on its way keeps its area. If no area is
        feasible, the foot goes to the nearest place of its own: beside it there is an edge.
        """
        free, time_s = next_landing(rules, self.weights, situation, times), self._last_s or 0.0
        aloft = self._swings.values()
        if self._areas is None or free is None:
            return free
        foothold = 1 if situation.both else 0
        place, few = free.footholds[foothold], np.array([*times[:2], free.after_s])
        areas = [self._area] if self._area is not None else []
        if not areas or not any(swing.is_on_its_way(time_s) for swing in aloft):
            areas = self._areas_about(place)
            self._area = areas[0]
        elif self._looks:  # now, as no areas are looked for any more: not both in one plan
            self._look_ahead()
            self._looks = False
        if areas[0].holds(place):
            return free
        best, least = None, math.inf
        for legs in reaches(rules):
            for area in areas:
                bounded = situation._replace(area_normals=area.normals, area_bounds=area.bounds)
                landing = landing_within(legs, rules, self.weights, bounded, few)
                if landing is None:
                    continue
                ahead = 2.0 * self.weights.step * float(self._owed @ landing.footholds[foothold])
                if best is None or landing.cost - ahead < least:
                    best, least, self._area = landing, landing.cost - ahead, area
            if best is not None:
                break
        if best is None and self._area is not None:
            footholds = free.footholds.copy()
            footholds[foothold] = self._area.nearest(place)
            best = free._replace(footholds=footholds)
        return best

    def _areas_about(self, place: np.ndarray) -> list[Area]:
        """The areas on which the next foot may land about a place (2,), m, or before it; if there is none it stays."""
        crossing, aloft = self._crossing(), 1 - self.sequence.carry
        areas = crossing.near(place, True) or crossing.near(place) or crossing.before(place)
        self._held[aloft] = not areas
        if areas:
            return areas
        foot, begin = self.body.groups[aloft][0], crossing.begin
        return [spot(begin, crossing.areas.height_at(begin), self._slopes[foot])]

    def _crossing(self) -> Crossing:
        """The next step of the foot that does not carry, on the map."""
        assert self._areas is not None
        body, carry = self.body, self.sequence.carry
        foot, stands = body.groups[1 - carry][0], body.places[body.groups[carry][0], :2]
        swing = self._swings.get(foot)
        begin = body.places[foot] if swing is None else swing.place
        aside_m = _rotation(self.heading) @ self.rules.offset
        return Crossing(
            self._areas,
            self._most_step_m,
            begin[:2].copy(),
            stands + aside_m if carry == 1 else stands - aside_m,
            self._areas.height_at(stands),
            self._landing_yaw(),
        )

    def _landing_yaw(self) -> float:
        """Of the base in the middle of the stance of the foot aloft, rad."""
        half_s = 0.5 * self.rules.swing_s + self.rules.double_s
        return self.heading + half_s * 0.5 * (float(self.velocity[2]) + self._turn())

    def _toes_out(self, foot: int) -> float:
        """Yaw of a foot before that of the base in the middle of its stance, rad, which its leg holds from begin to end."""
        body, rules = self.body, self.rules
        fastest = max(abs(float(self.velocity[2])), abs(self._turn()))
        half = fastest * ((0.5 + BEHIND) * rules.swing_s + rules.double_s)
        least, most = body.turns[foot].tolist()
        least, most = least + half, most - half
        toes = float(body.toes[foot])
        return 0.5 * (least + most) if least > most else min(max(toes, least), most)

    def _aim(self, time_s: float, landing: Landing) -> None:
        """Lead the feet aloft to the new foothold."""
        body, sequence = self.body, self.sequence
        if time_s > sequence.ends_s:
            return
        turn, yaw = _rotation(self.heading), self._landing_yaw()
        for k, swing in self._swings.items():
            kept = swing.keeps_place(time_s, sequence.ends_s)
            goal = swing.goal if kept else landing.footholds[0] + turn @ body.member[k]
            footing = self._footing(swing, goal)
            toes = yaw + self._toes_out(k)
            swing.aim(time_s, sequence.ends_s, None if kept else goal, toes, footing)

    def _footing(self, swing: Swing, goal: np.ndarray) -> Footing:
        """The ground where a foot lands at goal (2,), m."""
        if self._areas is None or self._area is None:
            return Footing(self.body.ground_below(self.body.groups[self.sequence.carry]))
        begin = swing.place
        higher = self._map_error()
        highest = higher + self._areas.highest(begin[:2], goal, self.heading)
        footing = Footing(higher + self._area.height_at(goal), self._area.slope)
        ends = max(float(begin[2]), footing.height_m)
        over = min(max(ends, highest), ends + self._most_step_m)
        return footing._replace(over_m=over)

    def _is_off_map(self) -> bool:
        """Whether the next foothold lies outside the map."""
        if self._areas is None or self.landing is None:
            return False
        return not self._areas.covers(self.landing.footholds[1 if self.sequence.both else 0])

    def _map_error(self) -> float:
        """By how much the foot that carries is above the map, m: what odometry has wrong."""
        place = self.body.places[self.body.groups[self.sequence.carry][0]]
        return float(place[2]) - (self._areas.height_at(place[:2]) if self._areas else 0.0)

    def _lead_height(self, time_s: float) -> Quintic:
        """Lead the ground, m, from which the height of the centre of mass counts to `Body.ground_in_reach` at the landing."""
        body, sequence = self.body, self.sequence
        here = float(body.places[body.groups[sequence.carry][0], 2])
        places, end_s = body.places.copy(), time_s + self.rules.swing_s
        begun = np.array([[body.mean_height(places)], [0.0], [0.0]])
        level = self._level or quintic(time_s, begun, end_s, begun[0], 0.0)
        if not sequence.standing:
            lands = body.groups[1 - sequence.carry][0]
            places[lands, 2] = here
            if self._area is not None and self.landing is not None:
                place = self.landing.footholds[1 if sequence.both else 0]
                places[lands] = *place, self._map_error() + self._area.height_at(place)
            end_s = sequence.ends_s + (self.rules.swing_s if sequence.both else 0.0)
        goal = body.ground_in_reach(places, self._com_between(places, time_s))
        if end_s - time_s > SETTLED_S:
            level = quintic(time_s, level.at(time_s), end_s, np.array([goal]), 0.0)
        self._level = level
        return level

    def _com_between(self, places: np.ndarray, time_s: float) -> np.ndarray:
        """Where the centre of mass is when the next foot lands, and when the other one lifts, (2, 2), m.

        places (L, 3): of the feet then.  By the pendulum over the foot that carries, else above their middle.
        """
        com, landing, rate = places[:, :2].mean(axis=0), self.landing, self.rules.rate
        if landing is not None and not self.sequence.both:
            grown = math.exp(rate * max(self.sequence.ends_s - time_s, 0.0))
            away, speed = self.body.com[:2] - landing.pressure, self.body.speed[:2] / rate
            com = landing.pressure + 0.5 * (grown * (away + speed) + (away - speed) / grown)
        ahead = _rotation(self.heading) @ self.velocity[:2] * self.rules.double_s
        return np.array([com, com + ahead])

    def _height(self, time_s: float) -> tuple[float, tuple[float, float]]:
        """Of the centre of mass above the feet that stand, m, its rate and acceleration."""
        body, stands = self.body, self.sequence.stands()
        if self._areas is None:
            return body.height_in_reach(), (0.0, 0.0)
        led = self._lead_height(time_s)
        below = [body.ground_below(body.groups[k]) for k in (0, 1) if stands[k]]
        level, rate, acceleration = led.at(time_s)[:, 0].tolist()
        return body.height_over(level) + level - sum(below) / len(below), (rate, acceleration)

    # The plan

    def _output(self, time_s: float, restarted: bool) -> Plan:
        """Goals and contacts from now on.

        Of the centre of mass: the centre of pressure, and the divergent component xi to which it belongs. In a step both
        are the program's and the measured one; on both feet that of rest, in the middle between them.
        """
        body, sequence, landing = self.body, self.sequence, self.landing
        xi, stands = self._xi(), sequence.stands().tolist()
        stance, times = [[stands[body.group_of(k)] for k in range(len(body.frames))]], [0.0]
        if self._swings:  # should no other plan come, the foot stands when it has landed
            times.append(max(sequence.ends_s - time_s, 1e-3))
            stance.append([True] * len(body.frames))
        if landing is not None:
            pressure, divergent = landing.pressure, xi
        elif sequence.standing:
            pressure = divergent = self._anchor
        else:
            normals, bounds = self._region([k for k in (0, 1) if stands[k]])
            pressure, divergent = brought_into(normals, bounds, xi), xi
        early_s = sequence.patience.early_s
        goals = TaskGoals(
            ComGoal(pressure, divergent, self.rules.rate, *self._height(time_s)),
            Posture(body.robot.joint_names, body.posture),
            {body.frames[k]: swing.path(time_s, early_s) for k, swing in self._swings.items()},
            HORIZON_S,
            Heading(self.heading, 0.0 if sequence.standing else float(self.velocity[2])),
            time_s,
        )
        return Plan(
            contacts=ContactSchedule(body.frames, times, stance, time_s),
            walking=not sequence.standing,
            restarted=restarted,
            unreachable=self._unreachable(),
            unmapped=self._is_off_map(),
            bounded=self._bounded,
            goals=goals,
        )


def _rotation(yaw: float) -> np.ndarray:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s], [s, c]])
