"""The rows of the table of parameters: name and type, default, description, unit, range.

The options of the contact models come from their rows. `settings.controller` joins all into
`ControllerSettings` and checks values together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from contact_id_controller.models.registry import ROWS, model_parameters
from contact_id_controller.settings.robot_rows import RobotRows
from contact_id_controller.settings.shared_rows import (
    ODOMETRY_AGE_LIMIT_S,
    REPORT,
    STOP,
    autostart,
    command_interface,
    contact_radii,
    emergency_stop_output,
    full_names,
    group_controller,
    record_path,
    state_folder,
)
from contact_id_controller.settings.specification import parameter, settings_of


def _positive(values: tuple[float, ...]) -> str:
    return "" if all(value > 0.0 for value in values) else "be positive"


ESTIMATE = "estimate"
"""The source of contact that fuses plan, distance and the force in the leg's joints."""

MEASURED = ("force", "state")
"""Sources of contact that come on topics; one of them at most."""


def _one_or_two(values: tuple[str, ...]) -> str:
    different = len(set(values)) == len(values) and not set(values).issuperset(MEASURED)
    alone = ESTIMATE not in values or len(values) == 1
    good = different and alone and 1 <= len(values) <= 2
    return "" if good else "name one source or two different ones, estimate alone"


def _known_pairs() -> str:
    return ", ".join(map(str, ROWS.values()))


def _pairs(values: tuple[str, ...]) -> str:
    known = set(map(str, ROWS.values()))
    return "" if known.issuperset(values) else f"be pairs friction/solver out of {_known_pairs()}"


@dataclasses.dataclass(frozen=True)
class RobotSettings(RobotRows):
    """The robot, its motors and where it may touch the world."""

    contact_radii_m: tuple[float, ...] = contact_radii(0.0, 0.0)
    effort_limits_nm: tuple[float, ...] = parameter(
        (),
        """Largest torque; empty: the limits of the URDF. More than the URDF states is refused, unless
        effort_above_description.""",
        when="Set where the URDF states nothing, or more than your motors bear.",
        unit="N·m",
        minimum=0.0,
        infinite=True,
        per="joint",
        live=True,
    )
    effort_above_description: bool = parameter(
        False,
        """Let effort_limits_nm and velocity_limits_rad_s exceed what the URDF states, for a motor that can
        more. Only as given at the start of the node.""",
        when="Set true only for motors stronger than their URDF states.",
    )

    motor_constant_nm_sqrt_w: tuple[float, ...] = parameter(
        (),
        """Motor constant Kt / sqrt(R) on the joint's side of the gear, joint torque per root of the power
        that heats the motor, (torque / constant)^2; empty: unknown, and no power loss is reported.""",
        when="Set from the motor's data sheet (Kt over the root of R), times the gear ratio, for power_limit_w and qcqp.",
        unit="N·m/√W",
        minimum=0.0,
        validator=_positive,
        per="joint",
        live=True,
    )


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    """The control period and the contact model."""

    period_s: float = parameter(
        0.001,
        "Control period; must match the rate of the joint states.",
        when="Set to what your driver publishes joint states at.",
        unit="s",
        minimum=1e-5,
        maximum=0.1,
    )
    friction: str = parameter(
        "coulomb",
        f"Friction model; the pairs friction/solver are {_known_pairs()}.",
        when="coulomb for ground that may be slippery, no_slip for ground that never is, viscous for wet ground.",
        live=True,
    )
    solver: str = parameter(
        "qp",
        """Solver; not every pair of friction and solver exists. Where contacts slide and friction is 3 or
        more, qp and lcp may take several times the torque of ncp.""",
        when="lcp or ncp where contacts slide, qcqp for the least loss of motors.",
        live=True,
    )
    friction_coefficient: tuple[float, ...] = parameter(
        (0.6,),
        """Coefficient of friction; .inf for no slip (where all are, coulomb/lcp is solved as no_slip/lcp,
        its limit).""",
        when="Set to what the ground surely has: too much makes feet slip, too little stiffens the walk.",
        minimum=0.0,
        infinite=True,
        per="contact frame",
        live=True,
    )
    viscosity: tuple[float, ...] = parameter(
        (0.0,),
        "Friction viscous: coefficient of friction, force per sliding speed.",
        when="Set with friction viscous.",
        unit="N·s/m",
        minimum=0.0,
        per="contact frame",
        live=True,
    )


