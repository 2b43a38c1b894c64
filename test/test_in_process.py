"""The controller inside the process of ros2_control, without ROS and without the plugin.

The stand-in for the plugin keeps what matters of it: it constructs `ControllerImpl` with three
lists, passes the same buffer each time, copies as many efforts as there are command interfaces, and
has no door at which an error of a callback would end.
"""

import array
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml
from paths import ROOT
from robots import JOINTS, QUADRUPED, QUADRUPED_FEET, STANDING

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState

EXAMPLE = ROOT / "config" / "ros2_control" / "solo12_in_process.yaml"
VELOCITY = 0.01 * np.arange(1, 13)
DAMPING = -0.5 * VELOCITY
VALUES = {
    "urdf": QUADRUPED,
    "joints": JOINTS,
    "contact_frames": QUADRUPED_FEET,
    "contact_radii_m": [0.01],
    "damping_nm_s_rad": [0.5],
    "state_timeout_s": 10.0,
    "start_ramp_s": 0.0,
    "blend_rate_nm_s": float("inf"),
    "recovery_window_s": 10.0,
    "emergency_stop_output": "zero",
}
PERIOD_S = 0.001


@pytest.fixture
def pytroller(monkeypatch):
    """Our module, over a stand-in for the base class that comes with the plugin."""

    class ControllerImplBase:
        def __init__(self, topic_names, topic_types, message_payloads):
            self.setup(**dict(zip(topic_names, message_payloads)))

    base = ModuleType("agimus_pytroller_py.agimus_pytroller_base")
    base.ControllerImplBase = ControllerImplBase
    monkeypatch.setitem(sys.modules, "agimus_pytroller_py", ModuleType("agimus_pytroller_py"))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    monkeypatch.delitem(sys.modules, "contact_id_controller.ros.pytroller", raising=False)
    import contact_id_controller.ros.pytroller as module

    yield module
    sys.modules.pop("contact_id_controller.ros.pytroller", None)


@pytest.fixture
def plugin(pytroller, monkeypatch, tmp_path):
    """Makes the plugin for changed parameters."""

    def make(**changes):
        file = tmp_path / "robot.yaml"
        file.write_text(yaml.safe_dump({"controller": {"ros__parameters": {**VALUES, **changes}}}))
        monkeypatch.setenv("CONTACT_ID_CONFIG", str(file))
        return Plugin(pytroller.ControllerImpl([], [], []))

    return make


class Plugin:
    """Calls `ControllerImpl` as the plugin does."""

    def __init__(self, implementation):
        self.implementation, self.inner = implementation, implementation.inner
        self._buffers = {}

    def update(self, state):
        """Efforts of the command interfaces for the values of the input interfaces."""
        state = np.asarray(state, dtype=float)
        buffer = self._buffers.setdefault(state.shape, np.empty(state.shape))
        buffer[:] = state
        efforts = self.implementation.on_update(buffer)
        assert efforts.dtype == float and efforts.shape == (12,) and efforts.flags.c_contiguous
        assert np.isfinite(efforts).all()
        self.implementation.on_post_update()
        return efforts.copy()


def base(height_m=0.162, quaternion=(0.0, 0.0, 0.0, 1.0)):
    return [0.0, 0.0, height_m, *quaternion, *np.zeros(6)]


def measured(position=STANDING, velocity=VELOCITY, of_base=None):
    return np.concatenate((position, velocity, base() if of_base is None else of_base))


def odometry(height_m=0.162, time_s=100):
    point = SimpleNamespace
    return point(
        header=point(
            stamp=point(sec=int(time_s), nanosec=round(time_s % 1 * 1e9)), frame_id="world"
        ),
        child_frame_id="base",
        pose=point(
            pose=point(
                position=point(x=0.0, y=0.0, z=height_m),
                orientation=point(x=0.0, y=0.0, z=0.0, w=1.0),
            )
        ),
        twist=point(
            twist=point(linear=point(x=0.0, y=0.0, z=0.0), angular=point(x=0.0, y=0.0, z=0.0)),
            covariance=np.zeros(36),
        ),
    )


def trajectory(names, position, time_s=1):
    point = SimpleNamespace(
        positions=array.array("d", position),
        velocities=array.array("d"),
        accelerations=array.array("d"),
        time_from_start=SimpleNamespace(sec=time_s, nanosec=0),
    )
    stamp = SimpleNamespace(sec=0, nanosec=0)
    return SimpleNamespace(header=SimpleNamespace(stamp=stamp), joint_names=names, points=[point])


