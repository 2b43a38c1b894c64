"""What one period of the estimation works on, by name, and what it does in compiled code.

signals (s,) holds all that passes the low-pass, in one vector: the measurements in the order in which the
dynamics estimator takes them (accelerometer, angular acceleration, joint accelerations, efforts, then the
readings of further sensors), then positions and velocities of the joints, then the gyroscope.
"""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.estimation.contact_detector import (
    debounce,
    take_bearing,
    take_forces,
    take_states,
)
from contact_id_controller.estimation.dynamics_estimator import solve_by_limbs
from contact_id_controller.estimation.elimination import SOLVED
from contact_id_controller.estimation.filters import smooth
from contact_id_controller.estimation.imu_checks import GOOD, GREATEST, NO_JOINTS
from contact_id_controller.estimation.invariant_filter import (
    ACCEL_BIAS,
    I_DISPUTED,
    I_SKEW,
    O_POSITION,
    O_REFUSED_S,
    O_ROTATION,
    O_VELOCITY,
    SOUND,
)
from contact_id_controller.estimation.odometry_arrays import (
    OdometryArrays,
    advance,
    put_joints,
    quaternion_of,
    take,
)
from contact_id_controller.estimation.system import unpack
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.kernels.turns import whole_turns

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]

FOUND, CHANGED, FIRST, UNSOLVED, UNTRIED = range(5)
"""Forces are found; other measurements are missing than before; a first sample has no rates; the limbs
alone do not determine them; they have not been looked for."""

_whole_turns = bare_kernel(whole_turns)

ALOFT_S = 0.02
"""Time constant of what is felt of a foot in the air: errors change with the leg's motion, touches at once."""


class EstimationPeriod(Struct):
    """Of a robot with na joints, f feet and r numbers read by further sensors.

    Attributes:
        odometry: the arrays of the base's.
        integers, numbers: stores of the dynamics estimator, see ``system``.  by_limbs: as there.
        axes (3, 3): of the IMU, in base axes.  measured: how many signals the estimator takes.
        share: of the low-pass.
        thresholds (4,): N, at which a foot touches and leaves, and the same of one that stands by the plan.
        confirm_s, timeout_s: of the contact.
        effort (na,), readings (r,), stands (f,) bool: as given.
        rubbing (3, na): of the joints' friction: dry, N·m, viscous, N·m·s/rad, and the speed of the first, rad/s.
        reading_sensor (r,), signal_sensor (m,), m = measured - 6 - 2 na: number of the sensor that each reading, and
            each signal after the efforts, is of.
        signal_gain (m, r): such signals are this times the readings; 0 between different sensors.
        position, velocity (na,): of the joints, the last that were finite, without whole turns.
        signals, smoothed (s,), lost (s,) bool: before and after the low-pass, and which are missing.
        beginning (s,) bool: signals whose filter restarts.
        before (3 + na,): gyroscope and velocities of the last period; primed (1,) bool: there was one.
        whole (sensors,) bool: room.
        component (4, c): of the feet's wrenches: foot; place among unknowns; in y, -1: unknown; in the system.
        observable, sure (f,) bool: feet whose force is observable, and well enough to detect contact.
        forces (f, 3) N: of the ground on the feet, base axes.
        loads, on_n, off_n, states (f,): room.  raw, since_s, seen_s, felt (f,): of the hysteresis.
        aloft (f,): loads felt of feet in the air, N, which have none.
        contact, bears (f,) bool: feet that touch, and those that carry nearly as much as any, see ``take_bearing``.
        stay (f,): feet in contact that bear and that the plan does not lift.
    """

    odometry: OdometryArrays
    integers: Places
    numbers: Numbers
    by_limbs: bool
    axes: Numbers
    measured: int
    share: float
    thresholds: Numbers
    confirm_s: float
    timeout_s: float
    effort: Numbers
    rubbing: Numbers
    readings: Numbers
    stands: Flags
    reading_sensor: Places
    signal_sensor: Places
    signal_gain: Numbers
    position: Numbers
    velocity: Numbers
    signals: Numbers
    smoothed: Numbers
    lost: Flags
    beginning: Flags
    before: Numbers
    primed: Flags
    whole: Flags
    component: Places
    observable: Flags
    sure: Flags
    forces: Numbers
    loads: Numbers
    on_n: Numbers
    off_n: Numbers
    aloft: Numbers
    states: Numbers
    raw: Flags
    since_s: Numbers
    seen_s: Numbers
    felt: Flags
    contact: Flags
    bears: Flags
    stay: Numbers


