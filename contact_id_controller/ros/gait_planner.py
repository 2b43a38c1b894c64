"""ROS node: plans walking from joint states and odometry.

A plan is made from the first state of each planning period, by the stamps, never by the wall clock, and starts the
planner's lead after the stamp of its state. States arrive a thousand times a second and are needed twenty times: the
loop of `run` checks the stamps in the queues of two subscriptions every few milliseconds, and only the state that is
due is deserialised.
"""

from __future__ import annotations

import collections
import math
import sys
import time
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from contact_id_controller.exceptions import ConfigurationError, ContactIdError, StateError
from contact_id_controller.planning.by_velocity import velocity_planner
from contact_id_controller.plans.plan import Plan
from contact_id_controller.ros import plan_bytes, scheduling
from contact_id_controller.ros.conversions import CONFIRMATIONS, PositionsByName
from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, read_settings
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.ros.packed import MOST_CHARACTERS, read_message
from contact_id_controller.ros.packed import stamp_ns as packed_stamp_ns
from contact_id_controller.ros.plan_messages import PlanSender
from contact_id_controller.ros.process import Interrupt, run_by_itself
from contact_id_controller.ros.state_input import StateInput
from contact_id_controller.safety.stamp_watch import StampWatch
from contact_id_controller.safety.states import JOINTS_BEHIND_S, Refusal, StateChecks
from contact_id_controller.settings.gait import HORIZON_S, LOOK_TIME_S
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.shared_rows import CONFIGURE_S, ODOMETRY_AGE_LIMIT_S
from contact_id_controller.state import RobotState

QUEUE = 20
"""Queue length of states; more arrive between two polls only long before the next plan."""

SHORTEST_REST_S, LONGEST_REST_S = 0.001, 0.01
"""Wall time between two polls of the queues."""

TURN_S = 0.05
"""Wall time between turns of the executor, which serves velocity commands and parameters."""

REPEAT_S = 0.25
"""Wall time after which a plan is published again when no new one is due."""

ODOMETRY_PATIENCE_S = 0.003
"""Wall time for which a joint state waits for the odometry of the same time."""

BEHIND_NS = round(1e9 * JOINTS_BEHIND_S)
"""Odometry that is further ahead of a joint state is not of its time."""

HORIZON_NS = round(1e9 * HORIZON_S)
"""After so long without a plan planning begins anew."""

CMD_VEL_TIMEOUT_NS = 500_000_000
"""A velocity command that is older counts as zero."""

UNHEARD_S = 1.0
"""Wall time for discovery, after which missing subscribers of the plans are logged."""

PART_S = CONFIGURE_S + 60.0
"""Wall time for which the motion alone must be followed until planning begins without who takes the other parts of plans.
A controller that is still being configured subscribes later than that would fall: it came into a stride."""

NEVER_NS = -(2**63)
"""Before any stamp."""


