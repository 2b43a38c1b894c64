"""`contact_id new`: robots that no configuration ships walk, stand or move from their URDF alone."""

import re
import time
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import CONFIG, QUADRUPED_URDF

from contact_id_controller.check.config import check_config
from contact_id_controller.check.findings import ERROR
from contact_id_controller.cli import run
from contact_id_controller.exceptions import ConfigurationError, RobotDescriptionError
from contact_id_controller.exit_codes import DONE
from contact_id_controller.new_robot.anatomy import anatomy
from contact_id_controller.new_robot.feet_from_shapes import sole
from contact_id_controller.new_robot.first_parameters import propose
from contact_id_controller.new_robot.searched import searched, shapes
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.runs.one_process import InProcessRun, mujoco_robot
from contact_id_controller.runs.perturbed_runs import Case
from contact_id_controller.runs.perturbed_runs import run as perturbed
from contact_id_controller.runs.record import merge_records
from contact_id_controller.runs.ros_run import run_nodes
from contact_id_controller.runs.setup import CONTROLLER_RECORD, ROBOT_RECORD, make_setup
from contact_id_controller.runs.supervisor import Supervisor
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.settings.robot_rows import FeetRows

ROBOTS = "example-robot-data://"
A1 = ROBOTS + "a1_description/urdf/a1.urdf"
HYQ = ROBOTS + "hyq_description/robots/hyq_no_sensors.urdf"
B1 = ROBOTS + "b1_description/urdf/b1.urdf"
UR5 = ROBOTS + "ur_description/urdf/ur5_robot.urdf"
KINOVA = ROBOTS + "kinova_description/robots/kinova.urdf"
TIAGO = ROBOTS + "tiago_description/robots/tiago.urdf"
G1 = ROBOTS + "g1_description/urdf/g1_29dof_rev_1_0.urdf"
BOLT = ROBOTS + "bolt_description/robots/bolt.urdf"
SOLO8 = ROBOTS + "solo_description/robots/solo.urdf"
ROMEO = ROBOTS + "romeo_description/urdf/romeo.urdf"
ICUB = ROBOTS + "icub_description/robots/icub_reduced.urdf"
TALOS_ARM = ROBOTS + "talos_data/robots/talos_left_arm.urdf"
BAXTER = ROBOTS + "baxter_description/urdf/baxter.urdf"
PR2 = ROBOTS + "pr2_description/urdf/pr2.urdf"
ANYMAL_WITH_ARM = ROBOTS + "anymal_b_simple_description/robots/anymal-kinova.urdf"
TALOS = ROBOTS + "talos_data/robots/talos_reduced.urdf"


@pytest.fixture
def new(tmp_path):
    """Writes a file by the command; gives its path."""

    def write(urdf, *options):
        file = tmp_path / "robot.yaml"
        assert run(["new", urdf, "--output", str(file), *options]) == DONE
        return file

    return write


def errors(file):
    return [str(finding) for finding in check_config(file) if finding.level == ERROR]


def walked(file, seconds):
    """Record of a walk as a file has it, without a fall and at half its speed at least from .5 s on."""
    assert errors(file) == []
    settings = load_settings(file)
    world = mujoco_robot(settings, settings.friction_coefficient[0])
    walk = InProcessRun(str(file), settings, world).record(seconds)
    assert not walk.fell
    speed = ParameterFile(file).section("gait_planner")["speed_m_s"]
    assert walk.q[-1, 0] - walk.q[0, 0] > 0.5 * speed * (seconds - 0.5)
    return walk


@pytest.mark.parametrize("urdf", [A1, HYQ, B1])
def test_a_quadruped_trots_as_it_is_written(new, urdf):
    walk = walked(new(urdf), 2.5)
    assert np.abs(walk.reference_position - walk.position).mean() < 0.05


def test_the_estimator_of_a_new_robot_walks_on_the_floor_of_the_shipped_ones(new):
    """Without it torques of a walk on the estimate change 2.5 times as fast."""
    level = [
        ParameterFile(file).section("dynamics_estimator")["ground_height_noise_m"]
        for file in (new(A1), CONFIG / "solo12.yaml")
    ]
    assert level[0] == level[1]


