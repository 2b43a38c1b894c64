"""Check that the robot follows its plan, by measurements of every robot: joints, base, and forces if any.

Each piece of evidence is relative to the robot's size (a joint's error in rad is the displacement of the
limb behind it relative to its length), averaged over the time of a fall from the leg's height,
sqrt(L / g): an impact, a landing or a push that is recovered is shorter, a collapse is not.
Goals of the whole body plan no joints: then feet and other frames are compared with their paths, and the CoM's
height is checked.
It changes no torque.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller
from contact_id_controller.kernels.compile import Kernel, kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.spatial import point_column
from contact_id_controller.kernels.views import dense
from contact_id_controller.robot import RobotModel

JOINTS, FEET, HEIGHT, FORCES, SLIP = range(5)
"""Evidence: the largest error of a joint, rad; in leg lengths the largest distance of a foot from its planned place
below the base, or of a foot or frame from its path, and the base's height above the feet in stance less than planned;
in weights the difference of predicted and measured forces of all feet together; the mean slip speed of touching feet,
over sqrt(g L)."""

LIMITS = np.array([0.3, 0.15, 0.1, 0.5, math.inf])
"""Limits beyond which the plan is not followed. Walks that follow theirs stay below a fifth of each, with pushes
below a third; slip alone is no failure, but may explain others."""

RECOVERED = 0.5
"""Share of each limit below which all must be for the plan to count as followed again."""

SLIPS = 0.03
"""Slip from which on it is reported as a possible cause."""


class Outcome(NamedTuple):
    """Time, s, for which a robot did not follow its plan, and the first reason; empty: it did."""

    not_following_s: float = 0.0
    not_following: str = ""


FOLLOWED = Outcome()
"""Of a robot that did what was planned."""


class Following:
    """Checks step after step whether a controller's robot follows its plan, or holds its posture.

    Args:
        controller: of the robot; others of the same robot may be passed to ``look`` later.

    Attributes:
        length_m: of a leg, or of the longest limb without feet.
        window_s: averaging time of the evidence.
        evidence: (5,) as named above.
        reason: why it does not follow, one line; empty while it does.
        outcome: since construction.
    """

    def __init__(self, controller: Controller) -> None:
        robot, feet = controller.robot, controller.feet
        model = robot.model
        limbs = [_limb(model, link) for link in range(1, model.njoints)]
        reaches = [
            limbs[model.frames[robot.frame_id(foot.frame)].parentJoint - 1]
            + float(np.linalg.norm(_place(robot, foot)))
            for foot in feet.feet
        ]
        self.length_m = float(np.mean(reaches)) if reaches else max(limbs, default=0.0)
        gravity = float(np.linalg.norm(model.gravity.linear)) or 1.0
        self.window_s = math.sqrt(max(self.length_m, 1e-3) / gravity)
        straight = [model.joints[model.getJointId(name)].shortname() for name in robot.joint_names]
        self._scale = np.array(
            [
                1.0 / max(self.length_m, 1e-3) if kind.startswith("JointModelP") else 1.0
                for kind in straight
            ]
        )
        self._numbers = np.array([self.length_m, robot.weight, self.length_m / self.window_s])
        self._led = -1  # the frame of a goal that is farthest from its path
        self._worst = np.zeros(2, dtype=np.int64)
        self.evidence = np.zeros(len(LIMITS))
        self.outcome = FOLLOWED
        self._limits = LIMITS.copy()
        own = self._scale, self._numbers, 0.0, self._limits, self.evidence, self._worst
        self._weigh: Kernel = direct(_weigh, controller.period, _PLANNED, _NONE, *own)
        self.begin()

    def begin(self) -> None:
        """Reset the evidence, for another posture that is held from now on."""
        self.evidence[:] = 0.0
        self.reason = ""
        self._last_s: float | None = None

    def look(
        self, controller: Controller, time_s: float, measured: np.ndarray | None = None
    ) -> str:
        """Update the evidence by a step; returns the reason why the plan is not followed, empty if it is.

        Args:
            controller: that just made a step.  time_s: of its state.
            measured: (n, 3) N, forces on all feet, world frame; None if not measured.
        """
        passed_s = 0.0 if self._last_s is None else min(time_s - self._last_s, self.window_s)
        self._last_s = time_s
        if passed_s <= 0.0:
            return self.reason
        found = controller.goal_errors()
        if found is None:
            aims, self._led = _PLANNED, -1
        else:
            away_m, self._led, low_m = found
            aims = np.array([away_m, low_m])
        judged = self._weigh(
            controller.period,
            aims,
            _NONE if measured is None else dense(measured),
            self._scale,
            self._numbers,
            passed_s / (passed_s + self.window_s),
            self._limits,
            self.evidence,
            self._worst,
        )
        if judged > RECOVERED and (judged > 1.0 or self.reason):
            if not self.reason:
                self.reason = self._words(controller)
            lost_s, first = self.outcome
            self.outcome = Outcome(lost_s + passed_s, first or self.reason)
        else:
            self.reason = ""
        return self.reason

    def _words(self, controller: Controller) -> str:
        """Text about the evidence that exceeds its limit."""
        found, length = self.evidence, self.length_m
        joint = controller.robot.joint_names[self._worst[0]]
        words = {
            HEIGHT: f"base {found[HEIGHT] * length:.3f} m lower above its feet than planned",
            JOINTS: f"joint {joint} off by {found[JOINTS] / self._scale[self._worst[0]]:.2f} "
            + ("m" if self._scale[self._worst[0]] != 1.0 else "rad"),
            FORCES: f"predicted and measured forces differ by {found[FORCES]:.1f} of the weight",
        }
        if len(controller.feet):
            foot = f"foot {controller.contact_names[self._worst[1]]}"
            if self._led >= 0 and controller.tasks is not None:
                foot = controller.tasks.words(self._led)
            words[FEET] = f"{foot} {found[FEET] * length:.3f} m from its planned place"
        parts = [text for kind, text in words.items() if found[kind] > LIMITS[kind]]
        if found[SLIP] > SLIPS:
            parts.append(f"feet slip at {found[SLIP] * self._numbers[2]:.2f} m/s")
        return ", ".join(parts)

    def figures(self) -> dict[str, str]:
        """Names and values of the evidence."""
        found, length = self.evidence, self.length_m
        return {
            "not following": self.reason or "no",
            "not following (s)": f"{self.outcome.not_following_s:.2f}",
            "largest joint error (rad)": f"{found[JOINTS]:.3f}",
            "largest error of a foot or frame (m)": f"{found[FEET] * length:.3f}",
            "base too low (m)": f"{found[HEIGHT] * length:.3f}",
            "speed of touching feet (m/s)": f"{found[SLIP] * self._numbers[2]:.3f}",
        }


_NONE, _PLANNED = np.zeros((0, 3)), np.full(2, math.nan)


def _place(robot: RobotModel, foot: Any) -> np.ndarray:
    frame = robot.model.frames[robot.frame_id(foot.frame)]
    return frame.placement.act(np.array(foot.center, dtype=float))


def _limb(model: pin.Model, link: int) -> float:
    """Length, m, of a straight limb from its second joint to one of its links."""
    chain = [joint for joint in model.supports[link] if joint and model.joints[joint].nv == 1]
    return float(sum(np.linalg.norm(model.jointPlacements[j].translation) for j in chain[1:]))


@kernel
def _weigh(period, aims, measured, scale, numbers, share, limits, evidence, worst):
    """Update the averages ``evidence`` (5,); returns the largest ratio of evidence to its limit.

    Args:
        period: ``Period`` of the step, with joint axes, contacts, errors and predicted forces.
        aims: (2,) m, largest distance of a foot or frame from its path and the CoM's height error; NaN without goals.
        measured: (n, 3) N; (0, 3) if there are none.
        scale: (na,) factor that converts a joint's error to an angle.
        numbers: leg length, weight, speed.  share: of this step in the averages.  limits: (5,) of evidence.
        worst: (2,) out, joint and contact.
    """
    settings = period.settings
    J, v, supports, actuated = period.jacobian, period.v, settings.supports, settings.actuated
    links, points, normals = settings.links, period.points, period.normals
    touching, error, predicted = period.touching, period.error, period.forces
    length_m, weight_n, speed_m_s = numbers[0], numbers[1], numbers[2]
    largest, far, slip, low, count = 0.0, 0.0, 0.0, 0.0, 0
    led = not np.isnan(aims[0])
    for j in range(0 if led else error.shape[0]):
        size = abs(error[j]) * scale[j]
        if size > largest:
            largest, worst[0] = size, j
    for i in range(points.shape[0]):
        # Where the plan has it, from where it is, in the base's frame; and how fast it moves.
        a = b = c = 0.0
        for j in range(error.shape[0]):
            k = actuated[j]
            if supports[links[i], k]:
                x, y, z = point_column(J, k, points[i])
                a += error[j] * x
                b += error[j] * y
                c += error[j] * z
        away = np.sqrt(a * a + b * b + c * c)
        if away > far and not led:
            far, worst[1] = away, i
        if touching[i]:
            count += 1
            nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
            low -= a * nx + b * ny + c * nz
            a = b = c = 0.0
            for k in range(v.shape[0]):
                if supports[links[i], k]:
                    x, y, z = point_column(J, k, points[i])
                    a += v[k] * x
                    b += v[k] * y
                    c += v[k] * z
            away = a * nx + b * ny + c * nz
            slip += np.sqrt((a - away * nx) ** 2 + (b - away * ny) ** 2 + (c - away * nz) ** 2)
    if led:
        far, low = aims[0], aims[1] * count
    evidence[JOINTS] += share * (largest - evidence[JOINTS])
    evidence[FEET] += share * (far / length_m - evidence[FEET]) if length_m > 0.0 else 0.0
    if count:
        evidence[HEIGHT] += share * (low / count / length_m - evidence[HEIGHT])
        evidence[SLIP] += share * (slip / count / speed_m_s - evidence[SLIP])
    if measured.shape[0]:
        total = 0.0
        for d in range(3):
            difference = 0.0
            for i in range(predicted.shape[0]):
                difference += predicted[i, d]
            for i in range(measured.shape[0]):
                difference -= measured[i, d]
            total += difference * difference
        evidence[FORCES] += share * (np.sqrt(total) / weight_n - evidence[FORCES])
    judged = 0.0
    for e in range(evidence.shape[0]):
        judged = max(judged, evidence[e] / limits[e])
    return judged
