"""Faults of what any peer may ask and send: parameters, messages of any size, plans of any kind."""

from __future__ import annotations

import array
import functools
import threading
import time
from collections.abc import Callable

import numpy as np
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.ros.plan_messages import base_message, joint_message, stance_message
from experiments.faults.inputs import emergency_stop
from experiments.faults.nodes import CONTROLLER, WATCHDOG
from experiments.faults.row import (
    WALKS_AGAIN,
    WALKS_ON,
    Fault,
    Observed,
    ending,
    when_asked,
    when_queued,
)
from experiments.faults.world import FaultWorld

NO_TYPE = 77
NUMBERS = 1_000_000
POINT_S = 1e-4
"""Between two points of a large plan."""
FLOOD_POINTS, FLOOD_PERIOD_S, FLOOD_S = 9_000, 0.01, 0.5
SENDINGS, SENDING_S = 5, 0.05
PAST_S, LONG_PAST_S, HOUR_S = 100.0, 1000.0, 3600.0
LONG_S = 90.0
"""Patience with an answer that takes work."""


# Parameters


def _number(name: str, value: float) -> ParameterMessage:
    kind = ParameterType.PARAMETER_DOUBLE
    return ParameterMessage(name=name, value=ParameterValue(type=kind, double_value=value))


def _text(name: str, value: str) -> ParameterMessage:
    kind = ParameterType.PARAMETER_STRING
    return ParameterMessage(name=name, value=ParameterValue(type=kind, string_value=value))


def _numbers(name: str, values: array.array) -> ParameterMessage:
    kind = ParameterType.PARAMETER_DOUBLE_ARRAY
    return ParameterMessage(name=name, value=ParameterValue(type=kind, double_array_value=values))


def _asked(world: FaultWorld, parameters: list[ParameterMessage], also: str = "") -> Observed:
    """All of them must be refused, and one that is as it was still be taken; also: what else is wrong."""
    reasons = world.refusals(parameters)
    name = "joint_position_gain"
    good = world.set_later({name: world.parameters[CONTROLLER][name]})
    world.need(good.done, "answer to a good parameter", LONG_S)
    taken, ended = reasons.count(""), ending(world)
    if taken:
        ended = f"{taken} taken"
    elif not all(result.successful for result in good.result().results):
        ended = "a good one is refused afterwards"
    refused = f"{len(reasons) - taken} of {len(reasons)} refused"
    return Observed(None, also or ended, refused)


def malformed_requests(world: FaultWorld) -> Observed:
    value = ParameterValue(type=NO_TYPE)
    names = ("joint_position_gain", "period_s", "no_such", "use_sim_time")
    also = "the watchdog takes parameters" if world.watchdog_takes_parameters else ""
    return _asked(world, [ParameterMessage(name=name, value=value) for name in names], also)


def nameless_parameters(world: FaultWorld) -> Observed:
    return _asked(world, [ParameterMessage(), _number("", 1.0), _text("", "")])


def record_paths(world: FaultWorld) -> Observed:
    paths = [world.folder / name for name in ("parameters.yaml", "foreign.npz")]
    before = paths[0].read_bytes()
    observed = _asked(world, [_text("record_path", str(path.resolve())) for path in paths])
    written = paths[0].read_bytes() != before or paths[1].exists()
    return observed._replace(ended="a file was written") if written else observed


def raised_limits(world: FaultWorld) -> Observed:
    values = [np.inf, np.nan, 1e3, 1.01 * world.limits.max()]
    ceiling = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
    return _asked(
        world,
        [
            *(_numbers("effort_limits_nm", array.array("d", [value])) for value in values),
            ParameterMessage(name="effort_above_description", value=ceiling),
            _numbers("joint_position_gain", array.array("d", [1e300])),
            _numbers("effort_rate_limits_nm_s", array.array("d", [np.nan])),
        ],
    )


# Messages of any size


def _standing_plan(world: FaultWorld, points: int) -> bytes:
    """A plan of so many points, which holds the posture."""
    joints = world.relay.joints
    times = POINT_S * np.arange(1, points + 1)
    place = np.tile(world.relay.position, (points, 1))
    plan = JointTrajectory(joints, times, place, np.zeros_like(place))
    data = joint_message(plan, _after(world, 0.01))
    if not world.walks_on(0.05):  # it has waited for us
        world.begin()
    return data


