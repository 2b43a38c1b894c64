"""Faults of what is measured: joint states, odometry, clock."""

from __future__ import annotations

import collections
import functools
import math
import time

import numpy as np
import pinocchio as pin
from std_srvs.srv import Trigger

from contact_id_controller.ros.packed import nanoseconds
from experiments.faults.nodes import CONTROLLER
from experiments.faults.row import (
    WALKS_AGAIN,
    WALKS_ON,
    Fault,
    Observed,
    ending,
    when_over,
    when_silent,
)
from experiments.faults.world import FaultWorld

GAP_S, LONG_GAP_S = 0.003, 0.025
NAMELESS_STATES, EACH = 10, 20
ALTERNATING_RAD, ALTERNATING_S = 0.5, 0.05
LATE_STATES = 20
REPEATED_S = 0.05
FROZEN_S = 0.4
"""In which a joint of a walk moves by `joint_jump`, .2 rad, at .5 rad/s, in the calmest moments, too."""

JUMP_M = JUMP_RAD = 1.0
CLOCK_JUMP_S, CLOCK_LAG_S, CLOCK_FAULT_S = 1.0, 0.2, 0.5


def _spoiled(world: FaultWorld, reason: str, **spoilers) -> Observed:
    """Let spoilers stay until the safe output has come for a reason, then let all pass again."""
    name = f"refused {reason}"
    before = int(world.figures(CONTROLLER).get(name, 0))
    begun_s = time.monotonic()
    for spoiler, value in spoilers.items():
        setattr(world.relay, spoiler, value)
    reaction_s = world.until_safe(begun_s)
    seen = world.until(lambda: int(world.figures(CONTROLLER).get(name, 0)) > before, 5.0)
    world.relay.heal()
    world.begin()
    return Observed(
        reaction_s, WALKS_AGAIN if seen else f"never refused as {reason}", f"`{reason}`"
    )


_IMPOSSIBLE = "possible is", "from its position extrapolated"
"""Words of what is refused of states that cannot be."""


def states_stop(world: FaultWorld) -> Observed:
    """Longer than the recovery window: the stop is left by nothing but `resume`."""
    relay = world.relay
    begun_s, begun_stamp_s = time.monotonic(), relay.stamp_s
    relay.spoil_joint_states = lambda message: None
    reaction_s = world.until_safe(begun_s)
    world.need(lambda: relay.stamp_s > begun_stamp_s + 1.5 * world.recovery_window_s, "a long gap")
    early = world.call("resume", Trigger.Request())
    relay.heal()
    relay.group.deactivate()
    state = world.figures(CONTROLLER)["safety state"]
    resumed = world.call("resume", Trigger.Request())
    # Without torques it has fallen, maybe with joints beyond what is possible: nothing brakes them.
    collapsed = any(words in resumed.message for words in _IMPOSSIBLE)
    # The gap ends with a good state, of which there is none then.
    stopped = state == "stopped" or (collapsed and state == "interrupted")
    # It takes commands again; the robot has fallen and is put back.
    world.begin()
    ended = WALKS_AGAIN
    if early.success or not stopped or not (resumed.success or collapsed):
        ended = f"{state=}, resume: {early.message!r}, {resumed.message!r}"
    told = "refused while the fallen robot's joints are where they cannot be"
    return Observed(reaction_s, ended, "resumed on request" if resumed.success else told)


def states_pause(world: FaultWorld, simulated_s: float = GAP_S) -> Observed:
    begun_s = time.monotonic()
    world.spoil(simulated_s, spoil_joint_states=lambda message: None)
    world.spin(world.period_s)
    return Observed(world.until_safe(begun_s, 0.0), ending(world))


def states_pause_longer(world: FaultWorld) -> Observed:
    return states_pause(world, LONG_GAP_S)


def states_late(world: FaultWorld) -> Observed:
    return _spoiled(world, "odometry_old", joints_late=LATE_STATES)


