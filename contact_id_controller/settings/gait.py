"""Everything that can be set about the gait planner: one table for the library and the node."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.specification import parameter

BY_PHASES = "phases"
"""The gait that is given by `touchdown_phases`."""


@dataclasses.dataclass(frozen=True)
class GaitSettings(Settings):
    """Settings of the gait planner; `from_mapping` checks every value.

    The defaults of the gait are those of the first paper, section 7.6.
    """

    # The robot
    feet: tuple[str, ...] = parameter(
        (),
        "Frames of the feet, in the order of touchdown_phases. Required.",
    )
    foot_radius_m: float = parameter(
        0.01,
        "Radius of the spherical feet; 0: points.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    foot_center_m: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "Centre of the foot sphere in the foot's frame.",
        unit="m",
    )
    ground_height_m: float = parameter(
        0.0,
        "Height of the level ground in the world of the odometry.",
        unit="m",
    )
    ground: str = parameter(
        "level",
        """level: of ground_height_m everywhere. felt: every foot is expected to land as high as it
        stood last, plus what the plane through the last footholds rises on the way; one that meets
        the ground early stands there, one that misses it comes down. map: known from a height map;
        footholds lie on its surface and swings pass over what lies between. With felt and map
        the base follows the plane through its feet in height, roll and pitch.""",
        choices=("level", "felt", "map"),
    )
    ground_time_constant_s: float = parameter(
        0.1,
        "Time constant with which height, roll and pitch of the base follow the feet.",
        unit="s",
        minimum=0.01,
        maximum=10.0,
    )
    foothold_search_m: float = parameter(
        0.0,
        "How far from its nominal place a foothold may be moved to more even ground of the map.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    posture: tuple[float, ...] = parameter(
        (),
        """Joint positions at rest, in the order of the joints; they give the nominal place of the
        feet below the base. Empty: the first measured ones.""",
        unit="rad",
    )
    base_height_m: float = parameter(
        0.0,
        "Height of the base above the ground; 0: the one of the posture.",
        unit="m",
        minimum=0.0,
        maximum=10.0,
    )

    # The gait
    gait: str = parameter(
        BY_PHASES,
        """When each foot lands: as in touchdown_phases, or by where the feet stand below the base.
        walk: one after the other (duty_factor 0.75 and more keeps three on the ground); trot:
        diagonal ones together; pace: those of a side; bound: fore feet, then hind feet.""",
        choices=(BY_PHASES, "walk", "trot", "pace", "bound"),
    )
    gait_period_s: float = parameter(
        0.3,
        "Duration of one cycle.",
        unit="s",
        minimum=0.02,
        maximum=20.0,
    )
    duty_factor: float = parameter(
        0.75,
        "Part of the cycle that a foot stands.",
        minimum=0.1,
        maximum=0.95,
    )
    touchdown_phases: tuple[float, ...] = parameter(
        (0.25, 0.75, 0.75, 0.25),
        "When each foot lands, as part of the cycle, with gait: phases.",
        minimum=0.0,
        maximum=1.0,
    )
    step_height_m: float = parameter(
        0.015,
        "Height of the middle of a swing above its ends.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    max_step_height_m: float = parameter(
        0.1,
        """Bound of that height where a swing passes over what lies between; step_height_m is added
        to what that takes.""",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    swing_profile: str = parameter(
        "cubic",
        """cubic: clamped cubic spline (the paper's), foot acceleration jumps at lift-off and
        touchdown. quintic: it begins and ends at zero.""",
        choices=("cubic", "quintic"),
    )
    roll_feet: bool = parameter(
        True,
        """Let the sphere of a standing foot roll: its point of contact is planned at rest. False:
        the centre of the sphere is, which makes a real contact slip by radius times rotation.""",
    )
    stand_time_s: float = parameter(
        0.3,
        "Time of standing before the first step.",
        unit="s",
        minimum=0.0,
        maximum=60.0,
    )
    step_in_place: bool = parameter(
        False,
        "Keep stepping while the commanded velocity is zero; false: stand.",
    )

    # Where to go
    waypoints_m: tuple[float, ...] = parameter(
        (),
        """Way-points x1, y1, x2, y2, ... in the world frame, visited in order and again from the
        first; a velocity command replaces them.""",
        unit="m",
    )
    arrival_radius_m: float = parameter(
        0.03,
        "A way-point is reached when the base is closer than this.",
        unit="m",
        minimum=1e-3,
        maximum=10.0,
    )
    speed_m_s: float = parameter(
        0.2,
        "Speed between way-points.",
        unit="m/s",
        minimum=0.0,
        maximum=10.0,
    )
    heading: str = parameter(
        "fixed",
        "Between way-points keep the first heading, or turn towards the travel.",
        choices=("fixed", "travel"),
    )
    heading_gain: float = parameter(
        2.0,
        "Yaw rate per error of heading.",
        unit="1/s",
        minimum=0.0,
        maximum=20.0,
    )
    max_yaw_rate_rad_s: float = parameter(
        0.8,
        "Largest yaw rate between way-points.",
        unit="rad/s",
        minimum=0.0,
        maximum=10.0,
    )
    velocity_time_constant_s: float = parameter(
        0.15,
        "Time constant with which planned base velocity approaches the commanded one.",
        unit="s",
        minimum=0.01,
        maximum=10.0,
    )
    max_acceleration_m_s2: float = parameter(
        0.5,
        """Largest planned acceleration of the base; on slippery ground well below friction
        coefficient times gravity.""",
        unit="m/s^2",
        minimum=1e-3,
        maximum=100.0,
    )
    max_yaw_acceleration_rad_s2: float = parameter(
        4.0,
        "Largest planned yaw acceleration.",
        unit="rad/s^2",
        minimum=1e-3,
        maximum=100.0,
    )
    cmd_vel_timeout_s: float = parameter(
        0.5,
        "A velocity command older than this counts as zero; 0: it holds for ever.",
        unit="s",
        minimum=0.0,
        maximum=60.0,
    )

    # The plan
    plan_period_s: float = parameter(
        0.05,
        "Time between two plans.",
        unit="s",
        minimum=2e-3,
        maximum=10.0,
    )
    horizon_s: float = parameter(
        0.3,
        "Length of a plan.",
        unit="s",
        minimum=0.02,
        maximum=10.0,
    )
    grid_s: float = parameter(
        0.02,
        "Time between two points of a plan.",
        unit="s",
        minimum=1e-3,
        maximum=1.0,
    )
    lead_time_s: float = parameter(
        0.02,
        "A plan starts this long after the state it was made from; at most plan_period_s.",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )

    # Feedback
    tracking_time_constant_s: float = parameter(
        0.1,
        """Time constant with which the plan moves to where base (x, y, yaw) and standing feet
        really are.""",
        unit="s",
        minimum=0.01,
        maximum=10.0,
    )
    footstep_feedback_s: float = parameter(
        0.05,
        "Shift of the footholds per error of base velocity.",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )
    restart_distance_m: float = parameter(
        0.1,
        """When base or a standing foot is farther from the plan than this, or the base turned by
        as many rad per 0.1 m, the planner starts anew by standing (odometry jumped, robot was
        pushed or carried).""",
        unit="m",
        minimum=1e-3,
        maximum=10.0,
    )
    balance: bool = parameter(
        False,
        """Plan height, roll and pitch from where they really are back to nominal, as virtual
        forces of the feet would move them that only push; off: always nominal. It steadies roll
        and pitch under inverse dynamics, which carries the weight; joint feedback alone sinks,
        because the plan sinks with the robot.""",
    )
    balance_gains: tuple[float, ...] = parameter(
        (1e2, 1e3, 1e3),
        "Virtual stiffness of height, N/m, roll and pitch, N·m/rad.",
        minimum=0.0,
    )
    balance_damping: tuple[float, ...] = parameter(
        (1e2, 1e2, 1e2),
        "Virtual damping of height, N·s/m, roll and pitch, N·m·s/rad.",
        minimum=0.0,
    )

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        lengths = (
            ("foot_center_m", 3),
            ("touchdown_phases", len(self.feet)),
            ("balance_gains", 3),
            ("balance_damping", 3),
        )
        self.require("feet", "the frames of the feet")
        self.refuse_repeated("feet")
        for name, length in lengths:
            if len(getattr(self, name)) != length:
                raise ConfigurationError(
                    f"parameter '{name}' has {len(getattr(self, name))} values, must have {length}"
                )
        if len(self.waypoints_m) % 2:
            raise ConfigurationError(
                f"parameter 'waypoints_m' has {len(self.waypoints_m)} values, must be pairs x, y"
            )
        if self.lead_time_s > self.plan_period_s:
            raise ConfigurationError(
                f"parameter 'lead_time_s' is {self.lead_time_s:g}, must not exceed plan_period_s "
                f"= {self.plan_period_s:g}"
            )
        if self.horizon_s < self.plan_period_s + self.lead_time_s:
            raise ConfigurationError(
                f"parameter 'horizon_s' is {self.horizon_s:g}, must reach beyond the next plan: "
                f"at least {self.plan_period_s + self.lead_time_s:g}"
            )

    def waypoints(self) -> np.ndarray:
        """The way-points as rows (w, 2), m."""
        return np.array(self.waypoints_m, dtype=float).reshape(-1, 2)
