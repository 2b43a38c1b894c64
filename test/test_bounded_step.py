"""Steps whose torques would exceed their limits: against Clarabel in all unknowns, by Pinocchio's own dynamics."""

import clarabel
import numpy as np
import pinocchio as pin
import pytest
from scipy import sparse

from contact_id_controller.control import bounded_step
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.limits import EFFORT, RATE
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, section
from contact_id_controller.state import RobotState

TALOS = str(resolve_urdf("package://contact_id_controller/config/bipeds/talos.yaml"))


def built(name):
    """A controller, and its robot's posture with its feet on the ground."""
    settings = controller_settings(name)
    made = Controller(settings.robot(), settings)
    robot = made.robot
    posture = section(name, "simulated_robot")["initial_joint_positions"]
    q = robot.configuration((0, 0, 0, 0, 0, 0, 1), np.array(posture))
    pin.forwardKinematics(robot.model, robot.data, q)
    made.feet.update(robot.data)
    q[2] -= made.feet.gaps.max()
    return made, q


def seen_steps(made, q, monkeypatch, share, count, rng):
    """Random states of a robot that stands, whose motors have ``share`` of its largest torque more than standing needs.

    Of those whose torques exceed that: (solution, metric, answer, commanded acceleration, result, v).
    """
    robot, steps = made.robot, []
    still = RobotState(0.0, q, np.zeros(robot.nv))
    made.reset(still)
    needs = np.abs(made.step(still).torques)

    def watched(solution, metric, period):
        if metric[1].shape[0] == 0:  # feedback alone: with tasks, as goals have them
            prices = rng.choice([0.0, 10.0, 100.0], size=9)
            metric = rng.normal(size=(9, robot.nv)), prices, 10.0 ** rng.uniform(-3, 0, robot.nv)
        answer = bound(solution, metric, period)
        arrays = tuple(np.array(each) for each in metric)
        steps.append((solution, arrays, answer, period.acceleration.copy()))
        return answer

    bound = made._bounded.within
    monkeypatch.setattr(made._bounded, "within", watched)
    made.limits.effort[:] = needs + share * needs.max()
    kept = []
    for _ in range(count):
        made.reset(RobotState(0.0, q, np.zeros(robot.nv)))
        velocity = 10.0 ** rng.uniform(-2.5, 0.0) * rng.normal(size=robot.nv)
        velocity[:6] *= 0.1
        result = made.step(RobotState(0.0, q, velocity))
        if steps and steps[-1][2] is not steps[-1][0]:
            kept.append((*steps[-1], result, velocity))
    return kept


def columns_of(problem, q):
    """Jacobian (3n, nv) of the contacts in their own frames, by Pinocchio."""
    robot, contacts = problem.robot, problem.contacts
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)
    rows = []
    for i in range(len(problem)):
        frame = robot.frame_id(contacts.frames[i])
        J = pin.getFrameJacobian(robot.model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        arm = contacts.points[i] - data.oMf[frame].translation
        rows.append(problem.frames[i] @ (J[:3] - pin.skew(arm) @ J[3:]))
    return np.concatenate(rows)


def judged(solution, metric, acceleration, limits, q, v):
    """The module's program by Clarabel in accelerations, forces and torques.

    Status, accelerations (nv,), the cost as a function of both, forces (3n,), contacts that stick (n,).
    """
    problem, robot = solution.problem, solution.problem.robot
    nv, na, m, dt = robot.nv, robot.na, 3 * len(problem), problem.period
    data = robot.model.createData()
    M = pin.crba(robot.model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.nonLinearEffects(robot.model, data, q, v)
    J, before = columns_of(problem, q), solution.impulses / dt
    known = 0.0 if problem.external_forces is None else problem.external_forces
    rows, prices, weights = metric
    H = np.diag(weights) + rows.T @ (prices[:, None] * rows)
    base = robot.unactuated
    B = np.linalg.solve(M[np.ix_(base, base)], J[:, base].T)
    speed = solution.contact_velocity.copy()
    speed[:, 0] += problem.gap_speed
    c = problem.c if solution.attainable is None else solution.attainable
    sticks = np.abs(speed).max(axis=1) <= bounded_step.STICKS * np.abs(c).max() + 1e-9
    free = np.repeat(sticks, 3)
    tie = (
        bounded_step.TIE * np.diag(B.T @ H[np.ix_(base, base)] @ B)[free].sum() / max(free.sum(), 1)
    )
    P = np.zeros((nv + m + na,) * 2)
    P[:nv, :nv], P[nv : nv + m, nv : nv + m] = H, tie * np.eye(m)
    goal = np.concatenate([-H @ acceleration, -tie * before, np.zeros(na)])
    S = np.zeros((nv, na))
    S[robot.actuated] = np.eye(na)
    dynamics = np.hstack([M, -J.T, -S])
    a = (solution.velocity - v) / dt
    rest = np.hstack([J[free], np.zeros((free.sum(), m + na))])
    fixed = np.hstack([np.zeros((m, nv)), np.eye(m), np.zeros((m, na))])[~free]
    cone, bound = [], []
    for i in range(len(problem)):
        normal = np.zeros(nv + m + na)
        if not sticks[i]:
            normal[:nv] = -J[3 * i]
            cone.append(normal)
            bound.append(-J[3 * i] @ a + max(speed[i, 0], 0.0) / dt)
            continue
        mu = problem.contacts.friction[i] * np.cos(np.pi / 4)
        for angle in np.pi / 4 + np.pi / 2 * np.arange(4):
            row = np.zeros(nv + m + na)
            row[nv + 3 * i : nv + 3 * i + 3] = -mu, np.cos(angle), np.sin(angle)
            cone.append(row)
            bound.append(0.0)
    limit = np.hstack([np.zeros((na, nv + m)), np.eye(na)])
    A = np.vstack([dynamics, rest, fixed, *cone, limit, -limit])
    b = np.concatenate([known - h, J[free] @ a, before[~free], bound, limits, limits])
    equal = nv + len(rest) + len(fixed)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(len(b) - equal)]
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)), goal, sparse.csc_matrix(A), b, cones, settings
    ).solve()
    x = np.array(found.x)

    def cost(acceleration_found, forces):
        e, df = acceleration_found - acceleration, forces - before
        return 0.5 * e @ H @ e + 0.5 * tie * df @ df

    return str(found.status), x[:nv], cost, x[nv : nv + m], sticks


