"""Differences of ros2_control and its controllers between ROS distributions, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from contact_id_controller.exceptions import ConfigurationError, choices

_FORWARD = (
    "take forward_command_controller/ForwardCommandController, which leaves the last effort when it is "
    "deactivated"
)
_GROUPS_GONE = {"effort_controllers/JointGroupEffortController": _FORWARD}
_CAPACITY = {
    "linear_feedback_controller/JointStateEstimator": "up to 4.0.3 it is not activated, because the capacity "
    "of its lists is 0 where get_ordered_interfaces (since 5.7) demands more: build it with reserve()"
}
_PYTROLLER = {"agimus_pytroller/AgimusPytroller": "it loads the Python 3.10 of Humble"}


class Distribution(NamedTuple):
    """One ROS distribution, as its newest versions are.

    Attributes:
        name: as in ``ROS_DISTRO``.
        manager, controllers: versions of ros2_control and ros2_controllers that were checked.
        enforces_limits: default of ``enforce_command_limits`` of controller_manager.
        gone: types of controllers that it lacks -> what to use instead.
        fails: types of controllers that it has, which fail in it -> which versions, and what helps.
        has_run: whether this package ran with these versions; else only their sources were read.
    """

    name: str
    manager: str
    controllers: str
    enforces_limits: bool
    gone: Mapping[str, str]
    fails: Mapping[str, str]
    has_run: bool = False

    def knows(self, since: str) -> bool:
        """Whether a feature that appeared in distribution ``since`` exists in this one; empty: it always did."""
        names = list(DISTRIBUTIONS)
        return not since or names.index(self.name) >= names.index(since)

    @property
    def words(self) -> str:
        """How the distribution was checked, in a line."""
        looked = "was driven" if self.has_run else "was read, not run"
        return (
            f"{self.name}: {looked} with ros2_control {self.manager} and ros2_controllers "
            f"{self.controllers}"
        )


DISTRIBUTIONS = {
    row.name: row
    for row in (
        Distribution("jazzy", "4.46", "4.42", False, _PYTROLLER, {}),
        Distribution("kilted", "5.16", "5.17", True, _PYTROLLER, _CAPACITY, has_run=True),
        Distribution("lyrical", "6.8", "6.9", True, _PYTROLLER | _GROUPS_GONE, _CAPACITY),
        Distribution("rolling", "6.8", "6.9", True, _PYTROLLER | _GROUPS_GONE, _CAPACITY),
    )
}
"""Name -> row, the oldest first."""


def distribution(name: str) -> Distribution:
    """The row of a distribution.

    Raises:
        ConfigurationError: unknown name.
    """
    if name not in DISTRIBUTIONS:
        raise ConfigurationError(f"ROS distribution is {name!r}, must be {choices(DISTRIBUTIONS)}")
    return DISTRIBUTIONS[name]