@structref.register
class EstimationPeriodType(StructType):
    """numba's type of `EstimationPeriod`."""


_pack = packing(EstimationPeriod, EstimationPeriodType)


@kernel
def _packed(values):
    """The struct ``EstimationPeriod``, from the tuple of its fields' values."""
    return _pack(values)


EstimationPeriod.packed = staticmethod(_packed)


@kernel
def take_joints(period):
    """Look at IMU and joints; what is believed goes to the odometry, and on; see ``check_inputs``.

    A filtered angle must not jump by a whole turn, as that of a driver may.
    """
    odometry = period.odometry
    fault = take(odometry)
    if fault < NO_JOINTS:
        position, velocity = period.position, period.velocity
        given, speed, turns = odometry.position, odometry.velocity, odometry.turns
        for k in range(position.shape[0]):
            angle = given[k]
            if turns[k]:
                angle -= _whole_turns(angle - position[k])
            position[k], velocity[k] = angle, speed[k]
    return fault


@kernel
def take_readings(period):
    """Write efforts less friction, and readings, into the signals, 0 where one is missing.

        effort - (f_v v + f_c tanh(v / v_0)), N·m;    gain readings

    A sensor of which one number is missing, or beyond GREATEST, is missing as a whole. Returns whether others are missing
    than in the period before.
    """
    signals, lost, effort, whole = period.signals, period.lost, period.effort, period.whole
    rubbing, velocity = period.rubbing, period.velocity
    at, changed = 6 + effort.shape[0], False
    for k in range(effort.shape[0]):
        gone = not abs(effort[k]) < GREATEST
        taken = rubbing[1, k] * velocity[k] + rubbing[0, k] * np.tanh(velocity[k] / rubbing[2, k])
        signals[at + k] = 0.0 if gone else effort[k] - taken
        changed |= gone != lost[at + k]
        lost[at + k] = gone
    readings, sensor = period.readings, period.reading_sensor
    for k in range(whole.shape[0]):
        whole[k] = True
    for k in range(readings.shape[0]):
        whole[sensor[k]] &= abs(readings[k]) < GREATEST
    at += effort.shape[0]
    sensor, gain = period.signal_sensor, period.signal_gain
    for k in range(sensor.shape[0]):
        gone, value = not whole[sensor[k]], 0.0
        for i in range(0 if gone else readings.shape[0]):
            if gain[k, i] != 0.0:  # another sensor's may be missing
                value += gain[k, i] * readings[i]
        signals[at + k] = value
        changed |= gone != lost[at + k]
        lost[at + k] = gone
    return changed


@bare_kernel
def _fill_signals(sample, axes, bias, position, velocity, before, dt, measured, signals):
    """Write the signals that are filtered, but efforts and readings: rates are differences over the period dt, s.

    Proper acceleration less bias (3,), IMU axes, angular acceleration (3,), joint accelerations (n,); from
    ``measured`` on positions, velocities (n,), angular rate (3,).

    Args:
        sample: (6,) of the IMU, gyroscope first.  axes, bias: (3, 3) IMU to base, (3,) m/s2 in base axes.
        before: (3 + n,) angular rate and velocities of the period before; becomes those of this one.
    """
    n = position.shape[0]
    for k in range(3):
        felt = 0.0
        for i in range(3):
            felt += axes[i, k] * bias[i]
        signals[k] = sample[3 + k] - felt
        signals[3 + k] = (sample[k] - before[k]) / dt
        signals[measured + 2 * n + k] = sample[k]
        before[k] = sample[k]
    for k in range(n):
        signals[6 + k] = (velocity[k] - before[3 + k]) / dt
        signals[measured + k] = position[k]
        signals[measured + n + k] = velocity[k]
        before[3 + k] = velocity[k]


@kernel
def _upwards(ready, rotation, axes, felt, up):
    """Write up (3,), a unit vector in base axes: that of the odometry if it is ready, else along the accelerometer's.

    rotation (9,): of the base, by rows; axes (3, 3): IMU to base; felt (3,): its sample, m/s2.
    """
    size = 0.0
    for k in range(3):
        up[k] = rotation[6 + k]
        if not ready:
            up[k] = axes[k, 0] * felt[0] + axes[k, 1] * felt[1] + axes[k, 2] * felt[2]
        size += up[k] * up[k]
    if not ready:
        size = np.sqrt(size)
        for k in range(3):
            up[k] = up[k] / size if size > 1.0 else (1.0 if k == 2 else 0.0)


