"""Are an IMU and encoders believable: silent, frozen, saturated, finite; compiled, for every sample."""

from __future__ import annotations

from contact_id_controller.kernels.compile import kernel

GOOD, SILENT, FROZEN, SATURATED = range(4)
"""Outcomes of the check of a sample of the IMU."""
NO_JOINTS = 4
"""Added where joint positions or velocities are not finite."""
FAULTS = {SILENT: "silent", FROZEN: "frozen", SATURATED: "saturated"}

GREATEST = 1e6
"""No joint is so far or so fast, rad, no motor so strong, N·m: more is as if it were not finite. A low-pass
would need minutes to forget 1e300, in which no force is one and nothing stands still."""

# Places in the memory; the last good sample comes first.
M_SAME_S, M_BAD_S, M_JOINTS, MEMORY = 6, 7, 8, 9
# Places in the limits.
L_GYRO, L_ACCEL, L_FROZEN_S = range(3)


@kernel
def check_inputs(sample, positions, velocities, dt, limits, memory):
    """Check a sample (6,) of the IMU, rad/s and m/s2, and joints (n,); returns the fault, plus NO_JOINTS for joints.

    A bad sample is replaced, in place, by the last good one. One that repeats itself is frozen once the joints
    have moved for ``limits[L_FROZEN_S]``: a robot that nothing disturbs may read the same.
    limits, memory: see the places above; dt, s.
    """
    total, finite = 0.0, True
    for k in range(positions.shape[0]):
        total += abs(positions[k]) * (1.0 + k)
        finite = finite and abs(positions[k]) < GREATEST and abs(velocities[k]) < GREATEST
    moved = total != memory[M_JOINTS]
    memory[M_JOINTS] = total
    fault, same = GOOD, True
    for k in range(6):
        limit = limits[L_GYRO] if k < 3 else limits[L_ACCEL]
        same = same and sample[k] == memory[k]
        if not abs(sample[k]) < GREATEST:
            fault = SILENT
        elif abs(sample[k]) >= limit and fault == GOOD:
            fault = SATURATED
    if not same:
        memory[M_SAME_S] = 0.0
    elif moved:
        memory[M_SAME_S] += dt
    if fault == GOOD and memory[M_SAME_S] > limits[L_FROZEN_S]:
        fault = FROZEN
    for k in range(6):
        if fault == GOOD:
            memory[k] = sample[k]
        else:
            sample[k] = memory[k]
    memory[M_BAD_S] = memory[M_BAD_S] + dt if fault != GOOD else 0.0
    return fault if finite else fault + NO_JOINTS
