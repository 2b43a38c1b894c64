"""Labels of a block of frames: feet in contact, and the contact model's forces and torques."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.control.controller import SUPPLIED, effective_row, loss_weights
from contact_id_controller.control.limits import joint_limits
from contact_id_controller.exceptions import ConfigurationError, UnknownModelError
from contact_id_controller.geometry import feet_on
from contact_id_controller.labels.contact_speeds import contact_speeds
from contact_id_controller.labels.recorded_motion import NO_PERIOD, Frames, MotionBlock, frames_of
from contact_id_controller.models.batch import (
    FRAME_STATUSES,
    REFUSED,
    ContactFrames,
    FrameSolutions,
    solve_batch,
)
from contact_id_controller.settings.controller import ControllerSettings

STATUSES = (*FRAME_STATUSES, NO_PERIOD)
"""``status`` of a label is a place in this tuple."""

LABELS = {
    "frame": "number of the row in the motion",
    "time_s": "s, of that row",
    "period_s": "s, from there to the end of the frame",
    "torques": "(na,) N·m, of the motors in command order, friction and rotor inertia included",
    "forces": "(n, 3) N, on the robot, world frame; 0 where a contact does not count",
    "contact": "(n,) the contacts that count",
    "slip_m_s": "(n,) tangential speed at the frame's end, recorded or of the law; NaN where a contact "
    "does not count",
    "velocity": "(nv,) generalized velocity at the frame's end that the labels explain",
    "base_error": "(nu,) that velocity of the unactuated coordinates less the recorded one",
    "cone_n": "N, largest force outside its friction cone",
    "adhesion_n": "N, largest pulling force",
    "gap_m_s": "m/s, largest closing speed beyond what a gap allows",
    "complementarity_w": "W, largest normal force times parting speed",
    "contradiction_m_s": "m/s, contact velocity taken away because the motion contradicts its contacts",
    "iterations": "steps of the solver",
    "status": "place in the manifest's statuses",
}
"""Arrays of labels, a row a frame, and what they are; all are NaN where a frame has no answer."""

REFUSED_FRAMES, REASONS = "refused_frames", "refused_reasons"
"""Two more arrays of a chunk: numbers of refused frames, and why."""

RECORDED, GEOMETRY = "recorded", "geometry"
"""Where contact comes from."""

LAW = "law"
"""Where the base's motion comes from: RECORDED, or as the contact law computes."""

PARTING_M_S = 0.05

LONGEST_GAP_S = 0.1


