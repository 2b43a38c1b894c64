"""Observer of joint velocities: prediction by the last solution, corrected by measurement.

    p = v_past + h / T (v_next - v_past),   v = p + h / (h + tau) (v_measured - p)

for each joint; v_past: of the last step, v_next: at which its solution arrives after its period T, h: time since,
tau: `joint_velocity_filter_s`. A Luenberger observer whose model is the contact problem: effects of the torques are
not delayed as by a low-pass, unmodelled ones appear after tau.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.disturbance import LONGEST_S
from contact_id_controller.control.period import Period
from contact_id_controller.kernels.compile import kernel


def room(joints: int) -> dict[str, NDArray[np.float64]]:
    """Allocate the arrays of a ``Period`` that only this module uses, by name."""
    return {"arrives": np.full(1 + joints, np.nan)}


def forget(period: Period) -> None:
    """Discard the prediction."""
    period.arrives[0] = np.nan


@kernel
def correct_velocities(time_s, period):
    """Correct the joints' part of the measured ``v`` (nv,) of the state at time_s, in place.

    Returns whether it changed.
    """
    settings, v, past = period.settings, period.v, period.velocity
    elapsed, filter_s = time_s - period.arrives[0], settings.velocity_filter_s
    if not 0.0 < elapsed <= LONGEST_S:  # not a number: nothing is foreseen
        return False
    share, gain = elapsed / settings.period_s, elapsed / (elapsed + filter_s)
    for j in range(settings.actuated.shape[0]):
        k = settings.actuated[j]
        foreseen = past[j] + share * (period.arrives[1 + j] - past[j])
        v[k] = foreseen + gain * (v[k] - foreseen)
    return True


@kernel
def foresee_velocities(time_s, velocity, period):
    """Store the predicted velocity (nv,) at the end of the period that begins at ``time_s``; (0,): unknown."""
    actuated, arrives = period.settings.actuated, period.arrives
    arrives[0] = np.nan if velocity.shape[0] == 0 else time_s
    if velocity.shape[0] == 0:
        return
    for j in range(actuated.shape[0]):
        arrives[1 + j] = velocity[actuated[j]]
