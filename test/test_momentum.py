"""Contact plans and momentum: TALOS' weight over stones that rise and tilt (kinodynamic paper)."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic import (
    CONES,
    HESSIANS,
    InfeasiblePlanError,
    MomentumError,
    MomentumWeights,
    build_momentum_problem,
    centroidal,
    solve_momentum,
)
from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPhase,
    ContactPlan,
    ContactPlanError,
    Foothold,
    Sole,
)
from contact_id_controller.planning.kinodynamic.momentum_problem import GRAVITY
from experiments.papers import momentum_ipopt
from experiments.papers.kinodynamic_scenes import (
    FEET,
    HEIGHT_M,
    MASS_KG,
    SOLES,
    random_problem,
    stone_walk,
    talos,
)

GRAVITY = np.array(GRAVITY)


def test_phases_of_footsteps():
    plan = stone_walk()
    assert plan.duration_s == pytest.approx(7.0)
    assert [phase.feet for phase in plan.phases[:4]] == [
        FEET,
        ("left",),
        FEET,
        ("right",),
    ]
    contacts = plan.sample(100)
    assert contacts.time_step_s == pytest.approx(0.07)
    assert contacts.points.shape == (100, 8, 3) and len(contacts) == 100
    assert contacts.standing[:10].all() and contacts.standing[10:20].sum(1).tolist() == [4] * 10
    assert contacts.phase[[0, 9, 10, 99]].tolist() == [0, 0, 1, 8]


def test_corners_lie_inside_the_sole_on_the_stone():
    plan = stone_walk()
    contacts = plan.sample(50)
    foothold = plan.phases[2].foothold_of("right")
    corners = contacts.points[12, contacts.sole_of_corner == 1]
    local = (corners - foothold.position) @ foothold.rotation
    np.testing.assert_allclose(np.abs(local), [[0.0825, 0.045, 0]] * 4, atol=1e-12)
    assert len(Sole("toe").corners) == 1 and len(Sole("blade", (0.1, 0)).corners) == 2


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("phase 0 ends at", lambda: stone_walk().sample(33)),
        ("knots 0", lambda: stone_walk().sample(0)),
        ("cop_margin_m 0.2", lambda: Sole("left", (0.1, 0.1), cop_margin_m=0.2)),
        ("needs 'foot' and 'at'", lambda: Foothold.from_row({"foot": "left", "on": [0, 0, 0]})),
        ("position of a foothold of 'left'", lambda: Foothold("left", (0, 0, np.nan))),
        ("not orthonormal", lambda: Foothold("left", (0, 0, 0), np.ones((3, 3)))),
        (
            "'middle' has no sole; there are 'left', 'right'",
            lambda: ContactPlan(SOLES, [ContactPhase(1.0, [Foothold("middle", (0, 0, 0))])]),
        ),
        (
            "phase 1, foot left: changes its foothold without being lifted",
            lambda: ContactPlan(
                SOLES, [ContactPhase(1.0, [Foothold("left", (x, 0, 0))]) for x in (0, 0.1)]
            ),
        ),
    ],
)
def test_contradictions_are_named(message, make):
    with pytest.raises(ContactPlanError, match=message):
        make()


def test_durations_are_rounded_to_knots():
    plan = stone_walk(phase_s=0.72).on_knots(0.1)
    assert plan.duration_s == pytest.approx(7.0) and len(plan.sample(70)) == 70


def test_exact_map_against_integration():
    """Random forces held over a step, fixed points that jump: the map is the integral itself."""
    random = np.random.default_rng(3)
    dt, steps = 0.07, 6
    origins = random.standard_normal((steps + 1, 3))
    points = random.standard_normal((steps, 4, 3))
    rotations = np.linalg.qr(random.standard_normal((steps, 4, 3, 3)))[0]
    forces = random.standard_normal((steps, 4, 3))
    moves = centroidal.exact_map(origins, dt, GRAVITY)
    maps = centroidal.wrench_maps(points, rotations, origins)
    start = random.standard_normal((3, 3))
    x = centroidal.about_fixed_points(*start, origins[0])
    state = start.ravel()
    for t in range(steps):
        x = moves.A[t] @ x + moves.E[t] @ np.einsum("nij,nj->i", maps[t], forces[t]) + moves.b[t]
        world = 9.81 * np.einsum("nij,nj->ni", rotations[t], forces[t])

        def rate(_, y, world=world, points=points[t]):
            torque = np.cross(points - y[:3], world).sum(0)
            return np.concatenate([y[3:6], GRAVITY + world.sum(0), torque])

        state = solve_ivp(rate, (0, dt), state, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
        there = np.concatenate(centroidal.about_com(x, origins[t + 1]))
        np.testing.assert_allclose(there, state, atol=1e-11)


# Solutions


@pytest.fixture(scope="module")
def walk_50():
    return solve_momentum(talos(50))


@pytest.mark.parametrize("knots", [50, 100])
def test_forces_lead_where_the_plan_says(knots):
    """The same forces, integrated finely about the centre of mass: nothing of the solver is used."""
    plan = solve_momentum(talos(knots))
    assert plan.steps <= 15
    contacts = plan.problem.contacts
    state = plan.problem.start.ravel()
    worst = np.zeros(3)
    for t in range(knots):
        forces, points = plan.forces[t], contacts.points[t]

        def rate(_, y, forces=forces, points=points):
            total = forces.sum(0) + MASS_KG * GRAVITY
            return np.concatenate(
                [y[3:6] / MASS_KG, total, np.cross(points - y[:3], forces).sum(0)]
            )

        span = (0, contacts.time_step_s)
        state = solve_ivp(rate, span, state, method="DOP853", rtol=1e-12, atol=1e-11).y[:, -1]
        planned = (plan.com, plan.momentum, plan.angular_momentum)
        off = [np.abs(a - b[t + 1]).max() for a, b in zip(state.reshape(3, 3), planned)]
        worst = np.maximum(worst, off)
    assert worst[0] <= 1e-6 and worst[1] <= 1e-5 and worst[2] <= 1e-5


@pytest.mark.parametrize("cone", CONES)
def test_forces_stay_in_cones_and_pressure_on_soles(cone):
    plan = solve_momentum(talos(50, cone=cone))
    residuals = plan.residuals()
    tilted = residuals.pop("friction_n")
    assert max(residuals.values()) <= 1e-9
    if cone == "outer_pyramid":  # the paper's (20) leaves Coulomb's cone, by up to sqrt 2
        assert tilted > 1.0
    else:
        assert tilted <= 1e-9
    for number, sole in enumerate(plan.problem.contact_plan.soles):
        for t, centre in enumerate(plan.centres_of_pressure()[:, number]):
            if np.isfinite(centre).all():
                phase = plan.problem.contact_plan.phases[plan.problem.contacts.phase[t]]
                foothold = phase.foothold_of(sole.frame)
                local = foothold.rotation.T @ (centre - foothold.position)
                assert (np.abs(local) <= [0.0825 + 1e-9, 0.045 + 1e-9, 1e-9]).all()


def test_cones_cost_what_they_cut_away():
    """The larger the set of forces, the lower the cost; the pyramid inside costs little."""
    inner, cone, outer = (solve_momentum(talos(50, cone=name)).cost for name in CONES)
    assert outer < cone < inner < 1.002 * cone


@pytest.mark.parametrize("cone", ["pyramid", "cone"])
def test_every_hessian_finds_the_same_plan(cone):
    plans = {name: solve_momentum(talos(50, cone=cone), hessian=name) for name in HESSIANS}
    best = plans["exact"]
    for plan in plans.values():
        assert plan.cost == pytest.approx(best.cost, rel=1e-6)
        np.testing.assert_allclose(plan.com, best.com, atol=1e-5)


def test_warm_start_takes_fewer_steps(walk_50):
    problem = walk_50.problem
    moved = build_momentum_problem(
        problem.contact_plan,
        50,
        MASS_KG,
        reference=dataclasses.replace(problem.reference, com=problem.reference.com + 1e-3),
        start=problem.start,
    )
    cold, warm = solve_momentum(moved), solve_momentum(moved, warm_start=walk_50)
    assert warm.steps < cold.steps
    assert warm.cost == pytest.approx(cold.cost, rel=1e-6)


def test_flight_and_point_feet():
    """Two point feet hop: nothing acts while none stands, and momentum obeys."""
    soles = [Sole("left"), Sole("right")]
    stance = [Foothold("left", (0, 0.1, 0)), Foothold("right", (0, -0.1, 0))]
    phases = [ContactPhase(0.4, stance), ContactPhase(0.1, []), ContactPhase(0.6, stance)]
    plan = solve_momentum(talos(22, ContactPlan(soles, phases)))
    aloft = plan.problem.contacts.phase == 1
    assert (plan.forces[aloft] == 0).all()
    falling = np.diff(plan.momentum[:, 2])[aloft] / plan.problem.contacts.time_step_s
    np.testing.assert_allclose(falling, -9.81 * MASS_KG)
    assert max(plan.residuals().values()) <= 1e-9


@pytest.mark.parametrize(
    ("message", "make"),
    [
        (
            r"phase \d, foot (left|right): CoM .* m from the foothold, reach 0.95 m",
            lambda: stone_walk(forward=0.5, reach_m=0.95),
        ),
        (r"phase \d, foot (left|right): .*friction is missing: coeff", lambda: stone_walk(0.0)),
        (
            r"phase \d, foot (left|right): .*(friction|support) is missing",
            lambda: stone_walk(forward=2.0),
        ),
        (
            r"phase 0, no foot: .*support is missing: no foot stands for 0.7 s",
            lambda: ContactPlan(
                SOLES,
                [ContactPhase(0.7, []), ContactPhase(0.7, [Foothold("left", (0, 0, 0))])],
            ),
        ),
    ],
)
def test_what_is_missing_is_named(message, make):
    plan = make()
    with pytest.raises(InfeasiblePlanError, match=message):
        solve_momentum(talos(round(plan.duration_s / 0.07), plan))


@pytest.mark.parametrize(
    ("message", "keywords"),
    [
        ("mass_kg -1", {"mass_kg": -1.0}),
        ("cone 'square' does not exist; there are 'cone', 'outer_pyramid'", {"cone": "square"}),
        ("either height_m or a reference", {"height_m": None}),
        ("gravity .* must not vanish", {"gravity": (0, 0, 0)}),
        ("start must be", {"start": np.zeros((3, 2))}),
    ],
)
def test_a_problem_refuses(message, keywords):
    arguments = {"mass_kg": MASS_KG, "height_m": HEIGHT_M, **keywords}
    with pytest.raises(ConfigurationError, match=message):
        build_momentum_problem(stone_walk(), 50, **arguments)


def test_weights_and_options_are_refused(walk_50):
    with pytest.raises(ConfigurationError, match="weights force .*positive"):
        MomentumWeights(force=(0.1, 0.0, 0.1))
    with pytest.raises(MomentumError, match="hessian 'newton' does not exist; there are"):
        solve_momentum(walk_50.problem, hessian="newton")
    with pytest.raises(MomentumError, match="warm start needs the same contacts"):
        solve_momentum(talos(100), warm_start=walk_50)
    with pytest.raises(MomentumError, match="no momentum plan after 2 steps: too many steps"):
        solve_momentum(walk_50.problem, max_steps=2)


# Judges


@pytest.mark.parametrize(("knots", "cone"), [(50, "pyramid"), (100, "pyramid"), (50, "cone")])
def test_ipopt_finds_nothing_cheaper(knots, cone):
    """The paper's bilinear form of the same problem, in CasADi: the same cost, states and forces."""
    problem = talos(knots, cone=cone)
    plan, judge = solve_momentum(problem), momentum_ipopt.solve(problem)
    assert judge.solved
    assert plan.cost <= judge.cost * (1 + 1e-5)
    assert plan.cost >= judge.cost * (1 - 1e-4)  # both are the problem's minimum
    np.testing.assert_allclose(plan.com, judge.com, atol=1e-4)
    np.testing.assert_allclose(plan.angular_momentum / MASS_KG, judge.spin, atol=1e-4)


