"""The live view of a controller in this process: what it shows, sets, stops and drives, over real topics."""

import argparse
import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("viser", reason="needs the extra view")

import msgspec
import viser
from browser import Browser, chromium
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from paths import ROOT
from rclpy.node import Node
from rclpy.serialization import serialize_message
from ros_bench import STANDING, Bench, joint_state, joint_trajectory, odometry, parameters
from ros_peer import RosPeer
from sensor_msgs.msg import Joy
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger
from waiting import until
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.sync.client import connect

from contact_id_controller.commands import demo
from contact_id_controller.exceptions import ConfigurationError, RunError
from contact_id_controller.exit_codes import INTERRUPTED
from contact_id_controller.runs.one_process import controller_settings
from contact_id_controller.runs.processes import free_domain
from contact_id_controller.runs.setup import make_setup
from contact_id_controller.safety.machine import SafetyState
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.view import gate, panel
from contact_id_controller.view.drive import JOY_ENABLE, SILENCE_S, Drive
from contact_id_controller.view.side_processes import place_of
from contact_id_controller.view.viewer import Viewer, Wishes, _look
from contact_id_controller.view.visuals import RobotShapes

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


def stick_of(scenery):
    """Address of the stick's websocket."""
    link = scenery.viewer.gate.link(scenery.viewer.drive_page.port)
    return link.replace("http://", "ws://")


def newest(page):
    """The line that a page was sent last; empty: none came."""
    line = ""
    with contextlib.suppress(TimeoutError):
        while True:
            line = page.recv(timeout=0.0)
    return line


@pytest.fixture(scope="module")
def scenery():
    scenery = Scenery()
    yield scenery
    scenery.close()


@pytest.fixture
def looked_at(scenery, monkeypatch):
    """The scenery as if a browser showed it."""
    monkeypatch.setattr(scenery.viewer, "is_looked_at", lambda: True)
    assert scenery.turn(20.0, lambda: bool(scenery.viewer.listener.forces))
    return scenery


def test_forces_cones_and_state_are_shown(looked_at):
    viewer = looked_at.viewer
    heard = viewer.listener
    assert looked_at.turn(20.0, lambda: "safety state" in heard.values)
    assert looked_at.turn(5.0, lambda: len(viewer.panel._rows["torque (N·m)"]) > 5)
    assert len(heard.forces) == 4 and len(heard.cones) >= 4 * 24
    lifted = sum(arrow.end[2] - arrow.start[2] for arrow in heard.forces)
    assert lifted == pytest.approx(0.3, rel=0.05)  # arrows of the robot's weight
    assert looked_at.turn(5.0, lambda: "● commanding</b>" in viewer.panel._state.content)
    assert "z 0.162 m" in viewer.panel._state.content
    _, torque, mean = viewer.panel._rows["torque (N·m)"][-1]
    assert torque == pytest.approx(np.abs(looked_at.bench.commands[-1]).max(), rel=0.2)
    assert 0.0 < mean < torque
    shapes = viewer.scene.shapes
    assert len(viewer.scene._meshes) == len(shapes.shapes) > 10 and not shapes.remark
    np.testing.assert_allclose(viewer.scene._meshes[0].position, shapes.place(heard.q)[0][0])


def test_a_robot_that_does_not_follow_is_red_with_the_reason(looked_at, monkeypatch):
    following = looked_at.bench.node.loop.guard.following

    def astray(*_):
        following.reason = "base 0.059 m lower above its feet than planned"
        return following.reason

    monkeypatch.setattr(following, "look", astray)
    content = looked_at.viewer.panel._state
    assert looked_at.turn(10.0, lambda: "● not following: base 0.059 m" in content.content)
    assert "safety state: not_following" in content.content
    monkeypatch.undo()
    following.begin()
    monkeypatch.setattr(looked_at.viewer, "is_looked_at", lambda: True)
    assert looked_at.turn(10.0, lambda: "● commanding</b>" in content.content)


