"""An arm with a fixed base by its parameter file alone: it moves freely, then pushes on a table."""

import re

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paths import ROOT

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.limits import EFFORT, LARGEST_MARGIN
from contact_id_controller.exceptions import ConfigurationError, TrajectoryError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.runs.record import merge_records
from contact_id_controller.runs.ros_run import run_nodes
from contact_id_controller.runs.setup import CONTROLLER_RECORD, ROBOT_RECORD, make_setup
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.robot_files import robots
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState

FILES = sorted((ROOT / "config" / "arms").glob("*.yaml"))
FREE_S, SETTLED_S = 4.8, 3.0  # near the table the hand comes down more slowly than planned


def sections(file):
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: body["ros__parameters"] for name, body in content.items()}


def move(file, **changes):
    """Reference and real joint positions (n, na), predicted and real forces (n, 3), torques."""
    values = sections(file)
    chosen = ControllerSettings.from_mapping({**values["controller"], **changes})
    robot = RobotModel.from_urdf(chosen.urdf, chosen.floating_base, list(chosen.joints))
    controller = Controller(robot, chosen)
    radii = chosen.spread("contact_radii_m", len(chosen.contact_frames))
    world = MujocoRobot(
        chosen.urdf,
        [SphereFoot(f, r) for f, r in zip(chosen.contact_frames, radii)],
        joints=chosen.joints,
        floating_base=chosen.floating_base,
        friction=values["simulated_robot"]["friction_coefficient"],
    )
    start = values["simulated_robot"]["initial_joint_positions"]
    state = world.reset(robot.configuration(None, start))
    controller.reset(state)
    motion = joint_motion(values["joint_motion"], robot.joint_names)
    controller.follow(Plan(motion), state.time_s)
    rows = []
    for _ in range(round((motion.times_s[-1] + SETTLED_S) / chosen.period_s)):
        result = controller.step(state)
        assert result.status == "solved"
        # The gripper is closed: its fingers rest at the end of their range.
        assert not (result.limits & EFFORT).any()
        before, state = state, world.step(result.torques)
        rows.append(
            (
                result.reference.position.copy(),
                before.q[robot.q_index],
                result.forces[0],
                world.contact_forces()[0],
                result.torques,
            )
        )
    return [np.array(column) for column in zip(*rows)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_arm_follows_freely_and_pushes_as_commanded(file):
    reference, position, predicted, real, _ = move(file)
    free = slice(0, round(FREE_S / 1e-3))
    assert not real[free].any()
    assert np.ptp(reference[free], axis=0).max() > 0.3
    robot = RobotModel.from_urdf(sections(file)["controller"]["urdf"], floating_base=False)
    # A gripper that closes is slowed down by the soft stop at the end of its range.
    inner = reference.min(axis=0) > robot.lower + LARGEST_MARGIN * (robot.upper - robot.lower)
    assert np.count_nonzero(inner) >= 7
    error = np.abs(reference - position)[free]
    assert error[:, ~inner].max(initial=0.0) < 5e-3
    error = error[:, inner]
    assert error.mean() < 1e-4 and error.max() < 1e-3
    (wanted,) = sections(file)["controller"]["least_normal_force_n"]
    pushing = real[-round(SETTLED_S / 1e-3 / 2) :]
    np.testing.assert_allclose(pushing[:, 2], wanted, rtol=1e-3)
    assert np.abs(pushing[:, :2]).max() < 1e-3 * wanted
    np.testing.assert_allclose(predicted[-1], real[-1], atol=1e-3 * wanted)
    # It is laid on the table, not thrown.
    assert real[:, 2].max() < 3.0 * wanted


@pytest.mark.parametrize(
    "friction, solver", [("coulomb", "lcp"), ("no_slip", "qp"), ("coulomb", "qcqp")]
)
def test_other_models_push_at_least_as_much(friction, solver):
    changes = {"friction": friction, "solver": solver, "least_normal_force_n": [55.0]}
    _, _, predicted, real, _ = move(FILES[0], **changes)
    assert real[-200:, 2].min() > 0.999 * 55.0
    np.testing.assert_allclose(predicted[-1], real[-1], atol=0.1)


def test_leaning_on_the_table_spares_torque_and_is_predicted():
    arm = FILES[0]
    *_, only = move(arm, least_normal_force_n=[0.0])
    _, _, predicted, real, leaning = move(
        arm, least_normal_force_n=[0.0], distribution="least_torque"
    )
    assert real[-1, 2] > 10.0
    np.testing.assert_allclose(predicted[-1], real[-1], rtol=1e-3, atol=1e-3)
    assert np.linalg.norm(leaning[-1]) < 0.9 * np.linalg.norm(only[-1])


def test_no_room_below_the_experiments_names_a_robot():
    names = [*robots(), *(file.stem for file in FILES)]
    for folder in (
        "control",
        "models",
        "planning",
        "simulation",
        "ros",
        "lcp",
        "projected",
        "geometry",
    ):
        for file in (ROOT / "contact_id_controller" / folder).glob("*.py"):
            code = re.sub(r'""".*?"""|#.*', "", file.read_text(encoding="utf-8"), flags=re.S)
            found = [n for n in names if n != "quadruped" and re.search(n, code, flags=re.I)]
            assert not found, f"{file} names {found}"


def test_arm_moves_over_ros_topics(tmp_path):
    rows = np.reshape(sections(FILES[0])["joint_motion"]["positions"], (6, -1))
    short = ", ".join(str(value) for value in rows[[0, 4, 5]].ravel())
    setup = make_setup(
        tmp_path,
        robot=FILES[0].stem,
        config=FILES[0],
        duration_s=4.0,
        changes=["joint_motion.times_s=[0.2, 0.9, 1.5]", f"joint_motion.positions=[{short}]"],
    )
    assert setup.nodes == ("controller", "simulated_robot")
    run_nodes(setup, tmp_path)
    walk = merge_records(
        tmp_path / CONTROLLER_RECORD, tmp_path / ROBOT_RECORD, setup.settings.period_s
    )
    assert not walk.fell and walk.duration_s == pytest.approx(4.0, abs=0.01)
    assert np.ptp(walk.reference_position, axis=0).max() > 0.3
    assert np.abs(walk.reference_position - walk.position)[:650].max() < 1e-3
    (wanted,) = setup.settings.least_normal_force_n
    np.testing.assert_allclose(walk.simulated_forces[-100:, 0, 2], wanted, rtol=1e-3)


# The motion


@settings(max_examples=60, deadline=None)
@given(
    arrays(float, (5, 2), elements=st.floats(-2.0, 2.0)),
    st.lists(st.floats(0.05, 3.0), min_size=5, max_size=5),
)
def test_motion_passes_its_points_and_stays_between_them(points, steps):
    times = np.cumsum(steps)
    motion = joint_motion(
        {"times_s": times.tolist(), "positions": points.ravel().tolist()}, ["a", "b"]
    )
    motion.start_s = 1.0
    for k, time_s in enumerate(times[:-1]):
        place = motion.sample(1.0 + time_s + 1e-9).position
        np.testing.assert_allclose(place, points[k], atol=1e-6)
        low, high = np.sort(points[k : k + 2], axis=0)
        for part in np.linspace(0.0, 1.0, 9):
            place = motion.sample(1.0 + time_s + part * steps[k + 1]).position
            assert np.all(place >= low - 1e-7) and np.all(place <= high + 1e-7)
    assert not motion.velocities[0].any() and not motion.velocities[-1].any()


@pytest.mark.parametrize(
    "values, message",
    [
        ({}, "has nothing"),
        ({"times_s": [0.0], "positions": [1.0], "speed": 1}, "has times_s"),
        ({"times_s": [0.0, 1.0], "positions": [1.0]}, "2 rows of 1"),
        ({"times_s": ["x"], "positions": [1.0]}, "no number"),
        ({"times_s": 1.0, "positions": [1.0]}, "rows of 1"),
    ],
)
def test_wrong_motion_is_refused(values, message):
    with pytest.raises(ConfigurationError, match=message):
        joint_motion(values, ["a"])


def test_times_must_increase():
    with pytest.raises(TrajectoryError, match="must increase"):
        joint_motion({"times_s": [1.0, 1.0], "positions": [0.0, 1.0]}, ["a"])


def test_a_motion_of_the_base_is_refused_where_the_base_is_fixed():
    """It was followed without a word, and moved nothing."""
    chosen = ControllerSettings.from_mapping(sections(FILES[0])["controller"])
    robot = chosen.robot()
    controller = Controller(robot, chosen)
    controller.reset(RobotState(0.0, np.zeros(robot.nq), np.zeros(robot.nv)))
    still = np.zeros((2, 3))
    base = BaseTrajectory([0.0, 1.0], still, [[0.0, 0.0, 0.0, 1.0]] * 2, still, still)
    with pytest.raises(TrajectoryError, match="a plan of the base .* the robot's base is fixed"):
        controller.follow(controller.prepare(Plan(base=base)), 0.0)


def test_a_file_has_a_planner_or_a_motion(tmp_path):
    content = yaml.safe_load(FILES[0].read_text(encoding="utf-8"))
    del content["joint_motion"]
    file = tmp_path / "arm.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="must have one of the sections 'gait_planner'"):
        make_setup(tmp_path, robot="arm", config=file)
