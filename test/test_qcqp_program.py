"""The interior-point kernel and its programs, against Clarabel and by hand."""

from collections import Counter

import numpy as np
import pytest
from clarabel_programs import by_clarabel, compare, cost, violations

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.interior_point.newton_step import (
    BLOCK,
    apply_inverse,
    scale_cone,
)
from contact_id_controller.kernels.interior_point.second_order_cone import (
    distance,
    inverse_step,
    nt_scaling,
    product,
    quotient,
    scale,
    unscale,
)
from experiments.benchmark.random_programs import random_program
from experiments.projected.program import QcqpProgram

LOAD_N = 100.0
CORNERS = np.array([[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]])
IDENTITY = np.eye(3)


def flat_foot(moment=(0.0, 0.0), side=0.0, mu=0.6):
    """A foot on four corners that carries a load with the moments of ``moment``; one torque a moment.

    Torques are the foot's moments about tangents 1 and 2 less what the ground gives.
    """
    A = np.zeros((5, 2 + 12))
    for i, (x, y) in enumerate(CORNERS):
        normal, first, second = 2 + 3 * i, 3 + 3 * i, 4 + 3 * i
        A[0, normal], A[1, first], A[2, second] = 1.0, 1.0, 1.0
        A[3, normal], A[4, normal] = y, -x
    A[3, 0], A[4, 1] = 1.0, 1.0
    b = np.array([LOAD_N, side, 0.0, moment[0], moment[1]])
    return QcqpProgram(A, b, np.full(4, mu), force_weight=1e-6)


@pytest.mark.parametrize("feasible", [True, False])
def test_random_programs_agree_with_clarabel(feasible):
    """benchmarks/qcqp.py --random 10000 does the same at length."""
    verdicts = Counter()
    for number in range(300):
        program = random_program(7, number, feasible)
        verdicts[compare(program, program.solve())[0]] += 1
    assert verdicts["wrong"] == 0 and verdicts["undecided"] <= 2, verdicts
    assert verdicts["agree"] > (280 if feasible else 60)
    assert feasible or verdicts["infeasible"] > 150


def test_cone_algebra_against_matrices():
    rng = np.random.default_rng(0)
    for exponent in (0.0, -3.0, -7.0):  # towards the boundary
        x, s = (
            np.array([1.0, *(1.0 - 10.0**exponent * 0.5) * np.array([np.cos(t), np.sin(t)])])
            for t in rng.uniform(0, 2 * np.pi, 2)
        )
        s *= 3.0
        eta_w, point = np.empty(4), np.empty(3)
        assert nt_scaling(x, s, eta_w, point)
        W = np.array([_applied(scale, eta_w, e) for e in IDENTITY])
        np.testing.assert_allclose(W, W.T, atol=1e-12 * np.abs(W).max())
        np.testing.assert_allclose(W @ s, point, rtol=1e-6)
        np.testing.assert_allclose(_applied(unscale, eta_w, x), point, rtol=1e-6)
        out = np.empty(3)
        product(point, x, out)
        quotient(point, out, out)
        np.testing.assert_allclose(out, x, rtol=1e-5)
        direction = rng.normal(size=3) - np.array([2.0, 0.0, 0.0])
        end = x + direction / inverse_step(x, direction)
        assert abs(end[0] - np.hypot(end[1], end[2])) < 1e-9
    assert distance(np.array([1.0, 3.0, 0.0])) == pytest.approx(np.sqrt(2.0))
    assert distance(np.array([-2.0, 1.0, 0.0])) == pytest.approx(np.sqrt(5.0))


def test_cone_block_against_its_inverse():
    """(D + W^-2)^-1 with different prices of normal and tangents, towards the boundary."""
    rng = np.random.default_rng(1)
    for exponent in (0.0, -2.0, -4.0):
        for normal, tangent in ((1e-9, 1e-3), (2.0, 0.5), (0.0, 0.0)):
            x, s = (
                np.array([1.0, *(1.0 - 0.5 * 10.0**exponent) * np.array([np.cos(t), np.sin(t)])])
                for t in rng.uniform(0, 2 * np.pi, 2)
            )
            block = np.empty(BLOCK)
            assert scale_cone(x, s, normal, tangent, block)
            inverse_of_W = np.array([_applied(unscale, block[:4], e) for e in IDENTITY])
            expected = np.linalg.inv(
                np.diag([normal, tangent, tangent]) + inverse_of_W @ inverse_of_W
            )
            out = np.empty((3, 3))
            for e, column in zip(IDENTITY, out):
                apply_inverse(np.empty(0), block[None], e, column)
            np.testing.assert_allclose(out, expected, atol=1e-6 * np.abs(expected).max())


def test_large_friction_is_that_of_no_slip():
    program = flat_foot(moment=(0.0, -5.0), side=30.0, mu=np.inf)
    sticking = program.solve()
    for mu in (1e2, 9e2, 1e3, 1e7, 1e300):
        program.friction = np.full(4, mu)
        result = program.solve()
        assert result.status == "solved"
        np.testing.assert_allclose(result.torques, sticking.torques, atol=1e-4)
        np.testing.assert_allclose(result.forces, sticking.forces, atol=1e-2)


def _applied(function, eta_w, v):
    out = np.empty(3)
    function(eta_w, v, out)
    return out


