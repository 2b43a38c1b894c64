"""Command interfaces: what a command holds, what a stop sends, what is checked. A new one is one row.

Code that depends on an interface reads its row, never its name. Code that a row names (the steps of the controller, the
feedback on the robot's side, the messages) is imported when it is first needed, so that settings require neither
Pinocchio nor ROS.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from contact_id_controller.exceptions import ConfigurationError, choices


class Required(NamedTuple):
    """A parameter with one right value, and why.

    default: its value if it is not set.  since: the first distribution that has it; empty: all.
    live: whether it can be set while the controller of ros2_control runs: then a wrong value is corrected.
    """

    parameter: str
    value: Any
    default: Any = None
    why: str = ""
    since: str = ""
    live: bool = False


COMMAND, MODEL, ANY = "command", "model", "any"
"""Orders of joints: of our commands, of Pinocchio's model of the robot description, or any, as they are named."""


@dataclasses.dataclass(frozen=True)
class Host:
    """The controllers of ros2_control that take the commands, and what their section must contain.

    Attributes:
        types: names of their classes.
        topic: of the commands, below the name of the controller; ``beside``: instead in the namespace of controller
            and controller_manager.
        joints: its parameter with their names.  order: required order: ``COMMAND``, ``MODEL``, or ``ANY``.
        requires: its parameters that have one right value.
        checks: import path of further checks (``check``). Empty: none.
        exports: whether they export state interfaces, on which controllers that claim these depend.
    """

    types: tuple[str, ...]
    topic: str
    joints: str = "joints"
    order: str = ANY
    requires: tuple[Required, ...] = ()
    checks: str = ""
    exports: bool = False
    beside: bool = False

    def topic_of(self, group: str) -> str:
        """Full name of the command topic of the controller with the full name ``group``."""
        place = group.strip("/")
        if self.beside:
            place = place.rpartition("/")[0]
        return f"/{place}/{self.topic}".replace("//", "/")


@dataclasses.dataclass(frozen=True)
class CommandInterface:
    """One way to command a robot.

    Attributes:
        name: value of ``command_interface``.  commanded: content of a command.
        stop: what is sent at a stop, at a timeout of states, and at the end of commanding.
        topic: of the commands; a watchdog takes them from this name and ``_in``.
        message: ROS type of a command, such as ``std_msgs/msg/Float64MultiArray``.
        messages: import path of the ``CommandMessages`` that write and read it (``ros.command_messages``).
        unread: reason under which the watchdog counts a message that is no command.
        host: takes the commands in ros2_control; None: they go to the drives.
        recorded: whether a replay reads the commands.
        steps: import path of the code that makes commands which continue without the controller (``control``).
            Empty: torques alone, held until the next ones.
        robot_side: import path of the feedback on the robot's side (``plans``), which continues while commands
            are late. Empty: there is none.
        has_joint_gains: whether the robot's side has gains of its own, ``LOCAL_GAINS``.
        has_horizon: whether a command covers ``command_horizon_s``; its efforts are then those of future times,
            and their rate of change has no meaning.
        needs_derivative: whether each solution is commanded with its derivative by the state.
    """

    name: str
    commanded: str
    stop: str
    topic: str
    message: str
    messages: str
    unread: str
    host: Host | None
    recorded: bool
    steps: str = ""
    robot_side: str = ""
    has_joint_gains: bool = False
    has_horizon: bool = False
    needs_derivative: bool = False

    @property
    def bridges(self) -> bool:
        """Whether feedback on the robot's side continues while commands are late; else the last torque is held."""
        return bool(self.robot_side)

    @property
    def taker(self) -> Host:
        """The controllers of ros2_control that take the commands.

        Raises:
            ConfigurationError: there are none.
        """
        if self.host is None:
            raise ConfigurationError(
                f"command_interface {self.name!r} goes to the drives, not through ros2_control"
            )
        return self.host

    @property
    def package(self) -> str:
        """The ROS package of the message."""
        return self.message.partition("/")[0]


_PLUGIN = Host(
    ("contact_id_ros2_control/RobotSideController",),
    "commands",
    order=COMMAND,
    checks="check.robot_side:check_robot_side",
    exports=True,
)

_DRIVES: dict[str, Any] = {
    "unread": "not_a_good_drive_command",
    "host": None,
    "recorded": False,
    "steps": "control.low_level:LowLevelSteps",
    "robot_side": "plans.low_level:DriveFeedback",
}
"""Columns common to all commands to drives."""

