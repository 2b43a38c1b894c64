"""Touches of an arm found in a log, judged by Pinocchio: forces that are put into made logs."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from test_identify import CONSTANTS, DRY, UR5, Truth

from contact_id_controller.cli import run
from contact_id_controller.diagnosis import model_checks
from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG
from contact_id_controller.diagnosis.pushes import Free, contact, pushes
from contact_id_controller.diagnosis.robot_of_log import robot_of
from contact_id_controller.exit_codes import NOT_ALL_WELL

STOOD = np.array([0.3, -1.0, 1.1, 0.2, 0.4, 0.1])
FORCE_N = np.array([30.0, -40.0, 90.0])


def clean(truth, seconds, seed):
    """The half of a log in which nothing jumps."""
    log = truth.log(seconds, seed, in_amperes=True)
    log = log.rows(slice(len(log.time) // 2 + 1, None))
    return dataclasses.replace(log, time=log.time - log.time[0])


@pytest.fixture(scope="module")
def truth():
    return Truth()


@pytest.fixture(scope="module")
def free(truth):
    return clean(truth, 60.0, 5)


@pytest.fixture(scope="module")
def model(free):
    return Free.of(free, UR5)


def pushed(truth, log, joint, begin_s, end_s):
    """The log, in which FORCE_N acts at the far end of the link behind a joint; torques (na,) at its middle."""
    data, torque = truth.model.createData(), np.zeros(log.current.shape)
    ramp = np.clip(np.minimum(log.time - begin_s, end_s - log.time) / 0.1, 0.0, 1.0)
    for k in np.flatnonzero(ramp):
        pin.computeJointJacobians(truth.model, data, log.position[k])
        axes = pin.getJointJacobian(
            truth.model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        lever = data.oMi[joint + 1].translation - data.oMi[joint].translation
        torque[k] = ramp[k] * (axes[:3].T @ FORCE_N + axes[3:].T @ np.cross(lever, FORCE_N))
    middle = torque[np.searchsorted(log.time, 0.5 * (begin_s + end_s))]
    return dataclasses.replace(log, current=log.current - torque / CONSTANTS), middle


def standing(truth, seconds=8.0):
    """A log of the arm that stands; friction carries a part of the load that nobody knows."""
    log = truth.log(seconds, in_amperes=True, still=range(6))
    q = log.position + STOOD
    gravity = np.array(
        [pin.computeGeneralizedGravity(truth.model, truth.model.createData(), STOOD)]
    )
    noise = 0.02 * np.random.default_rng(2).normal(size=q.shape)
    held = 0.5 * DRY * np.array([1, -1, 1, -1, 1, -1])
    return dataclasses.replace(log, position=q, current=(gravity + held) / CONSTANTS + noise)


@pytest.mark.parametrize("joint, felt", [(2, 2), (3, 3)])
def test_a_push_on_an_arm_that_stands_is_found_on_its_link(truth, model, joint, felt):
    log, torque = pushed(truth, standing(truth), joint, 3.0, 4.2)
    found, _ = pushes(model, log)
    assert len(found) == 1
    assert abs(found[0].begin_s - 3.0) < 0.1 and abs(found[0].end_s - 4.2) < 0.15
    assert found[0].joints[-1] == truth.names[felt - 1]
    assert np.all(
        np.abs(found[0].torque - torque)[:felt]
        < found[0].error[:felt] + 0.15 * np.abs(torque[:felt]) + 1.0
    )


def test_a_push_on_an_arm_that_moves_is_found(truth, model):
    log, _ = pushed(truth, clean(truth, 24.0, 9), 3, 6.0, 7.0)
    found, _ = pushes(model, log)
    assert [each.joints[-1] for each in found] == [truth.names[2]]
    assert abs(found[0].begin_s - 6.0) < 0.1
    assert found[0].force_n == pytest.approx(np.linalg.norm(FORCE_N), rel=0.5)


def test_nothing_is_found_where_nothing_touches(truth, model):
    for log in (clean(truth, 40.0, 11), standing(truth)):
        assert pushes(model, log)[0] == []


def test_the_verdict_names_time_and_link_and_needs_a_free_log(truth, free):
    log, _ = pushed(truth, standing(truth), 3, 3.0, 4.2)
    robot = robot_of(log, UR5, None)
    touched, alone = contact(Case(log, robot, free)), contact(Case(log, robot))
    assert touched.verdict == WRONG and f"the link behind {truth.names[2]}" in touched.text
    assert contact(Case(standing(truth), robot, free)).verdict == FINE
    assert alone.verdict == UNKNOWN and "--free" in alone.change


def test_an_effort_that_is_no_number_hides_no_touch(truth, free):
    """In the log or in the free one."""
    log, _ = pushed(truth, standing(truth), 3, 3.0, 4.2)
    robot = robot_of(log, UR5, None)
    for each, other in ((log, free), (free, log)):
        current = each.current.copy()
        current[50, 5] = np.nan
        spoilt = dataclasses.replace(each, current=current)
        pair = (spoilt, other) if each is log else (other, spoilt)
        found = contact(Case(pair[0], robot, pair[1]))
        assert found.verdict == WRONG and "touched once" in found.text


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda log, free: (log, free.rows(slice(0, 20))), "rows"),
        (
            lambda log, free: (log, dataclasses.replace(free, current=None)),
            "neither efforts nor currents",
        ),
        (
            lambda log, free: (dataclasses.replace(log, effort=log.current, current=None), free),
            "has torques, the free log currents",
        ),
        (
            lambda log, free: (
                dataclasses.replace(log, joints=("other", *log.joints[1:])),
                free,
            ),
            "lacks joint",
        ),
    ],
)
def test_logs_that_do_not_go_together_are_told_and_end_nothing(truth, free, spoil, words):
    log, _ = pushed(truth, standing(truth), 3, 3.0, 4.2)
    robot = robot_of(log, UR5, None)
    log, other = spoil(log, free)
    found = contact(Case(log, robot, other))
    assert found.verdict == UNKNOWN and words in found.text


def test_a_free_log_in_which_nothing_moves_is_none(truth):
    log = standing(truth)
    found = contact(Case(log, robot_of(log, UR5, None), log))
    assert found.verdict == UNKNOWN


def test_the_command_takes_the_free_log(truth, free, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(model_checks, "faults", lambda case: ([], case))  # they take their time
    log, _ = pushed(truth, standing(truth), 3, 3.0, 4.2)
    files = []
    for name, each in (("pushed", log), ("free", free)):
        files.append(tmp_path / f"{name}.npz")
        np.savez(files[-1], t=each.time, names=each.joints, q=each.position, current=each.current)
    assert run(["diagnose", str(files[0]), "--urdf", UR5, "--free", str(files[1])]) == NOT_ALL_WELL
    assert "contact: wrong: touched once: " in capsys.readouterr().out
