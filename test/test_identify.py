"""A robot's parameters from a log: judged by Pinocchio's inverse dynamics of an arm whose true parameters are known."""

import dataclasses
import re
import types

import numpy as np
import pinocchio as pin
import pytest
import yaml

from contact_id_controller.cli import run
from contact_id_controller.diagnosis.diagnose import diagnose
from contact_id_controller.exceptions import ConfigurationError, RecordError, UnknownJointError
from contact_id_controller.exit_codes import DONE, REFUSED
from contact_id_controller.identification.corrected import by_angle, parameter_text, write_urdf
from contact_id_controller.identification.excitation import plan_excitation
from contact_id_controller.identification.identify import identify, ratio_sd, robot_of
from contact_id_controller.identification.model_fit import Rows
from contact_id_controller.identification.pseudo_inertia import (
    Bodies,
    believed,
    parameters_of,
    pseudo_of,
    shared,
)
from contact_id_controller.identification.regressor import DriveShape
from contact_id_controller.identification.smoothing import Motion, moving, pieces, smoothed
from contact_id_controller.identification.summary import lines
from contact_id_controller.identification.told import told
from contact_id_controller.logs.log import Log
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.settings.controller import ControllerSettings

UR5 = "example-robot-data://ur_description/urdf/ur5_robot.urdf"
PANDA = "example-robot-data://panda_description/urdf/panda.urdf"
RATE_HZ, NOISE_NM = 100.0, 0.3
DRY = np.array([5.0, 6.0, 4.0, 1.0, 0.8, 0.6])
VISCOUS = np.array([8.0, 7.0, 6.0, 0.9, 0.7, 0.5])
ROTOR = np.array([2.0, 2.5, 1.2, 0.15, 0.12, 0.1])
OFFSET = np.array([0.5, -0.7, 0.4, 0.1, -0.1, 0.05])
WIDTH = 0.03
CONSTANTS = np.array([12.0, 11.0, -10.0, 8.0, 9.0, 8.5])
"""N·m/A; one motor is mounted the other way round."""


