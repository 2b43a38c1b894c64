"""Contacts of whole robots: who touches whom, by which name, how fast the other side moves."""

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED, QUADRUPED_FEET, frame_positions

from contact_id_controller import RobotModel
from contact_id_controller.exceptions import ConfigurationError, UnknownFrameError
from contact_id_controller.geometry import FootContacts, HalfSpace, HeightField, SphereFoot
from experiments.rigid.scene import Body, Scene, Surface
from experiments.rigid.solids import Box, Capsule, Sphere

STANCE = np.array([0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2])


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(QUADRUPED)


def two_boxes():
    """Two free cubes of 1 kg and 0.2 m: nothing but objects, no actuator."""
    robot = RobotModel(pin.Model())
    for name in ("lower", "upper"):
        robot = robot.with_object(1.0, np.eye(3) * 1.0 * 0.2**2 / 6.0, name)
    return robot


def heights(lower, upper, x=0.0):
    return np.array([0, 0, lower, 0, 0, 0, 1.0, x, 0, upper, 0, 0, 0, 1.0])


def test_feet_on_flat_ground_agree_with_the_control_loops_own_contacts(robot):
    q = robot.configuration([0, 0, 0.17, 0, 0, 0, 1], STANCE)
    scene = Scene(
        robot,
        [Body(name, Sphere(0.01)) for name in QUADRUPED_FEET],
        [Surface("ground", HalfSpace())],
        friction=0.4,
        anticipation_m=1.0,
    )
    contacts = scene.contacts(q)
    feet = FootContacts(
        robot, [SphereFoot(name, 0.01) for name in QUADRUPED_FEET], HalfSpace(), 0.4
    )
    pin.forwardKinematics(robot.model, robot.data, q)
    feet.update(robot.data)
    np.testing.assert_allclose(contacts.points, feet.points, atol=1e-12)
    np.testing.assert_allclose(contacts.gaps, feet.gaps, atol=1e-12)
    np.testing.assert_allclose(contacts.friction, 0.4)
    assert contacts.frames == tuple(QUADRUPED_FEET)
    assert contacts.against is None and contacts.surface_velocities is None


def test_contacts_appear_at_the_anticipation_distance_and_keep_their_names(robot):
    scene = Scene(
        robot,
        [Body(name, Sphere(0.01)) for name in QUADRUPED_FEET],
        [Surface("ground", HalfSpace())],
        anticipation_m=0.005,
    )
    lowest = frame_positions(
        robot, robot.configuration([0, 0, 0, 0, 0, 0, 1], STANCE), QUADRUPED_FEET
    )[:, 2].min()
    names = {}
    for height in (0.006, 0.004, 0.0, -0.001):
        for x in (0.0, 0.3):
            q = robot.configuration([x, 0, 0.01 - lowest + height, 0, 0, 0, 1], STANCE)
            names[height, x] = scene.contacts(q).identities
    assert names[0.006, 0.0] == ()
    assert len(names[0.004, 0.0]) == 4
    assert len({names[key] for key in names if key[0] < 0.005}) == 1


def test_stack_of_boxes_touches_the_ground_and_each_other():
    robot = two_boxes()
    bodies = [Body("lower", Box((0.2, 0.2, 0.2))), Body("upper", Box((0.2, 0.2, 0.2)))]
    scene = Scene(
        robot,
        bodies,
        [Surface("ground", HalfSpace())],
        [("upper", "lower")],
        {("upper", "lower"): 0.3, None: 0.9},
    )
    contacts = scene.contacts(heights(0.1, 0.3, 0.05))
    assert len(contacts) == 8
    assert contacts.against == (None,) * 4 + ("lower",) * 4
    np.testing.assert_allclose(contacts.friction, [0.9] * 4 + [0.3] * 4)
    np.testing.assert_allclose(contacts.normals, [[0, 0, 1]] * 8, atol=1e-9)
    np.testing.assert_allclose(contacts.points[4:, 2], 0.2, atol=1e-9)
    np.testing.assert_allclose(sorted(contacts.points[4:, 0]), [-0.05, -0.05, 0.1, 0.1], atol=1e-9)
    # Sliding on: the same features, the same names.
    moved = scene.contacts(heights(0.1, 0.3, 0.0501))
    assert set(moved.identities) == set(contacts.identities)
    # Far apart: only the ground is left.
    assert len(scene.contacts(heights(0.1, 5.0))) == 4


