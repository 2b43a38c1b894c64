"""A whole-body plan is replaced while the robot walks in MuJoCo: neither reference nor torque jumps."""

import numpy as np
import pytest
from paths import ROOT
from test_motion_planner import ROBOTS, settings_of

from contact_id_controller.planning.kinodynamic.motion_planner import Goal, MotionPlanner
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
)

START_S = 0.3


def walked(name, end_s, replaced_at_s=np.inf):
    """Record of a walk whose goal changes at a time, when each plan began and how long it lasts."""
    stride_m, far_m = ROBOTS[name]
    config = str(ROOT / "config" / "plans" / f"{name}.yaml")
    planner = MotionPlanner(settings_of(name, stride_m=stride_m))
    settings = controller_settings(config)
    begins, references = [], []

    def hand_over(controller, state):
        if not begins:
            plan = planner.plan(state.time_s, state.q, state.v, Goal(far_m, 0.0, 0.0)).plan
            start_s = START_S
        elif len(begins) == 1 and state.time_s >= replaced_at_s:
            goal = Goal(far_m, 0.3 * far_m, 0.3)
            plan, start_s = planner.plan(state.time_s, state.q, state.v, goal)
        else:
            return
        for part in (plan.joints, plan.base, plan.contacts):
            part.start_s = start_s
        planner.follow(plan, start_s)
        controller.follow(plan, state.time_s)
        begins.append((start_s, plan.contact_plan.duration_s))

    run = InProcessRun(
        config, settings, mujoco_robot(settings, 0.6), plan=hand_over, start=planner._posture
    )

    def watch(period):
        references.append((period.result.reference.position, period.result.reference.velocity))

    record = run.record(end_s, each=watch)
    return record, begins, [np.array(rows) for rows in zip(*references)]


@pytest.mark.parametrize(("name", "replaced_at_s"), [("solo12", 1.5), ("talos", 2.6)])
def test_neither_reference_nor_torque_jumps(name, replaced_at_s):
    end_s = replaced_at_s + 2.0
    record, begins, (positions, velocities) = walked(name, end_s, replaced_at_s)
    assert not record.fell and len(begins) == 2
    (first_s, lasts_s), (second_s, _) = begins
    assert replaced_at_s < second_s < min(first_s + lasts_s, end_s) - 0.3
    at = round(second_s / 1e-3)
    change = slice(at - 2, at + 5)
    # A period goes on with the speed that there is.
    steps = np.diff(positions, axis=0) - 1e-3 * velocities[:-1]
    assert np.abs(steps[change]).max() < 1e-4
    # Torques as if nothing had been replaced, but for what fades in at blend_rate_nm_s of 100 N·m/s.
    as_it_was, _, (_, planned) = walked(name, end_s)
    rows = slice(0, len(as_it_was.torques))
    torques = np.abs(record.torques[rows] - as_it_was.torques)[change]
    assert torques.max() < 0.1
    np.testing.assert_allclose(velocities[change], planned[change], atol=0.02)
    assert np.abs(velocities[-1] - planned[-1]).max() > 1e-3  # another plan it is
