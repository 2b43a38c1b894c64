"""Sensors of the simulated robot: ideal ones against Pinocchio, their faults by statistics."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED, SOLO12, SOLO_FEET, SOLO_POSTURE

from contact_id_controller.estimation.force_torque import ForceTorqueSensor
from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    UnknownFrameError,
    UnknownJointError,
)
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot, build_sensors
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.simulation.sensor_noise import (
    PRESETS,
    NoisySensors,
    SensorNoise,
    SimulatedSensors,
    preset,
)
from experiments.rigid.rigid_robot import RigidRobot

RADIUS_M = 0.016


def solo(**changes):
    feet = [SphereFoot(frame, RADIUS_M) for frame in SOLO_FEET]
    world = MujocoRobot(SOLO12, feet, **changes)
    start = world.robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE)
    world.reset(world.place_on_ground(start))
    return world


def frame_motion(robot, state, frame):
    """World rotation, velocity and angular velocity of a frame, by Pinocchio; "": the base."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, state.q, state.v)
    if not frame:
        return data.oMi[1].rotation, data.oMi[1].act(data.v[1]), data.oMi[1].translation
    number = robot.frame_id(frame)
    placement = pin.updateFramePlacement(robot.model, data, number)
    motion = pin.getFrameVelocity(robot.model, data, number, pin.WORLD)
    return placement.rotation, motion, placement.translation


@pytest.mark.parametrize("frame, tolerance", [("", 1e-9), ("FL_UPPER_LEG", 2e-2)])
@pytest.mark.parametrize("substeps", [1, 4])
def test_imu_is_the_motion_of_its_frame(frame, tolerance, substeps):
    """Gyroscope at the end of the period, accelerometer by finite differences over it.

    MuJoCo's acceleration is that of the step's begin, exact for the base, to first order elsewhere.
    """
    world = solo(imu_frame=frame, substeps=substeps)
    if frame:
        world = solo(imu_frame=frame, substeps=40)
    rng, before, dt = np.random.default_rng(0), world.state(), world.period_s
    for k in range(60):
        torque = 0.5 * np.sin(0.2 * k + np.arange(12)) + 0.05 * rng.normal(size=12)
        after = world.step(torque)
        gyro, felt = world.imu()
        axes, motion, at = frame_motion(world.robot, after, frame)
        np.testing.assert_allclose(gyro, axes.T @ motion.angular, atol=1e-9)
        old, was, place = frame_motion(world.robot, before, frame)
        velocity = motion.linear + np.cross(motion.angular, at)
        change = velocity - was.linear - np.cross(was.angular, place)
        expected = change / dt - world.robot.model.gravity.linear
        # In axes between those of begin and end.
        error = np.linalg.norm((old if substeps == 1 else 0.5 * (old + axes)).T @ expected - felt)
        turning = 0.5 * dt * np.linalg.norm(motion.angular) * (substeps > 1 or bool(frame))
        assert error <= (tolerance + turning) * max(10.0, np.linalg.norm(expected))
        before = after


def test_imu_at_rest_feels_gravity_in_its_axes():
    world = solo(imu_frame="FL_UPPER_LEG")
    gyro, felt = world.imu()
    axes, *_ = frame_motion(world.robot, world.state(), "FL_UPPER_LEG")
    np.testing.assert_allclose(felt, axes.T @ [0.0, 0.0, 9.81], atol=1e-9)
    np.testing.assert_allclose(gyro, 0.0, atol=1e-12)
    assert not np.allclose(axes, np.eye(3))


def test_sensors_change_nothing():
    plain, sensed = solo(), solo(imu_frame="", wrench_sensors=["FL_KFE", "FL_FOOT"])
    for k in range(50):
        torque = 0.3 * np.sin(0.3 * k + np.arange(12))
        expected, state = plain.step(torque), sensed.step(torque)
        sensed.imu(), sensed.wrenches()
        np.testing.assert_array_equal(state.q, expected.q)
        np.testing.assert_array_equal(sensed.applied_torques(), torque)


