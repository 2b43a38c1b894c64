"""Last stage of the controller step: torque limits.

In this order, each joint's torque is reduced by

- velocity: beyond its speed limit v_max, torque in the direction of motion fades to zero over
  velocity_margin v_max;
- position: within position_margin_rad of an end, torque towards it fades to zero, and motion is
  damped: the soft stop. (Desired accelerations were already bounded so that a joint does not get
  there; this also covers torques without a model.)
- power: sum(tau qd + w tau^2) <= power_limit_w, w = R / Kt^2; all torques are scaled alike;
- effort: |tau| <= the limit;
- rate: |tau - last tau| <= limit times period, except that effort takes precedence: after its
  limit was lowered torque is within it at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

EFFORT, RATE, VELOCITY, POSITION, POWER = 1, 2, 4, 8, 16

VELOCITY_MARGIN = 0.1
"""Share of the velocity limit over which torque fades beyond it, to avoid a jolt."""

POSITION_MARGIN = 0.05
"""Where the soft stop begins, rad or m before the end of a joint: three degrees, as far as joints give."""

STOP_GAIN = 20.0
"""Least speed allowed towards an end, per distance from the soft stop, 1/s: it is reached within some .05 s."""

BRAKES = 0.5
"""Share of the effort limit with which a joint brakes before an end, where that allows it more speed."""

STOP_PERIODS = 10.0
"""Least time in which the speed towards an end falls with the distance, in periods."""

STILL = 1e-6
"""Speed, rad/s, of a joint that rests: of no effect, but no division by zero."""

LARGEST_MARGIN = 0.1
"""Largest margin, as a share of a joint's range, at either end."""

NEGLIGIBLE = 1e-2
"""Share of effort or acceleration up to which a joint resting at its end is not reported."""

NAMES = {
    EFFORT: "effort",
    RATE: "effort rate",
    VELOCITY: "velocity",
    POSITION: "position",
    POWER: "power",
}
"""What a bit of ``acting`` means."""


class JointLimits(Struct):
    """Limits of each joint, (na,) each, and of all joints together.

    Attributes:
        speed: rad/s.  lower, upper: rad, ends of the range, infinite without a stop.
        margin: rad, before each end.  damping: N·m s/rad, there.
        loss: R / Kt^2 of the motors, W/(N·m)^2.
        effort: N·m.  rate_step: N·m, largest change in a period.
        speed_margin: share of the speed over which torque fades.  power_w: of all joints together.
        stop_gain: 1/s.  time_constant_s: over which excess speed is reduced.  period_s.
    """

    speed: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    margin: NDArray[np.float64]
    damping: NDArray[np.float64]
    loss: NDArray[np.float64]
    effort: NDArray[np.float64]
    rate_step: NDArray[np.float64]
    speed_margin: float
    power_w: float
    stop_gain: float
    time_constant_s: float
    period_s: float


@structref.register
class JointLimitsType(StructType):
    """numba's type of `JointLimits`."""


_pack = packing(JointLimits, JointLimitsType)


@kernel
def _packed(values):
    """The struct ``JointLimits``, from the tuple of its fields\' values."""
    return _pack(values)


JointLimits.packed = staticmethod(_packed)


