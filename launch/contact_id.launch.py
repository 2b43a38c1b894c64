"""Starts controller, gait planner and simulated robot, or those of them that are requested.

    ros2 launch contact_id_controller contact_id.launch.py robot:=solo12 duration_s:=30
    ros2 launch contact_id_controller contact_id.launch.py simulate:=false \\
        config:=/path/to/robot.yaml ros2_control:=effort_controller watchdog:=true

In simulation the nodes go in lockstep unless `mode:=real_time` is given, and the launch ends when the
simulation does, saying how. Where an emergency stop is engaged since an earlier run nothing is started.
"""

import math
import os
import re
import shlex
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit, OnProcessIO
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node

from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.command_interfaces import TOPICS as COMMANDS
from contact_id_controller.settings.robot_files import file_of

PACKAGE = "contact_id_controller"
YES_OR_NO = ("true", "false")

PLANNERS = ("gait_planner", "kinodynamic_planner")

WAIT_FOR_PLAN_S = 0.1
"""How far past its newest plan the simulated robot goes in lockstep."""

DISCOVERY = "ROS_AUTOMATIC_DISCOVERY_RANGE"

ARGUMENTS = {
    "robot": dict(
        default_value="quadruped",
        description="name of a file in the package's config/ or config/bipeds/, without .yaml",
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
        default_value="auto",
        choices=("auto", "lockstep", "real_time"),
        description="of the simulation. lockstep: the simulated robot waits for each command, and "
        "walks alike on every machine; real_time: it does not wait, and falls where the machine is "
        "too slow; auto: lockstep, or real_time with the watchdog",
    ),
    "real_time_factor": dict(
        default_value="",
        description="of the simulation with mode:=real_time: simulated time that passes in a second, "
        "0.01 to 1; smaller where the machine is too slow; empty: as in the file",
    ),
    "state": dict(
        default_value="given",
        choices=("given", "estimated"),
        description="given: pose and twist of the base come on odometry from elsewhere, in simulation "
        "from the simulator; estimated: node dynamics_estimator tells them, contacts and forces from "
        "imu and joint_states",
    ),
    "sensors": dict(
        default_value="",
        description="preset of the simulated sensors: perfect, good, motor_currents or cheap; empty: "
        "as in the file, good where the state is estimated",
    ),
    "duration_s": dict(
        default_value="",
        description="simulated time after which the launch ends; empty: as in the file",
    ),
    "planner": dict(
        default_value="true",
        choices=(*YES_OR_NO, *PLANNERS),
        description="which planner to start: gait_planner, also as true; kinodynamic_planner, which "
        "steps over footholds; false: none",
    ),
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
    "command_interface": dict(
        default_value="",
        choices=["", *INTERFACES],
        description="what is commanded: efforts, or set-points and efforts over a horizon for a "
        "joint_trajectory_controller, on /<name>/joint_trajectory with ros2_control:=name, or torques "
        "with feedback of the whole state for linear_feedback_controller, on control; empty: "
        "as in the file",
    ),
    "rviz": dict(
        default_value="false",
        choices=YES_OR_NO,
        description="show forces, friction cones, base and plan in RViz 2, and the robot where /tf says "
        "where its base is (with state:=estimated, or from your own estimator); needs the packages rviz2 "
        "and robot_state_publisher",
    ),
    "commands": dict(default_value="commands", description="topic of the efforts"),
    "discovery": dict(
        default_value="",
        choices=["", "LOCALHOST", "SUBNET", "OFF"],
        description="who finds these nodes: LOCALHOST: processes of this machine; SUBNET: everybody on "
        "the network, who can then command, stop and set parameters (docs/security.md); OFF: only "
        f"static peers; empty: as {DISCOVERY} says, LOCALHOST where it is not set",
    ),
    "joint_states": dict(default_value="joint_states", description="topic of the joint states"),
    "odometry": dict(
        default_value="odometry", description="topic of pose and twist of the floating base"
    ),
}
ONLY_COMMANDER = {"commanders": ["/controller"]}
"""Of the watchdog: the controller that is started here, whoever else sends commands."""

STATES = ("joint_states", "odometry")

RESPAWN_S = 1.0
"""A watchdog with a mistake in its parameters ends at once, and says so each time."""

ON_AN_ESTIMATE = {"contact_sources": ["state", "schedule"]}
"""What changes in the controller where its distance from the ground is not known well enough."""

ESTIMATE_PATIENCE_S = 5.0
"""In lockstep a state waits for its estimate for so long, wall time."""


