"""The Riccati kernel against one dense linear system, in plain numpy."""

import numpy as np
import pytest

from contact_id_controller.kernels import riccati

INPUTS = {
    "many": (8, 4, 3, 8, 4),
    "flight and points": (4, 0, 1, 2, 1),  # ranks 6, 0, 3, 5, 3
    "one interval": (5,),
}


def problem(counts, seed=0, stiff=False):
    random = np.random.default_rng(seed)
    T, m = len(counts), sum(counts)

    def definite(count, size):
        roots = random.standard_normal((count, size, size))
        return roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(size)

    A = np.eye(9) + 0.1 * random.standard_normal((T, 9, 9))
    E, G = random.standard_normal((T, 9, 6)), random.standard_normal((m, 6, 3))
    first = np.concatenate([[0], np.cumsum(counts)])
    H = definite(m, 3)
    if stiff:  # what the barrier of an active cone looks like
        row = random.standard_normal((m, 3))
        H += 1e9 * np.einsum("mi,mj->mij", row, row)
    right = [random.standard_normal(shape) for shape in ((T + 1, 9), (m, 3), (T, 9))]
    return riccati.Stages(A, E, first, G), definite(T + 1, 9), H, right


def dense(stages, Q, H, q, h, defect):
    """States and inputs from the optimality conditions of all intervals at once."""
    T, m = len(stages.A), len(H)
    states, size = 9 * (T + 1), 9 * (T + 1) + 3 * m
    K, b = np.zeros((size + states,) * 2), np.zeros(size + states)
    for t in range(T + 1):
        K[9 * t : 9 * t + 9, 9 * t : 9 * t + 9] = Q[t]
    for k in range(m):
        at = slice(states + 3 * k, states + 3 * k + 3)
        K[at, at] = H[k]
    b[:size] = -np.concatenate([q.ravel(), h.ravel()])
    rows = np.zeros((states, size))
    rows[:, :states] = np.eye(states)
    for t in range(T):
        row = slice(9 * t + 9, 9 * t + 18)
        rows[row, 9 * t : 9 * t + 9] = -stages.A[t]
        for k in range(stages.first[t], stages.first[t + 1]):
            rows[row, states + 3 * k : states + 3 * k + 3] = -stages.E[t] @ stages.G[k]
        b[size + 9 * t + 9 : size + 9 * t + 18] = defect[t]
    K[size:, :size], K[:size, size:] = rows, rows.T
    solution = np.linalg.solve(K, b)
    return solution[:states].reshape(-1, 9), solution[states:size].reshape(-1, 3)


@pytest.mark.parametrize("stiff", [False, True])
@pytest.mark.parametrize("counts", INPUTS.values(), ids=INPUTS)
def test_riccati_against_one_dense_system(counts, stiff):
    stages, Q, H, right = problem(counts, stiff=stiff)
    memory = riccati.factor_of(len(counts), len(H))
    out = riccati.solution_of(len(counts), len(H))
    assert riccati.factor(stages, Q, H, memory)
    riccati.solve(stages, memory, *right, out)
    dx, du = dense(stages, Q, H, *right)
    np.testing.assert_allclose(out.dx, dx, atol=2e-7 * np.abs(dx).max())
    np.testing.assert_allclose(out.du, du, atol=2e-7 * max(np.abs(du).max(), np.abs(dx).max()))


def test_states_are_those_that_the_inputs_make():
    stages, Q, H, (q, h, defect) = problem(INPUTS["many"], stiff=True)
    memory, out = riccati.factor_of(5, len(H)), riccati.solution_of(5, len(H))
    riccati.factor(stages, Q, H, memory)
    riccati.solve(stages, memory, q, h, defect, out)
    for t in range(5):
        inputs = range(stages.first[t], stages.first[t + 1])
        wrench = sum(stages.G[k] @ out.du[k] for k in inputs)
        state = stages.A[t] @ out.dx[t] + stages.E[t] @ wrench + defect[t]
        np.testing.assert_allclose(out.dx[t + 1], state, atol=1e-13 * np.abs(state).max())


def test_a_problem_that_is_not_convex_is_refused():
    """Indefinite where the inputs reach: refused; where they do not: as numpy solves it."""
    stages, Q, H, right = problem(INPUTS["many"])
    memory, out = riccati.factor_of(5, len(H)), riccati.solution_of(5, len(H))
    Q[3] -= 50 * np.eye(9)
    assert not riccati.factor(stages, Q, H, memory)
    Q[3] += 50 * np.eye(9)
    Q[0] -= 50 * np.eye(9)  # dx[0] is fixed
    assert riccati.factor(stages, Q, H, memory)
    riccati.solve(stages, memory, *right, out)
    np.testing.assert_allclose(out.du, dense(stages, Q, H, *right)[1], atol=1e-8)
