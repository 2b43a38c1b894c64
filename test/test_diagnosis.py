"""Faults planted in logs of an arm and of a robot that stands on feet: the first finding names them, and nothing else is named."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT
from recorded_motion import swaying_solo
from robots import SOLO_FEET, point_kinematics

from contact_id_controller import RobotModel
from contact_id_controller.cli import run
from contact_id_controller.diagnosis.case import in_order_of
from contact_id_controller.diagnosis.diagnose import CHECKS, diagnose, merged
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG
from contact_id_controller.diagnosis.robot_of_log import robot_of
from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL, REFUSED
from contact_id_controller.logs.log import Commands, Imu, Log

JOINTS = ("hip", "shoulder", "elbow", "wrist")
MASSES = (4.0, 5.0, 3.0, 1.5)
SOLO = "example-robot-data://solo_description/robots/solo12.urdf"


def arm_urdf(masses=MASSES, friction=0.0, roll=0.0):
    """Four joints, the first about the vertical, then two about y and one about x."""
    text = f'<robot name="arm"><link name="world"/><link name="base"/><joint name="stand" type="fixed"><parent link="world"/><child link="base"/><origin rpy="{roll} 0 0"/></joint>'
    parent, axes = "base", ("0 0 1", "0 1 0", "0 1 0", "1 0 0")
    for name, mass, axis in zip(JOINTS, masses, axes):
        text += (
            f'<link name="{name}_link"><inertial><origin xyz="0.05 0.04 0.18"/><mass value="{mass}"/>'
            f'<inertia ixx="{mass / 60}" iyy="{mass / 60}" izz="{mass / 200}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}_link"/>'
            f'<origin xyz="0 0 {0.1 if name == "hip" else 0.35}"/><axis xyz="{axis}"/>'
            f'<limit lower="-3" upper="3" effort="200" velocity="5"/><dynamics damping="0" friction="{friction}"/></joint>'
        )
        parent = f"{name}_link"
    return text + "</robot>"


@pytest.fixture(scope="module")
def urdf(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "arm.urdf"
    path.write_text(arm_urdf())
    return path


@pytest.fixture(scope="module")
def arm(urdf):
    """10 s of sines at 200 Hz: torques by Pinocchio, dry and viscous friction, and noise."""
    random = np.random.default_rng(1)
    t = 0.005 * np.arange(2000)
    q, v, a = (np.zeros((len(t), 4)) for _ in range(3))
    for k in range(4):
        for size, rate in ((0.6, 1.1 + 0.3 * k), (0.25, 3.1 + 0.7 * k)):
            phase = random.uniform(0.0, 6.0)
            q[:, k] += size * np.sin(rate * t + phase)
            v[:, k] += size * rate * np.cos(rate * t + phase)
            a[:, k] -= size * rate**2 * np.sin(rate * t + phase)
    model = pin.buildModelFromUrdf(str(urdf))
    data = model.createData()
    effort = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a)])
    wanted = effort + 0.8 * np.tanh(v / 0.03) + 0.5 * v
    return Log(
        time=t + random.normal(0.0, 1e-5, len(t)),
        joints=JOINTS,
        position=q + random.normal(0.0, 1e-5, q.shape),
        velocity=v + random.normal(0.0, 2e-3, v.shape),
        effort=wanted + random.normal(0.0, 0.1, q.shape),
        commands=Commands(position=q, effort=wanted),
        source="arm",
    )


def scaled(log, channels, factor, joint=None):
    times = np.ones(len(log.joints))
    times[slice(None) if joint is None else log.joints.index(joint)] = factor
    return dataclasses.replace(log, **{name: getattr(log, name) * times for name in channels})


def shifted(log, joint, by):
    return dataclasses.replace(
        log, position=log.position + by * np.array([n == joint for n in log.joints])
    )


def swapped(log, a, b):
    names = tuple({a: b, b: a}.get(name, name) for name in log.joints)
    return dataclasses.replace(in_order_of(log, names), joints=log.joints)


def late_effort(log, seconds):
    columns = [np.interp(log.time - seconds, log.time, column) for column in log.effort.T]
    return dataclasses.replace(log, effort=np.column_stack(columns))


MOTION = ("position", "velocity")
MODEL_FAULTS = {
    "order of joints": lambda log: swapped(log, "shoulder", "elbow"),
    "sign of joints": lambda log: scaled(log, MOTION, -1.0, "elbow"),
    "gear ratios": lambda log: scaled(log, MOTION, 1.3, "elbow"),
    "torque constants": lambda log: scaled(
        dataclasses.replace(log, commands=Commands()), ("effort",), 0.8, "elbow"
    ),
    "unit of the efforts": lambda log: scaled(
        dataclasses.replace(log, commands=Commands()), ("effort",), 1e3
    ),
}
LOG_FAULTS = {
    "units of angles": lambda log: scaled(log, ("position",), 180.0 / np.pi),
    "sign and gear ratio of velocities": lambda log: scaled(log, ("velocity",), -1.0, "wrist"),
    "stamps": lambda log: log.rows((log.time < 4.0) | (log.time > 4.2)),
    "dropped messages": lambda log: log.rows(np.random.default_rng(0).random(len(log.time)) > 0.07),
    "saturation": lambda log: dataclasses.replace(log, effort=np.clip(log.effort, -15.0, 15.0)),
    "quantisation": lambda log: dataclasses.replace(log, position=np.round(log.position, 2)),
    "loop delay": lambda log: late_effort(log, 0.03),
    "tracking error": lambda log: dataclasses.replace(
        log, commands=Commands(position=log.position + 0.3 * np.tanh(log.velocity / 0.03))
    ),
}


def test_nothing_is_named_in_a_log_without_fault(arm, urdf):
    diagnosis = diagnose(arm, urdf)
    assert not diagnosis.wrong and not diagnosis.fragment
    verdicts = {each.check: each for each in diagnosis.findings}
    assert verdicts["zero offsets"].verdict == FINE and verdicts["IMU mounting"].verdict == UNKNOWN
    assert all(each.change for each in diagnosis.findings if each.verdict != FINE)
    assert all("\n" not in str(each) for each in diagnosis.findings)


@pytest.mark.parametrize("check", [*MODEL_FAULTS, *LOG_FAULTS])
def test_a_fault_of_an_arm_is_named_first(arm, urdf, check):
    """Those of the log alone also without a description."""
    change = MODEL_FAULTS.get(check) or LOG_FAULTS[check]
    wrong = diagnose(change(arm), urdf if check in MODEL_FAULTS else None).wrong
    assert wrong and wrong[0].check == check, [str(each) for each in wrong]
    if check in ("zero offsets", "gear ratios"):  # their picture is of efforts over the log's time
        picture = wrong[0].picture
        assert picture.x_label == "time, s" and 0.5 < np.ptp(picture.x) / np.ptp(arm.time) <= 1.0


@pytest.mark.parametrize(
    "check, changes",
    [
        ("mass and payload", {"masses": [1.12 * mass for mass in MASSES]}),
        ("gravity", {"roll": np.pi / 2}),
        ("friction", {"friction": 0.4}),
    ],
)
def test_a_fault_of_the_description_is_named_first(arm, tmp_path, check, changes):
    (tmp_path / "arm.urdf").write_text(arm_urdf(**changes))
    wrong = diagnose(arm, tmp_path / "arm.urdf").wrong
    assert wrong and wrong[0].check == check, [str(each) for each in wrong]


def test_friction_that_is_stated_as_next_to_none_is_none(arm, tmp_path):
    """A hundred times .003 N·m was named on a Panda, whose URDF has that for numerical reasons."""
    (tmp_path / "arm.urdf").write_text(arm_urdf(friction=0.003))
    assert not diagnose(arm, tmp_path / "arm.urdf").wrong


@pytest.mark.parametrize("factor", [1e3, 1e9])
def test_stamps_in_other_units_are_the_only_fault(arm, urdf, factor):
    found = diagnose(dataclasses.replace(arm, time=factor * arm.time), urdf).findings
    assert [each.check for each in found if each.verdict == WRONG] == ["stamps"]


def test_a_clock_that_was_set_back_is_the_only_fault(arm, urdf):
    time = arm.time - 5.0 * (np.arange(len(arm.time)) > 1400)
    found = diagnose(dataclasses.replace(arm, time=time), urdf).findings
    assert [each.check for each in found if each.verdict == WRONG] == ["stamps"]


@pytest.mark.parametrize(
    "drift, verdict",
    [(1e-4, FINE), (0.005, WRONG), (-0.005, WRONG), (0.8, UNKNOWN), (-0.5, UNKNOWN)],
)
def test_no_clock_drifts_like_simulated_time(arm, urdf, drift, verdict):
    """In lockstep a second of simulated time takes what computing takes."""
    late = np.random.default_rng(4).exponential(2e-4, len(arm.time))
    arrived = dataclasses.replace(arm, arrival=arm.time * (1.0 + drift) + late)
    found = {each.check: each for each in diagnose(arrived, urdf).findings}
    assert found["clocks"].verdict == verdict, str(found["clocks"])


def driven(log, **changes):
    """What commands say of a log: delay of the loop and torque constants."""
    found = diagnose(dataclasses.replace(log, **changes)).findings
    return [each for each in found if each.check in ("loop delay", "torque constants")]


def test_friction_that_delays_one_joint_is_no_delay_of_the_loop(arm):
    late = np.where(np.arange(4) == 3, late_effort(arm, 0.03).effort, arm.effort)
    assert [each.verdict for each in driven(arm, effort=late)] == [FINE, FINE]
    moves = np.arange(4) == 3  # alone
    motion = {name: getattr(arm, name) * moves for name in MOTION}
    delay = driven(arm, effort=late, **motion)[-1]
    assert delay.verdict == UNKNOWN and "friction" in delay.text


def test_a_joint_that_stands_tells_no_torque_constant(arm):
    """Its dry friction holds what gravity asks for, or more."""
    stands = np.arange(4) == 1
    motion = {name: getattr(arm, name) * ~stands for name in MOTION}
    held = driven(arm, effort=np.where(stands, 3.0, 1.0) * arm.effort, **motion)
    assert all(each.verdict == FINE for each in held), held


def test_a_load_that_commands_do_not_know_is_no_torque_constant(arm):
    loaded = driven(arm, effort=np.array([1.0, 1.25, 1.35, 1.2]) * arm.effort)
    constants = next(each for each in loaded if each.check == "torque constants")
    assert constants.verdict == UNKNOWN and "a load" in constants.text


@pytest.mark.parametrize("share", [0.8, 1.3])
def test_a_constant_that_all_drives_share_is_told(arm, share):
    """No load is felt by all joints in the same ratio to what was commanded."""
    found = driven(arm, effort=share * arm.effort)
    constants = next(each for each in found if each.check == "torque constants")
    assert (
        constants.verdict == WRONG and f"all 4 joints that follow are {share:.2f}" in constants.text
    )
    times = [rule["times"] for rule in constants.fragment["correct"]["effort"].values()]
    assert times == pytest.approx(4 * [1.0 / share], rel=0.02)


def test_what_is_pasted_mends_the_log(arm, urdf):
    """The values are those that were planted, and the corrected log has no fault."""
    from contact_id_controller.logs.column_map import ColumnMap
    from contact_id_controller.logs.reader import corrected

    log = shifted(arm, "elbow", 0.1)
    fragment = diagnose(log, urdf).fragment
    assert fragment["correct"]["position"]["elbow"]["plus"] == pytest.approx(-0.1, abs=0.01)
    assert not diagnose(corrected(log, ColumnMap({}, **fragment)), urdf).wrong


def test_fragments_of_two_faults_are_one():
    a = {"correct": {"effort": {"elbow": {"times": 2.0}}}}
    b = {
        "correct": {"effort": {"elbow": {"times": -1.0}, "hip": {"times": 3.0}}},
        "units": {"time": "ms"},
    }
    assert merged(a, b) == {
        "correct": {"effort": {"elbow": {"times": -2.0}, "hip": {"times": 3.0}}},
        "units": {"time": "ms"},
    }


@pytest.fixture(scope="module")
def legs():
    """Solo12 sways on its feet with an IMU, which a planted truth of Pinocchio makes; one foot is lifted."""
    random, dt, skip = np.random.default_rng(2), 1e-3, 4
    robot = RobotModel.from_urdf(SOLO)
    rows = int(0.9 * 3000)  # then it leaves the ground
    motion = {name: values[:rows] for name, values in swaying_solo(robot, 3000, dt).items()}
    q, v = motion["q"], motion["v"]
    turns = np.array([pin.Quaternion(*row[[6, 3, 4, 5]]).toRotationMatrix() for row in q])
    speed = np.einsum("nij,nj->ni", turns, v[:, :3])
    force = np.gradient(speed, dt, axis=0) + [0.0, 0.0, 9.81]
    loads = np.full((rows, 4), robot.weight / 4.0)
    lifted = np.arange(rows) >= 1500
    loads[lifted] = robot.weight / 3.0 * (np.arange(4) != 1)
    loads += np.abs(random.normal(0.0, 0.05, loads.shape))
    every = slice(0, rows, skip)
    time = motion["time_s"][every]
    imu = Imu(
        time,
        v[every, 3:6] + random.normal(0.0, 2e-3, (len(time), 3)),
        np.einsum("nji,nj->ni", turns, force)[every] + random.normal(0.0, 0.05, (len(time), 3)),
    )
    return Log(
        time=time - time[0],
        joints=tuple(robot.joint_names),
        position=robot.joints_of(q)[every],
        velocity=v[every, 6:],
        imu=dataclasses.replace(imu, time=time - time[0]),
        feet={name: loads[every, k : k + 1] for k, name in enumerate(SOLO_FEET)},
        source="legs",
    )


@pytest.fixture(scope="module")
def walk():
    """What a bag of joint states alone has of Solo12 that sways while its weight goes from one pair of feet to the other."""
    random, dt, rows = np.random.default_rng(3), 1e-3, 2700
    robot = RobotModel.from_urdf(SOLO)
    motion = {name: values[:rows] for name, values in swaying_solo(robot, 3000, dt).items()}
    q, v = motion["q"], motion["v"]
    a, time = np.gradient(v, dt, axis=0), motion["time_s"]
    share = 0.25 + 0.25 * np.sin(2.0 * np.pi * 2.5 * time)
    loads = robot.weight * np.column_stack([share, 0.5 - share, 0.5 - share, share])
    effort = []
    for row in zip(q, v, a, loads):
        points, _ = point_kinematics(robot, *row[:2], SOLO_FEET)
        ground = points.T @ np.kron(row[3], [0.1, 0.0, 1.0])
        effort.append((pin.rnea(robot.model, robot.data, *row[:3]) - ground)[robot.actuated])
    return Log(
        time=time - time[0],
        joints=tuple(robot.joint_names),
        position=robot.joints_of(q),
        velocity=v[:, robot.actuated],
        effort=np.array(effort) + random.normal(0.0, 0.02, (rows, robot.na)),
        source="walk",
    )


def test_efforts_of_a_walk_without_imu_tell_nothing_of_its_joints(walk):
    """Forces of the ground look like faults of joints where the base is taken to be held."""
    found = diagnose(walk, SOLO)
    assert not found.wrong, [str(each) for each in found.wrong]
    verdicts = {each.check: each for each in found.findings}
    for check in ("sign of joints", "zero offsets", "gravity", "friction"):
        assert verdicts[check].verdict == UNKNOWN
    assert verdicts["zero offsets"].text == "the legs carry the robot"
    assert "an IMU" in verdicts["zero offsets"].change


def with_imu(log, **changes):
    return dataclasses.replace(log, imu=dataclasses.replace(log.imu, **changes))


TURN = pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2)
LEG_FAULTS = {
    "IMU mounting": lambda log: with_imu(
        log, angular_velocity=log.imu.angular_velocity @ TURN, acceleration=log.imu.acceleration @ TURN
    ),
    "delay of the IMU": lambda log: with_imu(log, time=log.imu.time + 0.02),
    "unit of the accelerometer": lambda log: with_imu(log, acceleration=log.imu.acceleration / 9.80665),
    "sign of joints": lambda log: scaled(log, MOTION, -1.0, "FL_KFE"),
    "order of feet": lambda log: dataclasses.replace(
        log, feet=dict(zip(log.feet, [*log.feet.values()][::-1]))
    ),
    "contact sensors": lambda log: dataclasses.replace(
        log, feet={**log.feet, "FR_FOOT": log.feet["FR_FOOT"] * 0.6 + 2.0}
    ),
}  # fmt: skip


def test_nothing_is_named_in_legs_without_fault(legs):
    wrong = diagnose(legs, SOLO).wrong
    assert not wrong, [str(each) for each in wrong]


@pytest.mark.parametrize("check", LEG_FAULTS)
def test_a_fault_of_legs_is_named_first(legs, check):
    wrong = diagnose(LEG_FAULTS[check](legs), SOLO).wrong
    assert wrong and wrong[0].check == check, [str(each) for each in wrong]


@pytest.fixture(scope="module")
def without_foot_sensors(legs):
    """The same with the efforts that the feet's loads need, instead of their sensors."""
    robot, q, efforts = (
        RobotModel.from_urdf(SOLO),
        pin.neutral(RobotModel.from_urdf(SOLO).model),
        [],
    )
    for joints, *loads in zip(legs.position, *legs.feet.values()):
        q[7:] = joints
        points, _ = point_kinematics(robot, q, np.zeros(robot.nv), SOLO_FEET)
        ground = points.T @ np.kron(np.ravel(loads), [0.1, 0.0, 1.0])
        weight = pin.computeGeneralizedGravity(robot.model, robot.data, q)
        efforts.append((weight - ground)[robot.actuated])
    noise = np.random.default_rng(5).normal(0.0, 0.02, (len(efforts), robot.na))
    return dataclasses.replace(legs, feet={}, effort=np.array(efforts) + noise)


