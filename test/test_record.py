"""One record for every run, one file for it, one name and one formula for each figure."""

import ast
import dataclasses

import numpy as np
import pytest
from paths import PACKAGE
from synthetic_walk import synthetic_walk

from contact_id_controller.control.controller import StepResult
from contact_id_controller.exceptions import RecordError
from contact_id_controller.files import make_folder, write_json, write_text, write_with
from contact_id_controller.report.metrics import (
    METRICS,
    REPORTED,
    measure,
    shown,
)
from contact_id_controller.ros.step_recording import Recorder
from contact_id_controller.runs import record as records
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.runs.record import (
    COLUMNS,
    CONTROLLER_FIELDS,
    FACTS,
    RecordBuilder,
    RunRecord,
)
from experiments.papers.locomotion_figures import path_deviation

UP = np.array([0.0, 0.0, 1.0])
WEIGHT_N = 47.088
SUFFIXES = {
    "s": "_s",
    "rad": "_rad",
    "rad/s": "_rad_s",
    "N": "_n",
    "N·m": "_nm",
    "N·m/s": "_nm_s",
    "W": "_w",
    "m": "_m",
    "m/s": "_m_s",
}


def test_the_schema_is_that_of_the_record():
    names = {field.name for field in dataclasses.fields(RunRecord)}
    assert names == {*COLUMNS, *FACTS, "estimated"}


def test_a_record_is_read_as_it_was_written(tmp_path):
    walk = dataclasses.replace(
        synthetic_walk(0.2), fell_time_s=0.15, refused_inputs={"stale": 3}, deadline_misses=2
    )
    walk.save(tmp_path / "record.npz")
    again = RunRecord.load(tmp_path / "record.npz")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), getattr(walk, name), err_msg=name)
    for name in FACTS:
        assert getattr(again, name) == getattr(walk, name), name
    assert again.fell and not dataclasses.replace(again, fell_time_s=None).fell
    assert measure(again, WEIGHT_N, UP, METRICS) == measure(walk, WEIGHT_N, UP, METRICS)


def test_a_rounded_record_keeps_more_than_can_be_measured_and_is_a_third_of_the_size(tmp_path):
    settings = controller_settings("solo12")
    walk = InProcessRun("solo12", settings, mujoco_robot(settings, 0.7)).record(1.0)
    rounded = walk.rounded()
    for name, column in COLUMNS.items():
        before, after = getattr(walk, name), getattr(rounded, name)
        if column.digits is None:
            np.testing.assert_array_equal(after, before, err_msg=name)
        else:
            atol = 2.0 ** -(column.digits + 1)
            np.testing.assert_allclose(after, before, rtol=0.0, atol=atol, err_msg=name)
    figures, exact = measure(rounded, WEIGHT_N, UP), measure(walk, WEIGHT_N, UP)
    for name, value in exact.items():
        number = isinstance(value, float)
        told = pytest.approx(value, rel=1e-3, abs=1e-6, nan_ok=True) if number else value
        assert figures[name] == told, name
    rounded.save(tmp_path / "record.npz")
    again = RunRecord.load(tmp_path / "record.npz")
    np.testing.assert_array_equal(again.q, rounded.q)
    for name in COLUMNS:
        assert getattr(again, name).flags.c_contiguous, name
        np.testing.assert_array_equal(getattr(again.rounded(), name), getattr(again, name))
    assert (tmp_path / "record.npz").stat().st_size < 360 * len(walk)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", None])
def test_what_is_no_record_is_named(tmp_path, content):
    path = tmp_path / "record.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordError, match=r"no record of the run.*record\.npz"):
        RunRecord.load(path)