def test_legs_that_lie_level_at_zero_are_legs_whatever_the_names(new, tmp_path):
    """The quadruped's legs are stretched out at zero; here every link and joint is called otherwise."""
    text = QUADRUPED_URDF.read_text().replace('name="quadruped"', 'name="hound"')
    for k, name in enumerate(sorted(set(re.findall(r'(?:joint|link) name="([^"]+)"', text)))):
        text = text.replace(f'"{name}"', f'"part_{k}"')
    urdf = tmp_path / "hound.urdf"
    urdf.write_text(text)
    file = new(str(urdf))
    assert errors(file) == []
    settings = load_settings(file)
    assert settings.floating_base and len(settings.foot_frames) == 4
    world = mujoco_robot(settings, settings.friction_coefficient[0])
    walk = InProcessRun(str(file), settings, world).record(2.5)
    assert not walk.fell and walk.q[-1, 0] - walk.q[0, 0] > 0.1
    assert np.abs(walk.reference_position - walk.position).mean() < 0.05


WHEEL = 'type="continuous"><axis xyz="0 1 0"/><limit effort="9" velocity="9"/>'


@pytest.mark.parametrize(
    "as_it_is, changed",
    [
        pytest.param(
            '"floating_base" type="fixed"', '"floating_base" type="floating"', id="own free joint"
        ),
        pytest.param(
            r'thigh_joint" type="revolute"', 'thigh_joint" type="continuous"', id="no ends"
        ),
        pytest.param(r'foot_fixed" type="fixed">', f'foot_fixed" {WHEEL}', id="wheels"),
    ],
)
def test_a_quadruped_trots_however_its_joints_are_described(new, tmp_path, as_it_is, changed):
    """Its meshes are not available either."""
    file = new(str(description(tmp_path, A1, as_it_is, changed)))
    assert len(load_settings(file).foot_frames) == 4
    walked(file, 1.5)


def description(tmp_path, urdf, as_it_is, changed):
    text = resolve_urdf(urdf).read_text()
    assert as_it_is in text
    file = tmp_path / "changed.urdf"
    file.write_text(text.replace(as_it_is, changed))
    return file


def test_wheels_are_locked_and_it_says_so(tmp_path, capsys):
    urdf = description(tmp_path, A1, 'foot_fixed" type="fixed">', f'foot_fixed" {WHEEL}')
    assert run(["new", str(urdf), "--output", str(tmp_path / "a.yaml")]) == DONE
    assert "wheels are locked, and feet: FL_foot_fixed, FR_foot_fixed, " in capsys.readouterr().out
    assert load_settings(tmp_path / "a.yaml").locked["RR_foot_fixed"] == 0.0


def test_a_shank_that_turns_without_end_is_no_wheel(new, tmp_path):
    """Its mass is beside its axis. A wheel's is not."""
    urdf = description(tmp_path, A1, 'calf_joint" type="revolute"', 'calf_joint" type="continuous"')
    found = searched(urdf)
    assert not found.limbs.wheels and [len(leg) for leg in found.limbs.legs] == [3] * 4
    assert ParameterFile(new(str(urdf))).section("gait_planner")["gait"] == "trot"


def test_two_limbs_with_joints_without_end_are_arms_and_it_says_so(tmp_path, capsys):
    endless = 'knee_joint" type="revolute"', 'knee_joint" type="continuous"'
    urdf, file = description(tmp_path, G1, *endless), tmp_path / "robot.yaml"
    assert run(["new", str(urdf), "--output", str(file)]) == DONE
    why = "2 limbs reach down, but are no legs, with joints without end: left_knee_joint, right_knee_joint"
    assert why in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match=f"{why}; no legs to stand on"):
        propose(str(urdf), True)


