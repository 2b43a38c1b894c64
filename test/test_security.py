"""Who may say and hear what is written down completely, and what cannot be secured says so."""

import contextlib
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from fnmatch import fnmatchcase
from types import SimpleNamespace

import pytest
from paths import ROOT

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings import endpoints, policies
from contact_id_controller.settings.nodes import TABLES
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.policies import Wiring, policy

FILE = ROOT / policies.PATH


# The policy


def allowed(text, node):
    """(tag, rule) -> names of a node's enclave."""
    root = ElementTree.fromstring(text)
    (enclave,) = [
        each for each in root.iter("enclave") if each.get("path") == f"/contact_id/{node}"
    ]
    found = {}
    for each in enclave.iter():
        for rule in ("publish", "subscribe", "reply", "request"):
            if each.get(rule) is not None:
                assert each.get(rule) == "ALLOW"
                found[rule] = [name.text for name in each]
    return found


def test_the_file_is_what_the_command_writes():
    assert FILE.read_text(encoding="utf-8") == policy(Wiring()), f"run {policies.COMMAND}"


def test_it_is_a_policy_as_sros2_reads_it():
    """Source: ros2/sros2, sros2/policy/schemas/policy.xsd."""
    root = ElementTree.parse(FILE).getroot()
    assert root.tag == "policy" and root.get("version") == "0.2.0"
    assert [child.tag for child in root] == ["enclaves"]
    paths = [each.get("path") for each in root[0]]
    assert len(set(paths)) == len(paths) == len(endpoints.NODES) + 1
    for enclave in root[0]:
        assert enclave.tag == "enclave" and [each.tag for each in enclave] == ["profiles"]
        for profile in enclave[0]:
            assert profile.tag == "profile" and profile.get("ns") and profile.get("node")
            for rules in profile:
                kinds = {"topics": {"publish", "subscribe"}, "services": {"reply", "request"}}
                assert set(rules.attrib) <= kinds[rules.tag] and len(rules)
                assert all(name.tag == rules.tag[:-1] and name.text[0] == "/" for name in rules)


def test_every_node_of_the_package_has_a_row():
    executables = {path.name for path in (ROOT / "scripts").iterdir()}
    assert executables == set(endpoints.NODES) >= set(TABLES)


def test_the_page_lists_them():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert policies.table() in page


def test_commands_go_one_way_only():
    text = policy(Wiring(group="legs"))
    controller, watchdog = allowed(text, "controller"), allowed(text, "command_watchdog")
    assert "/commands_in" in controller["publish"] and "/commands_in" in watchdog["subscribe"]
    assert "/legs/commands" in watchdog["publish"]
    nobody_else = [name for name in endpoints.NODES if name != "command_watchdog"]
    for name in (*nobody_else, "operator"):
        assert "/legs/commands" not in allowed(text, name).get("publish", [])
    for name in endpoints.NODES:
        if name != "controller":
            assert "/commands_in" not in allowed(text, name).get("publish", [])
    assert "/controller_manager/get_parameters" in watchdog["request"]


def test_wirings_differ_where_they_must():
    alone = allowed(policy(Wiring(watchdog=False, group="a/legs")), "controller")
    assert "/a/legs/commands" in alone["publish"] and "/commands_in" not in alone["publish"]
    assert "/a/controller_manager/get_parameters" in alone["request"]
    other = policy(Wiring(interface="joint_trajectory", group="legs", namespace="/left"))
    watchdog = allowed(other, "command_watchdog")
    assert "/legs/joint_trajectory" in watchdog["publish"]
    assert "/left/joint_commands_in" in watchdog["subscribe"]
    assert not any(name.endswith("/commands_in") for name in watchdog["subscribe"])
    assert "/left/command_watchdog/reset" in watchdog["reply"]


def test_names_that_are_none_are_refused():
    for wiring in (Wiring(group="a b"), Wiring(namespace='"/><x')):
        with pytest.raises(ConfigurationError, match="must be names of ROS"):
            policy(wiring)


# The nodes