def test_the_plan_of_the_next_second_is_shown(looked_at):
    scene, heard = looked_at.viewer.scene, looked_at.viewer.listener
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
    assert looked_at.turn(20.0, lambda: ">refused: " in panel._news.content)
    assert looked_at.settings.friction_coefficient == (0.33,)


def test_a_parameter_changed_elsewhere_is_shown_and_not_set_back(looked_at):
    from rclpy.parameter import Parameter

    looked_at.bench.node.set_parameters([Parameter("friction_coefficient", value=[0.71])])
    assert looked_at.turn(20.0, lambda: looked_at.viewer.panel._friction.value == 0.71)
    looked_at.turn(0.5)
    assert looked_at.settings.friction_coefficient == (0.71,)


def test_the_page_of_the_stick_stops_drives_and_resumes(scenery):
    with connect(stick_of(scenery)) as stick:
        stick.send(json.dumps({"stop": True}))
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.EMERGENCY_STOP)
        assert scenery.turn(10.0, lambda: "controller: emergency stop engaged" in newest(stick))
        stick.send(json.dumps({"resume": True}))
        # Releasing is an act of its own.
        assert scenery.turn(10.0, lambda: "the emergency stop is engaged" in newest(stick))
        assert scenery.safety is SafetyState.EMERGENCY_STOP
        stick.send(json.dumps({"release": True}))
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.STOPPED)
        stick.send(json.dumps({"resume": True}))
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.HOLDING)
        assert scenery.turn(10.0, lambda: scenery.bench.node.loop.result is not None)
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
    drive._on_joy(serialize_message(Joy(axes=axes, buttons=[0] * 8)))
    drive.tick()
    assert sent[-1] == (0.0, 0.0, 0.0)
    held = [int(k == JOY_ENABLE) for k in range(8)]
    drive._on_joy(serialize_message(Joy(axes=axes, buttons=held)))
    drive.tick()
    np.testing.assert_allclose(sent[-1], (0.8, 0.1, 0.5), rtol=1e-6)
    drive._on_joy(serialize_message(Joy(axes=axes, buttons=[0] * 8)))
    drive.tick()
    assert sent[-1] == (0.0, 0.0, 0.0)


PORTS = {
    "page": lambda scenery: scenery.viewer.server.get_port(),
    "stick": lambda scenery: scenery.viewer.drive_page.port,
}
"""All that listen."""


def knock(port, path, **headers):
    """Status of a request, of a page or with `upgrade` of a websocket."""
    asked = {"Host": f"127.0.0.1:{port}", **headers}
    if asked.pop("Upgrade", None):
        asked |= gate._WEBSOCKET
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=asked)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("pixels", [400, 1600])
@pytest.mark.parametrize("name", ["quadruped", "bipeds/talos"])
def test_the_page_shows_a_robot_from_head_to_foot(name, pixels):
    settings = controller_settings(name)
    height_m = RobotShapes(settings.robot(), settings.urdf).height_m()
    camera = SimpleNamespace(image_width=pixels)
    _look(height_m, SimpleNamespace(camera=camera))
    ahead = camera.look_at - camera.position
    for z in (0.0, height_m):
        way = np.array([0.0, 0.0, z]) - camera.position
        cosine = ahead @ way / np.linalg.norm(ahead) / np.linalg.norm(way)
        assert np.degrees(np.arccos(cosine)) < 25.0


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("upgrade", [{}, {"Upgrade": "websocket"}], ids=["page", "websocket"])
def test_only_the_link_of_this_start_comes_in(scenery, port, upgrade):
    port, token = PORTS[port](scenery), scenery.viewer.gate.token
    link = f"/?token={token}"
    own = f"http://127.0.0.1:{port}"
    come_in = 101 if upgrade else {200, 302}
    for path, headers in (
        ("/", {}),
        ("/", {"Origin": own}),
        ("/?token=", {"Origin": own}),
        (f"/?token={token[:-1]}", {"Origin": own}),
        (f"/?token={token}a", {"Origin": own}),
        (f"/?token={token}&token=a", {"Origin": own}),
        ("/?token=%ff%c3%a4", {"Origin": own}),
        (link, {"Origin": "http://evil.example"}),
        (link, {"Origin": "null"}),
        (link, {"Origin": own.replace("http", "https")}),
        (link, {"Origin": f"http://127.0.0.1:{port + 1}"}),
        (link, {"Host": "evil.example"}),
        (link, {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}),
        (link, {"Host": f"127.0.0.1.evil.example:{port}"}),
        (link, {"Host": f"[::1]evil.example:{port}"}),
        (link, {"Host": ""}),
    ):
        assert knock(port, path, **headers, **upgrade) == 403, (path, headers)
    for headers in ({}, {"Origin": own}, {"Host": f"localhost:{port}"}, {"Host": f"[::1]:{port}"}):
        assert knock(port, link, **headers, **upgrade) in ({come_in} if upgrade else come_in)
    assert scenery.viewer.server.get_host() == "127.0.0.1"


