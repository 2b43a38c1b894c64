"""The arrays of one base odometry by name, and what it does with them in each period."""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.imu_checks import GOOD, NO_JOINTS, check_inputs
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

DOUBTFUL_IMU = 1e4
"""Factor of the IMU's variance while its last good sample stands in for it."""

POSE, POSE_SPREAD, TWIST, REPORTED = 7, 43, 49, 85
"""Where parts of what is reported end: pose, its covariance, twist, and its covariance."""

SHORTEST_S = 1e-4
"""Period that the gyroscope's noise is averaged over, at least."""


class OdometryArrays(Struct):
    """Of a robot with na joints; see `invariant_filter` for the places in its vectors.

    Attributes:
        integers, numbers: of the mechanism.  links (feet,): that carry the feet.
        places (feet, 12): of the feet in the error, see ``invariant_filter.step``.
        q_index, actuated (na,), turns (na,) bool: as in ``RobotModel``.
        facts, x, P, inputs, record, buffer: what ``invariant_filter.step`` works on.
        sample (6,), q (nq,), v (nv,), contacts (feet,): views into ``inputs``.
        position, velocity (na,): of the joints as they came, rad and rad/s.
        limits (3,), memory (9,): see ``imu_checks.check_inputs``.
        jacobian (6, 9), spread (9, 9): room.
        held (12,): position and rotation of the record as the last ``advance`` found them.
        reported (85,): what ``report`` writes, as nav_msgs/Odometry has it: pose (7,), m and quaternion xyzw of the
            base in the odometry frame, its covariance (6, 6), twist (6,), m/s and rad/s in its own axes, and its
            covariance (6, 6), see ``BaseEstimate``.
    """

    integers: Places
    numbers: Numbers
    links: Places
    places: Places
    q_index: Places
    actuated: Places
    turns: NDArray[np.bool_]
    facts: Numbers
    x: Numbers
    P: Numbers
    inputs: Numbers
    record: Numbers
    buffer: Numbers
    sample: Numbers
    q: Numbers
    v: Numbers
    contacts: Numbers
    position: Numbers
    velocity: Numbers
    limits: Numbers
    memory: Numbers
    jacobian: Numbers
    spread: Numbers
    held: Numbers
    reported: Numbers


@structref.register
class OdometryArraysType(StructType):
    """numba's type of `OdometryArrays`."""


_pack = packing(OdometryArrays, OdometryArraysType)


@kernel
def _packed(values):
    """The struct ``OdometryArrays``, from the tuple of its fields\' values."""
    return _pack(values)


OdometryArrays.packed = staticmethod(_packed)


@bare_kernel
def put_joints(angles, q_index, turns, q):
    """Write positions of the joints (na,) into q (nq,), cosine and sine of those that turn without end."""
    for k in range(angles.shape[0]):
        at = q_index[k]
        if turns[k]:
            q[at], q[at + 1] = np.cos(angles[k]), np.sin(angles[k])
        else:
            q[at] = angles[k]


@kernel
def take(arrays):
    """Check the IMU's sample and the joints, and hand what is good to the filter; the fault, see ``check_inputs``.

    Joints that are not finite leave q and v as they were; the filter gets a larger noise for a sample that is not GOOD.
    """
    position, velocity, inputs = arrays.position, arrays.velocity, arrays.inputs
    dt = inputs[filtering.I_DT]
    fault = check_inputs(arrays.sample, position, velocity, dt, arrays.limits, arrays.memory)
    if fault < NO_JOINTS:
        actuated, v = arrays.actuated, arrays.v
        put_joints(position, arrays.q_index, arrays.turns, arrays.q)
        for k in range(velocity.shape[0]):
            v[actuated[k]] = velocity[k]
    inputs[filtering.I_NOISE] = 1.0 if fault % NO_JOINTS == GOOD else DOUBTFUL_IMU
    return fault


@kernel
def advance(arrays):
    """One step of the filter; its verdict on the result."""
    record, held = arrays.record, arrays.held
    for k in range(held.shape[0]):
        held[k] = record[k]
    return filtering.step(
        arrays.integers, arrays.numbers, arrays.links, arrays.places, arrays.facts, arrays.x,
        arrays.P, arrays.inputs, arrays.record, arrays.buffer,
    )  # fmt: skip