def test_a_joint_of_unlimited_effort_has_no_drive_that_is_known(tmp_path):
    """TIAGo's second casters: the last of their limbs, without a limit."""
    dual = ROBOTS + "tiago_description/robots/tiago_dual.urdf"
    assert {
        f"caster_{end}_{side}_2_joint" for end in ("front", "back") for side in ("left", "right")
    } < set(searched(dual).limbs.held)


def test_a_refusal_says_what_was_taken_for_legs_and_how_to_say_that_it_is_none(refusal, tmp_path):
    """A torso with two arms; and soles across the feet."""
    for name, legs in (
        ("alex_description/urdf/alex_nub_hands.urdf", "LeftGripperYaw, RightGripperYaw"),
        ("alex_description/urdf/alex_sake_hands.urdf", "Left_GRIPPER_X1, Right_GRIPPER_X1"),
        ("icub_description/robots/icub.urdf", "r_ankle_roll, l_ankle_roll"),
    ):
        line = refusal("new", ROBOTS + name, "--output", str(tmp_path / "robot.yaml"))
        assert f"legs are taken to end with {legs}: if these are no legs, --base fixed" in line
        assert (
            run(
                [
                    "new",
                    ROBOTS + name,
                    "--base",
                    "fixed",
                    "--output",
                    str(tmp_path / f"{legs}.yaml"),
                ]
            )
            == DONE
        )


def test_a_foot_without_width_is_refused_by_its_joint(refusal, tmp_path):
    urdf = ROBOTS + "romeo_description/urdf/romeo_laas_small.urdf"
    line = refusal("new", urdf, "--output", str(tmp_path / "robot.yaml"))
    assert "the lowest shape of the foot behind joint 'LAnkleRoll_joint' is 290 x 0 mm" in line


def test_a_free_base_of_the_description_cannot_be_bolted(tmp_path):
    urdf = description(
        tmp_path, A1, '"floating_base" type="fixed"', '"floating_base" type="floating"'
    )
    with pytest.raises(ConfigurationError, match="'floating_base' floats: floating_base is false"):
        RobotModel.from_urdf(urdf, floating_base=False)
    own, given = RobotModel.from_urdf(urdf), RobotModel.from_urdf(A1)
    assert own.joint_names == given.joint_names and own.nv == given.nv
    assert np.isclose(own.mass, given.mass)


def test_a_joint_without_end_needs_no_limit_and_a_description_any_order_or_encoding(tmp_path):
    text = (
        resolve_urdf(A1)
        .read_text()
        .replace('"FL_hip_joint" type="revolute"', '"FL_hip_joint" type="continuous"')
    )
    text = re.sub(r'(<joint name="FL_hip_joint".*?)<limit[^>]*/>', r"\1", text, count=1, flags=re.S)
    file = tmp_path / "free.urdf"
    file.write_text(text)
    assert len(searched(file).limbs.legs) == 3  # the fourth has a joint without a drive
    root = ElementTree.fromstring(
        resolve_urdf(A1)
        .read_text()
        .replace('thigh_joint" type="revolute', 'thigh_joint" type="continuous')
    )
    root[:] = reversed(list(root))
    head = '<?xml version="1.0" encoding="ISO-8859-1"?><!-- é -->'
    file.write_bytes((head + ElementTree.tostring(root, encoding="unicode")).encode("latin-1"))
    assert len(searched(file).limbs.legs) == 4
    assert RobotModel.from_urdf(file).na == 12


def test_legs_hang_on_a_waist_where_the_trunk_is_the_base(tmp_path):
    legs = legs_of(tmp_path, limbs=2, bends=3.0, waist=True)
    assert [len(leg) for leg in legs] == [3, 3]


