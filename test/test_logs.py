"""Logs of any robot: which array of a file is what, and what a file or a map without sense is told."""

import numpy as np
import pytest
import scipy.io
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from contact_id_controller.exceptions import ConfigurationError, RecordError
from contact_id_controller.logs.column_map import channel_of
from contact_id_controller.logs.reader import read_log

N = 40
TIME = 5.0 + 0.01 * np.arange(N)
Q = np.column_stack([np.sin(TIME), np.cos(TIME)])


@pytest.mark.parametrize(
    "name, meant",
    [
        ("q1", ("position", "1")),
        ("/joint_states/elbow/position", ("position", "elbow")),
        ("- arm_1_joint_velocity", ("velocity", "arm_1_joint")),
        ("knee velocity (rad/s)", ("velocity", "knee")),
        ("imu.angular_velocity.x", ("imu.angular_velocity", "x")),
        ("target_positions", ("commands.position", "")),
        ("lfWrench", ("feet.lf", "")),
        ("linkBasePos", ("base.position", "")),
        ("header.stamp", ("time", "")),
        ("comment", None),
    ],
)
def test_names_say_what_a_column_is(name, meant):
    assert channel_of(name) == meant


def test_a_table_of_named_columns(tmp_path):
    path = tmp_path / "log.csv"
    table = np.column_stack([TIME, Q, 2 * Q, Q[:, :1] * 0 + 9.81, Q])
    head = "time,hip position,knee position,hip_torque,knee_torque,temperature,v_hip,v_knee"
    np.savetxt(path, table, delimiter=",", header=head, comments="")
    log = read_log(path)
    assert log.joints == ("hip", "knee") and log.start == 5.0
    np.testing.assert_allclose(log.time, TIME - 5.0, atol=1e-12)
    np.testing.assert_allclose(log.position, Q)
    np.testing.assert_allclose(log.effort, 2 * Q)
    np.testing.assert_allclose(log.velocity, Q)
    assert log.current is None and log.imu is None and not log.feet


def test_a_folder_of_tables(tmp_path):
    for name, factor in (("position", 1.0), ("effort", 3.0)):
        head = f"t,a_{name},b_{name}"
        rows = np.column_stack([TIME, factor * Q])
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header=head, comments="")
    log = read_log(tmp_path)
    assert log.joints == ("a", "b")
    np.testing.assert_allclose(log.effort, 3 * Q)


def test_columns_without_names_need_a_map_with_units_and_corrections(tmp_path):
    path, names = tmp_path / "log.csv", tmp_path / "map.yaml"
    np.savetxt(path, np.column_stack([TIME, np.degrees(Q), 1e3 * Q]), delimiter=",")
    with pytest.raises(RecordError, match="no array that is clearly time.*--map"):
        read_log(path)
    names.write_text(
        "channels: {time: 1, position: '2:3', current: ['4', '5']}\njoints: [hip, knee]\n"
        "units: {position: deg, current: mA}\ncorrect: {position: {knee: {times: -1, plus: 0.5}}}\n"
    )
    log = read_log(path, names)
    np.testing.assert_allclose(log.position, Q * [1, -1] + [0, 0.5], atol=1e-12)
    np.testing.assert_allclose(log.current, Q)


@pytest.mark.parametrize("kind", ["npz", "mat"])
def test_arrays_by_name(tmp_path, kind):
    """A base's velocity is none of the joints; four columns of a foot's force are four feet."""
    arrays = {
        "t": TIME,
        "q": Q,
        "gyro": np.ones((N, 3)),
        "acc": np.ones((N, 3)),
        "velocity": np.ones((N, 3)),
        "foot_force": np.arange(4) * np.ones((N, 4)),
        "base_position": np.zeros((N, 3)),
        "base_rpy": np.tile([0.0, 0.0, np.pi], (N, 1)),
        "names": np.array(["hip", "knee"]),
    }
    path = tmp_path / f"log.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    else:
        scipy.io.savemat(path, arrays)
    log = read_log(path)
    assert log.joints == ("hip", "knee") and log.velocity is None
    assert {name: values[0, 0] for name, values in log.feet.items()} == {
        f"foot_{k + 1}": k for k in range(4)
    }
    np.testing.assert_allclose(log.base.orientation[0], [0, 0, 1, 0], atol=1e-12)
    part = log.rows(slice(0, 10))
    assert len(part.time) == len(part.imu.time) == len(part.feet["foot_1"]) == 10


