"""Odometry of a base: judged by MuJoCo's truth on walks, and by plain numpy step by step."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg
from robots import SOLO12, SOLO_FEET, SOLO_POSTURE

from contact_id_controller import RobotModel
from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.base_estimate import (
    COASTING,
    LOST,
    RUNNING,
    STARTING,
    quaternion,
)
from contact_id_controller.estimation.base_odometry import BaseOdometry, BaseOdometrySettings
from contact_id_controller.estimation.odometry_arrays import advance
from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    UnknownFrameError,
    UnknownJointError,
)
from experiments.benchmark.sensed_walk import readings, sensed_walk

RADIUS_M = 0.016
DT = 1e-3
UP = np.array([0.0, 0.0, 9.81])


@pytest.fixture(scope="module", params=[("solo12", 30.0), ("quadruped", 15.0)], ids=lambda p: p[0])
def walk(request):
    return sensed_walk(*request.param)


@pytest.fixture(scope="module")
def short_walk():
    return sensed_walk("solo12", 3.0)


def odometry_of(walk, **settings):
    return BaseOdometry(walk.robot, walk.feet, walk.radius_m, BaseOdometrySettings(**settings))


class Run:
    """Odometry on a walk: position, rotation, velocity in the world, states and reasons of each row."""

    def __init__(self, walk, noise="good", seed=0, change=None, odometry=None, **settings):
        self.walk = walk
        self.odometry = odometry or odometry_of(walk, **settings)
        position, rotation, velocity, self.states, self.reasons = [], [], [], [], []
        for k, reading in readings(walk, noise, seed):
            inputs = {
                "dt": walk.period_s,
                "gyro": reading.angular_velocity,
                "accel": reading.linear_acceleration,
                "q_joints": reading.position,
                "v_joints": reading.velocity,
                "contacts": walk.stands[max(k, 0)],
            }
            if change is not None:
                change(k * walk.period_s, inputs)
            estimate = self.odometry.step(**inputs)
            finite_estimate(estimate)
            if k >= 0:
                position.append(estimate.position.copy())
                rotation.append(estimate.rotation.copy())
                velocity.append(estimate.rotation @ estimate.velocity)
                self.states.append(estimate.state)
                self.reasons.append(estimate.reasons)
        self.position, self.rotation = np.array(position), np.array(rotation)
        self.velocity = np.array(velocity)

    @property
    def errors(self):
        """(n, 3) m, of what was walked since the first row."""
        truth = self.walk.q[:, :3]
        return (self.position - self.position[0]) - (truth - truth[0])

    @property
    def drift(self):
        return np.linalg.norm(self.errors[-1]) / self.walk.distance_m

    @property
    def velocity_rms(self):
        truth = np.einsum("kij,kj->ki", self.walk.rotations, self.walk.v[:, :3])
        turned = np.einsum("kij,klj,kl->ki", self.walk.rotations, self.rotation, self.velocity)
        return np.sqrt(((turned - truth) ** 2).sum(axis=1).mean())


def finite_estimate(estimate):
    for values in (estimate.position, estimate.rotation, estimate.velocity):
        assert np.isfinite(values).all()
    assert np.isfinite(estimate.angular_velocity).all()
    assert abs(np.linalg.det(estimate.rotation) - 1.0) < 1e-9


# Against the truth


def test_walks_drift_little(walk):
    """Acceptance: at most 2.5 % of the distance and 1 cm/s with the good IMU, over 30 s and 15 s."""
    run = Run(walk)
    assert walk.distance_m > 2.5 and set(run.states) == {RUNNING}
    assert run.drift <= 0.025
    assert run.velocity_rms <= 0.01
    tilt = np.einsum("kji,jl->kil", run.rotation, np.eye(3))[:, :, 2]
    truth = walk.rotations[:, 2]
    assert np.degrees(np.abs(np.cross(tilt, truth)).max()) < 0.5
    # The covariance is not overconfident, nor useless.
    estimate = run.odometry.estimate
    deviation = np.sqrt(np.diag(estimate.pose_covariance))
    assert (np.abs(run.errors[-1]) < 4.0 * deviation[:3]).all()
    assert (deviation[:3] < 0.05 * walk.distance_m).all()


def test_rolling_feet_ignored_make_the_walk_too_short(walk):
    """The same test fails without the compensation, in 10 s already."""
    run = Run(walk.cut(10_000), compensate_rolling=False)
    assert run.drift > 0.025
    assert run.velocity_rms > 0.01


def test_motor_currents_and_cheap_sensors_do_not_lose_the_base(short_walk):
    for noise, drift, velocity in (("perfect", 0.01, 0.002), ("cheap", 0.025, 0.01)):
        run = Run(short_walk, noise)
        assert set(run.states) == {RUNNING}
        assert run.drift <= drift and run.velocity_rms <= velocity


@pytest.mark.parametrize("feet", [1, 2, 3])
def test_any_number_of_feet(short_walk, feet):
    """Fewer feet than the robot has: it coasts on its IMU while they are in the air."""
    walk = short_walk._replace(feet=short_walk.feet[:feet], stands=short_walk.stands[:, :feet])
    run = Run(walk)
    assert run.odometry._P.shape == (15 + 3 * feet,) * 2
    assert np.linalg.norm(run.errors[-1]) < 0.03


def test_probabilities_are_contacts(short_walk):
    def doubt(_, inputs):
        inputs["contacts"] = 0.1 + 0.8 * inputs["contacts"]

    def never(_, inputs):
        inputs["contacts"] = np.full(4, 0.4)

    assert Run(short_walk, change=doubt).drift < 0.025
    assert LOST in Run(short_walk, change=never).states


# Against plain numpy


def solo(**settings):
    robot = RobotModel.from_urdf(SOLO12)
    return BaseOdometry(robot, SOLO_FEET, RADIUS_M, BaseOdometrySettings(**settings))


def predicted(s, R, vel, p, feet, P, dt, w, a, walk):
    """R, vel, p and P after a period with rate w and acceleration a, in plain numpy.

    walk: densities of the noise of feet and soles, which are the coordinates from 15 on, three each.
    """
    n, gravity = len(P), np.array([0.0, 0.0, -s.gravity_m_s2])
    A, G = np.zeros((n, n)), np.zeros((n, 3))
    A[3:6, :3], A[6:9, 3:6] = pin.skew(gravity), np.eye(3)
    G[:9] = np.vstack([R, pin.skew(vel) @ R, pin.skew(p) @ R])
    for i, foot in enumerate(feet):
        G[15 + 3 * i : 18 + 3 * i] = pin.skew(foot) @ R
    A[:, 9:12], A[3:6, 12:15] = -G, -R
    Phi = np.eye(n) + A * dt + A @ A * dt**2 / 2.0
    steady = [0.0, s.accelerometer_noise, 0.0, 0.0, s.accelerometer_bias_walk]
    Q = s.gyroscope_noise**2 * G @ G.T + np.diag(np.repeat([*steady, *walk], 3) ** 2)
    level = np.eye(3) - (1.0 - filtering.VERTICAL_SHARE) * np.outer(R[2], R[2])
    Q[9:12, 9:12] += s.gyroscope_bias_walk**2 * level
    felt = R @ a + gravity
    p, vel = p + vel * dt + felt * dt**2 / 2.0, vel + felt * dt
    return R @ pin.exp3(w * dt), vel, p, Phi @ P @ Phi.T + Q * dt


def dense_step(odometry, state, P, does, since_s, inputs):
    """One step in plain numpy and Pinocchio, all feet at once; the same arguments."""
    s, robot = odometry.settings, odometry.robot
    dt, w, a, q, v, contacts = inputs
    R, vel, p, bg, ba, feet = state
    w, a, F = w - bg, a - ba, len(feet)
    full_q = robot.configuration([0, 0, 0, 0, 0, 0, 1], q)
    full_v = robot.velocity(np.concatenate([np.zeros(3), w]), v)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, full_q, full_v)
    pin.updateFramePlacements(robot.model, data)
    ids = [robot.frame_id(name) for name in odometry.feet]
    h = np.array([data.oMf[i].translation for i in ids])
    spins = [
        pin.getFrameVelocity(robot.model, data, i, pin.LOCAL_WORLD_ALIGNED).angular for i in ids
    ]
    n = 15 + 3 * F
    R, vel, p, P = predicted(s, R, vel, p, feet, P, dt, w, a, [s.foot_walk] * F)
    feet = np.array(feet)
    stands = np.array(does) == filtering.STANDS
    old, new = np.flatnonzero(contacts & stands), np.flatnonzero(contacts & ~stands)
    for i in old:
        feet[i] += dt * np.cross(R @ spins[i], [0.0, 0.0, RADIUS_M])
    H, z = np.zeros((3 * len(old), n)), np.zeros(3 * len(old))
    for row, i in enumerate(old):
        H[3 * row : 3 * row + 3, 6:9] = -np.eye(3)
        H[3 * row : 3 * row + 3, 15 + 3 * i : 18 + 3 * i] = np.eye(3)
        z[3 * row : 3 * row + 3] = R @ h[i] - (feet[i] - p)
    noise = s.foot_position_noise_m**2
    shares = np.maximum(filtering.SHORT_S / (dt + stands * since_s), 1.0) ** 2
    N = noise * np.diag(np.repeat(shares[old], 3))
    K = P @ H.T @ np.linalg.inv(H @ P @ H.T + N)
    dx, P = K @ z, (np.eye(n) - K @ H) @ P
    algebra = np.zeros((5 + F, 5 + F))  # the group SE_{2+F}(3), by its matrix exponential
    algebra[:3, :3] = pin.skew(dx[:3])
    algebra[:3, 3:] = np.vstack([dx[3:9].reshape(2, 3), dx[15:].reshape(F, 3)]).T
    X = np.eye(5 + F)
    X[:3, :3], X[:3, 3], X[:3, 4], X[:3, 5:] = R, vel, p, feet.T
    X = scipy.linalg.expm(algebra) @ X
    R, vel, p, feet = X[:3, :3], X[:3, 3], X[:3, 4], X[:3, 5:].T.copy()
    for i in new:
        at = slice(15 + 3 * i, 18 + 3 * i)
        feet[i] = p + R @ h[i]
        P[at, :] = P[6:9, :]
        P[:, at] = P[:, 6:9]
        P[at, at] = P[6:9, 6:9] + noise * shares[i] * np.eye(3)
    return (R, vel, p, bg + dx[9:12], ba + dx[12:15], feet), P


@pytest.mark.parametrize("seed", range(8))
def test_a_step_is_that_of_plain_numpy(seed):
    """Random states and errors; feet that stand, touch down, lift off and stay away."""
    rng = np.random.default_rng(seed)
    odometry = solo(gate=1e12, slip_speed_m_s=1e9, gyroscope_noise=0.03, foot_walk=0.1)
    R = pin.exp3(rng.normal(size=3))
    q, v = SOLO_POSTURE + 0.2 * rng.normal(size=12), rng.normal(size=12)
    state = (
        R, rng.normal(size=3), rng.normal(size=3), 0.1 * rng.normal(size=3),
        rng.normal(size=3), rng.normal(size=(4, 3)),
    )  # fmt: skip
    L = rng.normal(size=(27, 27))
    P = 1e-4 * (L @ L.T)
    contacts = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]][seed % 4], bool)
    does = [filtering.STANDS, filtering.AIR, filtering.AIR, filtering.STANDS]
    inputs = (2e-3, rng.normal(size=3), UP + rng.normal(size=3), q, v, contacts)
    since_s = rng.choice([0.0, 0.01, 0.5], 4)
    expected, covariance = dense_step(odometry, state, P, does, since_s, inputs)

    odometry._x[:] = np.concatenate([np.ravel(part) for part in state])
    odometry._P[:] = P
    odometry._feet[:, filtering.DOES], odometry._feet[:, filtering.SINCE] = does, since_s
    odometry.estimate.state = RUNNING
    odometry.take(*inputs[:5])
    odometry._contacts[:] = contacts
    advance(odometry.arrays)
    x = odometry._x
    # Nobody knows of a foot in the air: what its place says is not used.
    used = np.flatnonzero(np.concatenate([np.ones(15, bool), np.repeat(contacts, 3)]))
    np.testing.assert_allclose(
        odometry._P[np.ix_(used, used)], covariance[np.ix_(used, used)], atol=1e-12
    )
    places = x[21:].reshape(4, 3)[contacts]
    found = (x[:9].reshape(3, 3), x[9:12], x[12:15], x[15:18], x[18:21], places)
    for mine, theirs in zip(found, (*expected[:5], expected[5][contacts])):
        np.testing.assert_allclose(mine, theirs, atol=1e-10)


def test_a_force_that_changed_between_two_samples_makes_the_velocity_doubtful():
    """By the variance of a step at a time that nobody knows, dt^2 |change|^2 / 12, a third of it along each axis."""
    grown = []
    for change in (0.0, 30.0):
        odometry = solo()
        Standing(odometry, noise=1e-9).steps(400)
        odometry.take(1.5 * DT, np.zeros(3), UP + [change, 0.0, 0.0], SOLO_POSTURE, np.zeros(12))
        odometry._contacts[:] = 0.0
        advance(odometry.arrays)
        grown.append(np.diag(odometry._P)[3:6].copy())
    np.testing.assert_allclose(grown[1] - grown[0], (1.5 * DT) ** 2 * 30.0**2 / 36.0, rtol=1e-6)


def test_samples_that_repeat_tell_nothing_of_their_time():
    """A log that is faster than its IMU: after two periods without a new sample the change is one of all three."""
    grown = []
    for change in (0.0, 30.0):
        odometry = solo()
        Standing(odometry, noise=1e-9).steps(400)
        for felt in (1e-9, 1e-9, 1e-9, change):
            accel = UP + [felt, 0.0, 0.0]
            odometry.take(DT, np.zeros(3), accel, SOLO_POSTURE, np.zeros(12))
            odometry._contacts[:] = 0.0
            advance(odometry.arrays)
        grown.append(np.diag(odometry._P)[3:6].copy())
    np.testing.assert_allclose(grown[1] - grown[0], (3.0 * DT) ** 2 * 30.0**2 / 36.0, rtol=1e-6)


def test_pose_and_twist_covariances_are_those_of_samples():
    """Errors drawn from P, applied by the group's exponential: deviations of pose and twist."""
    rng = np.random.default_rng(0)
    odometry = solo()
    odometry._set_rotation(pin.exp3(np.array([0.3, -0.2, 2.0])))
    odometry._x[9:15] = 0.3, -0.2, 0.1, 4.0, -3.0, 0.5
    L = 1e-3 * rng.normal(size=(15, 15))
    odometry._P[:15, :15] = L @ L.T
    odometry._record[:3] = odometry._x[12:15]
    R, v, p = odometry._x[:9].reshape(3, 3), odometry._x[9:12], odometry._x[12:15]
    samples = []
    for xi in rng.multivariate_normal(np.zeros(15), odometry._P[:15, :15], size=40000):
        turn = pin.exp3(xi[:3])
        speed = (turn @ R).T @ (turn @ v + xi[3:6]) - R.T @ v
        samples.append(np.concatenate([turn @ p + xi[6:9] - p, xi[:3], speed]))
    found = np.cov(np.array(samples).T)
    estimate = odometry.estimate
    scale = np.abs(found).max()
    np.testing.assert_allclose(estimate.pose_covariance, found[:6, :6], atol=0.03 * scale)
    twist = estimate.twist_covariance
    np.testing.assert_allclose(
        twist[:3, :3], found[6:, 6:], atol=0.03 * np.abs(found[6:, 6:]).max()
    )
    gyro = odometry.settings.gyroscope_noise**2 / 1e-4 * np.eye(3)
    np.testing.assert_allclose(twist[3:, 3:], odometry._P[9:12, 9:12] + gyro)


