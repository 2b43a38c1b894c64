"""The allocations of ``python -m experiments power`` for an arm that pushes on a table while a load pulls along it.

    python benchmarks/arm_power.py --duration 4

Motion by operational-space laws on projected dynamics, forces and torques by programs assembled row by row.
"""

import argparse
from pathlib import Path
from typing import Any

import checkout  # noqa: F401  before what is not installed
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_id_controller.contacts import ContactSet
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.solution import SOLVED
from experiments.power.allocations import (
    CONES,
    PINV,
    PINV_W,
    PYRAMID,
    Allocation,
    pseudo_inverse,
)
from experiments.power.comparison import compare, table
from experiments.power.quadruped_runs import Record, Run, configuration, peak_torque
from experiments.projected.dynamics import ProjectedDynamics
from experiments.projected.operational_space import joint_task, program, track
from experiments.projected.program import QcqpProgram

STIFFNESS, DAMPING = 100.0, 20.0  # of the arm's sway, 1/s2 and 1/s
PRICE = 1e4  # of leaving the plan, relative to that of the torques: that of coulomb/qcqp
LIMIT = 0.8  # of torques, as a share of the pyramid's peak in the same run without limits


def arm_push(path: Path, name: str, duration_s: float, limit_nm: float | None = None) -> Run:
    """A fixed-base arm whose hand sticks to a table, pushing with at least push_n along -z.

    The contact point does not move, the joints sway as far as that allows (``track``), and a
    load of load_n sin(2 pi t / T) acts along tangent 1. The state follows the plan exactly.
    limit_nm: of all torques, None: the URDF's.
    """
    settings, push = load_settings(path), ParameterFile(path).section("push")
    robot = RobotModel.from_urdf(settings.urdf, settings.floating_base, list(settings.joints))
    weights = settings.spread("motor_constant_nm_sqrt_w", robot.na) ** -2.0
    limits = robot.effort_limits if limit_nm is None else np.full(robot.na, limit_nm)
    mu, dt = settings.friction_coefficient[0], settings.period_s
    frame, data = settings.contact_frames[0], robot.model.createData()
    q = robot.neutral()
    robot.put_joints(q, push["posture"])
    posture, sway = np.array(push["posture"]), np.array(push["sway"])
    v, previous, record = np.zeros(robot.nv), None, Record(weights, limits)
    rate = 2.0 * np.pi / push["sway_period_s"]
    for k in range(round(duration_s / dt)):
        angle = rate * k * dt
        pin.framesForwardKinematics(robot.model, data, q)
        contact = ContactSet(
            data.oMf[robot.frame_id(frame)].translation[None], [[0.0, 0.0, 1.0]], [frame], mu
        )
        dynamics = ProjectedDynamics(robot, q, v, contact)
        task = joint_task(
            dynamics,
            posture + 0.5 * sway * (1.0 - np.cos(angle)),
            STIFFNESS,
            DAMPING,
            0.5 * sway * rate * np.sin(angle),
            0.5 * sway * rate**2 * np.cos(angle),
        )
        tau_c = track(dynamics, [task])

        def program_of(
            weights: Any,
            lower: ArrayLike = -np.inf,
            upper: ArrayLike = np.inf,
            friction: Any = None,
            dynamics: ProjectedDynamics = dynamics,
            tau_c: np.ndarray = tau_c,
        ) -> Any:
            """The least-power program of this period's task, with other limits, N·m, or friction (1,)."""
            result = program(dynamics, tau_c, PRICE, weights, lower, upper)
            result.friction = result.friction if friction is None else friction
            return result

        load = push["load_n"] * np.sin(angle)
        answers, friction, previous = allocate_push(
            program_of, robot.na, push["push_n"], load, weights, limits, previous
        )
        record.add(answers, friction)
        qdd = np.linalg.solve(dynamics.M, program_of(weights).b - dynamics.C @ v - dynamics.gravity)
        v = dynamics.P @ (v + dt * qdd)
        q = pin.integrate(robot.model, q, dt * v)
    return record.run(name, mu, "the plan", limit_nm, dt)


def allocate_push(
    make_program: Any,
    na: int,
    push: float,
    load: float,
    weights: Any,
    limits: Any,
    previous: Any = None,
) -> tuple[Any, ...]:
    """All four allocations of one contact that must push with at least ``push``, N, and bear ``load``, N.

    make_program(weights, lower, upper, friction): the ``QcqpProgram`` of motion and contact. load: force
    of the surface along tangent 1. Free: tangent 2, and the normal force above ``push``, which the
    pseudo-inverse fixes. Returns as ``allocate_reduced``.
    """
    ones, friction = np.ones(na), make_program(weights).friction
    exact = _pushing(make_program(weights, -limits, limits), push, load)
    # Unbounded friction in the program: the pyramid's four faces stand for the cone.
    pyramid = _pushing(make_program(ones, friction=np.full(1, np.inf)), push, load)
    faces = np.zeros((4, na + 3))
    faces[:, na:] = [[friction[0], one, two] for one in (-1.0, 1.0) for two in (-1.0, 1.0)]
    pyramid.add_inequality(faces, np.zeros(4))
    plain = make_program(ones)
    offset, F = plain.b, -plain.A[:, na:]
    answers = {}
    for name, price in ((PINV, ones), (PINV_W, weights)):
        torques, f = pseudo_inverse(offset, F, np.eye(3)[:2], np.array([push, load]), price)
        answers[name] = Allocation(torques, f[None], True)
    results = {PYRAMID: pyramid.solve(), CONES: exact.solve(previous)}
    for name, result in results.items():
        answers[name] = Allocation(result.torques, result.forces, result.status == SOLVED)
    return answers, friction, results[CONES]


def _pushing(program: QcqpProgram, push: float, load: float) -> QcqpProgram:
    program.prescribe_force(0, load, (1,))
    row = np.zeros(program.A.shape[1])
    row[program.na] = 1.0
    program.add_inequality(row, push)
    return program


def both(duration_s: float) -> list[Run]:
    """The run with the limits of the URDF, and with lower ones."""
    path = configuration("arms/panda")
    free = arm_push(path, "arm pushes", duration_s)
    limit = LIMIT * peak_torque(free, PYRAMID)
    return [free, arm_push(path, "arm pushes, limited", duration_s, limit)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=4.0, metavar="S")
    parser.add_argument("--output", type=Path, default=Path("arm_power"), metavar="DIR")
    arguments = parser.parse_args()
    print(table(compare(arguments.duration, arguments.output, both)))