def test_a_sole_is_found_by_what_is_seen_and_where_other_meshes_are_missing(tmp_path):
    """Shapes of the foot: of G1 without collisions, whose trunk has a mesh that is nowhere."""
    file = resolve_urdf(G1)
    text = re.sub("<collision>.*?</collision>", "", file.read_text(), flags=re.S)
    text = text.replace("torso_link_rev_1_0.STL", "nowhere.STL")
    text = re.sub(
        "(<visual>.*?</visual>)",
        lambda shape: shape[0].replace(" name=", " no_name="),
        text,
        flags=re.S,
    )
    assert "nowhere" in text and "no_name" in text
    (tmp_path / "example-robot-data").mkdir()
    (tmp_path / "example-robot-data" / "robots").symlink_to(file.parents[2])
    changed = tmp_path / "changed.urdf"
    changed.write_text(text)
    found = searched(changed)
    feet = [
        sole(found.robot.model, found.limbs.posture, leg[-1], shapes(found))
        for leg in found.limbs.legs
    ]
    assert all(
        0.08 < foot.half_size_m[0] < 0.12 and 0.02 < foot.half_size_m[1] < 0.05 for foot in feet
    )


def test_a_finger_that_cannot_move_is_held(tmp_path):
    text = resolve_urdf(TIAGO).read_text()
    still = re.sub(
        r'(name="hand_thumb_joint".*?lower=)"[^"]*"( upper=)"[^"]*"',
        r'\1"0"\2"0"',
        text,
        flags=re.S,
    )
    assert still != text
    (tmp_path / "tiago.urdf").write_text(still)
    shared = yaml.safe_load(propose(str(tmp_path / "tiago.urdf")).text)["/**"]["ros__parameters"]
    assert "hand_thumb_joint" in shared["locked_joints"]


def test_two_arms_that_lie_level_at_zero_are_no_legs(tmp_path):
    """Nor are three that cannot hang down."""
    assert not legs_of(tmp_path, limbs=2, bends=3.0)
    assert len(legs_of(tmp_path, limbs=3, bends=3.0)) == 3
    assert not legs_of(tmp_path, limbs=3, bends=0.7)


def legs_of(tmp_path, limbs, bends, waist=False):
    """Of a robot whose limbs, of three joints each, point forwards at zero; below a waist they hang down."""
    body = '<inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = f'<robot name="level"><link name="trunk">{body}</link>'
    if waist:
        text += (
            f'<link name="hips">{body}</link><joint name="waist" type="revolute"><parent link="trunk"/>'
            '<child link="hips"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
        )
    for limb in range(limbs):
        parent, way = ("hips", "0 0 -0.2") if waist else ("trunk", "0.2 0 0")
        for k, axis in enumerate(("1 0 0", "0 1 0", "0 1 0")):
            text += (
                f'<link name="l{limb}{k}">{body}</link><joint name="j{limb}{k}" type="revolute">'
                f'<parent link="{parent}"/><child link="l{limb}{k}"/><origin xyz="{way}"/><axis xyz="{axis}"/>'
                f'<limit lower="{-bends}" upper="{bends if k == 1 else 0.1}" effort="9" velocity="9"/></joint>'
            )
            parent = f"l{limb}{k}"
    path = tmp_path / "level.urdf"
    path.write_text(text + "</robot>")
    return anatomy(pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())).legs


@pytest.mark.parametrize("urdf", [G1, TALOS, BOLT])
def test_two_legs_walk_as_they_are_written(new, urdf):
    walked(new(urdf), 4.0)


def test_a_heavier_robot_on_two_legs_walks_on_its_estimate(new):
    """What its wrong masses seem to press on a foot in the air was taken for a landing: it fell at .41 s."""
    outcome = perturbed(Case(str(new(G1)), "mass", 0.07, seconds=1.5, sensors="good"))
    assert outcome.failed_s is None and outcome.joint_error_rad < 0.06


def test_two_legs_on_their_estimate_that_are_told_level_walk_uphill(new):
    """The odometry saw the slope after some steps only, and took soles on their heels for flat: it fell at 5.6 s."""
    outcome = perturbed(Case(str(new(TALOS)), "slope", 5.0, seconds=6.0, sensors="good"))
    assert outcome.failed_s is None and outcome.joint_error_rad < 0.05


def test_what_one_leg_cannot_bear_stands_and_it_says_which_joint_is_too_weak(tmp_path, capsys):
    """Romeo's knee has 38.2 N·m; on one leg it walked until 1.2 s."""
    file = tmp_path / "romeo.yaml"
    assert run(["new", ROMEO, "--output", str(file)]) == DONE
    assert "KneePitch' would need 35.4 N·m of 38.2" in capsys.readouterr().out
    assert "gait_planner" not in ParameterFile(file)


