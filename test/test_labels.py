"""``contact_id label``: every frame once, whatever is killed; every kind of file; bad ones in one line."""

import dataclasses
import importlib
import importlib.util
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from other_processes import alive, children
from paths import CONFIG, ROOT
from recorded_motion import swaying_solo
from robots import SOLO_FEET, frame_positions, point_kinematics, solo12
from waiting import until

from contact_id_controller import ContactSet, build_problem, cli, solve
from contact_id_controller.exceptions import ContactIdError, MissingExtraError, RecordError
from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL
from contact_id_controller.labels.campaign import FAILED, Workers, label_files
from contact_id_controller.labels.chunks import MANIFEST, LabelFolder, chunks
from contact_id_controller.labels.labeller import LABELS, LAW, RECORDED, STATUSES, Labeller
from contact_id_controller.labels.opening import open_motion
from contact_id_controller.labels.recorded_motion import AFTER, BEFORE, blocks_of
from contact_id_controller.labels.sources import BagReading, NpzMotion, Shapes
from contact_id_controller.runs.record import COLUMNS, RunRecord
from contact_id_controller.runs.worker_pool import by_executor
from contact_id_controller.settings.parameter_file import load_settings

ROWS = 200
ALONE = Workers()
RADIUS_M = 0.016


@pytest.fixture(scope="module")
def robot():
    return solo12()


@pytest.fixture(scope="module")
def motion(robot):
    return swaying_solo(robot, ROWS)


@pytest.fixture(scope="module")
def settings():
    return load_settings(CONFIG / "solo12.yaml")


@pytest.fixture
def file(tmp_path, motion):
    np.savez(tmp_path / "sway.npz", **motion)
    return tmp_path / "sway.npz"


def label(path, settings, output, workers=ALONE, chunk=64, **how):
    """Labels of a motion, all chunks joined, and what was told of it."""
    labeller = Labeller(settings, **how)
    (told,) = label_files([path], labeller, output, workers=workers, chunk=chunk)
    return joined(told.folder), told