def test_each_start_has_a_link_of_its_own_and_listens_where_it_was_asked_to():
    one, other = gate.Gate("0.0.0.0"), gate.Gate("robot.local")
    assert one.token != other.token and len(one.token) >= 32
    assert one.link(8080) == f"http://127.0.0.1:8080/?token={one.token}"
    assert other.link(8080) == f"http://robot.local:8080/?token={other.token}"
    assert gate.Gate("::1").link(1).startswith("http://[::1]:1/?token=")
    request = Request(f"/?token={other.token}", Headers(Host="Robot.local:8080"))
    assert other.refusal(request) is None
    assert other.refusal(Request(request.path, Headers(Host="robot.locality:8080"))) is not None
    twice = Headers([("Host", "127.0.0.1"), ("Host", "robot.local")])
    assert other.refusal(Request(request.path, twice)) is not None


def test_a_viser_that_asks_nobody_at_the_door_is_refused(monkeypatch):
    """As if another version of viser made its server in another way."""
    import viser.infra._infra as infra
    import websockets

    def past_the_gate(*place, process_request, **options):
        return serve(*place, process_request=process_request, **options)

    serve = websockets.asyncio.server.serve
    parts = {
        "asyncio": SimpleNamespace(server=SimpleNamespace(serve=past_the_gate)),
        "datastructures": websockets.datastructures,
        "exceptions": websockets.exceptions,
    }
    monkeypatch.setattr(infra, "websockets", SimpleNamespace(**parts))
    port = free_port()
    with pytest.raises(
        RunError, match="a request without the token gets 101, must get 403"
    ) as error:
        gate.gated_viser(gate.Gate("127.0.0.1"), "127.0.0.1", port)
    assert "\n" not in str(error.value) and "viser" in str(error.value)
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))  # nothing listens any more
    assert websockets.asyncio.server.serve is serve


def test_a_port_that_is_taken_and_a_name_that_leads_nowhere_are_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"no page at 127.0.0.1:{port}"):
            gate.gated_viser(gate.Gate("127.0.0.1"), "127.0.0.1", port)
    with pytest.raises(RunError, match=r"no page at 192\.0\.2\.1"):
        gate.gated_viser(gate.Gate("192.0.2.1"), "192.0.2.1", 0)


def test_the_red_button_reaches_the_watchdog_too(scenery):
    peer, engaged, pressed, reset = scenery.bench.peer, [], [], []

    def stop(request, response):
        engaged.append(request.data)
        response.message = f"watched {request.data}"
        return response

    def let_go(_, response):
        reset.append(True)
        response.message = "forwarding again"
        return response

    remote = scenery.viewer.remote
    services = [
        peer.create_service(SetBool, "command_watchdog/emergency_stop", stop),
        peer.create_service(Trigger, "command_watchdog/reset", let_go),
    ]
    topic = peer.create_subscription(Bool, "emergency_stop", lambda m: pressed.append(m.data), 10)
    try:
        clients = remote._stops["watchdog"], remote._reset
        assert scenery.turn(20.0, lambda: all(each.service_is_ready() for each in clients))
        assert scenery.turn(20.0, lambda: remote._button.get_subscription_count() == 1)
        with connect(stick_of(scenery)) as stick:
            stick.send(json.dumps({"stop": True}))
            both = "controller: emergency stop engaged; watchdog: watched True"
            assert scenery.turn(10.0, lambda: both in newest(stick))
            assert scenery.turn(5.0, lambda: (engaged, pressed) == ([True], [True]))
            assert scenery.safety is SafetyState.EMERGENCY_STOP
            stick.send(json.dumps({"resume": True}))
            assert scenery.turn(10.0, lambda: "the emergency stop is engaged" in newest(stick))
            assert (engaged, reset) == ([True], [])
            stick.send(json.dumps({"release": True}))
            assert scenery.turn(10.0, lambda: engaged == [True, False])
            assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.STOPPED)
            stick.send(json.dumps({"resume": True}))
            assert scenery.turn(10.0, lambda: reset == [True])
            assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.HOLDING)
            assert pressed == [True]
    finally:
        for service in services:
            peer.destroy_service(service)
        peer.destroy_subscription(topic)


