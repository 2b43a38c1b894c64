"""What a joint_trajectory_controller makes of our trajectories by either rule of replacement, and by stamps ahead.

The stand-in was written from the sources of ros2_controllers 5.17 and 6.9.
"""

import numpy as np
import pytest

from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from experiments.faults.simulated_trajectory_controller import SimulatedTrajectoryController

PERIOD_S, KNOT_S = 0.001, 0.01
SPEED_RAD_S, EFFORT_NM = 6.0, 0.46
P, D = np.array([10.0]), np.array([0.2])


def motion(t_s):
    """A motion with its effort: position, velocity, acceleration, effort."""
    phase = SPEED_RAD_S * t_s
    return np.array(
        [
            np.sin(phase),
            SPEED_RAD_S * np.cos(phase),
            -(SPEED_RAD_S**2) * np.sin(phase),
            EFFORT_NM * np.cos(phase),
        ]
    )


def command(stamp_s, of_s=None):
    """A trajectory of 50 ms along the motion from a time on, which its stamp says."""
    trajectory = EffortTrajectory(6, 1)
    trajectory.start_s = stamp_s
    trajectory.times_s[:] = KNOT_S * np.arange(6)
    for k, t_s in enumerate(trajectory.times_s):
        trajectory.values[k, :, 0] = motion((stamp_s if of_s is None else of_s) + t_s)
    return trajectory


def worst(replaces, age_s):
    """Largest difference, N·m, from the motion's own effort, where each trajectory arrives so late."""
    controller = SimulatedTrajectoryController(P, D, PERIOD_S, replaces=replaces)
    errors = []
    for k in range(100, 600):
        now_s = k * PERIOD_S
        controller.take(command(now_s - age_s))
        q, v, _, _ = motion(now_s)[:, None]
        effort = controller.update(now_s, q, v)
        errors.append(abs(effort[0] - motion(now_s + PERIOD_S)[3]))
    return max(errors[1:])


@pytest.mark.parametrize("age_s", [0.002, 0.005, 0.01])
def test_replacement_plays_a_trajectory_as_late_as_it_is_and_without_age_is_made_up_for(age_s):
    """On the motion itself nothing is to be corrected; played late, the gains pull it back by its age."""
    assert worst(False, age_s) < 0.01
    behind_nm = P[0] * SPEED_RAD_S * age_s  # where the motion is fastest
    assert worst(True, age_s) > 0.8 * behind_nm
    assert worst(True, 0.0) < 0.01


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize(("ahead_s", "share"), [(0.0, 1.0), (0.002, 0.5), (0.01, 0.1)])
def test_stamps_ahead_of_the_clock_starve_the_effort(replaces, ahead_s, share):
    """At each arrival it begins anew from the state measured, whose effort is zero: a period's share of the way."""
    controller = SimulatedTrajectoryController(P, D, PERIOD_S, replaces=replaces)
    rest = np.zeros(1)
    for k in range(20):
        now_s = 1.0 + k * PERIOD_S
        trajectory = command(now_s + ahead_s, of_s=0.0)
        trajectory.values[:, :3] = 0.0
        trajectory.efforts[:] = EFFORT_NM
        controller.take(trajectory)
        effort = controller.update(now_s, rest, rest)
    assert effort[0] == pytest.approx(share * EFFORT_NM, rel=1e-9)


def test_without_a_new_one_the_old_one_goes_on_and_ends_at_rest():
    controller = SimulatedTrajectoryController(P, D, PERIOD_S, replaces=True)
    assert controller.update(1.0, np.zeros(1), np.zeros(1)) == 0.0
    trajectory = command(1.0)
    trajectory.values[-1, 1:3] = 0.0
    controller.take(trajectory)
    at = trajectory.positions[-1]
    for k in range(200):
        effort = controller.update(1.0 + k * PERIOD_S, at, np.zeros(1))
    assert effort == pytest.approx(trajectory.efforts[-1])
