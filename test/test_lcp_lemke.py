"""Lemke's method, its ends, warm starts and bad input; the published problems, by principal pivoting too."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from contact_id_controller.exceptions import LcpError
from contact_id_controller.kernels import compile as _compile
from contact_id_controller.lcp import lemke, lemke_friction, ppm
from experiments.benchmark import lcp_problems as problems


def enumerate_solutions(M, q):
    """Every complementary basis, tried: the reference."""
    n, found = len(q), []
    for basis in itertools.product([False, True], repeat=n):
        a = np.array(basis)
        z = np.zeros(n)
        try:
            z[a] = np.linalg.solve(M[np.ix_(a, a)], -q[a])
        except np.linalg.LinAlgError:
            continue
        if z.min(initial=0) > -1e-9 and (M @ z + q).min() > -1e-9:
            found.append(z)
    return found


def assert_solves(M, q, result, tolerance=1e-10):
    assert result.status == "solved"
    size = np.abs(q) + np.abs(M) @ result.z
    np.testing.assert_array_less(np.abs(M @ result.z + q - result.w), tolerance * size + 1e-300)
    assert (result.z >= 0).all() and (result.w >= 0).all()
    assert (result.z * result.w == 0).all()


BOTH = pytest.mark.parametrize("solver", [lemke, ppm])


@BOTH
@pytest.mark.parametrize("n", [1, 2, 5, 8, 10])
def test_murty(solver, n):
    result = solver(*problems.murty(n))
    assert result.status == "solved"
    np.testing.assert_allclose(result.z, 2.0**n * np.eye(n)[-1], atol=1e-9)


@BOTH
@pytest.mark.parametrize("n", [1, 3, 6, 9])
def test_fathi(solver, n):
    np.testing.assert_allclose(solver(*problems.fathi(n)).z, np.eye(n)[0], atol=1e-12)


@BOTH
def test_kostreva_does_not_cycle(solver):
    result = solver(*problems.kostreva())
    assert result.status == "solved" and result.pivots < 40
    np.testing.assert_allclose(result.z, np.full(3, 1 / 3), rtol=1e-14)


@BOTH
def test_cottle_pang_stone_4_4_7(solver):
    result = solver(*problems.cottle_pang_stone())
    np.testing.assert_allclose(result.z, [0, 1, 3], atol=1e-13)
    np.testing.assert_allclose(result.w, [2, 0, 0], atol=1e-13)


@BOTH
def test_two_by_two(solver):
    np.testing.assert_allclose(solver([[2, 1], [1, 2]], [-5, -6]).z, [4 / 3, 7 / 3], rtol=1e-14)


def test_empty_and_trivial_problems_need_no_pivot():
    assert lemke(np.zeros((0, 0)), np.zeros(0)).status == "solved"
    result = lemke(-np.eye(3), [0, 1, 2])
    assert result.status == "solved" and result.pivots == 0
    np.testing.assert_array_equal(result.w, [0, 1, 2])


@pytest.mark.parametrize(
    "M, q",
    [
        ([[0.0]], [-1.0]),
        ([[-1.0]], [-1.0]),
        ([[1.0, -1.0], [-1.0, 1.0]], [-1.0, 0.5]),
        (np.zeros((3, 3)), [1.0, -1e-3, 2.0]),
    ],
)
def test_unsolvable_ends_on_a_ray_and_is_not_regularized_away(M, q):
    result = lemke(M, q)
    assert result.status == "ray" and not result.solved
    assert (result.z == 0).all()


def test_regularized_solution_is_reported_with_its_amount():
    # copositive, not plus: M z + q >= 0 has solutions, the complementarity only in the limit
    M, q = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([-1.0, -1e-9])
    result = lemke(M, q)
    assert result.status in ("ray", "solved_regularized")
    assert (result.regularization > 0) == (result.status == "solved_regularized")


@pytest.mark.parametrize("seed", range(20))
def test_integer_degenerate_problems_match_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    A, S = rng.integers(-2, 3, (n, 2)), rng.integers(-1, 2, (n, n))
    M, q = (A @ A.T + S - S.T).astype(float), rng.integers(-2, 3, n).astype(float)
    result, found = lemke(M, q), enumerate_solutions(M, q)
    if result.solved:
        assert_solves(M, q, result)
    else:
        assert not found  # positive semidefinite: a ray proves there is none


@pytest.mark.parametrize("spread", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_units_do_not_matter(spread):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(8, 8))
    M, q = A @ A.T + np.eye(8), rng.normal(size=8)
    rows, columns = spread ** rng.uniform(-1, 1, (2, 8))
    plain, scaled = lemke(M, q), lemke(rows[:, None] * M * columns, rows * q)
    np.testing.assert_array_equal(scaled.basis, plain.basis)
    np.testing.assert_allclose(scaled.z * columns, plain.z, rtol=1e-11)


def test_nearly_singular_solution_is_refined():
    A = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    z = np.array([2.0, 3.0])
    result = lemke(A, -A @ z)
    assert_solves(A, -A @ z, result, 1e-14)


@BOTH
def test_warm_start_at_the_solution_takes_no_pivot_and_a_wrong_one_does_no_harm(solver):
    M, q = problems.fathi(6)
    cold = solver(M, q)
    warm = solver(M, q, warm_start=cold.basis)
    assert warm.pivots == 0
    np.testing.assert_array_equal(warm.z, cold.z)
    np.testing.assert_allclose(solver(M, q, warm_start=~cold.basis).z, cold.z, atol=1e-12)


def test_covering_vector_chooses_the_path():
    M, q = problems.murty(6)
    pivots = {lemke(M, q, cover=d).pivots for d in (np.ones(6), 0.5 ** np.arange(6))}
    assert len(pivots) == 2


def test_pivot_limit_is_a_status():
    assert lemke(*problems.murty(8), max_pivots=1).status == "pivot_limit"


@pytest.mark.parametrize(
    "arguments",
    [
        (np.eye(2), [1.0]),
        (np.ones((2, 3)), [1.0, 1.0]),
        (np.eye(2), [np.nan, 1.0]),
        ([[np.inf]], [1.0]),
        (np.eye(2), [1.0, 1.0], [1.0, 0.0]),
        ("M", [1.0]),
        (np.eye(2), [1.0, 1.0], None, [1, 0]),
        (np.eye(1), [1.0], None, None, -1),
    ],
)
def test_bad_input_is_refused_by_name(arguments):
    with pytest.raises(LcpError):
        lemke(*arguments)


def test_single_contact_approaches_the_exact_cone():
    W = np.array([[15.0, -1.0, -2.0], [-1.0, 14.0, 1.0], [-2.0, 1.0, 16.0]])
    exact = np.array([0.06540993, -0.00476343, -0.00704384])
    errors = []
    sides = np.array([4, 16, 64, 256, 1024, 4096])
    for k in sides:
        result = lemke_friction(
            np.linalg.cholesky(W), [-1.0, 2.0, 3.0], [0.13], problems.polygon(k)
        )
        assert result.status == "solved"
        errors.append(np.linalg.norm(result.impulses[0] - exact))
    # the edge taken is at most half a side away from the slip; the published digits end at 1e-8
    np.testing.assert_array_less(errors, 0.13 * exact[0] * 1.2 * np.pi / sides + 1e-8)


@pytest.mark.parametrize("edges", [3, 4, 5, 8])
@pytest.mark.parametrize("mu", [0.0, 0.1, 0.6, 1e4])
def test_factored_friction_solves_the_assembled_problem(edges, mu):
    rng = np.random.default_rng(edges)
    for contacts in (1, 4, 9, 25):
        problem = problems.standing_robot(rng, contacts, edges, mu)
        result = lemke_friction(*problem)
        assert result.status == "solved"
        M, q = problems.friction_matrix(*problem)
        z, w = (
            np.concatenate([a[:, 0], a[:, 1:-1].ravel(), a[:, -1]]) for a in (result.z, result.w)
        )
        size = np.abs(q) + np.abs(M) @ z + 1e-5 * (np.abs(q).max() + (np.abs(M) @ z).max())
        np.testing.assert_array_less(np.abs(M @ z + q - w), 1e-10 * size)
        assert (z >= 0).all() and (w >= 0).all() and (z * w == 0).all()


def test_friction_warm_start_and_scales():
    problem = problems.standing_robot(np.random.default_rng(1), 12)
    cold = lemke_friction(*problem)
    warm = lemke_friction(*problem, warm_start=cold.basis)
    assert warm.pivots == 0
    np.testing.assert_allclose(warm.impulses, cold.impulses, atol=1e-12)
    Y, c, mu, edges = problem
    np.testing.assert_allclose(
        lemke_friction(1e3 * Y, 1e-2 * c, mu, edges).impulses,
        1e-8 * cold.impulses,
        rtol=1e-9,
        atol=1e-20,
    )


def defect_m_s(Y, c, mu, edges, result):
    """How far impulses in their cones are from solving the problem: the largest miss of a row, m/s.

    Plain numpy on the impulses alone.  Velocities that ought to vanish or not to be negative are
    told as they are; where a contact slides, its friction must reach the end of the edges that
    slip is most against.
    """
    impulses, n = result.impulses, len(mu)
    w = (Y @ (Y.T @ impulses.ravel()) + c).reshape(n, 3)
    assert (impulses[:, 0] >= 0.0).all() and (result.z >= 0.0).all()
    edge_forces = result.z[:, 1:-1]
    np.testing.assert_allclose(edge_forces @ edges, impulses[:, 1:], atol=1e-15 * impulses.max())
    spare = mu * impulses[:, 0] - edge_forces.sum(axis=1)
    assert (spare >= -1e-12 * (mu * impulses[:, 0])).all()
    along = w[:, 1:] @ edges.T
    slip = np.maximum(-along.min(axis=1), 0.0)
    loaded = impulses[:, 0] > 0.0
    misses = [
        -w[:, 0],
        np.where(loaded, w[:, 0], 0.0),
        np.where(spare > 1e-9 * mu * impulses[:, 0], slip, 0.0),
        np.where(edge_forces > 0.0, along + slip[:, None], 0.0),
    ]
    return max(np.max(miss) for miss in misses)


@pytest.mark.parametrize("rest_m_s", [0.0, 1e-11, 1e-9, 1e-7])
@pytest.mark.parametrize("edges", [4, 16])
def test_a_struck_tower_is_solved_in_any_order_of_its_contacts(edges, rest_m_s):
    for seed in range(6):
        problem = problems.struck_tower(np.random.default_rng(seed), 13, edges, rest_m_s=rest_m_s)
        assert problem[0].shape == (156, 78) and np.linalg.matrix_rank(problem[0]) == 78
        result = lemke_friction(*problem)
        assert result.status == "solved", seed
        assert defect_m_s(*problem, result) < 1e-8 * np.abs(problem[1]).max(), seed


def test_a_second_path_is_told():
    """The first path of this tower goes astray; a standing robot needs one, its own basis none."""
    struck = [
        lemke_friction(*problems.struck_tower(np.random.default_rng(seed))).attempts
        for seed in range(6)
    ]
    assert max(struck) > 1
    standing = problems.standing_robot(np.random.default_rng(1), 12)
    cold = lemke_friction(*standing)
    assert cold.attempts == 1
    assert lemke_friction(*standing, warm_start=cold.basis).attempts == 0


def test_friction_without_contacts_without_approach_and_without_solution():
    edges = problems.polygon(4)
    assert lemke_friction(np.zeros((0, 6)), [], [], edges).status == "solved"
    apart = lemke_friction(np.eye(3), [1.0, 0.5, 0.0], [0.5], edges)
    assert apart.status == "solved" and (apart.impulses == 0).all()
    squeezed = lemke_friction(
        [[1.0], [0.0], [0.0], [-1.0], [0.0], [0.0]], [-1.0, 0, 0, -1.0, 0, 0], [0.5, 0.5], edges
    )
    assert squeezed.status == "ray" and (squeezed.impulses == 0).all()


@pytest.mark.parametrize(
    "arguments",
    [
        (np.eye(3), [1.0], [0.5], problems.polygon(4)),
        (np.eye(3), np.zeros(3), [-0.1], problems.polygon(4)),
        (np.eye(3), np.zeros(3), [np.inf], problems.polygon(4)),
        (np.eye(3), np.zeros(3), [0.5], np.eye(2)),
        (np.eye(3), np.zeros(3), [0.5], problems.polygon(4), [True]),
    ],
)
def test_bad_friction_input_is_refused_by_name(arguments):
    with pytest.raises(LcpError):
        lemke_friction(*arguments)


@pytest.fixture
def forgotten():
    """Cache directories are looked up anew, before and after."""
    _compile._cache_directory.cache_clear()
    yield _compile._cache_directory
    _compile._cache_directory.cache_clear()


def test_kernels_compile_where_nothing_is_writable(monkeypatch, forgotten):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/b")
    monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: "/dev/null/c")
    assert forgotten(__file__) is None
    assert _compile.bare_kernel(lambda x: x + 1.0)(1.0) == 2.0


def test_a_cache_of_somebody_else_is_not_read(monkeypatch, tmp_path, forgotten):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert forgotten(__file__).startswith(str(tmp_path))
    forgotten.cache_clear()
    monkeypatch.setattr(_compile.os, "getuid", lambda: 2**31)
    assert forgotten(__file__) is None


@pytest.mark.parametrize("made", ["open", "link"])
def test_a_folder_that_somebody_else_could_exchange_is_no_place_for_a_cache(
    monkeypatch, tmp_path, forgotten, made
):
    """In the temporary folder anybody may have made the one with our name before."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # nobody can write there
    monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: str(tmp_path))
    place = tmp_path / f"{_compile._NAME}-{os.getuid()}"
    assert forgotten(__file__).startswith(str(place))
    assert place.stat().st_mode & 0o077 == 0
    forgotten.cache_clear()
    if made == "open":
        place.chmod(0o777)
    else:
        place.rename(tmp_path / "elsewhere")
        place.symlink_to(tmp_path / "elsewhere")
    assert forgotten(__file__) is None


