"""Many bodies that lie on each other, through the library as anybody uses it: balls fall into a box."""

from collections import Counter

import numpy as np
import pinocchio as pin

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from experiments.benchmark.sliding_problems import exact_law_defect

RADIUS_M, MASS_KG, MU, NEAR_M = 0.1, 1.0, 0.5, 0.01
WALLS_M = (-0.15, 0.57)
PERIOD_S = 0.002


def balls(count):
    """Free balls as one robot without actuated joints."""
    model = pin.Model()
    for k in range(count):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"ball {k}")
        inertia = pin.Inertia.FromSphere(MASS_KG, RADIUS_M)
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        frame = pin.Frame(f"ball {k}", joint, 0, pin.SE3.Identity(), pin.FrameType.BODY)
        model.addFrame(frame)
    return RobotModel(model, [])


def contacts_of(places):
    """Of balls at places (b, 3) with each other, the floor and four walls."""
    rows = []
    for k, place in enumerate(places):
        name = f"ball {k}"
        planes = [(np.array([0.0, 0.0, 1.0]), 0.0)]
        for axis in (0, 1):
            planes += [
                (sign * np.eye(3)[axis], sign * WALLS_M[side]) for side, sign in ((0, 1), (1, -1))
            ]
        for number, (normal, offset) in enumerate(planes):
            gap = normal @ place - offset - RADIUS_M
            rows.append((gap, place - RADIUS_M * normal, normal, name, None, (k, -number - 1)))
        for other in range(k):
            way = place - places[other]
            far = np.linalg.norm(way)
            middle = places[other] + 0.5 * way
            rows.append(
                (far - 2.0 * RADIUS_M, middle, way / far, name, f"ball {other}", (k, other))
            )
    rows = [row for row in rows if row[0] < NEAR_M]
    if not rows:
        return ContactSet.empty()
    gaps, points, normals, frames, against, identities = zip(*rows)
    return ContactSet(points, normals, frames, MU, gaps, identities, against)


def test_balls_fall_into_a_box_by_the_exact_law():
    count, rng = 14, np.random.default_rng(1)
    robot = balls(count)
    assert robot.nu == 6 * count and robot.na == 0
    q, v = robot.neutral(), np.zeros(robot.nv)
    for k in range(count):
        step = np.array([k % 3, k // 3 % 3, k // 9])
        q[7 * k : 7 * k + 3] = 0.21 * step + [0.0, 0.0, 0.13] + 0.004 * rng.normal(size=3)
    last, statuses, most, worst, deepest = None, Counter(), 0, 0.0, 0.0
    energies = []
    for _ in range(350):
        contacts = contacts_of(q.reshape(count, 7)[:, :3])
        problem = build_problem(robot, q, v, np.zeros(0), contacts, PERIOD_S)
        last = solve(problem, "coulomb", "ncp", warm_start=last)
        statuses[last.status] += 1
        if len(contacts):
            free = last.attainable.copy()
            free[::3] += problem.gap_speed
            worst = max(worst, exact_law_defect(problem.Y, free, contacts.friction, last.impulses))
            deepest = min(deepest, contacts.gaps.min())
        most = max(most, len(contacts))
        v = last.velocity
        q = pin.integrate(robot.model, q, PERIOD_S * v)
        heights = q.reshape(count, 7)[:, 2]
        energies.append(
            pin.computeKineticEnergy(robot.model, robot.scratch, q, v)
            + 9.81 * MASS_KG * heights.sum()
        )
    assert statuses == {"solved": 350}, "nothing contradicts"
    assert most > count and worst < 1e-9
    assert deepest > -2e-3, "closed to first order in each period"
    assert max(np.diff(energies)) < 2e-3 * energies[0], "contacts take energy, and give none"
    assert energies[-1] < energies[0] - 5.0
