"""A new sensor is one class and one row: it is estimated with, simulated, and read through ROS."""

import dataclasses
import importlib.util
import re
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT
from robots import SOLO12, SOLO_FEET, SOLO_POSTURE
from standing_sensors import StandingSensors

from contact_id_controller import RobotModel
from contact_id_controller.estimation import sensor_kinds
from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
from contact_id_controller.estimation.sensors import Sensor, component_rows
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.runs import one_process
from contact_id_controller.simulation.sensor_noise import Readings, SimulatedSensors

RADIUS_M = 0.016
FOOT = SOLO_FEET[0]


@dataclasses.dataclass(frozen=True)
class _Push(Sensor):
    contact: str
    noise: float
    name: str

    def rows(self, mechanism, components):
        return component_rows(self, components, 2)


@dataclasses.dataclass(frozen=True)
class LoadCell(Mounted):
    """What pushes along the z axis of a foot's frame, in counts of .01 N."""

    noise_n: float = 0.02
    topic_prefix: ClassVar[str] = "load"
    message: ClassVar[str] = "sensor_msgs/Temperature"
    numbers: ClassVar[tuple[str, ...]] = ("temperature",)
    gain: ClassVar[float] = 0.01

    def white_noise(self, noise):
        return 1.0

    def sensor(self, robot, feet):
        return _Push(self.name, self.noise_n, self.label)

    def true(self, world, state):
        return [100.0 * world.foot_forces()[world.foot_frames.index(self.name), 2]]


def _example():
    """The sensor that the page shows: four cells, whose message has a list and whose sum is one value."""
    spec = importlib.util.spec_from_file_location(
        "own_sensor", Path(ROOT) / "examples" / "own_sensor.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FootCells


@pytest.fixture(autouse=True)
def _row(monkeypatch):
    monkeypatch.setitem(sensor_kinds.KINDS, "load_cell", LoadCell)
    monkeypatch.setitem(sensor_kinds.KINDS, "foot_cells", _example())


def z_force(pipeline, foot):
    return pipeline.estimate.dynamics.contact_wrenches[foot][2]


@pytest.mark.parametrize(
    "text",
    [
        f"load_cell {FOOT}",
        f"foot_pressure {FOOT} area_m2=0.0002 noise_pa=100",
        f"foot_cells {FOOT} noise_n=0.01",
    ],
)
def test_it_is_simulated_and_estimated_with(text):
    """A walk in one process; without what it reads, a motor's current is off by its gain."""
    settings = one_process.controller_settings("solo12", friction_coefficient=[1.0])
    world = one_process.mujoco_robot(settings, 1.0, imu_frame="")
    told = one_process.estimated_state("solo12", world, "motor_currents", mounted_sensors=[text])
    pipeline, label = told.pipeline, sensor_kinds.mounted(text).label
    q = world.place_on_ground(world.robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE))
    state = world.reset(q)
    sensors = SimulatedSensors(world, "perfect", mounted=pipeline.settings.mounted)
    (mounted,) = pipeline.settings.mounted
    true = sensors.read(state).mounted
    assert true.shape == (len(mounted.numbers),) and np.isfinite(true).all()
    given = 3.0 * np.linalg.pinv(mounted.gains(1))[:, 0]
    for k in range(300):
        readings = told._sensors.read(state)
        pipeline.step(1e-3 * k, *readings[1:6], readings=given)
    assert z_force(pipeline, FOOT) == pytest.approx(3.0, abs=0.1)
    assert label in pipeline.estimator.latest.residuals
    given[-1] = np.nan
    pipeline.step(0.3, *readings[1:6], readings=given)
    assert f"reading is missing of {label}" in pipeline.estimate.faults


def test_the_simulated_one_reads_the_ground():
    settings = one_process.controller_settings("solo12", friction_coefficient=[1.0])
    world = one_process.mujoco_robot(settings, 1.0)
    q = world.place_on_ground(world.robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE))
    state = world.reset(q)
    for _ in range(20):
        state = world.step(np.zeros(12))
    mounted = tuple(map(sensor_kinds.mounted, [f"load_cell {FOOT}", f"foot_pressure {FOOT}"]))
    counts, pressure = SimulatedSensors(world, "perfect", mounted=mounted).read(state).mounted
    force = world.foot_forces()[0]
    assert force[2] > 0.5
    assert counts == pytest.approx(100.0 * force[2])
    assert abs(pressure * 4e-4) <= np.linalg.norm(force) and abs(pressure) > 100.0
    noisy = SimulatedSensors(world, "good", mounted=mounted)
    drawn = np.array([noisy.read(state).mounted for _ in range(2000)])
    np.testing.assert_allclose(drawn.std(axis=0), [1.0, 500.0], rtol=0.1)


