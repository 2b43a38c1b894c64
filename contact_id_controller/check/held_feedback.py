"""Stability of the robot side's feedback together with ours, sampled and held for a period.

Gains are of single joints, but a leg is coupled: a torque at a light joint moves the others too, and where the feet are
in the air and the base is free, much faster than the inertia of that joint suggests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.control.torques_ahead import FADE_S, actuated_inertia
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

LITTLE, ADVISED = 0.9, 0.75
"""Shares of the stable gains: a warning from the first on, as inertia decreases where a leg bends; the second is
proposed."""

_FACTORS = 64.0
_PRECISION = 0.005
_ROUNDING = 1e-6
_OWN = ("joint_position_gain", "joint_velocity_gain")


def check_held_feedback(
    subject: str,
    name: str,
    robot: RobotModel,
    settings: ControllerSettings,
    q: np.ndarray,
    gains: Sequence[np.ndarray],
) -> Finding:
    """Check gains K, N·m/rad, and D, N·m·s/rad, (na,) of the parameter ``name``, in a configuration q (nq,).

    A factor of all rates multiplies K and our position gain by its square. Trajectories are a period old, which is
    the most demanding: with older ones our own share fades.
    """
    share = 1.0 / largest_factor(robot, settings, q, gains)
    text = (
        f"{name}, held for {settings.period_s:g} s along trajectories of one period before, are "
        f"{100.0 * share:.0f} % of what is stable with the feet in the air"
    )
    if share < LITTLE:
        return note(subject, text)
    velocity = float(f"{ADVISED / share:.2g}")
    position = float(f"{velocity**2:.2g}")
    own = [
        _words(times * settings.spread(which, robot.na))
        for times, which in zip((position, velocity), _OWN)
    ]
    text += (
        f": set controller.joint_position_gain to {own[0]}, joint_velocity_gain to {own[1]}, and K and D there, too, "
        f"to {position:g} and {velocity:g} of what they are, or make the period shorter"
    )
    return error(subject, text) if share >= 1.0 else warning(subject, text)


def _words(values: np.ndarray) -> str:
    """Gains (na,) as text, one number if they are equal."""
    alike = values[:1] if np.ptp(values) == 0.0 else values
    return ", ".join(f"{value:.3g}" for value in alike)


def largest_factor(
    robot: RobotModel, settings: ControllerSettings, q: np.ndarray, gains: Sequence[np.ndarray]
) -> float:
    """Largest factor on all rates of joints that is stable, between 1 / 64 and 64.

        a = -(1 - T / FADE_S) (kp e + kd v)_before + W (K (e_set - e) + D (v_set - v))
        e' = e + T v + T^2 / 2 a,   v' = v + T a

    W is the inverse of the inertia of the actuated joints while the base is free; e_set, v_set are the errors of the
    period before, propagated along its trajectory (``torques_ahead``).

    Args:
        q: configuration (nq,).
        gains: K and D (na,) of the robot's side.
    """
    mobility = np.linalg.inv(actuated_inertia(robot, q))
    theirs = [mobility * gain for gain in gains]
    own = [settings.spread(name, robot.na) for name in _OWN]

    def is_stable(factor: float) -> bool:
        step = _step(
            settings.period_s,
            (factor**2 * own[0], factor * own[1]),
            (factor**2 * theirs[0], factor * theirs[1]),
        )
        return bool(np.abs(np.linalg.eigvals(step)).max() <= 1.0 + _ROUNDING)

    if is_stable(_FACTORS):
        return _FACTORS
    least, most = -np.log(_FACTORS), np.log(_FACTORS)
    while most - least > _PRECISION:
        middle = 0.5 * (least + most)
        least, most = (middle, most) if is_stable(np.exp(middle)) else (least, middle)
    return float(np.exp(least))


def _step(
    T: float, own: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Transition matrix (4 na, 4 na) of the loop of ``largest_factor``, on (e, v) and those of the period before.

    Our trajectory is that of the error under kp, kd, critically damped: e_set = (e (1 + r T) + v T) exp(-r T), r = kd
    / 2.

    T: period, s.  own: kp, kd (na,), 1/s2 and 1/s.  theirs: W K, W D (na, na), the same units.
    """
    (kp, kd), (K, D), n = own, theirs, len(own[0])
    rate = 0.5 * kd
    decay, share = np.exp(-rate * T), max(0.0, 1.0 - T / FADE_S)
    of_error = K * ((1.0 + rate * T) * decay) - D * (rate**2 * T * decay) - share * np.diag(kp)
    of_speed = K * (T * decay) + D * ((1.0 - rate * T) * decay) - share * np.diag(kd)
    acceleration = np.hstack([-K, -D, of_error, of_speed])
    step = np.zeros((4 * n, 4 * n))
    step[: 2 * n, : 2 * n] = step[2 * n :, : 2 * n] = np.eye(2 * n)
    step[:n, n : 2 * n] = T * np.eye(n)
    step[:n] += 0.5 * T * T * acceleration
    step[n : 2 * n] += T * acceleration
    return step
