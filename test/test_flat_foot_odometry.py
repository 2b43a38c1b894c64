"""Odometry on soles: by plain numpy in one step, and on legs that yield, soles that creep, and few samples."""

import numpy as np
import pinocchio as pin
import pytest
from test_base_odometry import predicted

from contact_id_controller import RobotModel
from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.base_estimate import RUNNING
from contact_id_controller.estimation.base_odometry import BaseOdometry, BaseOdometrySettings
from contact_id_controller.estimation.odometry_arrays import advance

SOLES, RADIUS_M, DT = ("l_sole", "r_sole"), 0.01, 0.01
UP = np.array([0.0, 0.0, 9.81])
LEG = (("yaw", "0 0 1", 0.0), ("roll", "1 0 0", 0.0), ("pitch", "0 1 0", 0.0), ("knee", "0 1 0", -0.3),
       ("ankle_pitch", "0 1 0", -0.3), ("ankle_roll", "1 0 0", 0.0))  # fmt: skip
BENT = np.tile([0.0, 0.0, -0.3, 0.6, -0.3, 0.0], 2)
INERTIA = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="1e-2" ixy="0" ixz="0" iyy="1e-2" iyz="0" izz="1e-2"/></inertial>'
)


def leg(side, y):
    """Links and joints of a leg with six joints, its foot last, and the sole's frame below the ankle."""
    text, parent = "", "base"
    for joint, axis, z in LEG:
        at = f"0 {y if parent == 'base' else 0} {z}"
        name = f"{side}_{joint}"
        text += (
            f'<link name="{name}_link">{INERTIA}</link><joint name="{name}" type="revolute">'
            f'<parent link="{parent}"/><child link="{name}_link"/><origin xyz="{at}"/>'
            f'<axis xyz="{axis}"/>'
            '<limit lower="-2" upper="2" velocity="9" effort="99"/></joint>'
        )
        parent = f"{name}_link"
    return text + (
        f'<link name="{side}_sole"/><joint name="{side}_sole_joint" type="fixed">'
        f'<parent link="{parent}"/><child link="{side}_sole"/><origin xyz="0.02 0 -0.05"/></joint>'
    )


@pytest.fixture(scope="module")
def biped(tmp_path_factory):
    path = tmp_path_factory.mktemp("biped") / "biped.urdf"
    path.write_text(
        f'<robot name="biped"><link name="base">{INERTIA}</link>{leg("l", 0.1)}{leg("r", -0.1)}</robot>'
    )
    return RobotModel.from_urdf(str(path))


def odometry_of(robot, soles=SOLES, **settings):
    return BaseOdometry(robot, SOLES, RADIUS_M, BaseOdometrySettings(**settings), soles)


def soles_of(robot, q):
    """Placements of both soles in the base, and Jacobians (6, 12) of their lower sides, rotation first, base axes."""
    model, data = robot.model, robot.model.createData()
    full = robot.configuration([0, 0, 0, 0, 0, 0, 1], q)
    pin.computeJointJacobians(model, data, full)
    pin.updateFramePlacements(model, data)
    found = []
    for name in SOLES:
        frame = robot.frame_id(name)
        placement = data.oMf[frame]
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:, robot.actuated]
        below = -RADIUS_M * placement.rotation[:, 2]
        linear = J[:3] + np.cross(J[3:].T, below).T
        found.append(
            (placement.rotation, placement.translation + below, np.vstack([J[3:], linear]))
        )
    return found


# Against plain numpy


