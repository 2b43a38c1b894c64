"""Bags recorded from real topics and computed again: bit for bit, and what is told of what they lack."""

import dataclasses
import json
import shutil
import sys

import numpy as np
import pytest
from paths import ROOT

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("rosbags", reason="needs the extra replay")

from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from ros_bench import joint_state, odometry, parameters
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from contact_id_controller import cli
from contact_id_controller.exceptions import ConfigurationError, RecordError
from contact_id_controller.exit_codes import DONE, REFUSED
from contact_id_controller.logs.bag_log import read_bag_log
from contact_id_controller.ros.packed import stamp_ns
from contact_id_controller.runs.ros_run import PARAMETERS, run_nodes
from contact_id_controller.runs.setup import (
    CONTROLLER_RECORD,
    make_setup,
    read_setup,
)
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR
from contact_id_controller.view.bag import Bag, Message, find_bag, read_bag
from contact_id_controller.view.replay import UNSENT, Replay
from contact_id_controller.view.replayed import RECORDED, find_parameters, replay_all
from contact_id_controller.view.run_record import record_of_replay, record_of_run
from contact_id_controller.view.side_processes import recording
from contact_id_controller.view.timeline import events_of
from contact_id_controller.view.topics import replayed_topics

SECONDS = 1.25
"""Plans have come, feet have left the ground, and one plan begins at 1.17 s, which 1 + .17 is not exactly."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder with bag, parameters and records of a walk in lockstep over real topics."""
    folder = tmp_path_factory.mktemp("run")
    setup = make_setup(folder, robot="quadruped", duration_s=SECONDS)
    run_nodes(setup, folder, {"bag_recorder": recording(folder, folder / "bag", "sqlite3")})
    return folder


PAUSES = """
import os, pathlib, signal, sys, time
def of_bag(process):
    try:
        words = (process / "cmdline").read_bytes().split(b"\\0")
    except OSError:
        return False
    return sys.argv[1].encode() in words and b"--bag" in words
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
while not (found := [each for each in pathlib.Path("/proc").glob("[0-9]*") if of_bag(each)]):
    time.sleep(0.1)
print("ready", flush=True)
recorder = int(found[0].name)
while True:
    time.sleep(0.15)
    os.kill(recorder, signal.SIGSTOP)
    try:
        time.sleep(0.2)
    finally:
        os.kill(recorder, signal.SIGCONT)
"""


def test_a_recorder_that_is_kept_waiting_loses_no_state_in_lockstep(tmp_path):
    """On a busy machine it gets no processor for some periods, which in lockstep are states all the same."""
    bag = tmp_path / "bag"
    setup = make_setup(tmp_path, robot="quadruped", duration_s=1.0)
    others = {
        "bag_recorder": recording(tmp_path, bag, "sqlite3"),
        "pauses": [sys.executable, "-c", PAUSES, str(bag)],
    }
    run_nodes(setup, tmp_path, others)
    replayed = replay(tmp_path)[RECORDED]
    # Torques are not judged: of plans only the newest is kept, for in real time twenty of them cost answers.
    assert replayed.remarks == []


def rewrite(run, folder, change, storage=StoragePlugin.SQLITE3):
    """The run's bag as another one: ``change(topic, data)`` gives the data to keep, or None."""
    types = get_typestore(Stores.ROS2_KILTED)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(run / PARAMETERS, folder)
    with (
        Reader(run / "bag") as reader,
        Writer(folder / "bag", version=9, storage_plugin=storage) as writer,
    ):
        connections = {
            each.topic: writer.add_connection(each.topic, each.msgtype, typestore=types)
            for each in reader.connections
        }
        for connection, time_ns, data in reader.messages():
            kept = change(connection.topic, bytes(data))
            if kept is not None:
                writer.write(connections[connection.topic], time_ns, kept)
    return folder


def replay(folder, **others):
    return replay_all(folder, **others)


def test_the_sent_torques_come_again_bit_for_bit(run):
    replayed = replay(run)[RECORDED]
    assert replayed.remarks == [] and not replayed.refusals
    assert replayed.compared.all() and replayed.exact.all()
    assert len(replayed.time_s) >= SECONDS / replayed.period_s
    # Judged by what the node wrote itself, too: the same stamps, torques, forces and statuses.
    with np.load(run / CONTROLLER_RECORD) as record:
        walked = record["time_s"] > 0.1
        assert walked.sum() > 400
        rows = np.searchsorted(replayed.time_s, record["time_s"][walked])
        for name in ("torques", "forces", "contact", "saturated", "reference_position"):
            np.testing.assert_array_equal(getattr(replayed, name)[rows], record[name][walked])
        np.testing.assert_array_equal(replayed.status[rows], record["status"][walked])
        assert not replayed.contact[rows].all(), "no foot has left the ground: a poor test"


