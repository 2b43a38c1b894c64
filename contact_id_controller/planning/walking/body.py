"""What walking needs to know of a robot: groups of feet, and lengths and times that follow from its standing posture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import FootContacts, HalfSpace, SphereFoot
from contact_id_controller.geometry.legs import leg_of
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.planning.gait.gaits import PHASES
from contact_id_controller.planning.walking.step_rules import Rules
from contact_id_controller.robot import RobotModel, symmetric

SWING, SHIFT = 1.65, 0.33
"""Usual duration of a swing and of a shift of weight onto a sole, in units of 1/w, w = sqrt(g / h)."""

POINT_SWING = 1.3
"""The same of a swing above a point foot, which has no shift."""

STRAIGHT = 0.985
"""Share of its length to which a leg is stretched at most."""

LOWEST = 0.9
"""Share of its height to which the centre of mass may go down for a leg to reach its place."""

REACH = (0.65, 0.55)
"""Of a step forwards and back, in lengths of the leg."""

WIDEST = 0.65
"""Of a step to the side beyond the usual one, in lengths of the leg; what a leg reaches is a bound of its own."""

CLEARANCE = 0.2
"""Between two feet side by side, as a share of the usual distance."""

INNER = 0.65
"""Share of a sole's half sizes in which the centre of pressure of later steps may lie."""

MARGIN = 0.25
"""By which the centre of pressure is planned inside what stands, as a share of the narrowest half size."""

FOOT_SPEED = 0.8
"""Of a foot aloft, in units of sqrt(g l), l the leg's length."""

POINT_ACCELERATION, FOOT_ACCELERATION = 5.0, 7.0
"""Of a point foot, and of a sole, aloft, at most, in units of g."""

TORQUE_SHARE = 1.1
"""Of the acceleration of a sole that joints' torques give with the base held, which yields: TALOS 5.1, G1 7.3 g."""

SLACK = 0.01
"""By which a foot may miss its place, in lengths of the leg."""

REST = 0.05
"""Share of a swing before landing in which a foot does not move along the ground: more asks more of the legs."""

ORIGIN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
"""Pose of a base, m and quaternion x, y, z, w."""

UPRIGHT, TURN_MARGIN = 0.95, 0.1
"""Vertical part of the axis of a joint that turns a foot; what is left before its ends, rad: twice a soft stop."""

SINGULAR = 1e-3
"""Share of the largest singular value of a leg's Jacobian below which it cannot move its foot in that direction."""

STRETCHES = 100
"""Angles of the knee at which a leg's length is looked at."""


