"""Free motion of the base in gaits whose stance feet cannot balance it, as pace and bound.

Normal forces f of the ground move the base, (height, roll, pitch) = x, while the feet follow their paths in the world.
With w the weight, b the heights of the feet in their swings, and moments about the ground below the centre of mass,

    M x'' = G f - w - B b''

Over a cycle of a gait the stance feet give the forces that accelerate the base least among those that restore
its velocity after the cycle: the ground below each stance foot is still, but for an acceleration m of all of it,

    G^T (x'' - m) = 0    with m such that the mean of x'' is 0

Three feet that are not in line carry everything, x'' = m. So the base moves with zero mean in parabolas and by the
reaction of swing legs; if the stance feet carry weight and reaction all the time, as diagonals of a trot do,
it is still.

Tangential forces are a part of f with which each foot pushes towards the ground below the centre of mass, at most
``FRICTION``; they also move the base forwards and sideways.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from contact_id_controller.planning.gait.gaits import Gait
from contact_id_controller.planning.gait.path_kernels import bump

FRICTION = 0.3
"""Tangential part of a normal force that is planned: half of what dry ground holds, feedback has the other half."""

COORDINATES = 5
"""Forwards, to the left, up, roll, pitch."""

PARTS = 8
"""Parts with one acceleration each, of an interval between two switches."""

LEAST_INTERVAL = 1e-6
"""Part of a cycle from which on an interval between two switches counts."""

IN_LINE = 1e-3
"""Part of the distances of feet below which they count as being in one place or line."""


class Body(NamedTuple):
    """Dynamics of a standing robot under normal forces; momenta about the ground below the centre of mass, base axes.

    Attributes:
        momentum: (3, 3) upwards and about x and y, by height, roll and pitch of the base, with the links that move
            when the feet stay in place.
        lifting: (3, L) by the heights of the feet with the base fixed.
        levers: (L, 3) of normal forces at the feet.
        weight: N.
        coupling: (5, 3) coordinates of the base by height, roll and pitch.
    """

    momentum: np.ndarray
    lifting: np.ndarray
    levers: np.ndarray
    weight: float
    coupling: np.ndarray


@dataclasses.dataclass(frozen=True)
class SupportMotion:
    """Periodic displacement of the base (forwards, to the left, up, roll, pitch), m and rad, in a cycle of a gait.

    starts: (k,) of its phases, s; states: (3, k, 5) displacement, rate and acceleration at their starts.
    """

    gait: Gait
    starts: np.ndarray
    states: np.ndarray

    def at(self, since_s: np.ndarray, pick_s: np.ndarray) -> np.ndarray:
        """Displacement, rate and acceleration (3, p, 5) at times (p,) since the start of a cycle.

        pick_s: (p,) times for the look-up of phases, see ``knots``.
        """
        phase = pick_s % self.gait.period_s
        row = np.searchsorted(self.starts, phase, side="right") - 1
        s = (phase - self.starts[row] + since_s - pick_s)[:, None]
        place, rate, acceleration = self.states[:, row]
        return np.array(
            [place + (rate + 0.5 * acceleration * s) * s, rate + acceleration * s, acceleration]
        )


def support_motion(body: Body, gait: Gait, step_height_m: float, step_kind: int) -> SupportMotion:
    """Compute the periodic motion of a body in a gait; step_height_m, step_kind: of swings, see ``path_kernels``."""
    starts, lasts, stands = _parts(gait)
    rises = step_height_m * _lift_speeds(gait, step_kind, np.append(starts, gait.period_s))
    load = np.diff(rises, axis=0) / lasts[:, None] @ body.lifting.T
    load[:, 0] += body.weight
    acceleration = _accelerations(body, load, lasts, stands)
    span = lasts[:, None]
    rate = _from_zero(acceleration * span)
    ways = (rate + 0.5 * acceleration * span) * span
    rate -= ways.sum(axis=0) / gait.period_s
    place = _from_zero(ways - ways.sum(axis=0) / gait.period_s * span)
    areas = (place + (0.5 * rate + acceleration * span / 6.0) * span) * span
    place -= areas.sum(axis=0) / gait.period_s
    states = np.array([place, rate, acceleration]) @ body.coupling.T
    return SupportMotion(gait, starts, states)


def _from_zero(changes: np.ndarray) -> np.ndarray:
    """Cumulative sum of changes (k, 3) in intervals, at the start of each."""
    return np.vstack([np.zeros(3), np.cumsum(changes, axis=0)[:-1]])


def _accelerations(
    body: Body, load: np.ndarray, lasts: np.ndarray, stands: np.ndarray
) -> np.ndarray:
    """Accelerations (k, 3) in k phases of durations ``lasts`` (k,), s, with zero mean.

    load (k, 3): of weight and swings, N and N m; stands (k, L) bool: stance feet. In directions that these support the
    acceleration is the same in all phases.
    """
    sets, member = np.unique(stands, axis=0, return_inverse=True)
    free = [_free_motions(body.levers[standing]) for standing in sets]
    answers = [n @ np.linalg.solve(n.T @ body.momentum @ n, n.T) for n in free]
    yielding = np.array(answers)[member.ravel()]
    carried = np.eye(3) - yielding @ body.momentum
    falling = -np.einsum("kij,kj->ki", yielding, load)
    common = np.linalg.lstsq(np.tensordot(lasts, carried, 1), -lasts @ falling, rcond=None)[0]
    return falling + carried @ common


def _free_motions(levers: np.ndarray) -> np.ndarray:
    """Orthonormal motions of the base (3, n) for which the ground below feet with these levers (f, 3) is still."""
    if not len(levers):
        return np.eye(3)
    size = np.array([1.0, *np.full(2, np.abs(levers[:, 1:]).max())])
    _, sizes, ways = np.linalg.svd(levers / size)
    motions = ways[int(np.sum(sizes > IN_LINE * sizes[0])) :].T / size[:, None]
    return motions / np.linalg.norm(motions, axis=0)


def _parts(gait: Gait) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts and durations (k,), s, of the phases of a cycle, and stance feet in each, (k, L) bool."""
    landings = np.array(gait.touchdown_phases) % 1.0
    switches = np.sort(np.concatenate([[0.0], landings, (landings + gait.duty_factor) % 1.0]))
    switches = switches[np.diff(switches, append=1.0) > LEAST_INTERVAL]
    switches[0] = 0.0
    lasts = np.diff(switches, append=1.0)
    starts = (switches[:, None] + lasts[:, None] * np.arange(PARTS) / PARTS).ravel()
    lasts = np.repeat(lasts, PARTS) / PARTS
    middles = starts + 0.5 * lasts
    stands = (middles[:, None] - landings) % 1.0 < gait.duty_factor
    return starts * gait.period_s, lasts * gait.period_s, stands


def _lift_speeds(gait: Gait, step_kind: int, times_s: np.ndarray) -> np.ndarray:
    """Vertical speeds (k, L), 1/s, of feet in steps of unit height at times (k,) of a cycle."""
    swing = 1.0 - gait.duty_factor
    lifts = np.array(gait.touchdown_phases) - swing
    shares = (times_s[:, None] / gait.period_s - lifts) % 1.0 / swing
    speeds = [[bump(step_kind, u)[1] if u < 1.0 else 0.0 for u in row] for row in shares]
    return np.array(speeds) / (swing * gait.period_s)
