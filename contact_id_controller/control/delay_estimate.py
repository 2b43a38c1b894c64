"""How late torques act that nobody told of: learnt from legs in the air, as their motors are.

A leg in the air is moved by its motors alone, so its motion says which torque has acted since the last state,

    y = (M (v - v_before) / h + C v + g)_leg + friction,

and that is the one commanded some periods ago, u_k, less what a rotor takes that nobody told of. Without their slow
parts, which are alike at all delays,

    E_k = min over I >= 0 of |u_k - y - I a|^2,    a: acceleration of the joint,

is smallest at the delay. It counts where 1 - E_k / |u_k|^2 is large, and clearly less is left than without a delay.
Between two periods the delay is that of the parabola through these shares. It is then as if it had been told, within a
bound, and a new start forgets it.

Source: delay by least squares at each lag, e.g. Ljung, "System identification", 2nd ed., section 10.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.motor_estimate import (
    EXPLAINS,
    LATE_S,
    LEARNT_S,
    MEANS,
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
"""Commands that are kept to be compared."""
SUMS = 4  # for each of them
MOST_S = 0.012
"""Longer delays are not learnt."""
SWINGS_S = 0.03
"""So long after lift-off slow parts are those of the swing: torques of the stance are forgotten."""
BETTER = 0.5
"""Share of what is unexplained without a delay that may be left with one."""


def room(robot: RobotModel) -> dict[str, NDArray[np.generic]]:
    """The arrays of a ``Period`` that are only used here, by name."""
    return {
        "sensed_v": np.zeros(robot.nv),
        "sensed_before": np.zeros(robot.nv),
        "given": np.zeros((LAGS, robot.na)),
        "biases": np.zeros((LAGS, robot.na)),
        "answer": np.zeros((2, robot.na)),
        "lagged": np.zeros((SUMS, LAGS)),
        "delay": np.zeros(3),
    }


def lags(period_s: float) -> int:
    """How many commands are compared."""
    return min(LAGS, 1 + round(MOST_S / period_s))


def forget(period: Period) -> None:
    """Torques act as late as told."""
    for numbers in (period.given, period.biases, period.answer, period.lagged, period.delay):
        numbers[:] = 0.0


@kernel
def _sum_up(period, elapsed):
    """Take the state into ``lagged`` (4, LAGS), sums of u u, (u - y)^2, a (u - y) and a a; whether a leg is in the air."""
    settings, given, commanded, late = period.settings, period.given, period.commanded, period.late
    M, v, before = period.inertia, period.sensed_v, period.sensed_before
    count, nv, lagged, aloft = settings.lags, period.v.shape[0], period.lagged, False
    recent, keeps = elapsed / (elapsed + LATE_S), 1.0 - elapsed / REMEMBERED_S
    biases, answer = period.biases, period.answer
    for k in range(count - 1, 0, -1):
        for j in range(commanded.shape[0]):
            given[k, j], biases[k, j] = given[k - 1, j], biases[k - 1, j]
    # The bias is that of the predicted state: of the measured one it was as long ago.
    ago = min(round(period.delay[1] / settings.period_s), count - 1)
    for j in range(commanded.shape[0]):
        given[0, j], biases[0, j] = commanded[j] - late[j], period.bias[settings.actuated[j]]
        if period.swing_s[0, j] == 0.0:
            continue
        row = settings.actuated[j]
        acted, turns = biases[ago, j] + rubbed(period, j, v[row]), (v[row] - before[row]) / elapsed
        for i in range(nv):
            acted += M[min(i, row), max(i, row)] * ((v[i] - before[i]) / elapsed)
        if period.swing_s[0, j] <= elapsed:
            answer[0, j], answer[1, j] = acted, turns
        answer[0, j] += recent * (acted - answer[0, j])
        answer[1, j] += recent * (turns - answer[1, j])
        if period.swing_s[0, j] < SWINGS_S:
            continue
        if not aloft:
            aloft = True
            for a in range(SUMS):
                for k in range(count):
                    lagged[a, k] *= keeps
        y, turn = acted - answer[0, j], turns - answer[1, j]
        for k in range(count):
            u = given[k, j]
            lagged[0, k] += elapsed * u * u
            lagged[1, k] += elapsed * (u - y) * (u - y)
            lagged[2, k] += elapsed * turn * (u - y)
            lagged[3, k] += elapsed * turn * turn
    return aloft


@kernel
def _explained(lagged, floor, k):
    """Share of the torques of k periods ago that the motion explains, with a rotor of any size."""
    rotor = max(lagged[2, k], 0.0)
    left = lagged[1, k] - rotor * rotor / lagged[3, k] if rotor > 0.0 else lagged[1, k]
    return 1.0 - (left + floor) / (lagged[0, k] + floor)


@kernel
def learn_delay(period, elapsed):
    """Change ``delay[0]``, s, by the last ``elapsed`` s, and ``delay[2]``: less than half a period is none. After ``learn_motors``."""
    if not _sum_up(period, elapsed):
        return
    effort, lagged, settings = period.effort, period.lagged, period.settings
    count = settings.lags
    floor = MEANS**2 * effort[0] / effort[1] * LEARNT_S
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
    if 1.0 - most > BETTER * (1.0 - _explained(lagged, floor, 0)):
        lateness = 0.0
    counts = min(max((most - EXPLAINS) / (SURE - EXPLAINS), 0.0), 1.0)
    aim = lateness * settings.period_s
    before = round(period.delay[0] / settings.period_s)
    period.delay[0] += (aim - period.delay[0]) * counts * elapsed / (elapsed + TAKEN_S)
    period.delay[2] = period.delay[0] if period.delay[0] > 0.5 * settings.period_s else 0.0
    if round(period.delay[0] / settings.period_s) != before:
        # What was learnt of the motors was that of other torques.
        fill(period.motors, 0.0)
        fill(period.squares, 0.0)
        fill(period.swing_s[1], 0.0)


def figures(period: Period) -> dict[str, str]:
    """Names and values for the diagnostics."""
    return {"torques late untold (s)": f"{period.delay[2]:.2g}"}
