"""ROS lifecycle node: estimates base, contacts and forces from IMU, encoders and efforts. No mathematics.

Subscribes to `imu`, `joint_states` and the topics of mounted sensors, such as `wrench/<sensor>`; publishes `odometry`,
`contact_states`, `ground_reaction/<frame>`, `/tf` and `/diagnostics` under the names that controller and gait planner
read, and where subscribed to `~/joint_states`, `~/accelerations` and `~/joint_wrench/<joint>`.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory

from contact_id_controller.estimation.base_estimate import LOST
from contact_id_controller.estimation.period import keep_estimate
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.estimation.stamps import FARTHEST_S, StampFilter
from contact_id_controller.exceptions import (
    ContactIdError,
    RecordError,
    StateError,
    TrajectoryError,
)
from contact_id_controller.plans.trajectories import ContactSchedule, PlanSlot
from contact_id_controller.ros import scheduling
from contact_id_controller.ros.conversions import JointStateReader, contact_schedule
from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, ParameterTable
from contact_id_controller.ros.diagnostics import diagnostic_array
from contact_id_controller.ros.direct_loop import DirectLoop, take_waiting
from contact_id_controller.ros.estimate_publisher import EstimatePublisher
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.ros.packed import imu
from contact_id_controller.ros.packed import stamp_ns as packed_stamp_ns
from contact_id_controller.ros.process import Interrupt, run_node, serve_lifecycle
from contact_id_controller.ros.samples import SampleReader
from contact_id_controller.ros.sensor_input import SensorInput, Source
from contact_id_controller.ros.step_recording import EstimateRecorder
from contact_id_controller.safety.states import Refusal
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
from contact_id_controller.settings.specification import table_of

WAIT_S = 0.05
TURN_INTERVAL_S = 0.1
"""Time between turns of the executor while states arrive: one costs as much as a state."""

PLAN_INTERVAL_S = 0.01
"""Time between checks for a schedule while states arrive: it starts later than that."""

READING_TIMEOUT_S = 0.02
"""Age above which a reading of a mounted sensor counts as missing, as for the IMU."""

QUEUE = 20
"""Samples of the IMU that wait for their joint states."""

PATIENCE_S = 0.1
"""Wall time after which joint states in lockstep are used without sensors that have not published."""

DIAGNOSTICS_S = 1.0
"""Wall time between two diagnostics while nothing changes; a new fault is published at once."""

_SUCCESS, _FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
_NUMBER = re.compile(r"[-+]?\d[\d.e+-]*")


class DynamicsEstimatorNode(LifecycleNode):
    """The lifecycle node: configure loads and compiles; activate starts estimating, with the robot standing still."""

    def __init__(
        self, name: str = "dynamics_estimator", interrupt: Interrupt | None = None, **options: Any
    ) -> None:
        super().__init__(name, **NODE_OPTIONS, **options)
        self._interrupt = interrupt or Interrupt()
        self.pipeline: EstimationPipeline | None = None
        """None unless configured."""
        self.active = self.finalized = False
        self.steps = 0
        """Number of joint states that were used."""
        self.direct_subscriptions: list[Subscription] = []
        """Subscriptions to serve without delay; none unless configured."""
        self.patient_subscriptions: list[Subscription] = []
        """Subscriptions to serve every ``PLAN_INTERVAL_S``: each one waited for costs every wait."""
        self.polled_subscriptions: list[Subscription] = []
        """Subscriptions that a step polls."""
        self._table = ParameterTable(
            self,
            table_of(DynamicsEstimatorSettings),
            locked=lambda: self.pipeline is not None,
        )
        self.stamps = {"imu": StampFilter(), "joint_states": StampFilter()}
        self._subscriptions_made: list[Subscription] = []

    @property
    def starts_by_itself(self) -> bool:
        """Parameter `autostart`."""
        return self.get_parameter("autostart").value is True

    # Transitions

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the robot, compile, make topics; a bad configuration fails with one line in the log."""
        try:
            settings = DynamicsEstimatorSettings.from_mapping(self._table.values())
            with self._interrupt.leaving_at_once(self):
                robot = settings.robot()
                pipeline = EstimationPipeline(
                    robot, settings.foot_frames, settings.foot_radii_m, settings.pipeline
                )
            path = settings.record_path
            self._recorder = EstimateRecorder(path, robot, pipeline.feet) if path else None
            publisher = EstimatePublisher(self, pipeline, settings)
        except ContactIdError as error:
            self.get_logger().error(f"not configured: {error}")
            return _FAILURE
        self.settings, self.pipeline, self._publisher = settings, pipeline, publisher
        self._joints = JointStateReader(robot.joint_names)
        self._no_efforts = np.full(robot.na, np.nan)
        self._longest_ns = 1e9 * pipeline.settings.odometry.longest_period_s
        self._make_topics()
        self._begin()
        self.get_logger().info(
            f"configured: {robot.na} joints, {len(pipeline.feet)} feet, "
            f"rank {pipeline.estimator.observability.rank}"
        )
        return super().on_configure(state)

    def _make_topics(self) -> None:
        """Make subscriptions and publishers; in lockstep joint states wait for the sensors of their time."""
        self._imu_reader = SampleReader(imu())
        kind = (
            ReliabilityPolicy.RELIABLE if self.settings.reliable else ReliabilityPolicy.BEST_EFFORT
        )
        self._lockstep = self.settings.mode == "lockstep"
        stream = QoSProfile(depth=QUEUE if self._lockstep else 1, reliability=kind)
        plan = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        subscribe = self.create_subscription
        sources = list(map(Source.mounted, self.settings.mounted))
        self._mounted = SensorInput(self, stream, sources, READING_TIMEOUT_S, self._serve_waiting)
        sensors = [
            subscribe(Imu, "imu", self._on_imu, stream, raw=True),
            *self._mounted.subscriptions,
        ]
        schedule = subscribe(JointTrajectory, "contact_schedule", self._on_schedule, plan, raw=True)
        joints = subscribe(JointState, "joint_states", self._on_joints, stream, raw=True)
        self._subscriptions_made = [*sensors, schedule, joints]
        # In real time a step uses what has arrived, and plans start later; in lockstep joint states wait for the rest.
        if self._lockstep:
            self.direct_subscriptions = list(self._subscriptions_made)
        else:
            self.direct_subscriptions, self.patient_subscriptions = [joints], [schedule]
            self.polled_subscriptions = sensors
        self._polled = [(each, each.callback) for each in self.polled_subscriptions]
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timers = [
            self.create_timer(DIAGNOSTICS_S, self._diagnose, clock=steady),
            self.create_timer(PATIENCE_S, self._give_up, clock=steady),
        ]

    @property
    def _estimation(self) -> EstimationPipeline:
        """The pipeline of a configured node."""
        assert self.pipeline is not None
        return self.pipeline

    def _begin(self) -> None:
        """Restart the pipeline, and drop what has arrived."""
        self._estimation.start()
        self._schedule: PlanSlot[ContactSchedule] = PlanSlot()
        self._imu: deque[Any] = deque(maxlen=QUEUE)
        self._imu_given_up = False
        self._mounted.begin()
        self._waiting: bytes | None = None
        self._served_s = time.monotonic()
        self._last_ns: int | None = None
        self._said: tuple[str, ...] = ()
        self._lost = False
        self._heard_s = {"imu": -np.inf, "joint_states": -np.inf}
        self.refusal = ""

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Estimate from the next joint state on."""
        self._begin()
        self.active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing."""
        self._stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything that configure made."""
        self._release()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop from any state."""
        self._release()
        self.finalized = True
        return super().on_shutdown(state)

    def _stop(self) -> None:
        if self.active and self._recorder is not None:
            try:
                self._recorder.save()
            except RecordError as error:
                self.get_logger().error(str(error))
        self.active = False

    def _release(self) -> None:
        """Stop, and destroy what configure made."""
        self._stop()
        if self.pipeline is None:
            return
        self.pipeline = None
        for subscription in self._subscriptions_made:
            self.destroy_subscription(subscription)
        self._subscriptions_made, self._polled = [], []
        self.direct_subscriptions, self.patient_subscriptions = [], []
        self.polled_subscriptions = []
        for timer in self._timers:
            self.destroy_timer(timer)
        self.destroy_publisher(self._diagnostics)
        self._publisher.destroy()

    # Messages

    def _on_imu(self, message: bytes) -> None:
        """Keep an IMU sample with its stamp, unless the stamp is wrong; serve a joint state that waits for it."""
        try:
            stamp_ns, sample = self._imu_reader.read(message)
        except StateError:
            return  # the sample before stays, until it is too old
        stamps = self.stamps["imu"]
        if not stamps.accepts(1e-9 * stamp_ns):
            return
        if stamps.moved:
            self._imu.clear()
        self._imu.append((stamp_ns, sample[:3], sample[3:]))
        self._heard_s["imu"], self._imu_given_up = time.monotonic(), False
        if self._waiting is not None:
            self._serve_waiting()

    def _serve_waiting(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._on_joints(waiting, served_late=True)

    def _give_up(self) -> None:
        """Use a waiting joint state without a sensor that has stopped: the robot waits for its command."""
        if self._waiting is not None and time.monotonic() - self._served_s > PATIENCE_S:
            stamp_ns = packed_stamp_ns(self._waiting)
            self._imu_given_up = not (self._imu and self._imu[-1][0] >= stamp_ns)
            self._mounted.give_up(stamp_ns)
            self._serve_waiting()

    def _on_schedule(self, message: bytes) -> None:
        try:
            schedule = contact_schedule(message)
            self._schedule.replace(schedule.in_order(self._estimation.feet))
        except (StateError, TrajectoryError) as error:
            self.get_logger().warning(f"no schedule: {error}", throttle_duration_sec=1.0)

    def _on_joints(self, message: bytes, served_late: bool = False) -> None:
        """Step the estimator at a joint state, with the newest samples of IMU and other sensors.

        Args:
            message: JointState, serialised.
            served_late: it waited for other sensors, so its stamp has been checked.
        """
        if not self.active:
            return
        self._heard_s["joint_states"] = now_s = time.monotonic()
        for subscription, keep in self._polled:
            for sample in take_waiting(subscription):
                keep(sample)
        joints, refusal = self._joints, ""
        stamp_ns = joints.take(message)
        if stamp_ns is None:
            reading = joints.read(message)
            refusal = reading.detail if isinstance(reading, Refusal) else ""
            stamp_ns = packed_stamp_ns(message)
        if not served_late and not self.stamps["joint_states"].accepts(1e-9 * stamp_ns):
            self.refusal = f"a joint state of {1e-9 * stamp_ns:.3f} s is ignored for its stamp"
            return self._diagnose_changes()
        if self._lockstep and self._lacks(stamp_ns):
            self._waiting = message
            return
        self._waiting, self._served_s, self.refusal = None, now_s, refusal
        if refusal:
            return self._diagnose_changes()
        # By less it is one wrong stamp, or messages out of order.
        if self._last_ns is not None and stamp_ns < self._last_ns - 1e9 * FARTHEST_S:
            self.get_logger().warning("time went back: the estimate restarts")
            kept = [entry for entry in self._imu if entry[0] <= stamp_ns]
            self._begin()
            self._imu.extend(kept)
        self._last_ns = stamp_ns
        if self.stamps["joint_states"].moved:
            self._estimation.follow_clock()
        time_s = stamp_ns * 1e-9
        gyro, accel, imu_time_s = self._sample_of(stamp_ns)
        schedule = self._schedule.at(time_s)
        estimate = self._estimation.step(
            time_s,
            gyro,
            accel,
            joints.position,
            joints.velocity,
            self._no_efforts if joints.given is None else joints.given,
            readings=self._mounted.at(stamp_ns) if self._mounted.sources else (),
            imu_time_s=imu_time_s,
            planned=None if schedule is None else schedule.sample(time_s),
            look=False,
        )
        if estimate.time_s != time_s:  # this joint state was ignored
            return self._diagnose_changes()
        self._publisher.publish(stamp_ns, estimate)
        self._estimation.look()  # at residuals, after publishing
        self.steps += 1
        if self._recorder is not None and estimate.ready:
            keep_estimate(self._estimation.period, time_s, self._recorder.next())
            self._recorder.keep()
        self._diagnose_changes()

    def _lacks(self, stamp_ns: int) -> bool:
        """Whether IMU or other sensors have not yet published this stamp."""
        there = self._imu_given_up or (self._imu and self._imu[-1][0] >= stamp_ns)
        return not there or self._mounted.waits_for(stamp_ns)

    def _sample_of(self, stamp_ns: int) -> tuple[Any, Any, Any]:
        """Angular velocity, acceleration and stamp, s, of the newest IMU sample not after this stamp; None: too old."""
        while len(self._imu) > 1 and self._imu[1][0] <= stamp_ns:
            self._imu.popleft()
        if not self._imu:
            return None, None, None
        imu_ns, gyro, accel = self._imu[0]
        if stamp_ns - imu_ns > self._longest_ns:
            return None, None, None
        return gyro, accel, imu_ns * 1e-9

    # Diagnostics

    def _faults(self) -> tuple[str, ...]:
        faults = self._estimation.estimate.faults
        return (self.refusal, *faults) if self.refusal else faults

    def _diagnose_changes(self) -> None:
        """Publish diagnostics at once when other faults are present than before, whatever their numbers."""
        estimate = self._estimation.estimate
        state = estimate.odometry.state
        if (state == LOST) != self._lost:
            self._log_lost(state)
        if not (estimate.faults or self.refusal or self._said):
            return
        faults = self._faults()
        kinds = tuple(_NUMBER.sub("", fault) for fault in faults)
        if kinds != self._said:
            self._said = kinds
            self._diagnose()

    def _log_lost(self, state: str) -> None:
        """Log when the base is lost, and when it is found again."""
        self._lost = state == LOST
        if self._lost:
            reasons = "; ".join(self._estimation.estimate.odometry.reasons)
            self.get_logger().warning(f"the base is lost: {reasons}")
        else:
            self.get_logger().info("the base is found again")

    def _diagnose(self) -> None:
        """Publish on /diagnostics: ERROR while there is no estimate, WARN with the faults of the inputs."""
        if self.pipeline is None:
            return
        if self._recorder is not None:
            self._recorder.prepare()
        faults, estimate = self._faults(), self._estimation.estimate
        if not self.active:
            level, summary = DiagnosticStatus.OK, "inactive"
        elif not estimate.ready:
            level = DiagnosticStatus.ERROR
            summary = "; ".join((f"odometry is {estimate.odometry.state}", *faults))
        else:
            level = DiagnosticStatus.WARN if faults else DiagnosticStatus.OK
            summary = "; ".join(faults) or estimate.odometry.state
        self._diagnostics.publish(
            diagnostic_array(
                self.get_clock().now().to_msg(),
                f"{self.get_name()}: dynamics and odometry",
                level,
                summary,
                self._figures(),
            )
        )

    def _figures(self) -> dict[str, str]:
        """Values of the diagnostics: odometry, contacts, deviations, ages of the inputs, residuals."""
        pipeline, now = self._estimation, time.monotonic()
        estimate = pipeline.estimate
        deviation = np.sqrt(np.maximum(np.diag(estimate.odometry.pose_covariance), 0.0))
        figures = {
            "odometry": estimate.odometry.state,
            "rank": str(pipeline.estimator.observability.rank),
            "contact": ", ".join(f for f, on in zip(pipeline.feet, estimate.contact) if on)
            or "none",
            "position deviation, m": f"{np.linalg.norm(deviation[:3]):.4f}",
            "yaw deviation, rad": f"{deviation[5]:.4f}",
            "restarts": str(pipeline.base.restarts),
        }
        for name, heard_s in self._heard_s.items():
            figures[f"age of {name}, s"] = f"{now - heard_s:.3f}"
        for source, heard_s in zip(self._mounted.sources, self._mounted.heard_s):
            figures[f"age of {source.topic}, s"] = f"{now - heard_s:.3f}"
        for name, stamps in self.stamps.items():
            figures[f"ignored stamps of {name}"] = str(stamps.ignored)
        for name, size in estimate.residuals.items():
            figures[f"residual of {name}"] = f"{size:.2f}"
        return figures


def _serve(node: DynamicsEstimatorNode, interrupt: Interrupt) -> int:
    """Serve the node until it is shut down, here or by a lifecycle manager."""
    if node.starts_by_itself and (
        node.trigger_configure() != _SUCCESS or node.trigger_activate() != _SUCCESS
    ):
        return 1
    executor = GuardedExecutor(node)
    direct = DirectLoop(
        executor,
        lambda: node.direct_subscriptions,
        lambda: node.patient_subscriptions,
        polled=lambda: node.polled_subscriptions,
        turn_interval_s=TURN_INTERVAL_S,
        look_interval_s=PLAN_INTERVAL_S,
        between=scheduling.GarbageBreak(
            lambda: node.pipeline is not None, lambda: node.active, node.get_logger().warning
        ),
    )
    return serve_lifecycle(node, interrupt, lambda: direct.spin_once(WAIT_S))


def main(arguments: list[str] | None = None) -> int:
    """Run the node; 0 after an ordinary end, 1 when it was to start by itself and could not."""
    return run_node(
        "dynamics_estimator",
        lambda interrupt: DynamicsEstimatorNode(interrupt=interrupt),
        _serve,
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