def stop_behind_plan(world: FaultWorld, points: int) -> Observed:
    world.plans.publish(_standing_plan(world, points))
    world.spin(0.002)
    return _while_it_walks(world, emergency_stop)


def stop_in_flood(world: FaultWorld) -> Observed:
    """Plans come without end, as fast as a thread beside the robot sends them."""
    data, ended = _standing_plan(world, FLOOD_POINTS), threading.Event()

    def send() -> None:
        while not ended.wait(FLOOD_PERIOD_S):
            world.plans.publish(data)

    flood = threading.Thread(target=send, daemon=True)
    flood.start()
    try:
        world.spin(FLOOD_S)
        begun_s = time.monotonic()
        stopped = world.stop(CONTROLLER)
        reaction_s = world.until_safe(begun_s)
        world.spin(FLOOD_S)
        kept = world.stays_safe(begun_s)
    finally:
        ended.set()
        flood.join()
    world.begin()
    return Observed(reaction_s, WALKS_AGAIN if stopped and kept else f"{stopped=} {kept=}")


def stop_behind_numbers(world: FaultWorld) -> Observed:
    """The watchdog's: the controller converts all of them before anybody could refuse."""
    asked = world.ask_later([_numbers("joint_position_gain", array.array("d", bytes(8 * NUMBERS)))])
    world.spin(0.002)
    return _while_it_walks(world, functools.partial(_watchdog_stops, asked=asked))


def _watchdog_stops(world: FaultWorld, asked) -> Observed:
    begun_s = time.monotonic()
    stopped = world.stop(WATCHDOG)
    reaction_s = world.until_safe(begun_s)
    world.need(asked.done, "answer to so many numbers", LONG_S)
    refused = not any(result.successful for result in asked.result().results)
    kept = world.stays_safe(begun_s)
    world.relay.group.deactivate()
    released = world.stop(WATCHDOG, engage=False)
    world.begin()
    well = stopped and refused and kept and released
    return Observed(
        reaction_s, WALKS_AGAIN if well else f"{stopped=} {refused=} {kept=} {released=}"
    )


def _while_it_walks(world: FaultWorld, act) -> Observed:
    """A stop of a robot that has no torque already would show nothing."""
    if world.relay.safe[-1]:
        world.begin()
        return Observed(None, "without torque before the stop")
    return act(world)


# Plans


def _after(world: FaultWorld, ahead_s: float) -> int:
    """Stamp, ns, of so long after now."""
    return round((world.relay.stamp_s + ahead_s) * 1e9)


def _sent(
    world: FaultWorld, make: Callable[[], list[tuple[Publisher, bytes]]], *reasons: str
) -> Observed:
    """Send each some times; of each reason some must be refused: a newer plan replaces one that waits."""
    names = [f"refused {reason}" for reason in reasons]
    make()  # which may compile: the robot waits for us
    if not world.walks_on(0.05):
        world.begin()
    messages = make()
    before = world.figures(CONTROLLER)
    for publisher, message in messages * SENDINGS:
        publisher.publish(message)
        world.spin(SENDING_S)
    after = world.figures(CONTROLLER)
    counts = [int(after.get(name, 0)) - int(before.get(name, 0)) for name in names]
    ended, few = ending(world), min(counts) < SENDINGS
    told = ", ".join(f"{count} `{reason}`" for count, reason in zip(counts, reasons))
    return Observed(
        None, f"{told} refused" if few else ended, f"{told} of {len(messages) * SENDINGS}"
    )


def joint_plans(world: FaultWorld) -> Observed:
    names, first = world.relay.joints, np.eye(len(world.relay.joints))[0]

    def make() -> list[tuple[Publisher, bytes]]:
        here = np.tile(world.relay.position, (2, 1))
        still, times = np.zeros_like(here), [0.05, 0.1]
        plans = (
            JointTrajectory(names, times, here + 1e300 * first, still),
            JointTrajectory(names, times, here, still, still + 1e6 * first),
            JointTrajectory(names, times, here + 7.0 * first, still),
            JointTrajectory(names, [1e-9, 0.1], here + 0.3 * first, still),
        )
        return [(world.plans, joint_message(plan, _after(world, 0.01))) for plan in plans]

    return _sent(world, make, "joint_trajectory")