class Truth:
    """An arm that is not as its URDF says."""

    def __init__(self, seed=1):
        self.described = pin.buildModelFromUrdf(str(resolve_urdf(UR5)))
        self.model = pin.Model(self.described)
        random = np.random.default_rng(seed)
        for k in range(1, self.model.njoints):
            body = self.model.inertias[k]
            mass = body.mass * random.uniform(0.7, 1.4)
            lever = body.lever + random.uniform(-0.01, 0.01, 3)
            inertia = body.inertia * mass / body.mass * random.uniform(0.8, 1.3)
            self.model.inertias[k] = pin.Inertia(mass, lever, inertia)
        self.names = list(self.model.names)[1:]

    def torque(self, q, v, a):
        data = self.model.createData()
        rigid = np.array([pin.rnea(self.model, data, *each) for each in zip(q, v, a)])
        return rigid + ROTOR * a + DRY * np.tanh(v / WIDTH) + VISCOUS * v + OFFSET

    def motion(self, seconds, seed, still=()):
        t = np.arange(0.0, seconds, 1.0 / RATE_HZ)
        random = np.random.default_rng(seed)
        q, v, a = np.zeros((3, len(t), len(self.names)))
        for j in range(len(self.names)):
            if j in still:
                continue
            for w in 2.0 * np.pi * np.array([0.08, 0.17, 0.31, 0.53]):
                size, phase = random.uniform(0.2, 0.6) / (1.0 + w), random.uniform(0.0, 6.3)
                q[:, j] += size * np.sin(w * t + phase)
                v[:, j] += size * w * np.cos(w * t + phase)
                a[:, j] -= size * w * w * np.sin(w * t + phase)
        return t, q, v, a

    def log(self, seconds=30.0, seed=5, in_amperes=False, still=()):
        t, q, v, a = self.motion(seconds, seed, still)
        random = np.random.default_rng(seed + 100)
        torque = self.torque(q, v, a) + NOISE_NM * random.normal(size=q.shape)
        torque[: len(t) // 2 : 150] += 30.0  # what no model explains
        channel = {"current": torque / CONSTANTS} if in_amperes else {"effort": torque}
        return Log(
            t, tuple(self.names), q + 2e-5 * random.normal(size=q.shape), source="made", **channel
        )


@pytest.fixture(scope="module")
def truth():
    return Truth()


@pytest.fixture(scope="module")
def found(truth):
    return identify(truth.log(), UR5)


def random_body(random):
    points = random.normal(size=(6, 3)) * [0.1, 0.05, 0.2] + random.normal(size=3) * 0.1
    masses = random.uniform(0.1, 1.0, 6)
    return sum(
        (pin.Inertia(m, p, np.zeros((3, 3))) for m, p in zip(masses, points)), pin.Inertia.Zero()
    )


def test_pseudo_inertias_are_those_of_pinocchio():
    random = np.random.default_rng(0)
    bodies = [random_body(random) for _ in range(5)]
    parameters = np.array([body.toDynamicParameters() for body in bodies])
    for mine, body in zip(pseudo_of(parameters), bodies):
        assert mine == pytest.approx(pin.PseudoInertia.FromInertia(body).toMatrix(), abs=1e-12)
    assert parameters_of(pseudo_of(parameters)) == pytest.approx(parameters, abs=1e-12)


def test_coordinates_never_leave_bodies_that_exist_and_their_derivative_is_that():
    random = np.random.default_rng(2)
    stated = np.array([random_body(random).toDynamicParameters() for _ in range(3)])
    bodies = Bodies(believed(stated, 0.1))
    assert bodies.parameters(np.zeros(30)) == pytest.approx(stated.ravel(), abs=1e-10)
    for size in (0.1, 3.0):
        x = size * random.normal(size=30)
        assert np.linalg.eigvalsh(bodies.pseudo(x)).min() > 0.0
    x, step = 0.3 * random.normal(size=30), 1e-6
    numeric = [
        (bodies.parameters(x + step * e) - bodies.parameters(x - step * e)) / (2 * step)
        for e in np.eye(30)
    ]
    assert bodies.jacobian(x) == pytest.approx(np.array(numeric).T, abs=1e-7)


def test_the_distance_of_coordinates_does_not_depend_on_frame_or_unit():
    """|x| near 0 is the affine-invariant distance, which Pinocchio's change of frame leaves as it is."""
    random = np.random.default_rng(3)
    body = random_body(random)
    pseudo = pseudo_of(body.toDynamicParameters()[None])
    x = 1e-4 * random.normal(size=10)
    moved = Bodies(pseudo).pseudo(x)[0]
    values = np.linalg.eigvals(np.linalg.solve(pseudo[0], moved)).real
    assert np.linalg.norm(np.log(values)) == pytest.approx(np.linalg.norm(x), rel=1e-3)


def test_what_a_description_states_of_no_body_becomes_one():
    impossible = np.array([[1.0, 0, 0, 0.1, 1e-9, 0, 1e-9, 0, 0, 1.0], np.zeros(10)])
    assert np.linalg.eigvalsh(believed(impossible, 0.1)).min() > 0.0


def test_links_of_one_joint_share_what_was_found_and_each_can_exist():
    random = np.random.default_rng(4)
    parts = [pseudo_of(random_body(random).toDynamicParameters()) for _ in range(3)]
    wanted = pseudo_of(random_body(random).toDynamicParameters())
    new = shared(wanted, [*parts, np.zeros((4, 4))])
    assert sum(new) == pytest.approx(wanted, abs=1e-12)
    assert min(np.linalg.eigvalsh(each).min() for each in new) > -1e-12
    same = shared(sum(parts), parts)
    assert np.array(same) == pytest.approx(np.array(parts), abs=1e-9)


def test_smoothing_has_no_delay_and_bridges_no_gap():
    t = np.arange(0.0, 12.0, 0.005)
    t = t[(t < 5.0) | (t > 5.5)]
    w = 2.0 * np.pi * 0.7
    noise = np.random.default_rng(0).normal(size=len(t))
    q = np.column_stack([np.sin(w * t) + 1e-4 * noise, np.cos(w * t)])
    parts = pieces(t, q, None, None, 0.0 * q)
    assert len(parts) == 2 and parts[0].time[-1] < 5.0 and parts[1].time[0] > 5.5
    motion = smoothed(parts, 8.0)
    true = w * np.column_stack([np.cos(w * motion.time), -np.sin(w * motion.time)])
    assert np.abs(motion.v - true).max() < 0.02
    shift = np.polyfit(np.gradient(true[:, 1], motion.time), (motion.v - true)[:, 1], 1)[0]
    assert abs(shift) < 2e-5  # s
    assert not np.any((motion.time > 4.99) & (motion.time < 5.51))


def test_stamps_that_repeat_or_jitter_are_evened():
    t = np.arange(0.0, 5.0, 0.01) + np.random.default_rng(1).uniform(0, 0.004, 500)
    t[100] = t[99]
    q = np.sin(t)[:, None]
    (part,) = pieces(t, q, None, None, q)
    assert np.ptp(np.diff(part.time)) < 1e-9
    assert part.q[:, 0] == pytest.approx(np.sin(part.time), abs=3e-5)


def test_dry_friction_that_winds_up_turns_round_over_its_travel():
    q = np.concatenate([np.linspace(0, 1, 1001), np.linspace(1, 0, 1001)])
    z = DriveShape(0.05, True).course(q, np.gradient(q))
    assert z[900] == pytest.approx(1.0, abs=1e-6)
    at = np.searchsorted(-q[1001:], -0.95) + 1001  # .05 after it turned
    assert z[at] == pytest.approx(-1.0 + 2.0 * np.exp(-1.0), abs=0.01)


def test_a_joint_that_stands_does_not_count(truth):
    t, q, v, a = truth.motion(10.0, 3)
    v[:300, 2] = 0.0
    which = moving(Motion(t, q, v, a, q))
    assert not which[:300, 2].any() and which[300:, 2].mean() > 0.8


def test_residuals_on_the_held_out_part_are_the_noise(found):
    """The description with fitted friction leaves far more."""
    assert (found.judged.after < 1.3 * NOISE_NM).all()
    assert (found.judged.after[1:3] < 0.5 * found.judged.before[1:3]).all()
    assert found.fitted_s == pytest.approx(21.0, abs=0.2)


def test_a_ratio_has_the_standard_deviation_that_it_has():
    """Of residuals that stay what they are for 20 rows, over many draws."""
    random = np.random.default_rng(7)
    draws = random.normal(size=(200, 2, 200, 1)).repeat(20, axis=2)
    ratios = [np.sqrt(np.mean(b**2) / np.mean(a**2)) for a, b in draws]
    said = [ratio_sd(a, b)[0] for a, b in draws]
    assert np.median(said) == pytest.approx(np.std(ratios), rel=0.25)


def test_a_fit_that_gains_nothing_is_not_refused():
    """Where the description has all there is, residuals of rows that were not fitted are a little larger."""
    right = Truth()
    right.model = right.described
    t, q, v, a = right.motion(20.0, 12)
    noise = NOISE_NM * np.random.default_rng(12).normal(size=q.shape)
    torque = right.torque(q, v, a) - ROTOR * a + noise
    found = identify(Log(t, tuple(right.names), q, effort=torque, source="made"), UR5)
    assert 1.0 < found.judged.ratio.max() < 1.05 and not found.judged.worse.any()
    assert "Do not use the identified model" not in "\n".join(
        lines(found, told(found.robot, found.fit))
    )


@pytest.mark.parametrize("sd, refused", [(0.05, True), (0.2, False)])
def test_a_ratio_refuses_a_fit_only_beyond_chance(found, sd, refused):
    ratio = np.where(np.arange(6) == 1, 1.3, 0.5)
    judged = found.judged
    judged = dataclasses.replace(judged, after=ratio * judged.before, ratio_sd=np.full(6, sd))
    text = "\n".join(lines(dataclasses.replace(found, judged=judged), told(found.robot, found.fit)))
    said = (
        "Do not use the identified model: its residuals exceed those of the URDF with friction, beyond chance, "
        "at: shoulder_lift_joint."
    )
    assert (said in text) == refused and f"1.30 ± {sd:.2f}" in text


def test_a_joint_that_is_not_explained_at_all_is_told(found):
    """Its ratio may be 1: the description with friction explains as little."""
    left = np.where(np.arange(6) == 4, 4.0 * found.judged.spread, found.judged.after)
    judged = dataclasses.replace(found.judged, after=left)
    sure = told(found.robot, found.fit)
    text = "\n".join(lines(dataclasses.replace(found, judged=judged), sure))
    assert "Negative R²" in text and "torque) at: wrist_2_joint." in text
    assert "Negative R²" not in "\n".join(lines(found, sure))


def test_drives_are_recovered_within_their_standard_deviations(found):
    sure = told(found.robot, found.fit)
    true = np.column_stack([ROTOR, DRY, VISCOUS, VISCOUS, 0.0 * DRY, OFFSET])
    error = (found.fit.parameters.drives[:, :6] - true) / sure.drive_sd[:, :6]
    assert sure.drives[:, 1:4].all()
    known = sure.drives[:, :6]
    assert np.abs(error[known]).max() < 4.0
    assert np.sqrt(np.mean(error[known] ** 2)) < 1.8
    assert (sure.drive_sd[:, 1] < 0.1 * DRY).all()


def test_a_base_that_leans_a_ripple_and_friction_at_low_speed_are_found(truth):
    t, q, v, a = truth.motion(30.0, 5)
    leaning, lean = Truth(), np.array([0.02, -0.01])
    leaning.model.gravity.linear = 9.81 * np.array([*lean, -1.0])
    torque = leaning.torque(q, v, a) + NOISE_NM * np.random.default_rng(1).normal(size=q.shape)
    ripple = 2.0 * np.sin(6.0 * q[:, 5])
    torque[:, 5] += ripple
    torque[:, 3] += 4.0 * np.tanh(v[:, 3] / WIDTH) * np.exp(-np.abs(v[:, 3]) / 0.1)
    found = identify(Log(t, tuple(truth.names), q, v, a, torque, source="made"), UR5)
    assert found.lean == pytest.approx(lean, abs=0.003)
    assert by_angle(found, 5) == pytest.approx(np.std(ripple), rel=0.3)
    assert found.shapes[3].breakaway_rad_s and found.fit.parameters.drives[3, 4] > 1.0
    assert (found.judged.after < 1.3 * NOISE_NM).all()
    text = "\n".join(lines(found, told(found.robot, found.fit)))
    assert "roll 0." in text and "by its angle" in text and "breakaway" in text


def test_masses_and_moments_are_recovered_within_their_standard_deviations(truth, found):
    sure = told(found.robot, found.fit)
    true = np.array([body.toDynamicParameters() for body in list(truth.model.inertias)[1:]])
    error = (found.fit.parameters.bodies.reshape(-1, 10) - true) / np.maximum(sure.body_sd, 1e-12)
    assert np.sqrt(np.mean(error**2)) < 1.5
    assert np.linalg.eigvalsh(pseudo_of(found.fit.parameters.bodies.reshape(-1, 10))).min() > 0.0


def test_the_identified_robot_predicts_another_motion_better_than_the_description(truth, found):
    t, q, v, a = truth.motion(10.0, 77)
    expected = truth.torque(q, v, a)
    motion = smoothed(pieces(t, q, v, a, expected), 20.0, "acceleration")
    rows = Rows.of(found.robot, motion, found.shapes)
    error = np.std(rows.measured - rows.predicted(found.fit.parameters), axis=0)
    assert (error < NOISE_NM).all()


@pytest.fixture
def floating(tmp_path):
    """The UR5 described with a root that floats."""
    text = resolve_urdf(UR5).read_text()
    as_it_is = '<joint name="world_joint" type="fixed">'
    assert as_it_is in text
    file = tmp_path / "floating.urdf"
    file.write_text(text.replace(as_it_is, as_it_is.replace("fixed", "floating")))
    with pytest.raises(ConfigurationError, match="'world_joint' floats"):
        RobotModel.from_urdf(file, False)
    return str(file)


def test_a_root_that_floats_is_held_as_the_machine_is(truth, floating, tmp_path):
    """Identified and diagnosed without an IMU; refused, by a parameter that these commands lack, before."""
    log = truth.log(12.0)
    found, fixed = (identify(log, urdf) for urdf in (floating, UR5))
    np.testing.assert_allclose(found.fit.unknown, fixed.fit.unknown, atol=1e-6)
    write_urdf(found, resolve_urdf(floating), tmp_path / "found.urdf")
    assert RobotModel.from_urdf(tmp_path / "found.urdf", True).na == 6
    said = [[str(each) for each in diagnose(log, urdf).findings] for urdf in (floating, UR5)]
    assert said[0] == said[1] and said[0]


@pytest.mark.parametrize("command", ["diagnose", "identify"])
def test_a_description_that_cannot_be_read_as_a_whole_is_refused_in_one_line(
    truth, command, tmp_path, capfd
):
    """A mass that is no number was left out, and a file that breaks off was three lines of the parser."""
    text, log = resolve_urdf(UR5).read_text(), truth.log(2.0)
    rows = np.column_stack([log.time, log.position, log.effort])
    names = ["time", *(f"{kind}.{name}" for kind in ("position", "effort") for name in log.joints)]
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(names), comments="")
    heavy = re.sub(r'mass value="[^"]*"', 'mass value="heavy"', text, count=1)
    urdf = tmp_path / "robot.urdf"
    for content, words in ((text[: len(text) // 2], "cannot be read: "), (heavy, "'heavy'")):
        urdf.write_text(content)
        assert run([command, str(tmp_path / "log.csv"), "--urdf", str(urdf)]) == REFUSED
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"contact_id {command}: error: ") and words in line


def test_written_files_make_the_robot_that_was_identified(truth, found, tmp_path):
    urdf = tmp_path / "ur5.urdf"
    write_urdf(found, resolve_urdf(UR5), urdf)
    values = yaml.safe_load(parameter_text(found, urdf))["/**"]["ros__parameters"]
    settings = ControllerSettings.from_mapping(
        {**values, "joints": found.robot.joint_names, "floating_base": False}
    )
    robot = RobotModel.from_urdf(
        values["urdf"], False, found.robot.joint_names, motors=settings.motor_rows
    )
    _, q, v, a = truth.motion(2.0, 8)
    data = robot.model.createData()
    torque = np.array([pin.rnea(robot.model, data, *each) for each in zip(q, v, a)])
    torque += robot.motors.friction(v)
    expected = truth.torque(q, v, a) - OFFSET
    assert np.sqrt(np.mean((torque - expected) ** 2, axis=0)) == pytest.approx(0.0, abs=0.5)


def test_every_link_of_a_body_is_written_in_its_own_frame(tmp_path):
    """Panda's hand and fingers are links of one body when fingers are held: nothing found is nothing changed."""
    robot = robot_of(PANDA, [f"panda_joint{k}" for k in range(1, 8)])
    bodies = np.array([each.toDynamicParameters() for each in list(robot.model.inertias)[1:]])
    parameters = types.SimpleNamespace(bodies=bodies.ravel())
    nothing = types.SimpleNamespace(robot=robot, fit=types.SimpleNamespace(parameters=parameters))
    source, target = resolve_urdf(PANDA), tmp_path / "panda.urdf"
    write_urdf(nothing, source, target)
    before, after = (pin.buildModelFromUrdf(str(path)) for path in (source, target))
    for name, old, new in zip(before.names, before.inertias, after.inertias):
        assert new.toDynamicParameters() == pytest.approx(old.toDynamicParameters(), abs=1e-9), name
    parameters.bodies = (1.2 * bodies).ravel()
    write_urdf(nothing, source, target)
    after = pin.buildModelFromUrdf(str(target))
    heavier = {
        k: new.mass / old.mass
        for k, old, new in zip(before.names, before.inertias, after.inertias)
        if old.mass
    }
    assert heavier["panda_joint7"] == heavier["panda_finger_joint1"] == pytest.approx(1.2)


def test_currents_give_torque_constants_where_gravity_does(truth):
    found = identify(truth.log(in_amperes=True), UR5)
    assert found.in_amperes
    sure = told(found.robot, found.fit)
    error = np.log(1.0 / found.fit.parameters.gains / CONSTANTS)
    assert sure.gains[1:3].all()
    assert abs(error[1] - error[2]) < 3.0 * sure.gain_sd[1:3].max()
    assert (np.abs(error[1:3]) < 0.25).all()  # the scale is that of the URDF's masses
    assert (found.judged.after < 1.3 * NOISE_NM / np.abs(CONSTANTS)).all()
    assert any("Currents do not determine the scale" in line for line in lines(found, sure))


def test_a_log_with_both_gives_torque_constants_directly(truth):
    log = truth.log(12.0)
    both = Log(
        log.time, log.joints, log.position, effort=log.effort, current=log.effort / CONSTANTS
    )
    assert identify(both, UR5).measured_constants == pytest.approx(CONSTANTS, rel=1e-6)


def test_a_joint_that_stood_leaves_its_rotor_untold(truth, found):
    less = identify(truth.log(still=(0, 4)), UR5)
    sure, more = told(less.robot, less.fit), told(found.robot, found.fit)
    assert not sure.drives[[0, 4]][:, [0, 2, 3]].any()
    assert sure.known < more.known <= more.base
    text = "\n".join(lines(less, sure))
    assert re.search(r"shoulder_pan_joint +rotor \S+ ± \S+ \?", text)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("effort", [np.nan, 0.0])
def test_a_joint_without_effort_is_named_and_its_drive_is_the_descriptions(truth, effort):
    """It printed nan; an effort of 0 in all rows was fitted, and weighed down the bodies behind the joint."""
    log = truth.log(12.0)
    log.effort[:, 3] = effort
    found = identify(log, UR5)
    text = "\n".join(lines(found, told(found.robot, found.fit)))
    assert "that never changes: wrist_1_joint. Drives" in text and "nan" not in text
    assert re.search(r"wrist_1_joint +no motion with effort", text)
    assert re.search(r"wrist_1_joint +as in the URDF", text)
    masses = found.fit.parameters.bodies[::10]
    true = [body.mass for body in truth.model.inertias][1:]
    np.testing.assert_allclose(masses[3:], true[3:], rtol=0.4)


def test_base_parameters_are_as_many_as_the_rank_of_random_torques(found):
    """An independent count: numerical rank of Pinocchio's regressor with a column for each rotor."""
    model, data = found.robot.model, found.robot.model.createData()
    random = np.random.default_rng(0)
    blocks = []
    for _ in range(60):
        q, v, a = random.uniform(-3, 3, (3, 6))
        block = pin.computeJointTorqueRegressor(model, data, q, v, a)
        blocks.append(np.hstack([block, np.diag(a)]))
    assert told(found.robot, found.fit).base == np.linalg.matrix_rank(np.vstack(blocks), tol=1e-8)


def test_efforts_that_are_currents_are_noticed(truth):
    log = truth.log(12.0)
    wrong = Log(log.time, log.joints, log.position, effort=log.effort / 50.0)
    found = identify(wrong, UR5)
    assert any("name them current" in line for line in lines(found, told(found.robot, found.fit)))


def test_a_plan_keeps_the_limits_and_tells_more(truth):
    found = identify(truth.log(12.0, still=(0, 1, 2, 3)), UR5)
    plan = plan_excitation(found, 8.0, rounds=1)
    robot = found.robot
    assert (
        plan.after < 0.8 * plan.before
    )  # which is the largest that is told apart: four joints stood
    assert (np.abs(plan.v) <= robot.velocity_limits).all()
    assert (plan.q >= robot.lower).all() and (plan.q <= robot.upper).all()
    for rows in (plan.v, plan.a):
        assert np.abs(rows[[0, -1]]).max() < 0.02 * np.abs(rows).max()
    data = robot.model.createData()
    torque = np.array([pin.rnea(truth.model, data, *each) for each in zip(plan.q, plan.v, plan.a)])
    assert (np.abs(torque) <= robot.effort_limits).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"effort": None}, "neither efforts nor currents"),
        ({"position": None}, "no positions"),
        ({"joints": tuple("abcdef")}, "no joint of the log"),
    ],
)
def test_logs_that_cannot_be_fitted_are_refused(truth, change, message):
    log = truth.log(3.0)
    values = {"joints": log.joints, "position": log.position, "effort": log.effort, **change}
    with pytest.raises((RecordError, UnknownJointError), match=message) as refusal:
        identify(Log(log.time, source="made", **values), UR5)
    assert "\n" not in str(refusal.value)


