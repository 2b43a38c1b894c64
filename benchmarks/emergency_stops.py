"""How long an emergency stop takes while a sender floods controller and command watchdog.

    python benchmarks/emergency_stops.py --stops 340 --rt-priority 70

The two nodes run as processes of their own; this one stands in for the robot, with states at 200 Hz, and
presses the button: by the watchdog's service, by the controller's, and by the topic, `true` each
`PRESS_S` until torque is zero. From the first press to the arrival of zero torque, or of damping where the
flood releases the stop in the same moment; joints are said to move, so that damping is not zero. Another process floods both nodes meanwhile, as `FLOODS` say; where so much
comes that hardly a good state does, or commands of a second commander, the controller has stopped by itself,
and it is the watchdog's damping that has to end; the controller's service is then timed until the stop is on
the disk. Ends with 1 where one of a thousand took longer than `LIMIT_S`.

In a flood a request of this process, to release the stop before or to activate again, may be served after the
next stop was pressed, and torque then comes by right. So a stop that torque follows while such a request had
no answer yet says nothing; it is made again, and the table counts how often.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import checkout  # noqa: F401  before what is not installed
import numpy as np
from deaths import BACK_S, ZERO_NM, Robot
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.plans.trajectories import JointTrajectory as WholePlan
from contact_id_controller.ros.plan_messages import joint_message, stance_message
from contact_id_controller.runs.ros_system import RosSystem
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.robot_files import robots
from experiments.faults.fuzz_world import STOP_TOPIC, FuzzWorld
from experiments.faults.nodes import CONTROLLER, WATCHDOG

LIMIT_S = 0.02
PRESS_S = 0.005
PATIENCE_S = 5.0
CONNECTED_S, HELD_S = 1.0, 0.05
"""An attacker is known to all after so long; a stop is looked at for so long."""

SPEED_RAD_S, COMMANDED_NM = 0.05, 0.2
"""Joints are said to move so fast, so that damping is not zero; torque of a command that holds the robot."""

FRESH_S, AGAIN_S = 0.01, 0.25
"""How old a command may be that is said to flow; after how long a request is made again."""
REPEATED = 0.5
"""Largest share of stops that may be made again."""
WAYS = (WATCHDOG, CONTROLLER, STOP_TOPIC)

Send = Callable[[], None]


def publishing(node, kind: type, topic: str, message) -> Send:
    """Sends one message again and again."""
    publisher, data = node.create_publisher(kind, topic, 1), serialize_message(message)
    return lambda: publisher.publish(data)


def large(node) -> list[Send]:
    """Plans and schedules of 10,000 points, states of 20,000 joints."""
    point = JointTrajectoryPoint(positions=[0.0] * 12, velocities=[0.0] * 12)
    plan = JointTrajectory(joint_names=["a"] * 12, points=[point] * 10_000)
    return [
        publishing(node, JointTrajectory, "joint_trajectory", plan),
        publishing(node, JointTrajectory, "contact_schedule", plan),
        publishing(node, JointState, "joint_states", JointState(name=["j"] * 20_000)),
    ]


def long_plans(node) -> list[Send]:
    """Plans and schedules of 9,000 points that are in order: each is read and judged whole."""
    section = ParameterFile(robots()["quadruped"]).section(CONTROLLER)
    joints, feet = section["joints"], section["contact_frames"]
    times_s, still = 1e-3 * np.arange(1, 9_001), np.zeros((9_000, len(joints)))
    stance = np.ones((9_000, len(feet)))
    return [
        functools.partial(node.create_publisher(JointTrajectory, topic, 1).publish, data)
        for topic, data in (
            ("joint_trajectory", joint_message(WholePlan(joints, times_s, still, still), 0)),
            ("contact_schedule", stance_message(ContactSchedule(feet, times_s, stance), 0)),
        )
    ]


def small(node) -> list[Send]:
    """Empty plans and schedules."""
    topics = "joint_trajectory", "contact_schedule"
    return [publishing(node, JointTrajectory, topic, JointTrajectory()) for topic in topics]


def commands(node) -> list[Send]:
    """Commands of another commander, good and of 100,000 numbers."""
    return [
        publishing(node, Float64MultiArray, "commands_in", Float64MultiArray(data=data))
        for data in ([0.1] * 12, [0.1] * 100_000)
    ]


def requests(node) -> list[Send]:
    """Parameters of 1,000 numbers to be set and emergency stops of the controller to be released."""
    setting = node.create_client(SetParameters, f"/{CONTROLLER}/set_parameters")
    releasing = node.create_client(SetBool, f"/{CONTROLLER}/emergency_stop")
    value = Parameter("joint_position_gain", value=[1.0] * 1000).to_parameter_msg()

    def ask() -> None:
        setting.remove_pending_request(
            setting.call_async(SetParameters.Request(parameters=[value]))
        )

    def release() -> None:
        releasing.remove_pending_request(releasing.call_async(SetBool.Request(data=False)))

    return [ask, release]


def denials(node) -> list[Send]:
    """`false` on the topic of the emergency stop."""
    return [publishing(node, Bool, STOP_TOPIC, Bool(data=False))]


def states(node) -> list[Send]:
    """Empty ones, and of another robot: each is refused, and torque is on its way to the safe output."""
    wild = JointState(name=["LF_HAA", "LF_HFE"], velocity=[1e30, -1e30])
    return [
        publishing(node, JointState, "joint_states", JointState()),
        publishing(node, Odometry, "odometry", Odometry()),
        publishing(node, JointState, "joint_states", wild),
    ]


class Flood(NamedTuple):
    """What is sent, and the pause after each round of it, s; 0: as much as a core can send.

    ways: those that are tried.  least_nm: torque that there has to be before a stop, N·m.
    left_nm: what a stop may leave: none, or damping where the flood releases it at once.
    kept: ways that end no torque: their stops count from when they are on the disk.
    """

    senders: Callable[[Any], list[Send]] | None
    pause_s: float = 0.001
    ways: tuple[str, ...] = WAYS
    least_nm: float = COMMANDED_NM
    left_nm: float = ZERO_NM
    kept: tuple[str, ...] = ()


def endless(senders: Callable[[Any], list[Send]]) -> Flood:
    """As much as a core can send: the controller commands no more."""
    return Flood(senders, 0.0, least_nm=ZERO_NM, kept=(CONTROLLER,))


FLOODS = {
    "nothing": Flood(None),
    "large messages": Flood(large, 0.01),
    "long plans": Flood(long_plans, 0.01),
    "small messages": Flood(small, 0.0),
    "requests": Flood(requests, left_nm=COMMANDED_NM),
    "denials": Flood(denials, 0.0),
    "states": endless(states),
    "commands": endless(commands),
}


def flood(name: str, environment: Mapping[str, str], attacks: Event) -> None:
    """Attack until the parent is gone; ``attacks`` is set when all hear it."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # not that of the parent
    parent, system = os.getppid(), RosSystem("attacker", environment)
    senders, pause_s = FLOODS[name].senders(system.node), FLOODS[name].pause_s
    time.sleep(CONNECTED_S)
    attacks.set()
    for send in itertools.cycle(senders):
        send()
        if send is senders[-1]:
            time.sleep(pause_s)
            if os.getppid() != parent:
                return


