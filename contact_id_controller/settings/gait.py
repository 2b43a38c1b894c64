"""Everything that can be set about the gait planner: one table for the library and the node."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.robot_rows import sole_of
from contact_id_controller.settings.specification import parameter

if TYPE_CHECKING:
    from contact_id_controller.geometry import SphereFoot

BY_PHASES = "phases"
"""The gait that is given by `touchdown_phases`."""

STEP = "step"
"""The gait whose footholds and step times follow the measured motion."""

MAP = "map"
"""The ground that is known from a height map."""

LEAD_TIME_S = 0.02
"""Time from the state that a plan is made from to its start: several times the delay of planning and two messages."""

TOUCH_LEAD_TIME_S = 0.01
"""The same where a foot has met the ground early: the last plan is wrong until then."""

LOOK_TIME_S = 0.005
"""Time between two looks at whether base or feet are off the plan, between two plans that are `LEAD_TIME_S` apart or more."""

MAX_YAW_RATE_RAD_S = 0.8
"""Largest yaw rate between way-points and from the live view's stick: half a turn in four seconds."""

HORIZON_S = 0.3
"""Length of a plan: one cycle of the first paper's gait, six times the default time between two plans."""


@dataclasses.dataclass(frozen=True)
class GaitSettings(Settings):
    """Settings of the gait planner; `from_mapping` checks every value.

    The defaults of the gait are those of the first paper, section 7.6.
    """

    # The robot
    feet: tuple[str, ...] = parameter(
        (),
        """Frames of the feet, in the order of touchdown_phases. With gait step a sole is written as in the
        controller's soles.""",
        when="Required: those of the controller's contact_frames that walk, or its soles.",
    )
    foot_radius_m: float = parameter(
        0.01,
        "Radius of the spherical feet; 0: points.",
        when="Set to the controller's contact_radii_m.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    ground_height_m: float = parameter(
        0.0,
        "Height of the level ground in the world of the odometry.",
        when="Set where the odometry does not begin with the feet at height 0.",
        unit="m",
    )
    ground: str = parameter(
        "level",
        """level: of ground_height_m, but where feet touch it elsewhere. felt: every foot is expected to land as high as it
        stood last, plus what the plane through the last footholds rises on the way; one that meets
        the ground early stands there, one that misses it comes down. map: known from a height map;
        footholds lie on its surface and swings pass over what lies between. With felt and map
        the base follows the plane through its feet in height, roll and pitch. With gait step level or
        map (flat areas).""",
        when="felt on rough ground or slopes, map on stairs.",
        choices=("level", "felt", MAP),
    )
    foothold_search_m: float = parameter(
        0.0,
        """How far from its nominal place a foothold may be moved to more even ground of the map; 0 with gait step: a
        sole's length.""",
        when="Raise to half the length of a step where the map has edges.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    posture: tuple[float, ...] = parameter(
        (),
        """Joint positions at rest, in the order of the joints; they give the nominal place of the
        feet below the base and its height. Empty: the first measured ones.""",
        when="Set to the posture in which the robot shall stand and walk.",
        unit="rad",
    )

    # The gait
    gait: str = parameter(
        BY_PHASES,
        """When each foot lands: as in touchdown_phases, or by where the feet stand below the base.
        walk: one after the other (duty_factor 0.75 and more keeps three on the ground); trot:
        diagonal ones together; pace: those of a side; bound: fore feet, then hind feet. step: of two
        feet, or two diagonal pairs, where and when the measured motion asks for it; times and lengths of steps
        follow from the posture, and of the rest of the gait only step_height_m counts, with a map
        foothold_search_m and max_step_height_m, too.""",
        when="walk for a heavy load or rough ground, step for two legs; topic gait changes it while walking.",
        choices=(BY_PHASES, "walk", "trot", "pace", "bound", STEP),
    )
    gait_period_s: float = parameter(
        0.3,
        "Duration of one cycle; pace and bound take no more than their height allows.",
        when="Raise for longer legs, with the root of their length.",
        unit="s",
        minimum=0.02,
        maximum=20.0,
    )
    duty_factor: float = parameter(
        0.75,
        """Part of the cycle that a foot stands; down to 0.5 less while the joints could not swing the feet fast
        enough.""",
        when="Lower to walk faster, raise for fewer feet in the air.",
        minimum=0.1,
        maximum=0.95,
    )
    touchdown_phases: tuple[float, ...] = parameter(
        (0.25, 0.75, 0.75, 0.25),
        "When each foot lands, as part of the cycle, with gait: phases.",
        when="Set for a gait of your own, or another order of the feet.",
        minimum=0.0,
        maximum=1.0,
    )
    step_height_m: float = parameter(
        0.015,
        "Height of the middle of a swing above its ends.",
        when="Raise for larger robots and where feet stumble.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    max_step_height_m: float = parameter(
        0.1,
        """Bound of that height where a swing passes over what lies between; step_height_m is added
        to what that takes. With gait step feet step no higher or lower.""",
        when="Raise for higher stairs, as far as the legs fold.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    swing_profile: str = parameter(
        "cubic",
        """cubic: clamped cubic spline (the paper's), foot acceleration jumps at lift-off and
        touchdown. quintic: it begins and ends at zero.""",
        when="quintic for heavy legs, whose torques would jump.",
        choices=("cubic", "quintic"),
    )
    step_in_place: bool = parameter(
        False,
        "Keep stepping while the commanded velocity is zero; false: stand.",
        when="Set true to tune a gait on the spot.",
    )

    # Where to go
    waypoints_m: tuple[float, ...] = parameter(
        (),
        """Way-points x1, y1, x2, y2, ... in the world frame, visited in order and again from the
        first; a velocity command replaces them.""",
        when="Set for a walk without an operator.",
        unit="m",
    )
    speed_m_s: float = parameter(
        0.2,
        "Speed between way-points, and of a full stick of the live view.",
        when="Set to what the robot walks safely.",
        unit="m/s",
        minimum=0.0,
        maximum=10.0,
    )
    heading: str = parameter(
        "fixed",
        "Between way-points keep the first heading, or turn towards the travel.",
        when="travel where the robot must look where it goes.",
        choices=("fixed", "travel"),
    )
    max_acceleration_m_s2: float = parameter(
        0.5,
        "Largest planned acceleration of the base.",
        when="On slippery ground well below friction coefficient times gravity; raise to start faster.",
        unit="m/s^2",
        minimum=1e-3,
        maximum=100.0,
    )

    # The plan
    plan_period_s: float = parameter(
        0.05,
        f"""Time between two plans, each {HORIZON_S:g} s long and begun {LEAD_TIME_S:g} s after its
        state ({TOUCH_LEAD_TIME_S:g} s after an early touch); with gait step at its state, otherwise {LEAD_TIME_S:g} s at least.""",
        when="Lower on uneven ground, to 0.01 with gait step; raise on a slow computer.",
        unit="s",
        minimum=0.005,
        maximum=0.28,
    )

    # Feedback
    tracking_time_constant_s: float = parameter(
        0.1,
        """Time constant with which the plan moves to where base (x, y, yaw) and standing feet
        really are.""",
        when="Lower on uneven ground, raise where the odometry is noisy.",
        unit="s",
        minimum=0.01,
        maximum=10.0,
    )
    footstep_feedback_s: float = parameter(
        0.05,
        "Shift of the footholds per error of base velocity.",
        when="Raise where the robot is pushed or stumbles.",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        self.require("feet", "the frames of the feet")
        self.refuse_repeated("feet")
        if self.gait == STEP:
            _ = self.contacts
            if self.ground not in ("level", MAP):
                raise ConfigurationError(
                    f"parameter 'ground' is {self.ground!r}, must be 'level' or 'map' with gait step"
                )
            self._refuse_half_waypoints()
            return
        if self.plan_period_s < LEAD_TIME_S:
            raise ConfigurationError(
                f"parameter 'plan_period_s' is {self.plan_period_s:g}, must be {LEAD_TIME_S:g} or more with gait "
                f"{self.gait}"
            )
        phases, feet = len(self.touchdown_phases), len(self.feet)
        if phases != feet:
            raise ConfigurationError(
                f"parameter 'touchdown_phases' has {phases} values, must have {feet}"
            )
        self._refuse_half_waypoints()

    def _refuse_half_waypoints(self) -> None:
        if len(self.waypoints_m) % 2:
            raise ConfigurationError(
                f"parameter 'waypoints_m' has {len(self.waypoints_m)} values, must be pairs x, y"
            )

    @property
    def foot_frames(self) -> tuple[str, ...]:
        """Frames of the feet, without sizes of soles."""
        return tuple(foot.split()[0] for foot in self.feet)

    @property
    def contacts(self) -> tuple[SphereFoot, ...]:
        """A ball for each round foot and for each corner of a flat one.

        Raises:
            ConfigurationError: see ``sole_of``.
        """
        from contact_id_controller.geometry import SphereFoot

        balls: list[SphereFoot] = []
        for foot in self.feet:
            flat = len(foot.split()) > 1
            balls += (
                sole_of(foot, "feet").corners() if flat else [SphereFoot(foot, self.foot_radius_m)]
            )
        return tuple(balls)

    def waypoints(self) -> np.ndarray:
        """The way-points as rows (w, 2), m."""
        return np.array(self.waypoints_m, dtype=float).reshape(-1, 2)