def test_hand_solved_block_on_a_slope():
    """One contact holds a weight against its cone: no choice at all, and none at less friction."""
    angle = 0.4
    A, b = np.hstack([np.zeros((3, 1)), IDENTITY]), [np.cos(angle), np.sin(angle), 0.0]
    held = QcqpProgram(A, b, [np.tan(angle) * 1.001]).solve()
    assert held.status == "solved"
    np.testing.assert_allclose(held.forces, [b], atol=1e-7)
    assert QcqpProgram(A, b, [np.tan(angle) * 0.999]).solve().status == "infeasible"
    assert QcqpProgram(A, b, [0.0]).solve().status == "infeasible"
    assert QcqpProgram(A, b, [np.inf]).solve().status == "solved"
    assert QcqpProgram(A, [-1.0, 0.0, 0.0], [1.0]).solve().status == "infeasible"  # it would pull


def test_dependent_rows_and_no_rows_at_all():
    program = random_program(3, 5)
    twice = QcqpProgram(
        np.vstack([program.A, program.A[::-1]]),
        np.concatenate([program.b, program.b[::-1]]),
        program.friction,
        program.weights,
        program.lower,
        program.upper,
        program.force_weight,
    )
    once, again = program.solve(), twice.solve()
    assert once.status == again.status == "solved"
    np.testing.assert_allclose(again.torques, once.torques, atol=1e-5 * np.abs(once.torques).max())
    free = QcqpProgram(np.zeros((0, 5)), [], [0.5], 1.0, [1.0, -3.0], [2.0, 2.0], 1.0).solve()
    assert free.status == "solved"
    np.testing.assert_allclose(free.torques, [1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(free.forces, 0.0, atol=1e-3)


def test_warm_start_changes_steps_not_results():
    fewer = 0
    for number in range(40):
        program = random_program(11, number)
        cold = program.solve()
        program.b = program.b * 1.001
        other, warm = program.solve(), program.solve(warm_start=cold)
        assert other.status == warm.status
        if other.status == "solved":
            a, b = (
                cost(program, other.torques, other.forces),
                cost(program, warm.torques, warm.forces),
            )
            assert abs(a - b) <= 1e-6 * a + 1e-12
            fewer += warm.iterations < other.iterations
    assert fewer > 20


def test_centre_of_pressure_stays_in_its_polygon():
    """Without the limit the ground takes the whole moment; with it, the torque makes up the rest."""
    program = flat_foot(moment=(0.0, -5.0))  # a centre of pressure at x = 5 cm would take all
    free = program.solve()
    assert np.abs(free.torques).max() < 1e-3
    program.limit_center_of_pressure(range(4), CORNERS, CORNERS * [0.2, 1.0])
    limited = program.solve()
    centre = limited.forces[:, 0] @ CORNERS / LOAD_N
    assert limited.status == "solved"
    assert abs(centre[0] - 0.02) < 1e-6 and abs(limited.torques[1] + 3.0) < 1e-4
    judge = np.array(by_clarabel(program).x)
    assert abs(judge[:2] @ judge[:2] - limited.torques @ limited.torques) < 1e-5


def test_moment_about_the_normal_is_limited():
    program = flat_foot()
    row = np.zeros(14)
    for i, (x, y) in enumerate(CORNERS):
        row[4 + 3 * i], row[3 + 3 * i] = x, -y
    program.add_equality(row, [2.0])
    assert program.solve().status == "solved"
    program.limit_normal_moment(range(4), CORNERS, 0.03)
    assert program.solve().status == "solved"
    program.limit_normal_moment(range(4), CORNERS, 0.01)  # 1 N·m is less than 2
    assert program.solve().status == "infeasible"


def test_prescribed_force_and_inequality():
    program = flat_foot(side=10.0)
    program.prescribe_force(0, [40.0, 3.0, -2.0])
    program.prescribe_force(1, 20.0, components=[0])
    row = np.zeros(14)
    row[2 + 3 * 2] = 1.0
    program.add_inequality(row, [30.0])
    result = program.solve()
    assert result.status == "solved"
    np.testing.assert_allclose(result.forces[0], [40.0, 3.0, -2.0], atol=1e-6)
    assert abs(result.forces[1, 0] - 20.0) < 1e-6 and result.forces[2, 0] >= 30.0 - 1e-6
    assert violations(program, result.torques, result.forces) < 1e-6
    program.prescribe_force(2, 20.0, components=[0])
    assert program.solve().status == "infeasible"


def test_the_disturbance_is_the_least_that_helps():
    """A block that shall be pushed with 80 N on a floor that holds 60 N."""
    program = flat_foot(side=80.0)
    assert program.solve().status == "infeasible"
    push = np.zeros((5, 1))
    push[1, 0] = 1.0
    program.allow_disturbance(push, 1e6)
    result = program.solve()
    assert result.status == "relaxed" and result.level == 1
    np.testing.assert_allclose(result.disturbance, [20.0], atol=1e-3)
    assert np.all(
        np.hypot(result.forces[:, 1], result.forces[:, 2]) <= 0.6 * result.forces[:, 0] + 1e-9
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (np.eye(4), np.zeros(3), [1.0]),
        (np.eye(2), np.zeros(2), [1.0]),
        (np.eye(4), np.zeros(4), [1.0], 1.0, 1.0, 1.0),
        (np.eye(4), np.zeros(4), [1.0], [1.0, 2.0]),
    ],
)
def test_bad_programs_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        QcqpProgram(*arguments)


def test_bad_rows_are_refused():
    with pytest.raises(ConfigurationError):
        flat_foot().add_inequality(np.zeros((2, 3)), [0.0, 0.0])