INTERFACES = {
    row.name: row
    for row in (
        CommandInterface(
            "effort",
            "torques",
            "zero or damping torques",
            topic="commands",
            message="std_msgs/msg/Float64MultiArray",
            messages="ros.torque_messages:TorqueMessages",
            unread="not_a_good_message",
            host=Host(
                (
                    "effort_controllers/JointGroupEffortController",
                    "forward_command_controller/ForwardCommandController",
                ),
                "commands",
                order=COMMAND,
                requires=(Required("interface_name", "effort", default="effort"),),
            ),
            recorded=True,
        ),
        CommandInterface(
            "joint_trajectory",
            "positions, velocities, accelerations and efforts over command_horizon_s, for a "
            "joint_trajectory_controller with command interface effort, whose feedback goes on while "
            "the controller is late",
            "rest where the joints are, with torques that fade",
            topic="joint_commands",
            message="trajectory_msgs/msg/JointTrajectory",
            messages="ros.effort_messages:TrajectoryMessages",
            unread="not_a_good_trajectory",
            host=Host(
                ("joint_trajectory_controller/JointTrajectoryController",),
                "joint_trajectory",
                requires=(
                    Required(
                        "command_interfaces",
                        ["effort"],
                        why="only then are the efforts of a trajectory added",
                    ),
                    Required(
                        "allow_trajectory_replacement",
                        False,
                        default=True,
                        why="else a trajectory starts with its first point when it arrives, with the delay of "
                        "the message",
                        since="lyrical",
                        live=True,
                    ),
                ),
                checks="check.trajectory_gains:check_trajectory_gains",
            ),
            recorded=True,
            steps="control.torques_ahead:TorquesAhead",
            robot_side="plans.effort_trajectory:LocalFeedback",
            has_joint_gains=True,
            has_horizon=True,
        ),
        CommandInterface(
            "linear_feedback",
            "torques with the feedback of the whole state that the solved problem has, for the plugin "
            "linear_feedback_controller, whose messages must be installed",
            "torques without feedback",
            topic="control",
            message="linear_feedback_controller_msgs/msg/Control",
            messages="ros.linear_feedback_messages:FeedbackMessages",
            unread="not_a_good_feedback",
            host=Host(
                ("linear_feedback_controller/LinearFeedbackController",),
                "control",
                beside=True,
                joints="moving_joint_names",
                order=MODEL,
                requires=(
                    Required(
                        "remove_gravity_compensation_effort",
                        False,
                        why="the commanded torques carry the weight already",
                    ),
                    Required(
                        "joint_velocity_filter_coefficient",
                        1.0,
                        default=0.9,
                        why="a filtered velocity is late, which the gains do not account for",
                    ),
                ),
                checks="check.linear_feedback:check_linear_feedback",
            ),
            recorded=False,
            steps="control.linear_feedback:LinearSteps",
            robot_side="plans.state_feedback:LinearFeedback",
            needs_derivative=True,
        ),
        CommandInterface(
            "robot_side_trajectory",
            "what joint_trajectory commands, for the plugin contact_id_ros2_control, which damps when it ends",
            "the same",
            topic="robot_side_trajectory",
            message="std_msgs/msg/Float64MultiArray",
            messages="ros.robot_side_messages:RobotSideTrajectories",
            unread="not_a_good_trajectory",
            host=_PLUGIN,
            recorded=False,
            steps="control.torques_ahead:TorquesAhead",
            robot_side="plans.effort_trajectory:LocalFeedback",
            has_joint_gains=True,
            has_horizon=True,
        ),
        CommandInterface(
            "robot_side_feedback",
            "what linear_feedback commands, for the same plugin",
            "the same",
            topic="robot_side_feedback",
            message="std_msgs/msg/Float64MultiArray",
            messages="ros.robot_side_messages:RobotSideFeedbacks",
            unread="not_a_good_feedback",
            host=_PLUGIN,
            recorded=False,
            steps="control.linear_feedback:LinearSteps",
            robot_side="plans.state_feedback:LinearFeedback",
            needs_derivative=True,
        ),
        CommandInterface(
            "low_level",
            "position, velocity, stiffness, damping and torque of each joint, for drives of MIT type, as "
            "rows of numbers",
            "the drives' damping, without stiffness",
            topic="low_level",
            message="std_msgs/msg/Float64MultiArray",
            messages="ros.low_level_messages:LowLevelMessages",
            **_DRIVES,
        ),
        CommandInterface(
            "low_level_unitree",
            "the same for Unitree's motors (Go2, B2), whose messages unitree_go must be installed; joints are in "
            "the order of the motors",
            "the same",
            topic="lowcmd",
            message="unitree_go/msg/LowCmd",
            messages="ros.unitree_messages:UnitreeMessages",
            **_DRIVES,
        ),
    )
}
"""``command_interface`` -> its row; the first one is the default."""

DEFAULT = next(iter(INTERFACES))

TOPICS = tuple(row.topic for row in INTERFACES.values())
"""Topics of the commands of all interfaces."""

TORQUES_ONLY = choices(name for name, row in INTERFACES.items() if not row.bridges)
"""Interfaces whose commands are torques alone, in words."""


class Commanded:
    """Settings with the parameter ``command_interface``."""

    command_interface: str

    @property
    def interface(self) -> CommandInterface:
        """The row of ``command_interface``."""
        return INTERFACES[self.command_interface]


def description() -> str:
    """What ``command_interface`` means, from the rows."""
    rows = (
        f"{row.name}, topic {row.topic}: {row.commanded}; a stop sends {row.stop}."
        for row in INTERFACES.values()
    )
    return " ".join(["What is commanded each period.", *rows])
