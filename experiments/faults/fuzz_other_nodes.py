"""The nodes beside controller and watchdog in the fuzz campaign: each in a namespace of its own, and judged by its work."""

from __future__ import annotations

import math
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from contact_id_controller.check.standing_checks import standing_state
from contact_id_controller.control.controller import Controller
from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.direct_loop import take_waiting
from contact_id_controller.ros.packed import stamp_ns, with_stamp
from contact_id_controller.runs.processes import node_command
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.robot_files import robots
from contact_id_controller.state import RobotState
from experiments.faults.mutations import packed

NICENESS = 5
"""Whoever commands comes first, as on a robot."""

GRAVITY_M_S2 = 9.81

AHEAD_S = 600.0
"""A result with a stamp so far beyond the last input comes of a stamp that was spoiled."""

ASK_AGAIN_S = 1.0
"""A queue of requests keeps ten: an answer that does not come by then may never."""

NOT_JUDGED = ("/rosout", "/parameter_events", "/diagnostics")

_STREAM = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
_RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


class OtherNode(NamedTuple):
    """What a node of the campaign needs, and what shows that it works.

    Attributes:
        parameters: of the node.
        stream: topic -> messages that come all the time, one after the other, with the time of now.
        once: topic -> message that is taken as it is, sent when work is requested.
        period_s: between two of each of the stream.
        asks: services that are called then, one after the other; again from the first where one fails.
        result: topic of its work; empty: the answer to ``get_parameters`` is all there is.
        patience_s: longest time until it works again.
    """

    parameters: dict[str, Any]
    stream: dict[str, tuple[Any, ...]]
    once: dict[str, Any]
    period_s: float = 0.02
    asks: tuple[str, ...] = ()
    result: str = ""
    patience_s: float = 5.0


def other_node_rows(robot: str) -> dict[str, OtherNode]:
    """Estimator, planners and viewer of a robot that stands; the whole-body planner plans for Solo12."""
    file = ParameterFile(robots()[robot])
    posture = file.section("simulated_robot")["initial_joint_positions"]
    given = file.section("controller")
    model, state, efforts = _standing(given, posture)
    joints, base = joint_state_of(model, state, efforts), odometry_of(state)
    # A real one is never twice the same: one that is, while joints move, is frozen.
    imu = Imu(), Imu()
    for sample, noise in zip(imu, (-1e-3, 1e-3), strict=True):
        sample.linear_acceleration.x, sample.linear_acceleration.z = noise, GRAVITY_M_S2
    feet = list(given["contact_frames"])
    touching = JointState(name=feet, position=[1.0] * len(feet))
    driven = file.section("gait_planner")
    driven.pop("waypoints_m", None)  # then it follows cmd_vel
    forward = Twist()
    forward.linear.x = 0.1
    plans = ParameterFile(robots()["solo12"].parent / "plans" / "solo12.yaml")
    whole_body = plans.section("kinodynamic_planner")
    whole_body.pop("footsteps")
    solo, standing, _ = _standing(plans.section("controller"), whole_body["posture"])
    goal = PoseStamped()
    goal.pose.position.x = 0.05
    wall = {"use_sim_time": False}
    return {
        "dynamics_estimator": OtherNode(
            {
                **{key: given[key] for key in ("urdf", "joints")},
                **file.section("dynamics_estimator"),
                **wall,
                "mode": "real_time",
                "autostart": True,
                "period_s": 0.005,
            },
            {"imu": imu, "joint_states": (joints,)},
            {},
            period_s=0.005,
            result="odometry",
        ),
        "gait_planner": OtherNode(
            {**driven, **wall},
            {"odometry": (base,), "contact_states": (touching,), "joint_states": (joints,)},
            {"gait": String(data="trot"), "cmd_vel": forward},
            result="joint_trajectory",
        ),
        "kinodynamic_planner": OtherNode(
            {**whole_body, **wall},
            {
                "odometry": (odometry_of(standing),),
                "joint_states": (joint_state_of(solo, standing),),
            },
            {"goal_pose": goal},
            asks=("plan", "execute"),
            result="joint_trajectory",
            patience_s=60.0,
        ),
        "viewer": OtherNode(
            {}, {"odometry": (base,), "joint_states": (joints,)}, {}, patience_s=20.0
        ),
    }


