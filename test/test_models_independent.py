"""Every contact model against an independent formulation of itself, none of them reduced.

Inertia, Jacobians and drifts come from Pinocchio, everything else is written out here. Gauss'
principle gives the complementarity-free models without any elimination: v+ minimises

    1/2 (v+ - v)^T M (v+ - v) + dt h^T v+    P v+ = qd_des,  contact constraints on J v+

and the multipliers are contact impulses and joint torques (times dt).
"""

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
import quadprog
from quantecon.optimize import lcp_lemke
from robots import SOLO_FEET, frame_positions, point_kinematics, solo12
from tolerances import within

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models import ROWS, Tangential, contact_models

DT, TIME_CONSTANT, MU = 1e-3, 0.05, 0.6
GENERAL = [
    row
    for row in contact_models()
    if not (row.holds_touching or row.uses_history or row.most_contacts)
]
MODELS = [row.pair for row in GENERAL]
DISTRIBUTED = [row.pair for row in GENERAL if row.takes("distribution")]


class Case:
    """A robot on n random contacts near its feet, and the un-reduced matrices of its motion."""

    def __init__(self, robot, seed, n, mu=MU):
        rng = np.random.default_rng(seed)
        self.robot, self.n = robot, n
        self.q = robot.configuration(
            [0, 0, 0.3, *pin.Quaternion(pin.exp3(0.2 * rng.normal(size=3))).coeffs()],
            np.tile([0.1, 0.8, -1.6], 4) + 0.2 * rng.normal(size=12),
        )
        self.v = 0.3 * rng.normal(size=robot.nv)
        self.acceleration = 5.0 * rng.normal(size=robot.na)
        frames = [SOLO_FEET[i % 4] for i in range(n)]
        self.offsets = 0.02 * rng.normal(size=(n, 3))
        points = frame_positions(robot, self.q, frames) + self.offsets
        normals = np.array([0, 0, 1.0]) + 0.2 * rng.normal(size=(n, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        self.contacts = ContactSet(
            points,
            normals,
            frames,
            mu,
            rng.choice([0.0, 1e-5], n),
            viscosity=5.0,
            identities=[f"contact {i}" for i in range(n)],
        )
        self.problem = self.build(self.contacts)
        J, drift = point_kinematics(robot, self.q, self.v, frames, self.offsets)
        turn = np.zeros((3 * n, 3 * n))
        for i in range(n):
            turn[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = self.problem.frames[i]
        self.J, self.drift = turn @ J, DT * (turn @ self.rigid(drift))
        self.target = self.drift - (1.0 - DT / TIME_CONSTANT) * self.J @ self.v  # w = J v+ + target
        data = robot.model.createData()
        M = pin.crba(robot.model, data, self.q)
        self.M = np.triu(M) + np.triu(M, 1).T
        self.h = pin.nonLinearEffects(robot.model, data, self.q, self.v)
        self.desired = self.v[robot.actuated] + DT * self.acceleration
        self.P = np.eye(robot.nv)[robot.actuated]
        self.gap = np.zeros(3 * n)
        self.gap[::3] = self.contacts.gaps / DT

    def rigid(self, drift):
        """Drifts (3n,) of points that move with one body: of those that touch the nearest ones a rigid motion has."""
        model, drift = self.robot.model, drift.copy()
        links = [model.frames[self.robot.frame_id(f)].parentJoint for f in self.contacts.frames]
        touching = self.contacts.gaps <= TOUCHING_SPEED * DT
        for link in set(links):
            few = [i for i in range(self.n) if links[i] == link and touching[i]]
            motion = np.vstack(
                [np.hstack([np.eye(3), -pin.skew(self.contacts.points[i])]) for i in few]
                or [np.zeros((0, 6))]
            )
            rows = [3 * i + d for i in few for d in range(3)]
            drift[rows] = motion @ np.linalg.lstsq(motion, drift[rows], rcond=None)[0]
        return drift

    def build(self, contacts):
        return build_problem(
            self.robot,
            self.q,
            self.v,
            self.acceleration,
            contacts,
            DT,
            contact_time_constant_s=TIME_CONSTANT,
        )

    def gauss(self, equalities, inequalities, soft=0.0):
        """Rows on w + gap; soft > 0 lets each w yield by soft times its impulse. Returns v+, z, tau, objective."""
        nv, m = self.robot.nv, 3 * self.n if soft else 0
        H = np.zeros((nv + m, nv + m))
        H[:nv, :nv] = self.M
        H[nv:, nv:] = np.eye(m) / soft if soft else 0.0
        linear = np.concatenate([self.M @ self.v - DT * self.h, np.zeros(m)])
        J = np.hstack([self.J, np.eye(m)]) if soft else self.J
        P = np.hstack([self.P, np.zeros((len(self.P), m))])
        rows = np.vstack([P, equalities @ J, inequalities @ J])
        at = self.target + self.gap
        bounds = np.concatenate([self.desired, -equalities @ at, -inequalities @ at])
        fixed = len(P) + len(equalities)
        x, value, _, _, multipliers, _ = quadprog.solve_qp(
            H, linear, np.ascontiguousarray(rows.T), bounds, fixed
        )
        defect = H @ x - linear  # = rows^T multipliers: signs of the equalities' are not told apart
        multipliers[:fixed] = np.linalg.lstsq(
            rows[:fixed].T, defect - rows[fixed:].T @ multipliers[fixed:], rcond=None
        )[0]
        z = equalities.T @ multipliers[len(P) : fixed] + inequalities.T @ multipliers[fixed:]
        return x[:nv], z, multipliers[: len(P)] / DT, value


def pyramid(n, mu, edges=4):
    """Edge rows (n edges, 3n)."""
    E = np.zeros((n * edges, 3 * n))
    for i, j in product(range(n), range(edges)):
        angle = 2 * np.pi * j / edges
        E[edges * i + j, 3 * i : 3 * i + 3] = 1.0, mu * np.cos(angle), mu * np.sin(angle)
    return E


def split(n):
    """Selectors of tangential (2n, 3n) and normal (n, 3n) rows."""
    eye = np.eye(3 * n)
    return eye[[r for r in range(3 * n) if r % 3]], eye[::3]


def close(actual, expected, tolerance=1e-8):
    scale = max(np.abs(expected).max(initial=0.0), 1e-6)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@pytest.fixture(scope="module")
def robot():
    return solo12()


def cases(robot, n, count=12, mu=MU):
    return [Case(robot, 100 * n + seed, n, mu) for seed in range(count)]


def gauss_objective(case, velocity):
    change = velocity - case.v
    return 0.5 * change @ case.M @ change + DT * case.h @ velocity


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_coulomb_qp_is_gauss_principle_under_the_friction_pyramid(robot, n):
    for case in cases(robot, n):
        solution = solve(case.problem, consistency="report", sliding="parting")
        assert solution.status == "solved"
        v, z, torques, _ = case.gauss(np.zeros((0, 3 * n)), pyramid(n, MU))
        close(solution.velocity, v)
        close(gauss_objective(case, solution.velocity), gauss_objective(case, v))
        if n == 1:
            close(solution.impulses, z, 1e-7)
            close(solution.torques, torques, 1e-7)
        assert solution.residuals(case.q, case.v)["dynamics"] < 1e-8


@pytest.mark.parametrize("n", [1, 2])
def test_no_slip_models_are_equality_constrained_motion(robot, n):
    compared = 0
    for case in cases(robot, n):
        tangents, normals = split(n)
        solution = solve(case.problem, "no_slip", "qp", consistency="report")
        try:
            v, z, _, _ = case.gauss(tangents, normals)
        except ValueError:  # quadprog: no motion does this
            assert solution.status == "inconsistent"
            continue
        close(solution.velocity, v)
        compared += 1
        if n == 1:
            close(solution.impulses, z, 1e-7)
        parting = (case.J @ v + case.target + case.gap)[::3]
        if parting.max() < 1e-9:  # a contact that parts is let go by the lcp
            close(solve(case.problem, "no_slip", "lcp", consistency="report").velocity, v)
    assert compared >= 3


@pytest.mark.parametrize("friction", ["coulomb", "no_slip"])
def test_one_stage_models_yield_in_proportion_to_their_force(robot, friction):
    for case in cases(robot, 4):
        A = case.M[:6, :6]
        G = case.J[:, :6] @ np.linalg.solve(A, case.J[:, :6].T)
        soft = 1e-3 * np.trace(G) / len(G)
        tangents, normals = split(4)
        rows = (np.zeros((0, 12)), pyramid(4, MU)) if friction == "coulomb" else (tangents, normals)
        v, z, torques, _ = case.gauss(*rows, soft)
        solution = solve(
            case.problem, friction, "qp_one_stage", consistency="report", regularisation=1e-3
        )
        close(solution.velocity, v)
        close(solution.impulses, z, 1e-7)
        close(solution.torques, torques, 1e-7)


def full_polygon_lcp(case, mu, edges=4):
    """Equation 64, corrected, on the joint space inertia with the actuated velocities eliminated."""
    n = case.n
    A, J = case.M[:6, :6], case.J[:, :6]
    free = np.linalg.solve(A, case.M[:6] @ case.v - DT * case.h[:6] - case.M[:6, 6:] @ case.desired)
    c = J @ free + case.J[:, 6:] @ case.desired + case.target + case.gap
    D = np.vstack(
        [np.eye(3 * n)[::3], pyramid(n, 1.0, edges) - np.repeat(np.eye(3 * n)[::3], edges, axis=0)]
    )
    E = np.kron(np.eye(n), np.ones((edges, 1)))
    size = n * (edges + 1)
    M = np.zeros((size + n, size + n))
    M[:size, :size] = D @ J @ np.linalg.solve(A, J.T) @ D.T
    M[n:size, size:] = E
    M[size:, :n] = mu * np.eye(n)
    M[size:, n:size] = -E.T
    q = np.concatenate([D @ c, np.zeros(n)])
    return (
        M,
        q,
        lambda z: np.concatenate([free + np.linalg.solve(A, J.T @ (D.T @ z[:size])), case.desired]),
    )


@pytest.mark.parametrize("solver", ["lcp", "qp"])
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_coulombs_law_moves_like_the_solution_of_quantecons_lemke(robot, n, solver):
    same = 0
    for case in cases(robot, n):
        M, q, motion = full_polygon_lcp(case, MU)
        theirs = lcp_lemke(M, q)
        if not theirs.success:
            continue
        solution = solve(case.problem, "coulomb", solver, consistency="report")
        assert solution.status == "solved"
        close(solution.velocity, motion(theirs.z))
        same += 1
    assert same >= 8


def test_implicit_viscous_friction_against_enumeration_of_the_loaded_contacts(robot):
    for case in cases(robot, 4):
        tangents, normals = split(4)
        nv, na = case.robot.nv, case.robot.na
        found = None
        for loaded in product([False, True], repeat=4):
            K = np.zeros((nv + na + 12, nv + na + 12))
            right = np.zeros(len(K))
            K[:nv, :nv], K[:nv, nv : nv + na], K[:nv, nv + na :] = case.M, -DT * case.P.T, -case.J.T
            right[:nv] = case.M @ case.v - DT * case.h
            K[nv : nv + na, :nv], right[nv : nv + na] = case.P, case.desired
            for r in range(12):
                row = nv + na + r
                if r % 3:  # z_T + dt mu_v (J_T v+ + drift) = 0
                    K[row, row], K[row, :nv] = 1.0, DT * 5.0 * case.J[r]
                    right[row] = -DT * 5.0 * case.drift[r]
                elif loaded[r // 3]:
                    K[row, :nv], right[row] = case.J[r], -(case.target + case.gap)[r]
                else:
                    K[row, row] = 1.0
            x = np.linalg.solve(K, right)
            parting = normals @ (case.J @ x[:nv] + case.target + case.gap)
            if parting.min() > -1e-9 and x[nv + na :: 3].min() > -1e-9:
                found = x
                break
        assert found is not None
        solution = solve(case.problem, "viscous", "lcp", consistency="report")
        close(solution.velocity, found[:nv])
        close(tangents @ solution.impulses, tangents @ found[nv + na :], 1e-7)


def test_least_torque_is_the_least_of_all_forces_with_the_same_motion(robot):
    """Stage II in all forces and torques at once, against the un-reduced equations of motion."""
    for case in cases(robot, 4):
        solution = solve(case.problem, consistency="report", sliding="parting")
        w = case.J @ solution.velocity + case.target + case.gap
        E = pyramid(4, MU)
        slack = E @ w
        tight = E[slack < 1e-9 * np.abs(case.target).max()]
        na, m = case.robot.na, len(tight)
        if m == 0:
            continue
        # Torques and edge multipliers b: M (v+ - v) + dt h = J^T E^T b + dt P^T tau.
        equations = np.hstack([DT * case.P.T, case.J.T @ tight.T])
        value = case.M @ (solution.velocity - case.v) + DT * case.h
        left, size, right = np.linalg.svd(equations, full_matrices=False)
        keep = size > 1e-9 * size[0]
        rows = np.vstack([right[keep], np.hstack([np.zeros((m, na)), np.eye(m)])])
        bounds = np.concatenate([(left.T @ value)[keep] / size[keep], np.full(m, -1e-12)])
        H = np.diag(np.concatenate([np.ones(na), np.full(m, 1e-10)]))
        x = quadprog.solve_qp(
            H, np.zeros(na + m), np.ascontiguousarray(rows.T), bounds, int(keep.sum())
        )[0]
        assert np.linalg.norm(solution.torques) <= np.linalg.norm(x[:na]) * (1 + 1e-4) + 1e-6


@pytest.mark.parametrize("friction, solver", DISTRIBUTED)
def test_distribution_and_warm_start_never_change_the_motion(robot, friction, solver):
    previous = None
    for case in cases(robot, 6, 6):
        motions = [
            solve(case.problem, friction, solver, distribution=name).velocity
            for name in ("least_torque", "least_force", "none")
        ]
        motions.append(solve(case.problem, friction, solver, warm_start=previous).velocity)
        for motion in motions[1:]:
            close(motion, motions[0], within((friction, solver), 1e-8))
        previous = solve(case.problem, friction, solver)


@pytest.mark.parametrize("friction, solver", MODELS)
def test_renumbered_contacts_get_the_same_forces(robot, friction, solver):
    for case in cases(robot, 5, 6):
        order = np.random.default_rng(3).permutation(5)
        old = case.contacts
        renumbered = ContactSet(
            old.points[order],
            old.normals[order],
            [old.frames[i] for i in order],
            old.friction[order],
            old.gaps[order],
            viscosity=old.viscosity[order],
            identities=[old.identities[i] for i in order],
        )
        before = solve(case.problem, friction, solver)
        after = solve(case.build(renumbered), friction, solver, warm_start=before)
        pair = (friction, solver)
        assert before.status == after.status
        if ROWS[pair].tangential is Tangential.NO_SLIP and before.status == "unholdable":
            continue  # no force holds these contacts, in any order
        assert before.status == "solved"
        close(after.velocity, before.velocity, within(pair, 1e-8))
        if ROWS[pair].unique_forces:
            close(after.torques, before.torques, within(pair, 1e-5))
            close(after.forces, before.forces[order], within(pair, 1e-5))


@pytest.mark.parametrize("friction, solver", MODELS)
def test_forces_grow_with_the_mass_and_the_motion_stays(robot, friction, solver):
    """Units of mass are a matter of taste."""
    factor = 250.0
    model = pin.Model(robot.model)
    for joint in range(model.njoints):
        body = model.inertias[joint]
        model.inertias[joint] = pin.Inertia(body.mass * factor, body.lever, body.inertia * factor)
    heavy = RobotModel(model, robot.joint_names)
    for light_case in cases(robot, 4, 6):
        contacts = light_case.contacts
        stiff = ContactSet(
            contacts.points,
            contacts.normals,
            contacts.frames,
            contacts.friction,
            contacts.gaps,
            viscosity=factor * contacts.viscosity,
        )
        light = solve(light_case.problem, friction, solver)
        other = solve(
            build_problem(
                heavy,
                light_case.q,
                light_case.v,
                light_case.acceleration,
                stiff,
                DT,
                contact_time_constant_s=TIME_CONSTANT,
            ),
            friction,
            solver,
        )
        pair = (friction, solver)
        close(other.velocity, light.velocity, within(pair, 1e-8))
        if ROWS[pair].unique_forces:
            close(other.torques, factor * light.torques, within(pair, 1e-6))
            close(other.forces, factor * light.forces, within(pair, 1e-6))
