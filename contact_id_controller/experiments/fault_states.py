"""Faults of what is measured: joint states, odometry, clock."""

from __future__ import annotations

import math
import time

import numpy as np

from contact_id_controller.experiments.fault import (
    WALKS_AGAIN, WALKS_ON, Fault, Observed, at_once, ending, when_silent,
)
from contact_id_controller.experiments.fault_world import CONTROLLER, FaultWorld

GAP_STATES = 3
LATE_STATES = 20
JUMP_M = JUMP_RAD = 1.0
CLOCK_JUMP_S = 1.0


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
    return Observed(reaction_s, WALKS_AGAIN if seen else f"never refused as {reason}",
                    f"`{reason}`")


def states_stop(world: FaultWorld) -> Observed:
    return _spoiled(world, "states_stopped", spoil_joint_states=lambda message: None)


def states_pause(world: FaultWorld) -> Observed:
    relay = world.relay
    count = relay.states
    relay.spoil_joint_states = lambda message: None
    world.need(lambda: relay.states >= count + GAP_STATES, "states of the robot")
    relay.heal()
    return Observed(None, ending(world))


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


def _jump(world: FaultWorld, change) -> Observed:
    def moved(message):
        change(message.pose.pose)
        return message

    world.relay.spoil_odometry = moved
    ended = WALKS_ON if world.walks_on(0.8) else WALKS_AGAIN
    if ended == WALKS_AGAIN:
        world.begin()
    world.relay.heal()
    # Back again is a jump, too.
    if ended == WALKS_ON and not world.walks_on(0.8):
        world.begin()
        ended = WALKS_AGAIN
    return Observed(None, ended)


def jump_1_m(world: FaultWorld) -> Observed:
    def change(pose):
        pose.position.x += JUMP_M

    return _jump(world, change)


def jump_1_rad(world: FaultWorld) -> Observed:
    turn = math.sin(0.5 * JUMP_RAD), math.cos(0.5 * JUMP_RAD)

    def change(pose):
        s, c = turn
        turned = pose.orientation
        x, y, z, w = turned.x, turned.y, turned.z, turned.w
        turned.x, turned.y, turned.z, turned.w = (
            c * x - s * y, c * y + s * x, c * z + s * w, c * w - s * z)
        p = pose.position
        cos, sin = math.cos(JUMP_RAD), math.sin(JUMP_RAD)
        p.x, p.y = cos * p.x - sin * p.y, sin * p.x + cos * p.y

    return _jump(world, change)


def clock_back(world: FaultWorld) -> Observed:
    def back(message):
        message.clock.sec -= int(CLOCK_JUMP_S)
        return message

    world.begin()  # no clock below zero
    world.need(lambda: world.relay.stamp_s > CLOCK_JUMP_S + 0.1, "time to jump back")
    return _spoiled(world, "future", spoil_clock=back)


FAULTS = (
    Fault("joint states pause for 3 periods", "none", None, WALKS_ON, states_pause),
    Fault("NaN in one joint, one state", "that state is refused", None, WALKS_ON, one_nan),
    Fault("joint states permuted, with their names", "none", None, WALKS_ON, permuted),
    Fault("odometry jumps by 1 m, and back", "frame accepted, posture held until the next plan",
          None, WALKS_ON, jump_1_m),
    Fault("odometry jumps by 1 rad, and back", "frame accepted, posture held until the next plan",
          None, WALKS_ON, jump_1_rad),
    Fault("joint states stop", "safe output", when_silent, WALKS_AGAIN, states_stop),
    Fault("joint states 20 ms late, odometry on time", "refused, safe output", when_silent,
          WALKS_AGAIN, states_late),
    Fault("all states later than state_timeout_s", "refused, safe output", when_silent,
          WALKS_AGAIN, all_late),
    Fault("NaN in one joint, for ever", "safe output", at_once, WALKS_AGAIN, nan_stays),
    Fault("one joint missing", "safe output", at_once, WALKS_AGAIN, joint_missing),
    Fault("clock jumps back by 1 s", "states refused, safe output", at_once, WALKS_AGAIN,
          clock_back),
)
