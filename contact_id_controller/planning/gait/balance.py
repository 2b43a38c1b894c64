"""Height, roll and pitch of the base in a plan, and their return to nominal by virtual forces.

The first paper (section 7.3) balances its quadruped by virtual forces at the feet that act along
the contact normal and only push (Sugihara and Nakamura, 2003), from gains on height, roll and
pitch. With its gains such a force would have to be renewed every fraction of a millisecond (damping
over inertia in roll is thousands per second), a plan is renewed every few dozen milliseconds. So
what the plan holds is not the force but the motion it causes: the exact solution of

    m x'' = -s (K x + D x'),

from the measured deviation x, for height, roll and pitch. It is stable however seldom it is
renewed, and joint positions, velocities and accelerations of the plan agree with it. The factor
s <= 1 keeps every foot pushing: the virtual forces, spread over all feet with the least norm, may
take away no more than the foot's share of the weight.

The plan gives in to a deviation and leads back. That suits inverse dynamics, which carries the
weight; under joint feedback alone, which needs an error to carry it, the robot would sink.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_id_controller.planning.gait.path_kernels import sample_tilt

DISTINCT = 1e-6
"""Relative difference to which equal roots of the response are drawn apart."""


@dataclasses.dataclass(frozen=True)
class Response:
    """Solution of x'' = -k x - d x' for three coordinates, k in 1/s^2 and d in 1/s."""

    value: np.ndarray  # (3,)
    rate: np.ndarray  # (3,)
    stiffness: np.ndarray  # (3,)
    damping: np.ndarray  # (3,)

    def at(self, s: float) -> np.ndarray:
        """x, x', x'' at a time: (3, 3)."""
        none, out = np.zeros(3), np.empty((3, 3))
        rows = none, self.value, self.rate, self.stiffness, self.damping, none, none
        sample_tilt(np.array(rows), DISTINCT, 1.0, s, out)
        return out


@dataclasses.dataclass(frozen=True)
class Tilt:
    """Planned height, roll, pitch: nominal + response of the virtual forces + a fading offset."""

    nominal: np.ndarray  # (3,)
    response: Response
    offset: object  # Fading, arrays (3,)

    @property
    def numbers(self) -> np.ndarray:
        """For ``path_kernels``, (7, 3)."""
        one, two = self.response, self.offset
        rows = self.nominal, one.value, one.rate, one.stiffness, one.damping, two.value, two.rate
        return np.array(rows)

    def at(self, s: float) -> np.ndarray:
        """(height, roll, pitch) and their first two derivatives at a time: (3, 3)."""
        out = np.empty((3, 3))
        sample_tilt(self.numbers, DISTINCT, self.offset.time_constant_s, s, out)
        return out


NO_RESPONSE = Response(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
"""The response where the balance is off."""


def virtual_response(
    deviation: np.ndarray,
    rate: np.ndarray,
    gains: np.ndarray,
    damping: np.ndarray,
    inertia: np.ndarray,
    feet_xy: np.ndarray,
    gravity: float,
) -> Response:
    """How the base returns under virtual forces of the feet that only push.

    Args:
        deviation, rate: (3,) of height (m), roll, pitch (rad) from nominal, and their rates.
        gains, damping: (3,) virtual stiffness and damping of each.
        inertia: (3,) mass (kg) and moments of inertia about the roll and pitch axes (kg m2).
        feet_xy: (n, 2) horizontal positions of the feet relative to the base, along its heading.
        gravity: m/s^2.
    """
    wrench = -(gains * deviation + damping * rate)
    scale = pushing_fraction(wrench, inertia[0] * gravity, feet_xy)
    return Response(deviation, rate, scale * gains / inertia, scale * damping / inertia)


def pushing_fraction(wrench: np.ndarray, weight: float, feet_xy: np.ndarray) -> float:
    """Largest part, at most 1, of (force z, moment x, moment y) that keeps all feet pushing."""
    grasp = np.vstack([np.ones(len(feet_xy)), feet_xy[:, 1], -feet_xy[:, 0]])
    share, change = np.linalg.lstsq(
        grasp, np.column_stack([[weight, 0.0, 0.0], wrench]), rcond=None
    )[0].T
    pulling = change < 0.0
    if not pulling.any():
        return 1.0
    return float(np.clip(np.min(np.maximum(share[pulling], 0.0) / -change[pulling]), 0.0, 1.0))
