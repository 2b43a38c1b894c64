"""Gains of the robot's own side, held for a period: what `contact_id check` calls stable is so in MuJoCo."""

import numpy as np
import pytest
import yaml
from paths import CONFIG

from contact_id_controller.check.config import check_file
from contact_id_controller.check.findings import ERROR
from contact_id_controller.check.held_feedback import largest_factor
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.plans.effort_trajectory import LocalFeedback
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

STEPS_PER_MS = 10
"""Of the simulation, which is to be no coarser than what it judges."""


class Late(LocalFeedback):
    """As behind ros2_control: the trajectory of a state is first played in the period after it."""

    coming = None

    def follow(self, trajectory, now_s):
        super().follow(self.coming or trajectory, now_s)
        self.coming = trajectory.like()
        self.coming.copy_from(trajectory, np.zeros(1))


def aloft(controller, state):
    """A plan on which no foot stands: torques ahead are those of a robot in the air, too."""
    if state.time_s == 0.0:
        frames = controller.settings.foot_frames
        standing = ContactSchedule(frames, [0.0], [[False] * len(frames)], 0.0)
        controller.follow(Plan(contacts=standing), 0.0)


def run_of(name, period_s, factor, **options):
    """A run with all rates of joints, ours and those of the robot's side, times a factor."""
    values = {"command_interface": "robot_side_trajectory", "period_s": period_s}
    file = controller_settings(name, **values)
    settings = controller_settings(
        name,
        **values,
        joint_position_gain=[factor**2 * file.joint_position_gain[0]],
        joint_velocity_gain=[factor * file.joint_velocity_gain[0]],
    )
    world = mujoco_robot(settings, 1.0, substeps=round(1e3 * period_s * STEPS_PER_MS))
    run = InProcessRun(name, settings, world, **options)
    gains = local_gains(run.robot, settings, run.believed.q)
    run.local = Late.of(run.robot, run.controller.effort_limits, gains)
    return run


@pytest.mark.parametrize(
    ("name", "period_s"), [("quadruped", 0.001), ("quadruped", 0.002), ("solo12", 0.002)]
)
def test_errors_of_a_robot_in_the_air_die_out_up_to_the_factor_that_is_found_and_grow_beyond(
    name, period_s
):
    """Joints that are shaken a little, in free fall; without ground MuJoCo has no contact to damp them."""
    settings = controller_settings(name, period_s=period_s)
    robot = settings.load_robot()
    posture = InProcessRun(name, settings, mujoco_robot(settings, 1.0)).state.q
    found = largest_factor(robot, settings, posture, local_gains(robot, settings, posture))
    posture[2] += 5.0
    speeds = {}
    for share in (0.9, 1.1):
        run = run_of(name, period_s, share * found, start=posture, plan=aloft)
        dofs = run.world.mujoco_dofs
        run.world.mujoco_data.qvel[dofs] = 1e-3 * np.random.default_rng(1).normal(size=len(dofs))
        run.state = run.believed = run.world.state()
        for _ in range(round(0.3 / period_s)):
            after = run.advance().after
        speeds[share] = np.abs(after.v[run.robot.actuated]).max()
    assert speeds[0.9] < 1e-4 < 1e-2 < speeds[1.1]


def found(tmp_path, period_s, factor=1.0):
    """Lines of `contact_id check` about gains on the robot's side, all rates of the file's times a factor."""
    content = yaml.safe_load((CONFIG / "quadruped.yaml").read_text(encoding="utf-8"))
    for section in ("controller", "simulated_robot", "command_watchdog"):
        content[section]["ros__parameters"]["command_interface"] = "robot_side_trajectory"
    controller, robot = (
        content[name]["ros__parameters"] for name in ("controller", "simulated_robot")
    )
    controller["period_s"] = robot["period_s"] = period_s
    for values, names in (
        (controller, ("joint_position_gain", "joint_velocity_gain")),
        (robot, ("local_position_gain", "local_velocity_gain")),
    ):
        for power, name in zip((2, 1), names):
            values[name] = [factor**power * gain for gain in values[name]]
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return [each for each in check_file(file) if "along trajectories" in each.text]


def test_check_refuses_at_500_hz_the_gains_that_fit_1_khz_and_says_which_hold(tmp_path):
    (fits,) = found(tmp_path, 0.001)
    assert fits.level == "ok" and "83 % of what is stable" in fits.text
    (refused,) = found(tmp_path, 0.002)
    assert refused.level == ERROR and "166 % of what is stable" in refused.text
    assert "joint_position_gain to 320, joint_velocity_gain to 36" in refused.text
    assert "to 0.2 and 0.45 of what they are" in refused.text
    (advised,) = found(tmp_path, 0.002, 0.45)
    assert advised.level == "ok"


def test_the_quadruped_walks_at_500_hz_with_the_gains_that_check_says_and_trembles_with_the_others():
    """Joint speeds beside the plan, rad/s: its legs swing with up to 8."""
    errors = []
    for factor in (0.45, 1.0):
        record = run_of("quadruped", 0.002, factor).record(0.8)
        away = record.velocity - record.reference_velocity
        errors.append(np.sqrt(np.mean(away[100:] ** 2)))
        assert factor == 1.0 or (record.fell_time_s is None and not record.not_following)
    assert errors[0] < 1.0 < 4.0 < errors[1]