def test_a_running_node_has_no_topic_and_no_service_that_its_row_lacks():
    """And the rows name nothing that no node has: each is found in one of the nodes."""
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
    context = rclpy.Context()
    rclpy.init(context=context)
    seen = {name: {part: set() for part in endpoints.Endpoints._fields} for name in endpoints.NODES}
    try:
        for name, make in nodes_of(context):
            with contextlib.closing(Closing(make())) as made:
                real = endpoints_of(made.node)
                look(name, made.node, real, seen[name])
    finally:
        rclpy.shutdown(context=context)
    missing = {
        (name, part, row)
        for name in endpoints.NODES
        if name not in NOT_MADE
        for part in endpoints.Endpoints._fields
        for row in getattr(endpoints.endpoints_of(name), part)
        if row not in seen[name][part]
    }
    assert {each for each in missing - WHILE_OTHERS_SEND if each[2] not in ONLY_ELSEWHERE} == set()


NOT_MADE = {"viewer"}
"""It has a page, and test_viewer.py has its names; its row is read against these by eye."""

ONLY_ELSEWHERE = {
    "/clock",  # with use_sim_time
    "control",  # with messages that must be installed
    "control_in",
    "lowcmd",
    "lowcmd_in",
    "*/get_parameters",  # for the moment of a question
    "/tf",  # with messages that must be installed
}

TOPICS = ("effort", "joint_trajectory")
AT_THE_ROBOT = ("robot_side_trajectory", "robot_side_feedback", "low_level")
LOCAL = {"local_position_gain": [5.0], "local_velocity_gain": [0.1]}

WHILE_OTHERS_SEND = {
    (node, "subscribes", topic)
    for node in ("controller", "command_watchdog")
    for topic in ("commands", "joint_commands", *AT_THE_ROBOT)
}
"""They listen on their own topics while somebody else has a publisher there."""


class Closing:
    def __init__(self, node):
        self.node = node

    def close(self):
        self.node.destroy_node()


def endpoints_of(node):
    """What discovery says of a node, of itself."""
    who = node.get_name(), node.get_namespace()
    own = f"/{who[0]}/"
    questions = (
        node.get_publisher_names_and_types_by_node,
        node.get_subscriber_names_and_types_by_node,
        node.get_service_names_and_types_by_node,
        node.get_client_names_and_types_by_node,
    )
    found = []
    for ask in questions:
        names = [name for name, _ in ask(*who)]
        found.append([f"~/{name[len(own) :]}" if name.startswith(own) else name for name in names])
    return endpoints.Endpoints(*found)


def look(name, node, real, seen):
    rows = endpoints.endpoints_of(name)
    for part in rows._fields:
        for found in getattr(real, part):
            fitting = [
                row
                for row in getattr(rows, part)
                if fnmatchcase(found, row if row[0] in "/~" else f"/{row}")
            ]
            assert fitting, f"{name} {part} {found}, which its row in settings/endpoints.py lacks"
            seen[part].update(fitting)


