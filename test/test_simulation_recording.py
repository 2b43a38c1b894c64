"""The record of a simulation, and the notion of a fall."""

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.exceptions import RecordError
from contact_id_controller.simulation.recording import FallDetector, SimulationRecorder
from contact_id_controller.state import RobotState


def state(time_s=0.0, height=0.2, roll=0.0, pitch=0.0, yaw=0.0):
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, yaw)).coeffs()
    return RobotState(time_s, np.concatenate([[0, 0, height], turn]), np.zeros(6))


@pytest.mark.parametrize(
    "later, fallen",
    [
        (dict(height=0.11), False),
        (dict(height=0.09), True),
        (dict(roll=np.radians(59)), False),
        (dict(roll=np.radians(61)), True),
        (dict(pitch=np.radians(-61)), True),
        (dict(roll=np.pi), True),
        (dict(yaw=np.pi), False),
    ],
)
def test_a_fall_is_half_the_height_or_sixty_degrees(later, fallen):
    assert FallDetector(state(), floating_base=True).has_fallen(state(**later)) == fallen


def test_a_fall_is_remembered_with_its_first_time():
    detector = FallDetector(state(), floating_base=True)
    for time_s, height in ((0.1, 0.2), (0.2, 0.05), (0.3, 0.05), (0.4, 0.2)):
        fallen = detector.has_fallen(state(time_s, height))
    assert fallen and detector.fell_time_s == 0.2


def test_a_fixed_robot_never_falls():
    fixed = RobotState(0.0, np.zeros(2), np.zeros(2))
    assert not FallDetector(fixed, floating_base=False).has_fallen(fixed)


def test_rows_come_back_from_the_file_with_the_facts_about_them(tmp_path):
    path = tmp_path / "run.npz"
    recorder = SimulationRecorder(path, initial_rows=2)
    for k in range(5):
        recorder.add(state(0.1 * k), np.full(3, k), np.full((4, 3), -k))
    recorder.save(fell=False, foot_names=np.array(["A", "B"]))
    with np.load(path) as run:
        np.testing.assert_allclose(run["time_s"], 0.1 * np.arange(5))
        assert run["q"].shape == (5, 7) and run["v"].shape == (5, 6)
        np.testing.assert_array_equal(run["torques"][:, 0], np.arange(5))
        np.testing.assert_array_equal(run["contact_forces"][:, 3, 2], -np.arange(5))
        assert run["foot_names"].tolist() == ["A", "B"] and not run["fell"]
    assert [file.name for file in path.parent.iterdir()] == ["run.npz"]


def test_a_folder_that_does_not_exist_is_refused_before_the_run(tmp_path):
    with pytest.raises(RecordError, match="no such folder"):
        SimulationRecorder(tmp_path / "nowhere" / "run.npz")


def test_a_file_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    path = tmp_path / "run.npz"
    recorder = SimulationRecorder(path)
    path.mkdir()
    with pytest.raises(RecordError, match="cannot write"):
        recorder.save()
