"""The live view of a controller in this process: what it shows, sets, stops and drives, over real topics."""

import argparse
import contextlib
import json
import socket
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("viser", reason="needs the extra view")

from browser import Browser, chromium
from geometry_msgs.msg import Twist
from paths import ROOT
from rclpy.node import Node
from ros_bench import STANDING, Bench, joint_state, joint_trajectory, odometry, parameters
from sensor_msgs.msg import Joy
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from contact_id_controller.commands import demo
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.runs.setup import make_setup
from contact_id_controller.safety.machine import SafetyState
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.view.companions import place_of
from contact_id_controller.view.drive import JOY_ENABLE, SILENCE_S, Drive
from contact_id_controller.view.viewer import Viewer

SPEED_M_S, YAW_RATE_RAD_S = 0.2, 0.8


class Scenery:
    """A bench, a viewer beside it, and a robot that stands, or goes along x."""

    def __init__(self):
        self.bench = Bench(recovery_window_s=60.0)
        names = {"context": self.bench.context, "namespace": self.bench.peer.get_namespace()}
        self.node = Node("viewer", **names)
        settings = ControllerSettings.from_mapping(parameters())
        self.viewer = Viewer(self.node, settings, "controller", "127.0.0.1", free_port())
        self.viewer.let_drive(self.node, "127.0.0.1", SPEED_M_S, YAW_RATE_RAD_S)
        self.velocities = []
        self.bench.peer.create_subscription(Twist, "cmd_vel", self.velocities.append, 10)
        self.bench.executor.add_node(self.node)
        self.bench.start()
        self.time_s, self.x = 1.0, 0.0

    def turn(self, seconds=0.0, until=lambda: False, speed_m_s=0.0):
        """Let states come and everybody run; whether ``until`` came true."""
        end = time.monotonic() + seconds
        while not until():
            self.time_s += 0.01
            self.x += 0.01 * speed_m_s
            base = odometry(self.time_s)
            base.pose.pose.position.x, base.twist.twist.linear.x = self.x, speed_m_s
            self.bench.send(self.time_s, joint_state(self.time_s, velocity=np.zeros(12)), base)
            for _ in range(4):
                self.bench.executor.spin_once(timeout_sec=0.003)
            self.viewer.turn()
            if time.monotonic() > end:
                return until()
        return True

    @property
    def safety(self):
        return self.bench.node.loop.safety.state

    @property
    def settings(self):
        return self.bench.node.loop.controller.settings

    def close(self):
        self.viewer.close()
        self.bench.executor.remove_node(self.node)
        self.node.destroy_node()
        self.bench.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def scenery():
    scenery = Scenery()
    yield scenery
    scenery.close()


@pytest.fixture
def looked_at(scenery, monkeypatch):
    """The scenery as if a browser showed it."""
    monkeypatch.setattr(scenery.viewer, "is_looked_at", lambda: True)
    assert scenery.turn(20.0, lambda: bool(scenery.viewer.heard.forces))
    return scenery


def test_forces_cones_and_state_are_shown(looked_at):
    viewer = looked_at.viewer
    heard = viewer.heard
    assert looked_at.turn(20.0, lambda: "safety state" in heard.values)
    assert looked_at.turn(5.0, lambda: len(viewer.panel._rows["torque (N·m)"]) > 5)
    assert len(heard.forces) == 4 and len(heard.cones) >= 4 * 24
    lifted = sum(arrow.end[2] - arrow.start[2] for arrow in heard.forces)
    assert lifted == pytest.approx(0.3, rel=0.05)  # arrows of the robot's weight
    assert looked_at.turn(5.0, lambda: "**commanding" in viewer.panel._state.content)
    assert "z 0.162 m" in viewer.panel._state.content
    _, torque, mean = viewer.panel._rows["torque (N·m)"][-1]
    assert torque == pytest.approx(np.abs(looked_at.bench.commands[-1]).max(), rel=0.2)
    assert 0.0 < mean < torque
    shapes = viewer.scene.shapes
    assert len(viewer.scene._meshes) == len(shapes.shapes) > 10 and not shapes.told
    np.testing.assert_allclose(viewer.scene._meshes[0].position, shapes.place(heard.q)[0][0])