def stop_margin(lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    """Distance of the soft stops from the ends of a joint's range, rad or m.

    A range that is short, or in metres, keeps most of itself.
    """
    share = LARGEST_MARGIN * (np.asarray(upper) - np.asarray(lower))
    margin: NDArray[np.float64] = np.minimum(POSITION_MARGIN, share)
    return margin


def joint_limits(robot: RobotModel, settings: ControllerSettings) -> JointLimits:
    """Limits of one robot's joints, in command order.

    Raises:
        ConfigurationError: a parameter with the wrong number of values.
    """
    na = robot.na

    def values(name: str, otherwise: np.ndarray) -> np.ndarray:
        return np.array(settings.spread(name, na) if getattr(settings, name) else otherwise)

    # A model without limits may state them as an empty range.
    stops = (robot.upper > robot.lower) & settings.position_stops
    margin = stop_margin(robot.lower, robot.upper)
    loss = np.zeros(na)
    if settings.motor_constant_nm_sqrt_w:
        loss = settings.spread("motor_constant_nm_sqrt_w", na) ** -2.0
    return JointLimits(
        speed=values("velocity_limits_rad_s", robot.velocity_limits),
        lower=np.where(stops, robot.lower, -np.inf),
        upper=np.where(stops, robot.upper, np.inf),
        margin=np.where(stops, margin, 0.0),
        damping=np.array(settings.spread("damping_nm_s_rad", na), dtype=float),
        loss=loss,
        effort=values("effort_limits_nm", robot.effort_limits),
        rate_step=settings.period_s * values("effort_rate_limits_nm_s", np.full(na, np.inf)),
        speed_margin=VELOCITY_MARGIN,
        power_w=float((settings.motor_constant_nm_sqrt_w and settings.power_limit_w) or np.inf),
        stop_gain=STOP_GAIN,
        time_constant_s=float(settings.limit_time_constant_s),
        period_s=float(settings.period_s),
    )


@kernel
def bound_joints(q, qd, M, actuated, brakes, limits, qdd, acting):
    """Bound desired joint accelerations qdd (na,), rad/s2, in place, so that speed and position stay within limits.

    Towards an end the speed allowed is the distance from the soft stop times a gain: ``brakes`` of the largest torque
    over inertia and speed, at least stop_gain, at most 1 / (``STOP_PERIODS`` period_s). A joint that is faster is slowed
    down over time_constant_s, in addition to what that speed falls by, unless brakes is 0. q, qd (na,): measured;
    M (nv, nv): mass matrix, of which the diagonal is read; actuated (na,): the joints' places in it.
    Out: acting (na,), bits of the limits that acted.
    """
    speed, lower, upper, margin = limits.speed, limits.lower, limits.upper, limits.margin
    period, time_constant = limits.period_s, limits.time_constant_s
    for j in range(q.shape[0]):
        acting[j] = 0
        top, bottom, by_top, by_bottom = speed[j], -speed[j], VELOCITY, VELOCITY
        gain = limits.stop_gain
        if brakes > 0.0:  # the effort may be infinite
            heavy = M[actuated[j], actuated[j]] * max(abs(qd[j]), STILL)
            braking = min(brakes * limits.effort[j] / heavy, 1.0 / (STOP_PERIODS * period))
            gain = max(gain, braking)
        # Within the margin a joint may rest: it is not pushed out, only not led further in.
        nearing = gain * max(upper[j] - margin[j] - q[j], 0.0)
        falls, rises = 0.0, 0.0
        if nearing < top:
            top, by_top = nearing, POSITION
            falls = gain * max(qd[j], 0.0) if brakes > 0.0 and nearing > 0.0 else 0.0
        nearing = gain * min(lower[j] + margin[j] - q[j], 0.0)
        if nearing > bottom:
            bottom, by_bottom = nearing, POSITION
            rises = gain * min(qd[j], 0.0) if brakes > 0.0 and nearing < 0.0 else 0.0
        # Up to the limit within one period, back to it more gently.
        highest = (top - qd[j]) / (period if qd[j] < top else time_constant) - falls
        lowest = (bottom - qd[j]) / (period if qd[j] > bottom else time_constant) - rises
        slack = NEGLIGIBLE * speed[j] / time_constant if speed[j] < np.inf else 0.0
        if qdd[j] > highest:
            acting[j] = by_top if qdd[j] > highest + slack else 0
            qdd[j] = highest
        elif qdd[j] < lowest:
            acting[j] = by_bottom if qdd[j] < lowest - slack else 0
            qdd[j] = lowest


class _Ends(NamedTuple):
    """Fields of `JointLimits` for torques near the ends and at high speed."""

    speed: np.ndarray
    speed_margin: float
    lower: np.ndarray
    upper: np.ndarray
    margin: np.ndarray
    damping: np.ndarray


@kernel
def limit_joints(q, qd, wanted, last, limits, bounded, torques, acting):
    """Limit torques (na,), N·m.

    Numbers that are not finite are passed on: the caller checks before they are sent.

    Args:
        q, qd: measured positions and velocities (na,).  wanted: torques (na,).
        last: limited torques of the period before.  limits: ``JointLimits``.
        bounded: (na,) bits of the limits that acted on the accelerations.
        torques, acting: (na,) out; acting: bits of `NAMES`.
    """
    assign(torques, wanted)
    assign(acting, bounded)
    ends = _Ends(
        limits.speed,
        limits.speed_margin,
        limits.lower,
        limits.upper,
        limits.margin,
        limits.damping,
    )
    _respect_ends(q, qd, ends, limits.effort, torques, acting)
    _respect_power(qd, limits.loss, limits.power_w, torques, acting)
    _respect_effort(last, limits.effort, limits.rate_step, torques, acting)


@bare_kernel
def _respect_ends(q, qd, machine, effort, torques, acting):
    """Fade torque beyond the speed limit and near the ends of the range, and damp there.

    Torque that accelerates falls to zero at (1 + speed_margin) times the speed limit; torque towards an end falls to zero
    over the last ``margin``, in which motion towards the end is damped.
    q, qd (na,) rad and rad/s (m for sliders); machine: ``JointLimits``; effort (na,) N·m: torque limits, scale of what
    is negligible. Changed in place: torques (na,) N·m, acting (na,) bits of the limits that act.
    """
    speed, margin = machine.speed, machine.margin
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
    """Scale all torques alike, in place, until mechanical power and heat are within ``power``, W.

    P(s) = s qd^T tau + s^2 sum loss_j tau_j^2 for the factor s. qd (na,) rad/s; loss (na,) W/(N·m)^2; torques
    (na,) N·m.
    """
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
    """Clip torques in place to the change allowed since ``last``, then to the effort limits, which take precedence.

    last, effort, step, torques: (na,) N·m; acting: (na,) bits.
    """
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