@pytest.mark.parametrize("port", PORTS)
def test_of_a_flood_only_the_latest_waits_and_a_stop_of_another_page_comes_before_its_end(
    scenery, port
):
    flooding, sent, pages = 20_000, [], []  # 40 MB, more than any buffer on the way takes
    address = scenery.viewer.gate.link(PORTS[port](scenery)).replace("http", "ws")
    waiting = {"page": 0, "stick": 1}[port]

    def message(k):
        if port == "stick":
            return json.dumps({"drive": [k / flooding, 0, 0], "nothing": 2000 * "x"})
        update = {"type": "GuiUpdateMessage", "uuid": "none", "updates": {"value": 2000 * "x"}}
        return msgspec.msgpack.encode(update)

    def flood():
        who = [f"viser-v{viser.__version__}"]
        with (
            contextlib.suppress(ConnectionClosed, OSError),
            connect(address, subprotocols=who, max_size=None) as page,
        ):
            pages.append(page)
            for k in range(flooding):
                page.send(message(k))
                sent.append(k)

    wishes, thread = scenery.viewer.wishes, threading.Thread(target=flood, daemon=True)
    thread.start()
    try:
        with connect(stick_of(scenery)) as page:
            assert until(lambda: len(sent) > 200 and len(wishes) == waiting)
            page.send(json.dumps({"stop": True}))
            assert until(lambda: len(wishes) == waiting + 1)
            assert thread.is_alive(), "it is not read as fast as it sends"
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.EMERGENCY_STOP)
        assert thread.is_alive()
    finally:
        pages[0].socket.shutdown(socket.SHUT_RDWR)
        thread.join(30)
        scenery.viewer.remote.release()
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.STOPPED)
        scenery.viewer.remote.resume()
        assert scenery.turn(10.0, lambda: scenery.safety is SafetyState.HOLDING)


def test_of_what_is_wanted_at_once_the_stop_is_done_and_nothing_that_moves():
    wishes, done = Wishes(), []
    for kind in ("drive", "friction", "stop", "release", "resume", "stop", "friction"):
        wishes.put(kind, lambda kind=kind: done.append(kind))
    assert len(wishes) == 5
    for act in wishes.take():
        act()
    assert done == ["stop", "friction"] and wishes.take() == []


def test_what_is_felt_is_shown_in_few_digits():
    values = {
        "disturbance force (N)": "-0.0256, 0.000311, 12.3",
        "payload (kg)": "-4.04e-05",
        "payload at (m)": "0.1, 0.0234, 0",
        "friction felt": "-, -, -, -",
    }
    shown = ["disturbance 0.0, 0.0, 12.3 N", "payload 0.00 kg at 0.10, 0.02, 0.00 m"]
    assert panel._disturbance(values) == [*shown, "no friction felt yet"]
    felt = panel._disturbance({**values, "friction felt": "-, 0.21, -, -"})
    assert felt[-1] == "friction felt -, 0.21, -, -"


