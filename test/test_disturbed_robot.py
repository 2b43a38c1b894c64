"""Late torques and pushes of the simulated robot, against momentum and the robot without them."""

import mujoco
import numpy as np
import pytest
from paths import QUADRUPED_URDF

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.simulation.from_settings import build_robot
from contact_id_controller.simulation.mujoco_robot import MujocoRobot

FEET = ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]


def settings(**changes):
    return SimulatedRobotSettings.from_mapping(
        {"urdf": str(QUADRUPED_URDF), "contact_frames": FEET, **changes}
    )


def momentum(world):
    """Of all links, (3,) kg m/s, by MuJoCo's own sum."""
    model, data = world.mujoco_model, world.mujoco_data
    mujoco.mj_comVel(model, data)
    mujoco.mj_subtreeVel(model, data)
    return data.subtree_linvel[0] * model.body_subtreemass[0]


def in_flight(world):
    q = world.robot.neutral()
    q[2] = 5.0
    world.reset(q)
    return world


def test_pushes_change_the_momentum_by_their_impulse():
    world = in_flight(
        build_robot(settings(pushes=[0.05, 1.0, 0.0, 0.0, 0.25, 0.0, -2.0, 0.5])),
    )
    assert isinstance(world, DisturbedRobot)
    mass, changes, before = world.robot.mass, [], momentum(world)
    for period in range(400):
        world.step(np.zeros(world.robot.na))
        if period in (199, 399):
            now = momentum(world)
            changes.append(now - before - [0.0, 0.0, -9.81 * mass * 0.2])
            before = now
    np.testing.assert_allclose(changes, [[1, 0, 0], [0, -2, 0.5]], atol=0.03)


def test_torques_act_late_and_otherwise_as_ever():
    random = np.random.default_rng(1)
    torques = random.normal(0.0, 0.2, (40, 12))
    plain = in_flight(build_robot(settings()))
    late = in_flight(DisturbedRobot(build_robot(settings()), 3, []))
    assert isinstance(plain, MujocoRobot)
    seen = [late.step(row).v.copy() for row in torques]
    wanted = [plain.step(row).v.copy() for row in np.vstack([torques[[0] * 3], torques[:-3]])]
    np.testing.assert_array_equal(seen, wanted)


def test_after_a_reset_nothing_is_under_way():
    world = in_flight(DisturbedRobot(build_robot(settings()), 2, []))
    for _ in range(5):
        world.step(np.ones(12))
    in_flight(world)
    np.testing.assert_array_equal(world.step(np.zeros(12)).v[6:], world.state().v[6:])
    assert np.abs(world.state().v[6:]).max() < 1e-9


def test_what_cannot_be_pushed_is_refused():
    with pytest.raises(
        ConfigurationError, match="'pushes' has 5 values, must have 4 for each push"
    ):
        build_robot(settings(pushes=[1.0, 1.0, 0.0, 0.0, 2.0]))
    simulated = build_robot(settings())
    with pytest.raises(ConfigurationError, match="'tail'"):
        DisturbedRobot(simulated, 0, [Push(1.0, 0.1, np.ones(3))], "tail")


def test_commands_refused_by_the_reader_and_by_the_robot_are_counted_together():
    world = build_robot(settings(pushes=[0.05, 1.0, 0.0, 0.0]))
    for torques in (np.full(world.robot.na, np.nan), np.zeros(3)):
        world.refused_commands += 1  # as for bytes that cannot be read
        world.step(torques)
    assert world.refused_commands == 4