def test_wrench_sensor_is_pinocchio_s_joint_wrench():
    """Newton-Euler with the ground's forces outside; the last period's motion by differences."""
    names = ("FL_HFE", "HR_KFE", "FR_FOOT")
    world = solo(wrench_sensors=names)
    robot, model = world.robot, world.robot.model
    data = model.createData()
    for k in range(13):
        before = world.state()
        after = world.step(0.1 * np.sin(0.2 * k + np.arange(12)))
    acceleration = (after.v - before.v) / world.period_s
    # The base's velocity has the axes of its own instant.
    turned = pin.Quaternion(before.q[3:7]).matrix().T @ pin.Quaternion(after.q[3:7]).matrix()
    acceleration[:3] = (turned @ after.v[:3] - before.v[:3]) / world.period_s - np.cross(
        before.v[3:6], before.v[:3]
    )
    pin.framesForwardKinematics(model, data, before.q)
    outside, contact = pin.StdVec_Force(), np.zeros((model.njoints, 6))
    for frame, force in zip(SOLO_FEET, world.contact_forces()):
        number = robot.frame_id(frame)
        point = data.oMf[number].translation - [0.0, 0.0, RADIUS_M]
        wrench = pin.Force(force, np.cross(point, force))
        joint = model.frames[number].parentJoint
        contact[joint] = data.oMi[joint].actInv(wrench).vector
    for wrench in contact:
        outside.append(pin.Force(wrench))
    pin.rnea(model, data, before.q, before.v, acceleration, outside)
    found = world.wrenches()
    assert np.abs(world.contact_forces()[1, 2]) > 1.0
    for name, wrench in zip(names[:2], found):
        expected = data.f[model.getJointId(name)].vector
        np.testing.assert_allclose(wrench, expected, atol=1e-9)
    foot = data.oMf[robot.frame_id("FR_FOOT")]
    expected = foot.rotation.T @ world.contact_forces()[1]
    np.testing.assert_allclose(found[2, :3], expected, atol=1e-2)
    lever = foot.rotation.T @ np.array([0.0, 0.0, -RADIUS_M])
    np.testing.assert_allclose(found[2, 3:], np.cross(lever, expected), atol=1e-3)


def test_frames_and_joints_of_sensors_are_checked():
    with pytest.raises(UnknownFrameError, match="'imu_link'"):
        solo(imu_frame="imu_link")
    with pytest.raises(UnknownJointError, match="'FL_ANKLE'.*'FL_HAA'"):
        solo(wrench_sensors=["FL_ANKLE"])
    with pytest.raises(ConfigurationError, match="no IMU: give it an imu_frame"):
        solo().imu()


# What is wrong with sensors


def many(noise, n=4000, seed=0, velocity=0.0, effort=1.0):
    """n readings of one truth: (n, 3 + 3 + 2 + 2 + 2 + 6)."""
    noise = preset(noise) if isinstance(noise, str) else noise
    cell = ForceTorqueSensor("joint").white_noise(noise)
    sensors = NoisySensors(noise, 2, 1e-3, mounted=cell, seed=seed)
    truth = (np.ones(3), np.full(3, 9.81), np.full(2, 0.5), np.full(2, velocity))
    rows = []
    for k in range(n):
        reading = sensors.read(1e-3 * k, *truth, np.full(2, effort), np.ones(6))
        rows.append(np.concatenate([np.ravel(part) for part in reading[1:]]))
    return np.array(rows)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_as_noisy_as_they_say(name):
    noise, rows = PRESETS[name], many(name)
    deviations = np.repeat(
        [
            noise.gyroscope_noise_rad_s,
            noise.accelerometer_noise_m_s2,
            np.hypot(noise.position_noise_rad, noise.position_step_rad / np.sqrt(12.0)),
            noise.velocity_noise_rad_s,
            noise.effort_noise_nm,
            noise.force_noise_n,
            noise.moment_noise_nm,
        ],
        [3, 3, 2, 2, 2, 3, 3],
    )
    np.testing.assert_allclose(rows.std(axis=0), deviations, rtol=0.06, atol=1e-12)


def test_presets_are_those_of_the_measurements():
    """sparse_dynamics.md, section 7: good A, motor currents B."""
    good, currents, cheap = (preset(name) for name in ("good", "motor_currents", "cheap"))
    assert dataclasses.astuple(preset("perfect")) == (0.0,) * len(dataclasses.fields(SensorNoise))
    assert (good.gyroscope_noise_rad_s, good.accelerometer_noise_m_s2) == (0.005, 0.05)
    assert (good.gyroscope_bias_rad_s, good.accelerometer_bias_m_s2) == (0.002, 0.02)
    assert (good.position_noise_rad, good.velocity_noise_rad_s) == (1e-4, 0.02)
    assert good.effort_noise_nm == 0.01
    assert (currents.effort_gain_error, currents.effort_friction_nm) == (0.03, 0.02)
    assert (currents.effort_noise_nm, currents.velocity_noise_rad_s) == (0.02, 0.05)
    assert (cheap.gyroscope_noise_rad_s, cheap.accelerometer_noise_m_s2) == (0.02, 0.2)
    assert (cheap.gyroscope_bias_rad_s, cheap.accelerometer_bias_m_s2) == (0.01, 0.1)
    assert cheap.position_step_rad > good.position_step_rad == 0.0