def all_late(world: FaultWorld) -> Observed:
    late = math.ceil((world.state_timeout_s + 0.02) / world.simulated_period_s)
    return _spoiled(world, "stale", joints_late=late, odometry_late=late)


def _nan(message):
    message.position[3] = math.nan
    message.velocity[3] = math.nan
    return message


def one_nan(world: FaultWorld) -> Observed:
    relay = world.relay
    count = relay.states

    def once(message):
        return _nan(message) if relay.states == count + 1 else message

    relay.spoil_joint_states = once
    world.need(lambda: relay.states > count + 1, "states of the robot")
    relay.heal()
    return Observed(None, ending(world))


def nan_stays(world: FaultWorld) -> Observed:
    return _spoiled(world, "joint_state_not_finite", spoil_joint_states=_nan)


def permuted(world: FaultWorld) -> Observed:
    order = np.random.default_rng(1).permutation(len(world.relay.joints))

    def shuffle(message):
        message.name = [message.name[k] for k in order]
        for field in ("position", "velocity", "effort"):
            setattr(message, field, np.array(getattr(message, field))[order])
        return message

    world.relay.spoil_joint_states = shuffle
    ended = ending(world)
    world.relay.heal()
    return Observed(None, ended if world.walks_on(0.1) else WALKS_AGAIN)


def joint_missing(world: FaultWorld) -> Observed:
    def lose(message):
        del message.name[-1]
        for field in ("position", "velocity", "effort"):
            del getattr(message, field)[-1]
        return message

    return _spoiled(world, "joint_missing", spoil_joint_states=lose)


def _far_away(message):
    message.pose.pose.position.x = 1e30


def _turning(message):
    message.twist.twist.angular.z = 1000.0


def _beyond_its_end(message):
    message.position[3] = 100.0


def _too_fast(message):
    message.velocity[3] = 1e30


def impossible(world: FaultWorld, spoiler: str, change, reason: str) -> Observed:
    def changed(message):
        change(message)
        return message

    return _spoiled(world, reason, **{spoiler: changed})


def alternating(world: FaultWorld) -> Observed:
    """As from two publishers: every second state has it elsewhere, and torque answers half of them.

    With so little torque the robot falls: it is put back before.
    """
    name, odd = "refused joint_jump", False
    before = int(world.figures(CONTROLLER).get(name, 0))

    def alternate(message):
        nonlocal odd
        odd = not odd
        message.position[4] += ALTERNATING_RAD * odd
        return message

    world.spoil(ALTERNATING_S, spoil_joint_states=alternate)
    refused = int(world.figures(CONTROLLER).get(name, 0)) - before
    world.begin()
    few = refused < 0.2 * ALTERNATING_S / world.simulated_period_s
    remark = f"{refused} states refused"
    return Observed(None, f"only {remark}" if few else WALKS_AGAIN, remark)


def frozen(world: FaultWorld) -> Observed:
    """One reading again and again with new stamps, as from a driver that lost its bus."""
    first = []

    def repeat(message):
        first.append(message)
        for field in ("position", "velocity", "effort"):
            setattr(message, field, getattr(first[0], field))
        return message

    return _spoiled(world, "joints_frozen", spoil_joint_states=repeat)


def nameless(world: FaultWorld) -> Observed:
    """One state in twenty names no joint."""
    relay, name = world.relay, "refused joint_missing"
    before, count = int(world.figures(CONTROLLER).get(name, 0)), relay.states

    def lose(message):
        if relay.states % EACH == 0:
            message.name, message.position, message.velocity, message.effort = [], [], [], []
        return message

    relay.spoil_joint_states = lose
    world.need(lambda: relay.states > count + NAMELESS_STATES * EACH, "states of the robot")
    relay.heal()
    refused = int(world.figures(CONTROLLER).get(name, 0)) - before
    ended = ending(world)
    few = refused < NAMELESS_STATES // 2  # the newest state replaces one that waits
    remark = f"{refused} of {NAMELESS_STATES} arrived and were refused"
    return Observed(None, f"{refused} refused" if few else ended, remark)


