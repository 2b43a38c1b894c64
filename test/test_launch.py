"""What the launch file starts.

The packages launch and launch_ros come with a ROS installation only, not from PyPI. Stand-ins that
remember their arguments take their place here; nothing is started.
"""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import rclpy
import yaml
from paths import ROOT
from rclpy.context import Context

from contact_id_controller.ros.command_watchdog import CommandWatchdogNode
from contact_id_controller.ros.controller import ControllerNode
from contact_id_controller.runs.setup import ESTIMATE_PATIENCE_S, WAIT_FOR_PLAN_S
from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.controller import ControllerSettings

FILE = ROOT / "launch" / "contact_id.launch.py"


class _Stand:
    """Remembers what it was made with."""

    def __init__(self, *arguments, **keywords):
        self.arguments, self.keywords = arguments, keywords

    def perform(self, context):
        """The value of a LaunchConfiguration."""
        return context[self.arguments[0]]


STANDS = {
    "launch": "LaunchDescription",
    "launch.actions": "DeclareLaunchArgument LogInfo OpaqueFunction RegisterEventHandler Shutdown",
    "launch.event_handlers": "OnProcessExit OnProcessIO",
    "launch.substitutions": "LaunchConfiguration",
    "launch_ros": "",
    "launch_ros.actions": "Node LifecycleNode",
    "ament_index_python": "",
}
"""Modules of ROS, and the classes in each."""


@pytest.fixture
def launch_file(monkeypatch):
    """The names that the launch file defines."""

    def module(name, **content):
        made = ModuleType(name)
        vars(made).update(content, __spec__=ModuleSpec(name, None))
        monkeypatch.setitem(sys.modules, name, made)

    for name, classes in STANDS.items():
        module(name, **{each: type(each, (_Stand,), {}) for each in classes.split()})
    module(
        "ament_index_python.packages",
        get_package_share_directory=lambda name: str(ROOT),
        PackageNotFoundError=KeyError,
    )
    content = {}
    exec(compile(FILE.read_text(encoding="utf-8"), str(FILE), "exec"), content)
    return SimpleNamespace(**content)


def _actions(launch_file, **changes):
    """What is done for the given launch arguments."""
    description = launch_file.generate_launch_description().arguments[0]
    *declared, opaque = description
    values = {entry.arguments[0]: entry.keywords["default_value"] for entry in declared}
    for entry in declared:
        assert values[entry.arguments[0]] in entry.keywords.get("choices", values.values())
    assert changes.keys() <= values.keys()
    return opaque.keywords["function"]({**values, **changes})


def _start(launch_file, **changes):
    """Executable -> arguments of each node for the given launch arguments."""
    actions = _actions(launch_file, **changes)
    return {
        action.keywords["executable"]: action.keywords
        for action in actions
        if "executable" in action.keywords
    }


def test_everything_is_started_by_default(launch_file):
    nodes = _start(launch_file)
    assert nodes.keys() == {"controller", "gait_planner", "simulated_robot"}
    config = ROOT / "config" / "quadruped.yaml"
    sections = yaml.safe_load(config.read_text(encoding="utf-8"))
    for name, node in nodes.items():
        assert node["name"] == name and name in sections, "the section would not be read"
        assert Path(node["parameters"][0]) == config
    assert {"use_sim_time": True} in nodes["controller"]["parameters"]


def test_the_other_robot_is_one_argument(launch_file):
    nodes = _start(launch_file, robot="solo12")
    assert {node["parameters"][0] for node in nodes.values()} == {str(ROOT / "config/solo12.yaml")}


def test_on_a_real_robot_nothing_is_simulated(launch_file):
    nodes = _start(
        launch_file,
        simulate="false",
        planner="false",
        config="/robot.yaml",
        commands="/effort_controller/commands",
    )
    assert nodes.keys() == {"controller"}
    controller = nodes["controller"]
    assert controller["parameters"][0] == "/robot.yaml"
    assert {"use_sim_time": False} in controller["parameters"]
    assert ("commands", "/effort_controller/commands") in controller["remappings"]