@pytest.mark.parametrize("urdf", [TALOS_ARM, BAXTER, PR2])
def test_an_arm_keeps_torque_to_move(new, urdf):
    """In the middle of the ranges shoulders have 95 % of their torque, or lack some: 5 % more mass, and Baxter fell."""
    file = new(urdf)
    assert errors(file) == []
    motion = ParameterFile(file).section("joint_motion")["positions"]
    robot = load_settings(file).robot()
    gravity = pin.computeGeneralizedGravity(
        robot.model, robot.model.createData(), robot.configuration(None, motion[: robot.na])
    )
    share = np.abs(gravity[robot.actuated] / robot.effort_limits).max()
    assert share < (0.95 if urdf == PR2 else 0.6)  # PR2's shoulders bear no more anywhere


@pytest.mark.parametrize("urdf", [ROMEO, SOLO8])
def test_what_has_no_gait_stands_as_it_is_written(new, urdf):
    file = new(urdf)
    assert errors(file) == []
    settings = load_settings(file)
    world = mujoco_robot(settings, settings.friction_coefficient[0])
    stands = InProcessRun(str(file), settings, world, plan=lambda *_: None).record(1.0)
    assert not stands.fell
    assert np.linalg.norm(stands.q[-1, :3] - stands.q[0, :3]) < 0.01


def test_legs_of_two_joints_are_legs_and_it_says_what_they_lack(tmp_path, capsys):
    file = tmp_path / "solo8.yaml"
    assert run(["new", SOLO8, "--output", str(file)]) == DONE
    out = capsys.readouterr().out
    assert "4 legs of 0.32 m" in out and "legs of 3 joints or more" in out
    assert "no section dynamics_estimator: the sensors leave" in out
    assert "dynamics_estimator" not in ParameterFile(file)
    shared = yaml.safe_load(file.read_text())["/**"]["ros__parameters"]
    assert shared["floating_base"] is True and len(shared["contact_frames"]) == 4


def test_a_urdf_without_inertia_says_that_it_lacks_inertia(tmp_path, refusal):
    """Its joints have efforts: a line that named these alone led astray."""
    file = tmp_path / "robot.urdf"
    limit = '<limit lower="-1" upper="1" effort="10" velocity="3"/>'
    file.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute">'
        f'<parent link="a"/><child link="b"/><axis xyz="0 1 0"/>{limit}</joint></robot>'
    )
    line = refusal("new", str(file), "--output", str(tmp_path / "robot.yaml"))
    assert "the links that they move an <inertial>" in line


@pytest.mark.parametrize(
    "urdf, missing",
    [
        (ICUB, "check would refuse it: forces: the feet carry"),  # soles across its feet
        (
            ROBOTS + "simple_humanoid_description/urdf/simple_humanoid.urdf",
            "give its link a <collision>",
        ),
        (ROBOTS + "iris_description/robots/iris.urdf", "a <limit> with an effort above 0"),
        (
            ROBOTS + "quadruped_description/urdf/quadruped.urdf",  # a traceback of scipy before
            "its position limits in the URDF are equal, or missing",
        ),
    ],
)
def test_nothing_is_written_that_check_refuses_and_one_line_says_what_is_missing(
    tmp_path, refusal, urdf, missing
):
    file = tmp_path / "robot.yaml"
    line = refusal("new", urdf, "--output", str(file))
    assert missing in line and "run contact_id new again" in line
    assert not file.exists()


def test_a_posture_is_away_from_the_ends_of_joints():
    """iCub's elbows begin at 0.0959931 rad, where torque towards that end is cut."""
    text = yaml.safe_load(propose(ICUB).text)
    posture = text["simulated_robot"]["ros__parameters"]["initial_joint_positions"]
    joints = text["/**"]["ros__parameters"]["joints"]
    robot = RobotModel.from_urdf(ICUB, joints=joints)
    assert (robot.lower <= posture).all() and (posture <= robot.upper).all()
    elbow = joints.index("l_elbow")
    assert posture[elbow] == pytest.approx(robot.lower[elbow] + 0.1, abs=2e-5)


