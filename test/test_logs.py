"""Logs of any robot: which array of a file is what, and what a file or a map without sense is told."""

import numpy as np
import pytest
import scipy.io
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from contact_id_controller.exceptions import ConfigurationError, RecordError
from contact_id_controller.logs.column_map import channel_of, unit_of
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
        ("actual_q_0", ("position", "0")),
        ("target_qd_3", ("commands.velocity", "3")),
        ("actual_TCP_pose_0", None),
        ("field.position0", ("position", "0")),
        ("field.header.stamp", ("time", "")),
        ("data.t", ("time", "")),
        ("run.cmd.t", None),
        ("knee velocity [°/s]", ("velocity", "knee")),
        ("position_knee_deg", ("position", "knee")),
        ("time_ms", ("time", "")),
        ("I_2 (mA)", ("current", "2")),
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


@pytest.mark.parametrize(
    "name, channel, unit",
    [
        ("knee [deg]", "position", "deg"),
        ("knee velocity (deg/s)", "velocity", "deg/s"),
        ("qd_1 [°/s]", "velocity", "deg/s"),
        ("qd_1 [deg]", "velocity", "deg/s"),
        ("motor speed [rpm]", "velocity", "rpm"),
        ("time_ms", "time", "ms"),
        ("t [µs]", "time", "us"),
        ("velocity_ms", "velocity", ""),
        ("I_2 (mA)", "current", "mA"),
        ("current_mA", "current", "mA"),
        ("tau [Nm]", "effort", ""),
        ("tau [N·mm]", "effort", "mNm"),
        ("acc_x [g]", "imu.acceleration", "g"),
        ("left_force_z [kgf]", "feet.left", "kgf"),
        ("q_1 [rad]", "position", ""),
        ("q_1", "position", ""),
    ],
)
def test_names_say_units(name, channel, unit):
    assert unit_of(name, channel) == unit


def test_units_of_headers_are_applied_and_a_map_overrides_them(tmp_path):
    head = "time_ms,hip_pos_deg,knee_pos [rad],I_hip (mA),I_knee (mA)"
    table = np.column_stack([1e3 * TIME, np.degrees(Q[:, 0]), Q[:, 1], 1e3 * Q])
    path, names = tmp_path / "log.csv", tmp_path / "map.yaml"
    np.savetxt(path, table, delimiter=",", header=head, comments="")
    log = read_log(path)
    assert log.joints == ("hip", "knee")
    np.testing.assert_allclose(log.time, TIME - 5.0, atol=1e-9)
    np.testing.assert_allclose(log.position, Q)
    np.testing.assert_allclose(log.current, Q)
    names.write_text("units: {current: 1.0}\n")
    np.testing.assert_allclose(read_log(path, names).current, 1e3 * Q)


def test_a_table_of_a_spreadsheet_with_decimal_commas(tmp_path):
    """As a German one writes it: semicolons between, code page 1252."""
    rows = [
        ";".join(f"{x:.6f}".replace(".", ",") for x in row) for row in np.column_stack([TIME, Q])
    ]
    text = "\n".join(["sep=;", "Zeit;q_hip [°];q_knee [°]", *rows])
    (tmp_path / "log.csv").write_bytes(text.encode("cp1252"))
    log = read_log(tmp_path / "log.csv")
    assert log.joints == ("hip", "knee")
    np.testing.assert_allclose(log.position, np.radians(Q), atol=1e-6)
    (tmp_path / "log.csv").write_bytes(text.encode("utf-8"))
    np.testing.assert_allclose(read_log(tmp_path / "log.csv").position, np.radians(Q), atol=1e-6)
    bare = "\n".join(rows)
    (tmp_path / "log.csv").write_text(bare)
    (tmp_path / "map.yaml").write_text("channels: {time: 1, position: '2:3'}\n")
    log = read_log(tmp_path / "log.csv", tmp_path / "map.yaml")
    assert len(log.time) == N
    np.testing.assert_allclose(log.position, Q, atol=1e-6)


def test_the_table_of_a_robots_own_interface(tmp_path):
    """Columns of a UR's RTDE, of which the robot's current and the tool's are of no joint."""
    head = ["timestamp", *(f"{what}_{k}" for what in ("target_q", "actual_q") for k in range(2))]
    head += ["actual_current_1", "actual_current_0", "actual_robot_current", "actual_TCP_pose_0"]
    head += ["target_moment_0", "target_moment_1", "actual_execution_time", "tool_output_current"]
    table = np.column_stack([TIME, 3 * Q, Q, 2 * Q[:, ::-1], TIME, TIME, 4 * Q, TIME, TIME])
    np.savetxt(tmp_path / "log.csv", table, header=" ".join(head), comments="")
    log = read_log(tmp_path / "log.csv")
    np.testing.assert_allclose(log.time, TIME - 5.0, atol=1e-9)
    np.testing.assert_allclose(log.position, Q)
    np.testing.assert_allclose(log.current, 2 * Q)
    np.testing.assert_allclose(log.commands.position, 3 * Q)
    np.testing.assert_allclose(log.commands.effort, 4 * Q)