def test_what_was_estimated_goes_with_the_record(tmp_path):
    walk = synthetic_walk(2.0)
    feet = np.tile(np.arange(4), (len(walk), 1))
    told = records.Estimated(walk.q.copy(), walk.v.copy(), walk.simulated_forces.copy(), feet)
    told.q[:, 0] += np.linspace(0.3, 0.5, len(walk))
    told.v[:, 1] += 0.03
    told.forces[:, 2] += [0.0, 4.0, 3.0]
    told.forces[-1, 0] = np.nan  # not known there
    walk = dataclasses.replace(walk, estimated=told)
    walk.save(tmp_path / "record.npz")
    again = RunRecord.load(tmp_path / "record.npz")
    for name, values in zip(records.Estimated._fields, again.estimated):
        np.testing.assert_array_equal(values, getattr(told, name))
    assert len(again.part(slice(10, 20)).estimated.v) == 10
    found = measure(again, WEIGHT_N, UP, REPORTED)
    assert found["estimated_drift_m"] == pytest.approx(0.2)
    assert found["estimated_drift_share"] == pytest.approx(0.2 / found["distance_travelled_m"])
    assert found["estimated_velocity_rms_m_s"] == pytest.approx(0.03)
    assert found["estimated_force_rms"] == pytest.approx(5.0 / np.sqrt(4.0) / WEIGHT_N)
    truth = measure(synthetic_walk(2.0), WEIGHT_N, UP, REPORTED)
    assert {truth[name] for name in found if name.startswith("estimated")} == {None}


def test_rows_are_copied_when_they_are_collected():
    walk, builder = synthetic_walk(0.01), RecordBuilder(1e-3, ["j"] * 12, ["f"] * 4)
    with pytest.raises(RecordError, match="before its first period"):
        builder.record()
    shared = {name: np.array(getattr(walk, name)[0]) for name in COLUMNS if name != "status"}
    for k in range(len(walk)):
        for name, buffer in shared.items():
            buffer[...] = getattr(walk, name)[k]
        builder.add(**shared, status="solved")
    built = builder.record(fell_time_s=None)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(built, name), getattr(walk, name), err_msg=name)
    with pytest.raises(KeyError):
        builder.add(time_s=0.0)


def test_the_controller_writes_what_the_record_is_made_of(tmp_path):
    recorder = Recorder(tmp_path / "controller.npz", ["a", "b"], ["left"])
    two = np.zeros(2)
    values = dict.fromkeys(StepResult._fields, two)
    values |= {
        "forces": np.zeros((1, 3)),
        "contact": np.zeros(1, dtype=bool),
        "limits": np.array([0, 4], dtype=np.uint8),
        "reference": type("Reference", (), {"position": two, "velocity": two}),
        "status": "solved",
        "solve_time_s": 0.0,
        "step_time_s": 0.0,
        "power_loss_w": 0.0,
    }
    recorder.add(0.0, two, two, StepResult(**values), 0.0)
    recorder.save({"stale": 1}, 0)
    with np.load(tmp_path / "controller.npz") as file:
        assert set(file.files) == set(CONTROLLER_FIELDS)
        assert file["saturated"].tolist() == [[False, True]]


def test_the_simulated_robot_writes_what_the_record_is_made_of():
    """Names in the call that saves, and the columns of its recorder, without starting the node."""
    tree = ast.parse((PACKAGE / "ros" / "simulated_robot.py").read_text(encoding="utf-8"))
    (save,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self._recorder.save"
    ]
    facts = {keyword.arg for keyword in save.keywords}
    columns = {"time_s", "q", "v", "torques", "contact_forces"}
    assert set(records.ROBOT_FIELDS) <= facts | columns


def test_units_stand_in_the_names_of_figures():
    for name, metric in METRICS.items():
        if metric.unit in SUFFIXES:
            stem = name.removesuffix("_median")
            assert stem.endswith(SUFFIXES[metric.unit]) or SUFFIXES[metric.unit] + "_" in name, name
        else:
            assert metric.unit in ("", "1"), name
    assert set(REPORTED) <= METRICS.keys()