def dense_step(odometry, state, P, stood, inputs):
    """One step of a filter with two soles that touch, in plain numpy and Pinocchio; the same arguments."""
    s, robot = odometry.settings, odometry.robot
    dt, w, a, q, v = inputs
    R, vel, p, bg, ba, feet, Z = state
    w, a = w - bg, a - ba
    walk = [s.foot_walk, s.foot_walk, s.sole_walk, s.sole_walk]
    R, vel, p, P = predicted(s, R, vel, p, feet, P, dt, w, a, walk)
    feet, Z = feet.copy(), Z.copy()
    blocks = np.array([[21, 15], [24, 18]])  # of a sole's rotation and place
    H, z, noise = np.zeros((12, 27)), np.zeros(12), np.zeros((12, 12))
    for i, (turned, at, J) in enumerate(soles_of(robot, q)):
        speed = R @ (J[3:] @ v + np.cross(w, at))
        J_turn, J = J[:3], np.vstack([R @ J[:3], R @ J[3:]])
        N = s.joint_noise**2 * (J @ J.T)
        N[:3, :3] += s.joint_noise**2 * np.eye(3)
        N[3:, 3:] += (s.foot_position_noise_m * filtering.SHORT_S / dt) ** 2 * np.eye(3)
        if stood[i]:
            P[blocks[i, 0] + 2, blocks[i, 0] + 2] += s.sole_turn**2 * speed @ speed * dt
            creep = np.arange(blocks[i, 1], blocks[i, 1] + 2)
            P[creep, creep] += s.sole_creep**2 * speed @ speed * dt
            rocked = dt * (R @ (w + J_turn @ v))[:2]
            rocks = max(rocked @ rocked - filtering.ROCKED_RAD**2, 0.0) * filtering.ROCKS_S * dt
            rocks /= filtering.ROCKED_S**2
            turns, place = blocks[i, 0] + np.arange(2), blocks[i, 1] + np.arange(3)
            P[turns, turns] += rocks
            P[place, place] += filtering.HALF_SOLE**2 * (at @ at) * rocks
        noise[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = N
        for k, (of, block) in enumerate(zip((0, 6), blocks[i])):
            rows = slice(6 * i + 3 * k, 6 * i + 3 * k + 3)
            H[rows, of : of + 3], H[rows, block : block + 3] = -np.eye(3), np.eye(3)
        z[6 * i : 6 * i + 3] = pin.log3(R @ turned @ Z[i].T)
        z[6 * i + 3 : 6 * i + 6] = R @ at - (feet[i] - p)
    rows = np.flatnonzero(np.repeat(stood, 6))
    used, by = H[rows], noise[np.ix_(rows, rows)]
    K = P @ used.T @ np.linalg.inv(used @ P @ used.T + by)
    dx, P = K @ z[rows], (np.eye(27) - K @ used) @ P
    E, Jl = pin.exp3(dx[:3]), np.linalg.inv(pin.Jlog3(pin.exp3(-dx[:3])))
    R, vel, p = E @ R, E @ vel + Jl @ dx[3:6], E @ p + Jl @ dx[6:9]
    for i, (turned, at, _) in enumerate(soles_of(robot, q)):
        if stood[i]:
            feet[i] = E @ feet[i] + Jl @ dx[blocks[i, 1] :][:3]
            Z[i] = pin.exp3(dx[blocks[i, 0] :][:3]) @ Z[i]
            continue
        feet[i], Z[i] = p + R @ at, R @ turned
        mine = np.concatenate([blocks[i, 0] + np.arange(3), blocks[i, 1] + np.arange(3)])
        of = np.array([0, 1, 2, 6, 7, 8])
        P[mine] = P[of]
        P[:, mine] = P[:, of]
        P[np.ix_(mine, mine)] += noise[6 * i : 6 * i + 6, 6 * i : 6 * i + 6]
    return (R, vel, p, bg + dx[9:12], ba + dx[12:15], feet, Z), P


@pytest.mark.parametrize("stood", [(True, True), (True, False)])
def test_a_step_on_soles_is_that_of_plain_numpy(biped, stood):
    """Random states and errors of two soles that stand, and of one that touches down beside one that stands."""
    rng = np.random.default_rng(1)
    odometry = odometry_of(biped, gate=1e12, slip_speed_m_s=1e9, gyroscope_noise=0.03)
    R, q = pin.exp3(0.3 * rng.normal(size=3)), BENT + 0.2 * rng.normal(size=12)
    turned = [R @ rotation for rotation, _, _ in soles_of(biped, q)]
    state = (
        R, rng.normal(size=3), rng.normal(size=3), 0.1 * rng.normal(size=3), rng.normal(size=3),
        rng.normal(size=(2, 3)), np.array([pin.exp3(0.1 * rng.normal(size=3)) @ each for each in turned]),
    )  # fmt: skip
    L = rng.normal(size=(27, 27))
    P = 1e-4 * (L @ L.T)
    inputs = (2e-3, rng.normal(size=3), UP + rng.normal(size=3), q, rng.normal(size=12))
    expected, covariance = dense_step(odometry, state, P.copy(), np.array(stood), inputs)

    odometry._x[:] = np.concatenate([np.ravel(part) for part in state])
    odometry._P[:] = P
    odometry._feet[:, filtering.DOES] = np.where(stood, filtering.STANDS, filtering.AIR)
    odometry.estimate.state = RUNNING
    odometry.take(*inputs)
    odometry._contacts[:] = 1.0
    advance(odometry.arrays)
    np.testing.assert_allclose(odometry._P, covariance, atol=1e-11)
    found = np.concatenate([np.ravel(part) for part in expected])
    np.testing.assert_allclose(odometry._x, found, atol=1e-9)


# On one sole


def drift_on_one_sole(
    robot, encoders, seconds, soles, turn=0.0, sole=lambda _: pin.SE3.Identity(), **settings
):
    """Place and rotation of the base at the end, less the true ones, of a robot on its left sole.

    encoders: of the time, what they say, and by how much the joints are off.  turn: of the gyroscope's bias about z,
    rad/s, which begins when the robot no longer stands still.  sole: where it is, of the time.
    """
    odometry = odometry_of(robot, soles, **settings)
    data = robot.model.createData()

    def base(t):
        said, off = encoders(t)
        full = robot.configuration([0, 0, 0, 0, 0, 0, 1], said + off)
        pin.framesForwardKinematics(robot.model, data, full)
        return sole(t) * data.oMf[robot.frame_id(SOLES[0])].inverse()

    begin, h = None, 1e-3
    for k in range(round(seconds / DT)):
        t = k * DT
        poses = [base(t + d) for d in (-h, 0.0, h)]
        places = [pose.translation for pose in poses]
        felt = (places[0] - 2.0 * places[1] + places[2]) / h**2 + UP
        gyro = pin.log3(poses[0].rotation.T @ poses[2].rotation) / (2.0 * h)
        gyro += [0.0, 0.0, turn if t > 0.5 else 0.0]
        q = encoders(t)[0]
        v = (encoders(t + h)[0] - encoders(t - h)[0]) / (2.0 * h)
        estimate = odometry.step(DT, gyro, poses[1].rotation.T @ felt, q, v, [True, False])
        if begin is None and estimate.ready:
            begin = pin.SE3(estimate.rotation, estimate.position) * poses[1].inverse()
    assert estimate.state == RUNNING, estimate.reasons
    true = begin * poses[1]
    return estimate.position - true.translation, pin.log3(estimate.rotation @ true.rotation.T)


def test_a_sole_that_stands_still_tells_the_bias_about_the_vertical(biped):
    """A sphere may spin: 4 mrad/s for 20 s turn the base by 4.5 degrees, about which spheres say nothing."""

    def still(_):
        return BENT, np.zeros(12)

    angles = [
        abs(drift_on_one_sole(biped, still, 20.0, soles, turn=4e-3)[1][2]) for soles in (SOLES, ())
    ]
    assert np.degrees(angles[0]) < 0.5 < 3.0 < np.degrees(angles[1])


def test_the_turn_of_a_sole_tells_how_far_joints_have_yielded(biped):
    """Each pitch joint of the leg yields by 12 mrad as the load moves forward: to spheres the base moves 9 mm less."""
    pitch = np.array([0, 0, 1, 1, 1, 0] + 6 * [0])

    def leaning(t):
        share = np.clip((t - 1.0) / 1.5, 0.0, 1.0)
        share = share**2 * (3.0 - 2.0 * share)
        return BENT + 0.1 * share * pitch, 0.012 * share * pitch

    errors = [
        np.linalg.norm(drift_on_one_sole(biped, leaning, 3.0, soles)[0]) for soles in (SOLES, ())
    ]
    assert errors[0] < 0.004 < 0.006 < errors[1]


def test_a_sole_that_rocks_on_its_heel_tilts_the_robot_less(biped):
    """Each second its toes rise by 11 degrees and lie down again: it tilted the base by 4.8 degrees, by 3.8 now."""
    heel = np.array([-0.08, 0.0, -RADIUS_M])

    def rocking(t):
        angle = 0.1 * (1.0 - np.cos(2.0 * np.pi * max(t - 1.0, 0.0) / 0.5)) * ((t % 1.0) < 0.5)
        turned = pin.exp3(np.array([0.0, -angle, 0.0]))
        return pin.SE3(turned, heel - turned @ heel)

    _, tilt = drift_on_one_sole(biped, lambda _: (BENT, np.zeros(12)), 9.0, SOLES, sole=rocking)
    assert np.degrees(np.linalg.norm(tilt[:2])) < 4.3


@pytest.mark.parametrize("soles", [SOLES, ()])
def test_a_gyroscope_that_errs_as_soon_as_the_robot_steps_does_not_tilt_it(biped, soles):
    """A bias of 1.1 degrees a second that walking brings along, after 20 s that told there was none."""
    odometry, tilts = odometry_of(biped, soles), []
    for k in range(3000):
        steps = k >= 2000
        left = k // 50 % 2 == 0
        estimate = odometry.step(
            DT, np.array([0.0, 0.02 * steps, 0.0]), UP, BENT, np.zeros(12),
            [not steps or left, not steps or not left],
        )  # fmt: skip
        tilts.append(np.degrees(np.linalg.norm(estimate.rotation[2, :2])))
    assert estimate.state == RUNNING, estimate.reasons
    assert max(tilts[:2000]) < 0.1
    assert max(tilts) < 2.0 and tilts[-1] < 0.5
    assert estimate.gyroscope_bias[1] == pytest.approx(0.02, abs=2e-3)


# With few samples


def test_a_rate_that_changed_between_two_samples_makes_the_attitude_doubtful(biped):
    """By dt^2 |change|^2 / 2, a third of it about each axis: each of the two samples may be chance."""
    grown = []
    for change in (0.0, 2.0):
        odometry = odometry_of(biped)
        for k in range(60):  # no sample repeats the one before
            odometry.step(DT, np.full(3, 1e-9 * (-1) ** k), UP, BENT, np.zeros(12), [True, True])
        assert odometry.estimate.state == RUNNING
        odometry.take(DT, np.array([change, 0.0, 0.0]), UP, BENT, np.zeros(12))
        odometry._contacts[:] = 0.0
        advance(odometry.arrays)
        grown.append(np.diag(odometry._P)[:3].copy())
    np.testing.assert_allclose(grown[1] - grown[0], DT**2 * 2.0**2 / 6.0, rtol=1e-3)