def test_the_table_of_a_topic(tmp_path):
    """``rostopic echo -p``: stamps in ns since 1970, names in each row; the time of the recorder is another one."""
    lines = ["%time,field.header.seq,field.header.stamp,field.header.frame_id,field.name0,field.name1,"
             "field.position0,field.position1,field.effort0,field.effort1"]  # fmt: skip
    for k, (a, b) in enumerate(Q):
        stamp = 1_600_000_000_000_000_000 + 10_000_000 * k
        lines.append(
            f"{stamp + 3_000_000 * (k % 2)},{k},{stamp},,hip,knee,{a:.9f},{b:.9f},{b:.9f},{a:.9f}"
        )
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "log.csv")
    assert log.joints == ("hip", "knee")
    np.testing.assert_allclose(log.time, TIME - 5.0, atol=1e-6)
    np.testing.assert_allclose(log.position, Q, atol=1e-8)
    np.testing.assert_allclose(log.effort, Q[:, ::-1], atol=1e-8)


@pytest.mark.parametrize("kind", ["csv", "npz", "mat"])
def test_joints_without_names_are_those_of_the_robot_in_its_order(tmp_path, capsys, kind):
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        table = np.column_stack([TIME, Q])
        np.savetxt(path, table, delimiter=",", header="time,q1,q2", comments="")
    else:
        save = np.savez if kind == "npz" else lambda file, **arrays: scipy.io.savemat(file, arrays)
        save(path, t=TIME, q=Q)
    assert read_log(path, joints=("hip", "knee")).joints == ("hip", "knee")
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "in the order of the URDF: hip, knee" in said
    assert read_log(path, joints=("hip", "knee", "ankle")).joints == ("joint_1", "joint_2")
    if kind == "csv":  # whose names these are
        assert read_log(path, joints=("joint_2", "joint_1")).joints == ("joint_1", "joint_2")
    assert capsys.readouterr().err == ""


def test_names_of_joints_that_differ_in_capitals_and_marks_are_the_robots(tmp_path):
    names = ("FR_hip_joint", "FR_calf_joint")
    path = tmp_path / "log.npz"
    np.savez(path, t=0.1 * np.arange(20), q=np.zeros((20, 2)), names=["fr-calf", "FRhip"])
    assert read_log(path, joints=names).joints == ("FR_calf_joint", "FR_hip_joint")
    assert read_log(path, joints=(*names, "frHip")).joints == ("fr-calf", "FRhip")  # which one?


def test_arrays_of_a_matlab_structure(tmp_path):
    data = {"t": TIME, "q": Q, "tau": 2 * Q, "names": np.array(["hip", "knee"], dtype=object)}
    scipy.io.savemat(tmp_path / "log.mat", {"data": data, "Ts": 0.01})
    log = read_log(tmp_path / "log.mat")
    assert log.joints == ("hip", "knee")
    np.testing.assert_allclose(log.time, TIME - 5.0, atol=1e-12)
    np.testing.assert_allclose(log.position, Q)
    np.testing.assert_allclose(log.effort, 2 * Q)


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
            "'position' is mapped to 'w', which the log lacks; it has 'q', 't'",
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


@pytest.mark.parametrize(
    "names, refused",
    [
        ("position.j2,velocity.j1,effort.j1", "velocity .* of joints 'j1', position of 'j2'"),
        ("q_hip,q_knee,tau_hip,tau_ankle", "effort .* 'ankle', 'hip', position of 'hip', 'knee'"),
        ("q_0,q_1,tau_1,tau_2", ""),  # counted from 0 and from 1
        ("position_joint_1,position_joint_2,tau_joint_0,tau_joint_1", ""),
        ("q_leg1_0,q_leg1_1,tau_leg1_1,tau_leg1_2", ""),
        ("q_joint_1,q_joint_2,tau_joint_2,tau_joint_3", "effort .* 'joint_2', 'joint_3', position"),
        ("q_joint_1,q_joint_2,tau_joint_1,tau_joint_0", "effort .* 'joint_1', position"),
        ("q_hip,q_knee,tau_motor_a,tau_motor_b", ""),
    ],
)
def test_channels_of_other_joints_are_refused_unless_a_map_assigns_them(tmp_path, names, refused):
    """They counted as those of the positions, column by column."""
    file, columns = tmp_path / "log.csv", names.split(",")
    rows = [",".join(str(0.01 * k + j) for j in range(len(columns) + 1)) for k in range(30)]
    file.write_text("\n".join([f"time,{names}", *rows]))
    mapped = tmp_path / "map.yaml"
    own = [name for name in columns if name.startswith("tau")]
    mapped.write_text(f"channels: {{effort: [{', '.join(own)}]}}")
    if refused:
        with pytest.raises(RecordError, match=refused):
            read_log(file)
    if own:
        assert read_log(file, mapped if refused else None).effort.shape == (30, 2)


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
    check_map_of_bag(tmp_path, log)


def check_map_of_bag(tmp_path, log):
    """A map renames joints and channels of a bag, too: its efforts are currents."""
    names = tmp_path / "map.yaml"
    names.write_text("joints: [a, b]\nchannels: {velocity: position, feet.right: feet.left}\n")
    new = read_log(tmp_path / "bag", names)
    assert new.joints == ("a", "b") and new.position is None and new.imu.frame == "chip"
    assert sorted(new.feet) == ["left", "right"]
    for mine, same in (
        (new.velocity, log.position),
        (new.time, log.time),
        (new.arrival, log.arrival),
    ):
        np.testing.assert_array_equal(mine, same)
    assert new.start == log.start
    names.write_text("channels: {effort: torque}\n")
    with pytest.raises(
        ConfigurationError,
        match="'effort' is mapped to 'torque', which the log lacks; it has .*'position'",
    ):
        read_log(tmp_path / "bag", names)
