"""The gain d torque / d state of a step, judged by finite differences of the controller's own step."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from test_torques_ahead import ARM_POSTURE, arm_controller, arm_motion

from contact_id_controller.control.state_gain import StateGain
from contact_id_controller.models import ROWS
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs import one_process
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

STEP = 1e-6


class Judge:
    """Steps of one controller at one time, each from the same memory."""

    def __init__(self, controller, time_s):
        self.controller, self.time_s = controller, time_s
        self._memory = controller.memory.copy()

    def restore(self):
        """Let the next step be the first again."""
        self.controller.memory.restore(self._memory)

    def step(self, q, v):
        """Result, and what must not change: which contacts there are, what they carry, limits."""
        self.restore()
        controller, state = self.controller, RobotState(self.time_s, q, v)
        result = controller.step(state)
        active = controller.row.read_active_set(result.solution, controller.workings.options)
        pattern = (
            result.status,
            tuple(result.contact),
            tuple(len(rows) for rows in active.held),
            tuple(len(free) for free in active.free),
            tuple(result.limits),
            tuple(controller.workings.standing),
        )
        return state, result, pattern

    def compare(self, q, v):
        """Largest error of the gain relative to its largest entries; the pattern; the share compared."""
        robot = self.controller.robot
        nv = robot.nv
        state, result, pattern = self.step(q, v)
        gain = StateGain(self.controller).compute(state, result)
        expected, same = np.zeros((robot.na, 2 * nv)), np.ones(2 * nv, dtype=bool)
        for k in range(2 * nv):
            torques = []
            for side in (STEP, -STEP):
                change = np.zeros(2 * nv)
                change[k] = side
                there = pin.integrate(robot.model, q, change[:nv])
                _, result, other = self.step(there, v + change[nv:])
                torques.append(result.torques)
                same[k] &= other == pattern
            expected[:, k] = -(torques[0] - torques[1]) / (2.0 * STEP)
        error = 0.0
        for part in (slice(0, nv), slice(nv, 2 * nv)):
            wrong = np.abs(gain - expected)[:, part][:, same[part]]
            error = max(error, wrong.max(initial=0.0) / np.abs(expected[:, part]).max())
        return error, pattern, same.mean()


def walk(friction, solver, mu, **changes):
    """A walk in MuJoCo, to be advanced."""
    settings = one_process.controller_settings(
        "quadruped", friction=friction, solver=solver, friction_coefficient=[mu], **changes
    )
    world = one_process.mujoco_robot(settings, mu)
    return one_process.InProcessRun("quadruped", settings, world)


def advance(run, periods):
    """The controller after some more periods, and the state it is told next."""
    for _ in range(periods):
        run.advance()
    return run.controller, run.believed


@pytest.mark.parametrize(
    ("friction", "solver"), [("coulomb", "qp"), ("no_slip", "lcp"), ("no_slip", "qp")]
)
def test_gain_is_the_derivative_of_the_step(friction, solver):
    """On four feet, and on two."""
    run = walk(friction, solver, 1.0)
    for periods, feet in ((20, 4), (310, 2)):
        controller, state = advance(run, periods)
        judge = Judge(controller, state.time_s)
        error, pattern, compared = judge.compare(state.q, state.v)
        judge.restore()
        assert sum(pattern[1]) == feet
        assert compared == 1.0
        assert error < 1e-6


@pytest.mark.parametrize(
    "learnt", [(0.01, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.05), (0.01, 0.3, 0.05)]
)
def test_gain_knows_motors_that_are_learnt(learnt):
    """Rotors move with the joints, and friction is that of the speed that feedback wants."""
    controller, state = advance(walk("coulomb", "qp", 1.0), 20)
    controller.period.motors[:] = np.array(learnt)[:, None]
    error, _, compared = Judge(controller, state.time_s).compare(state.q, state.v)
    assert compared == 1.0
    assert error < 1e-6


def test_gain_holds_where_contacts_slide_and_forces_lie_on_facets():
    """On slippery ground, with velocities that the controller does not expect."""
    controller, state = advance(walk("coulomb", "qp", 0.1), 330)
    judge, rng = Judge(controller, state.time_s), np.random.default_rng(5)
    held, free = set(), set()
    for _ in range(6):
        v = state.v + rng.normal(scale=0.1, size=len(state.v))
        error, pattern, compared = judge.compare(state.q, v)
        if compared > 0.5:
            assert error < 1e-5
            held.update(pattern[2])
            free.update(pattern[3])
    assert {1, 2, 3} & held - {3} and {1, 2} & free


def test_gain_of_an_arm_is_its_feedback_through_its_inertia():
    """Without contact on the plan: K = M diag(kp) less what gravity and motion do, and friction at the speed wanted."""
    controller = arm_controller(command_interface="effort")
    robot = controller.robot
    controller.reset(RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv)))
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    q, v = arm_motion(2.0).sample(2.3)[:2]
    state = RobotState(2.3, q.copy(), v.copy())
    result = controller.step(state)
    gain = StateGain(controller).compute(state, result)
    data = robot.model.createData()
    pin.computeRNEADerivatives(robot.model, data, q, v, (result.solution.velocity - v) / 1e-3)
    M = np.triu(data.M) + np.triu(data.M, 1).T
    kp, kd, _ = controller.workings.gains
    slower = -np.roots([1.0, kd[0], kp[0]]).real.max()
    rubs = np.diag(slower * robot.motors.viscous_friction_nm_s_rad)
    expected = np.hstack([M * kp - data.dtau_dq + rubs, M * kd - data.dtau_dv])
    assert rubs.any() and not robot.motors.dry_friction_nm.any()
    np.testing.assert_allclose(gain, expected)


def test_gain_in_the_air():
    """Without any contact the base falls freely, and its motion counts all the same."""
    controller, state = advance(walk("coulomb", "qp", 1.0), 1)
    q = state.q.copy()
    q[2] += 0.3
    v = np.random.default_rng(4).normal(scale=0.3, size=len(state.v))
    error, pattern, compared = Judge(controller, state.time_s).compare(q, v)
    assert not any(pattern[1]) and compared == 1.0
    assert error < 1e-6


def test_a_joint_at_its_limit_has_no_feedback():
    limits = np.where(np.arange(12) == 4, 1e-3, 20.0).tolist()
    controller, state = advance(walk("coulomb", "qp", 1.0, effort_limits_nm=limits), 20)
    result = controller.step(state)
    gain = StateGain(controller).compute(state, result)
    assert result.limits[4] and not gain[4].any()
    assert np.abs(np.delete(gain, 4, axis=0)).max(axis=1).min() > 0.0


def test_a_solution_that_is_none_has_no_gain():
    controller, state = advance(walk("coulomb", "qp", 1.0), 20)
    result = controller.step(state)
    gain = StateGain(controller)
    assert gain.compute(state, result) is not None
    assert gain.compute(state, result._replace(solution=None)) is None


def test_rows_say_whose_derivative_is_known():
    settings = ControllerSettings.from_mapping({"urdf": "x.urdf"})
    known = {row.pair for row in ROWS.values() if not row.not_derivable(settings)}
    assert known == {("coulomb", "qp"), ("no_slip", "qp"), ("no_slip", "lcp")}
    others = {
        "distribution": dataclasses.replace(settings, distribution="none"),
        "cone": dataclasses.replace(settings, options={"cone": "exact"}),
    }
    for name, other in others.items():
        assert name in ROWS["coulomb", "qp"].not_derivable(other)


@pytest.mark.parametrize(("fall_m_s", "above_m"), [(0.3, 0.004), (0.3, 0.001), (0.0, 0.004)])
def test_gain_where_late_feet_come_down_with_the_base(fall_m_s, above_m):
    """As fast as it falls, as their gaps allow, and at the usual speed."""
    controller, state = advance(walk("coulomb", "qp", 1.0, contact_sources=["geometry"]), 20)
    q, v = state.q.copy(), state.v.copy()
    q[2] += above_m
    v[2], v[3:5] = -fall_m_s, (0.2, -0.1)
    error, _, compared = Judge(controller, state.time_s).compare(q, v)
    closing = controller.period.closing
    assert controller.period.landing.all() and compared == 1.0
    assert (closing.max() > 0.1) == (fall_m_s > 0.0) and error < 1e-6
