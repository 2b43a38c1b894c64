"""A robot that does exactly what it is told: the state is what the plans say at that time."""

import dataclasses

import numpy as np
import pinocchio as pin

from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.plans.trajectories import PlanSlot
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.gait import GaitSettings

START_S = 10.0
DATA = "example-robot-data://"


@dataclasses.dataclass(frozen=True)
class Robot:
    """A quadruped for tests: description, feet in the order left front, right front, hind."""

    urdf: str
    feet: tuple[str, ...]
    posture: tuple[float, ...]
    foot_radius_m: float

    def model(self) -> RobotModel:
        return RobotModel.from_urdf(self.urdf)

    def settings(self, **changes) -> GaitSettings:
        return GaitSettings.from_mapping(
            {
                "feet": self.feet,
                "posture": self.posture,
                "foot_radius_m": self.foot_radius_m,
                **changes,
            }
        )


def _feet(names: str) -> tuple[str, ...]:
    return tuple(names.split())


# Postures in the order of the model's joints: left front, left hind, right front, right hind, or
# for Solo12 and Go2 front left, front right, hind left, hind right.
ROBOTS = {
    "quadruped": Robot(
        "package://contact_id_controller/urdf/quadruped.urdf",
        _feet("LF_FOOT RF_FOOT LH_FOOT RH_FOOT"),
        (0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2),
        0.01,
    ),
    "solo12": Robot(
        DATA + "solo_description/robots/solo12.urdf",
        _feet("FL_FOOT FR_FOOT HL_FOOT HR_FOOT"),
        (0.0, 0.8, -1.6) * 2 + (0.0, -0.8, 1.6) * 2,
        0.016,
    ),
    "go2": Robot(
        DATA + "go2_description/urdf/go2.urdf",
        _feet("FL_foot FR_foot RL_foot RR_foot"),
        (0.0, 0.9, -1.8) * 4,
        0.022,
    ),
    "anymal_c": Robot(
        DATA + "anymal_c_simple_description/urdf/anymal.urdf",
        _feet("LF_FOOT RF_FOOT LH_FOOT RH_FOOT"),
        (-0.1, 0.7, -1.0, -0.1, -0.7, 1.0, 0.1, 0.7, -1.0, 0.1, -0.7, 1.0),
        0.03,
    ),
}


class KinematicWalk:
    """Walks by the plans of a planner; `advance` makes the next plan and follows it.

    surface: height map that the planner sees.  rolls: whether standing feet roll; else their centres
    are planned at rest.
    """

    def __init__(self, robot: Robot, surface=None, rolls=True, **settings):
        self.model = robot.model()
        self.settings = robot.settings(**settings)
        self.planner = GaitPlanner(self.model, self.settings, surface)
        if not rolls:
            self.planner.rolling_radius_m = 0.0
        self.frames = [self.model.frame_id(foot) for foot in self.settings.feet]
        self.data = self.model.model.createData()
        self.slots = PlanSlot(), PlanSlot(), PlanSlot()
        self.plans_made = 0
        posture = np.array(robot.posture)
        q = self.model.configuration([0, 0, 0, 0, 0, 0, 1], posture)
        q[2] = robot.foot_radius_m - self.feet(q)[:, 2].min()
        self.q, self.v = q, np.zeros(self.model.nv)

    @property
    def time_s(self) -> float:
        """Time of the next plan's state."""
        return START_S + self.plans_made * self.settings.plan_period_s

    def advance(self):
        """The plan made from the state now; afterwards the state is that of the next period."""
        plan = self.planner.plan(self.time_s, self.q, self.v)
        for slot, part in zip(self.slots, (plan.joints, plan.base, plan.contacts)):
            slot.replace(part)
        self.plans_made += 1
        self.q, self.v = self.state(self.time_s)
        return plan

    def walk(self, duration_s: float) -> list:
        """All plans made in some time."""
        return [self.advance() for _ in range(round(duration_s / self.settings.plan_period_s))]

    def state(self, t_s: float):
        """q, v that the plans in force at a time ask for."""
        joints, base = (slot.at(t_s) for slot in self.slots[:2])
        return planned_state(self.model, joints, base, max(t_s, joints.start_s))

    def feet(self, q: np.ndarray) -> np.ndarray:
        """Centres of the feet (L, 3)."""
        pin.framesForwardKinematics(self.model.model, self.data, q)
        return np.array([self.data.oMf[frame].translation for frame in self.frames])

    def foot_motion(self, q: np.ndarray, v: np.ndarray):
        """Centres of the feet and the velocities of their centres and contact points (L, 3)."""
        pin.forwardKinematics(self.model.model, self.data, q, v)
        places, centers, contacts = [], [], []
        for frame in self.frames:
            place = pin.updateFramePlacement(self.model.model, self.data, frame)
            motion = pin.getFrameVelocity(
                self.model.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED
            )
            down = np.array([0.0, 0.0, -self.settings.foot_radius_m])
            places.append(place.translation.copy())
            centers.append(motion.linear)
            contacts.append(motion.linear + np.cross(motion.angular, down))
        return np.array(places), np.array(centers), np.array(contacts)


def planned_state(model: RobotModel, joints, base, t_s: float):
    """q, v of a joint and a base plan at one time."""
    pose, motion = base.sample(t_s), joints.sample(t_s)
    rotation = pin.Quaternion(pose.quaternion_xyzw).matrix()
    twist = np.concatenate([rotation.T @ pose.linear_velocity, rotation.T @ pose.angular_velocity])
    place = np.concatenate([pose.position, pose.quaternion_xyzw])
    return (model.configuration(place, motion.position), model.velocity(twist, motion.velocity))
