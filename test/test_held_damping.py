"""Damping torques that are held for a period: what `contact_id check` calls stable comes to rest in MuJoCo."""

import numpy as np
import pytest
import yaml
from paths import CONFIG

from contact_id_controller.check.config import check_file
from contact_id_controller.check.findings import ERROR, NOTE, WARNING
from contact_id_controller.check.ros2_control import check_ros2_control
from contact_id_controller.control.held_damping import (
    RESERVE,
    largest_damping,
    mobilities,
    postures,
    share_of_stable,
)
from contact_id_controller.new_robot.first_parameters import propose
from contact_id_controller.runs.one_process import controller_settings, mujoco_robot

SETTLES_S = 0.2
SHAKE_RAD_S = 1e-3


def speeds(settings, q, damping, late=False):
    """Of the fastest joint, rad/s, each period after a shake: damped in the air, 10 simulated steps a period.

    late: each velocity comes a period late.
    """
    world = mujoco_robot(settings, 1.0, substeps=10)
    actuated, v = world.robot.actuated, np.zeros(world.robot.nv)
    v[actuated] = SHAKE_RAD_S * np.random.default_rng(1).normal(size=world.robot.na)
    state = before = world.reset(q, v)
    out = []
    for _ in range(round(SETTLES_S / settings.period_s)):
        torques = -damping * (before if late else state).v[actuated]
        before, state = state, world.step(torques)
        out.append(np.abs(state.v[actuated]).max())
    return np.array(out)


@pytest.mark.parametrize(("name", "period_s"), [("quadruped", 0.001), ("solo12", 0.002)])
def test_in_the_worst_posture_joints_come_to_rest_up_to_the_bound_and_tremble_beyond(
    name, period_s
):
    settings = controller_settings(name, period_s=period_s)
    robot = settings.load_robot()
    q = postures(robot)
    W = mobilities(robot, q)
    bound = largest_damping(W, period_s) / RESERVE
    q = q[np.argmax([share_of_stable(each[None], bound, period_s) for each in W])]
    q[2] = 5.0
    for late, part in ((False, 1.0), (True, RESERVE)):
        stable, beyond = (speeds(settings, q, share * part * bound, late) for share in (0.9, 1.25))
        assert stable.max() < 10.0 * SHAKE_RAD_S and stable[-1] < 0.5 * SHAKE_RAD_S
        assert beyond.max() > 100.0 * SHAKE_RAD_S


def found(tmp_path, words, **changes):
    """The line of `contact_id check` about the damping of the quadruped's file with these words."""
    content = yaml.safe_load((CONFIG / "quadruped.yaml").read_text(encoding="utf-8"))
    for name, values in changes.items():
        content[name]["ros__parameters"] |= values
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    (line,) = [each for each in check_file(file) if words in each.text and "held for" in each.text]
    return line


def test_check_judges_the_damping_of_controller_and_watchdog_by_how_long_each_holds_it(tmp_path):
    """What trembles at 500 Hz in MuJoCo (above) is refused there; at 1 kHz little is left."""
    old, words = {"damping_nm_s_rad": [0.05]}, "damping_nm_s_rad, held for"
    assert found(tmp_path, f"command_watchdog.{words} 0.002 s").level == NOTE
    refused = found(tmp_path, f"command_watchdog.{words}", command_watchdog=old)
    assert refused.level == ERROR and "186 % of what is stable" in refused.text
    advised = refused.text.split("[")[1].split("]")[0].split(",")
    values = {"damping_nm_s_rad": [0.95 * float(each) for each in advised]}
    assert found(tmp_path, f"command_watchdog.{words}", command_watchdog=values).level == NOTE
    assert found(tmp_path, f"{words} 0.001 s").level == NOTE
    assert found(tmp_path, f"{words} 0.001 s", controller=old).level == WARNING


def test_check_judges_our_plugin_at_the_rate_of_its_host(tmp_path):
    settings = controller_settings("quadruped", command_interface="robot_side_trajectory")
    robot = settings.load_robot()
    content = yaml.safe_load((CONFIG / "ros2_control" / "quadruped_robot_side.yaml").read_text())
    levels = []
    for rate in (1000, 500, 100):
        content["controller_manager"]["ros__parameters"]["update_rate"] = rate
        file = tmp_path / "ros2_control.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        lines = check_ros2_control(file, robot, settings, robot.joints_of(robot.neutral()))
        (line,) = [each for each in lines if f"nm_s_rad, held for {1 / rate:g} s" in each.text]
        levels.append(line.level)
    assert levels == [NOTE, NOTE, ERROR]


@pytest.mark.parametrize(
    "robot", ["panda_description/urdf/panda.urdf", "g1_description/urdf/g1_29dof_rev_1_0.urdf"]
)
def test_a_new_file_damps_light_joints_less(robot, tmp_path):
    """Forty times the inertia of their own was 90 % of what is stable for the arm, 350 % for the humanoid."""
    file = tmp_path / "new.yaml"
    file.write_text(propose(f"example-robot-data://{robot}").text, encoding="utf-8")
    lines = [each for each in check_file(file) if "nm_s_rad, held for" in each.text]
    assert lines and {each.level for each in lines} == {NOTE}