@kernel
def report(arrays):
    """Write pose, twist and their covariances as a message has them."""
    record, reported = arrays.record, arrays.reported
    pose, twist = reported[:POSE], reported[POSE_SPREAD:TWIST]
    for k in range(3):
        pose[k] = record[filtering.O_POSITION + k]
    for k in range(6):
        twist[k] = record[filtering.O_VELOCITY + k]
    at = filtering.O_ROTATION
    quaternion_of(record[at : at + 9].reshape((3, 3)), pose[3:])
    facts, at = arrays.facts, filtering.F_IMU_POSITION
    gyro = facts[filtering.F_GYRO] / max(arrays.inputs[filtering.I_DT], SHORTEST_S)
    _covariances(
        arrays.P, record, facts[at : at + 3], gyro, arrays.jacobian, arrays.spread,
        reported[POSE:POSE_SPREAD].reshape((6, 6)), reported[TWIST:].reshape((6, 6)),
    )  # fmt: skip


@bare_kernel
def quaternion_of(m, found):
    """Quaternion (4,) x, y, z, w of a rotation (3, 3), w >= 0. Shepperd (1978)."""
    k, largest = 0, -np.inf
    for i in range(4):
        square = 1.0 + m[0, 0] + m[1, 1] + m[2, 2]
        if i < 3:
            square = 1.0 + 2.0 * m[i, i] - m[0, 0] - m[1, 1] - m[2, 2]
        if square > largest:
            k, largest = i, square
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        off = m[b, a] - m[a, b]
        if k == 3:
            found[i] = off
        else:
            found[i] = largest if i == k else m[k, i] + m[i, k]
            if i == k:
                found[3] = off
    if k == 3:
        found[3] = largest
    size = 0.0
    for i in range(4):
        size += found[i] * found[i]
    size = np.sqrt(size)
    if found[3] < 0.0:
        size = -size
    for i in range(4):
        found[i] /= size


@bare_kernel
def _covariances(P, record, lever, gyro, J, Q, pose, twist):
    """Covariances of the base's pose and twist, J P J^T (6, 6), from that of the filter's error P (n, n).

        p = xi_p + xi_R x p (odometry axes),    v_base = R^T v_imu - w x lever, w (base axes)

    Args:
        record: of ``invariant_filter.step``.
        lever: (3,) m, from the base's origin to the IMU, base axes.
        gyro: variance of a sample of the gyroscope, rad2/s2.
        J, Q: (6, 9), (9, 9), workspace.
        pose, twist: out.
    """
    p = record[filtering.O_POSITION : filtering.O_POSITION + 3]
    R = record[filtering.O_ROTATION : filtering.O_ROTATION + 9]
    J[:] = 0.0
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        # -p x, of the turn about the origin.
        J[i, a], J[i, b] = p[b], -p[a]
        J[i, 6 + i] = J[3 + i, i] = 1.0
    _sandwich(J, P, pose)
    # v_base = v_imu + lever x w, and w is known to within the gyroscope's noise and bias.
    J[:] = 0.0
    Q[:] = 0.0
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        J[i, 3 + a], J[i, 3 + b] = -lever[b], lever[a]
        J[3 + i, 3 + i] = 1.0
        for j in range(3):
            J[i, j] = R[3 * j + i]
            Q[i, j], Q[3 + i, 3 + j] = P[3 + i, 3 + j], P[9 + i, 9 + j]
        Q[3 + i, 3 + i] += gyro
    _sandwich(J, Q, twist)


@bare_kernel
def _sandwich(J, P, found):
    """found (r, r) = J P J^T, of the first rows and columns of P; J (r, k)."""
    for i in range(J.shape[0]):
        for j in range(J.shape[0]):
            total = 0.0
            for k in range(J.shape[1]):
                if J[i, k] != 0.0:
                    for l in range(J.shape[1]):
                        total += J[i, k] * P[k, l] * J[j, l]
            found[i, j] = total