def test_other_settings_answer_otherwise(run):
    replays = replay(run, friction="none", solver="pid")
    same, other = replays.values()
    assert list(replays) == [RECORDED, "friction none, solver pid"]
    assert same.exact.all()
    np.testing.assert_array_equal(same.sent, other.sent)
    assert not other.exact[100:].any() and other.largest_difference_nm > 0.01


def test_plans_count_when_they_were_taken(run, tmp_path):
    """Those of a tenth of a second are told of .1 s later: torques differ from there on, not before."""
    taken_ns = 300_000_000

    def delay(topic, data):
        if not topic.endswith("/events"):
            return data
        event = json.loads(deserialize_message(data, String).data)
        if event["event"] == "plan" and taken_ns <= event["after_ns"] < taken_ns + 100_000_000:
            event["after_ns"] += 100_000_000
        return serialize_message(String(data=json.dumps(event)))

    other = replay(rewrite(run, tmp_path, delay))[RECORDED]
    before = other.time_s <= 1e-9 * taken_ns
    sent = other.compared
    assert other.exact[before & sent].all() and not other.exact[sent].all()


def test_a_bag_without_events_says_what_is_not_certain(run, tmp_path):
    folder = rewrite(run, tmp_path, lambda topic, data: None if "events" in topic else data)
    replayed = replay(folder)[RECORDED]
    (remark,) = replayed.remarks
    assert remark.startswith("no message of ~/events: ")
    assert replayed.compared.all()
    assert np.median(np.abs(replayed.sent - replayed.torques)) < 0.01


