"""A MuJoCo model of a robot on flat ground, made from its URDF.

MuJoCo reads kinematics, joint limits and shapes from the URDF by itself. Pinocchio reads what
becomes of links behind fixed joints, which both merge into their parents: where a contact frame
lies, and the merged inertia (many descriptions hold sensors with inertias that MuJoCo refuses one
by one). The ground, z = 0, touches nothing but the given spheres.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    UnknownJointError,
    choices,
)
from contact_id_controller.geometry import HalfSpace, HeightField, SphereFoot
from contact_id_controller.robot import RobotModel

LARGEST_FRICTION = 100.0
"""Stands for an infinite coefficient: the cone leaves 0.6 degrees to the ground."""

FREE_JOINT = "floating_base"
IMU, WRENCH = "imu", "wrench_"
"""Site and accelerometer of the IMU; before a joint's name: site of its force/torque sensor."""
POINT_M2 = 1e-9
FULL_DEPTH_M = 0.001
BASE_M = 0.5
"""Thickness of the ground under the lowest point of a height field."""
UNEVEN = 1e-6
LOWEST_RELIEF_M = 1e-9
STICKS = 0.9999
"""Impedance of dry friction in joints: it stops a joint within a step, and one that it holds creeps by 1e-4 of that."""
MESH_FORMATS = (".stl", ".obj")


