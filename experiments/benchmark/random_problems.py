"""Random contact problems, from harmless to nasty, each reproducible by its seed and number.

0 to 64 contacts on 1 to 8 bodies of real robots; on one plane, on the faces of a ditch or in any
direction; some of them twice; friction from 0 to infinity; gaps and penetrations; robots that
stand, move, fall and lie; robots a thousand times smaller, larger, lighter and heavier.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.problem import Problem, build_problem
from contact_id_controller.robot import RobotModel

ROBOTS = {
    "solo12": ("example-robot-data://solo_description/robots/solo12.urdf", True),
    "anymal": ("example-robot-data://anymal_b_simple_description/robots/anymal.urdf", True),
    "go2": ("example-robot-data://go2_description/urdf/go2.urdf", True),
    "talos": ("example-robot-data://talos_data/robots/talos_reduced.urdf", True),
    "quadruped": ("package://contact_id_controller/urdf/quadruped.urdf", True),
    "panda": ("example-robot-data://panda_description/urdf/panda.urdf", False),
}
"""Name -> URDF and whether its base floats (without: no unactuated coordinate at all)."""

WEIGHTS = (0.24, 0.2, 0.2, 0.18, 0.12, 0.06)  # how often each is drawn
WITH_OBJECT, UNACTUATED = 0.08, 0.02  # shares of problems with a free body, and without any motor
SCALES = (1e-3, 1e-2, 0.1, 1.0, 1.0, 1.0, 10.0, 100.0, 1e3)
PERIOD_S = 1e-3
MAX_CONTACTS, MAX_BODIES = 64, 8


class RandomProblem(NamedTuple):
    """A problem with the state it was built from and the options of the models to try on it."""

    problem: Problem
    q: np.ndarray
    v: np.ndarray
    description: str
    edges: int
    polygon: str
    distribution: str


@cache
def scaled_robot(name: str, mass: float, length: float, extra: str = "") -> RobotModel:
    """A robot with all masses and lengths multiplied; ``extra``: "object", "passive" or nothing."""
    path, floating = ROBOTS[name]
    robot = RobotModel.from_urdf(path, floating)
    model = robot.model
    for joint in range(model.njoints):
        body = model.inertias[joint]
        model.inertias[joint] = pin.Inertia(
            body.mass * mass, body.lever * length, body.inertia * mass * length**2
        )
        placement = model.jointPlacements[joint]
        model.jointPlacements[joint] = pin.SE3(placement.rotation, placement.translation * length)
    for frame in model.frames:
        frame.placement = pin.SE3(frame.placement.rotation, frame.placement.translation * length)
    robot = RobotModel(model, [] if extra == "passive" else None)
    if extra == "object":
        weight = 0.2 * robot.mass
        robot = robot.with_object(weight, weight * (0.1 * length) ** 2 * np.diag([1.0, 0.7, 0.4]))
    return robot


def random_problem(seed: int, number: int) -> RandomProblem:
    """The problem with this seed and number, always the same."""
    rng = np.random.default_rng([seed, number])
    name = rng.choice(list(ROBOTS), p=WEIGHTS)
    mass, length = rng.choice(SCALES), rng.choice(SCALES)
    extra = rng.choice(
        ["", "object", "passive"], p=[1.0 - WITH_OBJECT - UNACTUATED, WITH_OBJECT, UNACTUATED]
    )
    if not ROBOTS[name][1] and extra == "passive":
        extra = ""
    robot = scaled_robot(name, float(mass), float(length), str(extra))
    q, v, motion = _state(robot, rng, length)
    contacts, layout = _contacts(robot, q, rng, length, extra == "object")
    acceleration = rng.normal(size=robot.na) * rng.choice([0.0, 1.0, 30.0])
    slow = rng.random() < 0.7
    time_constant = 10.0 ** rng.uniform(-3.0, 0.0) if slow else PERIOD_S
    problem = build_problem(
        robot,
        q,
        v,
        acceleration,
        contacts,
        PERIOD_S,
        contact_time_constant_s=time_constant,
        penetration_gain=rng.choice([0.0, rng.random()]),
    )
    description = (
        f"{name} {extra} mass x{mass:g} length x{length:g} {motion}, {len(contacts)} contacts "
        f"{layout}, time constant {time_constant:.3g} s"
    )
    edges = int(rng.choice([4, 4, 4, 3, 5, 8]))
    polygon = str(rng.choice(["inscribed", "inscribed", "circumscribed"]))
    distribution = str(rng.choice(["least_torque", "least_torque", "least_force", "none"]))
    return RandomProblem(problem, q, v, description, edges, polygon, distribution)


def _state(robot, rng, length):
    """Configuration and velocity; the base upright, tilted or lying, at rest, moving or falling."""
    q = robot.neutral()
    robot.put_joints(q, rng.uniform(-1.2, 1.2, robot.na) * rng.choice([0.3, 1.0]))
    v = np.zeros(robot.nv)
    motion = str(rng.choice(["at rest", "slow", "moving", "falling"], p=[0.2, 0.3, 0.35, 0.15]))
    v[robot.actuated] = rng.normal(size=robot.na) * {"at rest": 0.0, "slow": 0.05}.get(motion, 2.0)
    if robot.floating_base:
        tilt = float(rng.choice([0.0, 0.2, 1.5, 3.0])) * rng.normal(size=3)
        q[3:7] = pin.Quaternion(pin.exp3(tilt)).coeffs()
        q[:3] = rng.normal(size=3) * length
        size = {"at rest": 0.0, "slow": 0.02, "moving": 0.7, "falling": 0.7}[motion]
        v[:3] = size * rng.normal(size=3) * length
        v[3:6] = size * rng.normal(size=3)
        if motion == "falling":
            down = pin.Quaternion(q[3:7]).matrix().T @ np.array([0.0, 0.0, -rng.uniform(0.5, 5.0)])
            v[:3] += down * length
    return q, v, motion


def _contacts(robot, q, rng, length, has_object):
    """0 to 64 contacts on 1 to 8 bodies."""
    model, data = robot.model, robot.model.createData()
    pin.framesForwardKinematics(model, data, q)
    bodies = [
        frame.name
        for frame in model.frames
        if frame.type == pin.FrameType.BODY and frame.parentJoint > 0
    ]
    feet = rng.choice(bodies, size=min(rng.integers(1, MAX_BODIES + 1), len(bodies)), replace=False)
    if has_object:
        feet[0] = "object"
    n = int(
        rng.choice([rng.integers(0, 7), rng.integers(3, 17), rng.integers(0, MAX_CONTACTS + 1)])
    )
    frames = [str(name) for name in rng.choice(feet, size=n)]
    origins = np.array([data.oMf[model.getFrameId(name)].translation for name in frames]).reshape(
        n, 3
    )
    points = origins + length * rng.choice([0.0, 0.02, 0.1]) * rng.normal(size=(n, 3))
    layout = str(rng.choice(["on a plane", "in a ditch", "in any direction"], p=[0.5, 0.2, 0.3]))
    normals = np.tile([0.0, 0.0, 1.0], (n, 1))
    if layout == "in any direction":
        normals = rng.normal(size=(n, 3))
    elif layout == "in a ditch":
        sides = np.array([[0, 0, 1], [0.6, 0, 0.8], [-0.6, 0, 0.8], [0, 1, 0], [0, -1, 0]], float)
        normals = sides[rng.integers(0, 5, n)]
    elif n:
        points[:, 2] = points[:, 2].min()
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    against = None
    if has_object and n and rng.random() < 0.5:
        against = [None if name == "object" else "object" for name in frames]
    if n > 1 and rng.random() < 0.3:  # copies of contacts, exact or nearly so
        copies = rng.integers(1, n)
        source = rng.integers(0, n - copies, copies)
        points[n - copies :] = points[source] + rng.choice([0.0, 1e-9, 1e-6]) * length * rng.normal(
            size=(copies, 3)
        )
        normals[n - copies :] = normals[source]
        frames[n - copies :] = [frames[i] for i in source]
        if against is not None:
            against[n - copies :] = [against[i] for i in source]
    friction = _friction(n, rng)
    gaps = np.zeros(n)
    if rng.random() < 0.5:
        gaps = rng.normal(size=n) * 10.0 ** rng.uniform(-7.0, -2.0) * length * (rng.random(n) < 0.5)
    viscosity = 10.0 ** rng.uniform(-2.0, 3.0, n) * (rng.random(n) < 0.9)
    return ContactSet(
        points, normals, frames, friction, gaps, against=against, viscosity=viscosity
    ), layout


def _friction(n, rng):
    """Coefficients from 0 to infinity, all alike or each its own."""
    kind = rng.choice(["one", "usual", "any"])
    if kind == "one":
        return float(rng.choice([0.0, 0.1, 0.3, 0.6, 1.0, 3.0, np.inf]))
    if kind == "usual":
        return rng.uniform(0.1, 1.2, n)
    return rng.choice([0.0, np.inf, 1e-4, 0.01, 0.3, 1.0, 10.0, 1e3], size=n)