def test_a_robot_that_does_not_follow_is_red_with_the_reason(looked_at, monkeypatch):
    following = looked_at.bench.node.loop.guard.following

    def astray(*_):
        following.reason = "base 0.059 m lower above its feet than planned"
        return following.reason

    monkeypatch.setattr(following, "look", astray)
    content = looked_at.viewer.panel._state
    assert looked_at.turn(10.0, lambda: "🔴 **not following: base 0.059 m" in content.content)
    assert "safety state: not_following" in content.content
    monkeypatch.undo()
    following.begin()
    monkeypatch.setattr(looked_at.viewer, "is_looked_at", lambda: True)
    assert looked_at.turn(10.0, lambda: "🟢 **commanding" in content.content)


def test_the_plan_of_the_next_second_is_shown(looked_at):
    scene, heard = looked_at.viewer.scene, looked_at.viewer.heard
    begin = looked_at.time_s + 0.3
    goal = STANDING + 0.05
    message = joint_trajectory([0.0, 0.5], [STANDING, goal], start_s=begin)
    looked_at.bench._plans["joint_trajectory"].publish(message)
    looked_at.bench.until(lambda: False, patience_s=0.3)  # no executor takes it from the viewer
    assert looked_at.turn(5.0, lambda: heard.joint_plan is not None)
    np.testing.assert_allclose(heard.joint_plan.sample(begin + 1.0).position, goal)
    heard.base_plan = None
    scene.show_plan(heard)
    assert not scene._plan.visible  # where nobody says where the base goes, no foot's path is known
    looked_at.bench._plans["joint_trajectory"].publish(
        joint_trajectory([0.0, 0.5], [goal, STANDING], start_s=looked_at.time_s + 0.1)
    )
    looked_at.turn(1.5)


def test_controls_set_the_real_parameters(looked_at):
    panel, viewer = looked_at.viewer.panel, looked_at.viewer
    assert looked_at.turn(20.0, lambda: panel._model.value == "coulomb/qp")
    assert set(panel._model.options) == {"coulomb/qp", "none/pid"}
    panel._friction.value = 0.33
    panel._set_friction()
    assert looked_at.turn(20.0, lambda: looked_at.settings.friction_coefficient == (0.33,))
    panel._time_constant.value = 0.08
    panel._set_time_constant()
    assert looked_at.turn(20.0, lambda: looked_at.settings.contact_time_constant_s == 0.08)
    before = looked_at.settings.joint_position_gain
    panel._stiffness.value = 2.0
    panel._set_gain("joint_position_gain", 0)
    doubled = tuple(2.0 * gain for gain in before)
    assert looked_at.turn(20.0, lambda: looked_at.settings.joint_position_gain == doubled)
    panel._model.value = "none/pid"
    panel._set_model()
    assert looked_at.turn(20.0, lambda: looked_at.settings.solver == "pid")
    panel._model.value = "coulomb/qp"
    panel._set_model()
    assert looked_at.turn(20.0, lambda: looked_at.settings.solver == "qp")
    viewer.remote.set(friction_coefficient=[-1.0])
    assert looked_at.turn(20.0, lambda: panel._news.content.startswith("refused: "))
    assert looked_at.settings.friction_coefficient == (0.33,)


def test_a_parameter_changed_elsewhere_is_shown_and_not_set_back(looked_at):
    from rclpy.parameter import Parameter

    looked_at.bench.node.set_parameters([Parameter("friction_coefficient", value=[0.71])])
    assert looked_at.turn(20.0, lambda: looked_at.viewer.panel._friction.value == 0.71)
    looked_at.turn(0.5)
    assert looked_at.settings.friction_coefficient == (0.71,)