@pytest.mark.parametrize("check", ["", "IMU mounting", "delay of the IMU", "sign of joints"])
def test_efforts_say_which_legs_stand_where_no_sensor_does(without_foot_sensors, check):
    """The base odometry doubts efforts that lack what accelerates the legs, and is judged elsewhere."""
    log = LEG_FAULTS[check](without_foot_sensors) if check else without_foot_sensors
    found = diagnose(log, SOLO)
    wrong = [each.check for each in found.wrong if each.check != "base odometry"]
    assert wrong[:1] == ([check] if check else []), found.wrong
    verdicts = {each.check: each.verdict for each in found.findings}
    assert verdicts["zero offsets"] == FINE and verdicts["order of feet"] == UNKNOWN


def test_the_parameter_file_says_in_which_frame_the_imu_is(legs, tmp_path):
    """ANYmal's URDF has an IMU turned about the vertical, which the shipped file does not use."""
    urdf = "example-robot-data://anymal_c_simple_description/urdf/anymal.urdf"
    log = dataclasses.replace(legs, joints=tuple(RobotModel.from_urdf(urdf).joint_names))
    shipped, own = ROOT / "config" / "anymal_c.yaml", tmp_path / "own.yaml"
    line = "dynamics_estimator:\n  ros__parameters:\n"
    text = shipped.read_text()
    assert line in text
    own.write_text(text.replace(line, f"{line}    imu_frame: LF_HIP\n"))
    found = [robot_of(log, urdf, config).imu_frame for config in (None, shipped, own)]
    assert found == ["imu_link", "", "LF_HIP"]