@dataclass(frozen=True)
class GroundSettings:
    """Stiffness of MuJoCo's ground; the default is close to rigid Coulomb friction.

    MuJoCo has no rigid contact: a contact decelerates like a critically damped spring, weakened by
    an impedance d < 1 ("Solver parameters" in its manual), and friction creeps a little below its
    limit. Measured with the 4.8 kg quadruped of `urdf/` at 1 ms, standing, then with the ground
    tilted until 0.8 of the friction is used: the default sinks 7 um and creeps 0.03 mm/s;
    impedance (0.9, 0.95) with 20 ms sinks 0.9 mm, a soft carpet; tangential stiffening 1, MuJoCo's
    own default, creeps 0.6 mm/s. MuJoCo's noslip iterations against creep gained
    nothing and cost three times the solver iterations, so they are off.

    Attributes:
        time_constant_s: of the contact, s. MuJoCo raises it to twice the integration step if it
            is below that.
        damping_ratio: 1: critically damped, no bounce.
        impedance: d at first touch, and d at 1 mm depth and more, each within (0, 1). The nearer to
            1, the stiffer the ground.
        tangential_stiffening: stiffness of friction relative to the normal direction (MuJoCo's
            impratio).
        exact_friction: contacts that slide stay on the ground, see `ExactFriction`; MuJoCo alone lifts them.

    Raises:
        ConfigurationError: a value outside its range.
    """

    time_constant_s: float = 0.004
    damping_ratio: float = 1.0
    impedance: tuple[float, float] = (0.99, 0.999)
    tangential_stiffening: float = 100.0
    exact_friction: bool = False

    def __post_init__(self) -> None:
        if len(self.impedance) != 2 or not all(0.0 < d < 1.0 for d in self.impedance):
            raise ConfigurationError(
                f"ground impedance is {self.impedance}, must be two numbers within (0, 1)"
            )
        for name in ("time_constant_s", "damping_ratio", "tangential_stiffening"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise ConfigurationError(f"ground {name} is {value}, must be above 0 and finite")


def build_mujoco_model(
    urdf: Path,
    robot: RobotModel,
    feet: Sequence[SphereFoot],
    friction: float | Sequence[float],
    step_s: float,
    ground: GroundSettings,
    *,
    gravity_m_s2: float = 9.81,
    meshes: bool = False,
    terrain: HeightField | HalfSpace | None = None,
    imu_frame: str | None = None,
    wrench_joints: Sequence[str] = (),
) -> mujoco.MjModel:
    """Build the model: robot with its motors, ground and one pair of ground and sphere for each foot.

    Args:
        urdf: file of the description that `robot` was made from.
        feet: spheres that may touch the ground.
        friction: Coulomb coefficient, one for all feet or one a foot; above 100 it counts as 100.
        step_s: integration step, s.
        meshes: show the meshes of the URDF that MuJoCo can read (for pictures; costs time to load).
        terrain: height field with an even grid, or another plane, instead of the plane z = 0.
        imu_frame: frame of an accelerometer and a gyroscope; "": the base; None: there are none.
        wrench_joints: joints with a force/torque sensor at their origin, in the outer link's axes.

    Raises:
        RobotDescriptionError: MuJoCo cannot use the description.
        UnknownFrameError: the robot lacks a frame of `feet`, or the IMU's.
        UnknownJointError: the robot lacks a joint of `wrench_joints`.
        ConfigurationError: negative friction, not one for each foot, a foot without a radius, or an
            uneven grid.
    """
    coefficients = _checked_feet(feet, friction)
    try:
        spec = mujoco.MjSpec.from_string(_prepared_urdf(urdf, meshes, robot.locked))
    except (ValueError, ElementTree.ParseError) as error:
        raise _refused(urdf, error) from error
    _set_options(spec, step_s, ground, gravity_m_s2)
    if robot.floating_base:
        free = spec.worldbody.first_body().add_freejoint()
        free.name = FREE_JOINT
    for joint in range(1, robot.model.njoints):
        body, inertia = _body_of_joint(spec, robot, joint), robot.model.inertias[joint]
        if not inertia.mass > 0.0:
            raise _refused(urdf, f"link {body.name!r} moves, but has no mass")
        _set_inertia(body, inertia)
    add_scenery(spec, terrain)
    for index, (foot, mu) in enumerate(zip(feet, coefficients)):
        _add_foot(spec, robot, foot, foot_name(index), min(mu, LARGEST_FRICTION), ground)
    if imu_frame is not None:
        _add_imu(spec, robot, imu_frame)
    for name in wrench_joints:
        _add_wrench_sensor(spec, robot, name)
    try:
        model = spec.compile()
    except ValueError as error:
        raise _refused(urdf, error) from error
    _set_motors(model, robot)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _set_motors(model: mujoco.MjModel, robot: RobotModel) -> None:
    """Set rotor inertia and friction of the joints: the description's, for actuated ones the robot's."""
    described = robot.model
    dry, viscous = np.array(described.friction), np.array(described.damping)
    dry[robot.actuated] = robot.motors.dry_friction_nm
    viscous[robot.actuated] = robot.motors.viscous_friction_nm_s_rad
    for joint in range(1, described.njoints):
        place, name = described.joints[joint].idx_v, described.names[joint]
        if described.joints[joint].nv == 1:
            dof = int(model.jnt_dofadr[model.joint(name).id])
            model.dof_armature[dof] = described.armature[place]
            model.dof_frictionloss[dof], model.dof_damping[dof] = dry[place], viscous[place]
    # MuJoCo's own is viscous first: on .001 kg m2, .6 N·m of it are .09 N·m at 1 rad/s.
    model.dof_solimp[:, :2] = STICKS
    model.dof_solref[:] = -1.0, -STICKS / model.opt.timestep


def _checked_feet(feet: Any, friction: Any) -> list[Any]:
    """Coefficients of friction, one a foot, or ConfigurationError."""
    coefficients = [friction] * len(feet) if np.ndim(friction) == 0 else list(friction)
    if len(coefficients) != len(feet):
        raise ConfigurationError(f"{len(coefficients)} friction coefficients for {len(feet)} feet")
    for mu in coefficients if np.ndim(friction) else [friction]:
        if not mu >= 0.0:
            raise ConfigurationError(f"friction coefficient is {mu}, must be 0 or more")
    for foot in feet:
        if not 0.0 < foot.radius_m < math.inf:
            raise ConfigurationError(
                f"radius_m of foot {foot.frame!r} is {foot.radius_m}, must be above 0 and finite"
            )
    return coefficients


def foot_name(index: int) -> str:
    """Name of the MuJoCo geom and site of a foot."""
    return f"contact_{index}"


def add_scenery(spec: mujoco.MjSpec, terrain: HeightField | HalfSpace | None = None) -> None:
    """Add light, sky and checkered ground: a plane, by default z = 0, or a height field.

    Raises:
        ConfigurationError: the height field's grid is not even, which MuJoCo cannot have.
    """
    spec.add_texture(
        name="checker",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        width=256,
        height=256,
        rgb1=[0.83, 0.85, 0.87],
        rgb2=[0.70, 0.73, 0.77],
    )
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        width=64,
        height=384,
        rgb1=[0.95, 0.97, 1.0],
        rgb2=[0.55, 0.66, 0.80],
    )
    floor = spec.add_material(name="checker", texrepeat=[5, 5], texuniform=True)
    textures = floor.textures
    textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "checker"
    floor.textures = textures
    if isinstance(terrain, HeightField):
        _add_terrain(spec, terrain)
    else:
        _add_plane(spec, terrain or HalfSpace())
    spec.worldbody.add_light(
        pos=[0, 0, 4],
        dir=[0.15, 0.1, -1],
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        diffuse=[0.6, 0.6, 0.6],
        castshadow=True,
    )


def _add_plane(spec: Any, plane: HalfSpace) -> None:
    """The plane, its z axis along the normal."""
    turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), plane.normal)
    x, y, z, w = turn.coeffs()
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 0.05],
        pos=plane.offset * plane.normal,
        quat=[w, x, y, z],
        material="checker",
        contype=0,
        conaffinity=0,
    )


