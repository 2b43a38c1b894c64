"""What each sensor's lies do to the estimation pipeline: its line, its reaction, and nothing that is not finite."""

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO12, SOLO_FEET, SOLO_POSTURE
from standing_sensors import UP, StandingSensors

from contact_id_controller import RobotModel
from contact_id_controller.estimation import pipeline
from contact_id_controller.estimation.base_odometry import LOST, RUNNING, BaseOdometry
from contact_id_controller.estimation.force_torque import ForceTorqueSensor
from contact_id_controller.estimation.imu_checks import GOOD
from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings
from contact_id_controller.estimation.period import FOUND
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    UnknownFrameError,
    UnknownJointError,
)

DT, RADIUS_M = 1e-3, 0.016
FRONT_ONLY = np.array([True, True, False, False])


class Run:
    """A pipeline and a robot that stands; every estimate is checked to be finite."""

    def __init__(self, **settings):
        robot = RobotModel.from_urdf(SOLO12)
        self.pipeline = EstimationPipeline(robot, SOLO_FEET, RADIUS_M, PipelineSettings(**settings))
        self.standing = StandingSensors(robot, SOLO_FEET, SOLO_POSTURE, RADIUS_M)
        self.time_s, self.estimate = 0.0, self.pipeline.estimate

    def step(self, late_s=0.0, planned=None, **changes):
        self.time_s += DT
        names = [sensor.name for sensor in self.pipeline.settings.mounted]
        readings = np.array([self.standing.wrenches[name] for name in names]).ravel()
        changes = {"readings": readings, **changes}
        sample = self.standing.sample(**changes)
        self.pipeline.step(self.time_s, imu_time_s=self.time_s - late_s, planned=planned, **sample)
        found = self.estimate.odometry
        for values in (
            found.position,
            found.rotation,
            found.velocity,
            found.pose_covariance,
            found.twist_covariance,
            self.estimate.state.q,
            self.estimate.state.v,
        ):
            assert np.isfinite(values).all()  # fmt: skip
        return self.estimate

    def steps(self, count, **changes):
        """The faults of every step."""
        return [self.step(**changes).faults for _ in range(count)]

    @property
    def words(self):
        return " | ".join(self.estimate.faults)


@pytest.fixture
def run():
    made = Run()
    made.steps(400)
    assert made.estimate.odometry.state == RUNNING and made.estimate.faults == ()
    assert made.estimate.contact.all() and made.estimate.forces_known
    return made


def test_forces_of_a_standing_robot(run):
    np.testing.assert_allclose(run.estimate.world_forces[:, 2], run.standing.forces, rtol=0.1)
    assert np.abs(run.estimate.world_forces[:, :2]).max() < 0.05 * run.standing.robot.weight
    assert set(run.estimate.residuals) == {
        "accelerometer", "angular_acceleration", "joint_acceleration", "joint_effort"
    }  # fmt: skip


def test_a_bias_that_the_odometry_knows_is_not_taken_for_force():
    """Upwards; a sideways one cannot be told from a tilt before the robot walks."""
    run, bias = Run(model_force_noise_n=0.01), 0.15
    run.standing.accel = UP + [0.0, 0.0, bias]
    run.steps(400)
    sums = [run.step().world_forces[:, 2].sum() for _ in range(100)]
    wrong = run.standing.robot.weight / 9.81 * bias
    assert np.mean(sums) == pytest.approx(run.standing.robot.weight, abs=0.2 * wrong)


NAN = np.full(3, np.nan)
BAD_IMU = {
    "silent": ({"gyro": None, "accel": None}, "IMU is silent"),
    "not a number": ({"gyro": NAN}, "IMU is silent"),
    "frozen": ({"gyro": np.array([0.01, 0.0, 0.0]), "accel": UP}, "IMU is frozen"),
    "saturated": ({"accel": np.array([0.0, 0.0, 200.0])}, "IMU is saturated"),
}


