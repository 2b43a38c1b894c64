"""State that a controller keeps from one period to the next, in one place.

When a controller replaces another one, exactly this state is handed over.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control import delay_estimate, grip, joint_velocity, motor_estimate
from contact_id_controller.control.contact_estimate import forget_contacts
from contact_id_controller.control.contact_sources import ContactSources
from contact_id_controller.control.course import Course
from contact_id_controller.control.disturbance import forget
from contact_id_controller.control.pending_commands import PendingCommands
from contact_id_controller.control.period import Period
from contact_id_controller.control.touch import Touch
from contact_id_controller.solution import Solution

ESTIMATED = (
    "pressure",
    "odds",
    "rise",
    "touchdowns",
    "height",
    "height_noise",
    "relief",
    "rough",
    "stands",
    "caught",
    "missed",
    "left",
    "lack",
    "blocked",
    "changed_s",
)
"""Those of ``contact_estimate``."""

REMEMBERED = (
    "q",
    "position",
    "velocity",
    "integral",
    "decided",
    "commanded",
    "touching",
    "landed",
    "lifted",
    "early",
    "forces",
    "arrives",
    "before",
    "stood",
    "seen_s",
    "external",
    "load",
    *ESTIMATED,
    "grip",
    "excess",
    "stands_s",
    "foreseen",
    "slips",
    "motors",
    "late",
    "swing",
    "swing_s",
    "squares",
    "effort",
    "sensed_before",
    "given",
    "biases",
    "answer",
    "quick",
    "lagged",
    "delay",
    "sought",
)
"""Fields of the ``Period`` that the next period goes on from."""


@dataclass
class Memory:
    """State that a controller keeps; the arrays remain the period's own.

    Attributes:
        period: its arrays `REMEMBERED`.
        course: plans that are followed.
        sources: contacts by measurement, and start times of contacts.
        forces: (delay, n, 3) N, measured on the contacts, world frame; the newest first.
        up_in_base: (3,) the world's z axis in the base frame, from which `tilt` counts; None for a
            fixed base, and before the first state.
        pending: commands that do not act yet, if torques are delayed.
        solution: warm start of the next one; None: cold.
        touch: state of contacts that press; None: there are none, or the base floats.
    """

    period: Period
    course: Course
    sources: ContactSources
    forces: NDArray[np.float64]
    pending: PendingCommands
    up_in_base: NDArray[np.float64] | None = None
    solution: Solution | None = None
    touch: Touch | None = None

    def copy(self) -> Memory:
        """An independent copy; `restore` takes it back."""
        arrays = {name: getattr(self.period, name).copy() for name in REMEMBERED}
        return replace(
            self,
            period=self.period.changed(**arrays),
            course=self.course.copy(),
            sources=copy.deepcopy(self.sources),
            forces=self.forces.copy(),
            pending=self.pending.copy(),
            touch=None if self.touch is None else self.touch.copy(),
        )

    def forget(self, keep_ground: bool = False) -> None:
        """Reset all but the course, the last torques and the measured contacts.

        The contacts of the next period count as established: their load is not ramped. keep_ground: estimates of the
        ground and of feet in contact are kept too, and those of the motors.
        """
        period = self.period
        self.forces[:] = 0.0
        for flags in (period.touching, period.landing, period.landed, period.lifted, period.early):
            flags[:] = False
        period.integral[:] = 0.0
        period.decided[:] = period.commanded
        self.sources.begin()
        self.pending.forget()
        forget(period)
        if not keep_ground:
            forget_contacts(period)
            motor_estimate.forget(period)
            delay_estimate.forget(period)
        grip.forget(period)
        joint_velocity.forget(period)
        period.sought[:] = -np.inf
        self.solution = None
        if self.touch is not None:
            self.touch.forget()

    def restore(self, other: Memory) -> None:
        """Copy the state of another controller of the same robot, or of an earlier copy."""
        for name in REMEMBERED:
            getattr(self.period, name)[:] = getattr(other.period, name)
        self.course = other.course.copy()
        self.sources.take_over(other.sources)
        kept = min(len(self.forces), len(other.forces))
        self.forces[:kept], self.forces[kept:] = other.forces[:kept], other.forces[-1]
        self.up_in_base = other.up_in_base
        self.pending, self.solution = other.pending.copy(), other.solution
        if self.touch is not None and other.touch is not None:
            self.touch.take_over(other.touch)

    def follow_as(self, other: Memory) -> None:
        """Follow the plans of another one, with its integral and estimates of disturbance, motors and grip.

        All else is kept.
        """
        self.course, self.up_in_base = other.course.copy(), other.up_in_base
        self.period.integral[:] = other.period.integral
        self.period.external[:] = other.period.external
        self.period.grip[:], self.period.slips[:] = other.period.grip, other.period.slips
        self.period.excess[:] = 0.0
        self.period.motors[:] = other.period.motors
        self.period.delay[:] = other.period.delay