@pytest.mark.parametrize(
    ("name", "share"),
    [(TALOS, 0.1), ("solo12", 0.02), ("quadruped", 0.05)],
)
def test_against_clarabel(name, share, monkeypatch):
    """The same optimum as that of an interior point method in accelerations, forces and torques."""
    made, q = built(name)
    steps = seen_steps(made, q, monkeypatch, share, 60, np.random.default_rng(3))
    assert len(steps) > 10
    close, held = 0, []
    for solution, metric, answer, acceleration, result, v in steps:
        status, a, cost, forces, sticks = judged(
            solution, metric, acceleration, made.limits.effort, q, v
        )
        own = (answer.velocity - v) / answer.problem.period
        held.append(sticks.sum())
        mine, best = cost(own, answer.impulses / answer.problem.period), cost(a, forces)
        assert mine <= best * (1.0 + 1e-4) + 1e-9
        close += "Almost" not in status and best <= mine * (1.0 + 1e-4) + 1e-9
        kept = columns_of(answer.problem, q)[np.repeat(sticks, 3)]
        assert kept @ (answer.velocity - solution.velocity) == pytest.approx(0.0, abs=1e-7)
        assert np.abs(result.torques).max() <= made.limits.effort.max()
    assert close > len(steps) // 2  # where it is sure, it has found nothing better
    assert any(held) or made.robot.nu == 0


def test_a_saturated_step_is_consistent(monkeypatch):
    """Torques that are sent are the solution's, by Pinocchio's dynamics; cut off, they are not; limits are reported."""
    made, q = built(TALOS)
    steps = seen_steps(made, q, monkeypatch, 0.2, 20, np.random.default_rng(4))
    assert steps
    reached = 0
    for solution, _, answer, _, result, v in steps:
        assert np.array_equal(result.torques, answer.torques)
        assert answer.residuals(q, v)["dynamics"] < 1e-8
        assert answer.residuals()["cone_n"] < 1e-6
        at_limit = np.abs(result.torques) == made.limits.effort
        assert np.array_equal(at_limit, (result.limits & EFFORT) != 0)
        reached += at_limit.sum()
        assert np.abs(solution.torques).max() > made.limits.effort.min()
        assert np.abs(answer.disturbance).max() > 0.0
    assert reached


def test_within_limits_nothing_changes():
    made, q = built(TALOS)
    made.reset(RobotState(0.0, q, np.zeros(made.robot.nv)))
    result = made.step(RobotState(0.0, q, np.zeros(made.robot.nv)))
    metric = bounded_step.Metric(np.zeros((0, made.robot.nv)), np.zeros(0), made.period.weights)
    assert not result.limits.any()
    assert made._bounded.within(result.solution, metric, made.period) is result.solution
    assert result.solution.disturbance is None


def test_rates_bound_torques_too(monkeypatch):
    """A torque that may change by 5 % of its limit in a period does; its limit is reported as one of the rate."""
    made, q = built(TALOS)
    still = RobotState(0.0, q, np.zeros(made.robot.nv))
    made.reset(still)
    made.step(still)
    made.step(still)
    last = made.period.decided.copy()
    made.limits.rate_step[:] = 0.05 * made.limits.effort
    v = 0.1 * np.random.default_rng(1).normal(size=made.robot.nv)
    result = made.step(RobotState(0.001, q, v))
    assert result.solution.disturbance is not None
    assert np.all(np.abs(result.torques - last) <= made.limits.rate_step * (1.0 + 1e-9))
    assert np.any(result.limits & RATE)
    assert result.solution.residuals(q, v)["dynamics"] < 1e-8
