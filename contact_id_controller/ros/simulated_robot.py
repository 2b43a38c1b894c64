"""ROS node: a simulated robot that publishes its state and applies the commands it receives.

Before the first command the robot is held in its initial posture and simulated time stands still, except for one
nanosecond with each published state, because stamps must increase. From then on the last command is applied until the
next one, without a timeout, as in ros2_control. In real time the service `~/reset` restarts: initial posture, time 0,
held until the next command.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from contact_id_controller.exceptions import (
    ContactIdError,
    SimulationError,
    StateError,
    TrajectoryError,
)
from contact_id_controller.lazy import loaded
from contact_id_controller.plans.effort_trajectory import LocalFeedback
from contact_id_controller.plans.low_level import DriveFeedback
from contact_id_controller.plans.state_feedback import LinearFeedback
from contact_id_controller.ros import scheduling
from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, read_settings
from contact_id_controller.ros.direct_loop import KEPT_IN_LOCKSTEP, hand_on_newest
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.ros.goals_messages import task_goals
from contact_id_controller.ros.lateness import Lateness
from contact_id_controller.ros.packed import stamp_ns
from contact_id_controller.ros.process import Interrupt, run_by_itself
from contact_id_controller.ros.robot_publisher import RobotPublisher
from contact_id_controller.ros.sim_progress import SimulationProgress
from contact_id_controller.ros.state_publisher import StatePublisher
from contact_id_controller.settings.shared_rows import LOCAL_GAINS
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot, build_sensors, place
from contact_id_controller.simulation.recording import FallDetector, SimulationRecorder

HOLD_PERIOD_S = 0.005
"""Wall time between states while the robot is held; shorter than a controller's timeout."""

GROUND_TRUTH = "ground_truth/"
"""Prefix of the topics with the simulator's true values, if they are separate."""

ANNOUNCE_S = 15.0
QUIET_S, LONGEST_QUIET_S = 0.02, 2.0
"""Time without a command after which all states count as answered; longer for a slow controller."""
ANSWERS = 3
"""Multiple of the time to answer after which no other answer is expected."""
PROBES = 2
LONGEST_DRAIN_S = 10.0
POLL_S = 3e-5
COMMAND_TIMEOUT_S = 10.0
ACKNOWLEDGED_S = 2.0
"""Longest wall time to wait at the end for slow subscribers (recorders): unsent messages are lost with the process."""
HOUSEKEEPING_S = 0.05
"""Wall time between visits to the executor, which cost a fifth of a millisecond each."""


