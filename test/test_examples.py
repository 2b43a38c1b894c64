"""Each example runs, prints a number, and the number is right."""

import importlib.util
import runpy
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT

from contact_id_controller.estimation.sensor_kinds import KINDS
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.models import ROWS
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.runs.record import RunRecord

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LINES = 100


@pytest.fixture
def example(capsys):
    """Runs an example; returns what its ``main`` returned and what it printed."""

    def run(name, *arguments):
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.main(*arguments), capsys.readouterr().out

    return run


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_is_short_listed_and_tested(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) < LINES
    assert f"python examples/{file.name}" in text
    assert f"(../examples/{file.name})" in (ROOT / "docs" / "examples.md").read_text("utf-8")
    tests = (ROOT / "test" / "test_examples.py").read_text("utf-8")
    assert f'example("{file.stem}"' in tests or f"examples/{file.name}" in tests


@pytest.fixture
def shown(monkeypatch, capsys):
    """Runs an example as a script; returns its exit code, what it printed and what it told as an error."""

    def run(name, *words):
        file = ROOT / "examples" / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(file), *words])
        monkeypatch.syspath_prepend(file.parent)
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(file), run_name="__main__")
        return end.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_shows_help_and_refuses_surplus_words_at_once(file, shown):
    if file.stem == "squat_planner":
        pytest.importorskip("rclpy", reason="needs ROS 2")
    code, printed, _ = shown(file.stem, "--help")
    assert code == 0 and f"python examples/{file.name}" in printed
    code, printed, error = shown(file.stem, "a", "b", "surplus")
    assert (code, printed, error.count("\n")) == (2, "", 1), error
    assert error.startswith(f"{file.name}: error: ") and ("surplus" in error or "'a'" in error)


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("walk", ["ice"], ["FRICTION", "'ice'"]),
        ("walk", ["-1"], ["-1"]),
        ("press", ["-5"], ["-5"]),
        ("press", ["nan"], ["nan"]),
        ("wipe", ["20", "-1"], ["-1.0"]),
        ("sensors", ["dear"], ["'dear'", "'motor_currents'"]),
        ("read_a_record", ["nothing.npz"], ["'nothing.npz'"]),
        ("read_a_record", ["README.md"], ["'README.md'", "record.npz"]),
    ],
)
def test_a_wrong_word_ends_in_one_line_with_the_value(name, words, told, shown):
    code, printed, error = shown(name, *words)
    assert (code, printed, error.count("\n")) == (2, "", 1), error
    assert all(word in error for word in told), error


def test_stand(example):
    share, printed = example("stand")
    assert share == pytest.approx(1.0, abs=1e-6)
    assert f"carried share {share:.6f}" in printed and "solved" in printed


def test_reach(example):
    """Arms of TALOS have friction, which the posture's error is no measure of: the hand stayed .13 m short.

    That friction is dry: the hand rests where its joints stick.
    """
    (away, turned, moved), printed = example("reach")
    assert away < 5e-3 and turned < 0.01 and moved < 0.02
    assert "fell: False" in printed


def test_push_on_a_wall(example):
    """Pinocchio finds nothing left for the base, and the wall returns what is pushed."""
    (push, left), printed = example("push_on_a_wall")
    assert push > 5.0 and left < 1e-6
    assert f"{push:.3f} N pushed" in printed and f"{push:.3f} N held by friction" in printed


def test_compare_models(example):
    carried, printed = example("compare_models")
    assert set(carried) == {str(row) for row in ROWS.values() if row.predicts_forces}
    for row in (row for row in ROWS.values() if row.predicts_forces):
        given_way = 0.02 if row.yields else 1e-4  # contacts that yield carry less until they have
        assert carried[str(row)] == pytest.approx(1.0, abs=given_way)
    assert all(name in printed for name in carried)


def test_own_robot(example):
    (efforts, expected), printed = example("own_robot")
    np.testing.assert_allclose(efforts, expected, rtol=1e-9)
    assert f"on paper: {expected:.4f} N" in printed


def test_own_contact_model(example):
    """Glue carries the whole weight by pulling; honest contact never pulls, and the robot tips over."""
    try:
        (glued, honest), printed = example("own_contact_model")
    finally:
        ROWS.pop(("glued", "least_force"), None)
    assert glued.min() < -0.1 and honest.min() >= -1e-9
    assert "carried: glue 1.000000 of the weight" in printed
    assert honest.sum() < glued.sum() - 0.1


def test_read_a_record(example, tmp_path):
    """Four whole steps of the trot: the mean of the ground's forces is the weight."""
    picture = tmp_path / "forces.png"
    (carried, error), printed = example("read_a_record", None, str(picture))
    assert carried == pytest.approx(1.0, abs=0.02) and error < 0.1
    assert "fell: False" in printed and picture.stat().st_size > 10_000


