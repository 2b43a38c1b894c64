"""What one period works on, by name: measured, planned, wanted, decided. Kernels and Python share it.

The arrays are made once; each period overwrites them. What does not change from one period to the next
stands in `PeriodSettings`, what the joints can take in `limits.JointLimits`.
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
    """What does not change between periods: of a robot with na joints, n contacts on its feet.

    Attributes:
        q_index, actuated (na,), turns (na,) bool, supports (njoints, nv) bool, coordinate_joint (nv,):
            the tree as in ``RobotModel``.
        links, foot: (n,) joints that carry the contacts, and their feet.  begins (feet + 1,): first contact of each
            foot, and n.
        landed_m: (n,) m, gap at which a contact has landed.
        radii: (n,) m, of the contacts' balls.  share_n: even share of the weight of a foot, N.  estimates: see ``contact_estimate``.
        joint_weight: as the parameter.
        push_n: (n,) N, what is asked to be pressed on with, besides the model's forces.
        sources: bits of the sources that must agree on a contact.
        has_base: the base floats.
        sensed: all contacts count, as their forces are measured.
        soles: some feet have several contacts.
        deadbeat: impacts are foreseen.
        torques_only: feedback gives torques; there is no model.
        balanced: `balance` makes the acceleration, unless a foot meets the ground early.
        period_s, contact_time_constant_s, touchdown_time_constant_s, touchdown_speed_m_s, contact_gap_m:
            as the parameters.
        ramp_s: over which a contact takes its load.  drift_share: of Jdot v, 0 or 1.
        position_gain, velocity_gain, integral_gain: (na,).
        base_gains: (4, 3), of linear position and velocity, angular position and velocity.
        bounds: (2,) greatest force, N, and moment, N·m, that ``disturbance`` feeds forward.
        friction: (3, na) dry torque, N·m, viscous one, N·m s/rad, and width,
            rad/s, of the joints.
        lags: commands that are compared to learn a delay; 0: none is.
        velocity_filter_s: as the parameter.  limits: what the joints can take.
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
    """The arrays of one controller's periods. Those marked * are remembered for the next period.

    Attributes:
        settings: what does not change.
        q (nq,), v (nv,): the state that the torques are for.  jacobian (6, nv): joint axes there, world
            frame, where Pinocchio writes them.
        reference (3, na): planned position, velocity, acceleration.  base_goal (19,): as
            ``BaseTrajectory.fill``.  planned (n,) bool: contacts that are to stand.
        points, normals (n, 3) m, gaps (n,) m: where the feet write them, world frame.
        measured (n,) bool: contacts by measurement, where that is a source.
        since_s* (n,) s, last* (n,) bool: see ``agreed_contacts``.
        contact (n,) bool: on which all sources agree.
        touching*, landing (n,) bool: contacts that stand where they should; that come down.
        landed*, lifted*, early* (n,) bool: have landed and not parted since; have left the ground in
            swing; meet it before they should.
        foot_touches (feet,) bool: room.  closing (n,) m/s: at which standing contacts still near the ground.
        position*, velocity*, error (na,): of the joints, measured, the velocity corrected; planned less measured position.
        integral* (na,): of the error, rad s.
        desired (na,): joint accelerations, or torques where there is no model.
        bounded (na,): bits of the limits that acted on them.
        wanted, weights, acceleration (nv,): by feedback; of each coordinate; as feet allow.
        limited, acting (na,): torques within limits, N·m, and bits of those that act.
        decided* (na,): the same torques, of the last period.  commanded* (na,): what the robot was given.
        forces* (n, 3) N: of ground on feet, world frame.  frame (3, 3): room.
        arrives* (1 + na,): see ``joint_velocity``.
        inertia (nv, nv), bias (nv,): upper triangle of M, and C v + g, where Pinocchio writes them.
        before* (nv,): velocity at the last step.  stood* (n,) bool: contacts then.
        seen_s* (3,): when that was (negative infinity: never, or without a solution), and the last change of contacts;
            for how long the disturbance was observed.
        external* (nv,): generalized force that is fed forward; the first six are the disturbance of the base, force,
            N, and moment about its origin, N·m, in its frame.  load* (6,): its slow part.
        rest (nv,), axes (3n, nv), gram (3n, 3n), felt (3n,): room of ``disturbance``.
        pressure* (n,) N, odds* (n,): what is felt along the normal, and how likely a contact is.  rise* (n,) m: of the
            ground above what is believed.  touchdowns* (n, 3) m: x, y and rise of each foot's last one,
            at its first contact.
        stands*, caught*, missed*, left* (n,) bool: felt to stand; before it was to; should and does not; has left the
            ground in swing.  lack* (n,) s: for how long force is missing.
        changed_s* (n, 2) s: last touchdown and lift-off.  foot_speed (n, 2) m/s: and as planned, downwards.
        carried (n, 3) N: what feet were felt to carry from the last state to this one, world frame; NaN: unknown.
        grip* (n,): friction that feet were felt to have, infinite where none slipped; slips* (1,): one is not.
        excess*, stands_s*, foreseen* (n,): see ``grip``.
        motors* (3, na): rotor inertia, kg m^2, dry friction, N·m, and viscous one, N·m s/rad, beside those told; swing*
            (5, na), swing_s* (2, na) s, squares* (na, 5, 5), effort* (2,), late* (na,) N·m: see ``motor_estimate``.
        sensed_v, sensed_before* (nv,): velocity of the measured state and of that before, where the torques are for a
            predicted one.  delay* (3,) s: by which torques act late that nobody told of, in all, and the first where it
            counts; given* (LAGS, na) N·m, biases* (LAGS, na) N·m, answer* (2, na), lagged* (4, LAGS): see ``delay_estimate``.
        pressed (n,) N: what touching contacts are pressed on with now, besides the model's forces.
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
    changed_s: Numbers
    foot_speed: Numbers
    carried: Numbers
    pressed: Numbers
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
    sensed_v: Numbers
    sensed_before: Numbers
    given: Numbers
    biases: Numbers
    answer: Numbers
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