class SimulatedRobot(Node):
    """The node; `run` is its main loop.

    Raises:
        ContactIdError: a parameter is missing, outside its range, or does not fit the robot
            description.
    """

    def __init__(self, interrupt: Interrupt | None = None, **node_options: Any) -> None:
        super().__init__("simulated_robot", **NODE_OPTIONS, **node_options)
        self._interrupt = interrupt or Interrupt()
        try:
            self.settings = read_settings(self, SimulatedRobotSettings)
            self.simulated = build_robot(self.settings)
            self.sensors = build_sensors(self.simulated, self.settings)
            messages = messages_of(self.settings.interface)
            path = self.settings.record_path
            self._recorder = SimulationRecorder(path) if path else None
        except ContactIdError:
            self.destroy_node()
            raise
        reliability = (
            ReliabilityPolicy.RELIABLE if self.settings.reliable else ReliabilityPolicy.BEST_EFFORT
        )
        newest = QoSProfile(depth=1, reliability=reliability)
        kept = QoSProfile(depth=KEPT_IN_LOCKSTEP, reliability=reliability)
        self._publisher = StatePublisher(
            self,
            self.simulated.robot,
            self.simulated.foot_frames,
            kept if self._lockstep else newest,
            mounted=self.sensors.mounted,
            imu_frame=self.settings.imu_frame if self.simulated.has_imu else None,
            truth=GROUND_TRUTH if self.settings.ground_truth_topics == "separate" else "",
        )
        self._shown = (
            RobotPublisher(self, self.simulated.robot, self.settings.urdf)
            if self.settings.publish_robot
            else None
        )
        robot, interface = self.simulated.robot, self.settings.interface
        self._local: LocalFeedback | LinearFeedback | DriveFeedback | None = None
        if interface.robot_side:
            names = LOCAL_GAINS if interface.has_joint_gains else ()
            gains = [self.settings.spread(name, robot.na) for name in names]
            side: Any = loaded(interface.robot_side)
            self._local = side.of(robot, robot.effort_limits, gains)
        self._read_command = messages.reader(robot)
        self._commands = self.create_subscription(
            messages.kind, interface.topic, self._on_command, newest, raw=True
        )
        self._plans = []
        if self.settings.wait_for_plan_s > 0.0 and self._lockstep:
            for kind, topic, take in (
                (JointTrajectory, "joint_trajectory", self._on_plan),
                (Float64MultiArray, "task_goals", self._on_goals),
            ):
                self._plans.append(self.create_subscription(kind, topic, take, 1, raw=True))
        self.create_service(Trigger, "~/reset", self._on_reset)
        self._reset_wanted = False
        self._executor = GuardedExecutor(self, context=self.context)
        self._next_housekeeping_s = 0.0
        self._listened_to = True, True, True
        self._period_ns = round(self.settings.period_s * 1e9)
        self._step_count = 0
        self._command = np.zeros(self.simulated.robot.na)
        self._commands_received = 0
        self._newest_plan_ns: int | None = None
        self._state = self.simulated.state()
        self._terrain = self.settings.terrain
        self._fall = self._make_fall_detector()
        self._lateness = Lateness(self.settings.period_s)
        base_m = self._state.q[:3] if self.settings.floating_base else None
        self._progress = SimulationProgress(self.settings.duration_s, base_m)
        self.late_periods = 0
        self.busy_s = 0.0
        self.ended_by = "shutdown"

    def _make_fall_detector(self) -> FallDetector:
        return FallDetector(self._state, self.settings.floating_base, terrain=self._terrain)

    @property
    def _lockstep(self) -> bool:
        return self.settings.mode == "lockstep"

    @property
    def _going(self) -> bool:
        return self.context.ok() and not self._interrupt.requested

    def run(self) -> None:
        """Simulate until the duration is over, the robot has fallen, or the process is interrupted.

        Raises:
            SimulationError: the simulation diverged, or in lockstep a command or a plan did not arrive in time.
        """
        try:
            # Garbage collection over permanent objects would cost a period now and then.
            scheduling.settle(self.get_logger().warning)
            self._hold()
            if self._lockstep:
                self._run_lockstep()
                self._publisher.wait_until_received(ACKNOWLEDGED_S)
            else:
                self._run_real_time()
        except SimulationError as error:
            self.ended_by = str(error)
            raise
        except ExternalShutdownException:
            pass
        finally:
            self._report()

    # Held in the initial posture

    def _hold(self) -> None:
        """Publish the initial state until the first command, and in lockstep the first plan."""
        count = 0
        announced = -np.inf
        while self._going:
            count += 1
            self._publish(count)
            self._publisher.repeat_clock()
            until = time.monotonic() + HOLD_PERIOD_S
            while time.monotonic() < until:
                self._spin(max(0.0, until - time.monotonic()))
            missing = self._missing_at_start()
            if not missing:
                break
            if time.monotonic() - announced > ANNOUNCE_S:
                announced = time.monotonic()
                self.get_logger().info(f"robot is held, waiting for the first {missing}")
        if self._lockstep and self._going:
            self._settle(count)

    def _settle(self, count: int) -> None:
        """Wait until all states so far are answered: then the next command answers the next state.

        A controller that reads a long plan answers nothing meanwhile, and then everything at once.
        """
        quiet_s = QUIET_S
        for probe in range(PROBES):
            self._drain(quiet_s)
            received, begun_s = self._commands_received, time.monotonic()
            self._publish(count + 1 + probe)
            self._wait_for(partial(self._has_more_than, received), "command")
            answer_s = time.monotonic() - begun_s
            quiet_s = min(max(quiet_s, ANSWERS * answer_s), LONGEST_QUIET_S)
        self._drain(quiet_s)

    def _missing_at_start(self) -> str:
        missing = [] if self._commands_received else [self._commands.topic_name]
        if self._plans and self._newest_plan_ns is None:
            missing.append(" or ".join(each.topic_name for each in self._plans))
        return " and ".join(missing)

    def _drain(self, quiet_s: float) -> None:
        """Take commands until none has arrived for ``quiet_s``."""
        end = time.monotonic() + LONGEST_DRAIN_S
        quiet_until = time.monotonic() + quiet_s
        while self._going and time.monotonic() < min(quiet_until, end):
            if self._take_command():
                quiet_until = time.monotonic() + quiet_s
            time.sleep(POLL_S)

    # The two modes

    def _run_real_time(self) -> None:
        """Step with the newest command each time the wall clock has advanced by a period."""
        period_s = self.settings.wall_period_s
        deadline = time.perf_counter()
        while self._going and not self._is_over():
            if self._reset_wanted:
                self._begin_anew()
                deadline = time.perf_counter()
            deadline += period_s
            now = time.perf_counter()
            if now < deadline:
                time.sleep(deadline - now)
            elif now - deadline > period_s:
                # Lost time is not caught up: later states would be published in a burst.
                self.late_periods += int((now - deadline) / period_s)
                deadline = now
            start = time.perf_counter()
            self._lateness.period(self._take_command())
            self._step()
            self._publish()
            self.busy_s += time.perf_counter() - start
            self._keep_house()

    def _has_more_than(self, count: int) -> bool:
        """Whether more commands have been received."""
        return self._commands_received > count

    def _begin_anew(self) -> None:
        """Restart: initial posture, time 0, held until the next command."""
        self._reset_wanted = False
        self._take_command()  # a command of before is forgotten
        place(self.simulated, self.settings)
        self.sensors.noisy.reset()
        self._state = self.simulated.state()
        self._fall = self._make_fall_detector()
        self._command = np.zeros(self.simulated.robot.na)
        if self._local is not None:
            self._local.forget()
        self._commands_received = self._step_count = 0
        self._publisher.begin_anew()
        if self._shown is not None:
            self._shown.begin_anew()
        self._hold()

    def _run_lockstep(self) -> None:
        """Step when the command for the last state has arrived."""
        while self._going and not self._is_over():
            self._wait_for_plan()
            start = time.perf_counter()
            self._step()
            while self._take_command():  # the next state is not published yet
                pass
            received = self._commands_received
            self._publish()
            self.busy_s += time.perf_counter() - start
            self._wait_for(lambda: self._commands_received > received, "command")
            self._keep_house()

    def _wait_for_plan(self) -> None:
        """In lockstep: wait until the newest plan begins no earlier than ``wait_for_plan_s`` before this period."""
        if not self._plans:
            return
        horizon_ns = round(self.settings.wait_for_plan_s * 1e9)
        next_ns = (self._step_count + 1) * self._period_ns

        def is_close_enough() -> bool:
            return next_ns <= (self._newest_plan_ns or 0) + horizon_ns

        if not is_close_enough():
            self._wait_for(is_close_enough, "plan that is new enough", spin=True)

    def _wait_for(self, is_there: Callable[[], bool], what: str, spin: bool = False) -> None:
        """Take commands until ``is_there``; SimulationError after COMMAND_TIMEOUT_S.

        spin: run the executor instead; polling costs a third of that, but serves commands only.
        """
        start = time.monotonic()
        while self._going:
            if not spin:
                self._take_command()
            if is_there():
                return
            waited_s = time.monotonic() - start
            if waited_s > COMMAND_TIMEOUT_S:
                raise SimulationError(
                    f"no {what} for {waited_s:.1f} s of wall time at "
                    f"{self._step_count * self.settings.period_s:.3f} s; lockstep ends here"
                )
            if spin or waited_s > HOUSEKEEPING_S:
                self._publisher.repeat_clock()
                self._spin(0.01)
            else:
                time.sleep(POLL_S)

    def _is_over(self) -> bool:
        """Whether the run ends here: after a fall, or after ``duration_s``."""
        if self.settings.stop_when_fallen and self._fall.fell_time_s is not None:
            self.ended_by = "fall"
            return True
        duration_s = self.settings.duration_s
        if duration_s > 0.0 and self._step_count >= round(duration_s / self.settings.period_s):
            self.ended_by = "duration"
            return True
        return False

    # One period

    def _step(self) -> None:
        """Simulate one period under the last command; record it and log a fall."""
        before = self._state
        if self._local is not None:
            self._command = self._local.answer(self.simulated.robot, before)
        command = self._command
        refused = self.simulated.refused_commands
        self._state = self.simulated.step(command)
        self._step_count += 1
        if self.simulated.refused_commands > refused:
            self._command = np.zeros(self.simulated.robot.na)
            command = self._command
            self.get_logger().warning(
                "command is not finite or of wrong size, zero is applied instead",
                throttle_duration_sec=1.0,
            )
        if self._recorder is not None:
            self._recorder.add(before, command, self.simulated.contact_forces())
        if self._fall.fell_time_s is None and self._fall.has_fallen(self._state):
            self.get_logger().error(
                f"the robot fell at {self._fall.fell_time_s:.3f} s{self._lateness.words()}"
            )
        if line := self._progress.line(self._step_count * self.settings.period_s):
            self.get_logger().info(line)

    def _publish(self, extra_ns: int = 0) -> None:
        """Publish state and sensors with the simulation's time, plus ``extra_ns``."""
        now_ns = self._step_count * self._period_ns + extra_ns
        imu, mounted, forces = self._listened_to
        self._publisher.publish(
            now_ns,
            self._state,
            self.sensors.read(self._state, imu, mounted),
            self.simulated.foot_forces() if forces else None,
        )
        if self._shown is not None:
            self._shown.publish(now_ns, self._state.q)

    # Messages

    def _on_command(self, message: bytes) -> None:
        """Take a command: torques or, with feedback on the robot's side, its set-points."""
        try:
            command = self._read_command(message)
        except StateError as error:
            self._refuse(error)
            return
        if self._local is None:
            self._command = command
        else:
            self._local.follow(command, self._state.time_s)
        self._commands_received += 1

    def _refuse(self, error: StateError) -> None:
        self.simulated.refused_commands += 1
        self.get_logger().warning(
            f"command refused: {error}; the one before still acts", throttle_duration_sec=1.0
        )

    def _on_plan(self, message: bytes) -> None:
        self._note_plan(stamp_ns(message))

    def _on_goals(self, message: bytes) -> None:
        with contextlib.suppress(TrajectoryError, StateError):  # the controller refuses them, too
            self._note_plan(round(1e9 * (task_goals(message).start_s or 0.0)))

    def _note_plan(self, start_ns: int) -> None:
        """Note a plan; start 0 means now."""
        planned_ns = start_ns or self._step_count * self._period_ns
        self._newest_plan_ns = max(planned_ns, self._newest_plan_ns or 0)

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Serve ~/reset: back to time 0 after this period; refused in lockstep."""
        response.success = not self._lockstep
        if self._lockstep:
            response.message = "a run in lockstep cannot be reset"
        else:
            self._reset_wanted = True
            response.message = "at time 0, held until the next command"
        return response

    def _take_command(self) -> bool:
        """Take a waiting command without the executor; return whether there was one."""
        return bool(self._executor.incidents.guarded("command", hand_on_newest, self._commands))

    def _spin(self, timeout_s: float) -> None:
        self._executor.spin_once(timeout_sec=timeout_s)

    def _keep_house(self) -> None:
        """Now and then serve what is not a command: parameters, plans."""
        now = time.monotonic()
        if now >= self._next_housekeeping_s:
            self._next_housekeeping_s = now + HOUSEKEEPING_S
            self._listened_to = self._publisher.listened_to()
            self._spin(0.0)

    # The end

    def _report(self) -> None:
        """Save the recording, and log how the run ended."""
        steps = self._step_count
        cost_us = 1e6 * self.busy_s / max(1, steps)
        if self._recorder is not None:
            self._save()
        if self.context.ok():
            self.get_logger().info(
                f"ended by {self.ended_by} after {steps * self.settings.period_s:.3f} s"
                f"{self._progress.outcome(self._state.q[:3], self._fall.fell_time_s)}: "
                f"{steps} periods of {cost_us:.0f} us work, {self.late_periods} late, "
                f"{self.simulated.refused_commands} commands refused"
            )

    def _save(self) -> None:
        """Save the record with what its evaluation needs: feet, joints, friction, weight, fall."""
        fell_time_s = self._fall.fell_time_s
        assert self._recorder is not None
        self._recorder.save(
            foot_names=np.array(self.simulated.contact_names),
            foot_radii_m=np.array([foot.radius_m for foot in self.simulated.feet]),
            joint_names=np.array(self.simulated.robot.joint_names),
            dt=self.settings.period_s,
            friction_coefficient=self.settings.friction_coefficient,
            weight_n=self.simulated.robot.weight,
            urdf=self.settings.urdf,
            floating_base=self.settings.floating_base,
            fell=fell_time_s is not None,
            fell_time_s=np.nan if fell_time_s is None else fell_time_s,
            late_periods=self.late_periods,
            refused_commands=self.simulated.refused_commands,
            ended_by=self.ended_by,
        )


def main(args: list[str] | None = None) -> int:
    """Run the node; 0, or 1 after an error of which one line has been printed."""
    return run_by_itself("simulated_robot", SimulatedRobot, args)


if __name__ == "__main__":
    sys.exit(main())