def test_a_threshold_above_what_sensors_read_in_the_air_is_fine(legs, tmp_path):
    """Feet that touch down and lift off pass every small load: that is not noise."""
    rise = np.minimum(1.0, np.arange(len(legs.time)) % 200 / 60.0)[:, None]
    feet = {name: rise * values for name, values in legs.feet.items()}
    config = tmp_path / "solo.yaml"
    text = (ROOT / "config" / "solo12.yaml").read_text()
    for on, verdict in ((1.0, FINE), (0.05, WRONG), (8.0, WRONG)):
        line = f"    period_s: 0.001\n    contact_force_on_n: {on}\n"
        config.write_text(text.replace("    period_s: 0.001\n", line, 1))
        found = {
            each.check: each
            for each in diagnose(dataclasses.replace(legs, feet=feet), None, config).findings
        }
        assert found["contact thresholds"].verdict == verdict, (
            on,
            str(found["contact thresholds"]),
        )


def test_the_command_prints_a_line_each_and_writes_page_and_fragment(arm, urdf, tmp_path, capsys):
    log = shifted(arm, "elbow", 0.1)
    np.savez(
        tmp_path / "log.npz",
        t=log.time,
        names=np.array(JOINTS),
        q=log.position,
        v=log.velocity,
        tau=log.effort,
    )
    page, fragment = tmp_path / "page.html", tmp_path / "map.yaml"
    words = ["diagnose", str(tmp_path / "log.npz"), "--urdf", str(urdf)]
    assert run([*words, "--page", str(page), "--fragment", str(fragment)]) == NOT_ALL_WELL
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("zero offsets: wrong: elbow is +5.")
    assert "data:image/png" in page.read_text() and "zero offsets" in page.read_text()
    assert run([*words, "--map", str(fragment), "--quiet"]) == DONE
    assert capsys.readouterr().out == ""
    assert run(["diagnose", str(page)]) == REFUSED


def test_every_row_says_what_it_looks_at_and_needs():
    assert all(each.what and each.needs for each in CHECKS) and WRONG != FINE