@kernel
def find_forces(period, dt, ready):
    """Forces of the ground on the feet, of the period that ends; FOUND, or why not.

    Args:
        dt: its length, s.
        ready: whether the odometry knows which way is up.
    """
    if take_readings(period):
        return CHANGED
    odometry, signals, smoothed = period.odometry, period.signals, period.smoothed
    sample, before, measured, axes = odometry.sample, period.before, period.measured, period.axes
    position, velocity, primed = period.position, period.velocity, period.primed
    bias = odometry.x[ACCEL_BIAS : ACCEL_BIAS + 3]
    _fill_signals(sample, axes, bias, position, velocity, before, dt, measured, signals)
    if not primed[0]:
        primed[0] = True
        return FIRST
    beginning, lost = period.beginning, period.lost
    smooth(signals, period.share, beginning, smoothed)
    _, given, _, _ = unpack(period.integers, period.numbers)
    n, turn = position.shape[0], smoothed[measured + 2 * position.shape[0] :]
    put_joints(smoothed[measured : measured + n], odometry.q_index, odometry.turns, given.q)
    actuated = odometry.actuated
    for k in range(n):
        given.v[actuated[k]] = smoothed[measured + n + k]
    for k in range(3):
        given.w[k] = axes[k, 0] * turn[0] + axes[k, 1] * turn[1] + axes[k, 2] * turn[2]
    for k in range(measured):
        beginning[k] = lost[k]
        given.y[k] = 0.0 if lost[k] else smoothed[k]
    _upwards(ready, odometry.record[O_ROTATION : O_ROTATION + 9], axes, smoothed[:3], given.up)
    if not period.by_limbs or solve_by_limbs(period.integers, period.numbers) != SOLVED:
        return UNSOLVED
    sum_forces(period)
    return FOUND


@kernel
def sum_forces(period):
    """Forces (f, 3) of the estimate that there is."""
    system, given, _, results = unpack(period.integers, period.numbers)
    component, forces = period.component, period.forces
    forces[:] = 0.0
    for k in range(component.shape[1]):
        foot, unknown = component[0, k], component[1, k]
        value, place = component[2, k], component[3, k]
        amount = given.y[value] if value >= 0 else results.z[unknown]
        for i in range(3):
            forces[foot, i] += amount * system.units[place, i]


@kernel
def keep_estimate(period, time_s, row):
    """Write time, q (nq,), v (nv,) and the forces on the feet, N, odometry frame, into a row, one after the other."""
    odometry, forces = period.odometry, period.forces
    record, position, velocity = odometry.record, period.position, period.velocity
    nq, nv = odometry.q.shape[0], odometry.v.shape[0]
    rotation = record[O_ROTATION : O_ROTATION + 9].reshape((3, 3))
    q, v, rest = row[1 : 1 + nq], row[1 + nq : 1 + nq + nv], row[1 + nq + nv :]
    row[0] = time_s
    for k in range(nq):
        q[k] = odometry.q[k]
    for k in range(3):
        q[k] = record[O_POSITION + k]
    quaternion_of(rotation, q[3:7])
    put_joints(position, odometry.q_index, odometry.turns, q)
    for k in range(6):
        v[k] = record[O_VELOCITY + k]
    for k in range(velocity.shape[0]):
        v[odometry.actuated[k]] = velocity[k]
    for i in range(forces.shape[0]):
        for k in range(3):
            total = 0.0
            for j in range(3):
                total += rotation[k, j] * forces[i, j]
            rest[3 * i + k] = total


