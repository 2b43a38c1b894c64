"""Controller, command watchdog and nodes beside them as processes, and a robot that is nothing but its messages."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.check.standing_checks import standing_state
from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import RunError
from contact_id_controller.files import check_free, make_folder
from contact_id_controller.ros import scheduling
from contact_id_controller.ros.packed import with_stamp
from contact_id_controller.runs.processes import (
    NodeGroup,
    free_domain,
    node_command,
    ros_environment,
)
from contact_id_controller.runs.ros_system import RosSystem
from contact_id_controller.settings.controller import TABLE, ControllerSettings
from contact_id_controller.settings.parameter_file import write_parameters
from experiments.faults.fuzz_other_nodes import OtherNode, OtherNodes, joint_state_of, odometry_of
from experiments.faults.mutations import packed
from experiments.faults.nodes import (
    CONTROLLER,
    PLANNER,
    ROBOT,
    WATCHDOG,
    campaign_parameters,
)

STATE_PERIOD_S, SERVE_PERIOD_S = 0.005, 0.01
"""Time between two good states, and between two looks at the answers of services."""

ANSWERS = 8
"""Answers that are taken at each look: no node is to be judged by answers that wait here."""

START_S, PATIENCE_S = 300.0, 30.0

TIMES = ("state_timeout_s", "recovery_window_s", "odometry_age_limit_s")
"""Parameters of the controller that grow with time."""
OWN_SHARE = 0.37
"""Of the limits: what the second commander sends, by which it is known."""

STILL_S = 0.2
"""A torque that is younger than this is there."""

STOP_TOPIC = "/emergency_stop"
"""Whatever says true there stops the robot: it is seldom given anything else."""

NOT_ASKED = ("change_state", "emergency_stop", "get_type_description")
"""Services that are not called at random: transitions and stops are made on purpose, the last answers
without Python."""

_RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_NEWEST = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)


class Door(NamedTuple):
    """A topic that the nodes subscribe to.

    Attributes:
        kind: class of its messages.  publisher: to it.  good: bytes that are taken; None: unknown.
        stamped: they begin with a header.  is_state, commands: what the topic carries.
        other_node: the node beside whose it is; empty: controller or watchdog.
    """

    kind: type
    publisher: Publisher
    good: bytes | None
    stamped: bool
    is_state: bool = False
    commands: bool = False
    other_node: str = ""


class FuzzWorld:
    """The two nodes, and everything that they hear; leaving the ``with`` ends them.

    Args:
        folder: for parameters and logs.
        slower: time-outs are as many times longer, for a machine that does other things too.
        robot: name of a configuration file.
        rt_priority: of SCHED_FIFO, of both nodes; this process takes one less; 0: the ordinary one.
        speed_rad_s: of all joints, as the states say: not 0, so that damping differs from no torque.
        other_nodes: nodes beside them, see `other_node_rows`.

    Attributes:
        folder, slower: as given.  other_nodes: the nodes beside.
        command_timeout_s: of the watchdog.  environment: variables that choose the ROS system.
        doors, services: of the two nodes, by full name.  words: texts that mean something to them.
        limits: of the URDF, (n,), N·m.  own_torques: those of a second commander.  on_command: gets each command, its age and when it arrived, s.
    """

    def __init__(
        self,
        folder: Path,
        slower: float = 1.0,
        robot: str = "quadruped",
        rt_priority: int = 0,
        speed_rad_s: float = 0.0,
        other_nodes: Mapping[str, OtherNode] | None = None,
    ) -> None:
        self.folder, self.slower, self._speed_rad_s = folder, slower, speed_rad_s
        parameters = campaign_parameters(robot, 1.0 / slower)
        robot_parameters = parameters[ROBOT]
        self._parameters = {name: parameters[name] for name in (CONTROLLER, WATCHDOG)}
        given = self._parameters[CONTROLLER]
        given["use_sim_time"] = False
        self._parameters[WATCHDOG]["commanders"] = [f"/{CONTROLLER}"]
        self.command_timeout_s = float(self._parameters[WATCHDOG]["timeout_s"])
        for values in self._parameters.values():
            values["state_folder"] = str(folder.resolve() / "state")
        for name in TIMES:
            given[name] = slower * given.get(name, getattr(ControllerSettings(), name))
        settings = ControllerSettings.from_mapping(given)
        model = settings.robot()
        self.limits, self.state_timeout_s = model.effort_limits, settings.state_timeout_s
        self.own_torques = OWN_SHARE * self.limits * np.resize([1.0, -1.0], len(self.limits))
        self._joints = list(model.joint_names)
        self.words = [*self._joints, *settings.contact_names, "base", "world"]
        posture = np.array(robot_parameters["initial_joint_positions"], dtype=float)
        self._state = standing_state(Controller(model, settings), posture)
        self._model = model
        self.on_command: Callable[[np.ndarray, float, float], None] = lambda *_: None
        self._live = {
            spec.name: getattr(settings, spec.name)
            for spec in TABLE
            if spec.live and getattr(settings, spec.name) != ()
        }
        file = folder / "parameters.yaml"
        make_folder(folder / "log")
        check_free(file)
        self.other_nodes = OtherNodes(other_nodes or {}, folder)
        self.words += self.other_nodes.words
        # The viewer drives the planner, whose limits it looks for by the name alone.
        driven = {PLANNER: parameters[PLANNER]}
        write_parameters(file, self._parameters | driven | self.other_nodes.parameters)
        self.environment = ros_environment(free_domain(), folder / "log")
        self._system = RosSystem("fuzz", self.environment)
        self._connect()
        asked = scheduling.Scheduling(rt_priority)
        self._scheduling = scheduling.Process(scheduling.Scheduling(max(rt_priority - 1, 0)))
        commands = {name: node_command(name, file, asked.words()) for name in self._parameters}
        commands[CONTROLLER] += ["-r", "commands:=commands_in"]
        commands |= self.other_nodes.commands
        self._names = list(commands)
        self.nodes = NodeGroup(commands, folder / "log", self.environment)

    def _connect(self) -> None:
        self.node, self._executor = self._system.node, self._system.executor()
        publish = self.node.create_publisher
        self._odometry = publish(Odometry, "odometry", _RELIABLE)
        self._states = publish(JointState, "joint_states", _RELIABLE)
        self._good = {name: packed(message) for name, message in self._messages()}
        self._good |= self.other_nodes.good()
        self.other_nodes.connect(self.node)
        self._subscription = self.node.create_subscription(
            Float64MultiArray, "commands", lambda _: None, _NEWEST, raw=True
        )
        self._next_state_s = self._next_serve_s = self._torque_s = 0.0
        self.doors: dict[str, Door] = {}
        self.services: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        self._futures: dict[str, deque] = {}
        self._stops = itertools.cycle((CONTROLLER, WATCHDOG, STOP_TOPIC))
        self._workers: dict[str, int] = {}
        self._dead: set[str] = set()

    def __enter__(self) -> FuzzWorld:
        return self

    def __exit__(self, *_) -> None:
        self._scheduling.unsettle()
        self.nodes.end()
        self._executor.shutdown()
        self._system.close()

    # Messages

    def _messages(self):
        """(topic, message) of each that is taken as it is, but for its stamp."""
        model, state = self._model, self._state
        position, none = model.joints_of(state.q).tolist(), [0.0] * len(self._joints)
        yield "/joint_states", joint_state_of(model, state, speed_rad_s=self._speed_rad_s)
        yield "/odometry", odometry_of(state)
        plan = JointTrajectory(joint_names=self._joints)
        for k in (1, 2):
            point = JointTrajectoryPoint(positions=position, velocities=none)
            point.time_from_start.nanosec = 50_000_000 * k
            plan.points.append(point)
        yield "/joint_trajectory", plan
        yield "/commands_in", Float64MultiArray(data=self.own_torques.tolist())

    def turn(self, states: bool = True) -> None:
        """Send the state that is due, take the commands that have come, serve answers."""
        now_s = time.monotonic()
        if states and now_s >= self._next_state_s:
            self._next_state_s = now_s + STATE_PERIOD_S
            now_ns = time.time_ns()
            self._odometry.publish(with_stamp(self._good["/odometry"], now_ns))
            self._states.publish(with_stamp(self._good["/joint_states"], now_ns))
        self.other_nodes.turn(now_s)
        self._take()
        if now_s >= self._next_serve_s:
            self._next_serve_s = now_s + SERVE_PERIOD_S
            for _ in range(ANSWERS):
                self._executor.spin_once(timeout_sec=0.0)

    def _take(self) -> None:
        while True:
            with self._subscription.handle:
                taken = self._subscription.handle.take_message(Float64MultiArray, True)
            if taken is None:
                return
            data, info = taken
            # The middleware's thread took it; this process may have been busy with its own attack.
            received_ns = info["received_timestamp"] or time.time_ns()  # 0 where it is unknown
            arrived_s = time.monotonic() - 1e-9 * (time.time_ns() - received_ns)
            efforts = np.array(deserialize_message(data, Float64MultiArray).data)
            if efforts.any():
                self._torque_s = arrived_s
            age_s = 1e-9 * (info["received_timestamp"] - info["source_timestamp"])
            self.on_command(efforts, age_s, arrived_s)

    @property
    def has_torque(self) -> bool:
        """Whether the robot is given some."""
        return time.monotonic() - self._torque_s < STILL_S

    # Nodes

    def begin(self) -> None:
        """Wait until torque flows, and find all doors.

        Raises:
            RunError: it does not.
        """
        self._need(lambda: self.has_torque, "the first torque", START_S)
        known = self.node.get_node_names
        self._need(lambda: set(self._names) <= set(known()), "the names of all nodes", START_S)
        beside = self.other_nodes
        self._need(lambda: beside.listen(self.node, class_of), "topics of results", START_S)
        beside.begin_work()
        self._need(
            lambda: all(beside.works(name, self.ask) for name in beside), "work of all", START_S
        )
        beside.listen(self.node, class_of)
        self._find_doors()
        self._workers = self._children()
        self._scheduling.settle(self.node.get_logger().warning)

    def restart(self, name: str) -> None:
        """Start a node again that has ended."""
        self._scheduling.unsettle()  # it would inherit it while it compiles
        self.nodes.restart(name)
        self._scheduling.settle(self.node.get_logger().warning)

    def _find_doors(self) -> None:
        node, found = self.node, {}
        for name in self._names:
            other_node = name if name in self.other_nodes else ""
            space = f"/{other_node}"
            for topic, (kind, *_) in node.get_subscriber_names_and_types_by_node(name, space):
                if topic not in found or not other_node:
                    found[topic] = kind, other_node
        # Not by node: the watchdog's reserve has its name and offers none.
        own = tuple(f"/{name}/" for name in self._names)
        for service, (kind, *_) in node.get_service_names_and_types():
            if service.startswith(own) and service.rpartition("/")[2] not in NOT_ASKED:
                self.services[service] = class_of(kind)
        for topic, (kind, other_node) in found.items():
            loaded = class_of(kind)
            self.doors[topic] = Door(
                loaded,
                node.create_publisher(loaded, topic, _RELIABLE),
                self._good.get(topic),
                stamped="header" in loaded.get_fields_and_field_types(),
                is_state=topic in ("/joint_states", "/odometry"),
                commands=topic == "/commands_in",
                other_node=other_node,
            )
        # Its own commands the controller receives only while another node could send there.
        self.doors.pop("/commands", None)

    def attacked(self, nodes: Sequence[str]) -> tuple[dict[str, Door], dict[str, Any]]:
        """Doors and services of these nodes; none named: all."""
        beside = {name for name in self.other_nodes if not nodes or name in nodes}
        loop = not nodes or bool(set(nodes) & {CONTROLLER, WATCHDOG})
        wanted = beside | ({""} if loop else set())
        doors = {name: door for name, door in self.doors.items() if door.other_node in wanted}
        services = {
            name: kind for name, kind in self.services.items() if self.owner(name) in wanted
        }
        return doors, services

    def owner(self, service: str) -> str:
        """The node beside that serves it; empty: controller or watchdog."""
        name = service.split("/")[1]
        return name if name in self.other_nodes else ""

    def _need(self, condition: Callable[[], Any], what: str, patience_s: float) -> None:
        end_s = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > end_s:
                raise RunError(f"{what}: not within {patience_s:g} s; see {self.folder / 'log'}")
            self.nodes.check()
            self.turn()
            time.sleep(1e-3)

    def _children(self) -> dict[str, int]:
        """Process that works, by node: the oldest child of a keeper, or the process itself."""
        found = {}
        for name in self._names:
            pid = self.nodes[name].pid
            path = Path(f"/proc/{pid}/task/{pid}/children")
            words = path.read_text(encoding="ascii").split() if path.exists() else []
            found[name] = min(map(int, words), default=pid)
        return found

    def deaths(self) -> list[str]:
        """Processes that have died since the last call."""
        new = []
        for name in self._names:
            if not self.nodes[name].running and name not in self._dead:
                self._dead.add(name)
                new.append(f"{name}: {self.nodes[name].last_lines()[-500:]}")
        if not self._dead:
            now = self._children()
            new += [f"worker of {name}" for name in now if now[name] != self._workers[name]]
            self._workers = now
        return new

    # Services

    def ask(self, service: str, request: Any, kind: Any = None) -> Any:
        """Call a service; the future of its answer, or None where it is not there."""
        if service not in self._clients:
            kind = kind or self.services[service]
            self._clients[service] = self.node.create_client(kind, service)
            self._futures[service] = deque()
        if not self._clients[service].service_is_ready():
            return None
        future = self._clients[service].call_async(request)
        self._futures[service].append((time.monotonic(), future))
        return future

    @property
    def asked(self) -> list[str]:
        """Services that were called."""
        return list(self._futures)

    def waiting(self, service: str) -> int:
        """Requests that have no answer yet."""
        futures = self._futures.get(service, deque())
        while futures:
            asked_s, future = futures[0]
            if not future.done():
                if time.monotonic() - asked_s < PATIENCE_S:
                    break
                self._clients[service].remove_pending_request(future)
            futures.popleft()
        return len(futures)

    def emergency_stop(self) -> tuple[str, float]:
        """Ask one node for it, then the other, then by the topic; the name of the way, and when."""
        way = next(self._stops)
        asked_s = time.monotonic()
        if way == STOP_TOPIC:
            self.doors[STOP_TOPIC].publisher.publish(Bool(data=True))
        else:
            self.ask(f"/{way}/emergency_stop", SetBool.Request(data=True), SetBool)
        return way, asked_s

    def release(self) -> None:
        """Release all emergency stops, and begin anew."""
        self.release_stops()
        self.deactivate()
        self.activate()

    def release_stops(self) -> None:
        """Ask both nodes to release their emergency stops."""
        for node in (WATCHDOG, CONTROLLER):
            self.ask(f"/{node}/emergency_stop", SetBool.Request(data=False), SetBool)

    def activate(self) -> None:
        """Ask the controller to command."""
        self._change(Transition.TRANSITION_ACTIVATE)

    def deactivate(self) -> None:
        """Ask the controller to command no more."""
        self._change(Transition.TRANSITION_DEACTIVATE)

    def _change(self, number: int) -> None:
        change = ChangeState.Request(transition=Transition(id=number))
        self.ask(f"/{CONTROLLER}/change_state", change, ChangeState)

    def mend(self) -> None:
        """Where there is no torque, lead the controller back to it."""
        if not self.has_torque:
            self.release()

    def put_back(self) -> None:
        """Set all parameters to what they were."""
        values = [Parameter(name, value=_plain(value)) for name, value in self._live.items()]
        request = SetParametersAtomically.Request(
            parameters=[value.to_parameter_msg() for value in values]
        )
        service = f"/{CONTROLLER}/set_parameters_atomically"
        self.ask(service, request, SetParametersAtomically)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def class_of(type_name: str) -> Any:
    """Class of a message or service, such as std_msgs/msg/String."""
    package, kind, name = type_name.split("/")
    return getattr(__import__(f"{package}.{kind}", fromlist=[name]), name)
