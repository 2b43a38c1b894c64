"""The last stage of the controller step: torques that the machine can take.

In this order, each joint's torque is reduced by

- velocity: beyond its speed limit v_max, torque in the direction of motion fades to zero over
  velocity_margin v_max;
- position: within position_margin_rad of an end, torque towards it fades to zero, and motion is
  damped: the soft stop. (Desired accelerations were already bounded so that a joint does not get
  there; this holds also for torques that no model made.)
- power: sum(tau qd + w tau^2) <= power_limit_w, w = R / Kt^2; all torques shrink alike;
- effort: |tau| <= the limit;
- rate: |tau - last tau| <= limit times period, except that effort has the last word: after its
  limit was lowered torque is within it at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

EFFORT, RATE, VELOCITY, POSITION, POWER = 1, 2, 4, 8, 16

SPEED, LOWER, UPPER, MARGIN, DAMPING, LOSS, EFFORT_LIMIT, RATE_STEP = range(8)
"""Rows of `Limits.table`."""

LARGEST_MARGIN = 0.1
"""Of a joint's range, at either end."""

NEGLIGIBLE = 1e-2
"""Part of effort or acceleration up to which a joint resting at its end is not reported."""

NAMES = {
    EFFORT: "effort",
    RATE: "effort rate",
    VELOCITY: "velocity",
    POSITION: "position",
    POWER: "power",
}
"""What a bit of `Limits.acting` means."""


