"""coulomb/qp_energy, the contact model of one reproduction: known while it is needed, and what it says."""

import threading

import numpy as np
import pytest
from robots import solo12, standing_solo

from contact_id_controller import ContactSet, build_problem, solve
from contact_id_controller.exceptions import ConfigurationError, UnknownModelError
from contact_id_controller.models import ROWS, available
from contact_id_controller.models.registry import names_text
from contact_id_controller.settings.controller import ControllerSettings
from experiments.papers.kinetic_energy import MODEL, registered
from experiments.papers.locomotion import LocomotionRun, prepare

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return solo12()


def standing(robot, acceleration=0.0, **changes):
    q, contacts = standing_solo(robot)
    changed = ContactSet(contacts.points, contacts.normals, contacts.frames, 0.6, **changes)
    return build_problem(robot, q, np.zeros(robot.nv), acceleration * np.ones(12), changed, DT)


def test_the_model_is_known_within_the_block_only(robot):
    problem, before, names = standing(robot), available(), names_text()
    with pytest.raises(UnknownModelError, match="no solver 'qp_energy'"):
        solve(problem, *MODEL.pair)
    with registered() as row:
        assert row is MODEL and available() == [*before, MODEL.pair]
        assert solve(problem, *MODEL.pair).status == "solved"
        with registered():
            pass
        assert MODEL.pair in ROWS  # the inner block does not take it from the outer one
    assert available() == before and names_text() == names


def test_it_leaves_after_an_error_and_stays_for_another_thread():
    with pytest.raises(ZeroDivisionError), registered():
        raise ZeroDivisionError
    assert MODEL.pair not in ROWS
    inside, end = threading.Event(), threading.Event()

    def other():
        with registered():
            inside.set()
            end.wait(30.0)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(30.0)
    with registered():
        pass
    assert MODEL.pair in ROWS
    end.set()
    thread.join()
    assert MODEL.pair not in ROWS


def test_the_walk_of_the_paper_gets_it():
    run = LocomotionRun("qp_energy_mu", "rigid_low", engine="rigid")
    with pytest.raises(UnknownModelError, match="qp_energy"):
        prepare(run)
    with registered():
        assert prepare(run)[0].controller.row is MODEL


def test_the_product_has_no_objective(robot):
    for pair in (("coulomb", "qp"), ("no_slip", "qp")):
        with pytest.raises(UnknownModelError, match="no option 'objective'"):
            solve(standing(robot), *pair, objective="kinetic_energy")
    gone, old = (
        r"^parameter 'objective' is gone.*kinetic_energy\.py",
        {"objective": "kinetic_energy"},
    )
    with pytest.raises(ConfigurationError, match=gone):
        ControllerSettings.from_mapping({"urdf": "x.urdf", **old})
    with pytest.raises(ConfigurationError, match=gone):
        ControllerSettings.from_mapping({"urdf": "x.urdf"}, options=old)


def test_its_forces_are_in_their_cones_and_no_contact_closes(robot):
    for acceleration in (-3.0, 0.0, 5.0):
        problem = standing(robot, acceleration)
        with registered():
            solution = solve(problem, *MODEL.pair)
        assert solution.status == "solved"
        assert solution.residuals()["cone_n"] < 1e-6
        w = problem.Y @ (problem.Y.T @ solution.impulses) + problem.c
        assert w[::3].min() > -1e-9


def test_shares_change_its_forces_and_never_its_motion(robot):
    whole = standing(robot)
    ramped = standing(robot, load_share=np.array([1.0, 0.3, 1.0, 1.0]))
    with registered():
        plain, less = solve(whole, *MODEL.pair), solve(ramped, *MODEL.pair)
        q, _ = standing_solo(robot)
        none = build_problem(robot, q, np.zeros(18), np.zeros(12), ContactSet.empty(), DT)
        assert solve(none, *MODEL.pair).forces.shape == (0, 3)
    np.testing.assert_allclose(less.velocity, plain.velocity, rtol=0, atol=1e-7)
    assert less.forces[1, 2] < 0.9 * plain.forces[1, 2]