def test_the_page_of_the_stick_stops_drives_and_resumes(scenery):
    page = f"ws://127.0.0.1:{scenery.viewer.drive_page.port}/"
    with connect(page) as stick:
        stick.send(json.dumps({"stop": True}))
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.EMERGENCY_STOP)
        stick.send(json.dumps({"resume": True}))
        assert scenery.turn(10.0, lambda: scenery.safety is not SafetyState.EMERGENCY_STOP)
        assert scenery.turn(10.0, lambda: scenery.bench.node.loop.result is not None)
        assert stick.recv(timeout=5) == "emergency stop engaged"
        scenery.velocities.clear()
        stick.send(json.dumps({"drive": [0.5, 0, -1]}))
        assert scenery.turn(10.0, lambda: len(scenery.velocities) > 0)
        first = scenery.velocities[0]
        assert first.linear.x == pytest.approx(0.5 * SPEED_M_S)
        assert first.angular.z == pytest.approx(-YAW_RATE_RAD_S)
        stick.send("no JSON")
        # Nothing more is said: the connection stands, the robot does too.
        assert scenery.turn(10.0, lambda: scenery.velocities[-1].linear.x == 0.0)
        assert scenery.velocities[-1].angular.z == 0.0
        count = len(scenery.velocities)
        scenery.turn(0.5)
        assert len(scenery.velocities) == count


def test_silence_and_nonsense_mean_zero(scenery):
    now = [0.0]
    drive = Drive(scenery.node, 1.0, 1.0, clock=lambda: now[0])
    sent = []
    drive._publisher.publish = lambda message: sent.append(
        (message.linear.x, message.linear.y, message.angular.z)
    )
    drive.tick()
    assert sent == []
    drive.want([1, 0.5, -3])
    drive.tick()
    assert sent[-1] == (1.0, 0.5, -1.0)
    now[0] = 0.9 * SILENCE_S
    drive.tick()
    assert sent[-1] == (1.0, 0.5, -1.0)
    now[0] = 1.1 * SILENCE_S
    drive.tick()
    drive.tick()
    assert sent[2:] == [(0.0, 0.0, 0.0)]
    for nonsense in ([float("nan"), 0, 0], [1, 2], "forwards", None, [[1, 2, 3]], {"x": 1}):
        drive.want([1, 0, 0])
        drive.tick()
        drive.want(nonsense)
        drive.tick()
        assert sent[-2:] == [(1.0, 0.0, 0.0), (0.0, 0.0, 0.0)], nonsense
    axes = [0.1, 0.8, 0.0, 0.5]
    drive._on_joy(Joy(axes=axes, buttons=[0] * 8))
    drive.tick()
    assert sent[-1] == (0.0, 0.0, 0.0)
    held = [int(k == JOY_ENABLE) for k in range(8)]
    drive._on_joy(Joy(axes=axes, buttons=held))
    drive.tick()
    np.testing.assert_allclose(sent[-1], (0.8, 0.1, 0.5), rtol=1e-6)
    drive._on_joy(Joy(axes=axes, buttons=[0] * 8))
    drive.tick()
    assert sent[-1] == (0.0, 0.0, 0.0)


def test_no_other_site_may_drive(scenery):
    port = scenery.viewer.drive_page.port
    page = f"ws://127.0.0.1:{port}/"
    with connect(page, origin=f"http://127.0.0.1:{port}"):
        pass
    with pytest.raises(InvalidStatus):
        connect(page, origin="http://evil.example")
    for headers, code in (({}, 200), ({"Host": "evil.example"}, 403)):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers=headers)
        try:
            found = urllib.request.urlopen(request, timeout=5).status
        except urllib.error.HTTPError as error:
            found = error.code
        assert found == code
    assert scenery.viewer.server.get_host() == "127.0.0.1"


@pytest.mark.parametrize("text", ["127.0.0.1:none", "127.0.0.1:70000", ":-1"])
def test_a_place_for_the_page_is_checked(text):
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        place_of(text)