@contextlib.contextmanager
def flooded(name: str, robot: Robot) -> Iterator[None]:
    """A process attacks, from the beginning to the end."""
    if FLOODS[name].senders is None:
        yield
        return
    context = multiprocessing.get_context("spawn")
    attacks = context.Event()
    process = context.Process(
        target=flood, args=(name, dict(robot.world.environment), attacks), daemon=True
    )
    process.start()
    try:
        if not robot.spin(BACK_S, attacks.is_set):
            raise SystemExit("the attacker does not begin")
        yield
        if not process.is_alive():
            raise SystemExit("the attacker has ended")
    finally:
        process.kill()
        process.join()


def torque_flows(robot: Robot, least_nm: float) -> bool:
    """Whether the last command is more than so much, and fresh: amid bad states it comes and goes."""
    last = robot.given[-1] if robot.given else None
    return last is not None and last.torque_nm > least_nm and last.at_s > time.monotonic() - FRESH_S


def command_again(robot: Robot, least_nm: float) -> None:
    """Release both stops, then activate the controller, until torque flows."""
    world, end_s = robot.world, time.monotonic() + BACK_S
    while True:
        world.release_stops()
        robot.spin(AGAIN_S, lambda: not latched(robot))
        world.deactivate()
        world.activate()
        if robot.spin(AGAIN_S, lambda: torque_flows(robot, least_nm)):
            robot.spin(AGAIN_S, lambda: not unanswered(robot))
            if robot.spin(AGAIN_S, lambda: torque_flows(robot, least_nm)):
                return
        if time.monotonic() > end_s:
            raise SystemExit(f"no torque any more:\n{robot.last_words()}")


def unanswered(robot: Robot) -> bool:
    """Whether a request has no answer yet: it may act at any time."""
    return any(map(robot.world.waiting, robot.world.asked))


def latched(robot: Robot) -> bool:
    """Whether a node has an emergency stop on its disk."""
    return any((robot.world.folder / "state").glob("*.emergency_stop"))