def _add_terrain(spec: Any, terrain: Any) -> None:
    """Add the same surface for MuJoCo: rows along y, heights scaled to [0, 1], same diagonals."""
    x, y, heights = terrain.x, terrain.y, terrain.heights
    for name, grid in (("x_m", x), ("y_m", y)):
        steps = np.diff(grid)
        if np.ptp(steps) > UNEVEN * steps.mean():
            raise ConfigurationError(
                f"MuJoCo needs an even grid, {name} has steps of different size"
            )
    low, span = float(heights.min()), max(float(np.ptp(heights)), LOWEST_RELIEF_M)
    spec.add_hfield(
        name="ground",
        nrow=len(y),
        ncol=len(x),
        userdata=((heights.T - low) / span).ravel(),
        size=[np.ptp(x) / 2.0, np.ptp(y) / 2.0, span, BASE_M],
    )
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_HFIELD,
        hfieldname="ground",
        material="checker",
        pos=[(x[0] + x[-1]) / 2.0, (y[0] + y[-1]) / 2.0, low],
        contype=0,
        conaffinity=0,
    )


def _set_options(spec: Any, step_s: float, ground: Any, gravity_m_s2: float) -> None:
    """Set solver options: exact cones, Newton to convergence, no stabilising extras."""
    option = spec.option
    option.timestep = step_s
    option.gravity = [0, 0, -gravity_m_s2]
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    option.iterations = 100
    option.tolerance = 1e-10
    option.impratio = ground.tangential_stiffening
    # MuJoCo would restart a diverged simulation from its first state and carry on.
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET


def _refused(urdf: Path, reason: Any) -> RobotDescriptionError:
    line = " ".join(str(reason).split())
    return RobotDescriptionError(f"MuJoCo cannot use {str(urdf)!r}: {line}")


def _set_inertia(body: Any, inertia: Any) -> None:
    """Give a body the inertia (``pin.Inertia``) of itself and all links fixed to it.

    That of a point is raised a little.
    """
    moments, least = inertia.inertia, POINT_M2 * inertia.mass
    if not np.linalg.eigvalsh(moments)[0] >= least:
        moments = moments + least * np.eye(3)
    body.explicitinertial = True
    body.mass = inertia.mass
    body.ipos = inertia.lever
    body.fullinertia = [
        moments[0, 0],
        moments[1, 1],
        moments[2, 2],
        moments[0, 1],
        moments[0, 2],
        moments[1, 2],
    ]


def _add_foot(
    spec: Any, robot: RobotModel, foot: Any, name: str, friction: Any, ground: Any
) -> None:
    """Attach a sphere and a site to the body that carries the foot's frame, and pair it."""
    frame = robot.model.frames[robot.frame_id(foot.frame)]
    position = frame.placement.act(np.asarray(foot.center, dtype=float))
    body = _body_of_joint(spec, robot, frame.parentJoint)
    body.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[foot.radius_m, 0, 0],
        pos=position,
        contype=0,
        conaffinity=0,
        mass=0,
        rgba=[0.95, 0.45, 0.10, 1],
    )
    body.add_site(name=name, pos=position, size=[1e-4] * 3, group=5)
    pair = spec.add_pair(name=name, geomname1="ground", geomname2=name, condim=3)
    pair.friction = [friction, friction, 0, 0, 0]
    pair.solref = [ground.time_constant_s, ground.damping_ratio]
    pair.solimp = [*ground.impedance, FULL_DEPTH_M, 0.5, 2]


def _add_imu(spec: Any, robot: RobotModel, name: str) -> None:
    """Attach a site with an accelerometer to the body that carries a frame."""
    if name:
        frame = robot.model.frames[robot.frame_id(name)]
        joint, placement = frame.parentJoint, frame.placement
    else:
        joint, placement = (1 if robot.floating_base else 0), pin.SE3.Identity()
    if joint == 0:
        raise ConfigurationError(
            f"the IMU's frame {name!r} does not move: name a frame of a moving link in imu_frame"
        )
    x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
    _body_of_joint(spec, robot, joint).add_site(
        name=IMU, pos=placement.translation, quat=[w, x, y, z], size=[1e-4] * 3, group=5
    )
    _add_sensor(spec, mujoco.mjtSensor.mjSENS_ACCELEROMETER, IMU, IMU)


def _add_wrench_sensor(spec: Any, robot: RobotModel, joint: str) -> None:
    """Attach force and torque sensors to the outer body of a joint."""
    if joint not in robot.joint_names:
        raise UnknownJointError(
            f"no force/torque sensor at {joint!r}: neither a foot nor a joint, which are "
            f"{choices(robot.joint_names)}"
        )
    site = f"{WRENCH}{joint}"
    spec.joint(joint).parent.add_site(name=site, size=[1e-4] * 3, group=5)
    _add_sensor(spec, mujoco.mjtSensor.mjSENS_FORCE, f"{site}_force", site)
    _add_sensor(spec, mujoco.mjtSensor.mjSENS_TORQUE, f"{site}_moment", site)


