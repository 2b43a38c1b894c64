"""Estimate of rotor inertia and joint friction beyond the model, from swing legs, joint by joint.

A swing leg is moved by its motors alone. The generalized force that these do not explain, ``disturbance.unexplained``,
is then due to what the model lacks of them: with a the acceleration and v the velocity of a joint, both low-passed as
its torque y is,

    y = I a + d tanh(v / v_0) + b v + c (u - u_past)

u is the commanded torque, u_past the same, low-passed over `LATE_S`: this distinguishes torques that act late, by a
delay or a lag of the motors, from friction. c is not used: friction whose reversals are smooth looks late, too.
Least squares over the last swings, fading over `REMEMBERED_S` of them, give I >= 0, as noise of a biases it down,
c >= 0, and d and b that at most cancel the modelled ones.
The estimates are used where they explain y; where they do not, as after a blow, they fade. The controller
adds inertia and friction to its model, for legs in stance too. Forces that act as a motor's friction would, such
as drag at a foot, are taken for it: hence the bound, and a new start resets all.

Source: recursive least squares with forgetting, e.g. Ljung, "System identification", 2nd ed., section 11.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.grip import slip_speed
from contact_id_controller.control.period import Period
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.robot import RobotModel

LOW_PASS_S = 0.005
"""Time constant for torque and motion alike: noise of a velocity differentiated over one period would hide both."""
REMEMBERED_S = 1.0
"""Fading time of the sums, in the air: some strides."""
ALOFT_S = 0.01
"""Time after lift-off from which a leg is moved by its motors alone, until touchdown."""
APART_M = 1e-4
"""Least gap of a foot whose leg is in the air. Legs that friction or rotors retard lift by some millimetres only, and
would never be used with more."""
MOVES_M_S = 0.02
"""Least speed of a foot: a slower one may be held."""
EXPLAINS, SURE = 0.5, 0.75
"""Explained share R^2 from which an estimate is used, and from which on fully."""
MEANS = 0.02
"""Least torque, relative to the root mean square of all commanded torques, that is evidence over ``LEARNT_S``."""
LEARNT_S = 0.1
MOST = 3.0
"""Bound of the estimated inertia and friction: torque at a trot's swing, relative to that root mean square."""
TAKEN_S = 0.02
"""Time constant with which the controller adopts the estimates, to avoid a step of torque."""
RIDGE = 1e-3
"""Regularisation relative to the squares at a trot's swing (100 rad/s^2, and 10 rad/s): slower motion identifies dry
friction only, and no inertia."""
LATE_S = 0.005
"""Time over which delayed torques are detected: that of a drive and its bus, some periods."""
LEARNT, PARTS = 3, 4
"""Number of parameters that the controller uses, and number that are estimated."""
SCALES = (100.0, 1.0, 10.0, 0.0)


def room(robot: RobotModel) -> dict[str, NDArray[np.generic]]:
    """Allocate the arrays of a ``Period`` that only this module uses, by name."""
    return {
        "motors": np.zeros((LEARNT, robot.na)),
        "late": np.zeros(robot.na),
        "swing": np.zeros((1 + PARTS, robot.na)),
        "swing_s": np.zeros((2, robot.na)),
        "squares": np.zeros((robot.na, 1 + PARTS, 1 + PARTS)),
        "effort": np.zeros(2),
        "rubs": np.zeros(1, dtype=bool),
    }


def forget(period: Period) -> None:
    """Reset the estimates: motors are as modelled."""
    learnt = period.motors, period.late
    for numbers in (*learnt, period.swing, period.swing_s, period.squares, period.effort):
        numbers[:] = 0.0


@kernel
def _find_swinging(period, swinging):
    """Mark in swinging (n,) bool the contacts that are in the air and move."""
    for i in range(swinging.shape[0]):
        swinging[i] = not (period.planned[i] or period.contact[i] or period.stands[i])
        if swinging[i]:
            moves = period.gaps[i] > APART_M and slip_speed(period, i, period.v) > MOVES_M_S
            swinging[i] = moves


@kernel
def _is_aloft(settings, swinging, k):
    """Whether coordinate k moves feet, all of which are ``swinging`` (n,)."""
    feet = 0
    for i in range(swinging.shape[0]):
        if settings.supports[settings.links[i], k]:
            feet += 1
            if not swinging[i]:
                return False
    return feet > 0


@bare_kernel
def _solve(squares, time_s, floor, known, least, gram, found):
    """Solve the least squares of one joint from their sums (5, 5), torque first, into ``found`` (4,); returns R^2.

    time_s: summed.  floor: squared torque below which there is no evidence.  known (4,): values of the model; found is
    at least their negative, unless R^2 without that is at most ``least``.  gram (4, 4): workspace.
    """
    total = squares[0, 0] + floor
    explained, bound = 0.0, 0  # bits of the unknowns that are at their bounds
    for _ in range(PARTS + 1):  # each pass takes one away that would be below its bound
        for a in range(PARTS):
            found[a] = squares[0, 1 + a]
            for b in range(PARTS):
                gram[a, b] = squares[1 + a, 1 + b]
            gram[a, a] += RIDGE * time_s * SCALES[a] ** 2
        gram[LEARNT, LEARNT] += floor
        if bound:
            for a in range(PARTS):
                for b in range(PARTS if bound >> a & 1 else 0):
                    found[b] += known[a] * squares[1 + a, 1 + b]
            for a in range(PARTS):
                if bound >> a & 1:
                    for b in range(PARTS):
                        gram[a, b] = gram[b, a] = 0.0
                    gram[a, a], found[a] = 1.0, -known[a]
        _eliminate(gram, found)
        explained = 0.0
        for a in range(PARTS):
            explained += 2.0 * found[a] * squares[0, 1 + a]
            for b in range(PARTS):
                explained -= found[a] * squares[1 + a, 1 + b] * found[b]
        explained = explained / total if total > 0.0 else 0.0
        worst, which = 0.0, -1
        for a in range(PARTS):
            if not bound >> a & 1 and found[a] + known[a] < worst:
                worst, which = found[a] + known[a], a
        if which < 0 or explained <= least:  # bounds explain less
            break
        bound |= 1 << which
    return explained


