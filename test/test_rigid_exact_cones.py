"""Friction of coulomb/ncp in the rigid engine is the same in every direction, and as large as Coulomb says."""

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.geometry import SphereFoot
from contact_id_controller.robot import RobotModel
from experiments.rigid.rigid_robot import RigidRobot

G, MU, MASS = 9.81, 0.3, 2.0
NCP = ("coulomb", "ncp")


def body(inertia, feet, model, **keywords):
    """A free body on spheres of 1 cm, standing on flat ground."""
    robot = RobotModel(pin.Model()).with_object(MASS, inertia, "body")
    spheres = [SphereFoot("body", 0.01, (x, y, -0.04)) for x, y in feet]
    simulated = RigidRobot(robot, spheres, friction=MU, model=model, **keywords)
    return simulated, simulated.place_on_ground(robot.neutral())


def stopping_distance(degrees, model=NCP, speed=1.0, **keywords):
    """Metres that a box goes until it rests, thrown without spin."""
    corners = [(x, y) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
    inertia = MASS / 12.0 * np.diag([0.17, 0.17, 0.32])
    simulated, q = body(inertia, corners, model, **keywords)
    angle = np.radians(degrees)
    simulated.reset(q, speed * np.array([np.cos(angle), np.sin(angle), 0, 0, 0, 0]))
    for _ in range(int(speed / (MU * G) * 1000 * 1.5)):
        state = simulated.step(np.zeros(0))
    assert np.abs(state.v).max() < 1e-6 and simulated.unsolved_steps == 0
    assert abs(state.q[2] - q[2]) < 1e-6
    return np.linalg.norm(state.q[:2] - q[:2])


@pytest.mark.parametrize("degrees", [0.0, 22.5, 45.0])
def test_a_box_stops_after_the_same_distance_in_every_direction(degrees):
    assert stopping_distance(degrees) == pytest.approx(1.0 / (2 * MU * G), rel=0.01)


def test_on_a_polygon_of_four_edges_it_does_not():
    """Or the test above could not fail."""
    far = stopping_distance(45.0, ("coulomb", "lcp"), edges=4, speed=0.5)
    assert far > 1.3 * 0.25 / (2 * MU * G)


@pytest.mark.parametrize("points", [5, 12])
def test_a_spinning_ring_comes_to_rest_when_it_should(points):
    """All mass and all contacts at the radius R: omega R / (mu g) seconds, however the load is shared."""
    radius, rim_speed = 0.2, 1.0
    angle = 2.0 * np.pi * np.arange(points) / points
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    inertia = MASS * radius**2 * np.diag([0.5, 0.5, 1.0])
    simulated, q = body(inertia, ring, NCP)
    simulated.reset(q, np.array([0, 0, 0, 0, 0, rim_speed / radius]))
    turned, steps = 0.0, 0
    while steps < 1000:
        state = simulated.step(np.zeros(0))
        steps += 1
        turned += 1e-3 * state.v[5]
        if abs(state.v[5]) < 1e-9:
            break
    stop = rim_speed / (MU * G)
    assert stop == pytest.approx(0.3398, abs=1e-4)
    assert steps * 1e-3 == pytest.approx(stop, rel=0.01)
    assert turned == pytest.approx(rim_speed / radius * stop / 2, rel=0.01)
    assert np.abs(state.q[:2]).max() < 1e-6 and simulated.unsolved_steps == 0
