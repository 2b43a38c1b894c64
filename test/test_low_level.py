"""Commands to drives of MIT type: law, messages of both kinds, the watchdog's stop, and walks."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
from rclpy.serialization import serialize_message
from test_torques_ahead import JOINTS, QUADRUPED_VALUES, STANDING, quadruped_guard, send

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.low_level import LowLevelSteps
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.plans.low_level import (
    DriveFeedback,
    LowLevelCommand,
    packed_low_level,
    unpacked_low_level,
)
from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.ros.low_level_messages import DriveForwarder
from contact_id_controller.ros.unitree_messages import UnitreeMessage, crc_of, read_low_command
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot
from contact_id_controller.safety.states import JointReading
from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.controller import ControllerSettings

LOW_LEVEL = INTERFACES["low_level"]
AT = np.linspace(-1.0, 1.0, 12)


def some_command():
    out = LowLevelCommand(12)
    out.time_s = 12.25
    out.values[:] = np.random.default_rng(0).normal(size=out.values.shape)
    out.stiffness[:], out.damping[:] = np.abs(out.values[2:4])
    return out


class Publisher:
    def __init__(self):
        self.sent = []

    def publish(self, message):
        self.sent.append(message)


# The law


def test_the_law_of_a_drive_within_its_limit_the_short_way_round():
    command, turns = LowLevelCommand(2), np.array([False, True])
    command.values[:] = [[3.0, 3.0], [0.5, 0.5], [10.0, 10.0], [2.0, 2.0], [1.0, 1.0]]
    drives = DriveFeedback(np.array([np.inf, 5.0]), turns)
    robot = SimpleNamespace(joints_of=lambda q: q, actuated=slice(None))
    state = SimpleNamespace(q=np.array([-3.0, -3.0]), v=np.array([0.0, 1.0]))
    assert not drives.answer(robot, state).any(), "none has come"
    drives.follow(command, 0.0)
    short = 6.0 - 2.0 * np.pi
    np.testing.assert_allclose(
        drives.answer(robot, state), [1.0 + 60.0 + 1.0, 1.0 + 10.0 * short - 1.0]
    )
    command.effort[1] = 50.0
    assert drives.answer(robot, state)[1] == 5.0
    drives.forget()
    assert not drives.answer(robot, state).any()


def test_a_solution_is_commanded_so_that_the_drives_add_nothing_at_its_state():
    settings = ControllerSettings.from_mapping(
        {**QUADRUPED_VALUES, "command_interface": "low_level"}
    )
    controller = Controller(settings.robot(), settings)
    steps = LowLevelSteps(controller)
    rest = steps.command.like()
    rest.rest(1.0, AT, np.ones(12))
    assert (rest.damping > 0.0).all() and not rest.effort.any() and not rest.stiffness.any()
    undamped = LowLevelCommand(12)
    undamped.rest(1.0, AT, np.ones(12))
    assert (undamped.effort == 1.0).all(), "torques for drives without damping of their own"
    copied = LowLevelCommand(12)
    copied.copy_from(some_command(), np.ones(12), 0.5)
    np.testing.assert_array_equal(copied.stiffness, 0.5 * some_command().stiffness)
    np.testing.assert_array_equal(copied.damping, some_command().damping)
    np.testing.assert_array_equal(copied.effort, some_command().effort + 1.0)


# Rows of numbers


def test_messages_give_back_what_they_say():
    robot = ControllerSettings.from_mapping(QUADRUPED_VALUES).robot()
    messages, command = messages_of(LOW_LEVEL), some_command()
    message = messages.writer(robot, command)
    message.fill(command)
    found = messages.reader(robot)(serialize_message(message.message))
    assert found.time_s == 12.25
    np.testing.assert_array_equal(found.values, command.values)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m[:-1],
        lambda m: np.r_[m[:-1], np.nan],
        lambda m: np.r_[m[:2], 1.0, m[3:]],
        lambda m: np.r_[m[:7], 4.0, m[8:]],
        lambda m: np.r_[m[: 8 + 24], -1.0, m[8 + 25 :]],
        lambda m: np.r_[m[: 8 + 36], 2e5, m[8 + 37 :]],
    ],
    ids=["short", "NaN", "kind", "rows", "negative stiffness", "damping"],
)
def test_what_is_no_command_is_refused(spoil):
    good = packed_low_level(some_command(), JOINTS)
    unpacked_low_level(good, JOINTS)
    with pytest.raises(StateError):
        unpacked_low_level(spoil(good), JOINTS)
    with pytest.raises(StateError, match="other joints"):
        unpacked_low_level(good, [JOINTS[1], JOINTS[0], *JOINTS[2:]])


# Unitree's message


class Motor(ctypes.Structure):
    _fields_ = (
        ("mode", ctypes.c_uint8),
        *((name, ctypes.c_float) for name in ("q", "dq", "tau", "kp", "kd")),
        ("reserve", ctypes.c_uint32 * 3),
    )


class Layout(ctypes.Structure):
    """A LowCmd as C lays it out."""

    _fields_ = (
        ("head", ctypes.c_uint8 * 2),
        ("level_flag", ctypes.c_uint8),
        ("frame_reserve", ctypes.c_uint8),
        ("sn", ctypes.c_uint32 * 2),
        ("version", ctypes.c_uint32 * 2),
        ("bandwidth", ctypes.c_uint16),
        ("motor_cmd", Motor * 20),
        ("battery", ctypes.c_uint8 * 4),
        ("wireless_remote", ctypes.c_uint8 * 40),
        ("led", ctypes.c_uint8 * 12),
        ("fan", ctypes.c_uint8 * 2),
        ("gpio", ctypes.c_uint8),
        ("reserve", ctypes.c_uint32),
        ("crc", ctypes.c_uint32),
    )


def low_cmd():
    """As the class of the message: fields of plain numbers, arrays of numpy."""

    def motor():
        fields = dict.fromkeys(("mode", "q", "dq", "tau", "kp", "kd"), 0)
        return SimpleNamespace(**fields, reserve=np.zeros(3, np.uint32))

    return SimpleNamespace(
        head=np.zeros(2, np.uint8),
        sn=np.arange(2, dtype=np.uint32),
        version=np.zeros(2, np.uint32),
        motor_cmd=[motor() for _ in range(20)],
        bms_cmd=SimpleNamespace(off=0xA5, reserve=np.array([1, 2, 3], np.uint8)),
        wireless_remote=np.arange(40, dtype=np.uint8),
        led=np.arange(12, dtype=np.uint8),
        fan=np.array([7, 8], np.uint8),
        **dict.fromkeys(("level_flag", "frame_reserve", "bandwidth", "gpio", "reserve", "crc"), 0),
    )


def bit_by_bit(data):
    """CRC-32/MPEG-2 by its definition: the rest of a division of polynomials."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value >> 31 else 0)) & 0xFFFFFFFF
    return value


