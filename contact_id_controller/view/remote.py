"""The controller's services, called without waiting: parameters, emergency stop, resume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
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


class Remote:
    """Clients of one controller; answers arrive while the node spins.

    Args:
        node: owner of the clients.
        controller: name of the controller's node.
        told: takes a line for whoever pressed a button.

    Attributes:
        values: of `SHOWN`, as last read from the controller.
    """

    def __init__(self, node: Node, controller: str, told: Callable[[str], None]) -> None:
        self.values: dict[str, Any] = {}
        self._told = told
        client = node.create_client
        self._get = client(GetParameters, f"{controller}/get_parameters")
        self._set = client(SetParametersAtomically, f"{controller}/set_parameters_atomically")
        self._stop = client(SetBool, f"{controller}/emergency_stop")
        self._resume = client(Trigger, f"{controller}/resume")

    @property
    def ready(self) -> bool:
        """Whether parameters can be read."""
        return self._get.service_is_ready()

    def read(self) -> None:
        """Ask for the parameters."""
        if self.ready:
            answer = self._get.call_async(GetParameters.Request(names=list(SHOWN)))
            answer.add_done_callback(self._take)

    def set(self, **values: Any) -> None:
        """Set parameters of the controller, all or none; told whether it did."""
        if not self._set.service_is_ready():
            self._told("the controller does not answer")
            return
        parameters = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        answer = self._set.call_async(SetParametersAtomically.Request(parameters=parameters))
        answer.add_done_callback(lambda done: self._say(values, done.result().result))

    def emergency_stop(self, engage: bool) -> None:
        """Engage or release the emergency stop."""
        if not self._stop.service_is_ready():
            self._told("the controller does not answer: it was NOT stopped")
            return
        answer = self._stop.call_async(SetBool.Request(data=engage))
        answer.add_done_callback(lambda done: self._told(done.result().message))

    def resume(self) -> None:
        """Leave a stop and hold the present posture; an emergency stop is released first."""
        if not self._resume.service_is_ready():
            self._told("the controller does not answer")
            return
        released = self._stop.call_async(SetBool.Request(data=False))

        def then(_) -> None:
            answer = self._resume.call_async(Trigger.Request())
            answer.add_done_callback(lambda done: self._told(done.result().message))

        released.add_done_callback(then)

    def _take(self, done) -> None:
        values = map(parameter_value_to_python, done.result().values)
        self.values = {
            name: list(value) if hasattr(value, "__len__") and not isinstance(value, str) else value
            for name, value in zip(SHOWN, values)
            if value is not None
        }

    def _say(self, values: dict[str, Any], result) -> None:
        words = ", ".join(f"{name} {value}" for name, value in values.items())
        self._told(f"set {words}" if result.successful else f"refused: {result.reason}")
        self.read()
