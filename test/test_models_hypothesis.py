"""Whatever contact problem hypothesis makes up: every model answers, finite, by name, true to its laws.

The structure is drawn (robot, scales, contacts, friction, gaps, copies, motion, options), so that a
failure shrinks to a small problem, printed as a ``Drawn`` that ``build`` makes again; the numbers in
between come from its seed. More examples, at random, and shrunk failures:
HYPOTHESIS_EXAMPLES=2000 python -m pytest test/test_models_hypothesis.py
"""

import os
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contact_id_controller import ContactSet, build_problem, solve
from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.models import ROWS, available, contact_models
from contact_id_controller.solution import SOLVED
from experiments.benchmark.random_problems import (
    PERIOD_S,
    ROBOTS,
    RandomProblem,
    scaled_robot,
)
from experiments.benchmark.robustness import BAD, attempt, models

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", 0))


def profile(examples):
    """In the suite few examples, always the same, and no shrinking."""
    phases = list(Phase) if EXAMPLES else [Phase.generate]
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        phases=phases,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


PAIRS = [row.pair for row in contact_models()]
FEW = min(row.most_contacts for row in contact_models() if row.most_contacts)
SCALES = [(1.0, 1.0), (1e-3, 1e-2), (1e3, 10.0), (1.0, 1e3), (1e3, 1e-3)]  # of mass, of length
FRICTION = [0.0, 1e-4, 0.1, 0.6, 1.0, 10.0, np.inf]
NORMALS = [(0, 0, 1), (0.6, 0, 0.8), (-0.6, 0, 0.8), (0, 1, 0), (0, -1, 0), (0, 0, -1)]
CONTACT = st.tuples(
    st.integers(0, 3),  # which of up to four bodies it is on
    st.sampled_from([*NORMALS, None]),  # None: any direction
    st.sampled_from(FRICTION),
    st.sampled_from([0.0, 0.0, 1e-6, 1e-3, -1e-4]),  # gap, in units of the robot's length
    st.sampled_from([None, None, 0.0, 1e-9, 1e-6]),  # distance of a copy of the contact before
)
FLOATING = sorted(name for name in ROBOTS if ROBOTS[name][1])
KINDS = [(name, extra) for name in FLOATING for extra in ("", "", "object", "passive")]
KINDS += [("panda", ""), ("panda", "object")]


class Drawn(NamedTuple):
    """What hypothesis draws of a problem."""

    kind: tuple
    scales: tuple
    motion: float
    tilt: float
    flat: bool
    rows: list
    time_constant: float
    acceleration: float
    gain: float
    edges: int
    polygon: str
    distribution: str
    seed: int


def drawn(most=24):
    """Problems of at most so many contacts, often few."""
    sizes = sorted({min(size, most) for size in (FEW, 8, 24)})
    return st.builds(
        Drawn,
        st.sampled_from(KINDS),
        st.sampled_from(SCALES),
        st.sampled_from([0.0, 1e-4, 0.1, 3.0]),
        st.sampled_from([0.0, 0.2, 3.0]),
        st.booleans(),
        st.sampled_from(sizes).flatmap(lambda size: st.lists(CONTACT, max_size=size)),
        st.sampled_from([PERIOD_S, 0.01, 0.05, 1.0]),
        st.sampled_from([0.0, 1.0, 30.0]),
        st.sampled_from([0.0, 0.2, 1.0]),
        st.sampled_from([4, 3, 5, 8]),
        st.sampled_from(["inscribed", "circumscribed"]),
        st.sampled_from(["least_torque", "least_force", "none"]),
        st.integers(0, 2**32 - 1),
    )