def test_words_of_others_are_text(looked_at):
    """Diagnostics and answers come from any node; the page runs no script of theirs."""
    panel, heard = looked_at.viewer.panel, looked_at.viewer.listener
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    heard.words, heard.watchdog = evil, evil
    heard.values = {**heard.values, "safety state": evil}
    panel.show(heard, 0.0)
    panel.tell(evil)
    for shown in (panel._state.content, panel._news.content):
        assert "&lt;script&gt;" in shown and "<script" not in shown and "<img" not in shown
    heard.watchdog = ""


def test_a_plot_is_there_once_it_has_values_and_shows_those_curves(looked_at):
    panel, heard = looked_at.viewer.panel, looked_at.viewer.listener
    assert looked_at.turn(10.0, lambda: "torque (N·m)" in panel._plots)
    force = "normal force / weight"
    assert looked_at.turn(10.0, lambda: force in panel._plots)
    assert [one["label"] for one in panel._plots[force].series] == ["s", "predicted"]
    for plot in panel._plots.values():
        assert all(np.isfinite(curve).all() for curve in plot.data)
        assert (np.diff(plot.data[0]) > 0.0).all() and plot.data[0][0] > 0.0
        assert plot.scales["y"]["range"]["max"]["soft"] > 0.0  # ticks that differ

    def shown():
        return force in panel._plots and len(panel._plots[force].series) - 1

    panel.measure.value = True
    assert looked_at.turn(10.0, lambda: looked_at.viewer.listener.measuring)
    heard.measured = {frame: np.array([0.0, 0.0, 1.0]) for frame in ("a", "b")}
    assert looked_at.turn(10.0, lambda: shown() == 2)
    panel.measure.value = False
    assert looked_at.turn(10.0, lambda: shown() == 1)


def test_the_friction_of_the_ground_stands_beside_the_controllers(looked_at):
    panel, remote = looked_at.viewer.panel, looked_at.viewer.remote
    assert looked_at.turn(10.0, lambda: remote.values)
    assert looked_at.turn(10.0, lambda: "of the ground: unknown" in panel._ground.content)
    context, namespace = looked_at.bench.context, looked_at.bench.peer.get_namespace()
    robot = Node("simulated_robot", context=context, namespace=namespace)
    robot.declare_parameter("friction_coefficient", 0.3)
    looked_at.bench.executor.add_node(robot)
    try:
        remote.set(friction_coefficient=[0.25])
        assert looked_at.turn(20.0, lambda: "0.3 (simulated)</div>" in panel._ground.content)
        remote.set(friction_coefficient=[0.7])
        less = "less than the controller counts on"
        assert looked_at.turn(20.0, lambda: less in panel._ground.content)
    finally:
        looked_at.bench.executor.remove_node(robot)
        robot.destroy_node()
    assert looked_at.turn(20.0, lambda: "of the ground: unknown" in panel._ground.content)


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


def test_one_command_drives_a_humanoid_from_its_page(tmp_path):
    """Each node a process: the stick all the way out until G1 has gone a decimetre."""
    domain = free_domain()
    words = [sys.executable, "-m", "contact_id_controller", "demo", "--robot", "g1", "--teleop"]
    words += ["--view", f"127.0.0.1:{free_port()}", "--domain", str(domain)]
    peer, places = RosPeer("looks_on", domain_id=domain), []
    listen = peer.node.create_subscription
    listen(Odometry, "odometry", lambda m: places.append(m.pose.pose.position), 1)
    with open(tmp_path / "said", "wb") as said:
        run = subprocess.Popen(
            [*words, "--output", str(tmp_path / "run")], stdout=said, stderr=said
        )
    try:

        def turn(condition):
            peer.turn()
            assert run.poll() is None, (tmp_path / "said").read_text()
            return condition()

        log = tmp_path / "run" / "log"

        def link():
            text = "".join(each.read_text() for each in log.glob("viewer*"))
            return re.search("^stick: http(://.*)$", text, flags=re.M)

        assert until(lambda: turn(lambda: places and link()), 400.0)
        begin = places[-1]
        with connect(f"ws{link().group(1)}") as stick:
            due_s = [0.0]

            def drive():
                """As a page does: ten words a second. Behind more, and behind unread lines, pings wait until it is closed."""
                if time.monotonic() > due_s[0]:
                    due_s[0] = time.monotonic() + 0.1
                    stick.send(json.dumps({"drive": [1, 0, 0]}))
                    newest(stick)
                return places[-1].x > begin.x + 0.1

            assert until(lambda: turn(drive), 400.0)  # it may be compiling still
        assert places[-1].z > begin.z - 0.05
        run.send_signal(signal.SIGINT)
        assert run.wait(60.0) == INTERRUPTED
    finally:
        run.kill()
        run.wait()
        peer.close()


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
    link = scenery.viewer.gate.link(scenery.viewer.drive_page.port)
    with page_of(scenery, tmp_path, link, 390, 700) as page:
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
        assert scenery.turn(20.0, lambda: "is engaged" in page.text())
        page.click("document.getElementById('release')")
        assert "Press again" in page.text()
        scenery.turn(0.5)
        assert scenery.safety is SafetyState.EMERGENCY_STOP
        page.click("document.getElementById('release')")
        assert scenery.turn(20.0, lambda: scenery.safety is SafetyState.STOPPED)
        page.click("document.getElementById('resume')")
        assert scenery.turn(20.0, lambda: scenery.safety is SafetyState.HOLDING)
        assert not page.errors


