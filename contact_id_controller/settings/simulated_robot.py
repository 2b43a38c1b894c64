"""The settings of the simulated robot."""

from __future__ import annotations

import dataclasses

from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.sensor_kinds import all_mounted
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.command_interfaces import Commanded
from contact_id_controller.settings.robot_rows import RobotRows
from contact_id_controller.settings.shared_rows import (
    LOCAL_GAINS,
    command_interface,
    contact_radii,
    local_gain,
    record_path,
)
from contact_id_controller.settings.specification import parameter

NUMBERS_OF_A_PUSH = 4
"""Values per push: its time and its impulse along three axes."""

_REFUSED = "refused with command_interface joint_trajectory"


@dataclasses.dataclass(frozen=True)
class SimulatedRobotSettings(Commanded, RobotRows):
    """Settings of the simulated robot; names shared with the controller have the same meaning."""

    # The robot
    contact_radii_m: tuple[float, ...] = contact_radii(0.01, 1e-4)
    initial_joint_positions: tuple[float, ...] = parameter(
        (),
        """Joint angles at the start, in the order of joints; empty: all zero. The base starts
        level, as high as lets the lowest foot touch the ground.""",
        when="Set to the planner's posture.",
        unit="rad",
    )
    initial_base: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "Where a floating base starts: x, y, m, and heading, rad.",
        when="Set where the robot starts elsewhere, as before stairs.",
        unit="m, rad",
    )

    # The physics
    period_s: float = parameter(
        0.001,
        "Control period: a state is published, and a command applied, once each.",
        when="Set to the controller's.",
        unit="s",
        minimum=1e-4,
        maximum=0.1,
    )
    friction_coefficient: float = parameter(
        0.6,
        "Coulomb friction between feet and ground; more than 100 counts as 100.",
        when="Lower for ice, to see what the controller holds.",
        minimum=0.0,
        infinite=True,
    )

    # Its own feedback
    command_interface: str = command_interface()
    local_position_gain: tuple[float, ...] = local_gain("position", "N·m/rad", _REFUSED)
    local_velocity_gain: tuple[float, ...] = local_gain("velocity", "N·m·s/rad", _REFUSED)

    # What happens to it

    pushes: tuple[float, ...] = parameter(
        (),
        """Pushes of the base, four numbers each: simulated time, and impulse along the axes of the world,
        which acts over 0.1 s.""",
        when="Set to see what a controller holds.",
        unit="s, N·s",
    )

    # The sensors
    sensors: str = parameter(
        "perfect",
        """What joint_states, imu and wrench/<sensor> are made of. good: joint torque sensors and a good
        IMU; motor_currents: efforts from currents (gain error, friction); cheap: hobby parts.""",
        when="Set to what your robot has, before you believe a gain.",
        choices=("perfect", "good", "motor_currents", "cheap"),
    )
    imu_frame: str = parameter(
        "",
        "Frame of the IMU; empty: the base. A robot bolted to the ground has none unless named.",
        when="Set to the estimator's.",
    )
    mounted_sensors: tuple[str, ...] = parameter(
        (),
        """Sensors beside IMU, encoders and motors, each with its kind, the joint or foot that it is at and its
        settings: "force_torque FR_KFE" (six axes, on topic wrench/<name>), "foot_pressure FL_FOOT
        area_m2=0.0004"; kinds and settings: docs/estimation.md.""",
        when="Set to the estimator's.",
    )
    ground_truth_topics: str = parameter(
        "shared",
        """What no robot can know, odometry and ground_reaction/<frame>, has these names (shared: a
        controller uses it as if it were measured), or ground_truth/ before them (separate: the names
        are free for an estimator), with ground_truth/contact_states.""",
        when="separate where an estimator publishes odometry.",
        choices=("shared", "separate"),
    )

    publish_robot: bool = parameter(
        False,
        """Publish the URDF on /robot_description and, where tf2_msgs is there, all links on /tf, 50 times a second.""",
        when="Set true to look at it in RViz; robot_state_publisher must not run then.",
    )

    # The run
    mode: str = parameter(
        "real_time",
        """real_time: one period of simulation takes one period of the wall clock, divided by
        real_time_factor. lockstep: the simulation advances when the command for its state has
        arrived, however long that takes.""",
        when="lockstep for runs that must not depend on the computer.",
        choices=("real_time", "lockstep"),
    )
    real_time_factor: float = parameter(
        1.0,
        """real_time only: simulated time that passes in a second of the wall clock; below 1 where
        the machine is too slow for real time. Time-outs by the wall clock then see fewer states.""",
        when="Lower on a slow computer.",
        minimum=0.01,
        maximum=1.0,
    )
    duration_s: float = parameter(
        0.0,
        "The node ends by itself after this much simulated time; 0: never.",
        when="Set for runs in scripts.",
        unit="s",
        minimum=0.0,
    )
    stop_when_fallen: bool = parameter(
        True,
        "The node ends when the robot has fallen; only feet touch the ground, it would sink.",
        when="Set false to look at what follows a fall.",
    )
    wait_for_plan_s: float = parameter(
        0.0,
        """lockstep only: start with the first joint_trajectory or task_goals, and never advance further than
        this past the stamp of the newest one, so that a planner in another process cannot fall
        behind; longer than the planner's period plus the 10 ms between clock messages. 0: off.""",
        when="Set in lockstep with a planner in another process.",
        unit="s",
        minimum=0.0,
    )
    record_path: str = record_path("every period is recorded, written at the end")

    def check_together(self) -> None:
        """Raise ConfigurationError when the robot is not named."""
        self.require("urdf", "a robot description")
        self.check_feet()
        missing = [name for name in LOCAL_GAINS if not getattr(self, name)]
        if missing and self.interface.has_joint_gains:
            raise ConfigurationError(
                f"parameter '{missing[0]}' is empty, command_interface {self.command_interface} needs it: "
                "contact_id check proposes a value"
            )
        _ = self.locked, self.mounted
        if len(self.pushes) % NUMBERS_OF_A_PUSH:
            raise ConfigurationError(
                f"parameter 'pushes' has {len(self.pushes)} values, must have {NUMBERS_OF_A_PUSH} for each "
                "push: its time and its impulse along x, y and z"
            )
        if len(self.initial_base) != 3:
            raise ConfigurationError(
                f"parameter 'initial_base' has {len(self.initial_base)} values, must have 3: x, y, "
                "heading"
            )

    @property
    def mounted(self) -> tuple[Mounted, ...]:
        """The mounted sensors.

        Raises:
            ConfigurationError: see ``sensor_kinds.mounted``.
        """
        return all_mounted(self.mounted_sensors)

    @property
    def reliable(self) -> bool:
        """Whether states and commands are sent reliably: in lockstep none may be lost."""
        return self.mode == "lockstep"

    @property
    def wall_period_s(self) -> float:
        """Wall time of one period in real time."""
        return self.period_s / self.real_time_factor