def test_it_is_sent_and_read_through_ros():
    """What the simulated robot's publisher sends reaches the estimator's node, with its stamp."""
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.parameter import Parameter
    from rclpy.qos import QoSProfile

    from contact_id_controller.ros.dynamics_estimator import DynamicsEstimatorNode
    from contact_id_controller.ros.state_publisher import StatePublisher
    from contact_id_controller.state import RobotState

    context = rclpy.Context()
    rclpy.init(context=context)
    names = {"context": context, "namespace": f"/mounted_{time.monotonic_ns()}"}
    texts = [
        f"load_cell {FOOT}",
        f"foot_cells {SOLO_FEET[2]} noise_n=0.01",
        f"foot_pressure {SOLO_FEET[1]} noise_pa=100",
    ]
    values = {
        "urdf": SOLO12,
        "contact_frames": list(SOLO_FEET),
        "contact_radii_m": RADIUS_M,
        "mode": "lockstep",
        "mounted_sensors": texts,
    }
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = DynamicsEstimatorNode(parameter_overrides=overrides, **names)
    peer = rclpy.create_node("peer", **names)
    robot = RobotModel.from_urdf(SOLO12)
    mounted = tuple(map(sensor_kinds.mounted, texts))
    publisher = StatePublisher(
        peer, robot, SOLO_FEET, QoSProfile(depth=100), mounted=mounted, imu_frame="", truth="truth/"
    )
    standing = StandingSensors(robot, SOLO_FEET, SOLO_POSTURE, RADIUS_M)
    executor = SingleThreadedExecutor(context=context)
    for each in (node, peer):
        executor.add_node(each)
    try:
        node.trigger_configure()
        node.trigger_activate()
        q = robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE)
        deadline, stamp_ns = time.monotonic() + 120.0, 5_000_000_000
        while node.steps < 300:
            assert time.monotonic() < deadline, "joint states were not used"
            stamp_ns += 1_000_000
            sample = standing.sample()
            given = np.array([300.0 + node.steps, 1.5, 0.5, 0.25, 0.25, 3.0 / 4e-4])
            numbers = [sample[n] for n in ("gyro", "accel", "position", "velocity", "effort")]
            state = RobotState(1e-9 * stamp_ns, q, np.zeros(robot.nv))
            readings = Readings(1e-9 * stamp_ns, *numbers, given)
            publisher.publish(stamp_ns, state, readings)
            before, until = node.steps, time.monotonic() + 0.5
            while node.steps == before and time.monotonic() < until:
                executor.spin_once(timeout_sec=0.01)
        period = node.pipeline.period
        np.testing.assert_array_equal(period.readings, given)
        assert z_force(node.pipeline, SOLO_FEET[1]) == pytest.approx(3.0, abs=0.2)
        assert z_force(node.pipeline, SOLO_FEET[2]) == pytest.approx(2.5, abs=0.2)
        assert "age of load/FL_FOOT, s" in node._figures()
    finally:
        executor.shutdown()
        for each in (node, peer):
            each.destroy_node()
        rclpy.shutdown(context=context)


@pytest.mark.parametrize(
    "text, words",
    [
        ("taste FL_FOOT", "is of no kind"),
        ("load_cell", "does not begin with a name"),
        (f"foot_pressure {FOOT} size=3", "'size' is none of"),
        (f"foot_pressure {FOOT} area_m2=small", "no number"),
        (f"foot_pressure {FOOT} area_m2=0", "must be above 0"),
        ("force_torque FL_KFE direction=up", "direction of wrench/FL_KFE is 'up'"),
    ],
)
def test_texts_that_are_no_sensor_are_refused(text, words):
    with pytest.raises(ConfigurationError, match=words):
        sensor_kinds.mounted(text)


def test_a_sensor_where_it_cannot_be_is_refused():
    robot = RobotModel.from_urdf(SOLO12)
    mounted = (sensor_kinds.mounted("foot_pressure FL_KFE"),)
    with pytest.raises(ConfigurationError, match="no sensor 'pressure/FL_KFE': .* is no foot"):
        EstimationPipeline(robot, SOLO_FEET, RADIUS_M, PipelineSettings(mounted=mounted))
    with pytest.raises(ConfigurationError, match=f"two of .* on topic 'load/{FOOT}'"):
        sensor_kinds.all_mounted([f"load_cell {FOOT}"] * 2)