def test_quaternion_is_pinocchio_s():
    for turn in ([0.1, 0.2, 0.3], [3.1, 0.0, 0.1], [0.0, 3.1, 0.2], [0.2, 0.1, 3.1], [0, 0, 0]):
        R = pin.exp3(np.array(turn, dtype=float))
        expected = pin.Quaternion(R).coeffs()
        np.testing.assert_allclose(
            quaternion(R), expected * np.sign(expected[3] or 1.0), atol=1e-12
        )


def test_where_it_started_does_not_matter(short_walk):
    """Position and yaw are not observable: the walk is the same from anywhere, turned and moved."""
    walk = short_walk.cut(1500)
    here = Run(walk)
    moved = odometry_of(walk)
    moved.start(position=[3.0, -20.0, 5.0], yaw=2.0)
    there = Run(walk, odometry=moved)
    turn = pin.exp3(np.array([0.0, 0.0, 2.0]))
    walked = here.position - here.position[0]
    np.testing.assert_allclose(
        there.position - there.position[0], walked @ turn.T, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(there.position[0], [3.0, -20.0, 5.0], atol=1e-3)
    np.testing.assert_allclose(there.rotation[-1], turn @ here.rotation[-1], atol=1e-7)


@pytest.mark.parametrize("lever", [(0.0, 0.0, 0.0), (0.1, -0.05, 0.08)])
def test_an_imu_mounted_elsewhere(short_walk, lever):
    """The same walk felt at another place of the base, in other axes."""
    walk, lever = short_walk.cut(2000), np.array(lever)
    axes = pin.exp3(np.array([0.4, 0.3, -1.0]))
    spin = np.vstack([np.zeros(3), np.diff(walk.gyro, axis=0) / walk.period_s])
    before = np.vstack([walk.gyro[:1], walk.gyro[:-1]])
    felt = walk.accel + np.cross(spin, lever) + np.cross(before, np.cross(before, lever))
    robot = RobotModel(walk.robot.model.copy(), walk.robot.joint_names)
    frame = pin.Frame("imu", 1, pin.SE3(axes, lever), pin.FrameType.OP_FRAME)
    robot.model.addFrame(frame)
    mounted = walk._replace(robot=robot, gyro=walk.gyro @ axes, accel=felt @ axes)
    run = Run(mounted, "perfect", imu_frame="imu")
    assert set(run.states) == {RUNNING}
    assert run.drift < 0.02 and run.velocity_rms < 5e-3
    np.testing.assert_allclose(run.rotation[-1], walk.rotations[-1], atol=2e-3)


# Standing


class Standing:
    """A robot that stands still, and sensors of it."""

    def __init__(self, odometry, tilt=(0.0, 0.0, 0.0), seed=0, noise=1.0, bias=0.0):
        self.odometry, self.rng, self.noise, self.bias = (
            odometry,
            np.random.default_rng(seed),
            noise,
            bias,
        )
        self.axes = pin.exp3(np.array(tilt, dtype=float))
        self.q, self.v, self.contacts = SOLO_POSTURE.copy(), np.zeros(12), np.ones(4, bool)

    def step(self, gyro=None, accel=None, dt=DT, **changes):
        rng, noise = self.rng, self.noise
        gyro = np.zeros(3) if gyro is None else gyro
        accel = self.axes.T @ UP if accel is None else accel
        return self.odometry.step(
            **{
                "dt": dt,
                "gyro": gyro + self.bias + 0.005 * noise * rng.normal(size=3),
                "accel": accel + 0.05 * noise * rng.normal(size=3),
                "q_joints": self.q + 1e-4 * noise * rng.normal(size=12),
                "v_joints": self.v + 0.02 * noise * rng.normal(size=12),
                "contacts": self.contacts,
                **changes,
            }
        )

    def steps(self, count, **changes):
        for _ in range(count):
            estimate = self.step(**changes)
            finite_estimate(estimate)
        return estimate


def test_start_finds_attitude_and_biases():
    standing = Standing(solo(still_time_s=0.5), tilt=(0.1, -0.05, 0.0), bias=0.03)
    assert standing.step().state == STARTING
    estimate = standing.steps(600)
    assert estimate.state == RUNNING and estimate.reasons == ()
    np.testing.assert_allclose(estimate.rotation[2], standing.axes[2], atol=1e-3)
    np.testing.assert_allclose(estimate.gyroscope_bias, 0.03, atol=2e-3)
    assert estimate.stands.all() and estimate.slipping == ()
    np.testing.assert_allclose(estimate.feet[:, 2].mean(), RADIUS_M, atol=1e-3)
    np.testing.assert_allclose(estimate.position[:2], 0.0, atol=1e-3)


def test_position_and_yaw_are_never_learned():
    """Standing for long: variances of position and yaw only grow, that of a tilt does not."""
    standing = Standing(solo())
    first = standing.steps(400).pose_covariance
    last = standing.steps(4000).pose_covariance
    assert (np.diag(last)[[0, 1, 2, 5]] >= np.diag(first)[[0, 1, 2, 5]]).all()
    assert (np.diag(last)[[3, 4]] <= 1.001 * np.diag(first)[[3, 4]]).all()


def test_a_start_waits_for_stillness():
    standing = Standing(solo(), noise=1e-3)
    standing.steps(200)
    estimate = standing.step(gyro=np.array([1.0, 0.0, 0.0]))
    assert (
        estimate.state == STARTING
        and "not standing still: gyroscope 1 rad/s, " in estimate.reasons[0]
    )
    assert standing.steps(200).state == STARTING
    assert standing.steps(100).state == RUNNING
    standing = Standing(solo())
    estimate = standing.steps(5, accel=np.array([0.0, 0.0, 1.0]))
    assert "accelerometer feels 1" in estimate.reasons[0]


@pytest.mark.parametrize("first", [1000, 1130, 1260, 1390])
def test_a_log_that_begins_in_the_middle_of_a_step_begins_in_motion(short_walk, first):
    """Gyroscope .02 rad/s off: after 1.4 s up and velocity are known all the same, as far as their covariance says."""
    walk = short_walk._replace(
        **{
            name: getattr(short_walk, name)[first:]
            for name in ("q", "v", "gyro", "accel", "stands")
        }
    )
    odometry, began = odometry_of(walk), None
    for k, reading in readings(walk, "good", 0):
        if k < 0:
            continue
        estimate = odometry.step(
            DT,
            reading.angular_velocity + [0.02, -0.02, 0.0],
            reading.linear_acceleration,
            reading.position,
            reading.velocity,
            walk.stands[k],
        )
        finite_estimate(estimate)
        assert estimate.state in ((STARTING, RUNNING) if began is None else (RUNNING,))
        if estimate.ready and began is None:
            began = k
            start = estimate.position - walk.q[k, :3]
    assert began < 1450 and odometry.restarts == 0
    up = estimate.rotation[2]
    assert np.degrees(np.linalg.norm(np.cross(up, walk.rotations[k, 2]))) < 2.0
    assert np.linalg.norm(estimate.velocity - walk.v[k, :3]) < 0.05
    assert np.linalg.norm(estimate.position - walk.q[k, :3] - start) < 0.02


def test_a_simulator_that_waits_is_a_start_too():
    """A nanosecond a sample: so many samples are as good as the time."""
    standing = Standing(solo())
    assert standing.steps(249, dt=1e-9).state == STARTING
    estimate = standing.steps(1, dt=1e-9)
    assert estimate.state == RUNNING
    estimate = standing.steps(100)
    assert estimate.state == RUNNING and np.linalg.norm(estimate.velocity) < 0.01


def test_an_imu_upside_down_never_starts():
    standing = Standing(solo(), tilt=(np.pi, 0.0, 0.0))
    seen = {standing.step().reasons[0] for _ in range(600)}
    assert standing.odometry.estimate.state == STARTING
    assert any("a tilt of 1" in reason and "upside down?" in reason for reason in seen)


def test_level_ground_holds_the_height():
    """With ground_height_noise_m each foot that has settled measures the height; without, it drifts away."""
    held, free = solo(ground_height_noise_m=0.002), solo(ground_height_noise_m=0.0)
    for odometry in (held, free):
        standing = Standing(odometry)
        standing.steps(400)
        odometry._x[filtering.POSITION + 2] += 0.02  # as if it had drifted
        odometry._x[filtering.FEET + 2 :: 3] += 0.02
        odometry._P[8, 8] += 0.02**2
        odometry._P[np.ix_([8, 17, 20, 23, 26], [8, 17, 20, 23, 26])] += 0.02**2
        standing.contacts = np.zeros(4, bool)
        standing.steps(2)
        standing.contacts = np.ones(4, bool)
        standing.steps(40)
    assert abs(held.estimate.feet[:, 2].mean() - RADIUS_M) < 2e-3
    assert abs(free.estimate.feet[:, 2].mean() - RADIUS_M) > 0.015


def height_error(run, up=(0.0, 0.0, 1.0)):
    """m, along up in the axes of what was walked on."""
    walked = run.walk.q[-1, :3] - run.walk.q[0, :3]
    return run.position[-1, 2] - run.position[0, 2] - walked @ up


FREE = {"ground_height_noise_m": 0.0}


def test_zeros_of_joints_that_are_off_do_not_sink_a_robot_into_level_ground(short_walk):
    """Two degrees in each thigh are a slope of 3 %, which nothing else tells; nothing but heights differs."""
    off = np.radians([0.0, 2.0, 0.0] * 4)

    def change(_, inputs):
        inputs["q_joints"] = inputs["q_joints"] + off

    held, free = (Run(short_walk, change=change, **level) for level in ({}, FREE))
    assert abs(height_error(held)) < 0.005 < 0.012 < abs(height_error(free))
    np.testing.assert_allclose(held.position[:, :2], free.position[:, :2], rtol=0, atol=1e-4)
    np.testing.assert_allclose(held.rotation, free.rotation, rtol=0, atol=1e-4)


def test_a_slope_is_not_taken_for_level_ground(short_walk):
    """The same walk, uphill: gravity points elsewhere. 4 cm and 5 % of the path are held before it is noticed."""
    walk, up = uphill(short_walk, 15.0)
    run, free = (Run(walk, **level) for level in ({}, FREE))
    assert set(run.states) == {RUNNING} and (walk.q[-1, :3] - walk.q[0, :3]) @ up > 0.12
    assert abs(height_error(run, up) - height_error(free, up)) < 0.07
    assert np.isnan(run.odometry.arrays.record[filtering.O_LEVEL])


def uphill(walk, degrees):
    """The walk as an IMU feels it on a slope ahead, and the vertical in its axes."""
    slope, forward = np.radians(degrees), walk.q[-1] - walk.q[0]
    forward = np.append(forward[:2] / np.linalg.norm(forward[:2]), 0.0)
    up = np.cos(slope) * UP / 9.81 + np.sin(slope) * forward
    felt = walk.accel + np.einsum("kji,j->ki", walk.rotations, 9.81 * up - UP)
    return walk._replace(accel=felt), up


@pytest.mark.parametrize("degrees", [5.0, 8.0, 12.0])
def test_a_slope_is_not_taken_for_a_bias_of_the_accelerometer(short_walk, degrees):
    """Ground to 2 mm tells the tilt: it was level within .3 s, with a bias of 2 m/s2, 12 degrees off."""
    walk, _ = uphill(short_walk, degrees)
    tight = Run(walk, ground_height_noise_m=0.002)
    free = Run(walk, **FREE)
    cosine = np.einsum("kij,kij->k", tight.rotation, free.rotation) / 2.0 - 0.5
    assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max() < 0.5
    assert np.isnan(tight.odometry.arrays.record[filtering.O_LEVEL])


@pytest.mark.parametrize("degrees", [2.5, 3.5])
def test_a_slope_that_was_taken_for_a_bias_is_forgotten(short_walk, degrees):
    """The first feet levelled it before the bias was too large: 2.3 degrees off, with a deviation of .4 to .9, remained."""
    walk, up = uphill(short_walk, degrees)
    run = Run(walk, ground_height_noise_m=0.002)
    odometry = run.odometry
    assert np.isnan(odometry.arrays.record[filtering.O_LEVEL])
    off = np.cross(run.rotation[-1] @ walk.rotations[-1].T @ up, [0.0, 0.0, 1.0])[:2]
    assert np.degrees(np.linalg.norm(off)) < 0.3
    deviations = np.degrees(np.sqrt(np.linalg.eigvalsh(odometry.arrays.P[:2, :2])))
    assert 1.0 < deviations[0] and deviations[1] < 2.0
    assert abs(run.errors[-1, :2] @ up[:2]) < 0.03 * np.linalg.norm(up[:2])


def test_no_slope_explains_a_vertical_bias_of_the_accelerometer(short_walk):
    """Level ground stays known, and the tilt with it."""
    up = short_walk.rotations[:, 2] * 0.45
    run = Run(short_walk._replace(accel=short_walk.accel + up), ground_height_noise_m=0.002)
    assert np.isfinite(run.odometry.arrays.record[filtering.O_LEVEL])
    assert run.odometry._x[filtering.ACCEL_BIAS + 2] > 0.4


# What goes wrong


def slide(standing, k, speed):
    """Foot 0 slides along x at a speed, with the joints that does."""
    robot = standing.odometry.robot
    data, q = robot.model.createData(), robot.configuration([0, 0, 0, 0, 0, 0, 1], standing.q)
    frame = robot.frame_id(SOLO_FEET[0])
    J = pin.computeFrameJacobian(robot.model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
    rates = np.linalg.lstsq(J[:, 6:], [speed, 0.0, 0.0], rcond=None)[0]
    standing.v[:] = rates
    standing.q += DT * rates


@pytest.mark.parametrize("speed", [0.15, 0.3, 1.0])
def test_a_slipping_foot_is_dropped_and_named(speed):
    standing = Standing(solo())
    before = standing.steps(500).position.copy()
    named = []
    for k in range(200):
        slide(standing, k, speed * (1 if k < 100 else -1))
        estimate = standing.step()
        finite_estimate(estimate)
        named.append(estimate.slipping)
        assert estimate.state == RUNNING
    assert (SOLO_FEET[0],) in named and {name for names in named for name in names} == {
        SOLO_FEET[0]
    }
    assert "slipping: FL_FOOT" in estimate.reasons
    assert np.linalg.norm(estimate.position - before) < 3e-3
    standing.v[:] = 0.0
    estimate = standing.steps(100)
    assert estimate.slipping == () and estimate.stands.all() and estimate.reasons == ()
    assert np.linalg.norm(estimate.position - before) < 3e-3


@pytest.mark.parametrize(("chatter_m_s", "allowed_m_s"), [(0.0, 0.1), (0.2, 0.005)])
def test_a_foot_that_lands_alone_does_not_pull_the_base_along(chatter_m_s, allowed_m_s):
    """It counts as touching from 8 ms before it lands, and slides for 25 ms, ever faster; it pulled at .3 to .4 m/s.

    One that slides evenly could be one that stands, under a base whose velocity is wrong.
    """
    standing = Standing(solo())
    before = standing.steps(500).position.copy()
    standing.contacts = np.array([True, False, False, False])
    errors = []
    for k in range(33):
        bounce = chatter_m_s * (1 if k % 6 < 3 else -1)
        slide(standing, k, 1.6 if k < 8 else 0.3 + 0.01 * (k - 8) + bounce)
        estimate = standing.step()
        errors.append(np.abs(estimate.velocity).max())
    assert max(errors) < allowed_m_s
    assert np.linalg.norm(estimate.position - before) < 2e-3  # 7.8 to 9.8 mm


def fault_between(start_s, end_s, **bad):
    def change(t, inputs):
        if start_s <= t < end_s:
            inputs.update(bad)

    return change


class Frozen:
    """The IMU repeats its sample from a time on."""

    def __init__(self, start_s, end_s):
        self.start_s, self.end_s, self.sample = start_s, end_s, None

    def __call__(self, t, inputs):
        if self.start_s <= t < self.end_s:
            self.sample = self.sample or (inputs["gyro"], inputs["accel"])
            inputs["gyro"], inputs["accel"] = self.sample


def turned(t, inputs):
    """The IMU is turned over after 1.5 s."""
    if t >= 1.5:
        for name in ("gyro", "accel"):
            inputs[name] = inputs[name] * [1.0, -1.0, -1.0]


NAN, FAST = np.full(3, np.nan), np.array([0.0, 40.0, 0.0])
FAULTS = {
    "silent": (fault_between(1.5, 9.0, gyro=None, accel=None), "IMU is silent for 10"),
    "not a number": (fault_between(1.5, 9.0, gyro=NAN), "IMU is silent for 10"),
    "infinite": (fault_between(1.5, 9.0, accel=np.full(3, np.inf)), "IMU is silent for 10"),
    "saturated": (fault_between(1.5, 9.0, gyro=FAST), "IMU is saturated for 10"),
    "struck": (fault_between(1.5, 9.0, accel=np.full(3, 160.0)), "IMU is saturated for 10"),
    "frozen": (Frozen(1.5, 9.0), "IMU is frozen for 10"),
    "turned": (turned, "is the IMU turned?"),
    "no joints": (fault_between(1.5, 9.0, q_joints=np.full(12, np.nan)), "not finite"),
    "no contacts": (fault_between(1.5, 9.0, contacts=np.zeros(4)), "no foot has stood for 1.0 s"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_lying_imu_is_named_and_the_pose_held(short_walk, name):
    """From the fault on: lost within its time, the pose held, the reason kept; then a new start."""
    change, words = FAULTS[name]
    run = Run(short_walk, change=change)
    first = run.states.index(LOST)
    assert set(run.states[:1500]) == {RUNNING} and set(run.states[first:]) == {LOST}
    assert first <= 1500 + (1050 if "no " in name else 125)
    assert all(words in " ".join(reasons) for reasons in run.reasons[first:])
    assert (run.position[first:] == run.position[first]).all()
    assert (run.velocity[first:] == 0.0).all()
    # A second's mean acceleration notices within .12 s, in which 2 g have moved it.
    assert np.linalg.norm(run.errors[first]) < (0.15 if name == "turned" else 0.03)
    covariance = run.odometry.estimate.pose_covariance
    assert np.isfinite(covariance).all()
    assert np.sqrt(covariance[0, 0]) > 0.9 * (2.999 - 1e-3 * first)  # nobody knows where it went
    standing = Standing(run.odometry)
    estimate = standing.steps(300)
    assert estimate.state == RUNNING and run.odometry.restarts == 1
    np.testing.assert_allclose(estimate.position, run.position[-1], atol=5e-3)
    assert np.sqrt(estimate.pose_covariance[0, 0]) > 0.9 * (2.999 - 1e-3 * first)


@pytest.mark.parametrize("name", ["silent", "saturated", "not a number"])
def test_a_moment_without_imu_is_bridged(short_walk, name):
    """The last good sample stands in for 20 ms, the feet alone for 100, and it is said."""
    bad = {"silent": {"gyro": None, "accel": None}, "saturated": {"gyro": FAST}}
    for last in (15, 95):
        change = fault_between(1.5, 1.5 + 1e-3 * last, **bad.get(name, {"accel": NAN}))
        run = Run(short_walk, change=change)
        assert set(run.states) == {RUNNING, COASTING} and run.states.count(COASTING) == last
        assert "IMU is" in run.reasons[1505][0] and run.reasons[1600] == ()
        assert run.drift < 0.025


class Unread:
    """An odometry whose states do not arrive from row 1500 on, for so many; the next one has their time, too."""

    def __init__(self, odometry, rows):
        self.odometry, self.missing, self.number, self.waited_s = odometry, rows, 0, 0.0

    def step(self, dt, **inputs):
        starting = self.odometry.estimate.state == STARTING
        self.number += not starting
        if 1500 <= self.number < 1500 + self.missing:
            self.waited_s += dt
            return self.odometry.estimate
        waited_s, self.waited_s = self.waited_s, 0.0
        return self.odometry.step(dt + waited_s, **inputs)


@pytest.mark.parametrize("rows", [10, 30, 55, 80, 150, 400])
def test_states_that_a_busy_computer_read_late_do_not_lose_the_pose(short_walk, rows):
    """The sensors are as good as before; what none of them told about is doubted, and no more."""
    odometry = odometry_of(short_walk)
    run = Run(short_walk, odometry=Unread(odometry, rows))
    assert LOST not in run.states and run.states[-1] == RUNNING
    assert np.linalg.norm(run.errors[-1]) < 0.005 + 0.05 * 1e-3 * rows
    found = 1500 + rows + 20
    truth = np.einsum("kij,kj->ki", short_walk.rotations, short_walk.v[:, :3])
    assert np.linalg.norm((run.velocity - truth)[found:], axis=1).max() < 0.1
    deviation = np.sqrt(np.diag(odometry.estimate.pose_covariance))[:3]
    assert (np.abs(run.errors[-1]) < 4.0 * deviation).all()


def read_in_bursts(t, inputs):
    """Who reads the states stalls for 60 ms of each 100, and stamps what has waited with the time at which it goes on."""
    k = round(t / DT)
    if 500 <= k < 2500 and k % 100 < 60:
        inputs["dt"] = 1e-6 if k % 100 else 60.0 * DT - 59e-6


def test_states_that_were_read_in_bursts_are_as_good_as_others(short_walk):
    """A log is stamped where it is written: legs do not move by what waited in no time."""
    run, late = Run(short_walk), Run(short_walk, change=read_in_bursts)
    assert set(late.states) == {RUNNING}
    assert np.linalg.norm(late.position - run.position, axis=1).max() < 5e-3
    assert late.velocity_rms < 1.5 * run.velocity_rms


def misdated(by_s, lasting=False):
    """Every .1 s a state whose stamp is off, or from 1.5 s on all of them; dt is what stamps say."""
    off = [0.0]

    def change(t, inputs):
        k = round(t / DT)
        now = by_s if 500 <= k and (k >= 1500 if lasting else k < 2500 and k % 100 == 0) else 0.0
        inputs["dt"] += now - off[0]
        off[0] = now

    return change


@pytest.mark.parametrize("by_s", [-1e-3, 0.03, -0.03, 0.3, 1.0, -1.0])
def test_a_state_with_a_wrong_stamp_is_as_good_as_others(short_walk, by_s):
    """Joints tell that no time was lost: it had been 1 s of unknown motion, and lost."""
    run, wrong = Run(short_walk), Run(short_walk, change=misdated(by_s))
    assert set(wrong.states) == {RUNNING}
    assert np.linalg.norm(wrong.position - run.position, axis=1).max() < 2e-3


def test_a_clock_that_is_set_back_while_the_robot_walks_loses_nothing(short_walk):
    run, wrong = Run(short_walk), Run(short_walk, change=misdated(-5.0, lasting=True))
    assert set(wrong.states) == {RUNNING}
    assert np.linalg.norm(wrong.position - run.position, axis=1).max() < 2e-3


def test_a_walk_that_was_lost_is_found_again_while_it_goes_on(short_walk):
    """After .8 s without states: lost, and .3 s of samples later up and velocity are known again."""
    odometry = odometry_of(short_walk)
    run = Run(short_walk, odometry=Unread(odometry, 800))
    lost = [k for k, state in enumerate(run.states) if state == LOST]
    assert 2200 <= lost[0] <= 2310 and 290 <= len(lost) < 350
    assert run.states[lost[-1] + 1] == RUNNING and odometry.restarts == 1
    assert all("time advanced by 0.8" in " ".join(run.reasons[k]) for k in lost)
    after = slice(lost[-1] + 50, None)
    truth = np.einsum("kij,kj->ki", short_walk.rotations, short_walk.v[:, :3])
    assert np.linalg.norm((run.velocity - truth)[after], axis=1).max() < 0.15
    up, true_up = run.rotation[after, 2], short_walk.rotations[after, 2]
    assert np.degrees(np.linalg.norm(np.cross(up, true_up), axis=1)).max() < 5.0
    deviation = np.sqrt(np.diag(odometry.estimate.pose_covariance))[:3]
    assert (np.abs(run.errors[-1]) < 4.0 * deviation).all()


def test_a_bias_for_which_an_estimate_was_lost_is_not_begun_with_again(short_walk):
    """Kept, it was the reason to lose each next estimate at once, until the robot stood still."""
    odometry = odometry_of(short_walk)
    beyond = 1.05 * odometry.settings.gyroscope_bias_limit
    steps = iter(range(10**6))

    def change(_, inputs):
        if next(steps) == 1500:
            odometry._x[filtering.GYRO_BIAS] = beyond

    run = Run(short_walk, odometry=odometry, change=change)
    lost = [k for k, state in enumerate(run.states) if state == LOST]
    assert lost[0] <= 1510 and len(lost) < 500 and run.states[-1] == RUNNING
    assert "is not believed" in " ".join(run.reasons[lost[0]])


def test_stamps_that_differ_are_said_and_weigh(short_walk):
    """5 ms: named, and the walk goes on; 100 ms: feet do not count, lost after a second."""
    run = Run(short_walk, change=fault_between(0.5, 9.0, skew_s=0.005))
    assert set(run.states) == {RUNNING} and run.drift < 0.025
    assert "stamps of joints and IMU differ by 5.0 ms" in run.reasons[-1][0]
    run = Run(short_walk, change=fault_between(0.5, 9.0, skew_s=-0.1))
    assert run.states[-1] == LOST and "differ by -100.0 ms" in " ".join(run.reasons[-1])


def test_joints_that_come_late_do_not_break_it(short_walk):
    """5 ms that no stamp tells."""
    late = []

    def change(_, inputs):
        late.append((inputs["q_joints"], inputs["v_joints"]))
        inputs["q_joints"], inputs["v_joints"] = late[-6] if len(late) > 5 else late[0]

    run = Run(short_walk, change=change)
    assert run.states[-1] == RUNNING and run.drift < 0.05 and run.velocity_rms < 0.05


@pytest.mark.parametrize("dt", [0.0, -1.0, np.nan])
def test_time_that_does_not_advance_changes_nothing(dt):
    standing = Standing(solo())
    before = standing.steps(400)
    x, P = standing.odometry._x.copy(), standing.odometry._P.copy()
    estimate = standing.step(dt=dt)
    assert before.state == RUNNING and "time advanced by" in estimate.reasons[0]
    np.testing.assert_array_equal(standing.odometry._x, x)
    np.testing.assert_array_equal(standing.odometry._P, P)


def test_kidnapped():
    """Lifted, carried .5 m within .8 s and put down: found again to within its own doubt."""
    standing = Standing(solo())
    start = standing.steps(500).position.copy()
    times = np.arange(800) * DT
    # x(t) = .25 (1 - cos) and back to rest, z up and down
    rate = np.pi / 0.8
    x = 0.25 * rate**2 * np.cos(rate * times)
    z = 0.05 * (2 * rate) ** 2 * np.cos(2 * rate * times)
    standing.contacts = np.zeros(4, bool)
    states = []
    for ax, az in zip(x, z):
        estimate = standing.step(accel=UP + [ax, 0.0, az])
        finite_estimate(estimate)
        states.append(estimate.state)
    assert COASTING in states and LOST not in states
    standing.contacts = np.ones(4, bool)
    estimate = standing.steps(200)
    error = estimate.position - start - [0.5, 0.0, 0.0]
    deviation = np.sqrt(np.diag(estimate.pose_covariance)[:3])
    assert estimate.state == RUNNING
    assert np.linalg.norm(error) < 0.05 and (np.abs(error) < 4.0 * deviation).all()


@pytest.mark.parametrize("disputed", [False, True])
def test_feet_of_which_none_is_believed_make_the_velocity_doubtful(disputed):
    """The accelerometer alone feels a knock of .5 m/s: feet tell again within 60 ms, unless a sensor is suspected."""
    standing = Standing(solo())
    start = standing.steps(500).position.copy()
    standing.odometry.disputed = disputed
    standing.steps(10, accel=UP + [50.0, 0.0, 0.0])
    estimate = standing.steps(60)
    assert estimate.stands.all() != disputed
    if disputed:
        assert estimate.velocity[0] > 0.4 and len(estimate.slipping) == 4
        return
    assert estimate.state == RUNNING and np.abs(estimate.velocity).max() < 0.04
    estimate = standing.steps(200)
    assert np.linalg.norm(estimate.position - start) < 0.01
    assert np.abs(estimate.velocity).max() < 0.01 and estimate.reasons == ()


def test_garbage_is_never_passed_on():
    """Whatever numbers come, the estimate is finite, and a new start finds the robot."""
    rng, odometry = np.random.default_rng(0), solo()
    standing = Standing(odometry)
    bad = np.array([0.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, -1e5, 30.0])
    for round_ in range(30):
        standing.steps(300)
        for _ in range(30):
            changes = {
                "gyro": rng.choice(bad, 3) if rng.random() < 0.3 else rng.normal(size=3) * 10.0,
                "accel": rng.choice(bad, 3) if rng.random() < 0.3 else rng.normal(size=3) * 100.0,
                "q_joints": rng.choice(bad, 12) if rng.random() < 0.1 else rng.normal(size=12),
                "v_joints": rng.choice(bad, 12)
                if rng.random() < 0.1
                else rng.normal(size=12) * 30.0,
                "contacts": rng.choice(bad, 4) if rng.random() < 0.2 else rng.random(4),
                "dt": rng.choice(bad) if rng.random() < 0.1 else 1e-3,
                "skew_s": rng.choice(bad) if rng.random() < 0.1 else 0.0,
            }
            estimate = odometry.step(**changes)
            finite_estimate(estimate)
            assert np.isfinite(estimate.pose_covariance).all()
            assert np.isfinite(estimate.twist_covariance).all()
    estimate = standing.steps(600)
    assert estimate.state == RUNNING


# The door


def test_settings_and_shapes_are_checked():
    robot = RobotModel.from_urdf(SOLO12)
    with pytest.raises(ConfigurationError, match="floating base and at least one foot"):
        BaseOdometry(robot, [], RADIUS_M)
    with pytest.raises(ConfigurationError, match=r"radii of feet are \[0.0\] m, must be 1 or 4"):
        BaseOdometry(robot, SOLO_FEET, 0.0)
    with pytest.raises(UnknownFrameError, match="'LF'"):
        BaseOdometry(robot, ["LF"], RADIUS_M)
    with pytest.raises(ConfigurationError, match="slip_speed_m_s is -1"):
        BaseOdometrySettings(slip_speed_m_s=-1.0)
    with pytest.raises(ConfigurationError, match="'FL_FOOT' is not on the base"):
        BaseOdometry(robot, SOLO_FEET, RADIUS_M, BaseOdometrySettings(imu_frame="FL_FOOT"))
    some = RobotModel.from_urdf(SOLO12, True, [name for name in robot.joint_names if "KFE" in name])
    with pytest.raises(UnknownJointError, match="'FL_H.E' moves foot 'FL_FOOT'"):
        BaseOdometry(some, SOLO_FEET, RADIUS_M)
    odometry = solo()
    with pytest.raises(StateError, match=r"gyro has shape \(2,\), must be \(3,\)"):
        odometry.step(DT, [0, 0], UP, SOLO_POSTURE, np.zeros(12), np.ones(4))
    with pytest.raises(StateError, match="position is .*must be finite"):
        odometry.start(position=[np.nan, 0, 0])


def test_every_setting_matters():
    """No setting is read by nobody: each changes the facts, the limits, or is named in the code."""
    base = solo()
    numbers = np.concatenate([base._facts, base._limits])
    python = {"imu_frame", "imu_timeout_s", "stamp_limit_s", "longest_period_s", "gap_limit_s"}
    python |= {"coasting_limit_s"}
    python |= {"still_time_s", "still_rate_rad_s", "still_acceleration_m_s2", "start_tilt_rad"}
    python |= {"gyroscope_bias", "accelerometer_bias", "still_samples"}
    for field in dataclasses.fields(BaseOdometrySettings):
        if field.name not in python:
            value = not field.default if field.type == "bool" else 0.5 * field.default + 0.07
            other = solo(**{field.name: value})
            assert not np.array_equal(np.concatenate([other._facts, other._limits]), numbers)


def test_the_estimate_is_a_state_of_pinocchio():
    odometry = solo()
    estimate = Standing(odometry).steps(400)
    q = estimate.configuration(SOLO_POSTURE)
    data = odometry.robot.model.createData()
    pin.framesForwardKinematics(odometry.robot.model, data, q)
    for frame, place in zip(SOLO_FEET, estimate.feet):
        at = data.oMf[odometry.robot.frame_id(frame)].translation
        np.testing.assert_allclose(at, place, atol=1e-3)
    v = estimate.generalised_velocity(np.arange(12.0))
    np.testing.assert_array_equal(v[6:], np.arange(12.0))
    np.testing.assert_array_equal(v[:3], estimate.velocity)