def simulation():
    """A simulated robot that stands, its state, and the order of its joints in ours."""
    simulated = MujocoRobot(
        QUADRUPED, [SphereFoot(frame, 0.01) for frame in QUADRUPED_FEET], friction=0.6
    )
    robot = simulated.robot
    order = [JOINTS.index(name) for name in robot.joint_names]
    q = robot.neutral()
    q[robot.q_index] = STANDING[order]
    return simulated, simulated.reset(simulated.place_on_ground(q)), order


def test_a_simulated_robot_stands_and_the_torques_are_those_of_the_controller(plugin):
    simulated, state, order = simulation()
    robot = simulated.robot
    plugin = plugin()
    inner = plugin.inner
    columns, rows = inner.robot.q_index, inner.robot.actuated
    plain = Controller(inner.robot, inner.controller.settings)
    for step in range(400):
        inner._clock = lambda: state.time_s
        efforts = plugin.update(
            np.concatenate((state.q[columns], state.v[rows], state.q[:7], state.v[:6]))
        )
        expected = plain.step(RobotState(state.time_s, state.q, state.v)).torques
        np.testing.assert_allclose(efforts, expected, atol=1e-9)
        state = simulated.step(efforts[order])
    assert inner.result.status == "solved" and inner.result.contact.all()
    np.testing.assert_allclose(state.q[columns], STANDING, atol=2e-3)
    weight = simulated.contact_forces()[:, 2].sum()
    assert weight == pytest.approx(robot.weight, rel=0.02) and not inner.refused


def foot_forces(forces):
    """Callbacks of the measured forces (4, 3), N: name and message of each foot."""
    for frame, force in zip(QUADRUPED_FEET, forces):
        x, y, z = map(float, force)
        wrench = SimpleNamespace(force=SimpleNamespace(x=x, y=y, z=z))
        yield f"ground_reaction_{frame}_cb", SimpleNamespace(wrench=wrench)


def test_a_robot_stands_by_measured_contact(plugin):
    simulated, state, order = simulation()
    robot = simulated.robot
    plugin = plugin(contact_sources=["force", "schedule"])
    inner, implementation = plugin.inner, plugin.implementation
    columns, rows = inner.robot.q_index, inner.robot.actuated
    forces = np.tile([0.0, 0.0, robot.weight / 4], (4, 1))
    for step in range(400):
        inner._clock = lambda: state.time_s
        for callback, message in foot_forces(forces):
            getattr(implementation, callback)(message)
        efforts = plugin.update(
            np.concatenate((state.q[columns], state.v[rows], state.q[:7], state.v[:6]))
        )
        state = simulated.step(efforts[order])
        forces = simulated.contact_forces()
    assert inner.result.status == "solved" and inner.result.contact.all() and not inner.refused
    np.testing.assert_allclose(state.q[columns], STANDING, atol=5e-3)
    implementation.ground_reaction_LF_FOOT_cb(None)
    assert inner.refused == {"contact_AttributeError": 1}


def test_a_robot_whose_contact_nobody_measures_is_not_let_go(plugin):
    plugin = plugin(contact_sources=["force", "schedule"])
    np.testing.assert_allclose(plugin.update(measured()), DAMPING)
    assert plugin.inner.result is None
    assert plugin.inner.refused == {"contact_not_measured": 1}
    plugin.implementation.contact_states_cb(
        SimpleNamespace(name=["LF_FOOT", "RF_FOOT"], position=[1.0, 0.0])
    )
    plugin.update(measured())
    assert plugin.inner.result is not None


def changed(**values):
    state = measured()
    for index, value in values.items():
        state[int(index[1:])] = value
    return state


@pytest.mark.parametrize(
    "bad, reason",
    [
        (changed(_14=np.nan), "joint_state_not_finite"),
        (np.zeros(0), "wrong_size"),
        (np.zeros(25), "wrong_size"),
        (np.zeros(36), "wrong_size"),
        (np.zeros((2, 12)), "wrong_size"),
    ],
)
def test_bad_state_is_counted_and_answered_by_damping(plugin, capfd, bad, reason):
    plugin = plugin()
    good = plugin.update(measured())
    assert not np.allclose(good, DAMPING, atol=1e-3)
    capfd.readouterr()
    for _ in range(3):
        np.testing.assert_allclose(plugin.update(bad), DAMPING)
        assert plugin.inner.result is None
    assert plugin.inner.refused == {reason: 3}
    assert capfd.readouterr().err.count(reason) == 1, "logged once"
    np.testing.assert_allclose(plugin.update(measured()), good, atol=0.05)


