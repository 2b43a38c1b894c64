"""The paper's quadruped, as Pinocchio reads it, against the published numbers."""

import numpy as np
import pinocchio as pin
import pytest
from paths import QUADRUPED_URDF

LEGS = {"LF": (1, 1), "RF": (1, -1), "LH": (-1, 1), "RH": (-1, -1)}
INITIAL = {
    "LF": (0.1, 0.8, 1.2),
    "RF": (-0.1, -0.8, -1.2),
    "LH": (-0.1, -0.8, -1.2),
    "RH": (0.1, 0.8, 1.2),
}
JOINTS = ("HAA", "HFE", "KFE")


@pytest.fixture(scope="module")
def model():
    return pin.buildModelFromUrdf(str(QUADRUPED_URDF), pin.JointModelFreeFlyer())


def configuration(model, angles):
    q = pin.neutral(model)
    for leg, values in angles.items():
        for joint, value in zip(JOINTS, values):
            q[model.joints[model.getJointId(f"{leg}_{joint}")].idx_q] = value
    return q


def foot_positions(model, q):
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return {leg: data.oMf[model.getFrameId(f"{leg}_FOOT")].translation.copy() for leg in LEGS}


def body_inertia(model, q):
    """Inertia of the whole robot about its centre of mass, axes of the base."""
    data = model.createData()
    pin.ccrba(model, data, q, np.zeros(model.nv))
    return data.Ig.inertia


def test_it_has_a_floating_base_and_twelve_one_freedom_joints(model):
    assert (model.nq, model.nv) == (19, 18)
    for leg in LEGS:
        for joint in JOINTS:
            assert model.joints[model.getJointId(f"{leg}_{joint}")].nq == 1


def test_it_weighs_4_8_kg_and_47_088_n(model):
    mass = pin.computeTotalMass(model)
    assert mass == pytest.approx(4.8, abs=1e-12)
    assert mass * np.linalg.norm(model.gravity.linear) == pytest.approx(47.088, abs=1e-9)


def test_at_zero_the_legs_are_stretched_along_x(model):
    feet = foot_positions(model, pin.neutral(model))
    for leg, (x, y) in LEGS.items():
        np.testing.assert_allclose(feet[leg], (0.35 * x, 0.06 * y, 0.0), atol=1e-12)


def test_sphere_centres_are_0_162_m_below_the_base_at_the_initial_pose(model):
    feet = foot_positions(model, configuration(model, INITIAL))
    for position in feet.values():
        assert -position[2] == pytest.approx(0.162, abs=5e-4)


def test_initial_pose_stands_symmetric_to_left_and_right_and_to_front_and_hind(model):
    feet = foot_positions(model, configuration(model, INITIAL))
    for leg, (x, y) in LEGS.items():
        np.testing.assert_allclose(feet[leg], feet["LF"] * (x, y, 1), atol=1e-12)


@pytest.mark.parametrize(
    "first, second, mirror",
    [
        ("LF", "RF", (1, -1, 1)),
        ("LH", "RH", (1, -1, 1)),
        ("LF", "LH", (-1, 1, 1)),
    ],
)
def test_negated_joints_mirror_a_leg(model, first, second, mirror):
    angles = np.random.default_rng(0).uniform(-1, 1, 3)
    feet = foot_positions(model, configuration(model, {first: angles, second: -angles}))
    np.testing.assert_allclose(feet[second], feet[first] * mirror, atol=1e-12)


def test_link_inertias_and_centres_of_mass_are_the_published_ones(model):
    published = {  # mass, distance of the centre of mass from the base along x, diagonal inertia
        "HAA": (0.1, 0.125, (1.5e-5, 2.833e-5, 2.833e-5)),
        "HFE": (0.1, 0.2, (1.083e-5, 1.233e-4, 1.275e-4)),
        "KFE": (0.1, 0.3, (5e-7, 3.358e-5, 3.358e-5)),
    }
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    for leg, (x, y) in LEGS.items():
        for joint, (mass, distance, diagonal) in published.items():
            index = model.getJointId(f"{leg}_{joint}")
            inertia = model.inertias[index]
            centre = data.oMi[index].act(inertia.lever)
            assert inertia.mass == pytest.approx(mass)
            np.testing.assert_allclose(centre, (x * distance, y * 0.06, 0), atol=1e-12)
            np.testing.assert_allclose(inertia.inertia, np.diag(diagonal), atol=1e-15)
    base = model.inertias[1]
    assert base.mass == pytest.approx(3.6)
    np.testing.assert_allclose(base.inertia, np.diag([0.005833, 0.003033, 0.008633]), atol=1e-15)


def test_every_link_is_a_possible_rigid_body(model):
    for inertia in list(model.inertias)[1:]:
        moments = np.linalg.eigvalsh(inertia.inertia)
        assert moments[0] > 0 and moments[0] + moments[1] >= moments[2]


def test_whole_body_inertia_has_no_left_right_or_front_hind_coupling(model):
    inertia = body_inertia(model, configuration(model, INITIAL))
    np.testing.assert_allclose(inertia, np.diag(np.diag(inertia)), atol=1e-12)


def test_limits_are_15_rad_s_20_nm_and_a_turn(model):
    np.testing.assert_allclose(model.upperVelocityLimit[6:], 15.0)
    np.testing.assert_allclose(model.upperEffortLimit[6:], 20.0)
    np.testing.assert_allclose(model.upperPositionLimit[7:], 2 * np.pi)
    np.testing.assert_allclose(model.lowerPositionLimit[7:], -2 * np.pi)


def test_feet_are_the_only_collision_shapes_spheres_of_1_cm_at_the_foot_frames(model):
    shapes = pin.buildGeomFromUrdf(
        model, str(QUADRUPED_URDF), pin.GeometryType.COLLISION
    ).geometryObjects
    assert sorted(shape.name.split("_FOOT")[0] for shape in shapes) == sorted(LEGS)
    for shape in shapes:
        frame = model.frames[shape.parentFrame]
        assert shape.geometry.radius == pytest.approx(0.01)
        np.testing.assert_allclose(shape.placement.translation, frame.placement.translation)
