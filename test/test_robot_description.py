"""Descriptions that are no robot: refused in one line by every node, and what check calls an error too."""

import time

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED, QUADRUPED_FEET

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    UnknownFrameError,
)
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.robot_rows import MovedRobot

TEXT = resolve_urdf(QUADRUPED).read_text(encoding="utf-8")
MASS, INERTIA, EFFORT, AXIS = '<mass value="0.1"', 'ixx="', 'effort="20"', '<axis xyz="'
ORIGIN = '<origin xyz="'
ICUB = "example-robot-data://icub_description/robots/icub.urdf"
AT_MOST_S = 10.0
"""Of processor time: .2 s at most alone, but 3.2 s once, late in a long session."""


def chain(links, mass="1", inertia="1", place="0 0 0"):
    """A row of links that each turn about the y axis of the one before."""
    body = (
        f'<inertial><origin xyz="{place}"/><mass value="{mass}"/>'
        f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )
    parts = [f'<link name="l{k}">{body}</link>' for k in range(links)]
    parts += [
        f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for k in range(1, links)
    ]
    return f'<robot name="chain">{"".join(parts)}</robot>'


def replaced(old, new):
    assert old in TEXT
    return TEXT.replace(old, new, 1)


BAD = {
    **{
        f"mass {value}": (replaced(MASS, f'<mass value="{value}"'), "mass value is ")
        for value in ("inf", "nan", "heavy", "1,2", "0x10", "1_0", "1.2kg", " 1.2 ", "1e400", "")
    },
    "mass negative": (replaced(MASS, '<mass value="-0.1"'), "mass value is '-0.1', must be from 0"),
    **{
        f"{what} {value}": (replaced(old, f'{old.partition(chr(34))[0]}"{value}" was="'), words)
        for what, old, value, words in (
            (
                "mass",
                MASS[:-1].removesuffix("0.1"),
                "1e300",
                "mass value is '1e300', must be from 0",
            ),
            (
                "inertia",
                INERTIA,
                "1e300",
                "inertia ixx is '1e300', must be from -1e+06 to 1e+06 kg m2",
            ),
            ("effort", EFFORT[:8], "1e300", "limit effort is '1e300', must be from 0 to 1e+10 N m"),
            ("effort", EFFORT[:8], "-20", "limit effort is '-20', must be from 0"),
            (
                "velocity",
                'velocity="',
                "1e300",
                "velocity is '1e300', must be from 0 to 1e+10 rad/s",
            ),
            ("upper", 'upper="', "1e300", "limit upper is '1e300', must be from -1e+17 to 1e+17"),
            ("axis", AXIS, "0 0 0", "axis xyz is '0 0 0', must not be zero"),
            ("axis", AXIS, "0 1e-200 0", "axis xyz is '0 1e-200 0', must not be zero"),
            ("axis", AXIS, "0 1e300 0", "axis xyz is '0 1e300 0', must be from -1000 to 1000"),
            ("origin", ORIGIN, "0 1e300 0", "origin xyz is '0 1e300 0', must be from -1000 to"),
            ("origin", ORIGIN, '0 0 0" rpy="0 1e300 0', "origin rpy is '0 1e300 0', must be from"),
        )
    },
    "inertia of dust": (
        chain(2, mass="1e-300"),
        "moves a body of 1e-300 kg, must be at least 1e-06 kg",
    ),
    "inertia of nothing": (
        chain(2, inertia="1e-30"),
        "1e-30, 1e-30, 1e-30 kg m2, and 1e-30 kg m2 about its axis, must be at least 2.09e-06",
    ),
    **{
        f"joint {kind}": (
            replaced('type="revolute"', f'type="{kind}"'),
            f"joint 'LF_HAA' has type '{kind}', must be 'continuous', 'fixed', 'floating', 'prismatic', 'revolute'",
        )
        for kind in ("planar", "spherical")
    },
    "joint floating": (
        replaced('type="revolute"', 'type="floating"'),
        "joint 'LF_HAA' has 6 freedoms, must have 1: only the base floats",
    ),
    "no mass": (replaced(MASS, '<weight value="0.1"'), "inertial without mass"),
    "mass of arabic digits": (replaced(MASS, '<mass value="٣"'), "mass value is "),
    "mass of 5,000 digits": (replaced(MASS, f'<mass value="{"9" * 5000}"'), "mass value is '9999"),
    "inertia word": (replaced(INERTIA, 'ixx="much" was="'), "inertia ixx is 'much'"),
    "inertia negative": (replaced(INERTIA, 'ixx="-'), "not positive definite"),
    "effort nan": (replaced(EFFORT, 'effort="nan"'), "limit effort is 'nan'"),
    "axis of two": (replaced(AXIS, '<axis xyz="0 1" was="'), "axis xyz is '0 1'"),
    "ends exchanged": (
        replaced('lower="-6.283185307179586"', 'lower="7"'),
        "lower position limit 7 above the upper",
    ),
    "1,000 links": (chain(1000), "999 joints that move, must be at most 200"),
    "deep": ("<robot>" + "<a>" * 100_000, "nests elements deeper than 100"),
    "entities": ('<!DOCTYPE r [<!ENTITY a "b">]><robot name="r">&a;</robot>', "document type"),
    "not XML": ("<robot <", "not well-formed"),
    "no robot": ("<html></html>", "describes no robot: its root is <html>, must be <robot>"),
    "MJCF": ("<mujoco/>", "its root is <mujoco>, must be <robot>"),
    "empty": ("", "no element found"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_robot_is_refused_in_one_line(name, tmp_path):
    text, words = BAD[name]
    file = tmp_path / "robot.urdf"
    file.write_text(text, encoding="utf-8")
    begun = time.process_time()
    with pytest.raises((RobotDescriptionError, ConfigurationError)) as refused:
        MovedRobot(urdf=str(file)).robot()
    took_s = time.process_time() - begun
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400 and took_s < AT_MOST_S


@pytest.mark.parametrize(
    "words",
    [
        ('upper="', 'upper="1e16" was="'),  # of a propeller
        ('effort="20"', 'effort="1e9"'),  # without bound, as iCub's
        ('<axis xyz="', '<axis xyz="0 2 0" was="'),
        ('type="revolute"', 'type="continuous"'),
    ],
)
def test_what_others_write_is_a_robot(words, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(replaced(*words), encoding="utf-8")
    assert MovedRobot(urdf=str(file)).robot().na == 12


@pytest.mark.parametrize(
    ("place", "turns"), [("0.05 0 0", True), ("0 0 0.05", True), ("0 0.3 0", False)]
)
def test_a_point_is_a_link_where_the_axis_does_not_go_through_it(place, turns, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(chain(3, inertia="0", place=place), encoding="utf-8")
    described = MovedRobot(urdf=str(file), floating_base=False)
    if turns:
        assert described.robot().na == 2
    else:
        with pytest.raises(RobotDescriptionError, match="joint 'j1' moves .* about its axis"):
            described.robot()


def test_points_that_move_others_are_a_robot():
    """iCub's hips, ankles and head are points; about the axis of neck_roll there is no inertia."""
    assert MovedRobot(urdf=ICUB, locked_joints=("neck_roll",)).robot().na == 31
    with pytest.raises(RobotDescriptionError, match="joint 'neck_roll' moves .* about its axis"):
        MovedRobot(urdf=ICUB).robot()


def test_a_link_and_a_joint_may_share_a_name():
    robot = MovedRobot(
        urdf="example-robot-data://anymal_c_simple_description/urdf/anymal.urdf"
    ).robot()
    frame = robot.model.frames[robot.frame_id("LF_HAA")]
    assert frame.type == pin.FrameType.BODY, "what touches is a link"
    assert robot.model.frames[robot.frame_id("LF_FOOT")].name == "LF_FOOT"
    with pytest.raises(UnknownFrameError, match="'LF_HAB'.*'LF_HAA'"):
        robot.frame_id("LF_HAB")


@pytest.mark.parametrize("urdf", [QUADRUPED, "package://contact_id_controller/urdf/arm.urdf"])
def test_our_robots_are_robots(urdf):
    robot = MovedRobot(urdf=urdf, floating_base=urdf == QUADRUPED).robot()
    assert robot.mass > 0.0


def test_a_hundred_joints_are_a_robot(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(chain(101), encoding="utf-8")
    assert MovedRobot(urdf=str(file), floating_base=False).robot().na == 100


@pytest.fixture
def heavy(tmp_path):
    """Settings of the quadruped with a thigh whose mass is a word."""
    file = tmp_path / "robot.urdf"
    file.write_text(BAD["mass heavy"][0], encoding="utf-8")
    return {"urdf": str(file), "contact_frames": QUADRUPED_FEET, "contact_radii_m": [0.01]}


def test_the_in_process_door_refuses_it(heavy):
    with pytest.raises(RobotDescriptionError, match="mass value is 'heavy'"):
        InProcessController(ControllerSettings.from_mapping(heavy))


def test_the_node_refuses_to_configure(heavy, node_within, capfd):
    from rclpy.lifecycle import TransitionCallbackReturn

    from contact_id_controller.ros.controller import ControllerNode

    node = node_within(ControllerNode, **heavy)
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    said = [line for line in capfd.readouterr().err.splitlines() if "not configured" in line]
    assert len(said) == 1 and "mass value is 'heavy'" in said[0]


def test_a_robot_may_have_one_joint():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), "hinge")
    body = pin.Inertia(2.0, np.array([0.3, 0.0, 0.0]), 0.1 * np.eye(3))
    model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    nothing = ContactSet(np.zeros((0, 3)), np.zeros((0, 3)), [], 0.6)
    problem = build_problem(
        RobotModel(model, ["hinge"]), np.zeros(1), np.zeros(1), np.ones(1), nothing, 1e-3
    )
    inertia = 0.1 + 2.0 * 0.3**2
    assert solve(problem).torques == pytest.approx([inertia - 2.0 * 9.81 * 0.3])