def _standing(values: Mapping[str, Any], posture: Any) -> tuple[RobotModel, RobotState, np.ndarray]:
    """Robot, state at rest on its feet, and the efforts of that, N·m."""
    settings = ControllerSettings.from_mapping(values)
    model = settings.robot()
    controller = Controller(model, settings)
    state = standing_state(controller, np.array(posture, dtype=float))
    controller.reset(state)
    return model, state, controller.step(state).torques.copy()


def joint_state_of(
    model: RobotModel,
    state: RobotState,
    efforts: np.ndarray | None = None,
    speed_rad_s: float = 0.0,
) -> JointState:
    """The message of a state, with a speed of all joints."""
    return JointState(
        name=list(model.joint_names),
        position=model.joints_of(state.q).tolist(),
        velocity=[speed_rad_s] * model.na,
        effort=[] if efforts is None else efforts.tolist(),
    )


def odometry_of(state: RobotState) -> Odometry:
    """The message of a state's base, at rest."""
    message = Odometry()
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = state.q[:7].tolist()
    return message


class OtherNodes:
    """The good messages that these nodes get, and what they publish.

    Args:
        rows: name of the node -> what it needs.
        folder: with ``parameters.yaml`` of the controller, which the viewer reads.

    Attributes:
        commands: name -> command line.  parameters: name with its namespace -> values.
        on_fault: gets what is wrong with a message, and where.
    """

    def __init__(self, rows: Mapping[str, OtherNode], folder: Path) -> None:
        self._rows = dict(rows)
        self.parameters = {
            f"/{name}/{name}": row.parameters for name, row in rows.items() if row.parameters
        }
        self.on_fault: Callable[[str, str], None] = lambda *_: None
        self.commands: dict[str, list[str]] = {}
        file = folder / "parameters.yaml"
        for name, row in rows.items():
            command = node_command(name, file) if row.parameters else _viewing(file)
            self.commands[name] = [
                *("nice", "-n", str(NICENESS)),
                *(*command, "-r", f"__ns:=/{name}"),
            ]
        self._next_s = dict.fromkeys(rows, 0.0)
        self._time_ns = dict.fromkeys(rows, time.time_ns())
        self._streams: dict[str, list[tuple[Any, list[bytes]]]] = {}
        self._once: dict[str, list[tuple[Any, Any]]] = {}
        self._results: list[tuple[str, str, type, Subscription]] = []
        self._from_ns: dict[str, int] = {}
        self._asked: dict[str, tuple[float, Any]] = {}

    def __iter__(self):
        return iter(self._rows)

    @property
    def words(self) -> list[str]:
        """Texts that mean something to them."""
        named = {name for row in self._rows.values() for name in _names(row)}
        return sorted(named | {"trot", "walk", "stand"}) if self._rows else []

    def good(self) -> dict[str, bytes]:
        """Full name of a topic -> bytes that are taken there."""
        return {
            f"/{name}/{topic}": packed(message)
            for name, row in self._rows.items()
            for topic, message in (_firsts(row.stream) | row.once).items()
        }

    def patience_s(self, name: str) -> float:
        """Longest time until a node works again."""
        return self._rows[name].patience_s

    def time_ns(self, name: str) -> int:
        """Time of a node's messages: it passes evenly, however busy this process is. For no node the clock's."""
        return self._time_ns.get(name) or time.time_ns()

    def waited_s(self, name: str) -> float:
        """For how long a node that has not worked since ``begin_work`` has had good messages alone."""
        return 1e-9 * (self._time_ns[name] - self._from_ns[name])

    def connect(self, node: Node) -> None:
        """Make the publishers of the good messages."""
        for name, row in self._rows.items():

            def publishers(messages: dict[str, Any], name: str = name) -> list:
                return [
                    (node.create_publisher(type(each), f"/{name}/{topic}", _RELIABLE), each)
                    for topic, each in messages.items()
                ]

            self._once[name] = publishers(row.once)
            self._streams[name] = [
                (to, [packed(each) for each in messages])
                for (to, _), messages in zip(publishers(_firsts(row.stream)), row.stream.values())
            ]

    def listen(self, node: Node, class_of: Callable[[str], type]) -> bool:
        """Subscribe to all that they publish by now; whether the results are among it."""
        known = {topic for _, topic, _, _ in self._results}
        for name in self._rows:
            found = node.get_publisher_names_and_types_by_node(name, f"/{name}")
            for topic, (kind, *_) in found:
                if topic not in known and topic not in NOT_JUDGED:
                    loaded = class_of(kind)
                    made = node.create_subscription(
                        loaded, topic, lambda _: None, _STREAM, raw=True
                    )
                    self._results.append((name, topic, loaded, made))
        results = {f"/{name}/{row.result}" for name, row in self._rows.items() if row.result}
        return results <= {topic for _, topic, _, _ in self._results}

    def turn(self, now_s: float) -> None:
        """Send what is due, judge what has come."""
        for name, row in self._rows.items():
            if now_s >= self._next_s[name]:
                self._next_s[name] = now_s + row.period_s
                self._time_ns[name] += round(row.period_s * 1e9)
                for publisher, messages in self._streams[name]:
                    messages.append(data := messages.pop(0))
                    publisher.publish(with_stamp(data, self._time_ns[name]))
        for name, topic, kind, subscription in self._results:
            for data in take_waiting(subscription):
                message = deserialize_message(data, kind)
                if where := not_finite(message):
                    self.on_fault("not finite, of a node beside", f"{topic}: {where}")
                if topic == f"/{name}/{self._rows[name].result}" and name in self._from_ns:
                    begun_ns = self._from_ns[name]
                    if begun_ns < stamp_ns(data) < begun_ns + AHEAD_S * 1e9:
                        del self._from_ns[name]

    def begin_work(self) -> None:
        """From now on results are waited for: nothing is spoiled any more."""
        self._from_ns = dict(self._time_ns)
        self._asked.clear()
        for publishers in self._once.values():
            for publisher, message in publishers:
                publisher.publish(message)

    def works(self, name: str, ask: Callable[[str, Any, Any], Any]) -> bool:
        """Whether a node has worked since ``begin_work``; ask: calls a service, or gives None."""
        row = self._rows[name]
        if not row.result and name in self._from_ns:
            self._answers(name, ask)
        elif row.asks and name in self._from_ns:
            self._lead(name, ask)
        return name not in self._from_ns

    def _answers(self, name: str, ask: Callable[[str, Any, Any], Any]) -> None:
        """Ask for no parameters, and again where that is lost in the queue of those that were spoiled."""
        asked_s, future = self._asked.get(name, (0.0, None))
        if future is not None and future.done():
            del self._from_ns[name]
        elif future is None or time.monotonic() - asked_s > ASK_AGAIN_S:
            service = f"/{name}/{name}/get_parameters"
            self._asked[name] = (
                time.monotonic(),
                ask(service, GetParameters.Request(), GetParameters),
            )

    def _lead(self, name: str, ask: Callable[[str, Any, Any], Any]) -> None:
        """Call its services one after the other, and again from the first where one fails."""
        row = self._rows[name]
        number, future = self._asked.get(name, (-1, None))
        if future is not None and not future.done():
            return
        well = future is not None and future.result() is not None and future.result().success
        number = number + 1 if well and number + 1 < len(row.asks) else 0
        if number == 0:
            for publisher, message in self._once[name]:
                publisher.publish(message)
        service = f"/{name}/{name}/{row.asks[number]}"
        future = ask(service, Trigger.Request(), Trigger)
        self._asked[name] = (number, future) if future is not None else (-1, None)


def _viewing(file: Path) -> list[str]:
    viewer = [sys.executable, "-m", "contact_id_controller.view.viewer", "--parameters", str(file)]
    return [*viewer, "--port", str(_free_port()), "--teleop", "--ros-args"]


def _firsts(stream: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Topic -> the first of its messages."""
    return {topic: messages[0] for topic, messages in stream.items()}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _names(row: OtherNode) -> list[str]:
    """Names of joints and feet in its messages."""
    return [name for each in row.stream.values() for name in getattr(each[0], "name", ())]


def not_finite(message: Any) -> str:
    """The first number of a message that is not finite, with the name of its field; empty: none."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if isinstance(value, float):
            if not math.isfinite(value):
                return f"{name} = {value}"
        elif hasattr(value, "get_fields_and_field_types"):
            if found := not_finite(value):
                return f"{name}.{found}"
        elif not isinstance(value, (str, bytes, int)) and len(value):
            if hasattr(value[0], "get_fields_and_field_types"):
                for k, each in enumerate(value):
                    if found := not_finite(each):
                        return f"{name}[{k}].{found}"
            elif isinstance(value[0], float) and not np.isfinite(np.asarray(value)).all():
                return f"{name} = {np.asarray(value)}"
    return ""
