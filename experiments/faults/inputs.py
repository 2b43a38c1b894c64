"""Faults of what users and other nodes send: plans, parameters, commands, the emergency stop."""

from __future__ import annotations

import math
import time

import numpy as np
from builtin_interfaces.msg import Duration
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from experiments.faults.nodes import CONTROLLER, FAIL, RAISE, WATCHDOG
from experiments.faults.row import (
    WALKS_AGAIN,
    WALKS_ON,
    Fault,
    Observed,
    ending,
    when_asked,
    when_failing,
    when_queued,
)
from experiments.faults.world import FaultWorld

INJECTED, INJECTION_PERIOD_S = 20, 0.04
PARAMETER_SETS, PARAMETER_SETS_S, ANSWERS_S = 1000, 10.0, 90.0
SECOND_COMMANDER_S = 2.0
QUEUED = 30
CHANGE_EVERY = 5
"""So many times in a row a parameter is set to the same value. Each change holds the torque back
for a few milliseconds, and simulated time is slow."""


# Plans

SENDINGS = 3


def _plan(world: FaultWorld, points: int = 2) -> JointTrajectory:
    """A plan in order: the posture of now for the next 0.1 s."""
    joints = world.relay.joints
    message = JointTrajectory(joint_names=list(joints))
    ahead_ns = round((world.relay.stamp_s + 0.01) * 1e9)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(ahead_ns, 10**9)
    for k in range(points):
        point = JointTrajectoryPoint(time_from_start=Duration(nanosec=50_000_000 * (k + 1)))
        point.positions, point.velocities = [0.1] * len(joints), [0.0] * len(joints)
        message.points.append(point)
    return message


def _no_points(message):
    message.points = []


def _unknown_joint(message):
    message.joint_names[0] = "tail"


def _missing_joint(message):
    message.joint_names.pop()
    for point in message.points:
        point.positions.pop(), point.velocities.pop()


def _not_finite(message):
    message.points[0].positions[0] = math.nan


def _times_not_increasing(message):
    message.points[1].time_from_start = message.points[0].time_from_start


def _wrong_size(message):
    message.points[1].positions.pop()


def _accelerations_alone(message):
    for point in message.points:
        point.accelerations, point.velocities = point.velocities, []


def _in_the_past(message):
    message.header.stamp.sec, message.header.stamp.nanosec = 0, 1


MALFORMED = (
    _no_points,
    _unknown_joint,
    _missing_joint,
    _not_finite,
    _times_not_increasing,
    _wrong_size,
    _accelerations_alone,
    _in_the_past,
)
"""Each spoils a plan in its own way."""


def malformed_plans(world: FaultWorld) -> Observed:
    name = "refused joint_trajectory"
    before = int(world.figures(CONTROLLER).get(name, 0))
    sent = MALFORMED * SENDINGS
    for spoil in sent:
        message = _plan(world)
        spoil(message)
        world.plans.publish(message)
        world.spin(0.05)
    refused = int(world.figures(CONTROLLER).get(name, 0)) - before
    ended = ending(world)
    # The controller keeps one plan: the planner's next one may overtake one of these.
    few = refused < len(sent) - len(MALFORMED)
    return Observed(
        None,
        f"{refused} refused" if few else ended,
        f"{refused} of {len(sent)} arrived and were refused",
    )


# Parameters


def _valid_sets(world: FaultWorld, count: int) -> list[dict]:
    """Gains, friction and damping: as they are, and each ``CHANGE_EVERY``-th time another value."""
    own = world.parameters[CONTROLLER]
    tuned = [
        name
        for name in (
            "joint_position_gain",
            "joint_velocity_gain",
            "base_linear_position_gain",
            "base_angular_velocity_gain",
            "friction_coefficient",
            "damping_nm_s_rad",
        )
        if name in own
    ]
    sets = []
    for k in range(count):
        name, turn = tuned[k % len(tuned)], k // len(tuned)
        factor = 0.95 if turn % (2 * CHANGE_EVERY) >= CHANGE_EVERY else 1.0
        sets.append({name: (factor * np.array(own[name])).tolist()})
    return sets


def _invalid_sets(count: int) -> list[dict]:
    sets = [
        {"state_timeout_s": -1.0},
        {"state_timeout_s": math.nan},
        {"damping_nm_s_rad": [0.1, 0.2]},
        {"damping_nm_s_rad": [math.inf]},
        {"damping_nm_s_rad": "much"},
        {"safe_output": "none"},
        {"joint_position_gain": [-1.0]},
        {"period_s": 0.002},
        {"urdf": "other.urdf"},
        {"joints": ["tail"]},
    ]
    return [sets[k % len(sets)] for k in range(count)]


def parameter_sets(world: FaultWorld) -> Observed:
    """A flood; while it lasts and until all is answered the robot must walk."""
    half = PARAMETER_SETS // 2
    pairs = zip(_valid_sets(world, half), _invalid_sets(half))
    wanted = [(values, good) for pair in pairs for values, good in zip(pair, (True, False))]
    sent = []
    begun_s = time.monotonic()
    for k, (values, good) in enumerate(wanted):
        sent.append((world.set_later(values), values, good))
        world.until(
            lambda: False, begun_s + (k + 1) * PARAMETER_SETS_S / PARAMETER_SETS - time.monotonic()
        )
    world.until(lambda: all(future.done() for future, _, _ in sent) or not world.upright, ANSWERS_S)
    took_s, walks = time.monotonic() - begun_s, world.upright
    answered = [entry for entry in sent if entry[0].done()]
    wrong = [
        values
        for future, values, good in answered
        if all(result.successful for result in future.result().results) != good
    ]
    ended = ending(world)
    future = world.set_later(
        {
            name: world.parameters[CONTROLLER][name]
            for values, good in wanted
            if good
            for name in values
        }
    )
    world.need(future.done, "answer to the last set of parameters", ANSWERS_S)
    if wrong:
        ended = f"wrong answer to {wrong[0]}"
    elif not walks:
        ended = WALKS_AGAIN
    elif len(answered) < len(sent):
        ended = f"{len(sent) - len(answered)} sets are not answered"
    return Observed(None, ended, f"{len(answered)} answered in {took_s:.0f} s")