ModelOptions = settings_of("ModelOptions", model_parameters())
"""The options of the contact models, as their rows declare them."""


@dataclasses.dataclass(frozen=True)
class Experimental:
    """Settings of experiments in Python: fields that are no parameters.

    Attributes:
        options: of the contact models, those that no parameter sets, by keyword (``models.options``).
        velocity_product_term: account for the change of the contact Jacobian over the period
            (dt dJ/dt v); off only against a simulator that freezes the Jacobian, as the papers' does.
        ground_normal: unit vector of the ground plane, world frame, outwards; without ``ground_file``.
        penetration_gain: part of a penetration that is removed in one period; 0: none, 1: all, as in
            the first paper, eq. 35.
        sensed_delay: with solver sensed: age of the measured contact forces in use, in periods, 1 or 2.
        limit_time_constant_s: time constant with which a joint beyond its velocity limit is brought back.
        effort_gap_s: time without measured efforts that follow the commands after which a tenth of the torque is sent,
            until they follow again (with start_ramp_s); 0: off. Longer than any delay of commands on a sound robot:
            a walk tolerates old torques better than small ones.
        disturbance_limit: largest force that ``control.disturbance`` feeds forward, as a share of the robot's weight,
            and largest moment, of that weight at the radius of gyration; 0: no observer.
    """

    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    velocity_product_term: bool = True
    ground_normal: tuple[float, ...] = (0.0, 0.0, 1.0)
    penetration_gain: float = 0.0
    sensed_delay: int = 1
    limit_time_constant_s: float = 0.02
    effort_gap_s: float = 0.1
    disturbance_limit: float = 0.35


@dataclasses.dataclass(frozen=True)
class ContactSettings:
    """When a frame counts as in contact, and how fast a contact takes force."""

    contact_time_constant_s: float = parameter(
        0.05,
        """Time over which the velocity that a contact has now is removed. Short values turn 1 cm/s of measured
        velocity into a large imagined force, and on ground that gives a little the loop runs away. One period
        reproduces the papers and suits only perfectly rigid ground; 20 to 100 ms walk. Not below period_s.""",
        when="Raise where feet chatter on soft ground, lower for hard ground and exact sensors.",
        unit="s",
        minimum=1e-5,
        maximum=10.0,
        live=True,
    )
    contact_sources: tuple[str, ...] = parameter(
        (ESTIMATE,),
        """Sources for a frame being in contact, one source or two that must agree. estimate: plan, distance
        and the force that the leg's joints feel, under a floating base; touchdowns correct the ground,
        and where it is as configured, or soles have base_feedback center_of_mass, it is geometry and
        schedule. geometry: the frame is within contact_gap_m of the ground plane. schedule: it
        stands in the plan (without a plan: always). force: ground_reaction/<frame> (WrenchStamped,
        world frame or any frame whose force has the size of the contact force). state:
        contact_states (JointState: names are frames, position 1 is contact, 0 is none).""",
        when="""geometry, schedule and what your sensors publish, force or state, for experiments or where
        joint torques say little; schedule alone where odometry drifts.""",
        choices=(ESTIMATE, "geometry", "schedule", *MEASURED),
        validator=_one_or_two,
        live=True,
    )
    contact_force_on_n: float = parameter(
        5.0,
        "Measured force above which a frame comes into contact.",
        when="Set to a tenth of what a foot carries.",
        unit="N",
        minimum=0.0,
        live=True,
    )
    force_ramp_s: float = parameter(
        0.0,
        """Time over which the force of a contact grows after touchdown, and fades before a
        scheduled lift-off, as far as the other contacts can carry the robot; 0: at once.""",
        when="Raise where torques jump at touchdown.",
        unit="s",
        minimum=0.0,
        maximum=1.0,
        live=True,
    )
    contact_gap_m: float = parameter(
        0.002,
        "A contact planned to stand is active when it is closer to the ground than this.",
        when="Raise where odometry or feet are less exact than that.",
        unit="m",
        minimum=0.0,
        maximum=1.0,
        live=True,
    )
    least_normal_force_n: tuple[float, ...] = parameter(
        (0.0,),
        """Normal force with which each contact frame that touches pushes on the ground at least,
        each corner of a flat foot a quarter. With 0 an arm on a table pushes no more than its motion needs,
        or with distribution least_torque as far as leaning on the table spares its motors.""",
        when="Raise to press, as for polishing or to keep a hand on a wall.",
        unit="N",
        minimum=0.0,
        per="contact frame",
        live=True,
    )
    ground_offset_m: float = parameter(
        0.0,
        "Height of the ground plane along its normal.",
        when="Set where the floor is not at height 0 of the odometry.",
        unit="m",
        live=True,
    )

    @property
    def measured(self) -> str:
        """The source of contact that is a topic: force or state; empty: none."""
        return next((source for source in self.contact_sources if source in MEASURED), "")