def test_figures_about_predictions_do_not_exist_without_any():
    values = measure(synthetic_walk(0.2), WEIGHT_N, UP, METRICS, predicts=False)
    for name, metric in METRICS.items():
        assert not metric.of_prediction or values[name] is None, name
    assert values["torque_mean_nm"] > 0.0


def test_forces_count_along_the_normal_of_each_foot_and_period():
    walk = synthetic_walk(0.2)
    normals = np.zeros_like(walk.simulated_forces)
    normals[..., 0] = 1.0
    (error,) = measure(
        dataclasses.replace(walk, predicted_forces=walk.simulated_forces + [2.0, 7.0, 7.0]),
        WEIGHT_N,
        normals,
        ("normal_force_error_n",),
    ).values()
    assert error == pytest.approx(4 * 2.0)


def test_deviation_from_the_way_is_the_distance_to_the_leg_that_is_walked():
    ways = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    path = np.array([[0.5, 0.1], [1.2, 0.5], [-0.3, 0.4]])
    # On the first leg, on the second, and still on the way to the first point: 0.1, 0.2, 0.5.
    assert path_deviation(path, [1, 2, 1], ways) == pytest.approx((0.1 + 0.2 + 0.5) / 3)
    assert path_deviation(path, [0, 0, 0], ways[:1]) is None


# Files


def test_a_file_stays_as_it_was_when_the_new_one_fails(tmp_path):
    path = tmp_path / "page.html"
    write_text(path, "old")

    def breaks(file):
        file.write(b"half of the n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_with(path, breaks)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    write_text(path, "näw")
    assert path.read_text(encoding="utf-8") == "näw"


def test_what_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    for action in (
        lambda: make_folder(tmp_path / "file"),
        lambda: make_folder(tmp_path / "file" / "below"),
        lambda: write_text(tmp_path / "nowhere" / "page.md", ""),
        lambda: write_json(tmp_path, {}),
    ):
        with pytest.raises(RecordError) as caught:
            action()
        assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_every_room_writes_its_files_whole():
    """Nobody opens a file for writing but ``files`` and logs that grow while they are read."""
    growing = {"runs/processes.py", "simulation/rendering.py"}
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE).as_posix()
        if name == "files.py" or name in growing or name.startswith("kernels/"):
            continue
        text = file.read_text(encoding="utf-8")
        for forbidden in (".write_text(", ".write_bytes(", "np.savez(", "os.replace("):
            assert forbidden not in text, f"{name}: {forbidden}"


def test_figures_of_an_estimate_are_shown_of_runs_that_had_one():
    told = dict.fromkeys(REPORTED)
    estimated = {**told, "estimated_drift_m": 0.01}
    assert not [name for name in shown([told]) if name.startswith("estimated")]
    assert "torque_mean_nm" in shown([told])  # asked of every run, known or not
    assert "estimated_drift_m" in shown([told, estimated])


def test_a_damaged_record_is_refused_in_one_line(tmp_path):
    """Whatever bit flips: the record is read as it was, or refused by name."""
    path = tmp_path / "record.npz"
    synthetic_walk(0.2).rounded().save(path)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for _ in range(200):
        spoiled = bytearray(whole)
        spoiled[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        try:
            records.RunRecord.load(path)
        except RecordError:
            refused += 1
    assert refused > 20


def test_a_record_of_an_estimate_without_feet_is_read(tmp_path):
    """As version 0.2 wrote it, where each contact was a foot."""
    walk = synthetic_walk(0.2)
    feet = np.tile(np.arange(4), (len(walk), 1))
    told = records.Estimated(walk.q, walk.v, walk.simulated_forces, feet)
    path = tmp_path / "record.npz"
    dataclasses.replace(walk, estimated=told).save(path)
    with np.load(path) as file:
        np.savez(path, **{name: file[name] for name in file.files if name != "estimated_foot"})
    np.testing.assert_array_equal(records.RunRecord.load(path).estimated.foot, feet)