def test_a_port_that_is_taken_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"no page at 127.0.0.1:{port}"):
            place_of(f":{port}")
    assert place_of(f"127.0.0.1:{port}") == ("127.0.0.1", port)


# contact_id demo


def planned(*words):
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    return demo.planned(parser.parse_args(words))


def test_a_driven_robot_has_no_way_points(tmp_path):
    ((folder, choice),) = planned("--robot", "quadruped", "--teleop", "--output", str(tmp_path))
    setup = make_setup(folder, **choice)
    assert setup.duration_s == 600.0
    assert "waypoints_m" not in setup.parameters["gait_planner"] and not len(setup.waypoints)
    assert len(make_setup(tmp_path, robot="quadruped").waypoints)
    with pytest.raises(ConfigurationError, match="--robot or --config"):
        planned("--teleop")
    with pytest.raises(ConfigurationError, match="nothing can be driven"):
        make_setup(tmp_path, robot="arm", config=ROOT / "config/arms/panda.yaml", driven=True)


# A real browser

needs_browser = pytest.mark.skipif(
    chromium() is None, reason="no chromium here: apt-get install chromium"
)


@contextlib.contextmanager
def page_of(scenery, folder, url, width, height):
    """A browser, while states go on in between its answers."""
    browser = Browser(folder, url, width, height)
    try:
        yield browser
    finally:
        browser.close()


@needs_browser
def test_a_browser_drives_by_stick_and_keys(scenery, tmp_path):
    port = scenery.viewer.drive_page.port
    with page_of(scenery, tmp_path, f"http://127.0.0.1:{port}/", 390, 700) as page:
        assert page.until("text.includes('ready')")
        assert page.js("document.documentElement.scrollWidth <= innerWidth")
        scenery.velocities.clear()
        x, y = page.centre("document.getElementById('pad')")
        page.mouse("mousePressed", x, y)
        page.mouse("mouseMoved", x, y - 60)
        assert scenery.turn(20.0, lambda: any(v.linear.x > 0.05 for v in scenery.velocities))
        page.mouse("mouseReleased", x, y - 60)
        assert scenery.turn(20.0, lambda: scenery.velocities[-1].linear.x == 0.0)
        page.key("keyDown", "q", "KeyQ")
        assert scenery.turn(
            20.0, lambda: scenery.velocities[-1].angular.z == pytest.approx(YAW_RATE_RAD_S)
        )
        page.key("keyUp", "q", "KeyQ")
        assert scenery.turn(20.0, lambda: scenery.velocities[-1].angular.z == 0.0)
        page.click("document.getElementById('stop')")
        assert scenery.turn(20.0, lambda: scenery.safety is SafetyState.EMERGENCY_STOP)
        page.click("document.getElementById('resume')")
        assert scenery.turn(20.0, lambda: scenery.safety is not SafetyState.EMERGENCY_STOP)
        assert not page.errors


@needs_browser
def test_a_browser_sees_the_robot_move_and_stops_it(scenery, tmp_path):
    """A small window: without a graphics card every pixel costs."""
    port = scenery.viewer.server.get_port()
    with page_of(scenery, tmp_path, f"http://127.0.0.1:{port}/", 360, 480) as page:
        assert scenery.turn(240.0, lambda: "base x" in page.text())
        begin = scenery.x
        scenery.turn(60.0, lambda: scenery.x > begin + 1.0, speed_m_s=0.4)
        shown = f"base x {scenery.x:.3f}"
        assert scenery.turn(60.0, lambda: shown in page.text())
        label = "[...document.querySelectorAll('button')].find(b => b.innerText.includes('%s'))"
        page.click(label % "Emergency stop")
        assert scenery.turn(60.0, lambda: scenery.safety is SafetyState.EMERGENCY_STOP)
        page.click(label % "Resume")
        assert scenery.turn(60.0, lambda: scenery.safety is not SafetyState.EMERGENCY_STOP)
        local = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")
        assert [url for url in page.requests if not url.startswith(local)] == []
        assert page.js("document.documentElement.scrollWidth <= innerWidth")