@pytest.mark.parametrize("name", BAD_IMU)
def test_without_an_imu_the_pose_is_held(run, name):
    """Named within 50 ms; bridged for 100 ms without forces, then lost; stands again afterwards."""
    changes, words = BAD_IMU[name]
    place = run.estimate.odometry.position.copy()
    said = run.steps(49, planned=FRONT_ONLY, **changes)
    assert any(words in fault for fault in said[-1])
    assert run.estimate.ready and not run.estimate.forces_known
    run.steps(99, planned=FRONT_ONLY, **changes)
    assert run.estimate.odometry.state == LOST
    assert not run.estimate.forces_known
    assert (run.estimate.contact == FRONT_ONLY).all(), "by the plan"
    np.testing.assert_allclose(run.estimate.odometry.position, place, atol=5e-3)
    run.steps(400)
    assert run.estimate.odometry.state == RUNNING and run.estimate.forces_known
    assert run.estimate.faults == ()


def test_an_effort_that_returns_begins_anew(run):
    """The low-pass does not come back from the zero that stood for it."""
    effort = run.standing.effort.copy()
    effort[2] = np.nan
    run.steps(50, effort=effort)
    assert "effort is missing of" in run.words
    run.step(effort=run.standing.effort)
    period = run.pipeline.period
    assert period.smoothed[6 + 12 + 2] == pytest.approx(run.standing.effort[2], rel=1e-12)
    assert run.estimate.faults == () and run.estimate.forces_known


@pytest.mark.parametrize("missing", [[0], [1], [5], [0, 4], [6, 7, 8]])
def test_forces_are_told_without_some_efforts(run, missing):
    """Of one joint, of two legs, of a whole leg: the equation of the base tells the rest."""
    standing, effort = run.standing, run.standing.effort.copy()
    effort[missing] = np.nan
    said = run.steps(100, effort=effort, planned=FRONT_ONLY)
    names = ", ".join(standing.robot.joint_names[joint] for joint in missing)
    assert all(faults == (f"effort is missing of {names}",) for faults in said)
    assert run.estimate.contact.all(), "by the forces, not by the plan"
    forces = run.estimate.world_forces
    np.testing.assert_allclose(forces[:, 2], standing.forces, rtol=0.15)
    assert np.abs(forces[:, :2]).max() < 0.05 * standing.robot.weight
    run.steps(100)
    assert run.estimate.faults == ()
    np.testing.assert_allclose(run.estimate.world_forces[:, 2], standing.forces, rtol=0.1)


@pytest.mark.parametrize(
    ("missing", "untold"),
    [
        (list(range(6)), [0, 1]),  # two legs: opposite forces along the line between the feet
        ([0, 3, 6, 9], [0, 1, 2, 3]),  # all hips of legs side by side
        (list(range(12)), [0, 1, 2, 3]),
    ],
    ids=["two legs", "all hips", "all"],
)
def test_forces_that_cannot_be_told_are_not(run, missing, untold):
    """Those feet are where the plan has them."""
    effort = run.standing.effort.copy()
    effort[missing] = np.nan
    said = run.steps(300, effort=effort, planned=FRONT_ONLY)
    feet = ", ".join(SOLO_FEET[foot] for foot in untold)
    assert all(f"the forces on {feet} are not observable" in faults for faults in said)
    known = np.isfinite(run.estimate.forces).all(axis=1)
    assert (np.flatnonzero(~known) == untold).all() and not run.estimate.forces_known
    np.testing.assert_allclose(
        run.estimate.world_forces[known, 2], run.standing.forces[known], rtol=0.1
    )
    assert run.estimate.odometry.state == RUNNING
    assert (run.estimate.contact == np.where(known, True, FRONT_ONLY)).all()
    run.step(effort=effort)
    assert run.estimate.contact.all(), "without a plan all feet are taken to stand"
    run.steps(100)
    assert run.estimate.forces_known and run.estimate.faults == ()


