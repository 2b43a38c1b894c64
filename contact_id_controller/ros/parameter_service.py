"""The parameter services of a node, which answer every request.

Those of rclpy raise for an unknown type, and read a value by its type alone: a request of type double that carries a
string sets 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import (
    ListParametersResult,
    ParameterType,
    ParameterValue,
    SetParametersResult,
)
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_service import ParameterService

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.safety.incidents import Incidents

MOST_IN_A_REQUEST = 300
"""Largest number of parameters, names or prefixes in a request: no node has more."""

LONGEST_S = 0.02
"""Longest time for a request whose parameters cannot be set together: each is then checked by itself."""

LONGEST_NAME = 200
"""Longest name of a parameter, characters."""

_FIELDS = {
    ParameterType.PARAMETER_BOOL: "bool_value",
    ParameterType.PARAMETER_INTEGER: "integer_value",
    ParameterType.PARAMETER_DOUBLE: "double_value",
    ParameterType.PARAMETER_STRING: "string_value",
    ParameterType.PARAMETER_BYTE_ARRAY: "byte_array_value",
    ParameterType.PARAMETER_BOOL_ARRAY: "bool_array_value",
    ParameterType.PARAMETER_INTEGER_ARRAY: "integer_array_value",
    ParameterType.PARAMETER_DOUBLE_ARRAY: "double_array_value",
    ParameterType.PARAMETER_STRING_ARRAY: "string_array_value",
}


def check_value(name: str, value: ParameterValue) -> None:
    """Refuse a value of unknown type, or with another type's field set.

    Raises:
        ConfigurationError: naming the parameter and its value.
    """
    if len(name) > LONGEST_NAME:
        raise ConfigurationError(
            f"a parameter name of {len(name)} characters, must have at most {LONGEST_NAME}"
        )
    if value.type == ParameterType.PARAMETER_NOT_SET:
        given = [field for field in _FIELDS.values() if getattr(value, field)]
    elif value.type in _FIELDS:
        given = [
            field for kind, field in _FIELDS.items() if kind != value.type and getattr(value, field)
        ]
    else:
        raise ConfigurationError(
            f"parameter '{name}' has type {value.type}, must be one of {min(_FIELDS)} to {max(_FIELDS)} "
            "of rcl_interfaces/ParameterType"
        )
    if given:
        raise ConfigurationError(
            f"parameter '{name}' has type {value.type}, but its {given[0]} is given"
        )


class AnsweringParameterService(ParameterService):
    """rclpy's service, which also answers requests for which that one raises.

    Args:
        node: the node.
        incidents: catches remaining errors.
    """

    def __init__(self, node: Node, incidents: Incidents) -> None:
        self._incidents = incidents
        super().__init__(node)

    def _set_parameters_callback(self, request: Any, response: Any) -> Any:
        response.results = self._checked(request, self._one_by_one)
        return response

    def _set_parameters_atomically_callback(self, request: Any, response: Any) -> Any:
        (response.result,) = self._checked(request, self._together)
        return response

    def _checked(
        self, request: Any, answer: Callable[[list[Any]], list[Any]]
    ) -> list[SetParametersResult]:
        """``answer`` to a request's parameters, or a refusal if they are too many."""
        count = len(request.parameters)
        if count > MOST_IN_A_REQUEST:
            refusal = f"{count} parameters in one request, must be at most {MOST_IN_A_REQUEST}"
            return [SetParametersResult(successful=False, reason=refusal)]
        return answer(request.parameters)

    def _one_by_one(self, messages: list[Any]) -> list[SetParametersResult]:
        """A result for each parameter; if all are good they are set together, which takes a millisecond."""
        if len(messages) > 1 and self._together(messages)[0].successful:
            return [SetParametersResult(successful=True) for _ in messages]
        end_s, results = time.monotonic() + LONGEST_S, []
        for message in messages:
            if time.monotonic() > end_s:
                refusal = (
                    f"{len(messages)} parameters in one request: no time left to check this one"
                )
                results.append(SetParametersResult(successful=False, reason=refusal))
            else:
                results += self._together([message])
        return results

    def _together(self, messages: list[Any]) -> list[SetParametersResult]:
        """One result for all parameters, which are set together or not at all."""
        try:
            for message in messages:
                check_value(message.name, message.value)
            parameters = [Parameter.from_parameter_msg(message) for message in messages]
        except ConfigurationError as error:
            return [SetParametersResult(successful=False, reason=str(error))]
        result = self._incidents.guarded("set_parameters", self._set, parameters)
        return [
            result
            or SetParametersResult(successful=False, reason="an error, see the log of the node")
        ]

    def _set(self, parameters: list[Parameter]) -> SetParametersResult:
        try:
            return self._get_node().set_parameters_atomically(parameters)
        except ParameterNotDeclaredException as error:
            return SetParametersResult(successful=False, reason=str(error))

    def _describe_parameters_callback(self, request: Any, response: Any) -> Any:
        return self._answered(
            request.names, super()._describe_parameters_callback, request, response
        )

    def _get_parameters_callback(self, request: Any, response: Any) -> Any:
        return self._answered(request.names, super()._get_parameters_callback, request, response)

    def _get_parameter_types_callback(self, request: Any, response: Any) -> Any:
        return self._answered(
            request.names, super()._get_parameter_types_callback, request, response
        )

    def _list_parameters_callback(self, request: Any, response: Any) -> Any:
        response.result = ListParametersResult()
        return self._answered(
            request.prefixes, super()._list_parameters_callback, request, response
        )

    def _answered(
        self, requested: list[Any], answer: Callable[..., Any], request: Any, response: Any
    ) -> Any:
        if len(requested) > MOST_IN_A_REQUEST:
            return response
        return self._incidents.guarded("parameters", answer, request, response) or response