def _add_sensor(spec: Any, kind: Any, name: str, site: Any) -> None:
    spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)


def _body_of_joint(spec: Any, robot: RobotModel, joint: int) -> Any:
    """The MuJoCo body that moves with a joint of Pinocchio; joint 0 is the world."""
    if joint == 0:
        return spec.worldbody
    if robot.floating_base and joint == 1:
        return spec.worldbody.first_body()
    return spec.joint(robot.model.names[joint]).parent


def _prepared_urdf(urdf: Path, meshes: bool, locked: Mapping[str, float]) -> str:
    """Text of the URDF without parts that MuJoCo should not use, with compiler options for the rest.

    Locked joints become fixed ones, which MuJoCo merges like all others.
    """
    root = ElementTree.fromstring(urdf.read_text(encoding="utf-8"))
    for link in root.iter("link"):
        solid = link.findall("collision")
        for unused in solid + link.findall("inertial"):
            link.remove(unused)
        shown = [shape for shape in link.findall("visual") if _is_drawable(urdf, shape, meshes)]
        if not shown and meshes:
            # Better the shape for collisions than nothing.
            shown = [shape for shape in solid if _is_drawable(urdf, shape, meshes)]
        for visual in link.findall("visual"):
            link.remove(visual)
        for shape in shown:
            shape.tag = "visual"
            link.append(shape)
    for joint in root.iter("joint"):
        for unused in joint.findall("dynamics") + joint.findall("mimic"):
            joint.remove(unused)
        name = joint.get("name", "")
        if name in locked:
            _weld(joint, locked[name])
    _free_of_root(root)
    for old in root.findall("mujoco"):
        root.remove(old)
    ElementTree.SubElement(
        ElementTree.SubElement(root, "mujoco"),
        "compiler",
        {
            "fusestatic": "true",
            "discardvisual": "false",
            "inertiafromgeom": "false",
            "strippath": "false",
            "balanceinertia": "false",
            "boundmass": "0",
            "boundinertia": "0",
        },
    )
    return ElementTree.tostring(root, encoding="unicode")


def _free_of_root(root: ElementTree.Element) -> None:
    """Remove the link from which the base floats by a joint of the URDF, in place: the base gets a free joint."""
    for joint in root.findall("joint[@type='floating']"):
        ends = {end.get("link") for end in joint.findall("parent")}
        root.remove(joint)
        if not any(end.get("link") in ends for end in root.iterfind("joint/parent")):
            for link in [link for link in root.findall("link") if link.get("name") in ends]:
                root.remove(link)


def _weld(joint: ElementTree.Element, position: float) -> None:
    """Make a joint of the URDF a fixed one, in place, at ``position``, rad or m."""
    origin, axis = joint.find("origin"), joint.find("axis")
    if origin is None:
        origin = ElementTree.SubElement(joint, "origin")
    place, angles = (
        np.array([float(word) for word in origin.get(key, "0 0 0").split()])
        for key in ("xyz", "rpy")
    )
    words = "1 0 0" if axis is None else axis.get("xyz", "1 0 0")
    direction = np.array([float(word) for word in words.split()])
    direction *= position / np.linalg.norm(direction)
    placement = pin.SE3(pin.rpy.rpyToMatrix(angles), place)
    if joint.get("type") == "prismatic":
        moved = placement * pin.SE3(np.eye(3), direction)
    else:
        moved = placement * pin.SE3(pin.exp3(direction), np.zeros(3))
    joint.set("type", "fixed")
    for key, values in (("xyz", moved.translation), ("rpy", pin.rpy.matrixToRpy(moved.rotation))):
        origin.set(key, " ".join(repr(float(value)) for value in values))


def _is_drawable(urdf: Path, shape: ElementTree.Element, meshes: bool) -> bool:
    """Whether MuJoCo can draw a shape of a link; makes the file name of its mesh absolute, in place."""
    mesh = shape.find("geometry/mesh")
    if mesh is None:
        return True
    file = _find_mesh(urdf, mesh.get("filename", "")) if meshes else None
    if file is not None:
        mesh.set("filename", str(file))
    return file is not None


def _find_mesh(urdf: Path, filename: str) -> Path | None:
    """The file of a mesh, absolute, if it exists and MuJoCo reads its format."""
    relative = filename.partition("://")[2] if "://" in filename else filename
    for folder in urdf.resolve().parents:
        file = folder / relative
        if file.suffix.lower() in MESH_FORMATS and file.is_file():
            return file
    return None
