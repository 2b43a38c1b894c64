"""Arrays of any layout and kind of numbers enter compiled code as the numbers they show."""

import dataclasses

import numpy as np
import pytest
from numba.core.errors import TypingError
from paths import CONFIG
from robots import SOLO_FEET, frame_positions, random_state, solo12

from contact_id_controller import ContactFrames, ContactSet, build_problem, solve, solve_batch
from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation import DynamicsEstimator, JointEffort
from contact_id_controller.estimation.filters import LowPass
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.views import columns, dense, rows, view
from contact_id_controller.lcp import lemke, lemke_friction, ppm, ppm_factored
from contact_id_controller.models.inverse_dynamics import InverseDynamics
from contact_id_controller.settings.parameter_file import load_settings
from contact_id_controller.state import RobotState
from experiments.benchmark.lcp_problems import standing_robot
from experiments.rigid.forward import build_forward_problem

DT = 1e-3


def with_gaps(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


def backwards(array):
    return array[::-1].copy()[::-1]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    room = np.zeros(array.nbytes + 1, np.uint8)
    shown = room[1:].view(np.float64).reshape(array.shape)
    shown[...] = array
    return shown


def single_precision(array):
    return array.astype(np.float32)


def big_endian(array):
    return array.astype(">f8")


def broadcast(array):
    """Rows that are one row, where they are alike."""
    alike = array.ndim > 1 and len(array) and (array == array[:1]).all()
    return np.broadcast_to(array[:1], array.shape) if alike else array


LAYOUTS = (
    np.asfortranarray,
    with_gaps,
    backwards,
    read_only,
    unaligned,
    single_precision,
    big_endian,
    broadcast,
)


def rounded(*arrays):
    """Numbers that single precision knows too."""
    return [np.asarray(array).astype(np.float32).astype(float) for array in arrays]


@pytest.fixture(scope="module")
def robot():
    return solo12()


@pytest.fixture(scope="module")
def given(robot):
    """State, acceleration, places and numbers of contacts, generalized forces."""
    rng = np.random.default_rng(3)
    q, v = random_state(robot, rng)
    points = frame_positions(robot, q, SOLO_FEET)
    normals = np.tile([0.0, 0.0, 1.0], (4, 1))
    numbers = rng.uniform(0.3, 0.9, (3, 4))
    acceleration, force = rng.normal(size=robot.na), rng.normal(size=robot.nv)
    return rounded(q, v, acceleration, points, normals, *numbers, force)


def by_problem(robot, q, v, acceleration, points, normals, friction, gaps, share, force):
    contacts = ContactSet(points, normals, SOLO_FEET, friction, gaps, load_share=share)
    problem = build_problem(robot, q, v, acceleration, contacts, DT, external_forces=force)
    return solve(problem).torques


def by_moved_contacts(robot, q, v, acceleration, points, normals, friction, gaps, share, force):
    contacts = ContactSet(np.zeros((4, 3)), np.tile([1.0, 0.0, 0.0], (4, 1)), SOLO_FEET)
    contacts = contacts.moved(points, gaps, normals, share, friction)
    problem = build_problem(robot, q, v, acceleration, contacts, DT, external_forces=force)
    return solve(problem, "no_slip", "lcp").forces


def by_inverse_dynamics(robot, q, v, acceleration, points, normals, friction, gaps, share, _):
    contacts = ContactSet(np.zeros((4, 3)), normals, SOLO_FEET, friction, gaps, load_share=share)
    return InverseDynamics(robot, contacts, DT).torques(q, v, acceleration, points)


def by_batch(robot, q, v, acceleration, points, normals, friction, gaps, share, force):
    contacts = ContactSet(np.zeros((4, 3)), normals, SOLO_FEET, load_share=share)
    frames = ContactFrames(
        contacts, *(None if each is None else each[None] for each in (points, None, normals)),
        gaps[None], friction[None],
    )  # fmt: skip
    arrays = (each[None] for each in (q, v, acceleration))
    return solve_batch(robot, *arrays, frames, DT, external_forces=force[None]).torques


def by_forward_dynamics(robot, q, v, torques, points, normals, friction, gaps, _, force):
    contacts = ContactSet(points, normals, SOLO_FEET, friction, gaps)
    problem = build_forward_problem(robot, q, v, torques, contacts, DT, external_forces=force)
    return solve(problem, "coulomb", "lcp").velocity


DOORS = (by_problem, by_moved_contacts, by_inverse_dynamics, by_batch, by_forward_dynamics)


@pytest.mark.parametrize("door", DOORS)
def test_a_problem_is_the_same_in_any_layout(robot, given, door):
    wanted = np.array(door(robot, *given))
    for layout in LAYOUTS:
        np.testing.assert_array_equal(door(robot, *map(layout, given)), wanted, layout.__name__)


def test_a_controller_takes_a_state_in_any_layout(given):
    settings = load_settings(CONFIG / "solo12.yaml")
    settings = dataclasses.replace(settings, record_path="")
    robot = settings.robot()
    q, v, *_ = given
    wanted = Controller(robot, settings).step(RobotState(1.0, q, v)).torques
    for layout in LAYOUTS:
        found = Controller(robot, settings).step(RobotState(1.0, layout(q), layout(v))).torques
        np.testing.assert_array_equal(found, wanted, layout.__name__)


def test_linear_complementarity_problems_are_the_same_in_any_layout():
    rng = np.random.default_rng(5)
    factor, right = rounded(rng.normal(size=(6, 4)), np.abs(rng.normal(size=6)))
    right[::2] *= -1.0
    right[:] = factor @ rng.normal(size=4) - np.abs(right)
    (right,) = rounded(right)
    matrix = factor @ factor.T
    (matrix,) = rounded(matrix)
    friction = rounded(*standing_robot(rng, 4))
    for method, arguments in (
        (lemke, (matrix + np.eye(6), right)),
        (ppm, (matrix + np.eye(6), right)),
        (ppm_factored, (factor, right)),
        (lemke_friction, friction),
    ):
        arguments = rounded(*arguments)
        wanted = method(*arguments)
        for layout in LAYOUTS:
            found = method(*map(layout, arguments))
            np.testing.assert_array_equal(found.z, wanted.z, layout.__name__)
            assert found.status == wanted.status


def test_an_estimator_takes_signals_in_any_layout(robot, given):
    q, v, efforts, *_ = given
    estimator, wanted = DynamicsEstimator(robot, [JointEffort(0.0)]), None
    for layout in (np.copy, *LAYOUTS):
        signals = {"joint_effort": layout(efforts)}
        found = estimator.estimate(layout(q), layout(v), None, signals).joint_accelerations.copy()
        smooth = LowPass(len(efforts), 10.0, DT)(layout(efforts)).copy()
        wanted = (found, smooth) if wanted is None else wanted
        np.testing.assert_array_equal(found, wanted[0], layout.__name__)
        np.testing.assert_array_equal(smooth, wanted[1], layout.__name__)


def test_what_is_dense_is_not_copied():
    table = np.ones((4, 3))
    assert dense(table) is table
    assert not any(np.shares_memory(dense(layout(table)), table) for layout in LAYOUTS)


@kernel
def _first_rows(table):
    return rows(table, 0, 1).sum()


@kernel
def _part(store):
    return view(store, 0, (2,)).sum()


@kernel
def _first_columns(matrix):
    return columns(matrix, 0, 1).sum()


def test_views_of_arrays_with_gaps_are_not_compiled():
    table = np.arange(12.0).reshape(4, 3)
    assert _first_rows(table) == 3.0 and _part(table.ravel()) == 1.0
    assert _first_columns(table.T) == 3.0  # columns of what lies column after column
    assert _first_columns(table) == 18.0 and _first_columns(np.ones((3, 1))) == 3.0
    for function, array in (
        (_first_rows, table[:, ::2]),
        (_first_rows, table.T),
        (_part, table[:, 0]),
        (_first_columns, table[::2, ::2]),
    ):
        with pytest.raises(TypingError, match="a view needs an array of layout"):
            function(array)
