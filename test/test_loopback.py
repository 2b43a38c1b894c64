"""Nodes of this machine alone share no memory with their peers, and are found all the same."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from waiting import until

pytest.importorskip("rclpy", reason="needs ROS 2")

from ros_peer import RosPeer
from std_msgs.msg import String

from contact_id_controller.ros import loopback
from contact_id_controller.ros.loopback import PROFILE, PROFILES, RANGE, confine
from contact_id_controller.runs.processes import ros_environment

NODE = """
import sys
from pathlib import Path
from std_msgs.msg import String
from rclpy.node import Node
from contact_id_controller.ros.process import run_node

def serve(node, interrupt):
    publisher = node.create_publisher(String, "answers", 1)
    def answer(message):
        tasks = Path("/proc/self/task").iterdir()
        threads = sorted((task / "comm").read_text().strip() for task in tasks)
        publisher.publish(String(data=" ".join(threads)))
    node.create_subscription(String, "questions", answer, 1)
    import rclpy
    while not interrupt.requested:
        rclpy.spin_once(node, timeout_sec=0.05)
    return 0

sys.exit(run_node("confined", lambda interrupt: Node("confined"), serve, []))
"""


def test_only_who_asks_for_this_machine_alone_gets_the_profile():
    asked = {RANGE: "LOCALHOST"}
    confine(asked)
    assert asked == {RANGE: "SYSTEM_DEFAULT", PROFILES[0]: str(PROFILE)}
    for others in (
        {},
        {RANGE: "SUBNET"},
        {RANGE: "OFF"},
        {RANGE: "LOCALHOST", PROFILES[1]: "mine.xml"},
        {RANGE: "LOCALHOST", loopback.PEERS: "10.0.0.7"},
        {RANGE: "LOCALHOST", loopback.MIDDLEWARE: "rmw_cyclonedds_cpp"},
    ):
        kept = dict(others)
        confine(kept)
        assert kept == others


def test_all_processes_of_a_run_get_it_whoever_is_made_first(monkeypatch, tmp_path):
    for name in (RANGE, *PROFILES, loopback.PEERS, loopback.MIDDLEWARE):
        monkeypatch.delenv(name, raising=False)
    variables = ros_environment(17, tmp_path)
    assert variables[RANGE] == "SYSTEM_DEFAULT" and variables[PROFILES[0]] == str(PROFILE)
    in_the_node = dict(variables)
    confine(in_the_node)
    loopback.send_again_soon(in_the_node)
    assert in_the_node == variables
    monkeypatch.setenv(PROFILES[1], "mine.xml")
    variables = ros_environment(17, tmp_path)
    assert variables[RANGE] == "LOCALHOST" and PROFILES[0] not in variables


def test_the_profile_listens_on_no_other_interface():
    root = ElementTree.parse(PROFILE).getroot()
    told = {element.tag.rpartition("}")[2]: element.text for element in root.iter()}
    assert told["useBuiltinTransports"] == "false" and told["type"] == "UDPv4"
    addresses = [each.text for each in root.iter() if each.tag.endswith("}address")]
    assert addresses == ["127.0.0.1", "127.0.0.1"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads as Linux names them")
@pytest.mark.parametrize("reach", ["LOCALHOST", "SUBNET"])
def test_a_node_talks_with_those_that_share_memory_and_shares_none(monkeypatch, reach):
    environment = dict(os.environ, **{RANGE: "LOCALHOST"})
    node = subprocess.Popen([sys.executable, "-c", NODE], env=environment)
    monkeypatch.setenv(RANGE, reach)
    peer, heard = RosPeer("peer", domain_id=int(os.environ["ROS_DOMAIN_ID"])), []
    try:
        listen = peer.node.create_subscription
        listen(String, "answers", lambda message: heard.append(message.data), 1)
        questions = peer.node.create_publisher(String, "questions", 1)

        def turn():
            questions.publish(String())
            peer.turn()

        assert until(lambda: heard, turn=turn), "never found"
        assert "dds.udp" in heard[0] and "dds.shm" not in heard[0]
    finally:
        peer.close()
        node.terminate()
        assert node.wait(30.0) == 0