def test_a_cache_is_left_when_a_kernel_it_was_made_from_changes(tmp_path):
    texts = {
        "inner": "x = 1  # kernel",
        "outer": "from .inner import x  # kernel",
        "other": "# kernel",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    before = {name: _compile._digest(tmp_path / f"{name}.py") for name in texts}
    (tmp_path / "inner.py").write_text("x = 2  # kernel")
    _compile._imports.cache_clear()
    changed = {name for name in texts if _compile._digest(tmp_path / f"{name}.py") != before[name]}
    assert changed == {"inner", "outer"}


def test_a_cache_that_names_what_has_moved_is_made_anew(tmp_path):
    (tmp_path / "numerics.py").write_text(
        "from contact_id_controller.kernels.compile import kernel\n\n\n"
        "@kernel\ndef total(pair):\n    return pair.a + pair.b\n"
    )
    pair = (
        "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    a: float\n    b: float\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for module, old in (("shapes", "forms"), ("forms", "shapes")):
        (tmp_path / f"{old}.py").write_text("")
        (tmp_path / f"{module}.py").write_text(pair)
        code = (
            f"from numerics import total; from {module} import Pair; print(total(Pair(1.0, 2.0)))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert run.stdout == "3.0\n", run.stderr
    assert list((tmp_path / "cache").rglob("*.nbc"))


def test_copies_of_the_same_sources_share_a_cache(tmp_path):
    text = (
        "from contact_id_controller.kernels.compile import kernel\n\n\n"
        "@kernel\ndef double(x):\n    return 2.0 * x\n"
    )
    code = "from numerics import double; print(double(1.5), *double.stats.cache_hits.values())"
    answers = []
    for place in (tmp_path / "one", tmp_path / "another"):
        place.mkdir()
        (place / "numerics.py").write_text(text)
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=place,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        answers.append(run.stdout.split() or run.stderr)
    assert answers == [["3.0"], ["3.0", "1"]]