def stop(robot: Robot, way: str, flood: Flood) -> float | None:
    """Time from the first press of the button until what is left then arrives, s; zero never comes by damping.

    After it no command comes any more, or it was no stop. None: it says nothing, an earlier request was
    still on its way.
    """
    command_again(robot, flood.least_nm)
    world, late = robot.world, unanswered(robot)
    robot.given.clear()
    begun_s = press_s = time.monotonic()

    def stopped() -> bool:
        nonlocal press_s
        if way == STOP_TOPIC and time.monotonic() >= press_s:
            world.doors[STOP_TOPIC].publisher.publish(Bool(data=True))
            press_s += PRESS_S
        return latched(robot) if way in flood.kept else first() is not None

    def first() -> int | None:
        """Place of the first command with nothing more than what is left."""
        places = (k for k, each in enumerate(robot.given) if each.torque_nm <= flood.left_nm)
        return next(places, None)

    if way != STOP_TOPIC:
        world.ask(f"/{way}/emergency_stop", SetBool.Request(data=True), SetBool)
    if not robot.spin(PATIENCE_S, stopped):
        print(f"no stop by {way}:\n{robot.last_words()}", file=sys.stderr)
        return np.inf
    if way in flood.kept:
        return time.monotonic() - begun_s
    robot.spin(HELD_S)
    begin = first()
    commanded = any(each.torque_nm > COMMANDED_NM for each in robot.given[begin:])
    if commanded and late:
        return None
    if commanded:
        print(f"torque after a stop by {way}:\n{robot.last_words()}", file=sys.stderr)
    return np.inf if commanded else robot.given[begin].at_s - begun_s


def stops(robot: Robot, way: str, number: int, flood: Flood) -> tuple[list[float], int]:
    """So many times of ``stop``, and how many were made again."""
    taken, again = [], 0
    while len(taken) < number:
        time_s = stop(robot, way, flood)
        if time_s is not None:
            taken.append(time_s)
        else:
            again += 1
            if again > REPEATED * number:
                raise SystemExit(f"{again} stops by {way} said nothing:\n{robot.last_words()}")
    return taken, again


def main() -> int:
    """Print a row for each flood and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stops", type=int, default=340, help="in each flood, each way")
    parser.add_argument("--floods", nargs="+", choices=FLOODS, default=list(FLOODS), metavar="F")
    parser.add_argument(
        "--rt-priority", type=int, default=0, help="of both nodes, of this process one less"
    )
    given = parser.parse_args()
    times_s: dict[str, list[float]] = {way: [] for way in WAYS}
    with (
        tempfile.TemporaryDirectory() as folder,
        FuzzWorld(Path(folder), rt_priority=given.rt_priority, speed_rad_s=SPEED_RAD_S) as world,
    ):
        world.begin()
        robot = Robot(world)
        now = datetime.datetime.now(datetime.timezone.utc)
        print(f"{now:%Y-%m-%d %H:%M} UTC, real-time priority {given.rt_priority}\n")
        print(
            "| flood | way | stops, made again | median, ms | 99 of 100 | largest |\n"
            "|---|---|---|---|---|---|"
        )
        for name in given.floods:
            with flooded(name, robot):
                for way in FLOODS[name].ways:
                    taken, again = stops(robot, way, given.stops, FLOODS[name])
                    if FLOODS[name].senders is not None:
                        times_s[way] += taken
                    print(
                        f"| {name} | {way} | {given.stops}, {again} | {figures(taken, 50, 99, 100)} |",
                        flush=True,
                    )
        for way, taken in times_s.items():
            print(f"| any | {way} | {len(taken)} | {figures(taken, 50, 99, 100)} |")
        worst = {way: at(taken, 99.9) for way, taken in times_s.items()}
        print(
            "\n999 of 1000, ms:",
            ", ".join(f"{way} {1e3 * at_s:.1f}" for way, at_s in worst.items()),
        )
        for line in (
            each
            for name in (CONTROLLER, WATCHDOG)
            for each in world.nodes[name].output().splitlines()
        ):
            if "Traceback" in line:
                print(line)
    return int(max(worst.values()) > LIMIT_S)


def figures(times_s: list[float], *percentages: float) -> str:
    """As cells of a table, ms."""
    return " | ".join(f"{1e3 * at(times_s, each):.1f}" for each in percentages)


def at(times_s: list[float], percentage: float) -> float:
    """The time that so many of 100 do not exceed, s; one of them, so that infinity stays."""
    return float(np.percentile(times_s, percentage, method="higher"))


if __name__ == "__main__":
    sys.exit(main())
