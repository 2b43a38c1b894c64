"""The settings of the kinodynamic planner: one table for the library, the command and the node."""

from __future__ import annotations

import dataclasses

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.robot_rows import Description, FeetRows
from contact_id_controller.settings.shared_rows import contact_radii
from contact_id_controller.settings.specification import parameter


@dataclasses.dataclass(frozen=True)
class KinodynamicSettings(Settings):
    """Settings of `planning.kinodynamic.plan_motion`; `from_mapping` checks every value."""

    time_step_s: float = parameter(
        0.07,
        "Time between two knots: forces are constant that long, and phases last whole steps.",
        when="Lower for steps shorter than 0.5 s; a plan takes longer with more knots.",
        unit="s",
        minimum=1e-3,
        maximum=1.0,
    )
    swing_height_m: float = parameter(
        0.08,
        """Height of the middle of a swing above the way from foothold to foothold, at least: as much more as the
        sole needs to pass 1 cm above the ground of all footholds.""",
        when="Lower for small robots, raise for high stones.",
        unit="m",
        minimum=0.0,
        maximum=2.0,
    )


@dataclasses.dataclass(frozen=True)
class FootstepRows(Settings):
    """When the feet step, and from which posture."""

    posture: tuple[float, ...] = parameter(
        (),
        """Joint positions, in the order of the joints, in which the robot stands at first and to
        which it stays close. Empty: all 0.""",
        when="Set to a posture with bent knees.",
        unit="rad",
    )
    support_s: float = parameter(
        0.7,
        "Time for which all feet stand between two footsteps; twice that at the end.",
        when="Lower for small robots and four feet.",
        unit="s",
        minimum=1e-3,
        maximum=60.0,
    )
    swing_s: float = parameter(
        0.7,
        "Time for which a foot is aloft.",
        when="Lower for small robots; raise where a plan reports joints that are too fast.",
        unit="s",
        minimum=1e-3,
        maximum=60.0,
    )
    friction_coefficient: float = parameter(
        0.6,
        "Coulomb's, of the ground at footsteps that do not say another one.",
        when="Set to what the ground surely has.",
        minimum=0.0,
        maximum=10.0,
    )
    cop_margin_m: float = parameter(
        0.0175,
        "The planned centre of pressure stays this far inside the edges of a flat foot.",
        when="Lower for small soles, raise where a foot tips over its edge.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    footsteps: str = parameter(
        "",
        """File of footsteps, one row a step in the order in which they are made: {foot: frame, at:
        [x, y, z] of the frame, m, turned: [roll, pitch, yaw], degrees}; the robot stands around the
        origin, on level ground at height 0. package://contact_id_controller/config/<file>, or a
        path; a relative one begins at the parameter file in commands, where it runs in the node.""",
        when="Set to walk over given stones; topic footsteps brings others.",
    )


@dataclasses.dataclass(frozen=True)
class GoalRows(Settings):
    """How the robot walks straight to a goal on level ground."""

    goal: tuple[float, ...] = parameter(
        (),
        """Where to walk instead of over footsteps, unless another goal comes: x, y, m, of the middle
        of the feet and heading, rad, in the frame of the odometry. Empty: nowhere.""",
        when="Set to walk there at the start; topic goal_pose brings others.",
        unit="m, rad",
    )
    stride_m: float = parameter(
        0.2,
        "Longest way of a foot in one step.",
        when="Set to what the legs reach: about a fifth of their length.",
        unit="m",
        minimum=1e-3,
        maximum=5.0,
    )


@dataclasses.dataclass(frozen=True)
class NodeRows(Settings):
    """Further parameters of the node."""

    joints: tuple[str, ...] = parameter(
        (),
        "Actuated joints, in the order of posture; empty: all of the URDF, in its order.",
        when="Set to the controller's joints.",
    )
    execute_at_once: bool = parameter(
        False,
        """Send each plan as soon as it is made, one for the parameter footsteps at the start;
        false: ~/plan makes and shows it, ~/execute sends it.""",
        when="Set true where a plan needs no look before it is followed, as in simulation.",
    )


@dataclasses.dataclass(frozen=True)
class KinodynamicPlannerSettings(
    KinodynamicSettings, FootstepRows, GoalRows, NodeRows, FeetRows, Description
):
    """Settings of the command and of the node."""

    contact_radii_m: tuple[float, ...] = contact_radii(0.0, 0.0)

    def check_together(self) -> None:
        """Raise ConfigurationError when values that are each valid do not fit each other."""
        self.require("urdf", "a robot description")
        self.check_feet()
        if len(self.goal) not in (0, 3):
            raise ConfigurationError(
                f"parameter 'goal' has {len(self.goal)} values, must have 3: x, y, heading"
            )
        if not self.foot_frames:
            raise ConfigurationError(
                "parameters 'contact_frames' and 'soles' are empty, one must name feet"
            )