def test_friction_and_solver_of_the_file_hold_unless_chosen(launch_file):
    assert _start(launch_file, simulate="false")["controller"]["parameters"][-1] == {
        "autostart": True
    }
    chosen = _start(
        launch_file, simulate="false", friction="none", solver="none", autostart="false"
    )
    assert chosen["controller"]["parameters"][-1] == {
        "autostart": False,
        "friction": "none",
        "solver": "none",
    }


def test_in_simulation_lockstep_is_the_default_for_controller_and_simulated_robot(launch_file):
    for changes in ({}, {"mode": "lockstep"}):
        nodes = _start(launch_file, **changes)
        assert nodes["controller"]["parameters"][-1]["mode"] == "lockstep"
        assert nodes["simulated_robot"]["parameters"][-1] == {
            "mode": "lockstep",
            "wait_for_plan_s": WAIT_FOR_PLAN_S,
        }
    assert nodes["controller"]["parameters"][-1]["planner_required"]
    alone = _start(launch_file, planner="false")
    assert alone["simulated_robot"]["parameters"][-1]["wait_for_plan_s"] == 0.0
    assert not alone["controller"]["parameters"][-1]["planner_required"]
    real = _start(launch_file, mode="real_time")
    assert real["simulated_robot"]["parameters"][-1]["mode"] == "real_time"
    assert real["controller"]["parameters"][-1]["mode"] == "real_time"


def test_on_an_estimate_nobody_hears_the_simulators_truth(launch_file):
    nodes = _start(launch_file, state="estimated")
    assert nodes.keys() == {"controller", "gait_planner", "simulated_robot", "dynamics_estimator"}
    estimator = nodes["dynamics_estimator"]
    assert estimator["parameters"][-1] == {"mode": "lockstep", "autostart": True}
    assert {"use_sim_time": True} in estimator["parameters"]
    simulated = nodes["simulated_robot"]["parameters"][-1]
    assert simulated["ground_truth_topics"] == "separate" and simulated["sensors"] == "good"
    # The same as `contact_id demo --state estimated`.
    controller = nodes["controller"]["parameters"][-1]
    assert controller["state_timeout_s"] == ESTIMATE_PATIENCE_S
    noisy = _start(launch_file, sensors="cheap")
    assert noisy["simulated_robot"]["parameters"][-1]["sensors"] == "cheap"
    assert "dynamics_estimator" not in noisy
    real = _start(launch_file, state="estimated", simulate="false", planner="false")
    assert real.keys() == {"controller", "dynamics_estimator"}
    assert real["dynamics_estimator"]["parameters"][-1]["mode"] == "real_time"
    assert "state_timeout_s" not in real["controller"]["parameters"][-1]


def test_a_wrong_robot_is_refused_with_the_robots_there_are(launch_file):
    with pytest.raises(ValueError, match="'anymal_c', 'bolt', 'g1', 'go2', 'quadruped'"):
        _start(launch_file, robot="unicorn")
    with pytest.raises(ValueError, match="robot is 'template'"):
        _start(launch_file, robot="template")


def test_real_time_runs_at_the_factor_that_is_asked_for(launch_file):
    robot = _start(launch_file, mode="real_time", real_time_factor="0.25")["simulated_robot"]
    assert robot["parameters"][-1]["real_time_factor"] == 0.25
    for wrong in ("0", "2", "fast", "nan"):
        with pytest.raises(ValueError, match="real_time_factor"):
            _start(launch_file, mode="real_time", real_time_factor=wrong)
    with pytest.raises(ValueError, match="mode:=real_time"):
        _start(launch_file, real_time_factor="0.5")


def test_the_planner_of_whole_bodies_is_one_argument(launch_file):
    nodes = _start(launch_file, planner="kinodynamic_planner", config="/talos.yaml")
    assert nodes.keys() == {"controller", "kinodynamic_planner", "simulated_robot"}
    assert nodes["kinodynamic_planner"]["name"] == "kinodynamic_planner"
    assert nodes["simulated_robot"]["parameters"][-1]["wait_for_plan_s"] == 0.0


def test_duration_is_that_of_the_simulation(launch_file):
    robot = _start(launch_file, duration_s="30")["simulated_robot"]
    assert robot["parameters"][-1]["duration_s"] == 30.0
    for wrong in ("soon", "-1", "nan", "inf"):
        with pytest.raises(ValueError, match="duration_s"):
            _start(launch_file, duration_s=wrong)


