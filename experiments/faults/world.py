"""The nodes of a walking robot as processes, and a relay that can spoil what passes between."""

from __future__ import annotations

import os
import signal
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
)

from contact_id_controller.exceptions import RunError
from contact_id_controller.files import check_free, make_folder
from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.command_messages import message_class
from contact_id_controller.ros.direct_loop import DirectLoop
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.runs.processes import NodeGroup, free_domain, ros_environment
from contact_id_controller.runs.ros_run import READY
from contact_id_controller.runs.ros_system import RosSystem
from contact_id_controller.settings.command_interfaces import DEFAULT, INTERFACES
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait import HORIZON_S
from contact_id_controller.settings.parameter_file import write_parameters
from experiments.faults.nodes import (
    CONTROLLER,
    REAL_TIME_FACTOR,
    ROBOT,
    STALL_VARIABLE,
    WATCHDOG,
    campaign_parameters,
    command_line,
)
from experiments.faults.relay import FaultRelay
from experiments.faults.simulated_effort_controller import UrdfLimits

START_S, PATIENCE_S = 300.0, 20.0
"""Patience with the start, which may compile, and with services."""

TRANSITIONS = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
}

STALL_S = 0.1
"""Simulated time for which a solution lets itself be waited for."""

UPRIGHT = 0.7
"""Part of the initial height above which the robot has not fallen."""

TIMES = ("recovery_window_s", "failures_in_a_row", "state_timeout_s", "command_horizon_s")
"""Parameters of the controller that the campaign knows."""

TILT_RAD = 0.35
ATTEMPTS = 3
MOVING_RAD_S = 1.0
"""Joint speed that shows walking."""