GREATEST_GAINS = {"1/s": 1e5, "1/s^2": 1e6, "1/s^3": 1e7}
"""Largest gain by its unit, far above any stable one: more is a mistake in the unit."""


def _gain(default: float, what: str, unit: str, per: str, when: str) -> Any:
    """The row of a gain, acceleration per ``what`` of a joint or an axis."""
    return parameter(
        (default,),
        f"{what}.",
        when=when,
        unit=unit,
        minimum=0.0,
        maximum=GREATEST_GAINS[unit],
        per=per,
        live=True,
    )


@dataclasses.dataclass(frozen=True)
class FeedbackSettings:
    """How errors become desired accelerations."""

    joint_position_gain: tuple[float, ...] = _gain(
        1600.0,
        "Acceleration per joint position error",
        "1/s^2",
        "joint",
        when="Raise for stiffer joints, until they shake; lower for noisy or late states.",
    )
    joint_velocity_gain: tuple[float, ...] = _gain(
        80.0,
        "Acceleration per joint velocity error",
        "1/s",
        "joint",
        when="Set to twice the root of the position gain; lower for noisy velocities.",
    )
    joint_integral_gain: tuple[float, ...] = _gain(
        0.0,
        "Acceleration per integral of joint position error",
        "1/s^3",
        "joint",
        when="Raise where a robot that stands keeps an error, as from friction.",
    )
    joint_velocity_filter_s: float = parameter(
        0.0,
        """Time constant with which measured joint velocities correct those to which the last solution leads;
        0: they count as measured, as always where torques act late or not every period is solved.""",
        when="Set to 0.005 for noisy encoders: torques become smoother, and pushes are seen as much later.",
        unit="s",
        minimum=0.0,
        maximum=0.1,
    )
    base_linear_position_gain: tuple[float, ...] = _gain(
        50.0,
        "Base acceleration per base position error",
        "1/s^2",
        "axis",
        when="Raise where the base lags behind its plan, lower for noisy odometry.",
    )
    base_linear_velocity_gain: tuple[float, ...] = _gain(
        15.0,
        "Base acceleration per base velocity error",
        "1/s",
        "axis",
        when="Set to twice the root of the position gain.",
    )
    base_angular_position_gain: tuple[float, ...] = _gain(
        100.0,
        "Angular acceleration per base rotation error",
        "1/s^2",
        "axis",
        when="Raise where the base tilts, lower for a noisy attitude.",
    )
    base_angular_velocity_gain: tuple[float, ...] = _gain(
        20.0,
        "Angular acceleration per base angular velocity error",
        "1/s",
        "axis",
        when="Set to twice the root of the position gain.",
    )
    joint_weight: float = parameter(
        1e-3,
        """How much a standing leg follows the plan of its own joints where that and the plan of the
        base (weight 1) cannot both be had: small, the base moves as planned; large, the legs do. At least 0.1 while
        ground, load, motors or delay are found to differ from the parameters.""",
        when="Raise to 0.1 for four round feet with uncertain masses or ground; see results/robustness.md.",
        minimum=1e-6,
        maximum=1e3,
        live=True,
    )
    base_feedback: str = parameter(
        "base",
        """What the feedback of the base acts on: base, its pose; center_of_mass: the centre of mass
        and the poses of feet in swing, within what soles can give: pushes are held that the
        footholds allow, and the torso gives way. See docs/pushes.md.""",
        when="center_of_mass for robots with soles that are pushed.",
        choices=("base", "center_of_mass"),
        live=True,
    )
    touchdown_speed_m_s: float = parameter(
        0.08,
        "Speed at which a foot that is planned to stand but still in the air comes down.",
        when="Raise where feet must find ground that is lower than planned.",
        unit="m/s",
        minimum=0.0,
        maximum=10.0,
        live=True,
    )
    touchdown_time_constant_s: float = parameter(
        0.005,
        "Time in which a foot that comes down takes that speed.",
        when="Raise for heavy legs, whose landing jolts.",
        unit="s",
        minimum=1e-4,
        maximum=1.0,
        live=True,
    )
    allow_moving_trajectory_end: bool = parameter(
        False,
        "Accept trajectories whose last point has a velocity that is not zero.",
        when="Set true for planners that send the next plan before the last one ends.",
        live=True,
    )
    plan_jump_limit: float = parameter(
        0.5,
        """Joint trajectories whose beginning is farther than this from the motion that was followed,
        and from the joints' measured positions, are refused.""",
        when="Lower for robots that must not move far when a plan begins.",
        unit="rad or m",
        minimum=0.0,
        infinite=True,
        live=True,
        guards="most",
    )