@pytest.mark.parametrize(
    "output, sentence",
    [
        (b"[INFO] ended by fall after 1.200 s: 1200 periods\n", "ended by fall after 1.200 s"),
        (
            b"[INFO] ended by duration after 30.000 s, the robot on its feet 3.12 m from its start: x\n",
            "ended by duration after 30.000 s, the robot on its feet 3.12 m from its start",
        ),
        (b"Killed\n", "ended with exit code -9"),
    ],
)
def test_the_launch_ends_with_the_simulation_and_says_how(launch_file, output, sentence):
    *_, robot, listening, ending = _actions(launch_file)
    assert robot.keywords["executable"] == "simulated_robot"
    listen, end = (handler.arguments[0].keywords for handler in (listening, ending))
    assert listen["target_action"] is end["target_action"] is robot
    for stream in ("on_stdout", "on_stderr"):
        listen[stream](SimpleNamespace(text=b"something else\n"))
    listen["on_stderr"](SimpleNamespace(text=output))
    message, shutdown = end["on_exit"](SimpleNamespace(returncode=-9), None)
    assert sentence in message.keywords["msg"] and sentence in shutdown.keywords["reason"]


def test_the_watchdog_stands_between_controller_and_robot(launch_file):
    nodes = _start(launch_file, watchdog="true", commands="/effort_controller/commands")
    assert ("commands", "commands_in") in nodes["controller"]["remappings"]
    watchdog = nodes["command_watchdog"]
    assert watchdog["respawn"] and "respawn" not in nodes["controller"]
    assert watchdog["respawn_delay"] == 1.0
    assert ("commands", "/effort_controller/commands") in watchdog["remappings"]
    assert {"damp_before_first_command": False} in watchdog["parameters"]
    real = _start(launch_file, watchdog="true", simulate="false")["command_watchdog"]
    assert {"damp_before_first_command": True} in real["parameters"]
    assert {"commanders": ["/controller"]} in watchdog["parameters"]
    alone = _start(launch_file)["controller"]["parameters"]
    assert nodes["controller"]["parameters"][-1]["second_commander"] == "report"
    assert not any("second_commander" in part for part in alone[1:]), "nobody refuses the other"
    with pytest.raises(ValueError, match="real_time"):
        _start(launch_file, watchdog="true", mode="lockstep")


def test_the_start_ramp_is_left_out_only_where_the_robot_is_simulated(launch_file):
    assert _start(launch_file)["controller"]["parameters"][-1]["start_ramp_s"] == 0.0
    real = _start(launch_file, simulate="false")["controller"]["parameters"]
    assert ControllerSettings().start_ramp_s == 0.5
    assert not any("start_ramp_s" in part for part in real[1:])


def test_nobody_beyond_this_machine_finds_the_nodes_unless_asked(launch_file, monkeypatch):
    def ranges(**changes):
        nodes = _start(launch_file, watchdog="true", state="estimated", **changes)
        assert len(nodes) == 5
        return {node["additional_env"]["ROS_AUTOMATIC_DISCOVERY_RANGE"] for node in nodes.values()}

    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    assert ranges() == {"LOCALHOST"}
    assert ranges(discovery="SUBNET") == {"SUBNET"}
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    assert ranges() == {"SUBNET"}, "whoever sets it has widened it"
    assert ranges(discovery="OFF") == {"OFF"}


@pytest.mark.parametrize("watchdog", ["false", "true"])
def test_ros2_control_is_one_argument_topic_and_order_follow(launch_file, watchdog):
    nodes = _start(
        launch_file, simulate="false", ros2_control="/effort_controller", watchdog=watchdog
    )
    last = nodes["command_watchdog" if watchdog == "true" else "controller"]
    assert ("commands", "/effort_controller/commands") in last["remappings"]
    for name in nodes.keys() & {"controller", "command_watchdog"}:
        assert {"group_controller": "/effort_controller"} in nodes[name]["parameters"]
    for wrong in ({"simulate": "true"}, {"simulate": "false", "commands": "elsewhere"}):
        with pytest.raises(ValueError, match="ros2_control"):
            _start(launch_file, ros2_control="effort_controller", **wrong)