WRENCHES = (ForceTorqueSensor("FL_FOOT"), ForceTorqueSensor("FR_KFE"), ForceTorqueSensor("HR_HFE"))


def test_wrenches_tell_forces_without_any_effort():
    """Of the legs that have them; the deviation of a foot with a sensor is smaller with efforts too."""
    run, plain = Run(mounted=WRENCHES), Run()
    for each in (run, plain):
        each.steps(400)
        assert each.estimate.faults == ()
    names = {"wrench/FL_FOOT", "wrench/FR_KFE", "wrench/HR_HFE"}
    assert names <= set(run.estimate.residuals) and max(run.estimate.residuals.values()) < 2.0
    better = run.pipeline.estimator.deviations() / plain.pipeline.estimator.deviations()
    assert (better < [0.5, 0.5, 1.0, 0.8]).all() and better[2] > 0.9, "the hip is further away"
    run.steps(200, effort=np.full(12, np.nan))
    assert run.estimate.forces_known and run.estimate.contact.all()
    np.testing.assert_allclose(run.estimate.world_forces[:, 2], run.standing.forces, rtol=0.1)
    assert np.abs(run.estimate.world_forces[:, :2]).max() < 0.1 * run.standing.robot.weight


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_wrench_that_is_missing_is_named_and_done_without(bad):
    run = Run(mounted=WRENCHES)
    run.steps(400)
    wrenches = np.array([run.standing.wrenches[sensor.name] for sensor in WRENCHES])
    wrenches[1, 2] = bad
    said = run.steps(100, readings=wrenches.ravel())
    assert all(faults == ("reading is missing of wrench/FR_KFE",) for faults in said)
    assert run.estimate.forces_known
    np.testing.assert_allclose(run.estimate.world_forces[:, 2], run.standing.forces, rtol=0.1)
    run.steps(100, readings=np.full(18, np.nan))
    assert run.estimate.faults == (
        "reading is missing of wrench/FL_FOOT, wrench/FR_KFE, wrench/HR_HFE",
    )
    np.testing.assert_allclose(run.estimate.world_forces[:, 2], run.standing.forces, rtol=0.1)
    run.steps(100)
    assert run.estimate.faults == ()


def test_a_wrench_that_lies_is_named_within_50_ms():
    run = Run(mounted=WRENCHES)
    run.steps(400)
    wrenches = np.array([run.standing.wrenches[sensor.name] for sensor in WRENCHES])
    wrenches[0, :3] *= 2.0
    said = run.steps(50, readings=wrenches.ravel())
    assert any("wrench/FL_FOOT disagrees with all other sensors" in fault for fault in said[-1])


@pytest.mark.parametrize(
    ("sensor", "error", "words"),
    [
        (
            ForceTorqueSensor("ankle"),
            UnknownJointError,
            "no force/torque sensor at 'ankle': neither",
        ),
        (ForceTorqueSensor("FL_KFE", "nowhere"), UnknownFrameError, "nowhere"),
        (ForceTorqueSensor("FL_FOOT", "FL_KFE"), ConfigurationError, "has no frame 'FL_KFE'"),
    ],
)
def test_wrench_sensors_that_cannot_be_are_refused(sensor, error, words):
    with pytest.raises(error, match=words):
        Run(mounted=(sensor,))


@pytest.mark.parametrize("joint", [1, 8])
def test_an_effort_that_lies_is_named_within_50_ms(run, joint):
    effort = run.standing.effort.copy()
    effort[joint] += 1.5
    said = run.steps(50, effort=effort)
    assert any("disagrees with all other sensors: normalised residual" in f for f in said[-1])
    run.steps(100)
    assert run.estimate.faults == ()


def move_a_foot(standing, speed_m_s):
    """The first foot moves along x for a period, with the joints that does."""
    robot = standing.robot
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], standing.position)
    frame = robot.frame_id(SOLO_FEET[0])
    J = pin.computeFrameJacobian(
        robot.model, robot.model.createData(), q, frame, pin.LOCAL_WORLD_ALIGNED
    )[:3, 6:]
    standing.velocity = np.linalg.lstsq(J, [speed_m_s, 0.0, 0.0], rcond=None)[0]
    standing.position = standing.position + DT * standing.velocity