@pytest.mark.parametrize("cone", ["pyramid", "cone"])
def test_optimality_in_plain_numpy(cone):
    """The cost's gradient in every force, the motion rolled out, lies in the dual of its cone."""
    plan = solve_momentum(talos(50, cone=cone))
    standing = plan.problem.contacts.standing
    forces = (plan.local_forces() / plan.problem.weight_n)[standing]
    cost, slope, scale = cost_and_slope(plan.problem, forces)
    assert cost == pytest.approx(plan.cost, rel=1e-8)
    friction = (np.sqrt(0.5) if cone == "pyramid" else 1.0) * plan.problem.contacts.friction[
        standing
    ]
    # Along a force nothing is gained; in no direction that stays in the cone does the cost fall. The method ends
    # where the gradient is small beside its weights, which are hundreds of times the largest term of this plan.
    assert np.abs((slope * forces).sum(1)).max() <= 3e-5 * scale
    sideways = np.abs(slope[:, :2]).sum(1) if cone == "pyramid" else np.hypot(*slope[:, :2].T)
    assert (slope[:, 2] - friction * sideways).min() >= -3e-5 * scale


def test_random_scenes_are_solved():
    """Stones, tilts, friction, phases and knots, both cones: no solve fails."""
    steps = [solve_momentum(random_problem(seed, MomentumWeights())).steps for seed in range(200)]
    assert np.median(steps) <= 10 and max(steps) <= 30