def nodes_of(context):
    """(name, how it is made) of all nodes, in the variants that have other topics."""
    from rclpy.parameter import Parameter
    from ros_bench import parameters as controller_parameters
    from test_dynamics_estimator_node import parameters as estimator_parameters
    from test_gait_planner_node import parameters as gait_parameters
    from test_simulated_robot_node import parameters as robot_parameters

    from contact_id_controller.ros.command_watchdog import CommandWatchdogNode
    from contact_id_controller.ros.controller import ControllerNode
    from contact_id_controller.ros.dynamics_estimator import DynamicsEstimatorNode
    from contact_id_controller.ros.executor import incidents_of
    from contact_id_controller.ros.gait_planner import GaitPlannerNode
    from contact_id_controller.ros.kinodynamic_planner import KinodynamicPlannerNode
    from contact_id_controller.ros.parameter_service import AnsweringParameterService
    from contact_id_controller.ros.simulated_robot import SimulatedRobot

    def options(values):
        overrides = [Parameter(name, value=value) for name, value in values.items()]
        return {"context": context, "parameter_overrides": overrides}

    def configured(node):
        assert node.trigger_configure().name == "SUCCESS"
        return node

    for changes in (
        {"contact_sources": ["state"]},
        {"contact_sources": ["force"], "command_interface": "joint_trajectory"},
        {"command_interface": "robot_side_trajectory"},
        {"command_interface": "robot_side_feedback"},
        {"command_interface": "low_level"},
    ):
        values = controller_parameters(**changes)
        yield "controller", lambda: configured(ControllerNode(**options(values)))
    for interface in (*TOPICS, *AT_THE_ROBOT):
        values = {"joints": ["a"], "effort_limits_nm": [1.0], "command_interface": interface}
        yield "command_watchdog", lambda: CommandWatchdogNode(**options(values))
    biped = ParameterFile(ROOT / "config/bipeds/talos.yaml").section("gait_planner")
    for values in (gait_parameters(), biped):
        yield "gait_planner", lambda: GaitPlannerNode(**options(values))
    for changes in (
        {"wait_for_plan_s": 0.1, "publish_robot": True},
        {
            "command_interface": "joint_trajectory",
            **LOCAL,
            "ground_truth_topics": "separate",
            "sensors": "good",
            "mounted_sensors": ["force_torque LF_FOOT", "foot_pressure RF_FOOT"],
        },
        *({"command_interface": name, **LOCAL} for name in AT_THE_ROBOT),
    ):
        values = robot_parameters(**changes)
        yield "simulated_robot", lambda: SimulatedRobot(**options(values))
    given = estimator_parameters(
        joint_wrenches=["FL_HAA"], mounted_sensors=["force_torque FL_FOOT", "foot_pressure FR_FOOT"]
    )
    yield (
        "dynamics_estimator",
        lambda: configured(DynamicsEstimatorNode(context=context, parameter_overrides=given)),
    )

    class Unplanned(KinodynamicPlannerNode):
        """Its planner takes long to make, and has no topics."""

        def _configure(self):
            self.settings = SimpleNamespace(execute_at_once=False)
            self._served = AnsweringParameterService(self, incidents_of(self))

    yield "kinodynamic_planner", lambda: Unplanned(context=context)


# What cannot be secured


def run_watchdog(tmp_path, **variables):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    environment = dict(os.environ, PYTHONPATH=str(ROOT), ROS_LOG_DIR=str(tmp_path), **variables)
    words = ["-m", "contact_id_controller.ros.command_watchdog", "--ros-args", "-p", "joints:=['']"]
    return subprocess.run(
        [sys.executable, *words], env=environment, text=True, capture_output=True, timeout=60.0
    )


def test_security_without_a_keystore_is_one_line(tmp_path):
    done = run_watchdog(tmp_path, ROS_SECURITY_ENABLE="true", ROS_SECURITY_STRATEGY="Enforce")
    (line,) = done.stderr.strip().splitlines()
    assert done.returncode == 1
    assert line.startswith("command_watchdog: ROS_SECURITY_ENABLE is true, but ROS reports: ")
    assert "ROS_SECURITY_KEYSTORE is not set, must be a keystore" in line


def test_a_build_without_security_libraries_is_one_line(tmp_path):
    """As that of PyPI; a build that has them refuses these empty files, in one line as well."""
    folder = tmp_path / "enclaves"
    folder.mkdir()
    for name in (
        *("identity_ca.cert.pem", "permissions_ca.cert.pem", "cert.pem", "key.pem"),
        *("governance.p7s", "permissions.p7s"),
    ):
        (folder / name).touch()
    done = run_watchdog(
        tmp_path,
        ROS_SECURITY_ENABLE="true",
        ROS_SECURITY_STRATEGY="Enforce",
        ROS_SECURITY_KEYSTORE=str(tmp_path),
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("command_watchdog: ")]
    assert done.returncode == 1 and len(lines) == 1 and "Traceback" not in done.stderr
    assert (
        "has no security libraries, as none from PyPI has" in lines[0] or "ROS reports" in lines[0]
    )


def test_security_that_nothing_enforces_is_said(tmp_path):
    done = run_watchdog(tmp_path, ROS_SECURITY_ENABLE="true", ROS_SECURITY_STRATEGY="Permissive")
    first, second = done.stderr.strip().splitlines()
    assert "ROS_SECURITY_STRATEGY is not Enforce" in first and "runs unsecured" in first
    assert "ROS_SECURITY" not in second, "its parameters are looked at: it was to run"


def test_without_security_nothing_is_said(tmp_path):
    done = run_watchdog(tmp_path, ROS_SECURITY_ENABLE="false")
    assert "ROS_SECURITY" not in done.stderr and done.returncode == 1