class FaultWorld:
    """Simulated robot, planner, controller and watchdog, walking; leaving the ``with`` ends them.

    Everything runs in the thread that calls: what waits here, relays meanwhile.

    Args:
        folder: for parameters and logs.
        robot: name of a configuration file.
        real_time_factor: of the simulation; time-outs by the wall clock are as many times longer.
        interface: ``command_interface`` of all nodes.
        is_interrupted: whether this process is to end; looked at while it waits.

    Attributes:
        file: with the parameters of all nodes.
    """

    def __init__(
        self,
        folder: Path,
        robot: str = "quadruped",
        real_time_factor: float = REAL_TIME_FACTOR,
        interface: str = DEFAULT,
        is_interrupted: Callable[[], bool] = lambda: False,
    ):
        self._is_interrupted = is_interrupted
        self.folder, self.real_time_factor = folder, real_time_factor
        self.interface = interface
        self.parameters = campaign_parameters(robot, real_time_factor, interface)
        self.killed: set[str] = set()
        controller, watchdog = self.parameters[CONTROLLER], self.parameters[WATCHDOG]
        count = len(controller["joints"])
        self.simulated_period_s = controller["period_s"]
        self.period_s = self.simulated_period_s / real_time_factor
        settings = ControllerSettings(
            **{name: controller[name] for name in TIMES if name in controller}
        )
        self.recovery_window_s = settings.recovery_window_s
        self.failures_in_a_row = settings.failures_in_a_row
        self.plan_s = HORIZON_S
        self.horizon_s = settings.command_horizon_s
        self.simulated_timeout_s = settings.state_timeout_s
        self.command_timeout_s = watchdog["timeout_s"]
        self.limits = np.resize(watchdog["effort_limits_nm"], count).astype(float)
        damping = np.resize(controller["damping_nm_s_rad"], count)

        self.file = folder / "parameters.yaml"
        make_folder(folder)
        make_folder(folder / "log")  # before anything has begun
        check_free(self.file)
        self.write_parameters()
        environment = ros_environment(free_domain(), folder / "log")
        environment[STALL_VARIABLE] = str(STALL_S / real_time_factor)
        self._system = RosSystem("faults", environment)
        robot = RobotModel.from_urdf(controller["urdf"], joints=controller["joints"])
        enforced = UrdfLimits(
            np.where(robot.upper > robot.lower, robot.lower, -np.inf),
            np.where(robot.upper > robot.lower, robot.upper, np.inf),
            robot.velocity_limits,
            robot.effort_limits,
        )
        self._connect(controller["joints"], damping, enforced)
        self.nodes = NodeGroup(
            {name: command_line(name, self.file) for name in self.parameters},
            folder / "log",
            environment,
        )

    def _connect(self, joints: list[str], damping: np.ndarray, enforced: UrdfLimits) -> None:
        """The node of this process: relay, intruder, and whoever calls services."""
        self.node = self._system.node
        self._executor = GuardedExecutor(self.node, context=self._system.context)
        self.relay = FaultRelay(self.node, joints, self.limits, damping, enforced, self.interface)
        self._loop = DirectLoop(self._executor, lambda: self.relay.subscriptions)
        publish = self.node.create_publisher
        self.plans = publish(JointTrajectory, "joint_trajectory", 10)
        self.base_plans = publish(MultiDOFJointTrajectory, "base_trajectory", 10)
        self.schedules = publish(JointTrajectory, "contact_schedule", 10)
        row = INTERFACES[self.interface]
        self._intruder = publish(message_class(row), f"{row.topic}_in", 10)
        self._figures: dict[str, dict[str, str]] = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        services = {
            "change_state": (ChangeState, CONTROLLER),
            "resume": (Trigger, CONTROLLER),
            "set_parameters": (SetParameters, CONTROLLER),
            "set_parameters_atomically": (SetParametersAtomically, CONTROLLER),
            "reset": (Trigger, ROBOT),
        }
        self._clients = {
            name: self.node.create_client(kind, f"{owner}/{name}")
            for name, (kind, owner) in services.items()
        }
        self._stops = {
            name: self.node.create_client(SetBool, f"{name}/emergency_stop")
            for name in (CONTROLLER, WATCHDOG)
        }

    def __enter__(self) -> FaultWorld:
        return self

    def __exit__(self, *_) -> None:
        self.nodes.end()
        self._executor.shutdown()
        self._system.close()

    # Time

    def spin(self, duration_s: float) -> None:
        """Relay for this long, wall time."""
        self.until(lambda: False, duration_s)

    def until(self, condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> bool:
        """Relay until a condition holds; whether it does in time.

        Raises:
            KeyboardInterrupt: this process is to end.
        """
        end_s = time.monotonic() + patience_s
        while not condition():
            if self._is_interrupted():
                raise KeyboardInterrupt
            left_s = end_s - time.monotonic()
            if left_s <= 0.0:
                return bool(condition())
            self._loop.spin_once(min(left_s, 0.005))
        return True

    def need(self, condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> None:
        """Relay until a condition holds.

        Raises:
            RunError: it does not in time, or a process ended that was not killed.
        """
        self.until(lambda: condition() or self.dead(), patience_s)
        if condition():
            return
        dead = self.dead()
        reason = f"{', '.join(dead)} ended" if dead else f"not within {patience_s:g} s"
        raise RunError(f"{what}: {reason}; see {self.folder / 'log'}")

    def spoil(self, simulated_s: float, **spoilers: Any) -> None:
        """Set attributes of the relay, such as ``spoil_odometry``, for so long; then all passes again.

        Raises:
            RunError: the robot's time does not go on.
        """
        relay, begun_s = self.relay, self.relay.stamp_s
        for name, value in spoilers.items():
            setattr(relay, name, value)
        self.need(lambda: relay.stamp_s >= begun_s + simulated_s, "states of the robot", 60.0)
        relay.heal()

    @property
    def state_timeout_s(self) -> float:
        """The controller's time-out by the wall clock: it goes by the time of the states."""
        return self.simulated_timeout_s * max(self.relay.pace, 1.0 / self.real_time_factor)

    def intrude(self, efforts: list[float]) -> None:
        """Send the watchdog efforts that the controller did not."""
        if not INTERFACES[self.interface].bridges:
            self._intruder.publish(Float64MultiArray(data=efforts))
            return
        zero, names = [0.0] * len(efforts), self.relay.joints[: len(efforts)]
        message = JointTrajectory(joint_names=names)
        for k in range(2):
            point = JointTrajectoryPoint(positions=zero, velocities=zero, accelerations=zero)
            point.effort = efforts
            point.time_from_start.nanosec = k * 50_000_000
            message.points.append(point)
        self._intruder.publish(message)

    # Nodes

    def workers(self, name: str) -> list[int]:
        """Processes of a keeper: the one that works, and the one in reserve, which is younger."""
        pid = self.nodes[name].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return sorted(map(int, children))

    def kill_worker(self, name: str, number: int = signal.SIGKILL) -> float:
        """End the process that works for a keeper, or send it another signal; the time of it."""
        pid = self.workers(name)[0]
        begun_s = time.monotonic()
        os.kill(pid, number)
        return begun_s

    def kill(self, name: str) -> float:
        """End a process by SIGKILL; the time of it."""
        self.killed.add(name)
        begun_s = time.monotonic()
        self.nodes[name].send(signal.SIGKILL)
        return begun_s

    def kill_all(self, name: str) -> float:
        """End a process and those that it started by SIGKILL; the time of it."""
        self.killed.add(name)
        return self.send_all(name, signal.SIGKILL)

    def send_all(self, name: str, number: int) -> float:
        """Send a signal to a process and those that it started; the time of it."""
        begun_s = time.monotonic()
        os.killpg(self.nodes[name].pid, number)
        return begun_s

    def ask_to_end(self, name: str, number: int) -> float:
        """Send a process a signal that asks it to end; the time of it."""
        self.killed.add(name)
        begun_s = time.monotonic()
        self.nodes[name].send(number)
        return begun_s

    def write_parameters(self, **changed: Any) -> None:
        """Write the file that processes read at their start; changed: parameters of the controller."""
        controller = {**self.parameters[CONTROLLER], **changed}
        write_parameters(self.file, {**self.parameters, CONTROLLER: controller})

    def restart(self, name: str, output: int | None = None) -> None:
        """Start a process again that was killed; output: as for `NodeGroup.restart`."""
        self.nodes.restart(name, output)
        self.killed.discard(name)
        self._figures.pop(name, None)

    def beside(self, name: str, command: Sequence[str]) -> str:
        """Start a companion; what it has printed until it was ready.

        Raises:
            RunError: it is not ready in time.
        """
        self.nodes.start(name, command)
        printed = self.nodes[name].output
        self.need(lambda: READY in printed().splitlines(), f"{name} to be ready", START_S)
        return printed()

    def dead(self) -> list[str]:
        """Processes that have ended and were not killed."""
        return [
            name
            for name in self.parameters
            if not self.nodes[name].running and name not in self.killed
        ]

    def figures(self, name: str, patience_s: float = PATIENCE_S) -> dict[str, str]:
        """Keys and values of a node's /diagnostics, of a message still to come."""
        self._figures.pop(name, None)
        self.need(lambda: name in self._figures, f"diagnostics of {name}", patience_s)
        return self._figures[name]

    def call(self, service: str, request) -> Any:
        """Call a service and return its answer.

        Raises:
            RunError: no answer.
        """
        return self._call(self._clients[service], request)

    def stop(self, name: str, engage: bool = True) -> bool:
        """Engage or release the emergency stop of the controller or the watchdog; whether it did.

        Raises:
            RunError: no answer.
        """
        return bool(self._call(self._stops[name], SetBool.Request(data=engage)).success)

    def _call(self, client, request) -> Any:
        self.need(client.service_is_ready, f"service {client.srv_name}")
        future = client.call_async(request)
        self.need(future.done, f"answer of service {client.srv_name}")
        return future.result()

    def change(self, transition: str) -> bool:
        """Ask the controller for a transition; whether it was made."""
        request = ChangeState.Request(transition=Transition(id=TRANSITIONS[transition]))
        return bool(self.call("change_state", request).success)

    def set_later(self, values: dict[str, Any]):
        """Ask the controller for parameters without waiting; the future of the answer."""
        return self.ask_later([_parameter(*item) for item in values.items()])

    def ask_later(self, parameters: list[ParameterMessage]):
        """The same for parameters as they are, right or wrong."""
        request = SetParameters.Request(parameters=parameters)
        return self._clients["set_parameters"].call_async(request)

    def refusals(self, parameters: list[ParameterMessage]) -> list[str]:
        """Ask for each by both services: reasons why it was refused, "" where it was not.

        Raises:
            RunError: no answer.
        """
        results = []
        for parameter in parameters:
            request = SetParameters.Request(parameters=[parameter])
            results += self.call("set_parameters", request).results
            request = SetParametersAtomically.Request(parameters=[parameter])
            results.append(self.call("set_parameters_atomically", request).result)
        return ["" if result.successful else result.reason or "no reason" for result in results]

    @property
    def watchdog_takes_parameters(self) -> bool:
        """Whether it offers a service by which a peer could set any."""
        # Not by node: its reserve has its name, too.
        offered = self.node.get_service_names_and_types()
        return any(name.startswith(f"/{WATCHDOG}/") and "parameter" in name for name, _ in offered)

    # Walking

    def begin(self) -> None:
        """Bring the robot back to its start, and let it walk.

        Raises:
            RunError: it does not, even at the last attempt (a machine may be busy).
        """
        for _ in range(ATTEMPTS):
            self._place()
            if self.walks_on(0.6):
                return
        place = np.round(self.relay.base[:3], 3).tolist()
        raise RunError(
            f"the robot does not walk in {ATTEMPTS} attempts: base at {place} m, "
            f"tilted by {self.relay.tilt_rad:.2f} rad (a busy machine? --real-time-factor)"
        )

    def _place(self) -> None:
        relay = self.relay
        relay.heal()
        relay.group.deactivate()
        for name in list(self.killed):
            self.restart(name)
        states = relay.states
        self.need(lambda: relay.states > states, "states of the simulated robot", START_S)
        # A controller that has been configured has diagnostics.
        known = self._figures
        self.need(lambda: {CONTROLLER, WATCHDOG} <= known.keys(), "both nodes", START_S)
        self.put_back()
        for name in self._stops:  # which outlive a process, and a campaign that was interrupted
            self.stop(name, engage=False)
        self.change("deactivate")
        # The planner notices that time went back, and plans for the posture of the start; the
        # watchdog trips, so that the activation counts.
        self.spin(1.5 * self.command_timeout_s)
        self.need(self._activated, "activation")
        self.spin(0.5)  # a plan is repeated each quarter of a second while time stands still
        self._height_m = relay.height_m
        relay.group.activate()
        self.need(lambda: relay.stamp_s > 0.02, "the first step")

    def _activated(self) -> bool:
        """Whether it was activated anew; it may have done so itself, as it does at its start."""
        change = self.change
        return change("activate") or (change("deactivate") and change("activate"))

    def put_back(self) -> None:
        """Bring the robot to its start, where it is held until it is given commands."""
        self.need(lambda: self.call("reset", Trigger.Request()).success, "reset")
        # Held, the stamps stay within the first millisecond.
        self.need(lambda: self.relay.stamp_s < 1e-3, "the robot at its start")

    def walks_on(self, simulated_s: float = 0.3) -> bool:
        """Whether the robot keeps upright and moves its legs, commanded, for so long."""
        relay = self.relay
        begin_s, commands = relay.stamp_s, len(relay.times_s)
        fastest = 0.0

        def over() -> bool:
            nonlocal fastest
            fastest = max(fastest, np.abs(relay.velocity).max())
            return relay.stamp_s > begin_s + simulated_s or not self.upright

        self.until(over, 4.0 * simulated_s / self.real_time_factor)
        commanded = not any(relay.safe[-20:]) and len(relay.times_s) > commands + 20
        moved_on = relay.stamp_s > begin_s + simulated_s
        return self.upright and commanded and moved_on and fastest > MOVING_RAD_S

    @property
    def upright(self) -> bool:
        """Whether the robot stands or walks, in truth."""
        relay = self.relay
        return relay.height_m > UPRIGHT * self._height_m and relay.tilt_rad < TILT_RAD

    def until_safe(self, begun_s: float, patience_s: float = 5.0) -> float | None:
        """Time, s, from ``begun_s`` until the robot had the safe output; None: it never had."""
        relay = self.relay
        begin = bisect_left(relay.times_s, begun_s)

        def first() -> int | None:
            return next((k for k in range(begin, len(relay.safe)) if relay.safe[k]), None)

        self.until(lambda: first() is not None, patience_s)
        return None if first() is None else relay.times_s[first()] - begun_s

    def stays_safe(self, begun_s: float) -> bool:
        """Whether from the first safe output after ``begun_s`` on the robot had no other."""
        relay = self.relay
        safe = relay.safe[bisect_left(relay.times_s, begun_s) :]
        return True in safe and all(safe[safe.index(True) :])

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            node = status.name.partition(":")[0]
            self._figures[node] = {
                "": status.message,
                **{pair.key: pair.value for pair in status.values},
            }


def _parameter(name: str, value: Any) -> ParameterMessage:
    return Parameter(name, value=value).to_parameter_msg()
