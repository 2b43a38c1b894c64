"""What logs of a UR5 have that those of a simulation have not: no fault is named that is none, and the right one is."""

import dataclasses
import re

import numpy as np
import pytest
from real_arm import UR5, ur5_log

from contact_id_controller.cli import run
from contact_id_controller.diagnosis.case import in_order_of
from contact_id_controller.diagnosis.diagnose import diagnose
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG
from contact_id_controller.diagnosis.hypotheses import CONVINCING, NOTICED, Hypothesis
from contact_id_controller.diagnosis.model_checks import left_of
from contact_id_controller.exit_codes import DONE
from contact_id_controller.logs.log import Commands

ELBOW = 2


def named(log, urdf=UR5):
    return [str(each) for each in diagnose(log, urdf).wrong]


@pytest.fixture(scope="module")
def plain():
    return ur5_log()


@pytest.mark.parametrize(
    "seed, width, breakaway, speed",
    [(0, 0.002, 0.0, 1.0), (1, 0.01, 0.0, 0.5), (2, 0.02, 0.5, 1.0)],
)
def test_friction_that_turns_round_within_any_speed_is_no_gear_ratio(seed, width, breakaway, speed):
    """A width below that of the model looked like a faster joint: a gear ratio of 1.46 in a log without a fault."""
    assert not named(ur5_log(seed, width, breakaway=breakaway, speed=speed))


def test_a_gear_ratio_is_still_named_where_friction_is_narrow():
    log = ur5_log(3, 0.002)
    times = np.where(np.arange(6) == ELBOW, 1.3, 1.0)
    log = dataclasses.replace(log, position=log.position * times, velocity=log.velocity * times)
    wrong = diagnose(log, UR5).wrong
    assert [each.check for each in wrong] == ["gear ratios"]
    factor = wrong[0].fragment["correct"]["position"]["elbow_joint"]["times"]
    assert factor == pytest.approx(1.0 / 1.3, abs=0.02)


@pytest.mark.parametrize(
    "value, gain, verdict",
    [
        (0.2, 0.5 * CONVINCING, UNKNOWN),
        (0.02, 0.5 * CONVINCING, FINE),
        (0.2, -0.3, FINE),
        (0.2, 0.5 * NOTICED, UNKNOWN),
    ],
)
def test_a_best_fit_beyond_tolerance_is_not_fine(value, gain, verdict):
    """Neither is what the log would not notice: only what it excludes, or finds within tolerance."""
    tested = Hypothesis("zero offsets", 10.0 - gain, value, 0.03, "elbow is off", "")
    found = left_of("zero offsets", [tested], 10.0, 6)
    assert found.verdict == verdict and bool(found.change) == (verdict == UNKNOWN)


@pytest.mark.parametrize("hz, size", [(9.0, 8e-4), (15.0, 3e-4), (15.0, 2e-3), (23.0, 8e-4)])
def test_a_joint_that_trembles_is_told_so_and_nothing_else(hz, size):
    log = ur5_log(4, trembling=(ELBOW, hz, size))
    wrong = diagnose(log, UR5).wrong
    assert [each.check for each in wrong] == ["trembling"], wrong
    said = re.match(r"elbow_joint trembles at ([0-9.]+) Hz by ±([0-9.e-]+) rad", wrong[0].text)
    assert float(said[1]) == pytest.approx(hz, abs=0.3)
    assert float(said[2]) == pytest.approx(size, rel=0.2)
    assert [each.check for each in diagnose(log).wrong] == ["trembling"]


def test_a_motion_that_was_commanded_is_no_trembling():
    log = ur5_log(4, trembling=(ELBOW, 15.0, 8e-4))
    asked = dataclasses.replace(log, commands=Commands(position=log.position))
    assert not named(asked)


@pytest.mark.parametrize("mass, place", [(3.0, (0.0, 0.0, 0.08)), (2.0, (0.05, 0.0, 0.12))])
def test_what_an_arm_carries_is_a_load_at_its_flange(mass, place):
    wrong = diagnose(ur5_log(5, load=(mass, place)), UR5).wrong
    assert [each.check for each in wrong] == ["mass and payload"], wrong
    words = wrong[0].text.split()
    assert float(words[0]) == pytest.approx(mass, rel=0.1)
    assert "at the flange" in wrong[0].text
    at = [float(each) for each in words[words.index("at", 8) + 1 :][:3]]
    flange = 0.0823  # of the URDF, beyond the last joint
    assert np.sort(np.abs(at)) == pytest.approx(
        np.sort(np.abs(np.add(place, [0, 0, flange]))), abs=0.02
    )


def exchanged(values, i, j):
    order = list(range(values.shape[1]))
    order[i], order[j] = j, i
    return values[:, order]


def test_positions_and_velocities_of_two_joints_exchanged(plain):
    """Efforts were logged by another node, in the right order."""
    log = dataclasses.replace(
        plain, position=exchanged(plain.position, 1, 2), velocity=exchanged(plain.velocity, 1, 2)
    )
    wrong = diagnose(log, UR5).wrong
    assert wrong[0].check == "order of joints"
    assert "are exchanged in position and velocity;" in wrong[0].text


@pytest.mark.parametrize("channel", ["position", "velocity"])
def test_the_model_tells_in_which_channel_two_columns_are_exchanged(plain, channel):
    log = dataclasses.replace(plain, **{channel: exchanged(getattr(plain, channel), 1, 2)})
    (wrong,) = diagnose(log, UR5).wrong
    assert wrong.check == "order of joints" and f"are exchanged in {channel}:" in wrong.text


@pytest.mark.parametrize("urdf", [None, UR5])
def test_positions_under_the_name_of_velocities(plain, urdf):
    log = dataclasses.replace(plain, position=plain.velocity, velocity=plain.position, effort=None)
    wrong = diagnose(log, urdf).wrong
    assert wrong[0].check == "order of channels", [str(each) for each in wrong]
    assert diagnose(plain, urdf).findings and not named(plain, urdf)


def test_a_joint_that_the_description_lacks_is_left_out(plain):
    """Its place in the columns stays what it was, also in what is pasted."""

    def with_gripper(values):
        return np.insert(values, 2, 0.01 * np.sin(plain.time), axis=1)

    names = (*plain.joints[:2], "gripper", *plain.joints[2:])
    channels = {
        each: with_gripper(getattr(plain, each)) for each in ("position", "velocity", "effort")
    }
    log = dataclasses.replace(plain, joints=names, **channels)
    found = diagnose(log, UR5)
    assert not found.wrong
    verdicts = {each.check: each for each in found.findings}
    assert verdicts["joints of the log"].verdict == UNKNOWN
    assert "gripper" in verdicts["joints of the log"].text
    swapped = (names[0], names[3], names[2], names[1], *names[4:])
    found = diagnose(dataclasses.replace(in_order_of(log, swapped), joints=names), UR5)
    assert [each.check for each in found.wrong] == ["order of joints"]
    assert found.fragment["joints"] == list(swapped)
    assert found.wrong[0].verdict == WRONG


def test_both_commands_take_joints_without_names_in_the_order_of_the_urdf(plain, tmp_path, capsys):
    path = tmp_path / "log.npz"
    np.savez(path, t=plain.time, q=plain.position, v=plain.velocity, tau=plain.effort)
    said = (
        f"{path}: no names of joints, taken in the order of the URDF: {', '.join(plain.joints)}\n"
    )
    for words in (["diagnose", "--quiet"], ["identify", "--out", str(tmp_path / "out")]):
        assert run([words[0], str(path), "--urdf", UR5, *words[1:]]) == DONE
        assert capsys.readouterr().err == said