def test_without_a_velocity_of_late_the_torque_is_zero(plugin):
    plugin = plugin(state_timeout_s=0.001)
    assert not plugin.update(np.full(37, np.nan)).any()
    plugin.update(measured())
    plugin.inner.guard.good.velocity_s -= 1.0
    assert not plugin.update(np.full(37, np.nan)).any()


def test_the_base_may_come_as_odometry_and_gets_old(plugin):
    plugin = plugin()
    now_s = [100.0]
    plugin.inner._clock = lambda: now_s[0]
    state = measured(of_base=[])
    np.testing.assert_allclose(plugin.update(state), DAMPING)
    assert plugin.inner.refused == {"odometry_missing": 1}
    plugin.implementation.odometry_cb(odometry())
    good = plugin.update(state)
    np.testing.assert_allclose(
        good,
        InProcessController(ControllerSettings.from_mapping(VALUES)).update(measured()),
        atol=1e-9,
    )
    plugin.implementation.odometry_cb(odometry(height_m=np.nan))
    np.testing.assert_allclose(plugin.update(state), DAMPING)
    plugin.implementation.odometry_cb(odometry())
    now_s[0] += 0.08
    plugin.update(state)
    assert plugin.inner.result is not None
    now_s[0] += 0.03
    np.testing.assert_allclose(plugin.update(state), DAMPING)
    assert plugin.inner.refused["odometry_old"] == 1
    plugin.inner.take_base(base())  # without a stamp: measured now
    plugin.update(state)
    assert plugin.inner.result is not None


def test_a_first_odometry_in_wrong_frames_is_forgotten_with_a_resume(plugin, capfd):
    """The plugin is not made anew when the controller is activated again."""
    plugin = plugin()
    plugin.inner._clock = lambda: 100.0
    wrong = odometry()
    wrong.header.frame_id = "spoiled"
    plugin.implementation.odometry_cb(wrong)
    plugin.implementation.odometry_cb(odometry(height_m=0.17))
    plugin.inner.post_update()
    assert "that before was of 'base' in 'spoiled'" in capfd.readouterr().err
    plugin.implementation.resume_cb(None)
    plugin.implementation.odometry_cb(odometry(height_m=0.17))
    plugin.update(measured(of_base=[]))
    assert plugin.inner.controller.period.q[2] == 0.17


def test_plans_are_followed_and_bad_ones_change_nothing(plugin):
    plugin = plugin()
    now_s = [100.0]
    plugin.inner._clock = lambda: now_s[0]
    names, goal = JOINTS[::-1], (STANDING + 0.1)[::-1]
    plugin.implementation.joint_trajectory_cb(trajectory(names, goal))
    assert plugin.inner.refused["joint_trajectory"] == 1, "before the first state"
    plugin.update(measured())
    plugin.implementation.joint_trajectory_cb(trajectory(names, goal))
    plugin.implementation.contact_schedule_cb(trajectory(QUADRUPED_FEET, [1, 0, 1, 1], 9))
    for bad in (trajectory(["tail"], [0.0]), trajectory(names, [np.nan] * 12), object(), None):
        for callback in (
            "joint_trajectory_cb",
            "base_trajectory_cb",
            "contact_schedule_cb",
            "odometry_cb",
        ):
            getattr(plugin.implementation, callback)(bad)
    now_s[0] += 0.5
    plugin.update(measured())
    result = plugin.inner.result
    np.testing.assert_allclose(result.reference.position, STANDING + 0.05, atol=1e-9)
    assert result.contact.tolist() == [True, False, True, True]


def test_torques_of_the_warm_up_are_no_past_for_the_rate_limit(plugin):
    plugin = plugin(effort_rate_limits_nm_s=50.0)
    assert np.abs(plugin.update(measured())).max() <= 50.0 * PERIOD_S + 1e-12


def test_the_start_ramp_begins_with_the_first_good_state(plugin):
    plugin = plugin(start_ramp_s=0.1, blend_rate_nm_s=float("inf"))
    for _ in range(150):
        plugin.update(np.full(37, np.nan))
    first = plugin.update(measured())
    wanted = plugin.inner.result.torques
    assert 0.0 < np.abs(first).max() < 0.05 * np.abs(wanted).max()  # it was zero before


