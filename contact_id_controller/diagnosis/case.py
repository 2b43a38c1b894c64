"""A log prepared for all checks: even samples, the robot, and cached fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from contact_id_controller.diagnosis import arm_judge, leg_judge
from contact_id_controller.diagnosis.arm_judge import JointFit, Motion
from contact_id_controller.diagnosis.even_samples import EvenSamples, even
from contact_id_controller.diagnosis.leg_judge import Stance
from contact_id_controller.diagnosis.robot_of_log import RobotOfLog
from contact_id_controller.exceptions import RecordError, choices
from contact_id_controller.logs.column_map import ColumnMap
from contact_id_controller.logs.log import Log
from contact_id_controller.logs.reader import corrected

EXPLAINED = 0.75
"""Least share of the efforts' variance that a fixed-base model must explain to be evidence of faults."""

CARRIES = 3.0
"""Least ratio of standing legs' efforts to the torques of a held base; friction reduces it."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A log and its robot.

    Attributes:
        log: as read, with the corrections so far.  of: the robot; None: no URDF.
        free: a log of the same robot and recorder without contact, with the same corrections; None: none.
    """

    log: Log
    of: RobotOfLog | None
    free: Log | None = None

    @cached_property
    def samples(self) -> EvenSamples:
        """The channels at even times."""
        return even(self.log)

    @cached_property
    def motion(self) -> Motion | None:
        """The data of an evaluation of a fixed base; None without URDF or efforts, or with a floating base."""
        if self.of is None or self.of.robot.floating_base:
            return None
        return arm_judge.motion_of(self.samples, self.of.robot)

    @cached_property
    def fit(self) -> JointFit | None:
        """The fit of a fixed base's efforts."""
        if self.motion is None or self.of is None:
            return None
        return arm_judge.judged(self.motion, self.of.robot)

    @property
    def carries(self) -> bool:
        """Whether the legs' efforts are large enough for them to carry the robot."""
        if self.of is None or not self.of.legged or self.motion is None or self.fit is None:
            return False
        model = np.std(self.fit.model_torque, axis=0) + 1e-12
        times = float(np.median(np.std(self.motion.effort, axis=0) / model))
        return times > CARRIES and not self.motion.currents

    def believable(self, cost: float) -> bool:
        """Whether a fit with this cost is evidence: the model explains most of the efforts, and legs do not carry.

        Otherwise logarithms of small residuals can fall by fitting noise, or ground forces.
        """
        if self.motion is None:
            return True
        return not self.carries and arm_judge.explained(self.motion, cost) > EXPLAINED

    @cached_property
    def stance(self) -> Stance | None:
        """Samples at which feet of a floating base stand."""
        if self.of is None or not self.of.robot.floating_base or self.log.imu is None:
            return None
        return leg_judge.stance_of(self.samples, self.of)

    @property
    def cost(self) -> float | None:
        """Logarithmic misfit of measurements and model; None if nothing can be compared."""
        if self.fit is not None:
            return self.fit.cost
        if self.stance is not None and self.of is not None:
            return leg_judge.cost(self.stance, self.of)
        return None

    def of_feet(self, feet: tuple[str, ...]) -> Case:
        """The case with other frames assigned to the feet of the log."""
        of = None if self.of is None else dataclasses.replace(self.of, feet=feet)
        return dataclasses.replace(self, of=of)

    def with_correction(self, fragment: Mapping[str, Any]) -> Case:
        """The case with its log corrected by a fragment of a map."""
        free = None if self.free is None else _with_correction(self.free, fragment)
        return Case(_with_correction(self.log, fragment), self.of, free)


def _with_correction(log: Log, fragment: Mapping[str, Any]) -> Log:
    fragment, order = dict(fragment), log.joints
    joints = fragment.pop("joints", None)
    if joints is not None:
        log = in_order_of(dataclasses.replace(log, joints=tuple(joints)), order)
    return corrected(log, ColumnMap({}, **fragment))


def in_order_of(log: Log, joints: tuple[str, ...]) -> Log:
    """The log with its columns in another order of its joints, or of some of them.

    Raises:
        RecordError: a joint is missing.
    """
    for name in joints:
        if name not in log.joints:
            raise RecordError(
                f"the log {log.source!r} lacks joint {name!r}; it has {choices(log.joints)}"
            )
    order = [log.joints.index(name) for name in joints]
    changed: dict[str, Any] = {
        name: None if values is None else values[:, order]
        for name, values in (
            (name, getattr(log, name))
            for name in ("position", "velocity", "acceleration", "effort", "current")
        )
    }
    commands = dataclasses.replace(
        log.commands,
        **{
            each.name: value[:, order]
            for each in dataclasses.fields(log.commands)
            if (value := getattr(log.commands, each.name)) is not None
        },
    )
    return dataclasses.replace(log, joints=joints, commands=commands, **changed)