class Labeller:
    """Labels frames of motions of one robot with the contact model of its settings.

    Each frame is solved independently: labels depend neither on the size of blocks nor on the process.

    Args:
        settings: robot, feet, ground, friction and contact model of a parameter file.
        contact: GEOMETRY: feet within ``contact_gap_m`` of the ground are in contact; RECORDED: those that the
            motion states, with gap zero.
        longest_gap_s: no frame spans rows further apart in time.
        base: RECORDED: forces and torques produce the recorded motion of base and joints, as far as
            forces in the friction cones can; a contact with recorded velocity is held as by ground that moves
            with it. LAW: the base moves by the contact law; also used for motions with accelerations of their
            own, whose next state is not recorded.
        parting_m_s: a foot near the ground whose recorded separation speed is larger is not in contact.

    Attributes:
        robot: of the settings.

    Raises:
        UnknownModelError: the model needs measured forces, or is feedback alone.
        ConfigurationError: an invalid gap, or settings that do not fit the robot.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        contact: str = GEOMETRY,
        longest_gap_s: float = LONGEST_GAP_S,
        base: str = RECORDED,
        parting_m_s: float = PARTING_M_S,
    ) -> None:
        row = effective_row(settings)
        if row.feedback_only or row.takes("forces"):
            raise UnknownModelError(f"{row} predicts no forces, so it labels no motion")
        if not longest_gap_s > 0.0:
            raise ConfigurationError(f"the longest gap must be above 0 s, got {longest_gap_s:g}")
        self.settings, self.contact, self.longest_gap_s = settings, contact, longest_gap_s
        self.base, self.parting_m_s = base, parting_m_s
        self.robot = robot = settings.robot()
        self._feet = feet_on(
            robot,
            settings.feet,
            settings.ground,
            settings.spread_over_contacts("friction_coefficient"),
            settings.spread_over_contacts("viscosity"),
        )
        known = joint_limits(robot, settings).effort, loss_weights(robot, settings), None
        self._model: tuple[Any, ...] = row.pair
        self._options = row.keywords(settings, dict(zip(SUPPLIED, known, strict=True)))

    @property
    def contacts(self) -> int:
        """Number of possible contacts."""
        return len(self._feet)

    def label(self, block: MotionBlock) -> dict[str, np.ndarray]:
        """Label a block's frames; returns arrays by name with a row for each frame, see ``LABELS``."""
        settings, robot = self.settings, self.robot
        frames = frames_of(block, robot, settings.period_s, self.longest_gap_s)
        ended = ~np.isnan(frames.period_s)
        known = np.isfinite(np.hstack([frames.q, frames.v, frames.acceleration])).all(axis=1)
        good = ended & known
        given = frames.v if "v" in block.rows else frames.q
        lost = ~np.isfinite(np.hstack([frames.q, given])).all(axis=1)
        follows = self.base == RECORDED and "acceleration" not in block.rows
        if follows:
            good &= np.isfinite(frames.next_velocity).all(axis=1)
        contacts = self._contacts(frames, good, follows)
        # Frames without an answer are solved at rest in the air, and overwritten.
        rest = robot.neutral()
        solutions = solve_batch(
            robot,
            np.where(good[:, None], frames.q, rest),
            np.where(good[:, None], frames.v, 0.0),
            np.where(good[:, None], frames.acceleration, 0.0),
            contacts,
            np.where(ended, frames.period_s, settings.period_s),
            *self._model,
            velocity_product_term=settings.velocity_product_term,
            contact_time_constant_s=None if follows else settings.contact_time_constant_s,
            penetration_gain=settings.penetration_gain,
            **self._options,
        )
        return self._labels(block, frames, contacts, solutions, good, ended | lost)

    def _contacts(self, frames: Frames, good: np.ndarray, follows: bool) -> ContactFrames:
        """Contacts of all frames: points, normals, and which feet are in contact, as recorded or by distance and speed.

        Args:
            good: (m,) bool, frames whose numbers are finite.
            follows: the base's motion is recorded and contact points move with it; False: by the contact law.
        """
        feet, robot = self._feet, self.robot
        count, n = len(good), len(feet)
        points, normals = np.zeros((count, n, 3)), np.tile(feet.normals, (count, 1, 1))
        distances, friction, speeds = np.zeros((count, n)), np.zeros((count, n)), None
        drift = self.settings.velocity_product_term * np.nan_to_num(frames.period_s)
        if follows:
            speeds = np.zeros((count, n, 3))
        base: ContactSet = feet.select(np.ones(n, dtype=bool))
        alone = np.zeros(n, dtype=bool)
        for k in np.flatnonzero(good).tolist():
            pin.computeJointJacobians(robot.model, robot.data, frames.q[k])
            feet.update(robot.data)
            points[k], normals[k], distances[k] = feet.points, feet.normals, feet.gaps
            if speeds is not None:
                self._speeds(frames, k, points[k], alone, drift[k], speeds[k])
        if self.contact == RECORDED and frames.contact is not None:
            touching = frames.contact.copy()
        else:
            touching = distances <= self.settings.contact_gap_m
            if speeds is not None:
                touching &= (speeds * normals).sum(axis=2) <= self.parting_m_s
        touching &= good[:, None] & np.isfinite(points).all(axis=2)
        if speeds is not None and len(set(feet.links)) < n:
            for k in np.flatnonzero(good).tolist():
                pin.computeJointJacobians(robot.model, robot.data, frames.q[k])
                self._speeds(frames, k, points[k], touching[k], drift[k], speeds[k])
        friction[:] = base.friction
        # Recorded heights are not true to a micrometre, by which a foot would come down without a force.
        gaps = np.zeros((count, n))
        return ContactFrames(base, points, touching, normals, gaps, friction, speeds)

    def _speeds(
        self,
        frames: Frames,
        k: int,
        points: np.ndarray,
        touching: np.ndarray,
        drift_s: float,
        speeds: np.ndarray,
    ) -> None:
        """See ``contact_speeds``; the joint Jacobians are those of frame k."""
        robot = self.robot
        contact_speeds(
            robot.jacobian_view,
            frames.v[k],
            frames.next_velocity[k],
            robot.supports,
            robot.coordinate_joint,
            self._feet.links,
            points,
            touching,
            drift_s,
            speeds,
        )

    def _labels(
        self,
        block: MotionBlock,
        frames: Frames,
        contacts: ContactFrames,
        solutions: FrameSolutions,
        good: np.ndarray,
        wanted: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Arrays of a block: forces, torques, residuals; NaN and a status in frames without a solution."""
        robot = self.robot
        answered = good & (solutions.status != STATUSES.index(REFUSED))
        status = np.where(answered, solutions.status, STATUSES.index(REFUSED)).astype(np.uint8)
        status[~wanted] = STATUSES.index(NO_PERIOD)
        reasons = dict(solutions.reasons)
        for k in np.flatnonzero(wanted & ~good):
            names = [
                name
                for name in ("q", "v", "acceleration")
                if not np.isfinite(getattr(frames, name)[k]).all()
            ]
            reasons[int(k)] = f"{(*names, 'the next v')[0]} is not known"
        assert contacts.friction is not None
        friction = robot.motors.friction(frames.v[:, robot.actuated])
        labels = {
            "torques": solutions.torques + friction,
            "forces": solutions.forces,
            "slip_m_s": _slip(contacts, solutions),
            "velocity": solutions.velocity,
            "base_error": (solutions.velocity - frames.next_velocity)[:, robot.unactuated],
            **solutions.residuals(contacts.friction),
            "contradiction_m_s": solutions.contradiction_m_s,
        }
        for values in labels.values():
            values[~answered] = np.nan
        bad = np.array(sorted(reasons), dtype=np.int64)
        return {
            "frame": np.arange(block.first, block.first + block.count),
            "time_s": frames.time_s,
            "period_s": frames.period_s,
            "contact": contacts.touching,
            **labels,
            "iterations": np.where(answered, solutions.iterations, 0),
            "status": status,
            REFUSED_FRAMES: block.first + bad,
            REASONS: np.array([reasons[k] for k in bad.tolist()], dtype=str),
        }


def _slip(contacts: ContactFrames, solutions: FrameSolutions) -> np.ndarray:
    """Tangential speed (m, n), m/s, of the contacts in the problem."""
    speeds, normals = contacts.surface_velocities, contacts.normals
    if speeds is None or normals is None:
        return solutions.slip_m_s
    along = speeds - (speeds * normals).sum(axis=2, keepdims=True) * normals
    return np.where(contacts.touching, np.linalg.norm(along, axis=2), np.nan)
