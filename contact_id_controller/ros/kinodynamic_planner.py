"""ROS node: plans contact forces and whole-body motion over footsteps, or straight to a goal.

A plan starts from the robot's present state, or continues the plan that the robot follows. It is shown first
and sent on request (`~/plan`, `~/execute`), or sent at once. Planning takes tenths of seconds; of the states that
arrive meanwhile only the newest is used.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from nav_msgs.msg import Path as PathMessage
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from contact_id_controller.exceptions import ContactIdError, StateError
from contact_id_controller.planning.kinodynamic.footstep_file import footsteps_file, read_footsteps
from contact_id_controller.planning.kinodynamic.motion_planner import (
    LEAD_TIME_S,
    Goal,
    MotionPlanner,
    Steps,
    TimedPlan,
)
from contact_id_controller.ros import plan_bytes, scheduling
from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, read_settings
from contact_id_controller.ros.diagnostics import diagnostic_array
from contact_id_controller.ros.direct_loop import take_waiting
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.ros.footstep_messages import goal_of, steps_of
from contact_id_controller.ros.packed import read_message, stamp_ns
from contact_id_controller.ros.plan_markers import com_path, foothold_markers, force_markers
from contact_id_controller.ros.plan_messages import PlanSender
from contact_id_controller.ros.process import Interrupt, run_by_itself
from contact_id_controller.ros.state_input import StateInput
from contact_id_controller.safety.stamp_watch import StampWatch
from contact_id_controller.safety.states import Refusal, StateChecks
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.shared_rows import ODOMETRY_AGE_LIMIT_S
from contact_id_controller.state import RobotState

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""QoS of markers: late subscribers get them, too."""

TURN_S = 0.02
"""Wall time between turns of the executor."""

EVENTS_IN_A_TURN = 8

REPEAT_S = 0.5
"""Wall time after which a plan is sent again while the robot's stamps do not advance: it is held until its controller,
which accepts no plan before it is active, commands. And once when they advance."""

STANDS_NS = 5_000_000
"""Largest change of the stamps of a robot that is held."""

PATIENCE_S = 5.0
"""Wall time after a message within which a good state lets its task begin; the parameters' task waits for the robot."""

STATUS_S = 1.0
"""Wall time between diagnostics."""

ATTEMPTS = 3
"""Number of attempts with a later start if planning takes longer than the time until the start."""

NANO, NS_PER_S = 1e-9, 1_000_000_000