class Limits:
    """Limits of one robot's joints; all arrays (na,), in command order.

    Attributes:
        effort: N·m, infinite where there is none.
        table: (8, na), what each joint can take, a row each: see above.
        speed_margin, power_w, stop_gain, time_constant_s: settings that all joints share.
        acting: bits of `NAMES`, which limits acted in the last call of each method.

    Raises:
        ConfigurationError: a parameter with the wrong number of values.
    """

    def __init__(self, robot: RobotModel, settings: ControllerSettings):
        na = robot.na

        def values(name: str, otherwise: np.ndarray) -> np.ndarray:
            return settings.spread(name, na) if getattr(settings, name) else otherwise

        self.table = table = np.zeros((8, na))
        self.effort = table[EFFORT_LIMIT]
        table[EFFORT_LIMIT] = values("effort_limits_nm", robot.effort_limits)
        rates = values("effort_rate_limits_nm_s", np.full(na, np.inf))
        table[RATE_STEP] = settings.period_s * rates
        table[SPEED] = values("velocity_limits_rad_s", robot.velocity_limits)
        self.speed_margin = settings.velocity_margin
        self.stop_gain = settings.position_stop_gain
        # A model without limits may state them as an empty range.
        stated = robot.upper > robot.lower
        stops = stated & settings.position_stops
        table[LOWER] = np.where(stops, robot.lower, -np.inf)
        table[UPPER] = np.where(stops, robot.upper, np.inf)
        # A range that is short, or in metres, keeps most of itself.
        table[MARGIN] = np.where(
            stops,
            np.minimum(settings.position_margin_rad, LARGEST_MARGIN * (robot.upper - robot.lower)),
            0.0,
        )
        self._period = settings.period_s
        self.time_constant_s = settings.limit_time_constant_s
        table[DAMPING] = settings.spread("damping_nm_s_rad", na)
        self.power_w = np.inf
        if settings.motor_resistance_ohm:
            table[LOSS] = (
                settings.spread("motor_resistance_ohm", na)
                / settings.spread("motor_torque_constant_nm_a", na) ** 2
            )
            self.power_w = settings.power_limit_w or np.inf
        self.acting = np.zeros(na, dtype=np.uint8)
        self._torques, self._bounded = np.zeros(na), np.zeros(na, dtype=np.uint8)

    def bound_accelerations(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        """Change desired joint accelerations (na,), rad/s2, that lead beyond speed or position.

        Towards an end the speed allowed is position_stop_gain times the distance from the soft
        stop; a joint that is faster is brought back over limit_time_constant_s.
        """
        table = self.table
        bound_joints(
            q,
            qd,
            self._period,
            table[SPEED],
            table[LOWER],
            table[UPPER],
            table[MARGIN],
            self.stop_gain,
            self.time_constant_s,
            qdd,
            self._bounded,
        )

    def limit(
        self, q: np.ndarray, qd: np.ndarray, wanted: np.ndarray, last: np.ndarray
    ) -> np.ndarray:
        """Torques (na,), N·m, within all limits; a view that the next call overwrites.

        q, qd: measured positions and velocities. last: the answer of the period before.
        Numbers that are not finite stay so: whoever sends them must look.
        """
        table = self.table
        limit_joints(
            q,
            qd,
            wanted,
            last,
            table[SPEED],
            self.speed_margin,
            table[LOWER],
            table[UPPER],
            table[MARGIN],
            table[DAMPING],
            table[LOSS],
            self.power_w,
            table[EFFORT_LIMIT],
            table[RATE_STEP],
            self._bounded,
            self._torques,
            self.acting,
        )
        self._bounded[:] = 0
        return self._torques


@bare_kernel
def bound_joints(q, qd, period, speed, lower, upper, margin, gain, time_constant, qdd, acting):
    """``Limits.bound_accelerations``; all arrays (na,), acting out: bits of the limits that acted."""
    for j in range(q.shape[0]):
        acting[j] = 0
        top, bottom, by_top, by_bottom = speed[j], -speed[j], VELOCITY, VELOCITY
        # Within the margin a joint may rest: it is not pushed out, only not led further in.
        nearing = gain * max(upper[j] - margin[j] - q[j], 0.0)
        if nearing < top:
            top, by_top = nearing, POSITION
        nearing = gain * min(lower[j] + margin[j] - q[j], 0.0)
        if nearing > bottom:
            bottom, by_bottom = nearing, POSITION
        # Up to the limit within one period, back to it more gently.
        highest = (top - qd[j]) / (period if qd[j] < top else time_constant)
        lowest = (bottom - qd[j]) / (period if qd[j] > bottom else time_constant)
        slack = NEGLIGIBLE * speed[j] / time_constant if speed[j] < np.inf else 0.0
        if qdd[j] > highest:
            acting[j] = by_top if qdd[j] > highest + slack else 0
            qdd[j] = highest
        elif qdd[j] < lowest:
            acting[j] = by_bottom if qdd[j] < lowest - slack else 0
            qdd[j] = lowest


class _Motion(NamedTuple):
    """Measured positions and velocities (na,)."""

    q: np.ndarray
    qd: np.ndarray


class _Machine(NamedTuple):
    """What each joint can take; arrays (na,)."""

    speed: np.ndarray
    speed_margin: float
    lower: np.ndarray
    upper: np.ndarray
    margin: np.ndarray
    damping: np.ndarray


@bare_kernel
def limit_joints(
    q,
    qd,
    wanted,
    last,
    speed,
    speed_margin,
    lower,
    upper,
    margin,
    damping,
    loss,
    power,
    effort,
    step,
    bounded,
    torques,
    acting,
):
    """``Limits.limit``; all arrays (na,), torques and acting out, bounded: bits that acted before."""
    motion = _Motion(q, qd)
    assign(torques, wanted)
    assign(acting, bounded)
    _respect_ends(
        motion,
        _Machine(speed, speed_margin, lower, upper, margin, damping),
        effort,
        torques,
        acting,
    )
    _respect_power(qd, loss, power, torques, acting)
    _respect_effort(last, effort, step, torques, acting)


@bare_kernel
def _respect_ends(motion, machine, effort, torques, acting):
    """Fade torque beyond the speed limit and near the ends of the range, and damp there."""
    q, qd, speed, margin = motion.q, motion.qd, machine.speed, machine.margin
    lower, upper = machine.lower, machine.upper
    for j in range(q.shape[0]):
        torque, act = torques[j], acting[j]
        if torque * qd[j] > 0.0:
            fade = 1.0 - (abs(qd[j]) - speed[j]) / (machine.speed_margin * speed[j])
            if fade < 1.0:
                torque *= max(fade, 0.0)
                act |= VELOCITY
        room = upper[j] - q[j] if torque > 0.0 else q[j] - lower[j]
        if room < margin[j]:
            if abs(torque) > (NEGLIGIBLE * effort[j] if effort[j] < np.inf else 0.0):
                act |= POSITION
            torque *= max(room / margin[j], 0.0)
        outwards = qd[j] if upper[j] - q[j] < q[j] - lower[j] else -qd[j]
        room = min(upper[j] - q[j], q[j] - lower[j])
        if room < margin[j] and outwards > 0.0:
            torque -= machine.damping[j] * qd[j] * min(1.0 - room / margin[j], 1.0)
            act |= POSITION
        torques[j], acting[j] = torque, act


@bare_kernel
def _respect_power(qd, loss, power, torques, acting):
    """Shrink all torques alike until work and heat are within ``power``, W."""
    heat, work = 0.0, 0.0
    for j in range(qd.shape[0]):
        heat += loss[j] * torques[j] * torques[j]
        work += torques[j] * qd[j]
    if work + heat > power:
        # The largest s with s work + s^2 heat = power.
        share = power / work
        if heat > 0.0:
            share = (np.sqrt(work * work + 4.0 * heat * power) - work) / (2.0 * heat)
        for j in range(qd.shape[0]):
            torques[j] *= share
            acting[j] |= POWER


@bare_kernel
def _respect_effort(last, effort, step, torques, acting):
    """Clip at the effort limits and at the change allowed since ``last``; effort has the last word."""
    for j in range(torques.shape[0]):
        torque = torques[j]
        if torque > effort[j]:
            torque = effort[j]
            acting[j] |= EFFORT
        elif torque < -effort[j]:
            torque = -effort[j]
            acting[j] |= EFFORT
        if torque > last[j] + step[j]:
            torque = last[j] + step[j]
            acting[j] |= RATE
        elif torque < last[j] - step[j]:
            torque = last[j] - step[j]
            acting[j] |= RATE
        # The last torque may lie beyond a limit that was lowered since.
        if torque > effort[j]:
            torque = effort[j]
            acting[j] |= EFFORT
        elif torque < -effort[j]:
            torque = -effort[j]
            acting[j] |= EFFORT
        torques[j] = torque