def test_random_weights_are_solved():
    """Weights over decades: every problem is solved; some weights let the robot fall, which is named."""
    refused = 0
    for seed in range(100):
        try:
            assert max(solve_momentum(random_problem(seed)).residuals().values()) <= 1e-9
        except InfeasiblePlanError as error:
            assert re.match(r"phase \d+, foot (left|right): ", str(error))
            refused += 1
    assert refused <= 15


def test_slope_of_the_judge_against_differences(walk_50):
    problem, random = walk_50.problem, np.random.default_rng(5)
    forces = (walk_50.local_forces() / problem.weight_n)[problem.contacts.standing]
    forces = forces + 0.01 * random.standard_normal(forces.shape)
    slope = cost_and_slope(problem, forces)[1]
    for _ in range(5):
        way = random.standard_normal(forces.shape)
        up, down = (cost_and_slope(problem, forces + h * way)[0] for h in (1e-6, -1e-6))
        assert (up - down) / 2e-6 == pytest.approx((slope * way).sum(), rel=1e-6)


def handed_over(standing):
    """Shares (T, n) of the weight that corners are to bear: interval by interval, looking for where its phase ends."""
    shares = np.zeros(standing.shape)
    for t, stands in enumerate(standing):
        begin, end = t, t + 1
        while begin > 0 and (standing[begin - 1] == stands).all():
            begin -= 1
        while end < len(standing) and (standing[end] == stands).all():
            end += 1
        passed = (t + 0.5 - begin) / (end - begin)
        for i in np.flatnonzero(stands):
            shares[t, i] = 1.0
            if begin > 0 and not standing[begin - 1, i]:
                shares[t, i] *= passed
            if end < len(standing) and not standing[end, i]:
                shares[t, i] *= 1.0 - passed
        shares[t] /= max(shares[t].sum(), 1e-300)
    return shares