class KinodynamicPlannerNode(Node):
    """The node; `run` is its main loop.

    Raises:
        ContactIdError: a parameter is missing, outside its range, or does not fit the robot.
    """

    def __init__(self, interrupt: Interrupt | None = None, **node_options: Any) -> None:
        super().__init__("kinodynamic_planner", **NODE_OPTIONS, **node_options)
        self._interrupt = interrupt or Interrupt()
        try:
            self._configure()
        except ContactIdError:
            self.destroy_node()
            raise
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        plan = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        subscribe, publish = self.create_subscription, self.create_publisher
        self._odometry = subscribe(Odometry, "odometry", self._keep_odometry, newest, raw=True)
        self._states = subscribe(JointState, "joint_states", self._on_state, newest, raw=True)
        subscribe(MultiDOFJointTrajectory, "footsteps", self._on_footsteps, plan, raw=True)
        subscribe(PoseStamped, "goal_pose", self._on_goal, plan, raw=True)
        self._plans = PlanSender(self)
        self._footholds = publish(MarkerArray, "~/footholds", LATCHED)
        self._forces = publish(MarkerArray, "~/planned_forces", LATCHED)
        self._com = publish(PathMessage, "~/com", LATCHED)
        self._diagnostics = publish(DiagnosticArray, "/diagnostics", 1)
        self.create_service(Trigger, "~/plan", self._on_plan)
        self.create_service(Trigger, "~/execute", self._on_execute)
        self._packed: bytes | None = None
        self._stamps = StampWatch(NS_PER_S)
        self._packed_odometry: bytes | None = None
        self._shown: TimedPlan | None = None
        self._due = self.settings.execute_at_once and self._task is not None
        self._status_s, self._refused_s, self._due_until_s = 0.0, -math.inf, math.inf
        self._begins_ns = self._sent_ns = self._last_ns = 0
        self._planning_s = 0.0
        self._words, self._level = "no plan yet", DiagnosticStatus.OK

    def _configure(self) -> None:
        """Read parameters and footsteps, and compile the planner."""
        self.settings = settings = read_settings(self, KinodynamicPlannerSettings)
        with self._interrupt.leaving_at_once(self):
            self.planner = MotionPlanner(settings)
            self._task: Steps | Goal | None = None
            if settings.goal:
                self._task = Goal(*settings.goal)
            elif settings.footsteps:
                soles, friction = self.planner.soles, settings.friction_coefficient
                self._task = Steps(read_footsteps(footsteps_file(settings), soles, friction))
            self.planner.warm_up()
            plan_bytes.warm_up()
        checks = StateChecks(self.planner.robot, odometry_age_limit_s=ODOMETRY_AGE_LIMIT_S)
        checks.judge()
        self._input = StateInput(self.planner.robot.joint_names, checks)

    def run(self) -> None:
        """Plan until ROS shuts down or the process is interrupted."""
        executor = GuardedExecutor(self, context=self.context)
        scheduling.settle(self.get_logger().warning)
        try:
            while self.context.ok() and not self._interrupt.requested:
                for _ in range(EVENTS_IN_A_TURN):
                    executor.spin_once(timeout_sec=0.0)
                executor.incidents.guarded("look", self._look)
                time.sleep(TURN_S)
        except ExternalShutdownException:
            pass
        finally:
            executor.shutdown()

    # States

    def _keep_odometry(self, packed: bytes) -> None:
        self._packed_odometry = packed

    def _on_state(self, packed: bytes) -> None:
        if self._stamps.believes(stamp_ns(packed)):
            self._packed = packed

    def _state(self) -> RobotState:
        """The newest state.

        Raises:
            StateError: there is none, or it is refused.
        """
        for subscription, keep in (
            (self._states, self._on_state),  # first: then the odometry of its stamp has arrived
            (self._odometry, self._keep_odometry),
        ):
            for packed in take_waiting(subscription):
                keep(packed)
        if self._packed is None:
            raise StateError(f"no joint state received on {self._states.topic_name}")
        self._input.odometry.forget_frames()
        if self._packed_odometry is not None:
            self._input.take_odometry(self._packed_odometry)
        self._input.checks.reset()  # the same state may be needed again
        state = self._input.take_joint_state(self._packed, None)
        if isinstance(state, Refusal):
            raise StateError(state.detail)
        return state

    def _look(self) -> None:
        """Do what is due between messages: a first plan, repetitions, diagnostics."""
        if self._packed is not None:
            now_ns = stamp_ns(self._packed)
            if now_ns < self._last_ns - NS_PER_S:
                self.get_logger().warning("time went back: no plan is followed")
                self.planner.reset()
                self._shown = None
                self._plans.forget()
            self._last_ns = now_ns
        if self._due and self._packed is not None and self._packed_odometry is not None:
            self._plan_at_once()
        wall_s = time.monotonic()
        if self._plans.has_sent and wall_s - self._plans.sent_s > REPEAT_S:
            held = abs(self._last_ns - self._sent_ns) < STANDS_NS
            if self._last_ns < self._begins_ns:
                self._plans.repeat()
            if not held:
                self._plans.forget()
        if wall_s - self._status_s > STATUS_S:
            self._report()

    # What to do

    def _on_footsteps(self, message: bytes) -> None:
        soles, friction = self.planner.soles, self.settings.friction_coefficient
        self._take(
            lambda: steps_of(read_message(MultiDOFJointTrajectory, message), soles, friction)
        )

    def _on_goal(self, message: bytes) -> None:
        self._take(lambda: goal_of(read_message(PoseStamped, message)))

    def _take(self, read: Callable[[], Any]) -> None:
        """Take a task from a message; with ``execute_at_once`` plan and send it."""
        try:
            self._task = read()
        except ContactIdError as error:
            self._log_result(False, str(error))
            return
        self._shown = None
        if self.settings.execute_at_once:
            self._refused_s, self._due_until_s = -math.inf, time.monotonic() + PATIENCE_S
            self._plan_at_once()

    def _plan_at_once(self) -> None:
        """Plan and send; due again while the state is refused, for PATIENCE_S after a message: later nobody expects it."""
        try:
            self._state()
        except StateError as error:
            self._due = time.monotonic() < self._due_until_s
            if not self._due:
                self._log_result(False, f"no plan within {PATIENCE_S:g} s: {error}")
            elif time.monotonic() - self._refused_s > STATUS_S:
                self._refused_s = time.monotonic()
                self._log_result(False, f"no plan yet: {error}")
            return
        self._due = False
        self._log_result(*self._plan_and_send())

    def _on_plan(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = self._plan()
        self._log_result(response.success, response.message)
        return response

    def _on_execute(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = self._execute()
        self._log_result(response.success, response.message)
        return response

    def _plan_and_send(self) -> tuple[bool, str]:
        done, words = self._plan()
        return self._execute() if done else (done, words)

    def _plan(self) -> tuple[bool, str]:
        """Make and show the plan; return whether that succeeded, and one line about it."""
        self._shown = None
        if self._task is None:
            return False, (
                "nothing to plan: no footsteps or goal_pose received, and parameters goal and footsteps are empty"
            )
        lead_s = max(LEAD_TIME_S, self._planning_s)
        for _ in range(ATTEMPTS):
            try:
                state = self._state()
                timed = self.planner.plan(state.time_s, state.q, state.v, self._task, lead_s)
                now_s = self._state().time_s
            except ContactIdError as error:
                return False, f"no plan: {error}"
            self._planning_s = now_s - state.time_s
            if timed.start_s is None or timed.start_s > now_s:
                self._shown = timed
                self._show(timed)
                return True, self._about(timed, now_s)
            lead_s = 2.0 * lead_s + self._planning_s
        return (
            False,
            f"no plan: planning takes {self._planning_s:.2g} s, the present plan ends its lead by then",
        )

    def _execute(self) -> tuple[bool, str]:
        """Send the plan that is shown; return whether that succeeded, and one line about it."""
        if self._shown is None:
            return False, "no plan to execute: call ~/plan first"
        timed = self._shown
        try:
            state = self._state()
        except StateError as error:
            return False, f"not executed: {error}"
        start_s = timed.start_s
        if start_s is None:
            refusal = self.planner.refuse_elsewhere(timed.plan, state.q)
            if refusal:
                return False, f"not executed: {refusal}"
            start_s = state.time_s + LEAD_TIME_S
        elif start_s <= state.time_s:
            self._shown = None
            return False, (
                f"not executed: the plan was to begin at {start_s:.3f} s, it is {state.time_s:.3f} s: "
                "plan again, or set execute_at_once"
            )
        self._shown = None
        self._begins_ns, self._sent_ns = round(start_s / NANO), round(state.time_s / NANO)
        self.planner.follow(timed.plan, start_s)
        plan = timed.plan
        loads = plan.forces.loads(plan.contacts.frames, plan.contacts.times_s)
        self._plans.send(plan, self._begins_ns, loads)
        return True, f"sent: {plan.contact_plan.duration_s:.2f} s of motion from {start_s:.3f} s on"

    # Words and pictures

    def _about(self, timed: TimedPlan, now_s: float) -> str:
        """A line about a plan: duration, planning time, s, difference between its centroidal and whole-body parts."""
        plan, last = timed.plan, timed.plan.passes[-1]
        begin = "" if timed.start_s is None else f" from {timed.start_s:.3f} s on"
        return (
            f"planned {plan.contact_plan.duration_s:.2f} s of motion{begin} in {plan.seconds:.2f} s; "
            f"the two plans are apart: CoM {1e3 * last.com:.2f} mm, angular momentum "
            f"{last.angular_momentum:.3f} kg m2/s"
        )

    def _show(self, timed: TimedPlan) -> None:
        stamp, frame = self.get_clock().now().to_msg(), self._world
        self._footholds.publish(foothold_markers(timed.plan, stamp, frame))
        self._forces.publish(force_markers(timed.plan, stamp, frame))
        self._com.publish(com_path(timed.plan, stamp, frame))

    @property
    def _world(self) -> str:
        return self._input.odometry.world_frame

    def _log_result(self, good: bool, words: str) -> None:
        """Log a line and publish it as the node's status."""
        if good:
            self.get_logger().info(words)
        else:  # one place in the code has one severity
            self.get_logger().warning(words)
        self._words = words
        self._level = DiagnosticStatus.OK if good else DiagnosticStatus.WARN
        self._report()

    def _report(self) -> None:
        """Publish on /diagnostics which plan is shown and which is followed."""
        self._status_s = time.monotonic()
        followed = self.planner.followed
        figures = {"shown": "yes" if self._shown else "no", "followed": "no"}
        if followed is not None and followed.start_s is not None:
            end_s = followed.start_s + followed.plan.contact_plan.duration_s
            figures["followed"] = f"from {followed.start_s:.3f} to {end_s:.3f} s"
            figures |= {f"pass_{each.number}": each.line() for each in followed.plan.passes}
        self._diagnostics.publish(
            diagnostic_array(
                self.get_clock().now().to_msg(),
                self.get_name(),
                self._level,
                self._words,
                figures,
            )
        )


def main(args: list[str] | None = None) -> int:
    """Run the node; 0, or 1 after an error of which one line has been printed."""
    return run_by_itself("kinodynamic_planner", KinodynamicPlannerNode, args)


if __name__ == "__main__":
    sys.exit(main())
