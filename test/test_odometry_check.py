"""The base odometry on a log: a planted truth of Pinocchio is found again, and what goes wrong is told."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from recorded_motion import swaying_solo
from robots import SOLO_FEET, point_kinematics

from contact_id_controller import RobotModel
from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG
from contact_id_controller.diagnosis.odometry_check import odometry
from contact_id_controller.diagnosis.odometry_run import Samples, by_heights, run
from contact_id_controller.diagnosis.robot_of_log import robot_of
from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.logs.log import BasePose, Imu, Log
from experiments.benchmark.sensed_walk import readings, sensed_walk

SOLO = "example-robot-data://solo_description/robots/solo12.urdf"
STILL, ROWS, DT = 400, 2000, 1e-3


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(SOLO)


@pytest.fixture(scope="module")
def log(robot):
    """Solo12 stands for .4 s and then sways for 2 s, all feet on the ground, with noise in every channel."""
    random = np.random.default_rng(4)
    motion = {name: values[:ROWS] for name, values in swaying_solo(robot, 2 * ROWS, DT).items()}
    ramp = np.minimum(np.arange(ROWS) / 200.0, 1.0)[:, None]
    q = [motion["q"][0]] * STILL
    v = np.concatenate([np.zeros((STILL, robot.nv)), ramp * motion["v"]])
    for row in v[
        STILL:
    ]:  # the feet stand whatever the speed: velocities are those of the motion, slower at first
        q.append(q[-1])
        J, _ = point_kinematics(robot, q[-1], row, SOLO_FEET)
        row[6:] = -np.linalg.solve(J[:, 6:], J[:, :6] @ row[:6])
        q[-1] = pin.integrate(robot.model, q[-1], DT * row)
    q = np.array(q)
    turns = np.array([pin.Quaternion(*row[[6, 3, 4, 5]]).toRotationMatrix() for row in q])
    speed = np.einsum("nij,nj->ni", turns, v[:, :3])
    force = np.gradient(speed, DT, axis=0) + [0.0, 0.0, 9.81]
    time = DT * np.arange(len(q))
    return Log(
        time=time,
        joints=tuple(robot.joint_names),
        position=robot.joints_of(q) + random.normal(0.0, 1e-5, (len(q), robot.na)),
        velocity=v[:, 6:] + random.normal(0.0, 5e-3, (len(q), robot.na)),
        imu=Imu(
            time,
            v[:, 3:6] + random.normal(0.0, 2e-3, (len(q), 3)),
            np.einsum("nji,nj->ni", turns, force) + random.normal(0.0, 0.05, (len(q), 3)),
        ),
        feet={foot: np.full((len(q), 1), robot.weight / 4.0) for foot in SOLO_FEET},
        base=BasePose(q[:, :3], q[:, 3:7]),
        source="swaying",
    )


def found(log):
    return odometry(Case(log, robot_of(log, SOLO, None)))


def test_a_base_that_sways_on_its_feet_is_found_again(log):
    finding = found(log)
    assert finding.verdict == FINE, str(finding)
    assert finding.text.startswith("never lost") and "over the measured" in finding.text
    assert set(finding.picture.lines) == {"x", "y", "z"}


@pytest.mark.parametrize("unit", [1.0, 37.0, 0.01, -1.0, -20.0])
def test_loads_may_have_any_unit(log, unit):
    feet = {name: unit * values for name, values in log.feet.items()}
    assert found(dataclasses.replace(log, feet=feet)).verdict == FINE


def test_the_lowest_feet_stand_where_nothing_tells_of_contact(log):
    """All four in the log; and a walk, of which two at a time are known to stand."""
    finding = found(dataclasses.replace(log, feet={}))
    assert finding.verdict == FINE and finding.text.startswith("never lost"), str(finding)
    walk = sensed_walk("solo12", 3.0)
    rows = [reading for _, reading in readings(walk, "good")]
    before = len(rows) - len(walk.q)
    samples = Samples(
        DT * np.arange(len(rows)),
        np.array([row.position for row in rows]),
        np.array([row.velocity for row in rows]),
        np.array([row.angular_velocity for row in rows]),
        np.array([row.linear_acceleration for row in rows]),
        DT,
    )
    base = BaseOdometry(walk.robot, walk.feet, walk.radius_m)
    result = run(by_heights(base, samples), samples.time, 4)
    off = result.position[before:] - walk.q[:, :3]
    assert not result.lost and result.ready[before:].all()
    assert np.linalg.norm(off[-1] - off[0]) < 0.025 * walk.distance_m


def test_a_measured_base_elsewhere_is_told(log):
    away = log.base.position + np.linspace(0.0, 0.3, len(log.time))[:, None] * [1.0, 0.0, 0.0]
    finding = found(dataclasses.replace(log, base=BasePose(away, log.base.orientation)))
    assert finding.verdict == WRONG and "drifts by" in finding.text.split(";")[0]


def test_an_imu_that_was_silent_is_told_with_its_time(log):
    kept = (log.time < 1.0) | (log.time > 1.3)
    imu = Imu(log.time[kept], log.imu.angular_velocity[kept], log.imu.acceleration[kept])
    finding = found(dataclasses.replace(log, imu=imu, base=None))
    assert finding.verdict == WRONG and finding.text.startswith("lost once, at 1."), str(finding)
    assert "silent" in finding.text


def test_a_robot_that_never_stands_still_is_found_in_motion(log):
    """From the first second on; its feet stand, its joints are said to move."""
    finding = found(dataclasses.replace(log, velocity=log.velocity + 0.5))
    assert finding.verdict == FINE and finding.text.startswith("never lost"), str(finding)


def test_an_imu_upside_down_cannot_be_told(log):
    imu = dataclasses.replace(log.imu, acceleration=-log.imu.acceleration)
    finding = found(dataclasses.replace(log, imu=imu))
    assert finding.verdict == UNKNOWN and "never starts" in finding.text and finding.change


def test_a_stamp_that_jumps_costs_one_row(log):
    """Of a second's jump all rows up to that time were left out."""
    time = log.time.copy()
    time[1000] += 1.0
    finding = found(dataclasses.replace(log, time=time))
    assert finding.verdict == FINE and finding.text.startswith("never lost"), str(finding)
    assert len(finding.picture.x) == len(time) - 1


def test_an_arm_has_none(log):
    finding = odometry(Case(dataclasses.replace(log, imu=None), None))
    assert finding.verdict == UNKNOWN


def test_efforts_stand_in_for_sensors_of_the_feet(log, robot):
    """Each leg carries a quarter of the weight."""
    efforts = []
    q = robot.neutral()
    for row in log.position:
        robot.put_joints(q, row)
        points, _ = point_kinematics(robot, q, np.zeros(robot.nv), SOLO_FEET)
        ground = points.T @ np.tile([0.0, 0.0, robot.weight / 4.0], 4)
        held = pin.computeGeneralizedGravity(robot.model, robot.data, q)
        efforts.append((held - ground)[robot.actuated])
    finding = found(dataclasses.replace(log, feet={}, effort=np.array(efforts)))
    assert finding.verdict == FINE, str(finding)
