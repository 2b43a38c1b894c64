"""Table of model errors: what in a simulated robot differs from the controller's model, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import mujoco
import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.geometry import FrictionMap, HalfSpace, HeightField
from contact_id_controller.robot import RobotModel
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.simulation.mujoco_robot import MujocoRobot

Ground = HalfSpace | HeightField | None
"""None: the plane z = 0."""

BELIEVED_FRICTION = 0.6
"""What the controller takes the friction of the ground for, where that is what is wrong."""

BUMP_SPACING_M, FIELD_M = 0.1, 3.0
ICE_SHARE, ICE_PATCH_M = 0.3, 0.2
PUSH_AT_S, PUSH_DURATION_S = 1.0, 0.1
PAYLOAD_PLACE = 0.5
"""Of the way from the middle of the trunk to its joints, forwards or sideways: 5 cm on a trunk of 20 cm."""


@dataclass
class Changes:
    """Differences of a simulated robot from its settings; rows of ``TABLE`` add to it.

    Attributes:
        seed: of random draws.
        effort_limits: (na,) N·m of the joints, to which some errors are relative; None: the URDF's.
        grounds: each makes the ground from the one before.
        friction: coefficient, or function of places, as ``MujocoRobot`` takes it; None: unchanged.
        edits: functions that change the built robot's MuJoCo model.
        delay_s: delay of the torques.
        pushes: time, s, and change of velocity (3,) m/s of the whole robot's mass.
        controller: parameters of the controller that differ.
        motors: functions of the controller's robot model that give further rows of its parameter ``motors``.
    """

    seed: int = 0
    effort_limits: np.ndarray | None = None
    grounds: list[Callable[[Ground], Ground]] = field(default_factory=list)
    friction: Any = None
    edits: list[Callable[[MujocoRobot], None]] = field(default_factory=list)
    delay_s: float = 0.0
    pushes: list[tuple[float, tuple[float, float, float]]] = field(default_factory=list)
    controller: dict[str, Any] = field(default_factory=dict)
    motors: list[Callable[[RobotModel], list[str]]] = field(default_factory=list)

    def parameters(self, robot: RobotModel, motors: Sequence[str]) -> dict[str, Any]:
        """Parameters of the controller that differ; ``motors``: rows of that parameter in its file, to be extended."""
        rows = [row for each in self.motors for row in each(robot)]
        return {**self.controller, "motors": [*motors, *rows]} if rows else self.controller

    def ground(self, believed: Ground) -> Ground:
        """The simulated ground, where ``believed`` is that of the controller."""
        for change in self.grounds:
            believed = change(believed)
        return believed

    def applied(self, robot: MujocoRobot) -> MujocoRobot | DisturbedRobot:
        """Apply edits, in place, delay and pushes to a built robot; it must be reset before use."""
        if self.edits:
            for edit in self.edits:
                edit(robot)
            model = robot.mujoco_model
            mujoco.mj_setConst(model, mujoco.MjData(model))
        if not (self.delay_s or self.pushes):
            return robot
        mass = float(robot.mujoco_model.body_mass.sum())
        pushes = [Push(at, PUSH_DURATION_S, mass * np.array(way)) for at, way in self.pushes]
        return DisturbedRobot(robot, round(self.delay_s / robot.period_s), pushes)


class Perturbation(NamedTuple):
    """One kind of model error.

    Attributes:
        name, unit: of its size.  meaning: in words.
        apply: adds an error of a size to ``Changes``.
        sizes: tried by default.
        none: the size without error.  far: sizes that bound a bisection.
        drawn: it depends on the seed.
        grounds: feet stand at different heights.
        at_s: time at which it begins.
    """

    name: str
    unit: str
    meaning: str
    apply: Callable[[Changes, float], None]
    sizes: tuple[float, ...]
    far: tuple[float, ...]
    none: float = 0.0
    drawn: bool = False
    grounds: bool = False
    at_s: float = 0.0


def perturbation(name: str) -> Perturbation:
    """Row of the table by name.

    Raises:
        ConfigurationError: no row of that name.
    """
    if name not in TABLE:
        raise ConfigurationError(f"no perturbation {name!r}; there is {choices(TABLE)}")
    return TABLE[name]


def _lifted(ground: Ground, rise: Callable[[Any, Any], Any]) -> HeightField:
    """The ground with ``rise(x, y)`` added to its heights; a plane becomes a field of ``FIELD_M``."""
    if isinstance(ground, HeightField):
        x, y, heights = ground.x, ground.y, ground.heights
    else:
        x = y = np.linspace(-FIELD_M, FIELD_M, round(2.0 * FIELD_M / BUMP_SPACING_M) + 1)
        heights = np.zeros((len(x), len(y)))
    return HeightField(x, y, heights + rise(*np.meshgrid(x, y, indexing="ij")))


def _ground_height(changes: Changes, size: float) -> None:
    """Raise the ground by ``size``, m."""

    def raised(ground: Ground) -> Ground:
        if isinstance(ground, HeightField):
            return _lifted(ground, lambda x, y: size)
        return HalfSpace(offset=size)

    changes.grounds.append(raised)


def _slope(changes: Changes, size: float) -> None:
    """Tilt the ground about its origin to rise along x by the angle ``size``, degrees."""
    angle = math.radians(size)

    def tilted(ground: Ground) -> Ground:
        if isinstance(ground, HeightField):
            return _lifted(ground, lambda x, y: math.tan(angle) * x)
        return HalfSpace((-math.sin(angle), 0.0, math.cos(angle)))

    changes.grounds.append(tilted)


def _bumps(changes: Changes, size: float) -> None:
    """Add heights drawn from +- ``size`` / 2, m, to the ground."""
    grid = np.linspace(-FIELD_M, FIELD_M, round(2.0 * FIELD_M / BUMP_SPACING_M) + 1)
    drawn = np.random.default_rng(changes.seed).uniform(-0.5, 0.5, (len(grid), len(grid)))
    bumps = HeightField(grid, grid, size * drawn)
    changes.grounds.append(lambda ground: _lifted(ground, bumps.heights_at))


def _ground_friction(changes: Changes, size: float) -> None:
    changes.friction = size
    changes.controller["friction_coefficient"] = [BELIEVED_FRICTION]


def _ice(changes: Changes, size: float) -> None:
    draw = FrictionMap(0.0, 1.0, ICE_PATCH_M, changes.seed)
    changes.friction = lambda points: np.where(draw(points) < ICE_SHARE, size, BELIEVED_FRICTION)
    changes.controller["friction_coefficient"] = [BELIEVED_FRICTION]


def _payload(along: tuple[float, float]) -> Callable[[Changes, float], None]:
    """Make ``add(changes, size)``, which adds a point mass, ``size`` times the robot's mass, to the trunk.

    along: its x and y as shares of the trunk's half size.
    """

    def add(changes: Changes, size: float) -> None:
        def edit(robot: MujocoRobot) -> None:
            model, body = robot.mujoco_model, _carrier(robot)
            # The trunk reaches as far as the bodies that it carries are attached.
            carried = model.body_pos[model.body_parentid == body]
            half = np.abs(carried).max(axis=0, initial=0.0)
            place = np.array([along[0] * half[0], along[1] * half[1], 0.0])
            _add_point_mass(model, body, size * float(model.body_mass.sum()), place)

        changes.edits.append(edit)

    return add


def _carrier(robot: MujocoRobot) -> int:
    """Index of the body that carries a load: the trunk, or the last link of an arm."""
    return 1 if robot.robot.floating_base else robot.mujoco_model.nbody - 1


def _add_point_mass(model: mujoco.MjModel, body: int, mass: float, place: np.ndarray) -> None:
    """Add a mass, kg, at ``place`` (3,), m, in the body's frame, to the body's mass, centre of mass and inertia."""
    axes, own = np.zeros(9), float(model.body_mass[body])
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    R, before = axes.reshape(3, 3), model.body_ipos[body].copy()
    middle = (own * before + mass * place) / (own + mass)
    inertia = R @ np.diag(model.body_inertia[body]) @ R.T
    for each, at in ((own, before), (mass, place)):
        away = at - middle
        inertia += each * ((away @ away) * np.eye(3) - np.outer(away, away))
    moments, principal = np.linalg.eigh(inertia)
    principal[:, 0] *= np.sign(np.linalg.det(principal))
    mujoco.mju_mat2Quat(model.body_iquat[body], principal.ravel())
    model.body_mass[body], model.body_ipos[body] = own + mass, middle
    model.body_inertia[body] = moments


def _links(changes: Changes, size: float) -> None:
    """Scale mass and inertia of each body by 1 + ``size`` or 1 - ``size``, drawn."""

    def edit(robot: MujocoRobot) -> None:
        model = robot.mujoco_model
        signs = np.random.default_rng(changes.seed).choice([-1.0, 1.0], model.nbody - 1)
        model.body_mass[1:] *= 1.0 + size * signs
        model.body_inertia[1:] *= (1.0 + size * signs)[:, None]

    changes.edits.append(edit)


def _mass(changes: Changes, size: float) -> None:
    def edit(robot: MujocoRobot) -> None:
        robot.mujoco_model.body_mass[1:] *= 1.0 + size
        robot.mujoco_model.body_inertia[1:] *= 1.0 + size

    changes.edits.append(edit)


def _center_of_mass(changes: Changes, size: float) -> None:
    def edit(robot: MujocoRobot) -> None:
        robot.mujoco_model.body_ipos[_carrier(robot), 0] += size

    changes.edits.append(edit)


def _of_joints(
    name: str,
    setting: str,
    scale: Callable[[Changes, RobotModel], Any],
    inform_controller: bool = False,
) -> Callable[[Changes, float], None]:
    """Make ``add(changes, size)``, adding ``size * scale(changes, robot)`` to MjModel's array ``name`` at joint dofs.

    Args:
        scale: perturbation at size 1, (na,), in the unit of the array.
        setting: the same quantity's name in ``robot.motors`` and in rows of the parameter ``motors``.
        inform_controller: also give the controller the changed values, as rows "joint setting=value" of ``motors``.
    """

    def rows(changes: Changes, size: float, robot: RobotModel) -> list[str]:
        values = getattr(robot.motors, setting) + size * scale(changes, robot)
        return [f"{joint} {setting}={each:g}" for joint, each in zip(robot.joint_names, values)]

    def add(changes: Changes, size: float) -> None:
        if inform_controller:
            changes.motors.append(partial(rows, changes, size))

        def edit(robot: MujocoRobot) -> None:
            more = size * scale(changes, robot.robot)
            getattr(robot.mujoco_model, name)[robot.mujoco_dofs] += more

        changes.edits.append(edit)

    return add


def _one(changes: Changes, robot: RobotModel) -> np.ndarray:
    return np.ones(robot.na)


def _torque_limits(changes: Changes, robot: RobotModel) -> np.ndarray:
    limits = robot.effort_limits if changes.effort_limits is None else changes.effort_limits
    return np.where(np.isfinite(limits), limits, 0.0)


def _limits_over_speed(changes: Changes, robot: RobotModel) -> np.ndarray:
    return _torque_limits(changes, robot) / robot.velocity_limits


def _delay(changes: Changes, size: float) -> None:
    changes.delay_s += size


def _delay_told(changes: Changes, size: float) -> None:
    changes.delay_s += size
    changes.controller["command_delay_s"] = size


def _push(changes: Changes, size: float) -> None:
    changes.pushes.append((PUSH_AT_S, (0.0, size, 0.0)))


def _together(changes: Changes, size: float) -> None:
    """Apply the errors of ``TOGETHER`` at the share ``size`` of their sizes there.

    Friction at that share of its change.
    """
    for name, full in TOGETHER.items():
        row = TABLE[name]
        row.apply(changes, row.none + size * (full - row.none))


def _scene(changes: Changes, size: float) -> None:
    """Draw the errors of ``SCENE`` within +- ``size`` of their sizes there.

    Add that share of its delay and friction.
    """
    draw = np.random.default_rng(changes.seed)
    for name, most in SCENE.items():
        TABLE[name].apply(changes, size * draw.uniform(-most, most))
    TABLE["delay"].apply(changes, size * SCENE_DELAY_S)
    _ground_friction(changes, BELIEVED_FRICTION + size * (SCENE_FRICTION - BELIEVED_FRICTION))


SCENE = {"ground_height": 0.01, "mass": 0.05}
SCENE_FRICTION, SCENE_DELAY_S = 0.4, 0.001

TOGETHER = {
    "ground_height": 0.02,
    "ground_friction": 0.2,
    "links": 0.2,
    "center_of_mass": 0.01,
    "payload": 0.2,
    "rotor_inertia": 0.01,
    "dry_friction": 0.03,
    "delay": 0.005,
}

_MOTOR_ROWS = tuple(
    Perturbation(
        name + "_told" * told,
        unit,
        meaning + ", told by motors" * told,
        _of_joints(place, setting, scale, told),
        sizes,
        far,
    )
    for name, unit, meaning, place, setting, scale, sizes, far in (
        (
            *("rotor_inertia", "kg m2", "of the motors, at the joints"),
            *("dof_armature", "rotor_inertia_kg_m2", _one, (0.01,), (0.2,)),
        ),
        (
            *("dry_friction", "of the torque limit", "in the joints"),
            *("dof_frictionloss", "dry_friction_nm", _torque_limits, (0.03,), (0.3,)),
        ),
        (
            *("viscous_friction", "of the torque limit", "in the joints, at their speed limit"),
            *("dof_damping", "viscous_friction_nm_s_rad", _limits_over_speed, (0.03,), (1.0,)),
        ),
    )
    for told in (False, True)
)

_ROWS = (
    Perturbation(
        "ground_height",
        "m",
        "ground higher than believed",
        _ground_height,
        (-0.02, -0.003, 0.003, 0.02),
        (-0.1, 0.1),
    ),
    Perturbation(
        "slope", "deg", "ground rises along x", _slope, (6.0, 12.0), (-30.0, 30.0), grounds=True
    ),
    Perturbation(
        "bumps",
        "m",
        "heights drawn each 10 cm from a range of this size",
        _bumps,
        (0.03, 0.05),
        (0.1,),
        drawn=True,
        grounds=True,
    ),
    Perturbation(
        "ground_friction",
        "mu",
        f"friction of the ground, believed {BELIEVED_FRICTION}",
        _ground_friction,
        (0.3, 0.2),
        (0.02,),
        none=BELIEVED_FRICTION,
    ),
    Perturbation(
        "ice",
        "mu",
        f"friction of {100 * ICE_SHARE:.0f} % of all patches of {100 * ICE_PATCH_M:.0f} cm, believed "
        f"{BELIEVED_FRICTION} everywhere",
        _ice,
        (0.2, 0.1),
        (0.02,),
        none=BELIEVED_FRICTION,
        drawn=True,
    ),
    Perturbation(
        "payload",
        "of the mass",
        "on the middle of the trunk (an arm: on its last link)",
        _payload((0.0, 0.0)),
        (0.1, 0.2),
        (1.0,),
    ),
    Perturbation(
        "payload_ahead",
        "of the mass",
        "on the trunk, half way to its front joints",
        _payload((PAYLOAD_PLACE, 0.0)),
        (0.2,),
        (1.0,),
    ),
    Perturbation(
        "payload_behind",
        "of the mass",
        "half way to its rear joints",
        _payload((-PAYLOAD_PLACE, 0.0)),
        (0.2,),
        (1.0,),
    ),
    Perturbation(
        "payload_aside",
        "of the mass",
        "half way to its left joints",
        _payload((0.0, PAYLOAD_PLACE)),
        (0.2,),
        (1.0,),
    ),
    Perturbation(
        "links",
        "share",
        "masses and inertias of links, each more or less by draw",
        _links,
        (0.2,),
        (0.8,),
        drawn=True,
    ),
    Perturbation("mass", "share", "all masses and inertias", _mass, (-0.05, 0.05), (-0.5, 1.0)),
    Perturbation(
        "center_of_mass",
        "m",
        "of the trunk, farther ahead",
        _center_of_mass,
        (-0.01, 0.01),
        (-0.2, 0.2),
    ),
    *_MOTOR_ROWS,
    Perturbation("delay", "s", "torques act late, untold", _delay, (0.002, 0.005), (0.03,)),
    Perturbation(
        "delay_told",
        "s",
        "torques act late, told by command_delay_s",
        _delay_told,
        (0.005, 0.01),
        (0.03,),
    ),
    Perturbation(
        "push",
        "m/s",
        "change of speed to the left, in .1 s",
        _push,
        (0.1, 0.2),
        (-1.5, 1.5),
        at_s=PUSH_AT_S,
    ),
    Perturbation(
        "together",
        "share",
        ", ".join(f"{name} {size:g}" for name, size in TOGETHER.items()),
        _together,
        (0.5,),
        (1.0,),
        drawn=True,
    ),
    Perturbation(
        "scene",
        "share",
        ", ".join(f"{name} drawn within {most:g} either way" for name, most in SCENE.items())
        + f", ground_friction {SCENE_FRICTION:g}, delay {SCENE_DELAY_S:g}",
        _scene,
        (1.0,),
        (3.0,),
        drawn=True,
    ),
)

TABLE = {row.name: row for row in _ROWS}
"""Name -> row."""