def test_the_check_sum_is_that_of_the_layout_in_c():
    check = b"123456789"
    assert crc_of(check) == bit_by_bit(check) == 0x0376E6E7  # the published check value
    message = UnitreeMessage(low_cmd, 12)
    message.fill(some_command())
    said, raw = message.message, Layout()
    for name in ("level_flag", "frame_reserve", "bandwidth", "gpio", "reserve"):
        setattr(raw, name, getattr(said, name))
    for name in ("head", "sn", "version", "wireless_remote", "led", "fan"):
        getattr(raw, name)[:] = getattr(said, name).tolist()
    raw.battery[:] = [said.bms_cmd.off, *said.bms_cmd.reserve.tolist()]
    for there, motor in zip(raw.motor_cmd, said.motor_cmd):
        for name in ("mode", "q", "dq", "tau", "kp", "kd"):
            setattr(there, name, getattr(motor, name))
    words = np.frombuffer(bytes(raw), "<u4")[:-1]
    assert said.crc == bit_by_bit(words.astype(">u4").tobytes())


def test_a_motor_of_unitree_gets_what_is_commanded_and_the_others_are_off():
    command, message = some_command(), UnitreeMessage(low_cmd, 12)
    message.fill(command)
    motor = message.message.motor_cmd[3]
    said = [motor.q, motor.dq, motor.kp, motor.kd, motor.tau]
    np.testing.assert_array_equal(said, command.values[:, 3])
    assert [each.mode for each in message.message.motor_cmd] == [1] * 12 + [0] * 8
    found = read_low_command(message.message, 12)
    np.testing.assert_array_equal(found.values, command.values)
    with pytest.raises(StateError, match=r"motors \[12\] are off"):
        read_low_command(message.message, 13)
    message.message.motor_cmd[0].tau += 1.0
    with pytest.raises(StateError, match="check sum"):
        read_low_command(message.message, 12)
    with pytest.raises(ConfigurationError, match="21 joints are commanded, LowCmd has 20 motors"):
        UnitreeMessage(low_cmd, 21)


@pytest.mark.parametrize("part", ["base", "joints"])
@pytest.mark.parametrize("safe_output", ["damping", "zero"])
def test_one_bad_state_moves_the_torque_of_drives_as_any_other(part, safe_output):
    """Also where its velocity is not known; a stop, and silence, are damped by the drives at once."""
    rate_nm_s, velocity = 50.0, 0.2
    guard = quadruped_guard(
        command_interface="low_level",
        start_ramp_s=0.0,
        blend_rate_nm_s=[rate_nm_s],
        safe_output=safe_output,
    )
    base, turns, acted = (
        np.r_[0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0, np.zeros(6)],
        np.zeros(12, dtype=bool),
        [],
    )
    for k in range(30):
        time_ns = 10_000_000_000 + 1_000_000 * k
        bad = np.nan if k in (10, 15, 16, 17) else 1.0
        guard.take_base(base * (bad if part == "base" else 1.0), time_ns)
        measured = np.full(12, velocity * (bad if part == "joints" else 1.0))
        guard.step(JointReading(time_ns, STANDING, measured))
        guard.finish(0.0)
        acted.append(guard.command.torques(STANDING, np.full(12, velocity), turns))
    acted = np.array(acted)
    assert list(guard.monitor.refusals.values()) == [4]
    assert np.abs(np.diff(acted[5:], axis=0)).max() < 1.001e-3 * rate_nm_s
    assert np.abs(acted[17] - acted[14]).max() > 2e-3 * rate_nm_s
    guard.clock = lambda: 1.0
    guard.silence()
    command = guard.command
    assert not command.effort.any() and not command.velocity.any() and command.damping.all()