class GaitPlannerNode(Node):
    """The node; `run` is its main loop.

    Raises:
        ContactIdError: a parameter is missing, outside its range, or does not fit the robot.
    """

    def __init__(self, interrupt: Interrupt | None = None, **node_options: Any) -> None:
        super().__init__("gait_planner", **NODE_OPTIONS, **node_options)
        self._interrupt = interrupt or Interrupt()
        try:
            self._configure()
        except ContactIdError:
            self.destroy_node()
            raise
        stream = QoSProfile(depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
        plan = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        subscribe = self.create_subscription
        self._odometry = subscribe(Odometry, "odometry", self._keep_odometry, stream, raw=True)
        self._states = subscribe(JointState, "joint_states", self._on_state, stream, raw=True)
        self._contacts = subscribe(
            JointState, "contact_states", self._keep_contacts, stream, raw=True
        )
        subscribe(Twist, "cmd_vel", self._on_velocity, plan, raw=True)
        subscribe(String, "gait", self._on_gait, plan, raw=True)
        self._plans = PlanSender(self, self.planner.parts)
        self._packed_odometry: collections.deque[bytes] = collections.deque(maxlen=QUEUE)
        self._packed_contacts: collections.deque[bytes] = collections.deque(maxlen=QUEUE)
        self._touching = PositionsByName(self.settings.foot_frames)
        self._last_ns = self._due_ns = self._planned_ns = self._first_ns = NEVER_NS
        self._look_ns = NEVER_NS
        self._touches: np.ndarray | None = None
        self._touches_ns = NEVER_NS
        self._touched = self._began = np.zeros(len(self.settings.foot_frames), dtype=bool)
        self._velocity_ns: int | None = None
        self._unreachable: tuple[str, ...] = ()
        self._bounded: tuple[float, ...] = ()
        self._unmapped = False
        self._sent_ns = NEVER_NS
        self._heard, self._begun_s, self._followed_s = False, time.monotonic(), math.inf

    def _configure(self) -> None:
        """Read the parameters and make planner and state input."""
        self.settings = settings = read_settings(self, GaitPlannerSettings)
        with self._interrupt.leaving_at_once(self):  # it compiles
            robot = settings.robot()
            self.planner = velocity_planner(robot, settings, settings.terrain)
            plan_bytes.warm_up()
        checks = StateChecks(robot, odometry_age_limit_s=ODOMETRY_AGE_LIMIT_S)
        checks.judge()
        self._input = StateInput(robot.joint_names, checks, CONFIRMATIONS)
        self._period_ns = round(self.settings.plan_period_s * 1e9)
        self._stamps = StampWatch(self._period_ns)
        self._lead_ns = round(self.planner.lead_s * 1e9)
        looks_s = HORIZON_S if self.planner.is_due is None else LOOK_TIME_S
        self._look_period_ns = round(looks_s * 1e9)

    def run(self) -> None:
        """Plan until ROS shuts down or the process is interrupted."""
        executor = GuardedExecutor(self, context=self.context)
        scheduling.settle(self.get_logger().warning)
        turn_s = 0.0
        try:
            while self.context.ok() and not self._interrupt.requested:
                executor.incidents.guarded("plan", self._take_states)
                if time.monotonic() >= turn_s:
                    executor.spin_once(timeout_sec=0.0)
                    self._repeat()
                    turn_s = time.monotonic() + TURN_S
                time.sleep(self._rest_s())
        except ExternalShutdownException:
            pass
        finally:
            executor.shutdown()

    def _take_states(self) -> None:
        while (packed := take_packed(self._states)) is not None:
            self._on_state(packed)

    def _rest_s(self) -> float:
        """Wall time, s, to sleep: half of the time until the next plan or look, if the robot runs in real time."""
        missing_s = 0.5e-9 * (min(self._due_ns, self._look_ns) - self._last_ns)
        return min(max(missing_s, SHORTEST_REST_S), LONGEST_REST_S)

    # States

    def _keep_odometry(self, packed: bytes) -> None:
        self._packed_odometry.append(packed)

    def _on_state(self, packed: bytes) -> None:
        """Check the stamp of a joint state; plan from it when a plan is due."""
        stamp_ns = packed_stamp_ns(packed)
        if not self._stamps.believes(stamp_ns):
            self._warn(
                f"no plan: stamp {stamp_ns * 1e-9:.3f} s of a joint state is far from the one before"
            )
            return
        if stamp_ns < self._last_ns - self._period_ns:
            if isinstance(read := self._input.read(packed), Refusal):
                self._warn(f"no plan: {read.detail}")
                return
            self.get_logger().warning("time went back: planning restarts")
            self.planner.reset()
            if self._velocity_ns is not None:
                self.planner.set_velocity()  # its timeout counts by the stamps before
            self._input.checks.reset()
            self._input.odometry.forget_frames()
            self._due_ns = self._planned_ns = self._first_ns = self._look_ns = NEVER_NS
            self._velocity_ns = None
            self._packed_contacts.clear()
            self._touches, self._touches_ns = None, NEVER_NS
            self._began = np.zeros_like(self._began)
            self._plans.forget()  # they would begin in what is now the future
        self._last_ns = stamp_ns
        if stamp_ns < min(self._due_ns, self._look_ns) or not self._is_heard():
            return
        self._find_odometry(stamp_ns)
        state = self._input.take_joint_state(packed, None)
        if isinstance(state, Refusal):
            self._warn(f"no plan: {state.detail}")
            return
        if stamp_ns < self._due_ns and not self._is_due(stamp_ns, state):
            return
        if stamp_ns - self._planned_ns > HORIZON_NS and not self._is_confirmed():
            return
        self._command_velocity(stamp_ns)
        try:
            plan = self.planner.plan(stamp_ns * 1e-9, state.q, state.v, self._contact(stamp_ns))
        except ContactIdError as error:
            self._warn(f"no plan: {error}")
            return
        self._planned_ns = stamp_ns
        self._began = np.zeros_like(self._began)
        self._look_ns = stamp_ns + max(self._lead_ns, self._look_period_ns)
        self._due_ns = (stamp_ns // self._period_ns + 1) * self._period_ns
        self._due_ns = max(self._due_ns, stamp_ns + self._lead_ns)
        self._publish(plan, stamp_ns + round(1e9 * self.planner.lead_s))
        self._report(plan)

    def _is_due(self, stamp_ns: int, state: RobotState) -> bool:
        """Whether the next plan is due at once, at a look between two plans."""
        self._look_ns = stamp_ns + self._look_period_ns
        is_due = self.planner.is_due
        if is_due is None:
            return False
        return is_due(stamp_ns * 1e-9, state.q, state.v, self._contact(stamp_ns))

    def _is_confirmed(self) -> bool:
        """Whether a state agrees with the one before, of another odometry: planning begins where the robot is for sure."""
        base_ns, first_ns = self._input.checks.base_ns or 0, self._first_ns
        self._first_ns = base_ns
        return 0 < base_ns - first_ns <= HORIZON_NS

    def _is_heard(self) -> bool:
        """Whether all parts of plans have subscribers, or for PART_S the motion had one that follows it.

        A controller that takes all, and at first gets only some of them, would fall.
        """
        if not self._heard:
            unheard, now_s = self._plans.unheard, time.monotonic()
            followed = bool(unheard) and self._plans.is_followed
            self._followed_s = min(self._followed_s, now_s) if followed else math.inf
            self._heard = not unheard or now_s - self._followed_s > PART_S
            missing = ", ".join(unheard)
            if unheard and self._heard:
                self.get_logger().warning(f"no subscriber on {missing}: planning begins without it")
            elif unheard and now_s - self._begun_s > UNHEARD_S:
                self._warn(f"no plan: no subscriber on {missing} yet")
        return self._heard

    def _find_odometry(self, stamp_ns: int) -> None:
        """Pass the odometry nearest to the state's stamp to the input; waits ODOMETRY_PATIENCE_S for one not before it.

        Where that is refused, as of another publisher, the next nearest is tried.
        """
        end_s, kept = time.monotonic() + ODOMETRY_PATIENCE_S, self._packed_odometry
        while True:
            while (packed := take_packed(self._odometry)) is not None:
                kept.append(packed)
            ahead_ns = [packed_stamp_ns(each) - stamp_ns for each in kept]
            if any(0 <= ns <= BEHIND_NS for ns in ahead_ns) or time.monotonic() > end_s:
                break
            time.sleep(0.2 * ODOMETRY_PATIENCE_S)
        messages = list(kept)
        for k in sorted(range(len(messages)), key=lambda k: (abs(ahead_ns[k]), -k)):
            try:
                self._input.take_odometry(messages[k])
            except StateError as error:
                self._warn(f"odometry: {error}")
                kept.remove(messages[k])
                continue
            while kept[0] is not messages[k]:  # what came before it is of no use any more
                kept.popleft()
            kept.popleft()
            break

    def _keep_contacts(self, packed: bytes) -> None:
        self._packed_contacts.append(packed)

    def _contact(self, stamp_ns: int) -> np.ndarray | None:
        """Feet (f,) bool that touch the ground, or have begun to since the last plan (one that lands bounces); None: not known.

        One that has only left the ground since then touches no more. A touch, or its end, counts from the second message
        in a row on, or at once after a silence of a planning period: one may be wrong.
        """
        while (packed := take_packed(self._contacts)) is not None:
            self._packed_contacts.append(packed)
        while self._packed_contacts:
            packed = self._packed_contacts.popleft()
            touches_ns = packed_stamp_ns(packed)
            if stamp_ns - touches_ns > self._period_ns:
                continue
            try:
                known = self._touching.read(packed)
            except StateError as error:
                self._warn(f"contact states: {error}")
                continue
            if np.isfinite(known).all():
                touches = known > 0.5
                if self._touches is None or touches_ns - self._touches_ns > self._period_ns:
                    self._touches = self._touched = touches
                    self._began = np.zeros_like(self._began)
                before, self._touches_ns = self._touched, touches_ns
                self._touched = np.where(touches == self._touches, touches, before)
                self._touches = touches
                self._began = self._began | (self._touched & ~before)
        is_known = stamp_ns - self._touches_ns <= self._period_ns
        return self._touched | self._began if is_known else None

    # Commands

    def _on_gait(self, message: bytes) -> None:
        try:
            self.planner.set_gait(read_message(String, message, MOST_CHARACTERS).data)
        except (ConfigurationError, StateError) as error:
            self._warn(str(error))

    def _on_velocity(self, message: bytes) -> None:
        """Take a commanded velocity, m/s and rad/s in the base's heading frame; a bad one is refused with a warning."""
        try:
            wanted = read_message(Twist, message)
            self.planner.set_velocity((wanted.linear.x, wanted.linear.y), wanted.angular.z)
        except (ConfigurationError, StateError) as error:
            self._warn(str(error))
            return
        self._velocity_ns = self._last_ns

    def _command_velocity(self, stamp_ns: int) -> None:
        """Stop when the last velocity command is older than CMD_VEL_TIMEOUT_NS."""
        if self._velocity_ns is not None and stamp_ns - self._velocity_ns > CMD_VEL_TIMEOUT_NS:
            self.planner.set_velocity()

    # Plans

    def _publish(self, plan: Plan, start_ns: int) -> None:
        self._plans.send(plan, start_ns)
        self._sent_ns = self._last_ns

    def _repeat(self) -> None:
        """Publish the last plan again while states arrive whose stamps hardly advance.

        A simulation that is held until it has a plan may have missed the first one.
        """
        if self._last_ns != self._sent_ns and time.monotonic() - self._plans.sent_s > REPEAT_S:
            self._plans.repeat()
            self._sent_ns = self._last_ns

    def _report(self, plan: Plan) -> None:
        """Log, once, how a plan differs from what was commanded."""
        if plan.restarted:
            self.get_logger().info("planning begins with standing")
        if plan.unreachable and plan.unreachable != self._unreachable:
            feet = ", ".join(plan.unreachable)
            self._warn(
                f"planned footholds of {feet} are out of reach; the nearest reachable are used"
            )
        self._unreachable = plan.unreachable
        if plan.unmapped and not self._unmapped:
            self._warn("footholds are outside the height map: the ground counts as level there")
        self._unmapped = plan.unmapped
        if plan.bounded and not self._bounded:
            forwards, left = plan.bounded
            self._warn(
                f"commanded velocity is beyond what steps can hold: limited to {forwards:.2f} m/s forwards, "
                f"{left:.2f} m/s to the left"
            )
        self._bounded = plan.bounded

    def _warn(self, text: str) -> None:
        self.get_logger().warning(text, throttle_duration_sec=1.0)


def take_packed(subscription: Subscription) -> bytes | None:
    """The oldest message in a raw subscription, serialised; None: none waits."""
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, True)
    return None if taken is None else taken[0]


def main(args: list[str] | None = None) -> int:
    """Run the node; 0, or 1 after an error of which one line has been printed."""
    return run_by_itself("gait_planner", GaitPlannerNode, args)


if __name__ == "__main__":
    sys.exit(main())
