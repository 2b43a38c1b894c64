"""What pushes or loads the base and nobody told of: found, fed forward within limits, and not where contacts are in doubt."""

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT
from test_torques_ahead import arm_controller

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.disturbance import FADES_S, SETTLED_S
from contact_id_controller.runs import one_process
from contact_id_controller.runs.perturbed_runs import Case, run
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.states import JointReading, is_within
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.simulation.perturbations import Changes, perturbation
from contact_id_controller.state import RobotState

GRAVITY = 9.81


def walk(name, *errors, limit=None, **changes):
    """A run whose robot has errors (name, size) of the robustness table; its controller knows none."""
    wrong = Changes()
    for error, size in errors:
        perturbation(error).apply(wrong, size)
    experimental = {} if limit is None else {"disturbance_limit": limit}
    settings = one_process.controller_settings(name, experimental, **changes)
    world = wrong.applied(one_process.mujoco_robot(settings, 0.6))
    return one_process.InProcessRun(name, settings, world)


def advance(run, seconds):
    """The periods of so many seconds."""
    return [run.advance() for _ in range(round(seconds / run.settings.period_s))]


def errors_of(periods):
    """Mean distance of the joints from their plan, rad."""
    planned = np.array([period.result.reference.position for period in periods])
    q = np.array([period.believed.q[7:] for period in periods])
    return float(np.abs(planned - q).mean())


@pytest.mark.parametrize(
    ("error", "place"),
    [("payload_ahead", (0.05, 0.0)), ("payload_aside", (0.0, 0.03))],
)
def test_a_payload_is_weighed_and_placed_while_the_robot_walks(error, place):
    """A fifth of the mass 5 cm ahead or 3 cm to the left: mass within 5 %, place within 4 mm after 4 s of a trot."""
    run = walk("quadruped", (error, 0.2))
    advance(run, 4.0)
    payload = run.controller.disturbance.payload
    assert payload.mass_kg == pytest.approx(0.2 * run.robot.mass, rel=0.05)
    np.testing.assert_allclose(payload.place_m[:2], place, atol=4e-3)
    figures = run.controller.disturbance.figures()
    assert float(figures["payload (kg)"]) == pytest.approx(payload.mass_kg, rel=0.01)


def test_nothing_is_found_where_nothing_is_wrong():
    """A trot of the robot as believed: less than .5 % of its weight, and no payload's place is said."""
    run = walk("quadruped")
    advance(run, 2.0)
    disturbance = run.controller.disturbance
    assert np.linalg.norm(disturbance.wrench[:3]) < 5e-3 * run.robot.weight
    payload = disturbance.payload
    assert payload.place_m is None and abs(payload.mass_kg) < 5e-3 * run.robot.mass


def test_the_walk_with_a_payload_is_that_without():
    """Solo12 with a fifth of its mass more, in its second second: three times as near to the plan as without."""
    found = {}
    for limit in (0.0, None):
        run = walk("solo12", ("payload", 0.2), limit=limit)
        advance(run, 1.0)
        found[limit] = errors_of(advance(run, 1.0))
    assert found[None] < found[0.0] / 3.0
    assert found[None] < 0.008


@pytest.mark.parametrize("error", [("center_of_mass", 0.01), ("payload_ahead", 0.2)])
def test_the_base_does_not_give_way_before_its_load_is_known(error):
    """The quadruped erred by 33 mrad in its first half second, and by 22 in the last .2 s of it where joints weighed little."""
    run = walk("quadruped", error)
    begins, later = advance(run, 0.3), advance(run, 0.2)
    assert errors_of(begins) < 0.036 and errors_of(later) < 0.01
    assert run.controller.period.weights[-1] > 0.05
    fresh = walk("quadruped")
    advance(fresh, 0.5)
    assert fresh.controller.period.weights[-1] == fresh.settings.joint_weight


def test_limbs_are_heavier_than_told_as_the_trunk_is():
    """G1 on both soles with 5 % more mass, half a second: mean joint error .4 mrad, 1.45 with 1 s for the base alone."""
    outcome = run(Case(str(ROOT / "config/plans/g1.yaml"), "mass", 0.05, seconds=0.5))
    assert outcome.failed_s is None and outcome.joint_error_rad < 8e-4


def test_a_push_is_felt_with_its_sign_and_ends():
    """.1 m/s in .1 s to the left at 1 s: some of its force at its end, nothing half a second later."""
    run = walk("quadruped", ("push", 0.1))
    advance(run, 1.1)
    force = run.controller.disturbance.wrench.copy()
    assert force[1] > 0.3 * run.robot.mass and abs(force[0]) < 0.2 * force[1]
    advance(run, 0.6)
    assert abs(run.controller.disturbance.wrench[1]) < 0.05 * force[1]


def test_what_is_fed_forward_is_limited():
    """Half the weight on the robot, of which .1 may be fed forward; with the limit 0 nothing is observed."""
    run = walk("solo12", ("payload", 0.5), limit=0.1)
    advance(run, 0.5)
    disturbance, weight = run.controller.disturbance, run.robot.weight
    assert is_within(disturbance.wrench, disturbance.squares)
    assert np.linalg.norm(disturbance.wrench[:3]) == pytest.approx(0.1 * weight, rel=0.02)
    assert disturbance.bounds[0] == pytest.approx(0.1 * weight)
    off = walk("solo12", limit=0.0)
    assert off.controller.disturbance is None


