"""Arrays of one control period, by name: measured, planned, desired and decided. Kernels and Python share them.

The arrays are allocated once; each period overwrites them. `PeriodSettings` has what is constant,
`limits.JointLimits` the limits of the joints.
"""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.control.limits import JointLimits
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


class PeriodSettings(Struct):
    """Constants of all periods, for a robot with na joints and n contacts on its feet.

    Attributes:
        q_index, actuated (na,), turns (na,) bool, supports (njoints, nv) bool, coordinate_joint (nv,):
            the tree as in ``RobotModel``.
        links, foot: (n,) joints that carry the contacts, and their feet.  begins (feet + 1,): first contact of each
            foot, and n.
        landed_m: (n,) m, largest gap at touchdown.
        radii: (n,) m, of the contacts' balls.  share_n: even share of the weight of a foot, N.  estimates: contact is
            estimated, see ``contact_estimate``.
        joint_weight: as the parameter.
        push_n: (n,) N, commanded pressing force, in addition to the model's forces.
        sources: bits of the sources that must agree on a contact.
        has_base: the base floats.
        sensed: all contacts count, as their forces are measured.
        soles: some feet have several contacts.
        deadbeat: impacts are predicted.
        torques_only: feedback gives torques; there is no model.
        balanced: `balance` makes the acceleration, unless a foot touches down early.
        period_s, contact_time_constant_s, touchdown_time_constant_s, touchdown_speed_m_s, contact_gap_m:
            as the parameters.
        ramp_s: time over which a contact takes its load.  drift_share: of Jdot v, 0 or 1.
        position_gain, velocity_gain, integral_gain: (na,).
        base_gains: (4, 3), of linear position and velocity, angular position and velocity.
        bounds: (2,) largest force, N, and moment, N·m, that ``disturbance`` feeds forward.
        friction: (3, na) modelled dry friction, N·m, viscous friction, N·m s/rad, and width of the dry one,
            rad/s, of the joints.
        lags: number of commands compared to estimate a delay; 0: it is not estimated.
        velocity_filter_s: as the parameter.  limits: of the joints.
    """

    q_index: Places
    actuated: Places
    turns: Flags
    supports: Flags
    coordinate_joint: Places
    links: Places
    foot: Places
    begins: Places
    landed_m: Numbers
    radii: Numbers
    share_n: float
    estimates: bool
    joint_weight: float
    push_n: Numbers
    sources: int
    has_base: bool
    sensed: bool
    soles: bool
    deadbeat: bool
    torques_only: bool
    balanced: bool
    period_s: float
    contact_time_constant_s: float
    touchdown_time_constant_s: float
    touchdown_speed_m_s: float
    contact_gap_m: float
    ramp_s: float
    drift_share: float
    position_gain: Numbers
    velocity_gain: Numbers
    integral_gain: Numbers
    base_gains: Numbers
    bounds: Numbers
    friction: Numbers
    lags: int
    velocity_filter_s: float
    limits: JointLimits


@structref.register
class PeriodSettingsType(StructType):
    """numba's type of `PeriodSettings`."""


_pack_settings = packing(PeriodSettings, PeriodSettingsType)


@kernel
def _packed_settings(values):
    """The struct ``PeriodSettings``, from the tuple of its fields\' values."""
    return _pack_settings(values)


PeriodSettings.packed = staticmethod(_packed_settings)