def test_payload(example):
    """1 kg in the hand is found to a percent, a push at the elbow within 80 ms, nothing else alarms."""
    (mass, delay, false), printed = example("payload")
    assert mass == pytest.approx(1.0, abs=0.01)
    assert delay < 0.08 and false == 0
    assert f"holds {mass:.3f} kg" in printed and "0 false alarms" in printed


def test_walk(example):
    (fell, joint_error, force_error), printed = example("walk")
    assert not fell and "fell: False" in printed
    assert joint_error < 0.01 and force_error < 0.03


def test_squat(example):
    """A plan of the reader's own: MuJoCo's base goes down as far as planned, and its forces are those predicted."""
    (down, error), printed = example("squat")
    assert down == pytest.approx(0.04, abs=1e-3) and error < 0.005
    assert f"squatted {1e3 * down:.1f} mm" in printed and "fell: False" in printed


def test_what_a_planner_returns_is_followed_or_refused():
    settings = controller_settings("solo12")

    def planned(made):
        world = mujoco_robot(settings, 0.6)
        run = InProcessRun("solo12", settings, world, plan=lambda controller, state: made)
        return run.advance().plan

    empty = Plan()
    assert planned(empty) is empty and planned(None) is None
    with pytest.raises(ConfigurationError, match="returned a dict, must return a Plan or None"):
        planned({})


def test_squat_planner_moves_the_robot_over_topics(tmp_path):
    """The same plan sent by a node of the reader's own, with a parameter from the command line, as the page shows it."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    words = "demo --robot solo12 --duration 3.2 --planner examples/squat_planner.py"
    words += f" --set squat_planner.down_m=0.03 --output {tmp_path / 'report'}"
    command = [sys.executable, "-m", "contact_id_controller", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    height = RunRecord.load(tmp_path / "report" / "record.npz").q[:, 2]
    assert height[0] - height.min() == pytest.approx(0.03, abs=1e-3)
    assert height[-1] == pytest.approx(height[0], abs=1e-3)


def test_leg_ik(example):
    """MuJoCo's base goes where it was planned, and as far as feet of 16 mm roll while their legs turn by 5 degrees."""
    (swayed, error), printed = example("leg_ik")
    assert swayed == pytest.approx(0.04 + 2 * 0.016 * 0.02 / 0.25, abs=1e-3) and error < 0.01
    assert f"swayed {1e3 * swayed:.1f} mm" in printed and "fell: False" in printed


def test_feet_out_of_reach_have_no_joint_positions():
    spec = importlib.util.spec_from_file_location("leg_ik", ROOT / "examples" / "leg_ik.py")
    legs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(legs)
    settings = legs.controller_settings("solo12")
    robot, feet = settings.robot(), list(settings.contact_frames)
    joints = np.array([0.0, 0.8, -1.6, 0.0, 0.8, -1.6, 0.0, -0.8, 1.6, 0.0, -0.8, 1.6])
    base = np.array([0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0])
    stand, _ = legs.feet_at(robot, robot.configuration(base, joints), feet)
    found = legs.solve_legs(robot, feet, base, stand - [0.0, 0.0, 0.01], joints)
    reached, _ = legs.feet_at(robot, robot.configuration(base, found), feet)
    np.testing.assert_allclose(reached, stand - [0.0, 0.0, 0.01], atol=legs.CLOSE_M)
    with pytest.raises(ValueError, match="m away"):
        legs.solve_legs(robot, feet, base, stand - [0.0, 0.0, 1.0], joints)


def test_press(example):
    (predicted, simulated), printed = example("press")
    assert predicted == pytest.approx(20.0, abs=0.2) and simulated == pytest.approx(20.0, abs=0.2)
    assert f"simulated {simulated:.2f} N" in printed


@pytest.mark.parametrize("friction", [0.3, 0.6])
def test_wipe(example, friction):
    """The table's friction is told to be .6; the hand is never off it, and goes where it is to go."""
    (pressed, error), printed = example("wipe", 20.0, friction)
    assert abs(pressed.mean() - 20.0) < 1.0 and 10.0 < pressed.min() and pressed.max() < 30.0
    assert error < 1e-3
    assert "touching 100.0 %" in printed


def test_sensors(example):
    """Only noisy sensors: the walk stays up, and the base's estimate within a centimetre."""
    (fell, drift, error), printed = example("sensors")
    assert not fell and drift < 0.01 and error < 0.1
    assert "good sensors: fell: False" in printed


def test_own_sensor(example):
    """Four cells under each foot: forces that the joints alone do not tell as well; contact is known by both."""
    try:
        (alone, cells), printed = example("own_sensor")
    finally:
        KINDS.pop("foot_cells", None)
    assert cells[0] < 0.8 * alone[0] and min(alone[1], cells[1]) > 0.97
    assert f"with cells: forces {100 * cells[0]:.1f} % of the weight off" in printed


def test_stones(example):
    (fell, com_error, force_error), printed = example("stones")
    assert not fell and com_error < 5e-3 and force_error < 0.01
    assert "pass 1: forces" in printed and "fell: False" in printed