@kernel
def find_contact(period, time_s, ready, planned):
    """Which feet touch, and which of them stay; whether all forces are observable.

    By forces; by the plan where they are not observable, or before the odometry has begun. A foot that the plan
    lifts does not stay: it keeps its filtered load for some periods, and taken as standing it pulls the base
    down, by 1 mm/s in a trot. A plan that lifts all feet that carry is not believed. While those that bear are
    refused all count. A touch of a foot that the plan lifts counts when twice the threshold has lasted
    ``confirm_s``, a larger force sooner: noise of what a swinging leg accelerates exceeds it for some periods.
    What is felt of a foot in the air, up to the threshold, is an error of the model, and a touch is what exceeds it; one
    that pulls is none where the plan lifts the foot: dry friction presses instead as soon as the knee turns round.

    Args:
        time_s: of the joints.
        ready: whether the odometry may be used.
        planned: whether ``stands`` are the plan's; else all feet are taken as standing.
    """
    forces, observable, sure, stands = period.forces, period.observable, period.sure, period.stands
    loads, on_n, off_n, states, felt = (
        period.loads, period.on_n, period.off_n, period.states, period.felt
    )  # fmt: skip
    thresholds, rotation = period.thresholds, period.odometry.record[O_ROTATION : O_ROTATION + 9]
    raw, since_s, seen_s, contact = period.raw, period.since_s, period.seen_s, period.contact
    known = True
    for i in range(stands.shape[0]):
        if not planned:
            stands[i] = True
        if not observable[i]:
            forces[i, 0] = forces[i, 1] = forces[i, 2] = np.nan
        lower = 2 if planned and stands[i] else 0
        on_n[i], off_n[i] = thresholds[lower], thresholds[lower + 1]
        load = forces[i, 0] * rotation[6] + forces[i, 1] * rotation[7] + forces[i, 2] * rotation[8]
        felt[i] = ready and sure[i] and abs(load) < np.inf
        if felt[i] and not raw[i] and seen_s[i] > -np.inf:
            share = min(max((time_s - seen_s[i]) / ALOFT_S, 0.0), 1.0)
            period.aloft[i] += share * (min(max(load, -on_n[i]), on_n[i]) - period.aloft[i])
        aloft = period.aloft[i] if lower else max(period.aloft[i], 0.0)
        on_n[i] = max(on_n[i] + aloft, thresholds[3])
        off_n[i] = max(off_n[i] + aloft, 0.5 * thresholds[3])
        loads[i] = load if felt[i] else np.nan
        states[i] = np.nan if felt[i] else (1.0 if stands[i] else 0.0)
        known &= abs(forces[i, 0] + forces[i, 1] + forces[i, 2]) < np.inf
    take_forces(loads, time_s, on_n, off_n, raw, since_s, seen_s)
    take_states(states, time_s, raw, since_s, seen_s)
    touched = period.stay  # until it is made below
    for i in range(stands.shape[0]):
        touched[i] = contact[i]
    debounce(time_s, 0.0, period.timeout_s, raw, since_s, seen_s, contact)
    for i in range(stands.shape[0]):
        if not stands[i]:
            lasted_s = time_s - since_s[i]
            if felt[i] and contact[i] and not touched[i] and 0.0 <= lasted_s:
                contact[i] = lasted_s * (loads[i] - on_n[i]) >= period.confirm_s * on_n[i]
            loads[i] = np.nan
    bears, stay, any_stays = period.bears, period.stay, False
    take_bearing(loads, bears)
    refused = period.odometry.record[O_REFUSED_S] > 0.0
    for i in range(stands.shape[0]):
        if not felt[i]:
            contact[i] = stands[i]
        stay[i] = contact[i] and stands[i] and (bears[i] or refused or not felt[i])
        any_stays |= stay[i] > 0.0
    if not any_stays:
        for i in range(stands.shape[0]):
            stay[i] = contact[i]
    return known


@kernel
def find_feet(period, dt, time_s, ready, planned):
    """Forces as by ``find_forces``, and where they are found contact as by ``find_contact``; what both return."""
    found = find_forces(period, dt, ready)
    return found, found == FOUND and find_contact(period, time_s, ready, planned)


@kernel
def go_on(period, dt, time_s, skew_s, disputed, planned):
    """A whole period as those before: ``take_joints``, ``find_feet`` and ``advance``, as far as each finds what it needs.

    Returns:
        The verdict on the inputs; what was found of the forces; whether all are observable; the filter's verdict,
        which means something only where forces are found.
    """
    fault = take_joints(period)
    if fault != GOOD:
        return fault, UNTRIED, False, SOUND
    found, known = find_feet(period, dt, time_s, True, planned)
    if found != FOUND:
        return fault, found, False, SOUND
    odometry, stay = period.odometry, period.stay
    for i in range(stay.shape[0]):
        odometry.contacts[i] = stay[i]
    odometry.inputs[I_SKEW] = skew_s
    odometry.inputs[I_DISPUTED] = 1.0 if disputed else 0.0
    return fault, found, known, advance(odometry)