def joined(folder):
    parts = list(chunks(folder))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def same(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert values.tobytes() == other[name].tobytes(), name


# What a label says


def test_the_law_says_what_a_single_solve_says(robot, file, motion, settings, tmp_path):
    labels, told = label(file, settings, tmp_path / "out", base=LAW)
    assert (labels["frame"] == np.arange(ROWS)).all() and told.frames == ROWS
    assert set(LABELS) <= set(labels)
    q, v = motion["q"], motion["v"]
    with_feet = 0
    for k in range(ROWS - 1):
        dt = motion["time_s"][k + 1] - motion["time_s"][k]
        centers = frame_positions(robot, q[k], SOLO_FEET)
        feet = np.flatnonzero(labels["contact"][k])
        with_feet += len(feet)
        points = centers - [0.0, 0.0, RADIUS_M]
        assert (feet == np.flatnonzero(points[:, 2] <= settings.contact_gap_m)).all()
        contacts = ContactSet(
            points[feet],
            [[0.0, 0.0, 1.0]] * len(feet),
            [SOLO_FEET[i] for i in feet],
            0.6,
        )
        acceleration = ((v[k + 1] - v[k]) / dt)[robot.actuated]
        problem = build_problem(
            robot,
            q[k],
            v[k],
            acceleration,
            contacts,
            dt,
            contact_time_constant_s=settings.contact_time_constant_s,
        )
        single = solve(problem)
        # Points come from another kinematics here, so the last bits may differ.
        np.testing.assert_allclose(labels["torques"][k], single.torques, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(labels["forces"][k, feet], single.forces, rtol=1e-7, atol=1e-7)
        assert STATUSES[labels["status"][k]] == single.status
    assert 0 < with_feet < 4 * ROWS
    assert STATUSES[labels["status"][-1]] == "no_period" and np.isnan(labels["torques"][-1]).all()


def test_torques_and_forces_bring_about_the_recorded_motion(
    robot, file, motion, settings, tmp_path
):
    """By Pinocchio alone: M (v+ - v)/dt + h = J^T f + P^T tau.

    On four feet v+ is the recorded one, of base and joints; on three, with the middle of the robot outside
    of them, no ground can bring it about, and v+ is that of the labels.
    """
    labels, _ = label(file, settings, tmp_path / "out")
    loose, _ = label(file, settings, tmp_path / "loose", base=LAW)
    lifted = 0.0
    for k in range(ROWS - ROWS // 10 - 2):
        dt = motion["time_s"][k + 1] - motion["time_s"][k]
        data, q, v = robot.model.createData(), motion["q"][k], motion["v"][k]
        ending = motion["v"][k + 1] if k < ROWS // 2 else labels["velocity"][k]
        rest = pin.rnea(robot.model, data, q, v, (ending - v) / dt)
        arms = np.tile([0.0, 0.0, -RADIUS_M], (4, 1))
        J, drift = point_kinematics(robot, q, v, SOLO_FEET, arms)
        rest -= J.T @ labels["forces"][k].ravel()
        rest[robot.actuated] -= labels["torques"][k]
        assert np.abs(rest).max() < 1e-6
        speeds = (J @ motion["v"][k + 1] + dt * drift).reshape(4, 3)
        counts = labels["contact"][k]
        slip = np.hypot(speeds[:, 0], speeds[:, 1])
        np.testing.assert_allclose(labels["slip_m_s"][k, counts], slip[counts], atol=1e-9)
        assert (speeds[counts, 2] <= 0.05).all()
        lifted = max(lifted, speeds[1, 2])
    assert lifted > 0.05  # the second foot is let go by its speed before its height
    assert np.abs(labels["base_error"][: ROWS // 2]).max() < 1e-8
    assert np.abs(labels["base_error"][ROWS // 2 + 10 : -1]).max() > 1e-3
    assert np.abs(loose["base_error"][: ROWS // 2]).max() > 1e-5


def test_a_motion_that_no_ground_can_bring_about_leaves_an_error(robot, motion, settings, tmp_path):
    """A robot on its feet whose base is recorded to fall faster than its weight pulls it."""
    still = {"time_s": 1e-3 * np.arange(4), "q": np.tile(motion["q"][0], (4, 1))}
    v = np.zeros((4, robot.nv))
    v[:, 2] = [0.0, -0.015, -0.03, -0.045]
    np.savez(tmp_path / "pulled.npz", **still, v=v)
    labels, _ = label(tmp_path / "pulled.npz", settings, tmp_path / "out")
    assert labels["base_error"][:3, 2].min() > 1e-3
    assert np.nanmax(labels["adhesion_n"]) < 1e-9 and np.nanmax(labels["cone_n"]) < 1e-6


def test_a_standing_robot_is_carried_by_its_feet(robot, motion, settings, tmp_path):
    """By hand: forces add up to the weight, torques are Pinocchio's, nothing slips."""
    still = {"time_s": 1e-3 * np.arange(5), "q": np.tile(motion["q"][0], (5, 1))}
    np.savez(tmp_path / "still.npz", **still, v=np.zeros((5, robot.nv)))
    labels, _ = label(tmp_path / "still.npz", settings, tmp_path / "out")
    total = labels["forces"][:4].sum(axis=1)
    np.testing.assert_allclose(total, np.tile([0.0, 0.0, robot.weight], (4, 1)), atol=1e-8)
    data, q = robot.model.createData(), motion["q"][0]
    rest = pin.rnea(robot.model, data, q, np.zeros(robot.nv), np.zeros(robot.nv))
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)
    for name, force in zip(SOLO_FEET, labels["forces"][0]):
        J = pin.getFrameJacobian(
            robot.model, data, robot.frame_id(name), pin.LOCAL_WORLD_ALIGNED
        ).copy()
        arm = [0.0, 0.0, -RADIUS_M]
        rest -= J.T @ np.concatenate([force, np.cross(arm, force)])
    np.testing.assert_allclose(labels["torques"][0], rest[robot.actuated], atol=1e-9)
    assert np.abs(rest[:6]).max() < 1e-9
    assert np.nanmax(labels["slip_m_s"]) < 1e-9 and np.nanmax(np.abs(labels["base_error"])) < 1e-9
    for name in ("cone_n", "adhesion_n", "gap_m_s", "complementarity_w"):
        assert np.nanmax(labels[name]) < 1e-9


def test_a_slope_from_a_file_is_the_tilted_plane(robot, motion, settings, tmp_path):
    """A height field has a normal at each foot; the robot of the first row, turned with the ground."""
    angle = 0.15
    turn = pin.SE3(pin.utils.rotate("y", angle), np.zeros(3))
    q = motion["q"][0].copy()
    q[:7] = pin.SE3ToXYZQUAT(turn * pin.XYZQUATToSE3(q[:7]))
    still = {"time_s": 1e-3 * np.arange(4), "q": np.tile(q, (4, 1)), "v": np.zeros((4, robot.nv))}
    np.savez(tmp_path / "slope.npz", **still)
    heights = [[-np.tan(angle) * x] * 2 for x in (-2.0, 2.0)]
    ground = {"x_m": [-2.0, 2.0], "y_m": [-2.0, 2.0], "heights_m": heights}
    (tmp_path / "slope.yaml").write_text(json.dumps(ground, default=float))
    normal = tuple((turn.rotation @ [0.0, 0.0, 1.0]).tolist())
    plane = dataclasses.replace(settings, ground_normal=normal)
    field = dataclasses.replace(settings, ground_file=str(tmp_path / "slope.yaml"))
    one, _ = label(tmp_path / "slope.npz", plane, tmp_path / "plane")
    two, _ = label(tmp_path / "slope.npz", field, tmp_path / "field")
    assert one["contact"][:3].all() and two["contact"][:3].all()
    for labels in (one, two):
        total = labels["forces"][:3].sum(axis=1)
        np.testing.assert_allclose(total, [[0.0, 0.0, robot.weight]] * 3, atol=1e-7)
    np.testing.assert_allclose(one["torques"][:3], two["torques"][:3], atol=1e-7)
    with pytest.raises(RecordError, match="holds labels with ground"):
        heights[0][0] += 0.01
        (tmp_path / "slope.yaml").write_text(json.dumps(ground, default=float))
        label(tmp_path / "slope.npz", field, tmp_path / "field")


def test_chunks_and_workers_change_no_bit(file, settings, tmp_path):
    whole, _ = label(file, settings, tmp_path / "whole", chunk=1000)
    parts, told = label(file, settings, tmp_path / "parts", chunk=7)
    same(whole, parts)
    assert len(list(told.folder.glob("*.npz"))) == -(-ROWS // 7)
    others, _ = label(file, settings, tmp_path / "others", Workers(jobs=2), chunk=50)
    same(whole, others)


def test_missing_velocities_are_differences(robot, file, motion, settings, tmp_path):
    np.savez(tmp_path / "bare.npz", time_s=motion["time_s"], q=motion["q"])
    labels, _ = label(tmp_path / "bare.npz", settings, tmp_path / "out", chunk=11)
    known, _ = label(file, settings, tmp_path / "known")
    inner = slice(2, ROWS // 2 - 4)
    weight = robot.weight
    assert np.abs(labels["forces"] - known["forces"])[inner].max() < 0.05 * weight
    same(labels, label(tmp_path / "bare.npz", settings, tmp_path / "again", chunk=500)[0])


def test_a_gap_ends_a_frame_and_nothing_reaches_over_it(motion, settings, tmp_path):
    times = motion["time_s"].copy()
    times[50:] += 1.0  # a gap
    times[80:] -= 0.01  # a step back
    times[120] = times[119] + 1e-9  # a state told twice
    cut = {**motion, "time_s": times}
    np.savez(tmp_path / "cut.npz", **cut)
    labels, told = label(tmp_path / "cut.npz", settings, tmp_path / "out", chunk=9)
    lone = np.flatnonzero(labels["status"] == STATUSES.index("no_period"))
    assert lone.tolist() == [49, 79, 119, ROWS - 1] and told.counts["no_period"] == 4
    assert told.failed == 0


def test_own_accelerations_make_each_row_stand_for_itself(robot, motion, settings, tmp_path):
    rng = np.random.default_rng(0)
    order = rng.permutation(ROWS)
    acceleration = rng.normal(size=(ROWS, robot.na))
    rows = {"time_s": motion["time_s"], "q": motion["q"], "v": motion["v"]}
    np.savez(tmp_path / "a.npz", **rows, acceleration=acceleration)
    np.savez(
        tmp_path / "b.npz",
        acceleration=acceleration[order],
        **{name: values[order] for name, values in rows.items()},
    )
    one, _ = label(tmp_path / "a.npz", settings, tmp_path / "out")
    other, _ = label(tmp_path / "b.npz", settings, tmp_path / "out")
    assert (one["status"] != STATUSES.index("no_period")).all()
    assert (one["period_s"] == settings.period_s).all()
    for name in ("torques", "forces", "status"):
        assert one[name][order].tobytes() == other[name].tobytes()


def test_recorded_contact_counts_whatever_the_distance(motion, settings, tmp_path):
    touching = np.zeros((ROWS, 4), bool)
    touching[:, 1:] = True
    np.savez(tmp_path / "felt.npz", **motion, contact=touching)
    labels, _ = label(tmp_path / "felt.npz", settings, tmp_path / "out", contact=RECORDED)
    assert (labels["contact"][:-1] == touching[:-1]).all()
    ended = labels["status"] == STATUSES.index("solved")
    assert (labels["forces"][ended, 0] == 0.0).all()


def test_bad_frames_are_listed_and_harm_no_other(file, motion, settings, tmp_path):
    good, _ = label(file, settings, tmp_path / "good")
    q, v = motion["q"].copy(), motion["v"].copy()
    q[30] = np.nan
    q[60, 3:7] *= 1.5
    v[90, 8] = np.inf
    np.savez(tmp_path / "bad.npz", time_s=motion["time_s"], q=q, v=v)
    labels, told = label(tmp_path / "bad.npz", settings, tmp_path / "out", chunk=16)
    # The frame before a lost row has no end, and a bad velocity spoils the acceleration before it.
    statuses = {k: STATUSES[labels["status"][k]] for k in (29, 30, 60, 89, 90)}
    assert statuses.pop(29) == "no_period" and set(statuses.values()) == {"refused"}
    assert told.failed == told.counts["refused"] == 4
    listed = (told.folder / FAILED).read_text().splitlines()
    assert listed[0] == "frame,time_s,status,reason"
    starts = ["30,", "60,", "89,", "90,"]
    assert [line[:3] for line in listed[1:]] == starts
    assert "quaternion" in listed[2] and "norm 1.5" in listed[2]
    reasons = [listed[k].split(",")[-1] for k in (1, 3, 4)]
    assert reasons == [f'"{name} is not known"' for name in ("q", "acceleration", "v")]
    others = [k for k in range(ROWS) if k not in (29, 30, 60, 89, 90)]
    assert good["torques"][others].tobytes() == labels["torques"][others].tobytes()


# Blocks


@pytest.mark.parametrize("pieces", [[200], [1] * 200, [63, 0, 1, 136], [5, 195]])
@pytest.mark.parametrize("size", [1, 2, 10, 64, 199, 200, 500])
def test_every_row_is_in_one_block_with_its_neighbours(pieces, size):
    numbers = np.arange(200.0)
    bounds = np.cumsum([0, *pieces])
    cut = ({"time_s": numbers[a:b]} for a, b in pairwise(bounds))
    seen = []
    for block in blocks_of(cut, size):
        rows = block.rows["time_s"]
        own = rows[block.own]
        seen += own.tolist()
        assert own[0] == block.first and len(own) == block.count
        first, last = max(0, own[0] - BEFORE), min(199, own[-1] + AFTER)
        assert rows.tolist() == list(np.arange(first, last + 1))
    assert seen == numbers.tolist()


def test_memory_does_not_grow_with_the_motion(robot, tmp_path):
    """What is read of 80,000 rows (24 MB) at a time, and how many blocks wait for two slow workers."""
    rows = 80_000
    motion = {"time_s": np.arange(rows), "q": np.zeros((rows, 19)), "v": np.zeros((rows, 18))}
    np.savez(tmp_path / "long.npz", **motion)
    del motion
    source = NpzMotion(tmp_path / "long.npz", Shapes.of(robot, 4, False))
    tracemalloc.start()
    try:
        count = sum(block.count for block in blocks_of(source.pieces(), 1000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == rows and peak < 6e6

    read, waiting = [], []

    def blocks():
        for block in blocks_of(source.pieces(), 1000):
            read.append(block.first)
            yield block

    with ThreadPoolExecutor(2) as slow:
        results = by_executor(slow, lambda block: time.sleep(2e-3), blocks(), 4, [])
        for done, _ in enumerate(results):
            waiting.append(len(read) - done)
    assert done == 79 and max(waiting) <= 4


# Killed in the middle


def command(*words):
    return [sys.executable, "-m", "contact_id_controller", "label", *map(str, words)]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def start(*words):
    return subprocess.Popen(
        command(*words),
        env=environment(),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_chunks(folder, count, process):
    def there():
        assert process.poll() is None, process.stdout.read()
        return len(list(folder.glob("chunk_*.npz"))) >= count

    assert until(there, 240.0)


def test_killed_in_the_middle_it_repeats_and_loses_no_chunk(robot, settings, tmp_path):
    motion = swaying_solo(robot, 1500)
    np.savez(tmp_path / "long.npz", **motion)
    words = (tmp_path / "long.npz", "--robot", "solo12", "--chunk", 20, "--jobs", 2)
    folder = tmp_path / "out" / "long.npz"
    process = start(*words, "--output", tmp_path / "out")
    wait_for_chunks(folder, 4, process)
    workers = children(process.pid)
    assert workers
    process.kill()
    process.wait()
    process.stdout.close()
    over = lambda: not any(map(alive, workers))  # noqa: E731
    assert until(over), "workers outlive the process that was killed"
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("chunk_*.npz")}
    assert 4 <= len(before) < 75
    assert not json.loads((folder / MANIFEST).read_text())["finished"]
    torn = folder / "chunk_000000000000.npz"
    if torn.name in before:  # a file that the disk lost half of is made again
        torn.write_bytes(torn.read_bytes()[:1000])
        del before[torn.name]
    again = subprocess.run(
        command(*words, "--output", tmp_path / "out"),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert again.returncode == DONE, again.stdout + again.stderr
    assert f"{20 * len(before)} were there" in again.stdout
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("chunk_*.npz")}
    assert len(after) == 75 and all(after[name] == when for name, when in before.items())
    labels = joined(folder)
    assert labels["frame"].tolist() == list(range(1500))
    assert json.loads((folder / MANIFEST).read_text())["finished"]
    same(labels, label(tmp_path / "long.npz", settings, tmp_path / "one", chunk=20)[0])


def test_a_worker_that_dies_takes_no_label_along(file, settings, tmp_path):
    labeller, killed, done = Labeller(settings), [], []

    def kill_once(motion, frames):
        done.append(frames)
        if not killed:
            lines = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in children(os.getpid())}
            killed.extend(pid for pid, line in lines.items() if "spawn_main" in line)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    (told,) = label_files(
        [file], labeller, tmp_path / "out", workers=Workers(jobs=2), chunk=10, progress=kill_once
    )
    assert killed and not told.unlabelled and told.frames == ROWS and done[-1] == ROWS
    same(joined(told.folder), label(file, settings, tmp_path / "whole", chunk=10)[0])


def test_a_block_that_kills_its_worker_is_told_and_tried_again(
    file, settings, tmp_path, monkeypatch
):
    """In the process itself: an error of one block ends no other."""
    from contact_id_controller.labels import campaign

    right = campaign.label_packed

    def wrong(data, block):
        if block.first == 40:
            raise RuntimeError("no such\nblock")
        return right(data, block)

    monkeypatch.setattr(campaign, "label_packed", wrong)
    labels, told = label(file, settings, tmp_path / "out", chunk=20)
    assert told.unlabelled == {40: "RuntimeError: no such block"} and told.frames == ROWS - 20
    assert not json.loads((told.folder / MANIFEST).read_text())["finished"]
    monkeypatch.undo()
    labels, told = label(file, settings, tmp_path / "out", chunk=20)
    assert told.found == ROWS - 20 and not told.unlabelled
    same(labels, label(file, settings, tmp_path / "whole", chunk=20)[0])


def test_a_cluster_labels_the_same_though_a_worker_is_killed(robot, settings, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    motion = swaying_solo(robot, 1200)
    np.savez(tmp_path / "long.npz", **motion)
    labeller, killed = Labeller(settings), []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        pids = {worker.pid for worker in cluster.workers.values()}

        def kill_once(told, frames):
            if not killed:
                killed.append(min(pids))
                os.kill(killed[0], signal.SIGKILL)

        (told,) = label_files(
            [tmp_path / "long.npz"],
            labeller,
            tmp_path / "out",
            workers=Workers(cluster=cluster.scheduler_address),
            chunk=40,
            progress=kill_once,
        )
    assert killed and not told.unlabelled and told.frames == 1200
    same(
        joined(told.folder),
        label(tmp_path / "long.npz", settings, tmp_path / "one", chunk=40)[0],
    )


# Other files


def write_bag(folder, robot, motion, storage, every=1, velocities=True):
    """Joint states and odometry of a motion; odometry every so many states, and one at the end."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    types = get_typestore(Stores.ROS2_KILTED)
    kind = types.types
    header, stamp = kind["std_msgs/msg/Header"], kind["builtin_interfaces/msg/Time"]
    vector, point = kind["geometry_msgs/msg/Vector3"], kind["geometry_msgs/msg/Point"]
    names = list(reversed(robot.joint_names)) + ["camera_pan"]
    with Writer(folder, version=9, storage_plugin=StoragePlugin[storage]) as writer:
        add = partial(writer.add_connection, typestore=types)
        states = add("/solo/joint_states", "sensor_msgs/msg/JointState")
        odometry = add("/solo/odometry", "nav_msgs/msg/Odometry")
        for k, (time_s, q, v) in enumerate(zip(motion["time_s"], motion["q"], motion["v"])):
            ns = round(time_s * 1e9)
            head = header(stamp=stamp(sec=ns // 10**9, nanosec=ns % 10**9), frame_id="world")
            turned = [*q[robot.q_index][::-1], 0.5], [*v[robot.actuated][::-1], 0.0]
            message = kind["sensor_msgs/msg/JointState"](
                header=head,
                name=names,
                position=np.array(turned[0]),
                velocity=np.array(turned[1]) if velocities else np.zeros(0),
                effort=np.zeros(0),
            )
            data = types.serialize_cdr(message, "sensor_msgs/msg/JointState")
            writer.write(states, ns, data)
            if k % every and k < len(motion["q"]) - 1:
                continue
            covariance = np.zeros(36)
            pose = kind["geometry_msgs/msg/Pose"](
                position=point(*q[:3]),
                orientation=kind["geometry_msgs/msg/Quaternion"](*q[3:7]),
            )
            twist = kind["geometry_msgs/msg/Twist"](linear=vector(*v[:3]), angular=vector(*v[3:6]))
            message = kind["nav_msgs/msg/Odometry"](
                header=head,
                child_frame_id="base",
                pose=kind["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=covariance),
                twist=kind["geometry_msgs/msg/TwistWithCovariance"](
                    twist=twist, covariance=covariance
                ),
            )
            writer.write(odometry, ns + 1, types.serialize_cdr(message, "nav_msgs/msg/Odometry"))
    return folder


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_a_bag_gives_what_its_arrays_give(robot, motion, file, settings, tmp_path, storage):
    pytest.importorskip("rosbags", reason="needs the extra label")
    bag = write_bag(tmp_path / "bag", robot, motion, storage)
    labels, told = label(bag, settings, tmp_path / "out")
    arrays, _ = label(file, settings, tmp_path / "arrays")
    assert told.frames == ROWS and told.unread == 0
    # Stamps are whole nanoseconds.
    for name in ("torques", "forces", "velocity", "slip_m_s"):
        np.testing.assert_allclose(labels[name], arrays[name], rtol=2e-5, atol=2e-5)
    assert (labels["contact"] == arrays["contact"]).all()
    (inside,) = bag.glob("*.mcap") if storage == "MCAP" else bag.glob("*.db3")
    alone, _ = label(inside, settings, tmp_path / "inside")
    same(labels, alone)


def test_odometry_that_comes_seldom_is_interpolated(robot, motion, file, settings, tmp_path):
    pytest.importorskip("rosbags", reason="needs the extra label")
    bag = write_bag(tmp_path / "bag", robot, motion, "MCAP", every=5)
    labels, told = label(bag, settings, tmp_path / "out")
    arrays, _ = label(file, settings, tmp_path / "arrays")
    rows = slice(0, ROWS // 2 - 5)
    assert told.frames == ROWS and "refused" not in told.counts
    assert np.abs(labels["forces"] - arrays["forces"])[rows].max() < 0.1 * robot.weight


def test_a_bag_without_velocities_or_with_holes(robot, motion, file, settings, tmp_path):
    pytest.importorskip("rosbags", reason="needs the extra label")
    bare = write_bag(tmp_path / "bare", robot, motion, "MCAP", velocities=False)
    labels, _ = label(bare, settings, tmp_path / "out")
    np.savez(tmp_path / "q.npz", time_s=motion["time_s"], q=motion["q"])
    arrays, _ = label(tmp_path / "q.npz", settings, tmp_path / "arrays")
    # Differences of differences magnify what the stamps have lost, a nanosecond in a millisecond.
    assert np.abs(labels["torques"] - arrays["torques"])[1:-1].max() < 0.05
    seldom = write_bag(tmp_path / "seldom", robot, motion, "MCAP", every=150)
    labels, told = label(seldom, settings, tmp_path / "seldom_out")
    assert told.counts["refused"] > 100  # no base is known between odometry that is 150 ms apart


def test_parquet_gives_what_npz_gives(motion, file, settings, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra label")
    from pyarrow import parquet

    lists = {"time_s": motion["time_s"], "q": list(motion["q"]), "v": list(motion["v"])}
    parquet.write_table(pyarrow.table(lists), tmp_path / "lists.parquet", row_group_size=30)
    columns = {"time_s": motion["time_s"]}
    for name in ("q", "v"):
        columns |= {f"{name}_{k}": column for k, column in enumerate(motion[name].T)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "columns.parquet")
    arrays, _ = label(file, settings, tmp_path / "out")
    for name in ("lists", "columns"):
        same(arrays, label(tmp_path / f"{name}.parquet", settings, tmp_path / "out")[0])
    del columns["q_7"]
    parquet.write_table(pyarrow.table(columns), tmp_path / "gone.parquet")
    with pytest.raises(RecordError, match="lacks the column 'q_7'"):
        label(tmp_path / "gone.parquet", settings, tmp_path / "out")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "lists.parquet").read_bytes()[:900])
    with pytest.raises(RecordError, match="cannot read the motion .*torn.parquet"):
        label(tmp_path / "torn.parquet", settings, tmp_path / "out")


def test_a_record_of_a_run_is_a_motion(robot, motion, file, settings, tmp_path):
    sizes = {"q": robot.nq, "v": robot.nv, "j": robot.na, "f": 4}
    columns = {
        name: np.zeros((ROWS, *(sizes.get(size, size) for size in column.shape)), column.dtype)
        for name, column in COLUMNS.items()
    }
    record = RunRecord(1e-3, tuple(robot.joint_names), tuple(SOLO_FEET), **{**columns, **motion})
    record.save(tmp_path / "record.npz")
    arrays, _ = label(file, settings, tmp_path / "out")
    same(arrays, label(tmp_path / "record.npz", settings, tmp_path / "out")[0])
    strange = dataclasses.replace(record, joint_names=tuple(f"{n}_2" for n in robot.joint_names))
    strange.save(tmp_path / "strange.npz")
    with pytest.raises(RecordError, match="strange.npz' is of joints 'FL_HAA_2'.*has 'FL_HAA'"):
        label(tmp_path / "strange.npz", settings, tmp_path / "out")
    turned = dataclasses.replace(record, joint_names=tuple(robot.joint_names)[::-1])
    turned.save(tmp_path / "turned.npz")
    with pytest.raises(RecordError, match="turned.npz' is of joints 'HR_KFE'.*has 'FL_HAA'"):
        label(tmp_path / "turned.npz", settings, tmp_path / "out")


# What is refused


def torn(rows):
    file = io.BytesIO()
    np.savez(file, **rows)
    return file.getvalue()[:5000]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: b"no archive", "cannot read the motion .*bad.npz.*: File is not a zip file"),
        (torn, "cannot read the motion .*bad.npz"),
        (lambda rows: {}, r"lacks 'q', 'time_s'; it has nothing"),
        (lambda rows: {"time_s": rows["time_s"]}, r"lacks 'q'; it has 'time_s'"),
        (
            lambda rows: rows | {"q": rows["q"][:, :18]},
            r"'q' of .* has shape \(20, 18\), must have \(n, 19\)",
        ),
        (lambda rows: rows | {"v": rows["v"][:9]}, "have different lengths: time_s 20, q 20, v 9"),
        (lambda rows: rows | {"q": rows["q"].ravel()}, r"has shape \(380,\), must have \(n, 19\)"),
        (lambda rows: rows | {"v": np.full((20, 18), "x")}, "'v' of .* holds <U1, must be numbers"),
        (lambda rows: rows | {"v": np.array([{}] * 20)}, "'v' of .* holds object, must be numbers"),
        (lambda rows: {name: values[:0] for name, values in rows.items()}, "has no frames"),
        (
            lambda rows: {
                "time_s": rows["time_s"],
                "q": rows["q"],
                "acceleration": np.ones((20, 12)),
            },
            "has 'acceleration' but lacks 'v'",
        ),
    ],
)
def test_a_malformed_file_is_one_clear_line(motion, settings, tmp_path, change, message):
    rows = {name: values[:20] for name, values in motion.items()}
    content = change(rows)
    if isinstance(content, bytes):
        (tmp_path / "bad.npz").write_bytes(content)
    else:
        np.savez(tmp_path / "bad.npz", **content)
    with pytest.raises(RecordError, match=message) as caught:
        label(tmp_path / "bad.npz", settings, tmp_path / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["npz", "MCAP", "SQLITE3", "parquet"])
def test_damaged_bytes_are_read_or_refused_in_one_line(robot, motion, tmp_path, kind):
    """Files cut short, and files with some bits turned, anywhere or near their ends."""
    rng, few = random.Random(5), {name: values[:40] for name, values in motion.items()}
    if kind == "npz":
        path = tmp_path / "a.npz"
        np.savez_compressed(path, **few)
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="needs the extra label")
        path = tmp_path / "a.parquet"
        lists = {"time_s": few["time_s"], "q": list(few["q"]), "v": list(few["v"])}
        importlib.import_module("pyarrow.parquet").write_table(pyarrow.table(lists), path)
    else:
        pytest.importorskip("rosbags", reason="needs the extra label")
        write_bag(tmp_path / "bag", robot, few, kind)
        (path,) = (tmp_path / "bag").glob("*.mcap" if kind == "MCAP" else "*.db3")
    data = path.read_bytes()
    damaged = [b"", b"hello" * 100, data[: len(data) // 2], data[:100], data[-500:]]
    for k in range(60):
        turned = bytearray(data)
        for _ in range(rng.choice([1, 5, 50])):
            near = min(rng.randrange(len(data)), rng.randrange(len(data)) if k % 2 else 400)
            turned[near if k % 3 else len(data) - 1 - near] ^= 1 << rng.randrange(8)
        damaged.append(bytes(turned))
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            source = open_motion(path, Shapes.of(robot, 4, False), BagReading(robot, None, 0.1))
            assert sum(len(piece["q"]) for piece in source.pieces()) <= 40
        except ContactIdError as error:
            refused += 1
            assert len(str(error)) < 500 and "\n" not in str(error)
    assert refused >= 5


def test_damage_behind_the_first_rows_is_told(motion, settings, tmp_path):
    """A compressed file whose data is damaged behind its first rows."""
    many = {name: np.concatenate([values] * 30) for name, values in motion.items()}
    many["time_s"] = 1e-3 * np.arange(30 * ROWS)
    np.savez_compressed(tmp_path / "long.npz", **many)
    data = bytearray((tmp_path / "long.npz").read_bytes())
    for at in range(len(data) - 40_000, len(data) - 20_000):
        data[at] ^= 0x5A
    (tmp_path / "long.npz").write_bytes(data)
    with pytest.raises(RecordError, match="cannot read the motion"):
        label(tmp_path / "long.npz", settings, tmp_path / "out", chunk=3000)


@pytest.mark.parametrize("words, message", [
    (["missing.npz"], "no motion at 'missing.npz'"),
    (["sway.csv"], "is no motion: a name must end with '.db3', '.mcap', '.npz', '.parquet'"),
    (["sway.npz", "--robot", "solo13"], "robot is 'solo13', must be one of 'anymal_c', 'bolt', 'g1'"),
    (["sway.npz", "--solver", "pid", "--friction", "none"], "none/pid predicts no forces"),
    (["sway.npz", "--solver", "sensed", "--friction", "none"], "none/sensed predicts no forces"),
    (["sway.npz", "--solver", "fast"], "no solver 'fast' for friction 'coulomb'"),
    (["sway.npz", "--jobs", "0"], "jobs must be 1 or more, got 0"),
    (["sway.npz", "--chunk", "0"], "chunk must be 1 or more, got 0"),
    (["sway.npz", "--set", "edges"], "--set 'edges' is not of the form NAME=VALUE"),
    (["sway.npz", "--contact", "recorded"], "lacks 'contact'"),
    (["sway.npz", "sub/sway.npz"], "would be labelled into the same folder 'sway.npz'"),
    (["sway.npz", "--output", "sway.csv"], "is a file, must be a folder"),
])  # fmt: skip
def test_the_command_refuses_in_one_line(file, tmp_path, monkeypatch, refusal, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    shutil.copy(file, tmp_path / "sub")
    (tmp_path / "sway.csv").write_text("1,2")
    robot = [] if "--robot" in words else ["--robot", "solo12"]
    assert message in refusal("label", *words, *robot)


def test_labels_made_otherwise_are_not_mixed(file, motion, settings, tmp_path):
    label(file, settings, tmp_path / "out", chunk=64)
    with pytest.raises(RecordError, match="holds labels with chunk 64, not 32"):
        label(file, settings, tmp_path / "out", chunk=32)
    with pytest.raises(
        RecordError, match="with solver 'qp', not 'lcp': remove it, or name another"
    ):
        label(file, dataclasses.replace(settings, solver="lcp"), tmp_path / "out")
    with pytest.raises(RecordError, match="with longest_gap_s 0.1, not 0.2"):
        label(file, settings, tmp_path / "out", longest_gap_s=0.2)


def test_a_motion_of_equal_size_and_time_that_has_changed_is_not_mixed(
    file, motion, settings, tmp_path
):
    label(file, settings, tmp_path / "out")
    before = file.stat()
    np.savez(file, **{**motion, "q": motion["q"] + 1e-6})
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    with pytest.raises(RecordError, match="holds labels with motion '.*bytes"):
        label(file, settings, tmp_path / "out")


@pytest.mark.parametrize("damage", ["flipped bits", "changed torques", "of other labels"])
def test_labels_that_are_not_as_they_were_saved_are_told_and_made_again(
    file, motion, settings, tmp_path, damage
):
    labels, told = label(file, settings, tmp_path / "out", chunk=20)
    _, second, *_ = sorted(told.folder.glob("chunk_*.npz"))
    if damage == "flipped bits":  # behind the first array, of the frames
        content = bytearray(second.read_bytes())
        for k in range(len(content) // 2, len(content) * 3 // 4, 101):
            content[k] ^= 1 << k % 8
        second.write_bytes(content)
    elif damage == "changed torques":
        with np.load(second) as arrays:
            changed = dict(arrays)
        changed["torques"][3] += 0.1
        np.savez(second, **changed)
    else:
        other = dataclasses.replace(settings, friction_coefficient=(0.2,))
        _, elsewhere = label(file, other, tmp_path / "other", chunk=20)
        shutil.copy(elsewhere.folder / second.name, second)
    with pytest.raises(RecordError, match=f"labels '.*{second.name}'"):
        joined(told.folder)
    again, told = label(file, settings, tmp_path / "out", chunk=20)
    assert told.found == told.frames - 20
    same(again, labels)


def test_two_do_not_label_into_one_folder(file, settings, tmp_path):
    _, told = label(file, settings, tmp_path / "out")
    held = LabelFolder(told.folder, json.loads((told.folder / MANIFEST).read_text())["made_from"])
    with held.locked(), pytest.raises(RecordError, match="another process labels into"):
        label(file, settings, tmp_path / "out")


def test_missing_libraries_are_named(settings, tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.mcap").write_bytes(b"")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name, what in (("a.parquet", "parquet files"), ("a.mcap", "bags")):
        with pytest.raises(MissingExtraError, match=f"{what} need the extra label"):
            open_motion(tmp_path / name, Shapes(19, 18, 12, 4), None)


@pytest.mark.parametrize("content", ["{", "[]", '{"made_from": 3}'])
def test_a_damaged_manifest_is_one_line(file, settings, tmp_path, content):
    _, told = label(file, settings, tmp_path / "out")
    (told.folder / MANIFEST).write_text(content)
    with pytest.raises(ContactIdError):
        label(file, settings, tmp_path / "out")


def test_the_command_says_what_came_of_it(file, motion, tmp_path, capsys):
    words = ["label", str(file), "--robot", "solo12", "--jobs", "1"]
    assert cli.run([*words, "--output", str(tmp_path / "out")]) == DONE
    said = capsys.readouterr().out
    assert f"sway.npz: {ROWS} frames" in said and "1 no_period" in said and "199 solved" in said
    assert cli.run([*words, "--output", str(tmp_path / "out")]) == DONE
    assert f"{ROWS} were there" in capsys.readouterr().out
    q = motion["q"].copy()
    q[5, 3:7] *= 2.0
    np.savez(tmp_path / "bad.npz", time_s=motion["time_s"], q=q, v=motion["v"])
    words[1] = str(tmp_path / "bad.npz")
    assert cli.run([*words, "--output", str(tmp_path / "out")]) == NOT_ALL_WELL
    assert FAILED in capsys.readouterr().out
    for name, times in (("back", -motion["time_s"]), ("none", motion["time_s"] * np.nan)):
        words[1] = str(tmp_path / f"{name}.npz")
        np.savez(words[1], time_s=times, q=motion["q"], v=motion["v"])
        assert cli.run([*words, "--output", str(tmp_path / "out")]) == NOT_ALL_WELL
        (line,) = capsys.readouterr().err.splitlines()[-1:]
        assert "nothing labelled: no row follows another within 0.1 s" in line
