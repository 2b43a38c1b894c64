"""Kinodynamic paper: its formulas against their own definitions, with random numbers.

Sums of IV-B, theorem 1, the centre of pressure of (27) and (28), and what Euler's rule (7) leaves
against the continuous motion under the same forces.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.planning.kinodynamic import MomentumPlan, solve_momentum
from contact_id_controller.planning.kinodynamic.centroidal import cross_matrix
from experiments.papers.kinodynamic_bilinear import kept_part
from experiments.papers.kinodynamic_scenes import talos

CONDITION_KNOTS = (50, 100, 200)
EULER_KNOTS = (50, 100)


def check() -> dict:
    """Errors of the formulas as printed and as they should be."""
    random = np.random.default_rng(1)
    return {
        **theorem_1(random),
        **pressure_bounds(random),
        **sums(random),
        "condition": {str(knots): condition(knots) for knots in CONDITION_KNOTS},
        "euler": {str(knots): euler_error(solve_momentum(talos(knots))) for knots in EULER_KNOTS},
    }


def theorem_1(random) -> dict:
    """(a x b)_i is half the difference of two forms with eigenvalues 1, 1, 0, 0, 0, 0."""
    a, b = random.standard_normal((2, 3))
    both, error, spectrum = np.concatenate([a, b]), 0.0, []
    for i in range(3):
        positive, negative = kept_part(i, 1.0), kept_part(i, -1.0)
        value = 0.5 * both @ (positive - negative) @ both
        error = max(error, abs(value - np.cross(a, b)[i]))
        spectrum.append(np.linalg.eigvalsh(0.5 * (positive - negative)))
    return {
        "theorem_1_error": float(error),
        "theorem_1_eigenvalues": np.mean(spectrum, axis=0).tolist(),
    }


def pressure_bounds(random) -> dict:
    """Margin of the CoP times the normal force, (28): printed with p_max - c, meant with p_max + c."""
    rotation = np.linalg.qr(random.standard_normal((3, 3)))[0]
    rotation *= np.sign(np.linalg.det(rotation))
    foot, com = random.standard_normal((2, 3))
    plane, normal = rotation[:, :2], rotation[:, 2]
    pressure, centre, most = np.array([0.03, -0.02]), np.array([0.01, 0.04]), np.array([0.1, 0.1])
    force, yaw = rotation @ [3.0, -2.0, 50.0], 0.7
    kappa = normal * yaw + np.cross(plane @ pressure + foot - com, force)
    moment = plane.T @ (kappa + np.cross(com - foot, force))
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]]) @ moment
    true = (most - (pressure - centre)) * (normal @ force)
    return {
        "cop_error": float(np.abs(-turned / (normal @ force) - pressure).max()),
        "bound_true": true.tolist(),
        "bound_printed": ((most - centre) * (normal @ force) + turned).tolist(),
        "bound_meant": ((most + centre) * (normal @ force) + turned).tolist(),
    }


def sums(random, knots=30, first=5, last=17, dt=0.07, mass=90.0) -> dict:
    """IV-B: momentum and position from the double sums phi of a contact that acts for a while."""
    gravity = np.array([0.0, 0.0, -9.81])
    forces = np.zeros((knots, 3))
    forces[first:last] = 100.0 * random.standard_normal((last - first, 3))
    phi = np.zeros((knots + 2, 3))  # phi[t + 2] is the paper's phi_t
    for t in range(knots):
        phi[t + 2] = forces[t] + 2 * phi[t + 1] - phi[t]
    start = random.standard_normal((2, 3))
    position, momentum = [start[0]], [start[1]]
    for t in range(knots):
        position.append(position[-1] + dt * momentum[-1] / mass)
        momentum.append(momentum[-1] + dt * (mass * gravity + forces[t]))
    right = printed = moved = 0.0
    for t in range(2, knots):
        slope, height = phi[t + 1] - phi[t], phi[t]
        if t >= last:  # from the last two before the contact ends: the paper's eps
            slope = phi[last + 1] - phi[last]
            height = phi[last] + (t - last) * slope
        ballistic = start[1] + dt * t * mass * gravity
        right = max(right, np.abs(ballistic + dt * slope - momentum[t]).max())
        printed = max(printed, np.abs(ballistic + dt**2 * slope - momentum[t]).max())
        path = mass * start[0] + dt * t * start[1] + dt**2 * t * (t - 1) / 2 * mass * gravity
        moved = max(moved, np.abs(path + dt**2 * height - mass * position[t]).max())
    return {
        "momentum_error": float(right),
        "momentum_error_printed": float(printed),
        "position_error": float(moved),
    }


def condition(knots: int) -> float:
    """Of the double sum that the sequential form's variables are; its Hessian has the square."""
    second = np.eye(knots) - 2 * np.eye(knots, k=-1) + np.eye(knots, k=-2)
    return float(np.linalg.cond(second))


def euler_error(plan: MomentumPlan) -> dict:
    """How far symplectic Euler's rule, the better reading of (7), is from the motion under a plan's forces.

    Largest difference of the CoM, m, and of the angular momentum about it, kg m2/s.
    """
    contacts, mass = plan.problem.contacts, plan.problem.mass_kg
    dt, gravity = contacts.time_step_s, plan.problem.gravity
    com, velocity, spin = plan.problem.start / [[1.0], [mass], [mass]]
    off = np.zeros(2)
    for t, forces in enumerate(plan.forces):
        torque = (cross_matrix(contacts.points[t] - com) @ forces[..., None]).sum(0)[:, 0]
        spin = spin + dt * torque / mass
        velocity = velocity + dt * (forces.sum(0) / mass + gravity)
        com = com + dt * velocity
        off[0] = max(off[0], np.abs(com - plan.com[t + 1]).max())
        off[1] = max(off[1], np.abs(mass * spin - plan.angular_momentum[t + 1]).max())
    return {"com_m": float(off[0]), "angular_momentum": float(off[1])}
