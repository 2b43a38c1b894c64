"""What a step program is made of: a robot's rules, weights of wishes, and the situation of one instant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Weights(NamedTuple):
    """Of squares of lengths, m^2, and of times, s^2; results hardly depend on them.

    Attributes:
        pressure: centre of pressure until the landing, from its usual place.
        shift: centre of pressure in later feet.
        step: the next step from the usual one.  later: the same of the two after it.
        end: divergent component where the fourth stance begins, from the periodic walk's.
        time: landing from its usual time.  stay: from the last plan's time.
        keep: next foothold from the last plan's.
    """

    pressure: float = 0.05
    shift: float = 0.2
    step: float = 1.0
    later: float = 1.0
    end: float = 20.0
    time: float = 0.04
    stay: float = 0.02
    keep: float = 0.1


class Rules(NamedTuple):
    """What a robot's steps keep to. Group 0 is the left one (or front), group 1 the right one.

    Attributes:
        rate: w = sqrt(g / h), 1/s.
        swing_s, double_s: usual duration of a swing, and of the shift of weight after it.
        offset (2,): from group 1 to group 0, m, heading frame.
        reach (2,): of a foothold beyond the other one, forwards and back, m.
        width (2,): of a foothold beside the other one, least and largest, m.
        sole (2,): half sizes in which the centre of pressure may lie in later feet, m; 0: points.
        foot_speed, foot_acceleration: horizontal, of a foot aloft, m/s and m/s^2.
        slack_m: by which a foot may miss that.  settle_s: rest above its place before it lands.
        leg_m: horizontal reach of a leg from its hip; infinite: not looked at.
        hips (2, 2): places of the groups' hips from the centre of mass, m, heading frame.
    """

    rate: float
    swing_s: float
    double_s: float
    offset: np.ndarray
    reach: np.ndarray
    width: np.ndarray
    sole: np.ndarray
    foot_speed: float
    foot_acceleration: float
    slack_m: float
    settle_s: float
    leg_m: float
    hips: np.ndarray


class Situation(NamedTuple):
    """Where everything is; m, m/s, world frame.

    Attributes:
        com, speed (2,): of the centre of mass.
        feet (2, 2): places of the groups.
        carry: the group that carries, or will after the shift of weight.
        both: both stand, and ``carry`` carries alone after the time that is sought; else the other one lands then.
        heading: rad.  turn: its rate, with which later steps turn, rad/s.  velocity (2,): wanted.
        hull_normals (m, 2), hull_bounds (m,): where the centre of pressure may lie now.
        area_normals (k, 2), area_bounds (k,): where the next foothold may lie; none: anywhere.
        aloft (2, 2): place and velocity of the group that swings; not a number: anywhere.
        previous (2,): foothold of the last plan; not a number: none.
        nominal_s, left_s: usual time until the event, and by the last plan.
    """

    com: np.ndarray
    speed: np.ndarray
    feet: np.ndarray
    carry: int
    both: bool
    heading: float
    turn: float
    velocity: np.ndarray
    hull_normals: np.ndarray
    hull_bounds: np.ndarray
    area_normals: np.ndarray
    area_bounds: np.ndarray
    aloft: np.ndarray
    previous: np.ndarray
    nominal_s: float
    left_s: float