def test_a_gain_of_another_shape_is_refused():
    cells = sensor_kinds.mounted(f"foot_cells {FOOT}")
    np.testing.assert_array_equal(cells.gains(1), np.ones((1, 4)))
    with pytest.raises(
        ConfigurationError, match=r"gain of sensor .* must be a number or have \(2, 4\)"
    ):
        cells.gains(2)
    load = sensor_kinds.mounted(f"load_cell {FOOT}")
    with pytest.raises(ConfigurationError, match=r"must be a number or have \(2, 1\)"):
        load.gains(2)


def test_numbers_of_a_message_are_read_wherever_its_lists_end():
    """Lists of a message before and behind those that are wanted change their length; what is not there is refused."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import Imu, JointState

    from contact_id_controller.exceptions import StateError
    from contact_id_controller.ros.packed import message_class, stamped
    from contact_id_controller.ros.samples import SampleReader

    reader = SampleReader(stamped(JointState, ["position[1]", "effort[0]", "effort[2]"]))
    random = np.random.default_rng(3)
    for names, positions, velocities, efforts in ((4, 2, 0, 3), (4, 2, 0, 3), (0, 5, 7, 4)):
        message = JointState(name=["cell"] * names, position=random.normal(size=positions).tolist())
        message.velocity = random.normal(size=velocities).tolist()
        message.effort = random.normal(size=efforts).tolist()
        message.header.stamp.sec = 7
        stamp_ns, numbers = reader.read(serialize_message(message))
        assert stamp_ns == 7_000_000_000
        given = message.position[1], message.effort[0], message.effort[2]
        np.testing.assert_array_equal(numbers, given)
    message.effort = [0.0, 1.0]
    with pytest.raises(StateError, match="2 of effort, must have at least 3"):
        reader.read(serialize_message(message))
    fixed = SampleReader(stamped(Imu, ["orientation_covariance[4]"]))
    message = Imu(orientation_covariance=random.normal(size=9))
    numbers = fixed.read(serialize_message(message))[1]
    np.testing.assert_array_equal(numbers, message.orientation_covariance[4:5])
    for kind, name in ((Imu, "orientation_covariance[9]"), (JointState, "effort"), (Imu, "mass")):
        with pytest.raises(ConfigurationError, match=f"has no float64 {re.escape(name)}, only"):
            stamped(kind, [name])
    with pytest.raises(ConfigurationError, match="Float64 cannot be a sensor's: it has no header"):
        stamped(message_class("std_msgs/msg/Float64"), ["data"])


@pytest.mark.parametrize(
    "words, file",
    [
        (("FootPressure", "fluid_pressure"), "foot_pressure.py"),
        (("ForceTorqueSensor", "wrench.force.x"), "force_torque.py"),
    ],
)
def test_a_kind_is_named_in_its_file_and_its_row_alone(words, file):
    package = Path(ROOT) / "contact_id_controller"
    texts = {path.name: path.read_text() for path in package.rglob("*.py")}
    found = {name for name, text in texts.items() if any(word in text for word in words)}
    assert found - {"packed.py", "mounted.py"} == {file, "sensor_kinds.py"}


def test_a_joint_s_wrench_in_another_frame_and_direction_is_pinocchio_s():
    settings = one_process.controller_settings("solo12", friction_coefficient=[1.0])
    world = one_process.mujoco_robot(settings, 1.0, wrench_sensors=["FL_KFE"])
    q = world.place_on_ground(world.robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE))
    state = world.reset(q)
    for _ in range(20):
        state = world.step(np.zeros(12))
    model = world.robot.model
    data = model.createData()
    pin.framesForwardKinematics(model, data, state.q)
    foot, joint = world.robot.frame_id(FOOT), model.getJointId("FL_KFE")
    between = data.oMf[foot].actInv(data.oMi[joint])
    expected = between.act(pin.Force(world.wrenches()[0])).vector
    text = f"force_torque FL_KFE frame={FOOT} direction=child_to_parent"
    found = sensor_kinds.mounted(text).true(world, state)
    np.testing.assert_allclose(found, -expected, atol=1e-12)
    with pytest.raises(ConfigurationError, match="has no force/torque sensor 'FR_KFE'"):
        SimulatedSensors(world, mounted=(sensor_kinds.mounted("force_torque FR_KFE"),))