@pytest.mark.parametrize(
    "text, message",
    [
        ("joint: [a]\n", "'joint' in .* is unknown"),
        ("channels: {speed: v}\n", "channel 'speed' in .* does not exist"),
        (
            "channels: {position: w}\n",
            "'position' shall be 'w', which the log lacks; it has 'q', 't'",
        ),
        ("units: {position: inch}\n", "unit 'inch' of 'position'"),
        ("joints: [a, b, c]\n", "2 columns of joints and 3 names"),
        ("correct: {position: {knee: {times: 2}}}\n", "joint 'knee' is to be corrected"),
        ("correct: {position: {knee: {tmes: 2}}}\n", "must have numbers 'times' and 'plus'"),
        ("correct: {position: {knee: {times: x}}}\n", "must have numbers 'times' and 'plus'"),
        ("correct: {position: {knee: -1}}\n", "must have numbers 'times' and 'plus'"),
        ("correct: {position: knee}\n", "position"),
        ("units: {position: [1]}\n", "unit .* of 'position'"),
        ("units: {position: .nan}\n", "unit nan of 'position'"),
        ("joints: 5\n", "'joints' .* is 5, must be a list of names"),
        ("joints: hip\n", "'joints' .* is 'hip', must be a list of names"),
        ("rotation_rpy: up\n", "must be three angles"),
        ("rotation_rpy: [1, 2]\n", "must be three angles"),
        ("delay_s: {imv: 0.02}\n", "there is 'imu', a number of seconds"),
        ("delay_s: {imu: fast}\n", "there is 'imu', a number of seconds"),
        ("delay_s: {imu: 0.02}\n", "corrects an IMU, which the log lacks"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(tmp_path, text, message):
    np.savez(tmp_path / "log.npz", t=TIME, q=Q)
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises((ConfigurationError, RecordError), match=message) as refusal:
        read_log(tmp_path / "log.npz", tmp_path / "map.yaml")
    assert "\n" not in str(refusal.value)


def test_files_that_are_no_logs_are_refused(tmp_path):
    broken, picture = tmp_path / "log.npz", tmp_path / "log.png"
    for path in (broken, picture):
        path.write_bytes(b"nothing")
    for path in (broken, picture, tmp_path / "none.csv", tmp_path):
        with pytest.raises(RecordError) as refusal:
            read_log(path)
        assert "\n" not in str(refusal.value)


def test_rows_and_columns_without_numbers(tmp_path, recwarn):
    """A row without a stamp is left out, what is infinite is not measured; a joint without any number is refused."""
    q, t = Q.copy(), TIME.copy()
    q[3, 0], t[5] = np.inf, np.nan
    np.savez(tmp_path / "log.npz", t=t, q=q)
    log = read_log(tmp_path / "log.npz")
    assert len(log.time) == N - 1 and np.isnan(log.position[3, 0])
    q[:, 1] = np.nan
    np.savez(tmp_path / "log.npz", t=TIME, q=q)
    with pytest.raises(RecordError, match="no number in the position of 'joint_2'"):
        read_log(tmp_path / "log.npz")
    for text, message in (
        ("", "holds no array"),
        ("time,position_a,position_a\n0,1,2\n1,2,3\n", "two columns 'position_a'"),
    ):
        (tmp_path / "log.csv").write_text(text)
        with pytest.raises(RecordError, match=message):
            read_log(tmp_path / "log.csv")
    assert not recwarn.list


def test_rows_of_another_length_are_left_out_and_told(tmp_path, capsys):
    """A recorder that was killed has cut its last row."""
    lines = [
        "time,position_a,position_b",
        *(f"{0.01 * k:.2f},{k},{-k}" for k in range(5)),
        "0.05,5",
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    assert len(read_log(tmp_path / "log.csv").time) == 5
    assert (
        "log.csv: 1 row of another length left out, the first in line 7" in capsys.readouterr().err
    )


def test_a_bag_with_an_imu_that_has_stamps_of_its_own(tmp_path):
    types = get_typestore(Stores.ROS2_KILTED)
    kind = types.types
    header, time = kind["std_msgs/msg/Header"], kind["builtin_interfaces/msg/Time"]
    vector, turn = kind["geometry_msgs/msg/Vector3"], kind["geometry_msgs/msg/Quaternion"]
    state, imu = kind["sensor_msgs/msg/JointState"], kind["sensor_msgs/msg/Imu"]
    wrench = kind["geometry_msgs/msg/WrenchStamped"]

    def stamped(ns):
        return header(stamp=time(sec=100 + ns // 10**9, nanosec=ns % 10**9), frame_id="chip")

    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topics = {}
        for name, message in (("/joint_states", state), ("/imu", imu), ("/left/wrench", wrench)):
            topics[name] = writer.add_connection(name, message.__msgtype__, typestore=types)

        def put(name, message, ns):
            data = types.serialize_cdr(message, message.__msgtype__)
            writer.write(topics[name], 100 * 10**9 + ns + 3_000_000, data)

        # As a node may write states without velocities: the reader refuses bytes behind the last array.
        other = writer.add_connection("/contact_states", state.__msgtype__, typestore=types)
        longer = state(stamped(0), ["foot"], np.ones(1), np.zeros(0), np.zeros(0))
        data = bytes(types.serialize_cdr(longer, state.__msgtype__)) + bytes(8)
        writer.write(other, 100 * 10**9, data)

        none, cov = np.zeros(0), np.zeros(9)
        for k in range(N):
            ns = 10_000_000 * k
            names = ["hip", "knee"] if k % 2 == 0 else ["knee", "hip"]
            values = Q[k] if k % 2 == 0 else Q[k, ::-1]
            put("/joint_states", state(stamped(ns), names, values.copy(), none, none), ns)
            for late in (1_000_000, 6_000_000):
                rate, up = vector(0.0, 0.0, 1.0 * k), vector(0.0, 0.0, 9.81)
                message = imu(stamped(ns + late), turn(0.0, 0.0, 0.0, 1.0), cov, rate, cov, up, cov)
                put("/imu", message, ns + late)
            force = kind["geometry_msgs/msg/Wrench"](
                vector(0.0, 0.0, 1.0 * k), vector(0.0, 0.0, 0.0)
            )
            put("/left/wrench", wrench(stamped(ns), force), ns)
    log = read_log(tmp_path / "bag")
    assert log.joints == ("hip", "knee") and log.velocity is None and log.imu.frame == "chip"
    np.testing.assert_allclose(log.position, Q)
    np.testing.assert_allclose(log.time, TIME - 5.0, atol=1e-9)
    np.testing.assert_allclose(log.arrival - log.time, 3e-3, atol=1e-9)
    np.testing.assert_allclose(log.imu.time[:2], [1e-3, 6e-3], atol=1e-9)
    np.testing.assert_allclose(log.feet["left"][:, 2], np.arange(N), atol=1e-9)
