"""Kinematics of one three-jointed leg, compiled.

A leg is a product of exponentials: screws (3, 6), linear part first, and the centre of its foot
(3,), all in base axes at joint positions 0 (`Legs.chains`). Arrays in, results into arrays given.

Loops are written out: assignments to slices compile ten times longer.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel

TOLERANCE_M = 1e-9
"""Residual at which the iteration stops; the next step of Newton's method would be nil."""

MAX_STEP_RAD = 0.3
"""Largest change of a joint in one iteration; keeps the knee on its side."""

SINGULAR = 1e-4
"""(det J)^2 over the cube of the mean eigenvalue of J J^T below which the inverse is damped."""

_PRISMATIC = 1e-12


@kernel
def cross(a, b, out):
    """out (3,) <- a x b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@kernel
def apply(matrix, a, out):
    """out (3,) <- matrix (3, 3) a."""
    for i in range(3):
        out[i] = matrix[i, 0] * a[0] + matrix[i, 1] * a[1] + matrix[i, 2] * a[2]


@kernel
def apply_transposed(matrix, a, out):
    """out (3,) <- matrix (3, 3)^T a."""
    for i in range(3):
        out[i] = matrix[0, i] * a[0] + matrix[1, i] * a[1] + matrix[2, i] * a[2]


@kernel
def invert(matrix, out):
    """out (3, 3) <- matrix^-1; returns the determinant; if that is 0 ``out`` is unchanged."""
    c00 = matrix[1, 1] * matrix[2, 2] - matrix[1, 2] * matrix[2, 1]
    c01 = matrix[1, 2] * matrix[2, 0] - matrix[1, 0] * matrix[2, 2]
    c02 = matrix[1, 0] * matrix[2, 1] - matrix[1, 1] * matrix[2, 0]
    determinant = matrix[0, 0] * c00 + matrix[0, 1] * c01 + matrix[0, 2] * c02
    if determinant == 0.0:
        return determinant
    out[0, 0] = c00 / determinant
    out[1, 0] = c01 / determinant
    out[2, 0] = c02 / determinant
    out[0, 1] = (matrix[0, 2] * matrix[2, 1] - matrix[0, 1] * matrix[2, 2]) / determinant
    out[1, 1] = (matrix[0, 0] * matrix[2, 2] - matrix[0, 2] * matrix[2, 0]) / determinant
    out[2, 1] = (matrix[0, 1] * matrix[2, 0] - matrix[0, 0] * matrix[2, 1]) / determinant
    out[0, 2] = (matrix[0, 1] * matrix[1, 2] - matrix[0, 2] * matrix[1, 1]) / determinant
    out[1, 2] = (matrix[0, 2] * matrix[1, 0] - matrix[0, 0] * matrix[1, 2]) / determinant
    out[2, 2] = (matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]) / determinant
    return determinant


@kernel
def damped_inverse(jacobian, damping, out):
    """out (3, 3) <- J^T (J J^T + damping I)^-1 for damping > 0; jacobian J (3, 3)."""
    square, inverse = np.empty((3, 3)), np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            total = damping if i == j else 0.0
            for k in range(3):
                total += jacobian[i, k] * jacobian[j, k]
            square[i, j] = total
    invert(square, inverse)
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                total += jacobian[k, i] * inverse[k, j]
            out[i, j] = total


@kernel
def safe_inverse(jacobian, out):
    """out (3, 3) <- J^-1, damped near singular postures only; jacobian J (3, 3)."""
    mean = 1e-12
    for i in range(3):
        for k in range(3):
            mean += jacobian[i, k] * jacobian[i, k] / 3.0
    closeness = 1.0 - invert(jacobian, out) ** 2 / (SINGULAR * mean**3)
    if closeness > 0.0:
        damped_inverse(jacobian, 1e-2 * closeness * closeness * mean, out)


@kernel
def add(a, factor, out):
    """out (3,) <- out + factor a."""
    for i in range(3):
        out[i] += factor * a[i]


@kernel
def screw_motion(linear, angular, angle, rotation, translation):
    """exp([screw] angle): rotation (3, 3) and translation (3,), out, of a joint turned by `angle`, or moved by it.

    linear, angular (3,): of the screw; angular 0: a prismatic joint. Rodrigues' formula.
    """
    w = angular
    squared = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    norm = np.sqrt(squared)
    sine, cosine, rest = angle, 0.0, 0.0
    if norm > _PRISMATIC:
        sine, cosine = np.sin(norm * angle) / norm, (1.0 - np.cos(norm * angle)) / squared
        rest = (angle - sine) / squared
    first, second = np.empty(3), np.empty(3)
    cross(w, linear, first)
    cross(w, first, second)
    for i in range(3):
        translation[i] = linear[i] * angle + cosine * first[i] + rest * second[i]
        for j in range(3):
            rotation[i, j] = cosine * w[i] * w[j]
        rotation[i, i] += 1.0 - cosine * squared
    rotation[0, 1] -= sine * w[2]
    rotation[1, 0] += sine * w[2]
    rotation[0, 2] += sine * w[1]
    rotation[2, 0] -= sine * w[1]
    rotation[1, 2] -= sine * w[0]
    rotation[2, 1] += sine * w[0]


@kernel
def pose_leg(screws, home, angles, axes, center, linear, angular):
    """Posture of a leg: joint axes (2, 3, 3), centre of its foot and Jacobians (3, 3), base axes.

    Args:
        screws, home: (3, 6), (3,) of the leg.  angles (3,): rad, or m.
        axes: out, linear parts of the three axes, then the angular ones.
        center: (3,) out, m.
        linear, angular: out, map joint velocities to those of the centre and of the foot's link.
    """
    rotation, turn, product = np.eye(3), np.empty((3, 3)), np.empty((3, 3))
    position, shift, moved = np.zeros(3), np.empty(3), np.empty(3)
    for j in range(3):
        apply(rotation, screws[j, 3:], axes[1, j])
        apply(rotation, screws[j, :3], axes[0, j])
        cross(position, axes[1, j], moved)
        add(moved, 1.0, axes[0, j])
        screw_motion(screws[j, :3], screws[j, 3:], angles[j], turn, shift)
        apply(rotation, shift, moved)
        add(moved, 1.0, position)
        for r in range(3):
            for c in range(3):
                product[r, c] = (
                    rotation[r, 0] * turn[0, c]
                    + rotation[r, 1] * turn[1, c]
                    + rotation[r, 2] * turn[2, c]
                )
        rotation, product = product, rotation
    apply(rotation, home, center)
    add(position, 1.0, center)
    for j in range(3):
        cross(axes[1, j], center, moved)
        for i in range(3):
            linear[i, j] = axes[0, j, i] + moved[i]
            angular[i, j] = axes[1, j, i]


@kernel
def reach(
    screws, home, wanted, lower, upper, max_iterations, angles, axes, center, linear, angular
):
    """Solve the inverse kinematics: move `angles` (3,), in place, until the foot's centre is at `wanted` (3,).

    Levenberg-Marquardt, dq = J^T (J J^T + |e|^2 I)^-1 e with e the residual (Sugihara, 2011):
    Newton's method near the solution, and convergence to the nearest reachable point if there
    is none. Joint limits lower, upper (3,) are kept. Returns |e|, m; the rest is written as by `pose_leg`.
    """
    error, step, inverse = np.empty(3), np.empty(3), np.empty((3, 3))
    for iteration in range(max_iterations + 1):
        pose_leg(screws, home, angles, axes, center, linear, angular)
        squared = 0.0
        for i in range(3):
            error[i] = wanted[i] - center[i]
            squared += error[i] * error[i]
        if iteration == max_iterations or squared < TOLERANCE_M * TOLERANCE_M:
            break
        damped_inverse(linear, squared + 1e-14, inverse)
        apply(inverse, error, step)
        for j in range(3):
            change = min(max(step[j], -MAX_STEP_RAD), MAX_STEP_RAD)
            angles[j] = min(max(angles[j] + change, lower[j]), upper[j])
    return np.sqrt(squared)


@kernel
def bias(axes, center, rates, linear, angular):
    """Acceleration (3,) of a foot's centre and angular acceleration (3,) of its link at constant joint rates (3,).

    The axes turn with their joints: d/dt axis_j = twist_j x axis_j, twist_j = sum of axis_i rate_i
    up to j. The centre's is the classical acceleration, a + alpha x r + w x (v + w x r).  axes (2, 3, 3), center (3,):
    of ``pose_leg``; linear, angular (3,): out, base axes.
    """
    velocity, spin, work = np.zeros(3), np.zeros(3), np.empty(3)
    for i in range(3):
        linear[i] = angular[i] = 0.0
    for j in range(3):
        add(axes[0, j], rates[j], velocity)
        add(axes[1, j], rates[j], spin)
        cross(spin, axes[0, j], work)
        add(work, rates[j], linear)
        cross(velocity, axes[1, j], work)
        add(work, rates[j], linear)
        cross(spin, axes[1, j], work)
        add(work, rates[j], angular)
    cross(angular, center, work)
    add(work, 1.0, linear)
    cross(spin, center, work)
    add(work, 1.0, velocity)
    cross(spin, velocity, work)
    add(work, 1.0, linear)