BUTTON = "[...document.querySelectorAll('button')].find(b => b.innerText.trim() == '%s')"


@needs_browser
def test_a_browser_sees_the_robot_move_stops_it_and_releases_the_stop(scenery, tmp_path):
    """A small window: without a graphics card every pixel costs."""
    link = scenery.viewer.gate.link(scenery.viewer.server.get_port())
    with page_of(scenery, tmp_path, link, 390, 640) as page:
        assert scenery.turn(240.0, lambda: "base x" in page.text())
        begin = scenery.x
        scenery.turn(60.0, lambda: scenery.x > begin + 1.0, speed_m_s=0.4)
        shown = f"base x {scenery.x:.3f}"
        assert scenery.turn(60.0, lambda: shown in page.text())
        assert scenery.turn(60.0, lambda: page.js(_uncovered(scenery)))
        assert not page.js(f"!!({BUTTON % 'Release the emergency stop …'})")
        page.click(BUTTON % "Emergency stop")
        assert scenery.turn(60.0, lambda: scenery.safety is SafetyState.EMERGENCY_STOP)
        page.click(BUTTON % "Resume")
        assert scenery.turn(60.0, lambda: "is engaged" in page.text())
        for answer in ("Keep it engaged", "Release"):
            release = BUTTON % "Release the emergency stop …"
            assert scenery.turn(60.0, lambda: page.js(f"!!({release})"))
            page.click(release)
            assert scenery.turn(60.0, lambda a=answer: page.js(f"!!({BUTTON % a})"))
            assert scenery.safety is SafetyState.EMERGENCY_STOP
            scenery.turn(1.0)  # the dialogue fades in
            page.click(BUTTON % answer)
            scenery.turn(1.0)
        assert scenery.turn(60.0, lambda: scenery.safety is SafetyState.STOPPED)
        page.click(BUTTON % "Resume")
        assert scenery.turn(60.0, lambda: scenery.safety is SafetyState.HOLDING)
        local = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")
        assert [url for url in page.requests if not url.startswith(local)] == []
        assert page.js("document.documentElement.scrollWidth <= innerWidth")


def _uncovered(scenery):
    """Whether nothing lies over the pixel that shows the robot's middle, JavaScript."""
    (client,) = scenery.viewer.server.get_clients().values()
    camera = client.camera
    ahead = camera.look_at - camera.position
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    axes = [axis / np.linalg.norm(axis) for axis in (right, np.cross(ahead, right), ahead)]
    x, y, z = axes @ (np.array([0.0, 0.0, 0.15]) - camera.position)
    half = 0.5 / np.tan(0.5 * camera.fov)
    place = (
        f"{0.5} * innerWidth + {x / z * half} * innerHeight, (0.5 + {y / z * half}) * innerHeight"
    )
    return f"document.elementFromPoint({place})?.tagName == 'CANVAS'"