def reversed_order(world: FaultWorld) -> Observed:
    """The joints of each state come in the opposite order for a second, by name."""
    relay, count = world.relay, world.relay.states

    def turn(message):
        for field in ("name", "position", "velocity", "effort"):
            setattr(message, field, list(getattr(message, field))[::-1])
        return message

    relay.spoil_joint_states = turn
    world.need(lambda: relay.states > count + 200, "states of the robot")
    relay.heal()
    return Observed(None, ending(world), "200 states")


def odometry_repeats(world: FaultWorld) -> Observed:
    """The same sample again and again, its stamp included, as from a driver that hangs."""
    samples = []

    def repeat(message):
        samples.append(message)
        return samples[0]

    world.spoil(REPEATED_S, spoil_odometry=repeat)
    return Observed(None, ending(world), f"{len(samples)} times")


def _jump(world: FaultWorld, change) -> Observed:
    """There and back: the frame moves, and moves back again."""

    def moved(message):
        change(message.pose.pose)
        return message

    name = "refused odometry_jump"
    before = int(world.figures(CONTROLLER).get(name, 0))
    walks = True
    for spoiler in (moved, None):
        world.relay.spoil_odometry = spoiler
        walks = walks and world.walks_on(0.8)
    refused = int(world.figures(CONTROLLER).get(name, 0)) - before
    if not walks:
        world.begin()
    ended = WALKS_ON if walks else WALKS_AGAIN
    return Observed(None, ended if refused else "no jump was seen", f"{refused} states refused")


def jump_1_m(world: FaultWorld) -> Observed:
    def change(pose):
        pose.position.x += JUMP_M

    return _jump(world, change)


def jump_1_rad(world: FaultWorld) -> Observed:
    turn = pin.Quaternion(pin.utils.rotate("z", JUMP_RAD))

    def change(pose):
        o, p = pose.orientation, pose.position
        turned = turn * pin.Quaternion(o.w, o.x, o.y, o.z)
        o.x, o.y, o.z, o.w = turned.coeffs().tolist()
        p.x, p.y, p.z = (turn.matrix() @ [p.x, p.y, p.z]).tolist()

    return _jump(world, change)


IMPOSSIBLE = {
    "base at 1e30 m": ("spoil_odometry", _far_away, "odometry_position_impossible"),
    "base turning at 1,000 rad/s": ("spoil_odometry", _turning, "odometry_turning_impossible"),
    "a joint at 100 rad": ("spoil_joint_states", _beyond_its_end, "joint_position_impossible"),
    "a joint at 1e30 rad/s": ("spoil_joint_states", _too_fast, "joint_velocity_impossible"),
}
"""What is measured: spoiler, what it does, reason of the refusal."""

GOES_ON = "the last trajectory goes on"
COMES_TO_REST = "the last trajectory goes on, and ends at rest"

BRIDGED = {
    "joint states pause for 25 ms": {"reaction": GOES_ON, "within": None},
    "stamps and clock go back to 0": {"reaction": COMES_TO_REST, "within": None},
} | {
    name: {"reaction": COMES_TO_REST, "within": when_over}
    for name in (
        "joint states stop",
        "joint states 20 ms late, odometry on time",
        "all states later than `state_timeout_s`",
        "NaN in one joint, for ever",
        "one joint missing",
        *IMPOSSIBLE,
    )
}
"""Fault -> what is stated otherwise where the robot's side goes on while commands are late."""


def clock_back(world: FaultWorld) -> Observed:
    def back(message):
        message.clock.sec -= int(CLOCK_JUMP_S)
        return message

    # No clock below zero.
    world.need(lambda: world.relay.stamp_s > CLOCK_JUMP_S + 0.1, "time to jump back", 60.0)
    return _with_clock(world, back)


def clock_stands(world: FaultWorld) -> Observed:
    return _with_clock(world, lambda message: None)