def test_positions_in_degrees_and_stamps_in_milliseconds_are_refused(truth):
    log = truth.log(3.0)
    degrees = dataclasses.replace(log, position=np.degrees(log.position))
    with pytest.raises(RecordError, match="its limits are .* name the unit with --map"):
        identify(degrees, UR5)
    with pytest.raises(RecordError, match="a row every .* unit of time to ms"):
        identify(dataclasses.replace(log, time=1e3 * log.time), UR5)


def test_a_clock_that_is_set_back_divides_the_log():
    """Also where the stamps of the second motion go on beyond those of the first."""
    time = np.r_[0.005 * np.arange(400), 1.0 + 0.005 * np.arange(800)]
    q = np.r_[np.zeros(400), np.ones(800)][:, None]
    found = pieces(time, q, None, None, q)
    assert len(found) == 2
    for each, place in zip(found, (0.0, 1.0)):
        np.testing.assert_allclose(each.q, place, atol=1e-9)


def test_the_command_writes_and_judges(truth, tmp_path, refusal, capsys):
    log = truth.log(15.0)
    path, out = tmp_path / "log.npz", tmp_path / "out"
    np.savez(path, t=log.time, names=np.array(log.joints), q=log.position, tau=log.effort)
    assert run(["identify", str(path), "--urdf", UR5, "--out", str(out)]) == DONE
    printed = capsys.readouterr().out
    assert "Evaluated on 4.5 s" in printed and "shoulder_lift_joint" in printed
    assert sorted(each.name for each in out.iterdir()) == [
        "ur5_robot.urdf",
        "ur5_robot_motors.yaml",
    ]
    words, copy = ["identify", str(path), "--urdf", UR5, "--out", str(out)], tmp_path / "copy.npz"
    copy.write_bytes(path.read_bytes())
    assert "--hold-out is 1.5" in refusal(*words, "--hold-out", "1.5")
    assert "the log that is fitted" in refusal(*words, "--judge", str(path))
    assert "has the same rows as" in refusal(*words, "--judge", str(copy))
    assert run([*words[:-1], str(path)]) == REFUSED  # before anything is fitted
    assert capsys.readouterr().out == ""