def test_an_arm_on_legs_does_not_touch_its_soft_stops(new):
    """Kinova's joints cannot be at zero: at their ends torque was cut in 89 % of the periods of a walk."""
    file = new(ANYMAL_WITH_ARM)
    assert not [line for line in check_config(file) if "at an end of its range" in str(line)]
    arm = [name.startswith("j2s6s200") for name in load_settings(file).joints]
    assert walked(file, 2.0).saturated[:, arm].mean() < 0.01


def test_soles_are_the_lowest_of_the_foot():
    values = yaml.safe_load(propose(G1).text)["/**"]["ros__parameters"]
    feet = FeetRows(soles=tuple(values["soles"])).flat_feet
    assert [foot.frame for foot in feet] == ["left_ankle_roll_link", "right_ankle_roll_link"]
    # Four balls of 5 mm at x -50 and 120, y 25 to 30, z -30 mm.
    np.testing.assert_allclose(feet[0].half_size_m, [0.085, 0.03], atol=1e-6)
    np.testing.assert_allclose(feet[0].center_m, [0.035, 0, -0.035], atol=1e-6)


def test_two_point_feet_cannot_stand_and_it_says_so(tmp_path, capsys):
    file = tmp_path / "bolt.yaml"
    assert run(["new", BOLT, "--output", str(file)]) == DONE
    lines = [line for line in capsys.readouterr().out.splitlines() if "cannot stand still" in line]
    assert len(lines) == 1 and "2 point feet span no area" in lines[0]
    assert lines[0].endswith("it balances by stepping")
    assert any("stands only by balancing" in str(finding) for finding in check_config(file))


def test_an_arm_is_bolted_down_and_sways_within_its_limits(new):
    file = new(UR5)
    assert errors(file) == []
    content = yaml.safe_load(file.read_text())
    assert content["/**"]["ros__parameters"]["floating_base"] is False
    robot = RobotModel.from_urdf(UR5, False)
    motion = content["joint_motion"]["ros__parameters"]
    rows = np.reshape(motion["positions"], (len(motion["times_s"]), robot.na))
    assert (rows >= robot.lower).all() and (rows <= robot.upper).all()
    assert np.ptp(rows, axis=0).min() > 0.1


WHEELS = ["wheel_left_joint", "wheel_right_joint"]
WRISTS = [f"j2s6s200_joint_{k}" for k in (1, 4, 6)]