@dataclasses.dataclass(frozen=True)
class SafetySettings:
    """Limits of commands, and reactions to faults."""

    effort_rate_limits_nm_s: tuple[float, ...] = parameter(
        (),
        "Fastest change of torque; empty: any.",
        when="Set where gears must not be jerked.",
        unit="N·m/s",
        minimum=1e-6,
        infinite=True,
        per="joint",
        live=True,
        guards="most",
    )
    velocity_limits_rad_s: tuple[float, ...] = parameter(
        (),
        """Largest joint speed; empty: the limits of the URDF. Desired
        accelerations do not lead beyond it, and torque that drives a joint further fades out
        over the next velocity_margin.""",
        when="Set below the URDF's to commission a robot.",
        unit="rad/s",
        minimum=1e-6,
        infinite=True,
        per="joint",
        live=True,
    )
    position_stops: bool = parameter(
        True,
        """Keep joints from the ends that the URDF states: the speed towards an end falls with the
        distance from position_margin_rad before it, and within that margin torque towards the
        end fades out and motion is damped.""",
        when="Set false only where the URDF's ends are wrong.",
        live=True,
        guards="least",
    )
    power_limit_w: float = parameter(
        0.0,
        """Largest electrical power of all motors together, mechanical power plus heat; above it
        all torques shrink alike. Needs motor_constant_nm_sqrt_w; 0: no limit.""",
        when="Set to what battery or supply gives.",
        unit="W",
        minimum=0.0,
        live=True,
        guards="most",
        off=0,
    )
    enforce_command_limits: str = parameter(
        "auto",
        """Reduce what is sent as controller_manager's parameter of this name does, so that what acts
        is known here: clipped at the URDF's efforts, zero in the direction of motion beyond its
        speeds and ranges. auto: where group_controller is set and its controller_manager does.""",
        when="Set on where controller_manager reduces commands and does not report it.",
        choices=("auto", "on", "off"),
        live=True,
    )
    blend_rate_nm_s: tuple[float, ...] = parameter(
        (100.0,),
        """Rate at which a step of torque fades in that has another reason than the robot's motion:
        other parameters or another model, a state that was refused, a return from the safe
        output.""",
        when="Set to what takes a step of torque to act within a tenth of a second.",
        unit="N·m/s",
        minimum=1e-3,
        infinite=True,
        per="joint",
        live=True,
        guards="most",
    )
    start_ramp_s: float = parameter(
        0.5,
        """Time over which torque grows from the safe output to the controller's after activation
        or resumption; 0 for a robot that already stands free, as in simulation.""",
        when="Raise for heavy robots, 0 in simulation.",
        unit="s",
        minimum=0.0,
        maximum=60.0,
        live=True,
        guards="least",
    )
    recovery_window_s: float = parameter(
        0.2,
        """A gap between good states up to this long is bridged by the safe output and left without
        help; a longer one needs ~/resume or a new activation.""",
        when="Lower for robots that do not stand still under damping.",
        unit="s",
        minimum=1e-3,
        maximum=60.0,
        live=True,
        guards="most",
    )
    failures_in_a_row: int = parameter(
        20,
        """So many steps in a row without a converged solution, or with an error, stop the
        controller; until then the solver's fallback force or the safe output is used.""",
        when="Lower where a wrong step does harm.",
        minimum=1,
        maximum=100000,
        live=True,
        guards="most",
    )
    overruns_in_a_row: int = parameter(
        0,
        """So many steps in a row that lose states, because the one before took longer than a
        period, stop the controller; 0: none do, they are counted and logged.""",
        when="Raise above 0 where a robot shall rather stop than miss states.",
        minimum=0,
        maximum=1000000,
        live=True,
        guards="most",
        off=0,
    )
    odometry_jump_m: float = parameter(
        0.05,
        """Change of the base position from one state to the next that its velocity does not explain
        and that is refused as a jump; so is one of its attitude by 2 rad for each m of this.""",
        when="Raise for odometry that corrects itself in steps.",
        unit="m",
        minimum=1e-6,
        infinite=True,
        live=True,
        guards="most",
    )
    joint_jump: float = parameter(
        0.2,
        """Change of a joint's position from one state to the next that its velocity does not explain
        and that is refused as a jump; three in a row that agree are its new place. A reading
        that repeats is refused once a joint should have moved so far.""",
        when="Raise where states come seldom and joints are fast: to what one moves in two periods.",
        unit="rad or m",
        minimum=1e-6,
        maximum=10.0,
        live=True,
        guards="most",
    )
    tilt_limit_rad: float = parameter(
        1.0,
        """Tilt of a floating base, from the attitude at activation, at which the controller
        stops; resumption does not begin anew; .inf: none.""",
        when="Raise for robots that climb, lower to stop a fall earlier.",
        unit="rad",
        minimum=1e-3,
        infinite=True,
        live=True,
        guards="most",
    )
    emergency_stop_output: str = emergency_stop_output(live=True)
    state_folder: str = state_folder()
    watchdog_required: bool = parameter(
        False,
        """Activate only while a command watchdog publishes, and stop when it is silent: its
        heartbeat is the topic command_watchdog/heartbeat. False: diagnostics say whether there is
        one.""",
        when="Set true on every robot that can do harm.",
    )
    planner_required: bool = parameter(
        False,
        """Activate only when joint_trajectory, base_trajectory (where the base floats) and
        contact_schedule, or task_goals and contact_schedule, each have a sender that this node is
        connected to: discovery may take 3 s longer than the planner takes to start.""",
        when="Set true where a robot must not be activated without its planner.",
    )


