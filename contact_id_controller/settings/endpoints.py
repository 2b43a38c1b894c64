"""Topics and services of each node, from which its security policy is made.

Names are as in the node: `~` is the node, `*` stands for a name such as a foot's. Those of every ROS node are in
`COMMON`. A test compares the rows with the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

from contact_id_controller.estimation.sensor_kinds import KINDS
from contact_id_controller.settings.command_interfaces import TOPICS


class Endpoints(NamedTuple):
    """Names of topics and services of one node.

    publishes, subscribes: topics.  serves, calls: services.
    """

    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


COMMON = Endpoints(
    publishes=("/rosout", "/parameter_events"),
    subscribes=("/clock",),
    serves=tuple(
        f"~/{name}"
        for name in (
            "describe_parameters",
            "get_parameter_types",
            "get_parameters",
            "get_type_description",
            "list_parameters",
            "set_parameters",
            "set_parameters_atomically",
        )
    ),
)
"""Endpoints of every node: log, parameters, and simulated time."""

LIFECYCLE = Endpoints(
    publishes=("~/transition_event",),
    serves=tuple(
        f"~/{name}"
        for name in (
            "change_state",
            "get_available_states",
            "get_available_transitions",
            "get_state",
            "get_transition_graph",
        )
    ),
)
"""Endpoints of a lifecycle node."""

MOUNTED = tuple(f"{kind.topic_prefix}/*" for kind in KINDS.values())
"""Topics of mounted sensors."""

PLANS = ("joint_trajectory", "base_trajectory", "contact_schedule")
GOALS = "task_goals"

ORDER_CHECK = ("*/get_parameters",)
"""Services of the group controller and of its controller_manager."""

NODES: dict[str, Endpoints] = {
    "controller": Endpoints(
        publishes=(
            *TOPICS,
            *("/diagnostics", "~/contact_forces", "~/events", "~/heartbeat"),
        ),
        subscribes=(
            *("joint_states", "odometry", *PLANS, GOALS, "contact_states", "ground_reaction/*"),
            "command_watchdog/heartbeat",
            # Its own commands: while another publisher of them is known.
            *TOPICS,
        ),
        serves=("~/emergency_stop", "~/resume"),
        calls=ORDER_CHECK,
    ),
    "command_watchdog": Endpoints(
        publishes=(*TOPICS, "/diagnostics", "~/heartbeat"),
        subscribes=(
            *("emergency_stop", *(f"{topic}_in" for topic in TOPICS)),
            *("joint_states", "controller/transition_event", "controller/heartbeat"),
            *TOPICS,
        ),
        serves=("~/emergency_stop", "~/reset"),
        calls=("controller/get_state", *ORDER_CHECK),
    ),
    "gait_planner": Endpoints(
        publishes=(*PLANS, GOALS),
        subscribes=("joint_states", "odometry", "contact_states", "cmd_vel", "gait"),
    ),
    "kinodynamic_planner": Endpoints(
        publishes=(*PLANS, "/diagnostics", "~/footholds", "~/planned_forces", "~/com"),
        subscribes=("joint_states", "odometry", "footsteps", "goal_pose"),
        serves=("~/plan", "~/execute"),
    ),
    "dynamics_estimator": Endpoints(
        publishes=(
            *("odometry", "contact_states", "ground_reaction/*", "/tf", "/diagnostics"),
            *("~/joint_states", "~/accelerations", "~/joint_wrench/*"),
        ),
        subscribes=("imu", "joint_states", "contact_schedule", *MOUNTED),
    ),
    "simulated_robot": Endpoints(
        publishes=(
            *("/clock", "joint_states", "odometry", "imu", *MOUNTED, "ground_reaction/*"),
            *("ground_truth/odometry", "ground_truth/contact_states"),
            *("ground_truth/ground_reaction/*", "/robot_description", "/tf"),
        ),
        subscribes=(*TOPICS, "joint_trajectory", GOALS),
        serves=("~/reset",),
    ),
    "viewer": Endpoints(
        publishes=("cmd_vel", "emergency_stop"),
        subscribes=(
            *("joint_states", "odometry", "joint_trajectory", "base_trajectory", "commands"),
            *("controller/contact_forces", "/diagnostics", "ground_reaction/*", "joy"),
        ),
        calls=(
            *("controller/emergency_stop", "controller/resume", "controller/get_parameters"),
            *("controller/set_parameters_atomically", "command_watchdog/emergency_stop"),
            *("command_watchdog/reset", "simulated_robot/get_parameters"),
        ),
    ),
}
"""Endpoints of every node of this package, without the common ones."""

OPERATOR = Endpoints(
    subscribes=("/diagnostics", "/rosout", "controller/transition_event"),
    calls=(
        *(f"controller/{name}" for name in ("emergency_stop", "resume", "change_state")),
        *("controller/get_state", "command_watchdog/reset", "command_watchdog/emergency_stop"),
    ),
    publishes=("emergency_stop",),
)
"""Endpoints of a person who starts and stops the robot; no node of this package."""

LIFECYCLE_NODES = ("controller", "dynamics_estimator")

UNASKED_NODES = ("command_watchdog",)
"""Nodes without parameter services, so that requests cannot keep them busy."""


def endpoints_of(node: str) -> Endpoints:
    """All of a node's topics and services.

    Raises:
        KeyError: no such node.
    """
    common = COMMON._replace(serves=()) if node in UNASKED_NODES else COMMON
    parts = [NODES[node], common, *([LIFECYCLE] if node in LIFECYCLE_NODES else [])]
    return Endpoints(*(tuple(dict.fromkeys(sum(same, ()))) for same in zip(*parts)))
