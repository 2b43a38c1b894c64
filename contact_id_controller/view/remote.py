"""Calls services of controller, watchdog and simulated robot without waiting.

A stop engages two emergency stops: the controller's, and the watchdog's behind it, which works without the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

SHOWN = (
    "friction",
    "solver",
    "friction_coefficient",
    "contact_time_constant_s",
    "joint_position_gain",
    "joint_velocity_gain",
    "live_models",
)
"""Parameters that a page shows."""

CONTROLLER, WATCHDOG = "controller", "watchdog"
"""Their names on a page."""

GROUND = "friction_coefficient"
"""Name of the ground's friction among the parameters of a simulated robot."""


class Remote:
    """Clients of a controller and its watchdog; answers arrive while the node spins.

    Args:
        node: owner of the clients.
        controller, watchdog, robot: names of the nodes; a real robot has no node ``robot``.
        show: shows a line to the person who pressed a button.

    Attributes:
        values: of `SHOWN`, as last read from the controller.
        ground_friction: coefficient of the ground under a simulated robot; None: unknown.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        show: Callable[[str], None],
        watchdog: str = "command_watchdog",
        robot: str = "simulated_robot",
    ) -> None:
        self.values: dict[str, Any] = {}
        self.ground_friction: float | None = None
        self._show_line = show
        self._lines: dict[str, str] = {}
        client = node.create_client
        self._get = client(GetParameters, f"{controller}/get_parameters")
        self._set = client(SetParametersAtomically, f"{controller}/set_parameters_atomically")
        self._ground = client(GetParameters, f"{robot}/get_parameters")
        self._stops = {
            CONTROLLER: client(SetBool, f"{controller}/emergency_stop"),
            WATCHDOG: client(SetBool, f"{watchdog}/emergency_stop"),
        }
        # The watchdog obeys this topic at once, also during a service call.
        self._button = node.create_publisher(Bool, "emergency_stop", 10)
        self._resume = client(Trigger, f"{controller}/resume")
        self._reset = client(Trigger, f"{watchdog}/reset")

    @property
    def ready(self) -> bool:
        """Whether the parameter service is available."""
        return self._get.service_is_ready()

    def read(self) -> None:
        """Request the parameters, and the ground's friction."""
        if self.ready:
            answer = self._get.call_async(GetParameters.Request(names=list(SHOWN)))
            answer.add_done_callback(self._take)
        if self._ground.service_is_ready():
            answer = self._ground.call_async(GetParameters.Request(names=[GROUND]))
            answer.add_done_callback(self._take_ground)
        else:
            self.ground_friction = None

    def set(self, **values: Any) -> None:
        """Set parameters of the controller, all or none; the outcome is shown."""
        if not self._set.service_is_ready():
            self._show_line("the controller does not answer")
            return
        parameters = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        answer = self._set.call_async(SetParametersAtomically.Request(parameters=parameters))
        answer.add_done_callback(lambda done: self._show_result(values, done.result().result))

    def stop(self) -> None:
        """Engage the emergency stop of the controller and of the watchdog."""
        self._button.publish(Bool(data=True))
        self._call_stops(True, "does not answer: NOT stopped")

    def release(self) -> None:
        """Release both emergency stops; the robot stays stopped until it is resumed."""
        self._call_stops(False, "does not answer: NOT released")

    def resume(self) -> None:
        """Leave a stop and hold the present posture; an engaged emergency stop is not released."""
        self._lines = {}
        if not self._resume.service_is_ready():
            self._show_line("the controller does not answer")
            return

        def then(done: Any) -> None:
            self._answered(CONTROLLER, done.result())
            if done.result().success and self._reset.service_is_ready():
                answer = self._reset.call_async(Trigger.Request())
                answer.add_done_callback(lambda done: self._answered(WATCHDOG, done.result()))

        self._resume.call_async(Trigger.Request()).add_done_callback(then)

    def _call_stops(self, engage: bool, silent: str) -> None:
        """Call the emergency stops of controller and watchdog; ``silent`` is shown if the controller's is missing."""
        self._lines = {}
        for who, client in self._stops.items():
            if client.service_is_ready():
                answer = client.call_async(SetBool.Request(data=engage))
                answer.add_done_callback(lambda done, who=who: self._answered(who, done.result()))
            elif who == CONTROLLER:
                self._lines[who] = silent
            else:
                self._lines[who] = "none here"
        self._show_lines()

    def _answered(self, who: str, answer: Any) -> None:
        self._lines[who] = answer.message
        self._show_lines()

    def _show_lines(self) -> None:
        if self._lines:
            self._show_line(
                "; ".join(f"{who}: {line}" for who, line in sorted(self._lines.items()))
            )

    def _take_ground(self, done: Any) -> None:
        (value,) = map(parameter_value_to_python, done.result().values)
        self.ground_friction = None if value is None else float(value)

    def _take(self, done: Any) -> None:
        values = map(parameter_value_to_python, done.result().values)
        self.values = {
            name: list(value) if hasattr(value, "__len__") and not isinstance(value, str) else value
            for name, value in zip(SHOWN, values)
            if value is not None
        }

    def _show_result(self, values: dict[str, Any], result: Any) -> None:
        words = ", ".join(f"{name} {value}" for name, value in values.items())
        self._show_line(f"set {words}" if result.successful else f"refused: {result.reason}")
        self.read()