def generate_launch_description():
    """The arguments, and the nodes that they ask for."""
    declarations = [DeclareLaunchArgument(name, **rest) for name, rest in ARGUMENTS.items()]
    return LaunchDescription([*declarations, OpaqueFunction(function=make_nodes)])


def make_nodes(context):
    """The nodes, now that the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    yes = {name: value[name] == "true" for name in ("simulate", "watchdog", "autostart", "rviz")}
    planner = {"true": PLANNERS[0], "false": ""}.get(value["planner"], value["planner"])
    group = value["ros2_control"].strip("/")
    if group:
        _check_ros2_control(value, yes["simulate"])
    interface = {name: value[name] for name in ("command_interface",) if value[name]}
    order = [{"group_controller": f"/{group}"}] if group else []
    mode = _mode(value["mode"], yes["watchdog"])
    config = value["config"] or str(file_of(value["robot"]))
    if yes["autostart"]:
        _refuse_a_stopped_robot(config, yes["watchdog"], yes["simulate"])
    simulated_time = {"use_sim_time": yes["simulate"]}
    estimated = value["state"] == "estimated"
    chosen = _chosen(value, mode if yes["simulate"] else None, planner, estimated) | interface
    states = [(topic, value[topic]) for topic in STATES]
    common = {
        "package": PACKAGE,
        "output": "screen",
        "additional_env": {
            DISCOVERY: value["discovery"] or os.environ.get(DISCOVERY) or "LOCALHOST"
        },
        "remappings": [*states, *_command_topics(group, value["commands"]).items()],
    }
    guarded = yes["watchdog"]
    if guarded:
        chosen["second_commander"] = "report"  # the watchdog passes on the commands of one only
    inner = [(topic, f"{topic}_in") for topic in COMMANDS]
    unguarded = {**common, "remappings": [*inner, *states]}
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
        first = {"damp_before_first_command": not yes["simulate"], **interface}
        nodes.append(_watchdog([config, simulated_time, *order, ONLY_COMMANDER, first], common))
    if estimated:
        pace = {"mode": mode if yes["simulate"] else "real_time", "autostart": yes["autostart"]}
        nodes.append(
            LifecycleNode(
                executable="dynamics_estimator",
                name="dynamics_estimator",
                namespace="",
                parameters=[config, simulated_time, pace],
                **common,
            )
        )
    if planner:
        nodes.append(
            Node(
                executable=planner,
                name=planner,
                parameters=[config, simulated_time],
                **common,
            )
        )
    # On an estimate, what is shown is what is believed.
    shows_itself = yes["rviz"] and yes["simulate"] and not estimated
    if yes["rviz"]:
        nodes += _rviz(config, simulated_time, estimated, shows_itself, common)
    if yes["simulate"]:
        pace = _pace(value, mode, planner, estimated, shows_itself) | interface
        nodes += _simulated_robot(config, pace, value["duration_s"], common)
    return nodes


def _command_topics(group, commands):
    """Topic of each command interface -> where its commands go: to the group controller, where there is one."""
    own = dict(zip(COMMANDS, COMMANDS))
    if not group:
        return own | {"commands": commands}
    return own | {row.topic: row.host.topic_of(group) for row in INTERFACES.values() if row.host}


def _watchdog(parameters, common):
    """The command watchdog; it starts its own workers again, respawning is for the end of their keeper."""
    return Node(
        executable="command_watchdog",
        name="command_watchdog",
        respawn=True,
        respawn_delay=RESPAWN_S,
        parameters=parameters,
        **common,
    )


def _chosen(value, mode, planner, estimated):
    """What the arguments change in the controller's parameters; mode: of the simulation, None without one."""
    chosen = {name: value[name] for name in ("friction", "solver") if value[name]}
    if mode:
        chosen["mode"] = mode
        chosen["start_ramp_s"] = 0.0  # it already stands on its feet
        chosen["planner_required"] = planner == PLANNERS[0]
    if estimated:
        chosen |= ON_AN_ESTIMATE
        if mode == "lockstep":
            chosen["state_timeout_s"] = ESTIMATE_PATIENCE_S
    return chosen


