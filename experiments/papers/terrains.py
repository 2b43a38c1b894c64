"""The five terrains of the first paper's locomotion experiments, in either engine.

Rigid and compliant planes, sticky (mu infinite) and slippery (mu .1), and a rigid height field with
bumps of 3 cm and mu ~ U(.1, 1.5) (section 7.5). What the paper leaves open: bumps are heights drawn
every 10 cm, and friction is drawn for each 2 cm of ground, so that each landing meets another draw
and both engines, and the controller, can ask for the same place.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.geometry import FrictionMap, HeightField, TerrainFeet
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.one_process import feet_of
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.simulation.mujoco_model import GroundSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from experiments.papers.compliant_robot import CompliantRobot
from experiments.rigid.rigid_robot import RigidRobot

STICKY, SLIPPERY = math.inf, 0.1
FRICTION_RANGE = (0.1, 1.5)
BUMP_M, BUMP_SPACING_M, FIELD_M = 0.03, 0.1, 1.5
SINK_M = 1e-3
ASSUMED_FRICTION = 1.0
"""What controllers that model Coulomb friction assume of ground that never slips: a safe bound."""

BLIND_STEPS = {"step_height_m": 0.025, "footstep_feedback_s": 0.1}
"""Of the gait planner on bumps. With the 15 mm of the planes (and the planner's own feedback) 5 of 56
walks of Coulomb's controllers fell: feet met what was higher than planned."""

UNEVEN_PLANNER = {"plan_period_s": 0.025, "tracking_time_constant_s": 0.05}
UNEVEN_CONTROLLER = {"touchdown_speed_m_s": 0.2, "joint_weight": 0.1}
"""Of gait planner and controller where the planner follows the ground (``felt`` or ``map``). At the
.08 m/s of level ground a foot that misses the ground hangs for half a stance. Where the plan of the
base is wrong about the ground, legs that follow their own plan are nearer to it."""

COMPLIANT_GROUND = GroundSettings(time_constant_s=0.0217, impedance=(0.95, 0.95))
"""MuJoCo's ground on which the paper's quadruped sinks in by 1 mm at rest."""

ENGINES = ("mujoco", "rigid")


@dataclasses.dataclass(frozen=True)
class Terrain:
    """One kind of ground: friction (None: drawn by place), giving way or not, with bumps or not."""

    title: str
    friction: float | None
    compliant: bool = False
    bumps: bool = False


TERRAINS = {
    "rigid_high": Terrain("rigid plane, high friction", STICKY),
    "rigid_low": Terrain("rigid plane, low friction", SLIPPERY),
    "compliant_high": Terrain("compliant plane, high friction", STICKY, compliant=True),
    "compliant_low": Terrain("compliant plane, low friction", SLIPPERY, compliant=True),
    "height_field": Terrain("rigid height field, random friction", None, bumps=True),
}


def terrain(name: str) -> Terrain:
    """A terrain by name.

    Raises:
        ConfigurationError: no such terrain.
    """
    if name not in TERRAINS:
        raise ConfigurationError(f"no terrain {name!r}; there is {choices(TERRAINS)}")
    return TERRAINS[name]


def bumpy_field(seed: int) -> HeightField:
    """Ground with random heights between 0 and 3 cm, 3 m wide."""
    grid = np.linspace(-FIELD_M, FIELD_M, round(2.0 * FIELD_M / BUMP_SPACING_M) + 1)
    heights = np.random.default_rng(seed).uniform(0.0, BUMP_M, (len(grid), len(grid)))
    return HeightField(grid, grid, heights)


@dataclasses.dataclass(frozen=True)
class Ground:
    """A terrain made for one seed: friction (number or function of places), surface or None."""

    terrain: Terrain
    friction: Any
    field: HeightField | None

    @classmethod
    def make(cls, name: str, seed: int) -> Ground:
        """The terrain of a name, its bumps and friction drawn from a seed."""
        kind = terrain(name)
        friction = kind.friction
        if friction is None:
            friction = FrictionMap(*FRICTION_RANGE, seed=seed)
        return cls(kind, friction, bumpy_field(seed) if kind.bumps else None)

    @property
    def height_m(self) -> float:
        """Mean height of the ground."""
        return 0.0 if self.field is None else float(self.field.heights.mean())

    def planner_changes(self) -> dict[str, Any]:
        """What the gait planner must know: it walks on level ground, here at the mean height.

        It does not see the bumps, as the papers' foothold planner may have: it steps higher.
        """
        if self.field is None:
            return {}
        return {"ground_height_m": self.height_m, **BLIND_STEPS}

    def assumed_friction(self, unbounded: bool) -> float:
        """The coefficient of a controller's settings; on ground of random friction unused."""
        if unbounded:
            return math.inf
        if callable(self.friction):
            return ASSUMED_FRICTION
        return min(self.friction, ASSUMED_FRICTION)

    def controller_feet(self, robot: RobotModel, settings: ControllerSettings, unbounded: bool):
        """Contacts as the controller sees them, which are the true ones; None on a plane."""
        if self.field is None:
            return None
        friction = math.inf if unbounded else self.friction
        return TerrainFeet(robot, feet_of(settings), self.field, friction)

    def world(self, settings: ControllerSettings, engine: str, model: tuple[str, str]):
        """A simulated robot on this ground.

        Args:
            engine: one of ``ENGINES``.  model: contact law of the rigid engine; compliant ground
            has its own.

        Raises:
            ConfigurationError: no such engine or model.
        """
        common = {
            "joints": settings.joints or None,
            "floating_base": settings.floating_base,
            "friction": self.friction,
            "period_s": settings.period_s,
        }
        feet = feet_of(settings)
        if engine == "mujoco":
            ground = COMPLIANT_GROUND if self.terrain.compliant else GroundSettings()
            return MujocoRobot(settings.urdf, feet, ground=ground, terrain=self.field, **common)
        if engine != "rigid":
            raise ConfigurationError(f"no engine {engine!r}; there is {choices(ENGINES)}")
        if self.terrain.compliant:
            return CompliantRobot(settings.urdf, feet, sink_m=SINK_M, **common)
        if self.field is not None:
            common["ground"] = self.field
        return RigidRobot(settings.urdf, feet, model=model, **common)