def standing(**changes):
    """A controller, a state at rest on all feet, and its wrench after .3 s of a pull that nobody told of."""
    controller = Controller(
        (settings := one_process.controller_settings("quadruped", **changes)).robot(), settings
    )
    robot = controller.robot
    posture = one_process.section("quadruped", "simulated_robot")["initial_joint_positions"]
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], np.array(posture))
    pin.forwardKinematics(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    q[2] -= controller.feet.gaps.max()
    return controller, q


def accelerated(controller, q, count, speed=0.0, start=1.0, change=1e-3):
    """Steps whose states at q gain speed upwards, as no solution foresees: what pulls the robot up does that."""
    period_s, v = controller.settings.period_s, np.zeros(controller.robot.nv)
    for number in range(count):
        v[2] = speed + change * (number + 1)
        controller.step(RobotState(start + number * period_s, q, v))
    return controller.disturbance.wrench.copy(), start + count * period_s


def test_contacts_in_doubt_teach_nothing_and_let_it_fade():
    """A foot that lifts and comes back, feet that all leave the ground, states that were lost."""
    # By geometry: what legs feel is made up here.
    controller, q = standing(contact_sources=["geometry", "schedule"])
    known, now = accelerated(controller, q, 100)
    period_s = controller.settings.period_s
    assert known[2] > 0.02 * controller.robot.weight
    # In the air.
    lifted = q.copy()
    lifted[2] += 0.1
    after, now = accelerated(controller, lifted, 200, start=now)
    np.testing.assert_allclose(after, known * (1.0 - period_s / FADES_S) ** 200, rtol=1e-9)
    # Back on the ground: for a while as little.
    count = round(SETTLED_S / period_s)
    again, now = accelerated(controller, q, count, start=now)
    np.testing.assert_allclose(again, after * (1.0 - period_s / FADES_S) ** count, rtol=1e-9)
    later, now = accelerated(controller, q, 20, start=now)
    assert later[2] > again[2]
    # After states that were lost, however long.
    gone, _ = accelerated(controller, q, 1, start=now + 1.0)
    np.testing.assert_allclose(gone, later * (1.0 - period_s / FADES_S), rtol=1e-9)


def test_it_is_remembered_handed_over_and_forgotten():
    controller, q = standing()
    known, now = accelerated(controller, q, 50)
    kept = controller.memory.copy()
    more, _ = accelerated(controller, q, 50, start=now)
    assert more[2] > known[2]
    controller.memory.restore(kept)
    np.testing.assert_array_equal(controller.disturbance.wrench, known)
    again, _ = accelerated(controller, q, 50, start=now)
    np.testing.assert_array_equal(again, more)
    other = Controller(controller.robot, controller.settings)
    other.take_over(controller)
    np.testing.assert_array_equal(other.disturbance.wrench, more)
    controller.reset(RobotState(2.0, q, np.zeros(controller.robot.nv)))
    assert not controller.disturbance.wrench.any()
    np.testing.assert_array_equal(other.disturbance.wrench, more)


def test_torques_of_others_teach_nothing():
    """Half of what was decided is sent, as by the start ramp: what the other half would have done is no disturbance."""
    controller, q = standing()
    known, now = accelerated(controller, q, 50)
    period_s = controller.settings.period_s
    for number in range(20):
        controller.sent(0.5 * controller.commanded)
        after, now = accelerated(controller, q, 1, start=now)
        share = (1.0 - period_s / FADES_S) ** (number + 1)
        np.testing.assert_allclose(after, known * share, rtol=1e-9, atol=1e-12)


def test_numbers_that_are_not_finite_are_not_learnt():
    controller, q = standing()
    known, now = accelerated(controller, q, 50)
    controller.sent(np.full(controller.robot.na, np.nan))
    after, now = accelerated(controller, q, 1, start=now)
    assert np.isfinite(after).all() and after[2] < known[2]
    assert accelerated(controller, q, 20, start=now)[0][2] > after[2]


@pytest.mark.parametrize("place", range(6))
def test_force_and_moment_have_a_limit_each_and_unknown_ones_are_beyond(place):
    squares = np.array([4.0, 9.0])
    for size, fits in ((1.9, True), (2.1, place > 2), (3.1, False), (np.nan, False)):
        wrench = np.zeros(6)
        wrench[place] = size
        assert is_within(wrench, squares) == fits


def test_the_guard_checks_its_limits():
    """A disturbance beyond them, whatever made it, is counted and forgotten before it acts."""
    guard = Guard(*guard_parts())
    assert guard.start(state_is_known=False) == ""
    controller = guard.controller
    q = standing()[1]
    judge = None
    for number in range(3):
        time_ns = int(1e9) + number * round(1e9 * controller.settings.period_s)
        base = np.concatenate([q[:7], np.zeros(6)])
        guard.take_base(base, time_ns)
        if number == 2:
            controller.disturbance.wrench[2] = -2.0 * controller.disturbance.bounds[0]
        torques = guard.step(JointReading(time_ns, q[7:], np.zeros(12)), time_ns).copy()
        judge = torques if judge is None else judge
    assert guard.monitor.refusals["disturbance_beyond_limit"] == 1
    assert np.abs(controller.disturbance.wrench).max() < 1e-3 * controller.robot.weight
    assert "payload (kg)" in guard.figures()
    np.testing.assert_allclose(torques, judge, atol=0.05)


def guard_parts():
    settings = one_process.controller_settings("quadruped", start_ramp_s=0.0)
    return Controller(settings.robot(), settings), True


def test_an_arm_whose_base_is_fixed_has_none():
    """There is no base to push: it is off."""
    assert arm_controller(command_interface="effort").disturbance is None


def test_no_parameter_names_it():
    """It is set in Python, like all that only experiments vary."""
    assert "disturbance_limit" in ControllerSettings.experimental()