def test_surfaces_move_their_contacts():
    robot = two_boxes()
    bodies = [Body("lower", Sphere(0.1)), Body("upper", Sphere(0.1))]
    belt = Surface("belt", HalfSpace(), linear_velocity=(0.5, 0, 0))
    turntable = np.eye(4)
    turntable[:3, 3] = [0, 0, 0.29]
    table = Surface("table", Box((2, 2, 0.02)), turntable, angular_velocity=(0, 0, 2.0))
    q = heights(0.1, 0.4, 0.3)
    contacts = Scene(robot, bodies, [belt, table]).contacts(q)
    assert [name[2] for name in contacts.identities] == ["belt", "table"]
    np.testing.assert_allclose(contacts.surface_velocities, [[0.5, 0, 0], [0, 0.6, 0]], atol=1e-9)
    scene = Scene(robot, bodies, [belt])
    scene.move("belt", linear_velocity=(0, 0, 0))
    assert scene.contacts(q).surface_velocities is None
    raised = np.eye(4)
    raised[2, 3] = 0.002
    scene.move("belt", placement=raised)
    np.testing.assert_allclose(scene.contacts(q).gaps, -0.002, atol=1e-12)
    with pytest.raises(ConfigurationError, match="'road'.*'belt'"):
        scene.move("road", linear_velocity=(0, 0, 0))


def test_tilted_half_space_and_offset_body():
    robot = two_boxes()
    place = np.eye(4)
    place[:3, 3] = [0, 0, -0.1]
    tilt = np.eye(4)
    tilt[:3, :3] = pin.exp3(np.array([0, np.pi / 2, 0]))  # the ground's normal turns to +x
    tilt[0, 3] = 0.2
    scene = Scene(
        robot,
        [Body("lower", Sphere(0.05), place)],
        [Surface("wall", HalfSpace(), tilt)],
        anticipation_m=1,
    )
    q = heights(1.0, 2.0)
    q[0] = 0.3
    contacts = scene.contacts(q)
    np.testing.assert_allclose(contacts.normals, [[1, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(contacts.points, [[0.25, 0, 0.9]], atol=1e-12)
    np.testing.assert_allclose(contacts.gaps, 0.05, atol=1e-12)


def test_box_slides_over_a_height_field_with_the_same_names():
    robot = two_boxes()
    grid = np.linspace(-1, 1, 9)
    scene = Scene(
        robot,
        [Body("lower", Box((0.3, 0.3, 0.2)))],
        [Surface("field", HeightField(grid, grid, np.zeros((9, 9))))],
    )
    names = set()
    for x in np.linspace(-0.4, 0.4, 15):
        q = heights(0.1, 5.0)
        q[0] = x
        names.add(scene.contacts(q).identities)
    assert len(names) == 1 and len(names.pop()) == 4


def test_bad_scenes_are_refused_by_name():
    robot = two_boxes()
    ball = Sphere(0.1)
    with pytest.raises(UnknownFrameError, match="'hand'"):
        Scene(robot, [Body("hand", ball)])
    with pytest.raises(ConfigurationError, match="without a body"):
        Scene(robot, [Body("lower", ball)], pairs=[("lower", "upper")])
    with pytest.raises(ConfigurationError, match="different names"):
        Scene(robot, [], [Surface("a", ball), Surface("a", Capsule(0.1, 0.1))])
    with pytest.raises(ConfigurationError, match="anticipation_m"):
        Scene(robot, [], anticipation_m=-1.0)