# Commands that others send


def _inject(world: FaultWorld, commands: list[list[float]]) -> Observed:
    before = world.figures(WATCHDOG)
    for k in range(INJECTED):
        world.intrude(commands[k % len(commands)])
        world.spin(INJECTION_PERIOD_S)
    after = world.figures(WATCHDOG)

    def count(name: str) -> int:
        return int(after.get(name, 0)) - int(before.get(name, 0))

    refused = count("refused second_commander")
    return Observed(None, ending(world), f"{refused} of {INJECTED} seen")


def wrong_size(world: FaultWorld) -> Observed:
    n = len(world.relay.joints)
    return _inject(world, [[], [1.0] * (n - 1), [1.0] * (n + 1), [1.0]])


def wild_values(world: FaultWorld) -> Observed:
    n = len(world.relay.joints)
    return _inject(world, [[math.nan] * n, [0.0] * (n - 1) + [math.inf], [-math.inf] * n])


def beyond_limits(world: FaultWorld) -> Observed:
    rest = [0.0] * (len(world.relay.joints) - 1)
    return _inject(world, [[1e3, *rest], [-1e6, *rest], [*rest, 1e300], [*rest, -1e3]])


def second_commander(world: FaultWorld) -> Observed:
    """Torques that could be the controller's, four times as often as those."""
    relay, torques = world.relay, [0.3 * limit for limit in world.limits]
    refused = "refused second_commander"
    before, acted, sent = int(world.figures(WATCHDOG).get(refused, 0)), 0, 0
    end_s = time.monotonic() + SECOND_COMMANDER_S
    while time.monotonic() < end_s:
        world.intrude(torques)
        world.spin(world.period_s / 4.0)
        sent += 1
        acted += bool(np.allclose(relay.group.efforts, torques))
    seen = int(world.figures(WATCHDOG).get(refused, 0)) - before
    ended = f"{acted} acted" if acted else ending(world)
    return Observed(None, ended, f"{sent} sent, {seen} seen")


# The solver


def solver_fails(world: FaultWorld) -> Observed:
    return _solver(world, FAIL)


def solver_raises(world: FaultWorld) -> Observed:
    return _solver(world, RAISE)


def _solver(world: FaultWorld, number: int) -> Observed:
    begun_s = time.monotonic()
    world.nodes[CONTROLLER].send(number)
    reaction_s = world.until_safe(begun_s)
    stopped = world.until(lambda: world.figures(CONTROLLER)["safety state"] == "stopped", 5.0)
    world.nodes[CONTROLLER].send(number)
    world.begin()
    return Observed(reaction_s, WALKS_AGAIN if stopped else "not stopped")


# The emergency stop


def emergency_stop_when_busy(world: FaultWorld) -> Observed:
    """Behind a queue of parameters that are to be set."""
    for values in _valid_sets(world, QUEUED):
        world.set_later(values)
    world.spin(0.1)
    return emergency_stop(world)


def emergency_stop(world: FaultWorld) -> Observed:
    begun_s = time.monotonic()
    stopped = world.stop(CONTROLLER)
    reaction_s = world.until_safe(begun_s)
    refused = not world.call("resume", Trigger.Request()).success
    world.spin(0.2)
    kept = all(world.relay.safe[-10:])
    world.relay.group.deactivate()
    released = world.stop(CONTROLLER, engage=False)
    resumed = world.call("resume", Trigger.Request()).success
    world.begin()
    ended = WALKS_AGAIN
    if not (stopped and refused and kept and released and resumed):
        ended = f"{stopped=} {refused=} {kept=} {released=} {resumed=}"
    return Observed(reaction_s, ended, "resumed on request")


FAULTS = (
    Fault(
        "plans malformed in eight ways",
        "refused, the plan before is followed",
        None,
        WALKS_ON,
        malformed_plans,
    ),
    Fault(
        "1,000 parameter sets in 10 s, half of them invalid",
        "each answered rightly, as control leaves time",
        None,
        WALKS_ON,
        parameter_sets,
    ),
    Fault("commands of the wrong size injected", "not forwarded", None, WALKS_ON, wrong_size),
    Fault("commands that are not finite injected", "not forwarded", None, WALKS_ON, wild_values),
    Fault("commands beyond the limits injected", "not forwarded", None, WALKS_ON, beyond_limits),
    Fault(
        "a second commander, four times as often",
        "not forwarded",
        None,
        WALKS_ON,
        second_commander,
    ),
    Fault(
        "solver does not converge, for ever",
        "its fallback, then stopped, safe output",
        when_failing,
        WALKS_AGAIN,
        solver_fails,
    ),
    Fault(
        "solver raises an error, for ever",
        "safe output, then stopped",
        when_failing,
        WALKS_AGAIN,
        solver_raises,
    ),
    Fault(
        "emergency stop",
        "zero torque until it is released",
        when_asked,
        WALKS_AGAIN,
        emergency_stop,
    ),
    Fault(
        "emergency stop behind 30 parameter sets",
        "zero torque until it is released",
        when_queued,
        WALKS_AGAIN,
        emergency_stop_when_busy,
    ),
)
