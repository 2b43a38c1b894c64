"""Estimate of the delay of torques beyond the configured one, from swing legs, as their motors are estimated, and arms.

A swing leg, or an arm that touches nothing, is moved by its motors alone, so its motion shows which torque has acted
since the last state,

    y = (M (v - v_before) / h + C v + g)_leg + friction,

namely the one commanded some periods ago, u_k, less what an unmodelled rotor takes. Without their slow
parts, which are alike at all delays,

    E_k = min over I >= 0 of |u_k - y - I a|^2,    a: acceleration of the joint,

is smallest at the delay. The estimate is used where 1 - E_k / |u_k|^2 is large, and E_k clearly smaller than E_0.
Between two periods the delay is that of the parabola through these shares. It then counts as configured, within a
bound; a new start resets it.

Source: delay by least squares at each lag, e.g. Ljung, "System identification", 2nd ed., section 10.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.motor_estimate import (
    EXPLAINS,
    LEARNT_S,
    REMEMBERED_S,
    SURE,
    TAKEN_S,
    rubbed,
)
from contact_id_controller.control.period import Period
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.robot import RobotModel

LAGS = 16
"""Number of commands that are stored for comparison."""
SUMS = 4  # for each of them
MOST_S = 0.012
"""Longest delay that is estimated."""
SWINGS_S = 0.03
"""Time after lift-off from which the slow parts are those of the swing, no longer of the stance; at least their time
constant."""
MANY = 1.5
"""Time from which a delay is taken, in time constants of the slow parts: a few sums agree with any delay."""
BETTER = 0.5
"""Largest share of the unexplained torque at zero delay that may remain with a delay."""
ARM_SLOW_S, ARM_QUICK_S, ARM_MEANS, ARM_BETTER = 0.2, 0.01, 0.005, 0.8
"""Of an arm, which moves more slowly: time constants of the torques that are compared, ``MEANS`` and `BETTER`."""
ARM_EXPLAINS, ARM_SURE = 0.93, 0.97
"""Of an arm, ``EXPLAINS`` and ``SURE``: a delay leaves a twentieth of its torques unexplained with friction or a load that
are untold, without them a thousandth; a hand that pushes it leaves half of them and more."""


def room(robot: RobotModel) -> dict[str, NDArray[np.generic]]:
    """Allocate the arrays of a ``Period`` that only this module uses, by name."""
    return {
        "sensed_v": np.zeros(robot.nv),
        "sensed_before": np.zeros(robot.nv),
        "given": np.zeros((LAGS, robot.na)),
        "biases": np.zeros((LAGS, robot.na)),
        "answer": np.zeros((2, robot.na)),
        "quick": np.zeros((3, robot.na)),
        "lagged": np.zeros((SUMS, LAGS)),
        "delay": np.zeros(3),
    }


def lags(period_s: float) -> int:
    """Number of commands that are compared."""
    return min(LAGS, 1 + round(MOST_S / period_s))


def forget(period: Period) -> None:
    """Reset the estimate: torques act with the configured delay."""
    sums = period.given, period.biases, period.answer, period.quick, period.lagged
    for numbers in (*sums, period.delay):
        numbers[:] = 0.0


@kernel
def _sum_up(period, elapsed, slow_s, quick_s):
    """Add the state to ``lagged`` (4, LAGS), sums of u u, (u - y)^2, a (u - y) and a a by lag.

    slow_s, quick_s: time constants, s, of slow parts, which are subtracted, and of a low-pass.
    Returns whether a leg swings.
    """
    settings, given, commanded, late = period.settings, period.given, period.commanded, period.late
    M, v, before = period.inertia, period.sensed_v, period.sensed_before
    count, nv, lagged, aloft = settings.lags, period.v.shape[0], period.lagged, False
    recent, keeps = elapsed / (elapsed + slow_s), 1.0 - elapsed / REMEMBERED_S
    biases, answer, rate = period.biases, period.answer, 1.0 / elapsed
    quick, rest = period.quick, quick_s / (elapsed + quick_s)
    for k in range(count - 1, 0, -1):
        for j in range(commanded.shape[0]):
            given[k, j], biases[k, j] = given[k - 1, j], biases[k - 1, j]
    # The bias is that of the predicted state: of the measured one it was as long ago.
    ago = min(round(period.delay[1] / settings.period_s), count - 1)
    for j in range(commanded.shape[0]):
        quick[0, j] = commanded[j] + rest * (quick[0, j] - commanded[j])
        given[0, j], biases[0, j] = quick[0, j] - late[j], period.bias[settings.actuated[j]]
        if period.swing_s[0, j] == 0.0:
            continue
        row = settings.actuated[j]
        acted, turns = biases[ago, j] + rubbed(period, j, v[row]), (v[row] - before[row]) * rate
        for i in range(nv):
            acted += M[min(i, row), max(i, row)] * ((v[i] - before[i]) * rate)
        if period.swing_s[0, j] <= elapsed:
            answer[0, j], answer[1, j] = acted, turns
            quick[0, j], quick[1, j], quick[2, j] = commanded[j], acted, turns
        quick[1, j] = acted + rest * (quick[1, j] - acted)
        quick[2, j] = turns + rest * (quick[2, j] - turns)
        answer[0, j] += recent * (acted - answer[0, j])
        answer[1, j] += recent * (turns - answer[1, j])
        if period.swing_s[0, j] < max(SWINGS_S, slow_s):
            continue
        if not aloft:
            aloft = True
            for a in range(SUMS):
                for k in range(count):
                    lagged[a, k] *= keeps
        y, turn = quick[1, j] - answer[0, j], quick[2, j] - answer[1, j]
        for k in range(count):
            u = given[k, j]
            lagged[0, k] += elapsed * u * u
            lagged[1, k] += elapsed * (u - y) * (u - y)
            lagged[2, k] += elapsed * turn * (u - y)
            lagged[3, k] += elapsed * turn * turn
    return aloft


@kernel
def _explained(lagged, floor, k):
    """Share of the torques of k periods ago that the motion explains, with the best rotor inertia I >= 0."""
    rotor = max(lagged[2, k], 0.0)
    left = lagged[1, k] - rotor * rotor / lagged[3, k] if rotor > 0.0 else lagged[1, k]
    return 1.0 - (left + floor) / (lagged[0, k] + floor)


@kernel
def learn_delay(period, elapsed, slow_s, quick_s, means, better, explains, sure):
    """Update the estimate of the additional torque delay, ``delay[0]``, s, by the last ``elapsed`` s.

    Call after ``learn_motors``. Takes the lag, in periods, whose torques best explain the motion of swing legs, refined
    by a parabola. ``delay[2]`` is the delay to apply: ``delay[0]``, or 0 up to half a period. If ``delay[0]`` in whole
    periods changes, the estimates of the motors are reset, as they were made with other torques.

    period: ``lagged`` (4, LAGS), see ``_sum_up``; ``effort`` (2,), sums of squared torque and of time, for the noise
    floor: the share ``means`` of their root mean square over ``LEARNT_S``.  slow_s, quick_s: see ``_sum_up``.  better:
    see `BETTER`.
    explains, sure: least share that a longer lag must explain, and that from which it is taken as fast as it can; a
    shorter one must explain `EXPLAINS`.
    """
    if not _sum_up(period, elapsed, slow_s, quick_s) or max(period.swing_s[0]) < MANY * slow_s:
        return
    effort, lagged, settings = period.effort, period.lagged, period.settings
    count = settings.lags
    floor = means**2 * effort[0] / effort[1] * LEARNT_S
    best, most = 0, 0.0
    for k in range(count):
        share = _explained(lagged, floor, k)
        if share > most:
            best, most = k, share
    lateness = float(best)
    if 0 < best < count - 1:
        left, right = _explained(lagged, floor, best - 1), _explained(lagged, floor, best + 1)
        curve = left - 2.0 * most + right
        if curve < 0.0:
            lateness += 0.5 * (left - right) / curve
    if 1.0 - most > better * (1.0 - _explained(lagged, floor, 0)):
        lateness = 0.0
    aim = lateness * settings.period_s
    least, full = (explains, sure) if aim > period.delay[0] else (EXPLAINS, SURE)
    confidence = min(max((most - least) / (full - least), 0.0), 1.0)
    before = round(period.delay[0] / settings.period_s)
    period.delay[0] += (aim - period.delay[0]) * confidence * elapsed / (elapsed + TAKEN_S)
    period.delay[2] = period.delay[0] if period.delay[0] > 0.5 * settings.period_s else 0.0
    if round(period.delay[0] / settings.period_s) != before:
        # What was learnt of the motors was that of other torques.
        fill(period.motors, 0.0)
        fill(period.squares, 0.0)
        fill(period.swing_s[1], 0.0)


@kernel
def learn_arm_delay(period, elapsed, free):
    """Do as `learn_delay` for a robot with a fixed base, whose motors alone move its joints while ``free``."""
    commanded, late, effort, aloft = period.commanded, period.late, period.effort, period.swing_s[0]
    keeps, recent = 1.0 - elapsed / REMEMBERED_S, elapsed / (elapsed + ARM_SLOW_S)
    effort[0], effort[1] = keeps * effort[0], keeps * effort[1] + elapsed
    for j in range(commanded.shape[0]):
        effort[0] += elapsed * commanded[j] * commanded[j] / commanded.shape[0]
        late[j] += (recent if aloft[j] > 0.0 else 1.0) * (commanded[j] - late[j])
        aloft[j] = aloft[j] + elapsed if free else 0.0
    if free:
        learn_delay(
            period,
            elapsed,
            ARM_SLOW_S,
            ARM_QUICK_S,
            ARM_MEANS,
            ARM_BETTER,
            ARM_EXPLAINS,
            ARM_SURE,
        )


def figures(period: Period) -> dict[str, str]:
    """Names and values for the diagnostics."""
    return {"torques late untold (s)": f"{period.delay[2]:.2g}"}
