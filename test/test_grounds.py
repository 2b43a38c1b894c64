"""Every ground under spherical feet answers alike: flat ground and a height field of the same shape."""

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED, QUADRUPED_FEET

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError, ContactSetError
from contact_id_controller.geometry import (
    FootContacts,
    FrictionMap,
    HalfSpace,
    HeightField,
    SphereFoot,
    feet_on,
)
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

ANGLE = 0.2
FEET = [SphereFoot(name, 0.01) for name in QUADRUPED_FEET]
POSTURE = np.array([0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2])


def plane():
    return HalfSpace((-np.sin(ANGLE), 0.0, np.cos(ANGLE)))


def slope():
    grid = np.linspace(-2.0, 2.0, 5)
    return HeightField(grid, grid, np.tile(np.tan(ANGLE) * grid[:, None], (1, 5)))


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(QUADRUPED)


def on(robot, ground, **settings):
    """Feet over a ground with the robot's base parallel to the slope, two feet on it."""
    feet = feet_on(robot, FEET, ground, **settings)
    base = [0.1, 0.05, 0.0, 0.0, -np.sin(ANGLE / 2), 0.0, np.cos(ANGLE / 2)]
    q = robot.configuration(base, POSTURE + np.repeat([0.1, 0.0], 6))
    data = robot.model.createData()
    for _ in range(100):
        pin.forwardKinematics(robot.model, data, q)
        feet.update(data)
        q[2] -= feet.gaps.min() / np.cos(ANGLE)
    pin.forwardKinematics(robot.model, data, q)
    feet.update(data)
    return feet, q


@pytest.mark.parametrize("friction", [0.4, [0.1, 0.2, 0.3, 0.4], FrictionMap(0.2, 0.9)])
def test_a_sloping_field_answers_as_sloping_flat_ground_does(robot, friction):
    flat, q = on(robot, plane(), friction=friction, viscosity=7.0)
    field, other = on(robot, slope(), friction=friction, viscosity=7.0)
    np.testing.assert_allclose(other, q, atol=1e-9)
    for name in ("points", "normals", "gaps", "links"):
        found, wanted = getattr(field, name), getattr(flat, name)
        assert found.shape == wanted.shape and len(found) == len(field) == 4
        np.testing.assert_allclose(found, wanted, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(flat.normals, np.tile(plane().normal, (4, 1)), atol=1e-12)
    mask = np.array([True, False, True, True])
    chosen = [feet.select(mask, np.array([0.1, 0.2, 0.3, 0.4])) for feet in (flat, field)]
    first, second = chosen
    for name in ("points", "normals", "gaps", "friction", "viscosity", "load_share"):
        np.testing.assert_allclose(
            getattr(second, name), getattr(first, name), atol=1e-9, err_msg=name
        )
    assert first.frames == second.frames
    for feet in (flat, field):
        assert feet.up.shape == (3,) and abs(np.linalg.norm(feet.up) - 1.0) < 1e-12


def test_a_controller_on_a_sloping_field_does_what_it_does_on_the_plane(robot):
    """A foot that is to land comes down along the normal of the ground below it."""
    settings = ControllerSettings.from_mapping(
        {
            "urdf": QUADRUPED,
            "contact_frames": QUADRUPED_FEET,
            "contact_radii_m": [0.01],
        },
        ground_normal=tuple(plane().normal),
    )
    _, q = on(robot, plane())
    v = np.random.default_rng(0).normal(scale=0.05, size=robot.nv)
    results = []
    for ground in (plane(), slope()):
        feet = feet_on(robot, FEET, ground, 0.6)
        controller = Controller(robot, settings, feet)
        controller.reset(RobotState(0.0, q, np.zeros(robot.nv)))
        stance = ContactSchedule(QUADRUPED_FEET, [0.0, 1.0], np.ones((2, 4), dtype=bool))
        controller.follow(Plan(contacts=stance), 0.0)
        result = controller.step(RobotState(0.0, q, v))
        assert result.status == "solved" and 0 < result.contact.sum() < 4
        results.append((result.torques.copy(), result.forces))
    for found, wanted in zip(*results):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_another_ground_is_refused_by_name(robot):
    with pytest.raises(ConfigurationError, match="HalfSpace or a HeightField, got str"):
        feet_on(robot, FEET, "lawn")


@pytest.mark.parametrize("kind", [np.float32, ">f8", list, lambda mu: np.repeat(mu, 2)[::2]])
def test_friction_by_a_function_is_read_as_it_is_given(kind):
    """A view was read as the numbers in between, float32 could end the process."""
    robot, ground = RobotModel.from_urdf(QUADRUPED), HalfSpace()
    values, every = np.array([0.5, 0.25, 1.0, 0.75]), np.ones(4, dtype=bool)

    def given(points):
        mu = values[: len(points)]
        return mu.astype(kind) if kind in (np.float32, ">f8") else kind(mu)

    selected = FootContacts(robot, FEET, ground, given).select(every)
    assert selected.friction.dtype is np.dtype(float) and selected.friction.flags.carray
    np.testing.assert_array_equal(selected.friction, values)
    with pytest.raises(ContactSetError, match=r"friction of 4 points has shape \(2,\)"):
        FootContacts(robot, FEET, ground, lambda points: values[:2]).select(every)