def _base(world: FaultWorld, place_m: float = 0.0) -> BaseTrajectory:
    """The base where it is, or farther along x."""
    pose = np.tile(world.relay.base, (2, 1))
    pose[:, 0] += place_m
    still = np.zeros((2, 3))
    return BaseTrajectory([0.0, 1.0], pose[:, :3], pose[:, 3:], still, still)


def _lifted(world: FaultWorld) -> ContactSchedule:
    """All feet in the air."""
    feet = world.parameters[CONTROLLER]["contact_frames"]
    return ContactSchedule(feet, [0.0, 1.0], np.zeros((2, len(feet))))


def base_plans(world: FaultWorld) -> Observed:
    def make() -> list[tuple[Publisher, bytes]]:
        here = _base(world)
        messages = (
            base_message(here, _after(world, -PAST_S)),
            base_message(here, _after(world, HOUR_S)),
            base_message(_base(world, 1e200), 0),
            base_message(_base(world, 1000.0), 0),
        )
        return [(world.base_plans, message) for message in messages]

    return _sent(world, make, "base_trajectory")


def schedules(world: FaultWorld) -> Observed:
    def make() -> list[tuple[Publisher, bytes]]:
        stamps = _after(world, -LONG_PAST_S), _after(world, HOUR_S)
        return [(world.schedules, stance_message(_lifted(world), stamp)) for stamp in stamps]

    return _sent(world, make, "contact_schedule")


def nameless_plans(world: FaultWorld) -> Observed:
    def make() -> list[tuple[Publisher, bytes]]:
        plan = JointTrajectory([], [0.05, 0.1], np.zeros((2, 0)))
        nothing = serialize_message(JointTrajectoryMessage())
        return [(world.plans, joint_message(plan, _after(world, 0.01))), (world.plans, nothing)]

    return _sent(world, make, "joint_trajectory")


FAULTS = (
    Fault(
        "parameter requests without a type (77)",
        "each refused; the watchdog takes none",
        None,
        WALKS_ON,
        malformed_requests,
    ),
    Fault("parameters without a name", "each refused", None, WALKS_ON, nameless_parameters),
    Fault(
        "`record_path` set by a peer", "refused, no file is written", None, WALKS_ON, record_paths
    ),
    Fault(
        "`effort_limits_nm` raised above the URDF's", "each refused", None, WALKS_ON, raised_limits
    ),
    *(
        Fault(
            f"emergency stop behind a plan of {points:,} points",
            "zero torque until it is released",
            when_asked,
            WALKS_AGAIN,
            functools.partial(stop_behind_plan, points=points),
        )
        for points in (10_000, 100_000)
    ),
    Fault(
        f"emergency stop in a flood of plans of {FLOOD_POINTS:,} points",
        "zero torque until it is released",
        when_queued,
        WALKS_AGAIN,
        stop_in_flood,
    ),
    Fault(
        f"emergency stop of the watchdog behind a parameter of {NUMBERS:,} numbers",
        "zero torque until it is released",
        when_asked,
        WALKS_AGAIN,
        stop_behind_numbers,
    ),
    Fault(
        "plans that no joint can follow: 1e300 rad, 1e6 rad/s²",
        "refused, the plan before is followed",
        None,
        WALKS_ON,
        joint_plans,
    ),
    Fault(
        "base plans 100 s ago, 1 h ahead, 1e200 m away",
        "refused, or not followed before their time",
        None,
        WALKS_ON,
        base_plans,
    ),
    Fault(
        "contact schedules of 1,000 s ago, 1 h ahead",
        "refused, or not followed before their time",
        None,
        WALKS_ON,
        schedules,
    ),
    Fault("plans that name no joint", "refused", None, WALKS_ON, nameless_plans),
)