@pytest.mark.parametrize("watchdog", ["false", "true"])
def test_the_commands_of_every_interface_go_to_the_group_controller(launch_file, watchdog):
    nodes = _start(launch_file, simulate="false", ros2_control="legs", watchdog=watchdog)
    last = nodes["command_watchdog" if watchdog == "true" else "controller"]
    found = dict(last["remappings"])
    rows = {row.topic: row.host for row in INTERFACES.values()}
    for topic, host in rows.items():
        assert found[topic] == (host.topic_of("legs") if host else topic)
    assert found["commands"] == found["robot_side_trajectory"] == "/legs/commands"
    assert found["control"] == "/control", "linear_feedback_controller listens beside its own name"


def test_the_command_interface_is_one_argument_for_all_nodes(launch_file):
    nodes = _start(launch_file, command_interface="joint_trajectory", watchdog="true")
    for name in ("controller", "command_watchdog", "simulated_robot"):
        given = {
            key: value for part in nodes[name]["parameters"][1:] for key, value in part.items()
        }
        assert given["command_interface"] == "joint_trajectory"
    assert ("joint_commands", "joint_commands_in") in nodes["controller"]["remappings"]
    assert ("joint_commands", "joint_commands") in nodes["command_watchdog"]["remappings"]
    real = _start(launch_file, simulate="false", ros2_control="/legs")["controller"]
    assert ("joint_commands", "/legs/joint_trajectory") in real["remappings"]
    assert not any("command_interface" in part for part in real["parameters"][1:])


def test_rviz_is_started_with_our_setup_and_the_robots_description(launch_file):
    assert "rviz2" not in _start(launch_file)
    nodes = _start(launch_file, rviz="true")
    assert "robot_state_publisher" not in nodes, "the simulated robot shows itself"
    assert nodes["simulated_robot"]["parameters"][-1]["publish_robot"]
    nodes = _start(launch_file, rviz="true", simulate="false")
    rviz, description = nodes["rviz2"], nodes["robot_state_publisher"]
    assert rviz["package"] == "rviz2" and description["package"] == "robot_state_publisher"
    _, file, _, frame = rviz["arguments"]
    assert Path(file).is_file() and frame == "world"
    assert "<robot" in description["parameters"][-1]["robot_description"]
    for node in (rviz, description):
        assert {"use_sim_time": False} in node["parameters"]
        assert node["additional_env"] == nodes["controller"]["additional_env"]
    nodes = _start(launch_file, rviz="true", state="estimated")
    assert "robot_state_publisher" in nodes
    assert "publish_robot" not in nodes["simulated_robot"]["parameters"][-1]
    assert nodes["rviz2"]["arguments"][-1] == "odom"
    assert nodes["rviz2"]["parameters"] == [{"use_sim_time": True}]


@pytest.mark.parametrize("node, simulate", [("controller", True), ("command_watchdog", False)])
def test_a_robot_that_is_stopped_since_before_is_not_started(launch_file, node, simulate):
    """It waited for ever, whatever the duration."""
    config = ROOT / "config" / "quadruped.yaml"
    made = _latched(node, config, simulate)
    changes = {"config": str(config), "simulate": str(simulate).lower(), "watchdog": "true"}
    _start(launch_file, **changes)
    made.engage()
    assert not made.keep()
    with pytest.raises(RuntimeError, match=f"stop of /{node} .*engaged.*rm {made.path}") as refused:
        _start(launch_file, **changes)
    assert "\n" not in str(refused.value)
    _start(
        launch_file, **changes, autostart="false"
    )  # somebody is there who releases and activates
    _start(launch_file, **{**changes, "simulate": str(not simulate).lower()})
    _start(launch_file, **{**changes, "config": str(ROOT / "config" / "solo12.yaml")})
    made.release()
    _start(launch_file, **changes)


def _latched(name, config, simulate):
    """The latch that a node makes for itself with a parameter file."""
    context = Context()
    words = ["--params-file", str(config), "-p", f"use_sim_time:={str(simulate).lower()}"]
    rclpy.init(context=context)
    try:
        kind = {"controller": ControllerNode, "command_watchdog": CommandWatchdogNode}[name]
        node = kind(context=context, cli_args=["--ros-args", *words])
        latch = node.latch if name == "controller" else node.watchdog._latch
        node.destroy_node()
    finally:
        context.destroy()
    return latch