@bare_kernel
def _eliminate(A, x):
    """Solve A y = x into x (n,); A (n, n) symmetric positive definite, overwritten; its diagonal by the inverse one."""
    n = x.shape[0]
    for k in range(n):
        A[k, k] = 1.0 / A[k, k]
        for i in range(k + 1, n):
            factor = A[i, k] * A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            x[k] -= A[k, j] * x[j]
        x[k] *= A[k, k]


@kernel
def learn_motors(period, elapsed):
    """Update ``motors`` (3, na) by the last ``elapsed``, s: inertia, dry and viscous friction beyond the model's.

    kg m^2, N·m and N·m s/rad. Requires ``rest`` as ``unexplained`` has written it.
    """
    settings, rest, v, before = period.settings, period.rest, period.v, period.before
    motors, swing, late, found = period.motors, period.swing, period.late, np.empty(PARTS)
    actuated, friction = settings.actuated, settings.friction
    commanded, mean_square = period.commanded, 0.0
    for j in range(actuated.shape[0]):
        mean_square += commanded[j] * commanded[j] / actuated.shape[0]
    effort, keeps = period.effort, 1.0 - elapsed / REMEMBERED_S
    effort[0] = keeps * effort[0] + elapsed * mean_square
    effort[1] = keeps * effort[1] + elapsed
    mean_square = effort[0] / effort[1]
    floor, most = MEANS**2 * mean_square * LEARNT_S, MOST * np.sqrt(mean_square)
    recent = elapsed / (elapsed + LATE_S)
    known, gram = np.zeros(PARTS), np.empty((PARTS, PARTS))
    share = elapsed / (elapsed + LOW_PASS_S)
    swinging = np.empty(period.gaps.shape[0], np.bool_)
    _find_swinging(period, swinging)
    for j in range(actuated.shape[0]):
        k = actuated[j]
        late[j] += recent * (commanded[j] - late[j])
        if not (_is_aloft(settings, swinging, k) and floor > 0.0):
            period.swing_s[0, j] = 0.0
            for a in range(1 + PARTS):
                swing[a, j] = 0.0
            continue
        period.swing_s[0, j] += elapsed
        if period.swing_s[0, j] < ALOFT_S:
            continue
        mean = 0.5 * (v[k] + before[k])
        row = (
            -rest[k],
            (v[k] - before[k]) / elapsed,
            np.tanh(mean / friction[2, j]),
            mean,
            commanded[j] - late[j],
        )
        estimated_torque = 0.0
        for a in range(LEARNT):
            estimated_torque += motors[a, j] * row[1 + a]
        squares = period.squares[j]
        for a in range(1 + PARTS):
            value = row[a] + estimated_torque if a == 0 else row[a]
            swing[a, j] += share * (value - swing[a, j])
        for a in range(1 + PARTS):
            for b in range(1 + PARTS):
                squares[a, b] = keeps * squares[a, b] + elapsed * swing[a, j] * swing[b, j]
        period.swing_s[1, j] = keeps * period.swing_s[1, j] + elapsed
        known[1], known[2] = friction[0, j], friction[1, j]
        explained = _solve(squares, period.swing_s[1, j], floor, known, EXPLAINS, gram, found)
        confidence = min(max((explained - EXPLAINS) / (SURE - EXPLAINS), 0.0), 1.0)
        fades = (1.0 - confidence) * elapsed / REMEMBERED_S
        for a in range(LEARNT):
            aim = min(found[a], most / SCALES[a])
            motors[a, j] += (aim - motors[a, j]) * confidence * elapsed / TAKEN_S
            motors[a, j] -= motors[a, j] * fades


@kernel
def rubbed(period, j, speed):
    """Friction torque, N·m, of joint j at a speed, rad/s: modelled and estimated."""
    friction, motors = period.settings.friction, period.motors
    dry, viscous = friction[0, j] + motors[1, j], friction[1, j] + motors[2, j]
    return dry * np.tanh(speed / friction[2, j]) + viscous * speed


@kernel
def swinging_torque(motors, j):
    """Torque, N·m, of the estimated inertia and friction of joint j, ``motors`` (3, na), at a trot's swing."""
    total = 0.0
    for a in range(LEARNT):
        total += SCALES[a] * motors[a, j]
    return total


@kernel
def take_motors(period):
    """Add the estimated rotor inertias to the diagonal of ``inertia``; set ``rubs``: some joint has friction."""
    actuated, friction, motors = period.settings.actuated, period.settings.friction, period.motors
    rubs = False
    for j in range(actuated.shape[0]):
        period.inertia[actuated[j], actuated[j]] += motors[0, j]
        for a in range(2):
            rubs = rubs or friction[a, j] != 0.0 or motors[1 + a, j] != 0.0
    period.rubs[0] = rubs


def figures(period: Period) -> dict[str, str]:
    """Names and values for the diagnostics."""
    names = ("rotor inertia (kg m2)", "dry friction (N m)", "viscous friction (N m s)")
    return {
        f"{name} untold": ", ".join(f"{each:.2g}" for each in row.tolist())
        for name, row in zip(names, period.motors)
    }