@dataclasses.dataclass(frozen=True)
class NodeSettings:
    """Topics of states and commands."""

    mode: str = parameter(
        "real_time",
        """real_time: newest state, old ones may be dropped. lockstep: every state gets exactly
        one command, for a simulation that waits for it; needs reliable_topics and compares stamps
        with the stream.""",
        when="lockstep with a simulation that waits for its commands.",
        choices=("real_time", "lockstep"),
    )
    command_interface: str = command_interface()
    command_horizon_s: float = parameter(
        0.1,
        """How far torques are solved ahead on the plan, for command_interface joint_trajectory, and
        for solve_every above 1.""",
        when="Set longer than the longest time without a command that the robot shall bridge.",
        unit="s",
        minimum=0.02,
        maximum=1.0,
    )
    solve_every: int = parameter(
        1,
        """Solve every k-th state only. The states between are answered by local feedback along the
        torques solved ahead, with local_position_gain and local_velocity_gain, or of the whole state
        with command_interface linear_feedback. With command_horizon_s below solve_every times
        period_s it is refused. 0: as fast as it can: the newest state whenever the last solution is
        done. States that it missed then stop nothing, and its rate is in the diagnostics, and in the
        log where it has changed by a fifth.""",
        when="Raise where a step takes longer than a period.",
        minimum=0,
        maximum=1000,
    )
    command_delay_s: float = parameter(
        0.0,
        """Time from a state until the torques that answer it act: they are computed for the state
        that is predicted for then. Beside lockstep what is measured is added: the age of a state when it
        is taken (with stamp_reference clock), and the time of a step. 0: for the state itself, or as late as limbs in
        the air show.""",
        when="Set to what passes unmeasured, in driver and motor, until a torque acts, where all that is periods.",
        unit="s",
        minimum=0.0,
        maximum=0.05,
        live=True,
    )
    reliable_topics: bool = parameter(
        False,
        """Subscribe to states reliably instead of best-effort; their publisher must then be
        reliable. Implied by lockstep. Commands are always published reliably.""",
        when="Set true where your driver publishes reliably and no state may be lost.",
    )
    group_controller: str = group_controller("in configure")
    commanders: tuple[str, ...] = parameter(
        (),
        """Full names of the nodes that may send on the topic of the commands beside this one.""",
        when="Set to the nodes that a second controller or a test needs.",
        validator=full_names,
    )
    second_commander: str = parameter(
        STOP,
        """What follows when another node sends on the topic of the commands. stop: the safe output
        until ~/resume, and neither activation nor ~/resume while it sends. report: a line in the log and
        a count, for where a command watchdog passes on the commands of one only.""",
        when="report only behind a command watchdog.",
        choices=(STOP, REPORT),
    )
    stamp_reference: str = parameter(
        "clock",
        """What the stamp of a state is compared with: the clock of the node (states older than
        state_timeout_s are refused), or only with the stream of states itself (stamps must
        increase). Simulated time (use_sim_time) comes by a topic and may be late: a state ahead
        of it is not refused.""",
        when="stream where the driver's clock is not that of this computer.",
        choices=("clock", "stream"),
    )
    state_timeout_s: float = parameter(
        0.02,
        "Without a valid state for this long the safe output is published.",
        when="Set to some periods, more on a computer without real time.",
        unit="s",
        minimum=1e-3,
        maximum=10.0,
        live=True,
        guards="most",
    )
    odometry_age_limit_s: float = parameter(
        ODOMETRY_AGE_LIMIT_S,
        """Largest difference between the stamps of joint state and odometry, over which the base is
        predicted; it is refused sooner where it may be as far away from there as a jump.""",
        when="Set to twice what your estimator is late at most.",
        unit="s",
        minimum=0.0,
        maximum=10.0,
        live=True,
        guards="most",
    )
    safe_output: str = parameter(
        "damping",
        """Published on bad input, on errors, when states stop and on deactivation: damping (minus
        damping_nm_s_rad times the last measured joint velocity while that is fresh, then zero) or
        zero.""",
        when="zero for robots that hang or are held.",
        choices=("damping", "zero"),
        live=True,
    )
    damping_nm_s_rad: tuple[float, ...] = parameter(
        (0.05,),
        "Damping of the safe output.",
        when="Raise for heavy legs, until the robot sinks slowly; too much shakes.",
        unit="N·m·s/rad",
        minimum=0.0,
        maximum=1e4,
        live=True,
        per="joint",
    )
    autostart: bool = autostart()
    record_path: str = record_path(
        "each step is recorded, written on deactivation, over nothing but another record",
        " Only as given at the start of the node.",
    )
    live_models: tuple[str, ...] = parameter(
        tuple(str(row) for row in ROWS.values() if row.switchable),
        """Pairs friction/solver that can be switched to while configured or active, besides the
        one configured; compiled in configure.""",
        when="Set to fewer for a shorter configuration.",
        validator=_pairs,
    )