def test_biases_and_gains_are_constants_of_the_sensor():
    noise = SensorNoise(
        gyroscope_bias_rad_s=0.1, accelerometer_bias_m_s2=1.0, effort_gain_error=0.1
    )
    means = np.array([many(noise, n=3, seed=seed)[-1] for seed in range(300)])
    np.testing.assert_allclose((means - means.mean(axis=0)).std(axis=0)[:3], 0.1, rtol=0.15)
    np.testing.assert_allclose((means - means.mean(axis=0)).std(axis=0)[3:6], 1.0, rtol=0.15)
    np.testing.assert_allclose(means.std(axis=0)[10:12], 0.1, rtol=0.15)
    rows = many(noise, n=50)
    assert (rows == rows[0]).all() and not np.allclose(rows[0, :3], 1.0)


def test_the_seed_decides():
    np.testing.assert_array_equal(many("cheap", 5, seed=3), many("cheap", 5, seed=3))
    assert not np.allclose(many("cheap", 5, seed=3), many("cheap", 5, seed=4))


def test_friction_is_in_the_effort_and_against_no_standing_joint():
    noise = SensorNoise(effort_friction_nm=0.2)
    for velocity, effort in ((2.0, 1.2), (-2.0, 0.8), (0.0, 1.0)):
        np.testing.assert_allclose(many(noise, 1, velocity=velocity)[0, 10:12], effort, atol=1e-9)


def test_encoders_have_steps_and_readings_a_delay():
    rows = many(SensorNoise(position_step_rad=0.3), 2)
    np.testing.assert_allclose(rows[:, 6:8], 0.6)
    sensors = NoisySensors(SensorNoise(sensor_delay_s=0.003), 1, 1e-3)
    stamps = []
    for k in range(6):
        reading = sensors.read(1e-3 * k, np.zeros(3), np.zeros(3), [k], [0.0], [0.0])
        stamps.append((reading.time_s, reading.position[0]))
    np.testing.assert_allclose(stamps, [(0, 0)] * 4 + [(0.001, 1), (0.002, 2)])


def test_bad_noise_is_refused():
    with pytest.raises(ConfigurationError, match="gyroscope_noise_rad_s is -1"):
        SensorNoise(gyroscope_noise_rad_s=-1)
    with pytest.raises(ConfigurationError, match="'best', must be one of 'cheap', 'good'"):
        preset("best")
    with pytest.raises(ConfigurationError, match="period_s is 0"):
        NoisySensors("good", 1, 0.0)
    with pytest.raises(StateError, match=r"position has shape \(2,\), must have 1 values"):
        NoisySensors("good", 1, 1.0).read(0.0, [0] * 3, [0] * 3, [0, 0], [0], [0])


# From settings


def settings(**changes):
    frames = [f"{leg}_FOOT" for leg in ("LF", "RF", "LH", "RH")]
    return SimulatedRobotSettings.from_mapping(
        {"urdf": QUADRUPED, "contact_frames": frames, **changes}
    )


def test_sensors_are_those_of_the_preset():
    values = settings(sensors="cheap")
    assert build_sensors(build_robot(values), values).noisy.noise == PRESETS["cheap"]


def test_perfect_sensors_read_the_truth():
    values = settings(mounted_sensors=["force_torque LF_KFE"])
    world = build_robot(values)
    sensors = build_sensors(world, values)
    state = world.step(np.full(12, 0.1))
    reading = sensors.read(state)
    assert reading.time_s == state.time_s
    np.testing.assert_array_equal(reading.position, state.q[world.robot.q_index])
    np.testing.assert_array_equal(reading.velocity, state.v[world.robot.actuated])
    np.testing.assert_array_equal(reading.effort, np.full(12, 0.1))
    np.testing.assert_array_equal(reading.mounted, world.wrenches()[0])
    np.testing.assert_allclose(reading.angular_velocity, state.v[3:6], atol=1e-12)


def test_a_robot_without_an_imu_has_readings_without_one():
    world = RigidRobot(SOLO12, [SphereFoot(frame, RADIUS_M) for frame in SOLO_FEET])
    reading = SimulatedSensors(world, "good").read(world.state())
    assert np.isnan(reading.angular_velocity).all() and np.isfinite(reading.position).all()