def cost_and_slope(problem, forces):
    """Cost of a problem, and its gradient in the forces / weight of the standing corners, (m, 3) in
    ground axes, with the largest term of it: motion about the centre of mass rolled out, and adjoint."""
    contacts, dt, g = problem.contacts, problem.contacts.time_step_s, 9.81
    w, reference = problem.weights, problem.reference
    weight = np.tile(dt * np.hstack([w.com, w.velocity, w.spin]), (problem.knots + 1, 1))
    weight[-1] = w.last
    goal = [reference.com, reference.momentum / MASS_KG, reference.angular_momentum / MASS_KG]
    goal = np.stack(goal, axis=1)
    state = problem.start / [[1.0], [MASS_KG], [MASS_KG]]
    interval, corner = np.nonzero(contacts.standing)
    points, rotations = contacts.points[interval, corner], contacts.rotations[interval, corner]
    world = np.einsum("mij,mj->mi", rotations, forces)
    total, torque = np.zeros((problem.knots, 3)), np.zeros((problem.knots, 3))
    np.add.at(total, interval, world)
    np.add.at(torque, interval, np.cross(points, world))
    off = forces - [[0.0, 0.0, 1.0]] * handed_over(contacts.standing)[interval, corner][:, None]
    cost, paths, pulls = 0.5 * dt * (off**2 @ w.force).sum(), [], []
    for t in range(problem.knots + 1):
        error = state - goal[t]
        pulls.append(weight[t].reshape(3, 3) * error)
        cost += 0.5 * (pulls[-1] * error).sum()
        if t < problem.knots:
            (r, v, k), a = state, g * total[t] + GRAVITY
            paths.append(dt * r + dt**2 / 2 * v + dt**3 / 6 * GRAVITY)
            spin = k + g * (dt * torque[t] - np.cross(paths[t], total[t]))
            state = np.array([r + dt * v + dt**2 / 2 * a, v + dt * a, spin])
    slope, (of_r, of_v, of_k), largest = dt * np.array(w.force) * off, pulls[-1], 0.0
    for t in range(problem.knots - 1, -1, -1):
        now = interval == t
        push, turned = dt**2 / 2 * of_r + dt * of_v, np.cross(of_k, paths[t])
        pull = g * (push - turned + dt * np.cross(of_k, points[now]))
        largest = max(largest, g * np.abs(push).max(), g * np.abs(turned).max())
        slope[now] += np.einsum("mji,mj->mi", rotations[now], pull)
        turn = g * np.cross(total[t], of_k)
        of_r, of_v, of_k = (
            pulls[t][0] + of_r - dt * turn,
            pulls[t][1] + of_v + dt * of_r - dt**2 / 2 * turn,
            pulls[t][2] + of_k,
        )
    return cost, slope, largest