@pytest.mark.parametrize(
    "urdf, turning, interface",
    [(KINOVA, WRISTS, "effort"), (KINOVA, WRISTS, "joint_trajectory"), (TIAGO, WHEELS, "effort")],
)
def test_joints_without_end_are_driven_and_follow_their_motion_over_topics(
    new, monkeypatch, urdf, turning, interface
):
    """Wrists and wheels go on over half a turn, where the positions that are published begin anew."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    file = new(urdf)
    content = yaml.safe_load(file.read_text())
    shared, motion = (content[name]["ros__parameters"] for name in ("/**", "joint_motion"))
    joints = shared["joints"]
    assert set(turning) <= set(joints) and not set(turning) & set(shared.get("locked_joints", ()))
    place = np.isin(joints, turning)
    motion["times_s"], rows = [0.2, 1.2], np.reshape(motion["positions"], (-1, len(joints)))
    rows = np.stack([rows[0] + 3.1 * place, rows[0] + np.where(place, 3.3, 0.03)])
    motion["positions"] = rows.ravel().tolist()
    content["simulated_robot"]["ros__parameters"]["initial_joint_positions"] = rows[0].tolist()
    file.write_text(yaml.safe_dump(content))
    assert errors(file) == []
    changes = [f"command_interface={interface}"]
    setup = make_setup(file.parent, robot="new", config=file, duration_s=1.6, changes=changes)
    send = Supervisor.send_motion

    def late(supervisor, *arguments):
        time.sleep(1.0)  # as beside a load
        send(supervisor, *arguments)

    monkeypatch.setattr(Supervisor, "send_motion", late)
    run_nodes(setup, file.parent)
    records = (file.parent / name for name in (CONTROLLER_RECORD, ROBOT_RECORD))
    run = merge_records(*records, setup.settings.period_s)
    assert not run.fell and run.duration_s == pytest.approx(1.6, abs=0.01)
    assert not run.floating_base  # a cosine more in q is no base
    moves = np.abs(run.reference_position - run.reference_position[0]).max(axis=1) > 1e-9
    assert run.time_s[moves][0] == pytest.approx(0.2, abs=3e-3), "whenever it was sent"
    np.testing.assert_allclose(np.ptp(run.reference_position, axis=0), rows[1] - rows[0], atol=1e-6)
    assert np.abs(run.reference_position - run.position).max() < 5e-3


def test_fingers_are_held(new):
    file = new(TIAGO)
    assert errors(file) == []
    shared = yaml.safe_load(file.read_text())["/**"]["ros__parameters"]
    driven = {"torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))}
    assert set(shared["joints"]) == {*driven, "head_1_joint", "head_2_joint", *WHEELS}
    assert "hand_thumb_joint" in shared["locked_joints"]


@pytest.mark.parametrize(
    "urdf, legs, joints", [(A1, 4, 3), (HYQ, 4, 3), (TALOS, 2, 6), (SOLO8, 4, 2)]
)
def test_legs_are_named_from_left_to_right_and_front_to_hind(urdf, legs, joints):
    model = pin.buildModelFromUrdf(str(resolve_urdf(urdf)), pin.JointModelFreeFlyer())
    found = anatomy(model).legs
    assert [len(leg) for leg in found] == [joints] * legs
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    hips = np.array([data.oMi[leg[-1]].translation[:2] for leg in found])
    assert (hips[::2, 1] > 0.0).all() and (hips[1::2, 1] < 0.0).all()
    assert legs == 2 or ((hips[:2, 0] > 0.0).all() and (hips[2:, 0] < 0.0).all())


def test_the_base_may_be_chosen():
    text = propose(A1, floating=False).text
    assert yaml.safe_load(text)["/**"]["ros__parameters"]["floating_base"] is False
    with pytest.raises(ConfigurationError, match="no legs to stand on"):
        propose(UR5, floating=True)


def test_feet_may_have_the_names_of_their_joints(tmp_path):
    """It ended in Pinocchio's words: several frames match."""
    text = QUADRUPED_URDF.read_text(encoding="utf-8")
    for leg in ("LF", "RF", "LH", "RH"):
        text = text.replace(f'joint name="{leg}_FOOT_FIXED"', f'joint name="{leg}_FOOT"')
    urdf = tmp_path / "same.urdf"
    urdf.write_text(text, encoding="utf-8")
    values = yaml.safe_load(propose(str(urdf)).text)["/**"]["ros__parameters"]
    assert sorted(values["contact_frames"]) == ["LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT"]


def test_what_is_there_is_not_written_over(tmp_path, refusal):
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    assert "exists; name another file with --output" in refusal("new", A1, "--output", str(file))
    assert file.read_text() == "mine"


def test_no_urdf_is_one_line(tmp_path, refusal):
    assert "none.urdf" in refusal("new", str(tmp_path / "none.urdf"))
    with pytest.raises(RobotDescriptionError, match="not found"):
        propose("none.urdf")
    with pytest.raises(RobotDescriptionError, match="must be a path, or begin with package://"):
        propose("http://there/robot.urdf")
    with pytest.raises(RobotDescriptionError) as refused:
        resolve_urdf(ROBOTS + "nosuch/robot.urdf")
    (sought,) = re.findall(r"looked in (.*)\)", str(refused.value))
    assert sought == str(resolve_urdf(G1).parents[2] / "nosuch" / "robot.urdf")