def test_errors_in_a_row_and_long_gaps_stop_it_until_it_is_resumed(plugin, capfd):
    plugin = plugin(failures_in_a_row=3)
    inner, implementation = plugin.inner, plugin.implementation
    now_s = [100.0]
    inner._clock = lambda: now_s[0]
    good = plugin.update(measured())
    healthy, inner.controller.step = inner.controller.step, lambda state: 1 / 0
    for _ in range(3):
        np.testing.assert_allclose(plugin.update(measured()), DAMPING)
    inner.controller.step = healthy
    np.testing.assert_allclose(plugin.update(measured()), DAMPING)
    assert inner.safety.latched and capfd.readouterr().err.count("stopped: 3 failures") == 1
    implementation.resume_cb(None)
    np.testing.assert_allclose(plugin.update(measured()), good, atol=0.05)
    assert "commanding again" in capfd.readouterr().err
    now_s[0] += 11.0  # the plugin was not active, or stood still
    np.testing.assert_allclose(plugin.update(measured()), DAMPING)
    assert "no good state for 11" in capfd.readouterr().err
    inner.guard.good.last_s -= 11.0
    implementation.resume_cb(None)
    assert inner.safety.latched and inner.refused["resume"] == 1, "without a good state"
    plugin.update(measured())
    implementation.resume_cb(None)
    assert np.abs(plugin.update(measured()) - DAMPING).max() > 1e-3


def test_emergency_stop_and_a_base_that_jumps(plugin):
    plugin = plugin()
    inner, implementation = plugin.inner, plugin.implementation
    now_s = [100.0]
    inner._clock = lambda: now_s[0]
    good = plugin.update(measured())
    implementation.emergency_stop_cb(SimpleNamespace(data=True))
    assert not plugin.update(measured()).any()
    implementation.resume_cb(None)
    assert not plugin.update(measured()).any(), "engaged"
    implementation.emergency_stop_cb(SimpleNamespace(data=False))
    np.testing.assert_allclose(plugin.update(measured()), DAMPING)
    implementation.resume_cb(None)
    implementation.resume_cb(None)  # twice before the next state
    np.testing.assert_allclose(plugin.update(measured()), good, atol=0.05)
    implementation.emergency_stop_cb(None)
    for _ in range(2):
        now_s[0] += PERIOD_S
        np.testing.assert_allclose(plugin.update(measured(of_base=base(height_m=3.0))), DAMPING)
    assert inner.refused["odometry_jump"] == 2
    now_s[0] += PERIOD_S
    plugin.update(measured(of_base=base(height_m=3.0)))
    assert inner.result is not None, "the third that agrees is the new place"


@pytest.mark.parametrize(
    "value, words", [(None, "CONTACT_ID_CONFIG is not set"), ("/nowhere.yaml", "/nowhere.yaml")]
)
def test_a_file_that_is_not_there_fails_configure_with_one_line(
    pytroller, monkeypatch, value, words
):
    monkeypatch.delenv("CONTACT_ID_CONFIG", raising=False)
    if value:
        monkeypatch.setenv("CONTACT_ID_CONFIG", value)
    with pytest.raises(ConfigurationError, match=words):
        pytroller.ControllerImpl([], [], [])


def test_the_example_names_the_interfaces_and_callbacks_of_this_robot(pytroller, monkeypatch):
    sections = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    parameters = sections["contact_id"]["ros__parameters"]
    assert parameters["python_module"] == pytroller.__name__
    monkeypatch.setenv("CONTACT_ID_CONFIG", str(ROOT / "config" / "solo12.yaml"))
    implementation = pytroller.ControllerImpl([], [], [])
    joints = implementation.inner.robot.joint_names
    assert parameters["command_interfaces"] == [f"{name}/effort" for name in joints]
    assert parameters["input_interfaces"] == [
        f"{name}/{kind}" for kind in ("position", "velocity") for name in joints
    ]
    for topic in parameters["subscribed_topics"]:
        assert callable(getattr(implementation, parameters[topic]["python_function_name"]))
    implementation.inner._clock = lambda: 100.0
    implementation.odometry_cb(odometry(0.3))
    posture = np.array([0.0, 0.8, -1.6] * 2 + [0.0, -0.8, 1.6] * 2)
    implementation.on_update(np.concatenate((posture, np.zeros(12))))
    assert implementation.inner.result is not None


def test_it_needs_no_ros():
    code = (
        "import sys, contact_id_controller.safety.in_process; "
        "sys.exit(any(name.startswith(('rclpy', 'rcl_', 'std_msgs')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