def build(drawn):
    """The problem of a ``Drawn``."""
    rng = np.random.default_rng(drawn.seed)
    (name, extra), (mass, length) = drawn.kind, drawn.scales
    robot = scaled_robot(name, mass, length, extra)
    q, v = robot.neutral(), drawn.motion * rng.normal(size=robot.nv)
    q[robot.q_index] = rng.uniform(-1.0, 1.0, robot.na)
    if robot.floating_base:
        q[3:7] = pin.Quaternion(pin.exp3(drawn.tilt * rng.normal(size=3))).coeffs()
        v[:3] *= length
    contacts = make_contacts(robot, q, drawn.rows, drawn.flat, length, extra == "object", rng)
    problem = build_problem(
        robot,
        q,
        v,
        drawn.acceleration * rng.normal(size=robot.na),
        contacts,
        PERIOD_S,
        contact_time_constant_s=drawn.time_constant,
        penetration_gain=drawn.gain,
    )
    return RandomProblem(problem, q, v, repr(drawn), drawn.edges, drawn.polygon, drawn.distribution)


def make_contacts(robot, q, rows, flat, length, has_object, rng):
    """The contact set of drawn rows; ``flat``: all points in one plane."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    bodies = [
        frame.name
        for frame in robot.model.frames
        if frame.type == pin.FrameType.BODY and frame.parentJoint > 0
    ]
    feet = [str(name) for name in rng.choice(bodies, 4)]
    if has_object:
        feet[0] = "object"
    points, normals, frames = [], [], []
    for foot, normal, _, _, copy in rows:
        if copy is not None and points:
            points.append(points[-1] + copy * length * rng.normal(size=3))
            normals.append(normals[-1])
            frames.append(frames[-1])
            continue
        origin = data.oMf[robot.frame_id(feet[foot])].translation
        points.append(origin + 0.05 * length * rng.normal(size=3))
        direction = rng.normal(size=3) if normal is None else np.array(normal, float)
        normals.append(direction / np.linalg.norm(direction))
        frames.append(feet[foot])
        if flat:
            points[-1][2] = -0.3 * length
    return ContactSet(
        np.reshape(points, (-1, 3)),
        np.reshape(normals, (-1, 3)),
        frames,
        np.array([row[2] for row in rows]),
        length * np.array([row[3] for row in rows]),
        viscosity=rng.uniform(0.0, 100.0, len(rows)),
    )


UNLAWFUL = "wrong"
each_model = pytest.mark.parametrize("pair", PAIRS, ids="/".join)


def accepts(pair, case):
    return len(case.problem) <= (ROWS[pair].most_contacts or len(case.problem))


@each_model
def test_every_answer_has_a_name_and_forces_that_can_be_used(pair):
    @profile(150)
    @given(drawn())
    def check(structure):
        case = build(structure)
        if accepts(pair, case):
            trial = attempt(*pair, case, dynamics=False)
            assert trial.outcome.split(" (")[0] not in BAD or trial.outcome == UNLAWFUL, trial
        else:
            with pytest.raises(UnknownModelError, match="at most"):
                solve(case.problem, *pair)

    check()


@pytest.mark.parametrize("pair", models(), ids="/".join)  # qcqp: see test_qcqp_program.py
def test_a_model_that_says_solved_obeys_its_laws(pair):
    @profile(150)
    @given(drawn(ROWS[pair].most_contacts or 24))
    def check(structure):
        trial = attempt(*pair, build(structure), dynamics=True)
        assert trial.outcome != UNLAWFUL and (
            trial.outcome != SOLVED or trial.violation <= ROWS[pair].accuracy
        ), trial

    check()


@profile(150)
@given(drawn())
def test_the_same_problem_has_the_same_answer_and_a_warm_start_keeps_it_finite(structure):
    case = build(structure)
    for pair in available():
        if accepts(pair, case):
            first, second = solve(case.problem, *pair), solve(case.problem, *pair)
            again = solve(case.problem, *pair, warm_start=first)
            assert first.status == second.status
            np.testing.assert_array_equal(first.torques, second.torques)
            np.testing.assert_array_equal(first.impulses, second.impulses)
            assert all(
                np.isfinite(x).all() for x in (again.torques, again.impulses, again.velocity)
            )