def clock_late(world: FaultWorld) -> Observed:
    heard: collections.deque = collections.deque()

    def late(message):
        heard.append(message)
        now_ns = nanoseconds(message.clock)
        while len(heard) > 1 and now_ns - nanoseconds(heard[0].clock) > CLOCK_LAG_S * 1e9:
            heard.popleft()
        return heard[0]

    return _with_clock(world, late)


def _with_clock(world: FaultWorld, spoil) -> Observed:
    world.spoil(CLOCK_FAULT_S, spoil_clock=spoil)
    return Observed(None, ending(world))


def when_frozen(world: FaultWorld) -> float:
    """The fastest joint of a walk should have moved by the limit, and then nothing good came for the time-out."""
    return FROZEN_S / world.real_time_factor + world.state_timeout_s


def time_back(world: FaultWorld) -> Observed:
    relay = world.relay
    stamp_s = relay.stamp_s
    world.call("reset", Trigger.Request())
    world.need(lambda: relay.stamp_s < stamp_s, "the robot at its start")
    reaction_s = world.until_safe(time.monotonic())
    world.begin()
    return Observed(reaction_s, WALKS_AGAIN)


FAULTS = (
    Fault("joint states pause for 3 ms", "none", None, WALKS_ON, states_pause),
    Fault(
        "joint states pause for 25 ms",
        "safe output, until they come again",
        when_silent,
        WALKS_ON,
        states_pause_longer,
    ),
    Fault("NaN in one joint, one state", "that state is refused", None, WALKS_ON, one_nan),
    Fault("joint states permuted, with their names", "none", None, WALKS_ON, permuted),
    Fault(
        "odometry jumps by 1 m, and back",
        "two states refused, posture held until the next plan",
        None,
        WALKS_ON,
        jump_1_m,
    ),
    Fault(
        "odometry jumps by 1 rad, and back",
        "two states refused, posture held until the next plan",
        None,
        WALKS_ON,
        jump_1_rad,
    ),
    Fault(
        "odometry repeats one sample for 50 ms",
        "none: the base is predicted",
        None,
        WALKS_ON,
        odometry_repeats,
    ),
    Fault(
        "joint states stop",
        "safe output; stopped until `~/resume`",
        when_silent,
        WALKS_AGAIN,
        states_stop,
    ),
    Fault(
        "joint states 20 ms late, odometry on time",
        "refused, safe output",
        when_silent,
        WALKS_AGAIN,
        states_late,
    ),
    Fault(
        "all states later than `state_timeout_s`",
        "refused, safe output",
        when_silent,
        WALKS_AGAIN,
        all_late,
    ),
    Fault(
        "NaN in one joint, for ever", "refused, safe output", when_silent, WALKS_AGAIN, nan_stays
    ),
    Fault("one joint missing", "refused, safe output", when_silent, WALKS_AGAIN, joint_missing),
    Fault(
        "joint states repeat one reading, with new stamps",
        "refused, safe output",
        when_frozen,
        WALKS_AGAIN,
        frozen,
    ),
    Fault("simulated clock jumps back by 1 s, for .5 s", "none", None, WALKS_ON, clock_back),
    Fault("simulated clock silent for .5 s", "none", None, WALKS_ON, clock_stands),
    Fault("simulated clock .2 s late for .5 s", "none", None, WALKS_ON, clock_late),
    Fault(
        "stamps and clock go back to 0",
        "states refused, safe output",
        when_silent,
        WALKS_AGAIN,
        time_back,
    ),
    *(
        Fault(
            name,
            "refused, safe output",
            when_silent,
            WALKS_AGAIN,
            functools.partial(impossible, spoiler=spoiler, change=change, reason=reason),
        )
        for name, (spoiler, change, reason) in IMPOSSIBLE.items()
    ),
    Fault(
        "a joint alternating by .5 rad",
        "each second state refused, torque on its way to the safe output",
        None,
        WALKS_AGAIN,
        alternating,
    ),
    Fault("joint states that name no joint", "those are refused", None, WALKS_ON, nameless),
    Fault("joints in the opposite order", "none: names count", None, WALKS_ON, reversed_order),
)