def test_a_foot_that_slips_is_named_and_not_believed(run):
    """For .2 s, at .3 m/s to and fro."""
    standing, place = run.standing, run.estimate.odometry.position.copy()
    named = set()
    for k in range(200):
        move_a_foot(standing, 0.3 if k < 100 else -0.3)
        named |= {fault for fault in run.step().faults if "slipping" in fault}
    assert named == {f"slipping: {SOLO_FEET[0]}"} and run.estimate.ready
    assert np.linalg.norm(run.estimate.odometry.position - place) < 5e-3
    standing.velocity = np.zeros(12)
    run.steps(200)
    assert run.estimate.faults == ()


def test_a_foot_that_carries_little_does_not_pull_the_base():
    """It creeps at 8 cm/s, too slowly to count as slipping, while it carries a third of its share."""
    run = Run()
    robot = run.standing.robot
    run.standing = StandingSensors(robot, SOLO_FEET, SOLO_POSTURE, RADIUS_M, uneven=4.0)
    run.steps(400)
    assert run.estimate.contact.all() and run.estimate.forces_known
    place = run.estimate.odometry.position.copy()
    for _ in range(150):
        move_a_foot(run.standing, 0.08)
        run.step()
    assert run.estimate.contact.all() and run.estimate.faults == ()
    assert list(run.estimate.odometry.stands) == [False, True, True, False]
    assert np.linalg.norm(run.estimate.odometry.position - place) < 5e-4


def eventful(run):
    """Of each period of a robot whose sensors fail in turn: the filter's arrays, forces, contacts, words."""
    effort, wild = run.standing.effort.copy(), run.standing.position.copy()
    effort[2] = wild[0] = np.nan
    events = [(450, {}), (5, {"gyro": None, "accel": None}), (30, {"planned": FRONT_ONLY})]
    events += [(3, {"position": wild}), (20, {"effort": effort}), (60, {}), (10, {"late_s": 0.005})]
    events += [(60, {}), (100, {"accel": np.zeros(3)}), (2, {"accel": -UP}), (400, {})]
    for count, changes in events:
        for k in range(count):
            if count == 60 and k < 40:
                move_a_foot(run.standing, 0.3)
            if k == 30:
                run.time_s += 0.03  # states that never came
            estimate, arrays = run.step(**changes), run.pipeline.base.arrays
            numbers = arrays.x, arrays.P.ravel(), arrays.record, estimate.forces.ravel()
            yield np.concatenate(numbers), estimate.contact.copy(), estimate.faults


def test_a_period_in_one_call_is_that_step_by_step(monkeypatch):
    """To the last bit, whatever fails: what is done in one call where all is well is done in steps elsewhere."""
    calls, at_once = [], pipeline.go_on
    monkeypatch.setattr(
        pipeline, "go_on", lambda *given: calls.append(at_once(*given)) or calls[-1]
    )
    found = list(eventful(Run()))
    whole = sum(fault == GOOD and forces == FOUND for fault, forces, *_ in calls)
    assert 0.5 * len(found) < whole < len(calls) < len(found)
    monkeypatch.setattr(BaseOdometry, "goes_on", False)
    run = Run()
    calls.clear()  # of what it compiled
    stepwise = list(eventful(run))
    assert not calls and len(stepwise) == len(found)
    for one, other in zip(found, stepwise):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
        assert one[2] == other[2]


