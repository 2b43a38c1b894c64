"""Motion of the base in a gait: what normal forces of the feet that stand do, and nothing where they balance the robot."""

import numpy as np
import pinocchio as pin
import pytest
from kinematic_walk import ROBOTS, KinematicWalk, planned_state

from contact_id_controller.planning.gait.base_motion import Fading, Sway
from contact_id_controller.planning.gait.foot_path import KINDS
from contact_id_controller.planning.gait.gaits import PHASES, Gait, gait_of
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.planning.gait.support_motion import (
    FRICTION,
    SupportMotion,
    support_motion,
)

PERIOD_S = 0.2
CASES = [(robot, gait) for robot in ROBOTS for gait in PHASES]


def made(name, gait, duty_factor=0.75, step_height_m=0.015):
    """Body, gait and its motion of a robot in its posture; and where its feet are (L, 3)."""
    robot = ROBOTS[name]
    legs, posture = Legs(robot.model(), robot.feet), np.array(robot.posture)
    feet = legs.centers(legs.configuration(posture))
    settings = robot.settings(gait_period_s=PERIOD_S, duty_factor=duty_factor)
    gait = gait_of(settings, feet[:, 0] + 1j * feet[:, 1], gait)
    body = legs.body(posture)
    return body, gait, support_motion(body, gait, step_height_m, KINDS["cubic"]), feet


def standing(gait, since_s):
    """Which feet (L,) stand at a time of the cycle."""
    return (since_s / gait.period_s - np.array(gait.touchdown_phases)) % 1.0 < gait.duty_factor


@pytest.mark.parametrize("duty_factor", [0.5, 0.6, 0.75])
@pytest.mark.parametrize("name", ["quadruped", "solo12"])
def test_diagonal_feet_below_the_middle_carry_a_base_that_is_still(name, duty_factor):
    _, _, motion, _ = made(name, "trot", duty_factor)
    assert np.abs(motion.states).max() < 1e-3  # of gravity, and of 100 rad/s^2 of pace and bound


@pytest.mark.parametrize("gait, turns, still", [("pace", 3, 4), ("bound", 4, 3)])
@pytest.mark.parametrize("name", ["quadruped", "solo12"])
def test_pace_rolls_and_bound_pitches(name, gait, turns, still):
    _, _, motion, _ = made(name, gait)
    most = np.abs(motion.states[0]).max(axis=0)
    assert 0.02 < most[turns] < 0.1 and most[still] < 1e-5


@pytest.mark.parametrize("name, gait", CASES)
def test_a_cycle_ends_as_it_began_about_the_place_of_standing(name, gait):
    *_, motion, _ = made(name, gait)
    step = PERIOD_S / 4000
    times = (np.arange(4001) - 0.5) * step
    place, rate, acceleration = motion.at(times, times)
    assert np.abs(place[0] - place[-1]).max() < 1e-9 and np.abs(rate[0] - rate[-1]).max() < 1e-9
    assert np.abs(place[1:].mean(axis=0)).max() < 1e-6
    by_rate = 0.5 * step * (rate[1:] + rate[:-1])
    assert np.abs(np.diff(place, axis=0) - by_rate).max() < 1e-6
    assert np.abs(np.diff(rate, axis=0)).max() <= step * np.abs(acceleration).max() * 1.001


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("gait", ["pace", "bound"])
def test_feet_that_stand_give_the_force_and_moments_of_the_motion(name, gait):
    """Momentum by Pinocchio's inverse dynamics of legs that follow feet at rest, without a step."""
    body, gait, motion, feet = made(name, gait, step_height_m=0.0)
    robot = ROBOTS[name]
    legs, model = Legs(robot.model(), robot.feet), robot.model()
    q = legs.configuration(np.array(robot.posture))
    data = legs.model.createData()
    pin.computeJointJacobians(legs.model, data, q)
    pin.updateFramePlacements(legs.model, data)
    for since_s in (np.arange(16) + 0.37) / 16 * PERIOD_S:
        time = np.array([since_s])
        a = np.zeros(legs.model.nv)
        a[:5] = motion.at(time, time)[2, 0]
        for frame, columns in zip(legs._frames, legs.columns):
            own = model.actuated[columns]
            J = pin.getFrameJacobian(legs.model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
            a[own] = -np.linalg.solve(J[:, own], J[:, :5] @ a[:5])
        wrench = pin.rnea(legs.model, data, q, np.zeros(legs.model.nv), a)[:6]
        where = feet[standing(gait, since_s)]
        center = pin.centerOfMass(legs.model, data, q)
        height = (center - feet[0])[2]
        reach = np.minimum(FRICTION / np.abs(feet - center)[:, :2].max(axis=0), 1.0 / height)
        columns = []
        for place in where:
            force = np.array([*(-reach * (place - center)[:2]), 1.0])
            columns.append([*force, *np.cross(place, force)])
        columns = np.array(columns).T
        forces = np.linalg.lstsq(columns, wrench, rcond=None)[0]
        missing = (columns @ forces - wrench)[:5] / body.weight
        assert np.abs(missing).max() < 2e-3, since_s


@pytest.mark.parametrize("gait", ["pace", "bound"])
def test_plans_sway_and_their_feet_stay_where_they_stand(gait):
    walk = KinematicWalk(ROBOTS["solo12"], rolls=False, gait=gait, gait_period_s=PERIOD_S)
    walk.planner.set_velocity((0.2, 0.0))
    walk.walk(1.0)
    before, angles, slips = walk.q[0], [], []
    for plan in walk.walk(0.4):
        for t in plan.joints.start_s + np.arange(0.001, 0.05, 0.005):
            q, v = planned_state(walk.model, plan.joints, plan.base, t)
            angles.append(pin.rpy.matrixToRpy(pin.Quaternion(q[3:7]).matrix())[:2])
            slips += [*np.abs(walk.foot_motion(q, v)[1][plan.contacts.sample(t)]).ravel()]
    most = np.ptp(angles, axis=0)
    assert max(most) > 0.05 > 100 * min(most)
    assert max(slips) < 5e-3
    assert (walk.q[0] - before) / 0.4 == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("moves", [True, False])
def test_sway_now_is_that_of_a_plan_there(moves):
    rng = np.random.default_rng(0)
    gait = Gait(0.3, 0.6, (0.25, 0.75))
    states = rng.normal(size=(3, 4, 5))
    motion = SupportMotion(gait, np.array([0.0, 0.1, 0.17, 0.25]), states) if moves else None
    sway = Sway(0.2, Fading(*rng.normal(size=(2, 5)), 0.1), motion, -0.07)
    for t in rng.uniform(0.1, 0.8, 30):
        times = np.array([t])
        np.testing.assert_allclose(sway.now(t), sway.at(times, times)[:2, 0], atol=1e-13)
