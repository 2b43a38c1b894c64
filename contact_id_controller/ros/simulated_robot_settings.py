"""Everything a user can set on the simulated robot."""

from __future__ import annotations

import dataclasses

import numpy as np
from rclpy.node import Node

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.parameters import ParameterTable
from contact_id_controller.settings.specification import parameter, table_of
from contact_id_controller.simulation.mujoco_model import GroundSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot


@dataclasses.dataclass(frozen=True)
class SimulatedRobotSettings:
    """Settings of the simulated robot; names shared with the controller mean the same there."""

    # The robot
    urdf: str = parameter(
        "",
        """Robot description: a file, package://contact_id_controller/urdf/<file>, or
        example-robot-data://<package>/robots/<file>. Required.""",
    )
    floating_base: bool = parameter(
        True, "The base moves freely (legged robot); false for a robot bolted to the ground."
    )
    joints: tuple[str, ...] = parameter(
        (), "Actuated joints in the order of the command; empty: all of the URDF, in its order."
    )
    contact_frames: tuple[str, ...] = parameter(
        (), "Frames of the URDF that may touch the ground, at the centre of a spherical foot."
    )
    contact_radii_m: tuple[float, ...] = parameter(
        (0.01,), "Radius of the feet: one value, or one per contact frame.", unit="m", minimum=1e-4
    )
    initial_joint_positions: tuple[float, ...] = parameter(
        (),
        """Joint angles at the start, in the order of joints; empty: all zero. The base starts
        level, as high as lets the lowest foot touch the ground.""",
        unit="rad",
    )

    # The physics
    period_s: float = parameter(
        0.001,
        "Control period: a state is published, and a command applied, once each.",
        unit="s",
        minimum=1e-4,
        maximum=0.1,
    )
    substeps: int = parameter(
        1, "Integration steps in each control period.", minimum=1, maximum=100
    )
    friction_coefficient: float = parameter(
        0.6,
        "Coulomb friction between feet and ground; more than 100 counts as 100.",
        minimum=0.0,
        infinite=True,
    )
    ground_time_constant_s: float = parameter(
        0.004,
        "Time constant of the contacts; 0.02 with ground_impedance [0.9, 0.95] is soft.",
        unit="s",
        minimum=1e-4,
        maximum=1.0,
    )
    ground_impedance: tuple[float, ...] = parameter(
        (0.99, 0.999),
        "Hardness of the ground at first touch and at 1 mm depth, between 0 and 1.",
        minimum=1e-4,
        maximum=0.9999,
    )

    # The run
    mode: str = parameter(
        "real_time",
        """real_time: one period of simulation takes one period of the wall clock, divided by
        real_time_factor. lockstep: the simulation advances when the command for its state has
        arrived, however long that takes.""",
        choices=("real_time", "lockstep"),
    )
    real_time_factor: float = parameter(
        1.0,
        """real_time only: simulated time that passes in a second of the wall clock; below 1 where
        the machine is too slow for real time. Time-outs by the wall clock then see fewer states.""",
        minimum=0.01,
        maximum=1.0,
    )
    reliable_topics: bool = parameter(
        False,
        """Reliable instead of best-effort states and commands; both ends must agree. Implied by
        lockstep.""",
    )
    duration_s: float = parameter(
        0.0,
        "The node ends by itself after this much simulated time; 0: never.",
        unit="s",
        minimum=0.0,
    )
    stop_when_fallen: bool = parameter(
        True, "The node ends when the robot has fallen; only feet touch the ground, it would sink."
    )
    command_timeout_s: float = parameter(
        10.0,
        """lockstep only: wall time after which a missing command or plan ends the simulation with
        an error.""",
        unit="s",
        minimum=0.01,
    )
    wait_for_plan_s: float = parameter(
        0.0,
        """lockstep only: start with the first joint_trajectory, and never advance further than
        this past the stamp of the newest one, so that a planner in another process cannot fall
        behind; longer than the planner's period plus the 10 ms between clock messages. 0: off.""",
        unit="s",
        minimum=0.0,
    )
    record_path: str = parameter(
        "", "File (.npz) into which every period is recorded, written at the end; empty: none."
    )

    @classmethod
    def from_node(cls, node: Node) -> SimulatedRobotSettings:
        """Declare all parameters on a node and check what the user gave; none may change later.

        Raises
        ------
        ConfigurationError
            Unknown name, wrong type, value outside its range, or missing `urdf`.
        """
        settings = cls(**ParameterTable(node, table_of(cls), locked=lambda: True).values())
        if not settings.urdf:
            raise ConfigurationError("parameter 'urdf' is empty, must name a robot description")
        return settings

    @property
    def reliable(self) -> bool:
        """Whether states and commands are sent reliably."""
        return self.reliable_topics or self.mode == "lockstep"

    @property
    def wall_period_s(self) -> float:
        """Wall time of one period in real time."""
        return self.period_s / self.real_time_factor

    def build_robot(self) -> MujocoRobot:
        """The simulated robot in its initial posture, on the ground.

        Raises
        ------
        ContactIdError
            The description is missing, or does not fit joints, frames or values.
        """
        radii = _spread("contact_radii_m", self.contact_radii_m, len(self.contact_frames))
        simulated = MujocoRobot(
            self.urdf,
            [SphereFoot(frame, radius) for frame, radius in zip(self.contact_frames, radii)],
            joints=list(self.joints) or None,
            floating_base=self.floating_base,
            friction=self.friction_coefficient,
            period_s=self.period_s,
            substeps=self.substeps,
            ground=GroundSettings(self.ground_time_constant_s, impedance=self.ground_impedance),
        )
        self.place(simulated)
        return simulated

    def place(self, simulated: MujocoRobot) -> None:
        """Put the robot at rest into its initial posture, on the ground."""
        simulated.reset(self._initial_configuration(simulated))

    def _initial_configuration(self, simulated: MujocoRobot) -> np.ndarray:
        robot: RobotModel = simulated.robot
        angles = self.initial_joint_positions or (0.0,) * robot.na
        if len(angles) != robot.na:
            raise ConfigurationError(
                f"parameter 'initial_joint_positions' has {len(angles)} values, must have "
                f"{robot.na}, one per joint"
            )
        q = robot.neutral()
        q[robot.q_index] = angles
        return simulated.place_on_ground(q) if self.floating_base and simulated.feet else q


def _spread(name: str, values: tuple[float, ...], count: int) -> tuple[float, ...]:
    if len(values) not in (1, count):
        raise ConfigurationError(
            f"parameter '{name}' has {len(values)} values, must have 1 or {count}"
        )
    return values * count if len(values) == 1 else values