@pytest.mark.parametrize("lockstep", [True, False])
def test_bad_states_end_in_damping_towards_rest_whatever_the_velocity_was(lockstep):
    """The velocity measured last is commanded to no drive, and none gets an effort in the end."""
    guard = quadruped_guard(command_interface="low_level", start_ramp_s=0.0)
    guard.lockstep = lockstep
    for number in range(20):
        send(guard, number, 0.2)
    for number in range(20, 120):
        send(guard, number, np.nan)
        assert not guard.command.velocity.any() and not guard.command.stiffness.any()
    assert not guard.command.effort.any() and guard.command.damping.all()


# The watchdog


@pytest.mark.parametrize("kind", ["numbers", "unitree"])
def test_the_watchdog_clips_torques_and_stops_with_the_drives_own_damping(kind, monkeypatch):
    command, publisher = some_command(), Publisher()
    if kind == "numbers":
        forwarder = messages_of(LOW_LEVEL).forwarder(JOINTS)
        data = serialize_message(_filled(messages_of(LOW_LEVEL), command))
        read = lambda sent: unpacked_low_level(np.array(sent.data), JOINTS)  # noqa: E731
    else:
        message = UnitreeMessage(low_cmd, 12)
        message.fill(command)
        data = message.message
        read = lambda sent: read_low_command(sent, 12)  # noqa: E731
        forwarder = DriveForwarder(12, read, UnitreeMessage(low_cmd, 12))
    assert forwarder.prepared
    forwarder.stop(publisher, np.full(12, 0.5), np.full(12, np.nan))
    first = read(publisher.sent[-1])
    assert (first.effort == 0.5).all() and not first.damping.any(), "no drive's damping is known"
    efforts = forwarder.read(data)
    np.testing.assert_array_equal(efforts, command.effort[None])
    forwarder.forward(publisher, np.clip(efforts, -0.1, 0.1))
    forwarded = read(publisher.sent[-1])
    assert np.abs(forwarded.effort).max() == 0.1
    np.testing.assert_array_equal(forwarded.stiffness, command.stiffness)
    at = AT.copy()
    at[0] = np.nan
    forwarder.stop(publisher, np.full(12, 0.5), at)
    stop = read(publisher.sent[-1])
    assert not stop.stiffness.any() and not stop.effort.any() and not stop.velocity.any()
    np.testing.assert_array_equal(stop.damping, command.damping)
    np.testing.assert_array_equal(stop.position, [command.position[0], *AT[1:]])


def _filled(messages, command):
    writer = messages.writer(SimpleNamespace(joint_names=JOINTS), command)
    writer.fill(command)
    return writer.message


def test_gains_know_the_rotors_that_were_learnt():
    settings = ControllerSettings.from_mapping(
        {**QUADRUPED_VALUES, "command_interface": "low_level"}
    )
    controller = Controller(settings.robot(), settings)
    steps, gains = LowLevelSteps(controller), []
    for rotor in (0.0, 0.01):
        controller.period.motors[0] = rotor
        steps._tune(controller.robot.neutral())
        gains.append(steps.command.stiffness.copy())
    added = 4.0 * settings.joint_position_gain[0] * 0.01
    np.testing.assert_allclose(gains[1] - gains[0], added)


# Walks


def walked(interface, duration_s, late=None):
    """RMS of the joint error, rad, of a trot; infinite where it fell."""
    settings = controller_settings("quadruped", command_interface=interface)
    record = InProcessRun("quadruped", settings, mujoco_robot(settings, 0.6), late=late).record(
        duration_s
    )
    if record.fell_time_s is not None:
        return np.inf
    return np.sqrt(np.mean((record.position - record.reference_position) ** 2))


def test_a_trot_through_drives_is_that_of_torques():
    assert walked("low_level", 0.2) == pytest.approx(walked("effort", 0.2), rel=1e-6)


@pytest.mark.parametrize("phase_s", [0.0, 0.03])
def test_a_trajectory_bridges_a_late_controller_and_a_constant_set_point_does_not(phase_s):
    def late(time_s):
        return (time_s - phase_s) % 0.05 < 0.0199

    assert walked("joint_trajectory", 0.6, late) < 0.5 * walked("low_level", 0.6, late)