class Body:
    """A robot's feet and legs; kinematics of the last ``measure``.

    Args:
        robot: with a floating base.
        contacts: round feet, and the corners of flat ones.
        posture: (na,) in which it stands.
        gait: of four feet, by name (`gaits.PHASES`); of two it does not matter.

    Attributes:
        frames: of the L feet.  groups: numbers of the feet of group 0 (left, or fore) and 1.
        places (L, 3): ground points of the feet, the middles of soles, m.  yaws (L,): rad.
        toes (L,): yaws in the posture, before that of the base, rad.  turns (L, 2): the least and the largest to plan.
        com, speed (3,): of the centre of mass.  heading: of the base, rad.
        radii (L,): height of each frame's middle above its ground point is that of a ball, m; 0 for soles.
        half_sizes (2,): of a sole along its x and y, m; 0 for round feet.
        rules, margin_m, height_m: what follows from the posture.

    Raises:
        ConfigurationError: no floating base, not two or four feet, or a gait that has not two groups.
    """

    def __init__(
        self,
        robot: RobotModel,
        contacts: Sequence[SphereFoot],
        posture: np.ndarray,
        gait: str = "trot",
    ):
        if not robot.floating_base:
            raise ConfigurationError("walking needs a robot with a floating base")
        self.robot, self.posture = robot, posture
        self._contacts = FootContacts(robot, contacts, HalfSpace())
        self._foot = self._contacts.foot
        self.frames = tuple(dict.fromkeys(foot.frame for foot in contacts))
        if len(self.frames) not in (2, 4):
            raise ConfigurationError(f"{len(self.frames)} feet cannot walk, must be 2 or 4")
        model = robot.model
        self._placements = [model.frames[robot.frame_id(frame)] for frame in self.frames]
        self._joints = [frame.parentJoint for frame in self._placements]
        self._turns = [frame.placement.rotation.copy(order="K") for frame in self._placements]
        self._counts = np.bincount(self._foot)
        self._rows: dict[tuple[int, ...], np.ndarray] = {}
        self.flat = bool((self._counts > 1).all())
        self.places, self.yaws = np.zeros((len(self.frames), 3)), np.zeros(len(self.frames))
        self.com, self.speed, self.heading = np.zeros(3), np.zeros(3), 0.0
        self._data = model.createData()
        self.legs = [leg_of(robot, frame) for frame in self._placements]
        self._longest = [self._straightened(k) for k in range(len(self.frames))]
        q = robot.configuration(ORIGIN, posture)
        self.measure(q, np.zeros(robot.nv))
        self.toes = self.yaws - self.heading
        self.turns = np.array([self._turned(k, q) for k in range(len(self.frames))])
        self.groups = self._grouped(gait)
        self.member = np.array(
            [
                self.places[k, :2] - self.group_places()[self.group_of(k)]
                for k in range(len(self.frames))
            ]
        )
        self.height_m = float(self.com[2] - self.places[:, 2].mean())
        ankles = np.array([self._ankle(k) for k in range(len(self.frames))])
        roots = np.array([self._data.oMi[leg.root].translation for leg in self.legs])
        ankles, roots = ankles - self.places, roots - self.com
        self._across_m = (roots - ankles)[:, :2]
        self._ends_m = list(zip(ankles[:, 2].tolist(), roots[:, 2].tolist()))
        self.half_sizes = self._half_sizes()
        self.margin_m = self._margin()
        self.rules = self._rules(q)

    def group_of(self, foot: int) -> int:
        """The group of a foot."""
        return 0 if foot in self.groups[0] else 1

    def measure(self, q: np.ndarray, v: np.ndarray) -> None:
        """Take centre of mass, feet and heading of a state q (nq,), v (nv,)."""
        model, data = self.robot.model, self._data
        pin.centerOfMass(model, data, q, v, False)
        self.com[:], self.speed[:] = data.com[0], data.vcom[0]
        self._contacts.update(data)
        _means(self._contacts.points, self._foot, self._counts, self.places)
        for k, (joint, turn) in enumerate(zip(self._joints, self._turns)):
            along_x, along_y, _ = (data.oMi[joint].rotation @ turn)[:, 0].tolist()
            self.yaws[k] = math.atan2(along_y, along_x)
        x, y, z, w = q[3:7].tolist()
        self.heading = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))

    def group_places(self) -> np.ndarray:
        """Middles (2, 2) of the groups' ground points, m."""
        places = self.places
        return np.array(
            [
                places[group[0], :2] if len(group) == 1 else places[list(group), :2].mean(axis=0)
                for group in self.groups
            ]
        )

    def points(self, feet: Sequence[int]) -> np.ndarray:
        """Horizontal places (n, 2) of all contacts of these feet, m."""
        return np.asarray(self._points(feet)[:, :2])

    def ground_below(self, feet: Sequence[int]) -> float:
        """Height, m, of the lowest contact of these feet: a sole that tips stands on an edge."""
        return min(self._points(feet)[:, 2].tolist())

    def _points(self, feet: Sequence[int]) -> np.ndarray:
        rows = self._rows.get(key := tuple(feet))
        if rows is None:
            rows = self._rows[key] = np.flatnonzero(np.isin(self._foot, feet))
        return self._contacts.points[rows]

    def stretched(self, feet: Sequence[int]) -> bool:
        """Whether one of these feet's legs is straight."""
        data = self._data
        for k in feet:
            leg = self.legs[k]
            away = data.oMi[leg.hip].translation - self._ankle(k)
            if float(np.linalg.norm(away)) > STRAIGHT * leg.length_m:
                return True
        return False

    def height_in_reach(self) -> float:
        """The usual height of the centre of mass above the ground, m, or what the legs reach with feet where they are."""
        return self.height_over(self.mean_height(self.places))

    def mean_height(self, places: np.ndarray) -> float:
        """Of places (L, 3), m."""
        return sum(places[:, 2].tolist()) / len(places)

    def height_over(self, ground_m: float) -> float:
        """The usual height of the centre of mass above a ground of that height, m, or what the legs reach."""
        lowest = self.height_m
        for k, leg in enumerate(self.legs):
            hip = self._data.oMi[leg.hip].translation.tolist()
            ankle = self._ankle(k).tolist()
            across = (hip[0] - ankle[0]) ** 2 + (hip[1] - ankle[1]) ** 2
            above = math.sqrt(max((STRAIGHT * leg.length_m) ** 2 - across, 0.0))
            lowest = min(lowest, ankle[2] + above - hip[2] + float(self.com[2]) - ground_m)
        return max(lowest, LOWEST * self.height_m)

    def ground_in_reach(self, places: np.ndarray, com: np.ndarray) -> float:
        """Height, m, from which the centre of mass counts above feet that stand at places (L, 3), m.

        That of their middle, or what legs as in the posture reach from there with the centre of mass above each of the
        places com (n, 2), m.
        """
        middle_m, above = self.mean_height(places), math.inf
        c, s = math.cos(self.heading), math.sin(self.heading)
        turn, middles = np.array([[c, -s], [s, c]]), com.tolist()
        legs = zip(places.tolist(), self._across_m, self._ends_m, self._longest)
        for (x, y, z), across, (ankle, root), longest in legs:
            root_x, root_y = (turn @ across).tolist()
            far = max((a - x + root_x) ** 2 + (b - y + root_y) ** 2 for a, b in middles)
            reach = math.sqrt(max((STRAIGHT * longest) ** 2 - far, 0.0))
            above = min(above, z + ankle - root + reach)
        lowest = middle_m - (1.0 - LOWEST) * self.height_m
        return max(min(middle_m, above - self.height_m), lowest)

    def _straightened(self, foot: int) -> float:
        """Distance of a leg's root from its ankle, m, in the posture but with the knee as its limits stretch it most."""
        robot, model, leg = self.robot, self.robot.model, self.legs[foot]
        longest, posture = 0.0, np.array(self.posture, dtype=float)
        knee = model.names[leg.knee]
        # Empty where the knee is passive, as a spring: it keeps the posture.
        bends = [k for k, name in enumerate(robot.joint_names) if name == knee]
        ends = np.clip([robot.lower[bends], robot.upper[bends]], -math.pi, math.pi)
        for bent in np.linspace(ends[0], ends[1], STRETCHES):
            posture[bends] = bent
            pin.forwardKinematics(model, self._data, robot.configuration(ORIGIN, posture))
            away = self._data.oMi[leg.root].translation - self._ankle(foot)
            longest = max(longest, float(np.linalg.norm(away)))
        return longest

    def _turned(self, foot: int, q: np.ndarray) -> tuple[float, float]:
        """Least and largest yaw of a foot before that of the base, rad, that its leg's vertical joint allows in q (nq,)."""
        robot, model, toes = self.robot, self.robot.model, float(self.toes[foot])
        pin.computeJointJacobians(model, self._data, q)
        own = list(model.supports[self._joints[foot]])
        waist = set(own).intersection(*(model.supports[joint] for joint in self._joints))
        for j in own:
            if j in waist:  # it turns all feet
                continue
            name, axis = model.names[j], float(self._data.J[5, model.joints[j].idx_v])
            if name not in robot.joint_names or abs(axis) < UPRIGHT:
                continue
            k = robot.joint_names.index(name)
            ends = axis * (np.array([robot.lower[k], robot.upper[k]]) - self.posture[k])
            margin = min(TURN_MARGIN, 0.5 * float(np.ptp(ends)))
            if robot.upper[k] > robot.lower[k]:
                return toes + float(ends.min()) + margin, toes + float(ends.max()) - margin
        return -math.inf, math.inf

    def _ankle(self, foot: int) -> np.ndarray:
        frame, ankle = self._placements[foot], self.legs[foot].ankle
        if ankle < 0:
            place = self._data.oMi[frame.parentJoint].act(frame.placement.translation)
        else:
            place = self._data.oMi[ankle].translation
        return np.asarray(place)

    def _grouped(self, gait: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Feet of the two groups: left and right of two, by the gait's phases of four."""
        from_middle = self.places[:, :2] - self.places[:, :2].mean(axis=0)
        if len(self.frames) == 2:
            left = int(np.argmax(from_middle[:, 1]))
            return (left,), (1 - left,)
        phases = [PHASES[gait](x > 0.0, y > 0.0) for x, y in from_middle.tolist()]
        groups = [tuple(k for k, own in enumerate(phases) if own == p) for p in sorted(set(phases))]
        if len(groups) != 2:
            raise ConfigurationError(f"gait {gait!r} has {len(groups)} groups of feet, must have 2")
        return groups[0], groups[1]

    def _half_sizes(self) -> np.ndarray:
        """Half lengths (2,) of a sole along its own x and y, m; 0 for round feet."""
        c, s = math.cos(self.yaws[0]), math.sin(self.yaws[0])
        own = self.points([0]) @ np.array([[c, -s], [s, c]])
        return np.asarray(0.5 * (own.max(axis=0) - own.min(axis=0)))

    def _margin(self) -> float:
        half = self.half_sizes.min()
        if half == 0.0 and len(self.frames) > 2:
            half = 0.1 * float(np.ptp(self.places[:, 1]))
        return float(MARGIN * half)

    def _accelerated(self, q: np.ndarray) -> float:
        """Largest horizontal acceleration to plan of a foot aloft, m/s^2, by what joints' torques give it in q (nq,).

        With the base held and neither height nor rotation of the foot changed.
        """
        robot, model, data = self.robot, self.robot.model, self.robot.model.createData()
        gravity = float(np.linalg.norm(model.gravity.linear))
        if not self.flat:
            return POINT_ACCELERATION * gravity
        most, inertia = FOOT_ACCELERATION * gravity, symmetric(pin.crba(model, data, q))
        for frame, joint in zip(self.frames, self._joints):
            J = pin.computeFrameJacobian(
                model, data, q, robot.frame_id(frame), pin.LOCAL_WORLD_ALIGNED
            )
            rows = np.flatnonzero(robot.supports[joint, robot.actuated])
            own = robot.actuated[rows]
            joints = np.linalg.pinv(J[:, own], rcond=SINGULAR)[:, :2]
            torques = np.abs(inertia[np.ix_(own, own)] @ joints)
            shares = torques / robot.effort_limits[rows, None]
            most = min(most, TORQUE_SHARE / max(float(shares.max()), 1e-9))
        return most

    def _rules(self, q: np.ndarray) -> Rules:
        """What steps keep to, from the kinematics of the posture."""
        gravity = float(np.linalg.norm(self.robot.model.gravity.linear))
        rate, places = math.sqrt(gravity / self.height_m), self.group_places()
        offset = places[0] - places[1]
        offset[np.abs(offset) < 1e-3] = 0.0
        length = min(leg.length_m for leg in self.legs)
        apart, half = float(np.linalg.norm(offset)), self.half_sizes
        carries_alone = half.min() > 0.0 or len(self.frames) > 2  # it can shift weight on it
        hips, reach = np.zeros((2, 2)), np.inf
        for k, leg in enumerate(self.legs):
            hip, ankle = self._data.oMi[leg.hip].translation, self._ankle(k)
            root = self._data.oMi[leg.root].translation
            hips[self.group_of(k)] += (
                root[:2] + self.places[k, :2] - ankle[:2] - self.com[:2]
            ) / len(self.groups[self.group_of(k)])
            below = hip[2] - ankle[2] - (1.0 - LOWEST) * self.height_m
            room = (STRAIGHT * leg.length_m) ** 2 - below**2
            reach = min(reach, math.sqrt(max(room, 0.0)))
        swing_s = (SWING if carries_alone else POINT_SWING) / rate
        near = 2.0 * half[1] + CLEARANCE * apart if apart else -WIDEST * length
        return Rules(
            rate=rate,
            swing_s=swing_s,
            double_s=SHIFT / rate if carries_alone else 0.0,
            offset=offset,
            reach=np.array(REACH) * length,
            width=np.array([near, apart + WIDEST * length]),
            sole=INNER * half,
            foot_speed=FOOT_SPEED * math.sqrt(gravity * length),
            foot_acceleration=self._accelerated(q),
            slack_m=SLACK * length,
            settle_s=REST * swing_s,
            leg_m=float(reach),
            hips=hips,
        )


@bare_kernel
def _means(points, foot, counts, out):
    """Write the mean of each foot's points (n, 3) into ``out`` (L, 3); foot (n,), counts (L,): of points."""
    out[:] = 0.0
    for k in range(points.shape[0]):
        for d in range(3):
            out[foot[k], d] += points[k, d]
    for k in range(out.shape[0]):
        for d in range(3):
            out[k, d] /= counts[k]
