"""What the launch file starts.

The packages launch and launch_ros come with a ROS installation only, not from PyPI. Stand-ins that
remember their arguments take their place here; nothing is started.
"""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml
from paths import ROOT

FILE = ROOT / "launch" / "contact_id.launch.py"


class _Stand:
    """Remembers what it was made with."""

    def __init__(self, *arguments, **keywords):
        self.arguments, self.keywords = arguments, keywords


@pytest.fixture
def launch_file(monkeypatch):
    """The names that the launch file defines."""

    def module(name, **content):
        made = ModuleType(name)
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, name, made)

    class LaunchConfiguration(_Stand):
        def perform(self, context):
            return context[self.arguments[0]]

    classes = {
        name: type(name, (_Stand,), {})
        for name in (
            "LaunchDescription",
            "DeclareLaunchArgument",
            "OpaqueFunction",
            "Node",
            "LifecycleNode",
        )
    }
    module("launch", LaunchDescription=classes["LaunchDescription"])
    module(
        "launch.actions",
        DeclareLaunchArgument=classes["DeclareLaunchArgument"],
        OpaqueFunction=classes["OpaqueFunction"],
    )
    module("launch.substitutions", LaunchConfiguration=LaunchConfiguration)
    module("launch_ros")
    module("launch_ros.actions", Node=classes["Node"], LifecycleNode=classes["LifecycleNode"])
    module("ament_index_python")
    module("ament_index_python.packages", get_package_share_directory=lambda name: str(ROOT))
    content = {}
    exec(compile(FILE.read_text(encoding="utf-8"), str(FILE), "exec"), content)
    return SimpleNamespace(**content)


def _start(launch_file, **changes):
    """Executable -> arguments of each node for the given launch arguments."""
    description = launch_file.generate_launch_description().arguments[0]
    *declared, opaque = description
    values = {entry.arguments[0]: entry.keywords["default_value"] for entry in declared}
    assert changes.keys() <= values.keys()
    nodes = opaque.keywords["function"]({**values, **changes})
    return {node.keywords["executable"]: node.keywords for node in nodes}


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


def test_lockstep_is_chosen_for_controller_and_simulated_robot_together(launch_file):
    nodes = _start(launch_file, mode="lockstep")
    assert nodes["controller"]["parameters"][-1]["mode"] == "lockstep"
    assert nodes["simulated_robot"]["parameters"][-1] == {
        "mode": "lockstep",
        "wait_for_plan_s": 0.1,
    }
    assert (
        _start(launch_file, mode="lockstep", planner="false")["simulated_robot"]["parameters"][-1][
            "wait_for_plan_s"
        ]
        == 0.0
    )


def test_the_watchdog_stands_between_controller_and_robot(launch_file):
    nodes = _start(launch_file, watchdog="true", commands="/effort_controller/commands")
    assert ("commands", "commands_in") in nodes["controller"]["remappings"]
    watchdog = nodes["command_watchdog"]
    assert ("commands", "/effort_controller/commands") in watchdog["remappings"]
    assert {"damp_before_first_command": False} in watchdog["parameters"]
    real = _start(launch_file, watchdog="true", simulate="false")["command_watchdog"]
    assert {"damp_before_first_command": True} in real["parameters"]
    with pytest.raises(ValueError, match="real_time"):
        _start(launch_file, watchdog="true", mode="lockstep")


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
