"""Starts controller, gait planner and simulated robot, or those of them that are asked for.

    ros2 launch contact_id_controller contact_id.launch.py robot:=solo12
    ros2 launch contact_id_controller contact_id.launch.py simulate:=false \\
        config:=/path/to/robot.yaml ros2_control:=effort_controller watchdog:=true
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node

from launch import LaunchDescription

PACKAGE = "contact_id_controller"
YES_OR_NO = ("true", "false")

WAIT_FOR_PLAN_S = 0.1
"""How far past its newest plan the simulated robot goes in lockstep."""

ARGUMENTS = {
    "robot": dict(
        default_value="quadruped",
        description="name of a file in the package's config/, without .yaml",
    ),
    "config": dict(
        default_value="",
        description="parameter file with a section for each node; instead of robot",
    ),
    "friction": dict(default_value="", description="friction model; empty: as in the file"),
    "solver": dict(default_value="", description="solver; empty: as in the file"),
    "simulate": dict(
        default_value="true",
        choices=YES_OR_NO,
        description="start the simulated robot, whose time all nodes then use",
    ),
    "mode": dict(
        default_value="real_time",
        choices=("real_time", "lockstep"),
        description="lockstep: the simulated robot waits for each command, on a slow "
        "machine and for repeatable walks",
    ),
    "planner": dict(default_value="true", choices=YES_OR_NO, description="start the gait planner"),
    "watchdog": dict(
        default_value="false",
        choices=YES_OR_NO,
        description="put the command watchdog between controller and robot; real time only",
    ),
    "autostart": dict(
        default_value="true",
        choices=YES_OR_NO,
        description="the controller configures and activates itself",
    ),
    "ros2_control": dict(
        default_value="",
        description="name of the group controller of ros2_control that takes the "
        "efforts on /<name>/commands; the order of its joints is checked",
    ),
    "commands": dict(default_value="commands", description="topic of the efforts"),
    "joint_states": dict(default_value="joint_states", description="topic of the joint states"),
    "odometry": dict(
        default_value="odometry", description="topic of pose and twist of the floating base"
    ),
}
TOPICS = ("commands", "joint_states", "odometry")


def generate_launch_description():
    """The arguments, and the nodes that they ask for."""
    declarations = [DeclareLaunchArgument(name, **rest) for name, rest in ARGUMENTS.items()]
    return LaunchDescription([*declarations, OpaqueFunction(function=make_nodes)])


def make_nodes(context):
    """The nodes, now that the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    yes = {name: value[name] == "true" for name in ("simulate", "planner", "watchdog", "autostart")}
    group = value["ros2_control"].strip("/")
    if group:
        _check_ros2_control(value, yes["simulate"])
        value["commands"] = f"/{group}/commands"
    order = [{"group_controller": f"/{group}"}] if group else []
    share = Path(get_package_share_directory(PACKAGE))
    config = value["config"] or str(share / "config" / f"{value['robot']}.yaml")
    simulated_time = {"use_sim_time": yes["simulate"]}
    chosen = {name: value[name] for name in ("friction", "solver") if value[name]}
    if yes["simulate"]:
        chosen["mode"] = value["mode"]
        chosen["start_ramp_s"] = 0.0  # it already stands on its feet
    pace = {"mode": value["mode"], "wait_for_plan_s": WAIT_FOR_PLAN_S if yes["planner"] else 0.0}
    common = {
        "package": PACKAGE,
        "output": "screen",
        "remappings": [(topic, value[topic]) for topic in TOPICS],
    }
    guarded = yes["watchdog"]
    if guarded and value["mode"] == "lockstep":
        raise ValueError("watchdog:=true needs mode:=real_time: in lockstep commands may be late")
    unguarded = {**common, "remappings": [("commands", "commands_in"), *common["remappings"][1:]]}
    nodes = [
        LifecycleNode(
            executable="controller",
            name="controller",
            namespace="",
            parameters=[config, simulated_time, *order, {"autostart": yes["autostart"], **chosen}],
            **(unguarded if guarded else common),
        )
    ]
    if guarded:
        # The simulated robot holds itself until its first command.
        first = {"damp_before_first_command": not yes["simulate"]}
        nodes.append(
            Node(
                executable="command_watchdog",
                name="command_watchdog",
                parameters=[config, simulated_time, *order, first],
                **common,
            )
        )
    if yes["planner"]:
        nodes.append(
            Node(
                executable="gait_planner",
                name="gait_planner",
                parameters=[config, simulated_time],
                **common,
            )
        )
    if yes["simulate"]:
        nodes.append(
            Node(
                executable="simulated_robot",
                name="simulated_robot",
                parameters=[config, pace],
                **common,
            )
        )
    return nodes


def _check_ros2_control(value, simulate):
    if simulate:
        raise ValueError("ros2_control:=... is for a real robot: add simulate:=false")
    if value["commands"] != ARGUMENTS["commands"]["default_value"]:
        raise ValueError("give ros2_control:=... or commands:=..., not both")