def test_a_kidnapped_base_is_found_again(run):
    """Lifted, carried .5 m in .8 s with hanging legs, and put down."""
    standing, start = run.standing, run.estimate.odometry.position.copy()
    robot = standing.robot
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], standing.position)
    hanging = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), q)
    rate, said = np.pi / 0.8, set()
    for k in range(800):
        x = 0.25 * rate**2 * np.cos(rate * k * DT)
        z = 0.05 * (2.0 * rate) ** 2 * np.cos(2.0 * rate * k * DT)
        run.step(accel=UP + [x, 0.0, z], effort=hanging[robot.actuated])
        said |= set(run.estimate.faults)
    assert any("disagrees with all other sensors" in fault for fault in said)
    run.steps(600)
    found = run.estimate.odometry
    assert found.state == RUNNING and run.estimate.faults == ()
    deviation = np.sqrt(np.diag(found.pose_covariance)[:3])
    error = found.position - start - [0.5, 0.0, 0.0]
    assert (np.abs(error) < np.maximum(5.0 * deviation, 0.06)).all()


def test_joints_that_are_not_finite_keep_the_last_ones(run):
    position = run.estimate.position.copy()
    said = run.steps(30, position=np.full(12, np.nan))
    assert any("not finite" in fault for fault in said[0])
    assert np.abs(run.estimate.position - position).max() < 1e-3
    assert not run.estimate.forces_known
    run.steps(100)
    assert run.estimate.forces_known and run.estimate.faults == ()


@pytest.mark.parametrize("step_s", [0.0, -1.0, 0.3, np.nan])
def test_time_that_jumps_is_said(run, step_s):
    """Once it is ignored; time that goes on from there is followed."""
    before = run.time_s
    run.time_s += step_s - DT
    run.step()
    ready, faults = run.estimate.ready, run.estimate.faults
    if step_s:
        assert ready and any("is ignored" in fault for fault in faults)
        assert run.estimate.time_s == pytest.approx(before)
        run.step()
        run.step()
        faults = run.estimate.faults
    if np.isfinite(step_s):
        assert not run.estimate.forces_known
    if (
        step_s == 0.3
    ):  # of a robot that stands still, as soon as no states follow that were read late
        run.step()
        assert any("ms without states are bridged" in fault for fault in run.estimate.faults)
    elif np.isfinite(step_s):
        assert any("time advanced by" in fault for fault in faults)


@pytest.mark.parametrize("off_s", [-1e3, 0.3, 3600.0, np.nan, np.inf])
def test_one_stamp_that_is_wrong_changes_nothing(run, off_s):
    run.steps(20)
    assert run.estimate.ready and run.estimate.faults == ()
    time_s, run.time_s = run.time_s, run.time_s + off_s
    for _ in range(10):  # less than it takes to begin anew
        run.step()
        assert run.estimate.ready
        time_s += DT
        run.time_s = time_s
    run.steps(20)
    assert run.estimate.faults == () and run.estimate.forces_known


def test_garbage_is_never_passed_on():
    rng, run = np.random.default_rng(1), Run(odometry=BaseOdometrySettings(still_time_s=0.05))
    bad = np.array([0.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, -1e5, 30.0])
    for _ in range(15):
        run.steps(100)
        for _ in range(20):
            sizes = {"gyro": 3, "accel": 3, "position": 12, "velocity": 12, "effort": 12}
            changes = {
                name: rng.choice(bad, size) for name, size in sizes.items() if rng.random() < 0.3
            }
            run.step(late_s=rng.choice([0.0, np.nan, 1.0]), planned=rng.random(4) < 0.5, **changes)
    run.steps(500)
    assert run.estimate.odometry.state == RUNNING and run.estimate.forces_known


def test_settings_and_shapes_are_checked(run):
    with pytest.raises(ConfigurationError, match="cutoff_hz is -1.0, must be above 0"):
        PipelineSettings(cutoff_hz=-1.0)
    assert PipelineSettings(cutoff_hz=np.inf).cutoff_hz == np.inf
    with pytest.raises(ConfigurationError, match="planned_off_share is 0.5, must be at most"):
        PipelineSettings(planned_off_share=0.5)
    with pytest.raises(StateError, match=r"effort has shape \(3,\), must be \(12,\)"):
        run.step(effort=np.zeros(3))
