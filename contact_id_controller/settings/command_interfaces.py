"""Command interfaces: what a command is, what a stop sends, what is checked. A new one is one row.

Whoever needs to know what an interface can do reads its row, never its name. What acts by a row (the steps
of the controller, the feedback on the robot's side, the messages) is loaded when it is first needed, so
that settings need neither Pinocchio nor ROS.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from contact_id_controller.exceptions import ConfigurationError, choices


class Required(NamedTuple):
    """A parameter with one right value, and why.

    default: its value where it is left out.  since: the first distribution that knows it; empty: all do.
    live: the controller of ros2_control takes another value while it runs: what is wrong is set right.
    """

    parameter: str
    value: Any
    default: Any = None
    why: str = ""
    since: str = ""
    live: bool = False


COMMAND, MODEL, ANY = "command", "model", "any"
"""Orders of joints: of our commands, of Pinocchio's model of the robot description, or whatever by name."""


@dataclasses.dataclass(frozen=True)
class Host:
    """The controllers of ros2_control that take the commands, and what their section must hold.

    Attributes:
        types: names of their classes.
        topic: of the commands, below the name of the controller; ``beside``: in the namespace that it and
            controller_manager have instead.
        joints: its parameter with their names.  order: in which they must stand: that of the ``COMMAND``, of
            the ``MODEL``, or ``ANY``.
        requires: its parameters that have one right value.
        checks: place of what else is compared (``check``). Empty: nothing.
        exports: whether they export state interfaces, on which controllers that take these depend.
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
        """Full name of the topic on which the controller with the full name ``group`` takes commands."""
        place = group.strip("/")
        if self.beside:
            place = place.rpartition("/")[0]
        return f"/{place}/{self.topic}".replace("//", "/")


@dataclasses.dataclass(frozen=True)
class CommandInterface:
    """One way to command a robot.

    Attributes:
        name: value of ``command_interface``.  commanded: what each period commands.
        stop: what a stop, a silence and the end of commanding send.
        topic: of the commands; a watchdog takes them from this name and ``_in``.
        message: ROS type of a command, such as ``std_msgs/msg/Float64MultiArray``.
        messages: place of the ``CommandMessages`` that write and read it (``ros.command_messages``).
        unread: why the watchdog refuses a message that is no command, as its diagnostics count it.
        host: what takes the commands in ros2_control; None: nothing there, they go to the drives.
        recorded: whether a replay reads the commands.
        steps: place of what makes commands that go on without the controller (``control``). Empty:
            torques alone, held until the next ones.
        robot_side: place of the feedback on the robot's side (``plans``), which goes on while commands
            are late. Empty: there is none.
        has_joint_gains: the robot's side has gains of its own, ``LOCAL_GAINS``.
        has_horizon: a command covers ``command_horizon_s``, so that its efforts are those of times to
            come: their rate of change has no meaning.
        needs_derivative: each solution is commanded with its derivative by the state.
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
        """Whether the robot's side goes on by itself while commands are late; else the last torque is held."""
        return bool(self.robot_side)

    @property
    def taker(self) -> Host:
        """What takes the commands in ros2_control.

        Raises:
            ConfigurationError: nothing there does.
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
"""What all commands to drives have in common."""

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
                        why="else a trajectory is played from its first point on when it arrives, as late as "
                        "it is",
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
                        why="our torques carry the weight already",
                    ),
                    Required(
                        "joint_velocity_filter_coefficient",
                        1.0,
                        default=0.9,
                        why="a filtered velocity is late, and our gain does not reckon with it",
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