@pytest.mark.parametrize("storage", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_another_order_of_joints_is_told_and_changes_nothing(run, tmp_path, storage):
    def turned(topic, data):
        if topic != "/joint_states":
            return data
        message = deserialize_message(data, JointState)
        for name in ("name", "position", "velocity", "effort"):
            setattr(message, name, list(getattr(message, name))[::-1])
        return serialize_message(message)

    replayed = replay(rewrite(run, tmp_path, turned, storage))[RECORDED]
    assert replayed.remarks == [
        "joint_states names the joints in another order than the controller: taken by name"
    ]
    assert replayed.exact.all()


def test_gaps_are_told_in_one_line(run, tmp_path):
    states = [stamp_ns(message.data) for message in read_bag(run)["joint_states"]]
    lost = set(states[-100:-80])

    def gap(topic, data):
        return None if topic in ("/joint_states", "/odometry") and stamp_ns(data) in lost else data

    replayed = replay(rewrite(run, tmp_path, gap))[RECORDED]
    begins = (min(lost) - 1_000_000) / 1e9
    assert replayed.remarks == [
        f"1 gaps in joint_states, 20 states missing; the longest is 0.021 s, after {begins:.3f} s",
        "the bag has 20 commands more than answers to its states",
    ]
    before = (replayed.time_s < begins) & (replayed.time_s > 1e-3)
    assert replayed.exact[before].all() and before.sum() > 400


def test_a_command_that_was_lost_is_told_and_no_other_is_misplaced(run, tmp_path):
    """The first one, as by a recorder that came late: every later one still has its state."""
    seen = 0

    def lose(topic, data):
        nonlocal seen
        seen += topic == "/commands"
        return None if topic == "/commands" and seen == 1 else data

    replayed = replay(rewrite(run, tmp_path, lose))[RECORDED]
    (remark,) = replayed.remarks
    assert remark.startswith("1 of ") and remark.endswith(" commands are not in the bag")
    moving = replayed.time_s > 1e-3
    assert replayed.compared[moving].all() and replayed.exact[moving].all()


def test_missing_odometry_is_told_in_one_line(run, tmp_path):
    folder = rewrite(run, tmp_path, lambda topic, data: None if topic == "/odometry" else data)
    replayed = replay(folder)[RECORDED]
    assert replayed.remarks == [
        "no message of odometry, and the base floats: every state is refused"
    ]
    assert replayed.refusals["odometry_missing"] > 600
    assert set(replayed.status) == {UNSENT}


def test_some_odometry_missing_is_counted(run, tmp_path):
    stamps = [stamp_ns(message.data) for message in read_bag(run)["joint_states"]]
    lost = set(stamps[-50:-45])
    folder = rewrite(
        run,
        tmp_path,
        lambda topic, data: None if topic == "/odometry" and stamp_ns(data) in lost else data,
    )
    assert replay(folder)[RECORDED].remarks == ["5 states have no odometry of their own"]


def test_an_unfinished_bag_is_read(run, tmp_path):
    """What a killed recorder leaves: the file without metadata."""
    folder = rewrite(run, tmp_path, lambda topic, data: data)
    (folder / "bag" / "metadata.yaml").unlink()
    replayed = replay(folder)[RECORDED]
    assert replayed.remarks == ["the bag was not closed: its last messages may be lost"]
    assert replayed.exact.all()


def test_events_tell_start_plans_and_end_in_order(run):
    events = events_of(read_bag(run))
    assert [event["number"] for event in events] == list(range(len(events)))
    kinds = [event["event"] for event in events]
    assert kinds[0] == "started" and kinds[-1] == "stopped" and "plan" in kinds[1:-1]
    after = [event["after_ns"] for event in events]
    assert after == sorted(after)


def test_a_changed_parameter_is_replayed(bench_of, tmp_path):
    """The node in this process: what it was told to change is in its events, and Replay changes it."""
    bench = bench_of(mode="lockstep")
    told, log = [], {"joint_states": [], "odometry": [], "commands": []}
    bench.node.create_subscription(
        String, f"{bench.node.get_fully_qualified_name()}/events", told.append, 10
    )
    bench.configure()
    sent = []
    for k in range(1, 40):
        time_s = k * 0.001
        state, base = joint_state(time_s), odometry(time_s)
        for topic, message in (("odometry", base), ("joint_states", state)):
            log[topic].append(Message(2 * k, serialize_message(message)))
        if k == 1:
            topics = bench.node._topics
            topics._on_odometry(log["odometry"][-1].data)
            topics._on_joint_states(log["joint_states"][-1].data)
            assert bench.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
            sent.append(bench.node.loop.output.sent.copy())
            continue
        if k == 20:
            changed = Parameter("friction_coefficient", value=[0.11])
            assert all(each.successful for each in bench.node.set_parameters([changed]))
            bench.node._apply_changes()
        topics._on_odometry(log["odometry"][-1].data)
        topics._on_joint_states(log["joint_states"][-1].data)
        sent.append(bench.node.loop.output.sent.copy())
    topics._journal.tell()
    assert bench.until(lambda: len(told) == 2)
    log["commands"] = [
        Message(2 * k + 3, serialize_message(Float64MultiArray(data=row.tolist())))
        for k, row in enumerate(sent)
    ]
    log["events"] = [Message(k, serialize_message(message)) for k, message in enumerate(told)]
    settings = ControllerSettings.from_mapping(parameters(mode="lockstep"))
    replayed = Replay(Bag(tmp_path, log), settings).run()
    assert replayed.remarks == [] and replayed.exact.all() and len(replayed.time_s) == 39
    log["events"] = log["events"][:1]
    assert not Replay(Bag(tmp_path, log), settings).run().exact[25:].any()


@pytest.mark.parametrize(
    ("clock_ns", "reason"), [(10**10, "future"), (1_800_000_000 * 10**9, "stamp_jump")]
)
def test_one_wrong_stamp_is_refused_as_it_was_and_moves_no_event(tmp_path, clock_ns, reason):
    """By the wall clock, and by simulated time, which the bag does not tell."""
    log = {"joint_states": [], "odometry": [], "commands": []}
    events = [("started", 2), ("emergency_stop", 41)]
    for k in range(50):
        time_s = 10.0 + k * 0.001
        wrong_s = 7200.0 if k == 30 else 0.0
        sent_ns = clock_ns + k * 1_000_000
        state = serialize_message(joint_state(time_s + wrong_s))
        log["odometry"].append(Message(sent_ns, serialize_message(odometry(time_s))))
        log["joint_states"].append(Message(sent_ns, state))
        if k > 2:
            sent = serialize_message(Float64MultiArray(data=[0.0] * 12))
            log["commands"].append(Message(sent_ns + 200_000, sent))
    log["events"] = [
        Message(number, serialize_message(String(data=json.dumps(
            {"number": number, "after_ns": 10**10 + k * 1_000_000, "event": what, "active": False}
        ))))
        for number, (what, k) in enumerate(events)
    ]  # fmt: skip
    settings = ControllerSettings.from_mapping(
        parameters(stamp_reference="clock", recovery_window_s=0.1)
    )
    replayed = Replay(Bag(tmp_path, log), settings).run()
    assert replayed.refusals == {reason: 1}
    steps = np.flatnonzero(~replayed.commanded).tolist()
    assert len(replayed.commanded) == 47 and steps == [27, *range(39, 47)]


# contact_id report


def test_an_interrupted_run_has_the_record_of_its_bag(run, tmp_path):
    """Killed: no node wrote its record, the recorder did not close the bag."""
    folder = rewrite(run, tmp_path, lambda topic, data: data)
    (folder / "bag" / "metadata.yaml").unlink()
    setup = read_setup(folder / PARAMETERS)
    whole = record_of_run(run, read_setup(run / PARAMETERS))
    saved = record_of_run(folder, setup)
    assert setup.robot == "quadruped" and setup.settings.mode == "lockstep"
    assert whole.knows_ground_forces and not saved.knows_ground_forces and not saved.fell
    _, mine, theirs = np.intersect1d(
        np.rint(1e3 * saved.time_s), np.rint(1e3 * whole.time_s), return_indices=True
    )
    assert len(mine) > 500
    mine, theirs = mine[1:], theirs[1:]  # at time 0 the robot is held, each keeps another state
    for name in ("q", "v", "position", "velocity", "torques", "predicted_forces", "contact"):
        np.testing.assert_array_equal(getattr(saved, name)[mine], getattr(whole, name)[theirs])


def test_a_bag_of_a_walk_on_the_estimate_has_the_sensors(tmp_path):
    """As a robot's own log has them; `contact_id diagnose` takes both alike."""
    sensor = "force_torque LF_KFE"
    setup = make_setup(
        tmp_path, robot="quadruped", duration_s=0.2, state="estimated", sensors="good"
    )
    for node in (ESTIMATOR, "simulated_robot"):
        setup.parameters[node]["mounted_sensors"] = [sensor]
    run_nodes(setup, tmp_path, {"bag_recorder": recording(tmp_path, tmp_path / "bag", "mcap")})
    log = read_bag_log(tmp_path)
    assert len(log.time) >= 200
    assert log.imu is not None and len(log.imu.time) >= 200
    assert 5.0 < np.linalg.norm(log.imu.acceleration.mean(axis=0)) < 15.0
    assert list(log.feet) == ["LF_KFE"] and 1.0 < np.abs(log.feet["LF_KFE"][:, 2]).max() < 100.0


def test_a_fall_is_told_from_the_bag(run):
    setup = read_setup(run / PARAMETERS)
    replayed = Replay(read_bag(run), setup.settings).run()
    assert record_of_replay(replayed, setup).fell_time_s is None
    replayed.q[-30:, 2] = 0.05
    assert record_of_replay(replayed, setup).fell_time_s == replayed.time_s[-30]


def test_report_draws_an_interrupted_run(run, tmp_path, capsys):
    shutil.copytree(run / "bag", tmp_path / "bag")
    shutil.copy(run / PARAMETERS, tmp_path)
    assert cli.run(["report", str(tmp_path)]) == DONE
    printed = capsys.readouterr().out
    assert "nan %" not in printed and "unknown" in printed
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "what the ground exerted was not recorded" in page and "nan s" not in page
    for picture in ("normal_forces.png", "torque.png", "animation.gif"):
        assert (tmp_path / picture).stat().st_size > 5_000


# What is refused, in one line


def test_a_command_interface_that_is_not_read_is_refused(run):
    settings = dataclasses.replace(
        ControllerSettings.from_mapping(parameters()), command_interface="linear_feedback"
    )
    with pytest.raises(ConfigurationError, match="'linear_feedback' cannot be replayed"):
        Replay(read_bag(run), settings)
    with pytest.raises(ConfigurationError, match="'linear_feedback' cannot be replayed"):
        replayed_topics(settings, False, "controller")


def test_refusals_are_one_line(run, tmp_path, capsys):
    with pytest.raises(RecordError, match="no such file or folder"):
        find_bag(tmp_path / "nothing")
    with pytest.raises(RecordError, match=r"neither metadata.yaml nor a file \*.mcap or \*.db3"):
        find_bag(tmp_path)
    shutil.copytree(run / "bag", tmp_path / "alone")
    with pytest.raises(ConfigurationError, match="--config"):
        find_parameters(tmp_path / "alone")
    for words, line in (
        (["--solver", "lpc"], "lpc"),
        (["--set", "friction_coefficient"], "is not of the form NAME=VALUE"),
        (["--namespace", "/other"], "has no message of /other/joint_states"),
        (["--config", str(ROOT / "config" / "solo12.yaml")], "joint_states lacks"),
    ):
        code = cli.run(["replay", str(run), *words])
        captured = capsys.readouterr()
        if "lacks" in line:  # the bag of another robot: told, and nothing is the same
            assert code == REFUSED or line in captured.out
        else:
            assert code == REFUSED and line in captured.err
            assert len(captured.err.strip().splitlines()) == 1


def test_command_prints_and_writes(run, tmp_path, capsys):
    code = cli.run(
        ["replay", str(run), "--set", "friction_coefficient=[0.2]", "--output", str(tmp_path)]
    )
    out = capsys.readouterr().out
    assert code == DONE
    assert "torques as sent, bit for bit" in out and "friction_coefficient [0.2]" in out
    files = sorted(path.name for path in tmp_path.glob("*.npz"))
    assert files == ["as_recorded.npz", "friction_coefficient__0.2_.npz"]
    with np.load(tmp_path / files[0]) as arrays:
        np.testing.assert_array_equal(arrays["torques"], arrays["sent"])
