"""Rows of what counts as possible: plans and measurements beyond it are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from contact_id_controller.settings.specification import parameter


def _positive(count: int) -> Callable[[tuple[float, ...]], str]:
    words = f"be {count} numbers above 0"
    return lambda values: "" if len(values) == count and min(values) > 0.0 else words


_two_positive = _positive(2)


@dataclasses.dataclass(frozen=True)
class PlausibilitySettings:
    """What no plan may ask for, and what no measurement can say."""

    plan_position_margin: float = parameter(
        0.1,
        "Joint trajectories that go farther than this beyond an end that the URDF states are refused.",
        unit="rad or m",
        minimum=0.0,
        maximum=10.0,
        guards="most",
    )
    plan_speed_factor: float = parameter(
        10.0,
        """Joint trajectories faster than this times the velocity limit of the URDF are refused; what is
        slower, but beyond velocity_limits_rad_s, the controller slows down.""",
        minimum=1.0,
        maximum=100.0,
        guards="most",
    )
    plan_acceleration_limit: float = parameter(
        100000.0,
        "Joint trajectories with a larger acceleration of a joint are refused.",
        unit="rad/s^2",
        minimum=1e-3,
        maximum=1e6,
        guards="most",
    )
    base_plan_jump: tuple[float, ...] = parameter(
        (0.5, 1.0),
        """Base trajectories whose beginning is farther than this, m and rad, from the base motion
        that was followed, and from the measured base, are refused.""",
        unit="m, rad",
        maximum=1e3,
        validator=_two_positive,
        guards="most",
    )
    base_plan_speed: tuple[float, ...] = parameter(
        (10.0, 20.0),
        "Base trajectories that are faster, linear and angular, are refused.",
        unit="m/s, rad/s",
        maximum=1e3,
        validator=_two_positive,
        guards="most",
    )
    base_plan_acceleration: tuple[float, ...] = parameter(
        (500.0, 2000.0),
        "Base trajectories with a larger acceleration, linear or angular, are refused.",
        unit="m/s^2, rad/s^2",
        maximum=1e5,
        validator=_two_positive,
        guards="most",
    )
    possible_position_margin: float = parameter(
        0.5,
        "Joint states farther than this beyond an end that the URDF states are refused.",
        unit="rad or m",
        minimum=0.0,
        maximum=10.0,
        guards="most",
    )
    possible_speed_factor: float = parameter(
        5.0,
        "Joint states faster than this times the velocity limit of the URDF are refused.",
        minimum=1.0,
        maximum=100.0,
        guards="most",
    )
    possible_speed: float = parameter(
        500.0,
        """Joint states and trajectories faster than this are refused, where the URDF states no velocity
        limit.""",
        unit="rad/s",
        minimum=1e-3,
        maximum=1e4,
        guards="most",
    )
    joint_jump: float = parameter(
        0.2,
        """Change of a joint's position from one state to the next that its velocity does not explain
        and that is refused as a jump; three in a row that agree are its new place.""",
        unit="rad or m",
        minimum=1e-6,
        maximum=10.0,
        live=True,
        guards="most",
    )
    possible_base: tuple[float, ...] = parameter(
        (10000.0, 50.0, 100.0),
        """Odometry farther than this from its origin, m, faster, m/s, or turning faster, rad/s, is
        refused.""",
        unit="m, m/s, rad/s",
        maximum=1e7,
        validator=_positive(3),
        guards="most",
    )