def _pace(value, mode, planner, estimated, shows_itself):
    """What the arguments change in the simulated robot's parameters."""
    # A gait's plans follow each other; no process may wait for a whole body's.
    waits = planner == PLANNERS[0]
    pace = {"mode": mode, "wait_for_plan_s": WAIT_FOR_PLAN_S if waits else 0.0}
    if estimated:
        pace["ground_truth_topics"] = "separate"
    if shows_itself:
        pace["publish_robot"] = True
    if value["real_time_factor"]:
        pace["real_time_factor"] = _factor(value["real_time_factor"], mode)
    sensors = value["sensors"] or ("good" if estimated else "")
    if sensors:
        pace["sensors"] = sensors
    return pace


def _rviz(config, simulated_time, estimated, shows_itself, common):
    """RViz, and who tells it what the robot looks like where the simulated robot does not."""
    from contact_id_controller.robot import resolve_urdf
    from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
    from contact_id_controller.settings.parameter_file import ParameterFile

    file = ParameterFile(config)
    urdf = resolve_urdf(file.section("controller")["urdf"])
    frame = "world"
    if estimated:
        told = file.section("dynamics_estimator") if "dynamics_estimator" in file.nodes else {}
        frame = told.get("odometry_frame", DynamicsEstimatorSettings.odometry_frame)
    setup = Path(get_package_share_directory(PACKAGE)) / "config" / "rviz" / "contact_id.rviz"
    rviz = Node(
        **{**common, "package": "rviz2"},
        executable="rviz2",
        name="rviz2",
        arguments=["-d", str(setup), "-f", frame],
        parameters=[simulated_time],
    )
    if shows_itself:
        return [rviz]
    description = {"robot_description": urdf.read_text(encoding="utf-8")}
    return [
        Node(
            **{**common, "package": "robot_state_publisher"},
            executable="robot_state_publisher",
            name="robot_state_publisher",
            parameters=[simulated_time, description],
        ),
        rviz,
    ]


def _simulated_robot(config, pace, duration_s, common):
    """The simulated robot, with whose end the launch ends."""
    if duration_s:
        pace["duration_s"] = _seconds(duration_s)
    robot = Node(
        executable="simulated_robot",
        name="simulated_robot",
        parameters=[config, pace],
        **common,
    )
    said = []

    def listen(event):
        said.extend(re.findall(r"ended by [^:\n]*", event.text.decode(errors="replace")))

    def end(event, context):
        how = said[-1] if said else f"ended with exit code {event.returncode}"
        sentence = f"the simulation {how}"
        return [LogInfo(msg=sentence), Shutdown(reason=sentence)]

    return [
        robot,
        RegisterEventHandler(OnProcessIO(target_action=robot, on_stdout=listen, on_stderr=listen)),
        RegisterEventHandler(OnProcessExit(target_action=robot, on_exit=end)),
    ]


def _mode(mode, watchdog):
    if mode == "lockstep" and watchdog:
        raise ValueError("watchdog:=true needs mode:=real_time: in lockstep commands may be late")
    if mode == "auto":
        return "real_time" if watchdog else "lockstep"
    return mode


def _refuse_a_stopped_robot(config, watchdog, simulated):
    """End here where an emergency stop of an earlier run would keep the robot from moving for ever."""
    from contact_id_controller.exceptions import ConfigurationError
    from contact_id_controller.safety.latch import EmergencyLatch, robot_name, state_folder
    from contact_id_controller.settings.parameter_file import ParameterFile

    for node in ("controller", "command_watchdog") if watchdog else ("controller",):
        try:
            values = ParameterFile(config).section(node)
        except ConfigurationError:  # the node says what is wrong with the file
            values = {}
        folder, urdf = (str(values.get(name, "")) for name in ("state_folder", "urdf"))
        latch = EmergencyLatch(
            state_folder(folder), f"/{node}", robot_name(urdf), simulated=simulated
        )
        if latch.engaged:
            raise RuntimeError(
                f"the emergency stop of /{node} is engaged since an earlier run: when the robot may "
                f"move again, release it with `{shlex.join(['rm', *latch.files])}`"
            )


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"duration_s is {text!r}, must be a number, 0 or more; 0: for ever")
    return seconds


def _factor(text, mode):
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0.01 <= factor <= 1.0:
        raise ValueError(f"real_time_factor is {text!r}, must be a number from 0.01 to 1")
    if mode != "real_time":
        raise ValueError(
            "real_time_factor needs mode:=real_time: in lockstep time does not pace the simulation"
        )
    return factor


def _check_ros2_control(value, simulate):
    if simulate:
        raise ValueError("ros2_control:=... is for a real robot: add simulate:=false")
    if value["commands"] != ARGUMENTS["commands"]["default_value"]:
        raise ValueError("give ros2_control:=... or commands:=..., not both")