class Period(Struct):
    """Arrays of one controller's periods. Those marked * are kept for the next period.

    Attributes:
        settings: the constants.
        q (nq,), v (nv,): the state for which torques are computed.  jacobian (6, nv): joint axes there, world
            frame, in Pinocchio's memory.
        reference (3, na): planned position, velocity, acceleration.  base_goal (19,): as
            ``BaseTrajectory.fill``.  planned (n,) bool: planned contacts.
        points, normals (n, 3) m, gaps (n,) m: in the memory of the feet, world frame.
        measured (n,) bool: measured contacts, if that is a source.
        since_s* (n,) s, last* (n,) bool: see ``agreed_contacts``.
        contact (n,) bool: contacts on which all sources agree.
        touching*, landing (n,) bool: planned contacts that touch; that approach the ground.
        landed*, lifted*, early* (n,) bool: landed and not parted since; left the ground in
            swing; touch it earlier than planned.
        foot_touches (feet,) bool: workspace.  closing (n,) m/s: speed at which contacts close their gaps.
        position*, velocity*, error (na,): of the joints, measured, the velocity filtered; planned less measured
        position. integral* (na,): of the error, rad s.
        desired (na,): joint accelerations, or torques without a model.
        bounded (na,): bits of the limits that acted on them.
        wanted, weights, acceleration (nv,): desired by feedback; weight of each coordinate; projected for the feet.
        limited, acting (na,): torques within limits, N·m, and bits of those that act.
        decided* (na,): the same torques, of the last period.  commanded* (na,): torques sent to the robot.
        forces* (n, 3) N: predicted, of ground on feet, world frame.  frame (3, 3): workspace.
        arrives* (1 + na,): see ``joint_velocity``.
        inertia (nv, nv), bias (nv,): upper triangle of M, and C v + g, in Pinocchio's memory.
        before* (nv,): velocity at the last step.  stood* (n,) bool: contacts then.
        seen_s* (3,): time of that step (negative infinity: none, or without a solution) and of the last change of
            contacts; duration over which the disturbance was observed.
        external* (nv,): generalized force that is fed forward; the first six are the disturbance of the base, force,
            N, and moment about its origin, N·m, in its frame.  load* (6,): its slow part.
        rest (nv,), axes (3n, nv), gram (3n, 3n), felt (3n,): workspace of ``disturbance``.
        pressure* (n,) N, odds* (n,): measured force along the normal, and log odds of contact.  rise* (n,) m: of the
            ground above the modelled one.  touchdowns* (n, 3) m: x, y and rise of each foot's last one,
            at its first contact.
        stands*, caught*, missed*, left* (n,) bool: contact is detected; earlier than planned; missing though planned;
            has left the ground in swing.  lack*, blocked* (n,) s: time for which force is missing, is
            there on a foot that should come down (-1: which has not begun to).
        height* (n,) m: of each foot above the modelled ground, at its first contact; height_noise* (1,) m^2: variance
            of its noise.  relief* (1,) m: mean of the largest ``rise``.
            rough* (1,) m: largest error of the height expected at the last touchdowns.
        changed_s* (n, 2) s: last touchdown and lift-off.  foot_speed (n, 3) m/s: and downwards, as planned and as is.
        carried (n, 3) N: measured forces on feet from the last state to this one, world frame; NaN: unknown.
        grip* (n,): estimated friction, infinite where none slipped; slips* (1,): one is not infinite.
        excess*, stands_s*, foreseen* (n,): see ``grip``.
        motors* (3, na): estimated rotor inertia, kg m^2, dry friction, N·m, and viscous one, N·m s/rad, beyond the
            model; swing* (5, na), swing_s* (2, na) s, squares* (na, 5, 5), effort* (2,), late* (na,) N·m: see
            ``motor_estimate``.  rubs (1,): some joint has friction, modelled or estimated.
        sensed_v, sensed_before* (nv,): velocity of the measured state and of the one before, if torques are for a
            predicted one.  delay* (3,) s: estimated torque delay beyond the configured one; total delay; the first as
            applied; given* (LAGS, na) N·m, biases* (LAGS, na) N·m, answer* (2, na), quick* (3, na), lagged* (4, LAGS):
            see ``delay_estimate``.
        pressed (n,) N: pressing force of touching contacts now, in addition to the model's forces. rubbed (n, 3) N:
            friction at those that slide by plan, world frame; the model's forces on them have none.
            parting (n, nv): force along the normal that an arm's hand loses, N per N·m of torque; 0: none.
        sought* (na + 1,): joint velocities that goals require, rad/s, and their time, s; minus infinity: unknown.
    """

    settings: PeriodSettings
    q: Numbers
    v: Numbers
    jacobian: Numbers
    reference: Numbers
    base_goal: Numbers
    planned: Flags
    points: Numbers
    normals: Numbers
    gaps: Numbers
    measured: Flags
    since_s: Numbers
    last: Flags
    contact: Flags
    touching: Flags
    landing: Flags
    landed: Flags
    lifted: Flags
    early: Flags
    foot_touches: Flags
    closing: Numbers
    position: Numbers
    velocity: Numbers
    error: Numbers
    integral: Numbers
    desired: Numbers
    bounded: NDArray[np.uint8]
    wanted: Numbers
    weights: Numbers
    acceleration: Numbers
    limited: Numbers
    acting: NDArray[np.uint8]
    decided: Numbers
    commanded: Numbers
    forces: Numbers
    frame: Numbers
    arrives: Numbers
    inertia: Numbers
    bias: Numbers
    before: Numbers
    stood: Flags
    seen_s: Numbers
    external: Numbers
    load: Numbers
    rest: Numbers
    axes: Numbers
    gram: Numbers
    felt: Numbers
    pressure: Numbers
    odds: Numbers
    rise: Numbers
    touchdowns: Numbers
    stands: Flags
    caught: Flags
    began: Flags
    ended: Flags
    missed: Flags
    left: Flags
    lack: Numbers
    blocked: Numbers
    height: Numbers
    height_noise: Numbers
    relief: Numbers
    rough: Numbers
    changed_s: Numbers
    foot_speed: Numbers
    carried: Numbers
    pressed: Numbers
    rubbed: Numbers
    parting: Numbers
    sought: Numbers
    grip: Numbers
    excess: Numbers
    stands_s: Numbers
    foreseen: Numbers
    slips: Flags
    motors: Numbers
    late: Numbers
    swing: Numbers
    swing_s: Numbers
    squares: Numbers
    effort: Numbers
    rubs: Flags
    sensed_v: Numbers
    sensed_before: Numbers
    given: Numbers
    biases: Numbers
    answer: Numbers
    quick: Numbers
    lagged: Numbers
    delay: Numbers


@structref.register
class PeriodType(StructType):
    """numba's type of `Period`."""


_pack_period = packing(Period, PeriodType)


@kernel
def _packed_period(values):
    """The struct ``Period``, from the tuple of its fields\' values."""
    return _pack_period(values)


Period.packed = staticmethod(_packed_period)
