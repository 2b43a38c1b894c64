"""Robot model: a Pinocchio model from a URDF, with its actuated and unactuated coordinates."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib.util
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    StateError,
    UnknownFrameError,
    UnknownJointError,
    choices,
)
from contact_id_controller.kernels.compile import Kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.reduction import Mechanism, reduce
from contact_id_controller.kernels.turns import nearest
from contact_id_controller.kernels.views import dense

PACKAGE = "contact_id_controller"

FRICTION_SPEED = 0.03
"""Joint speed, rad/s or m/s, at which dry friction has three quarters of its size, where nothing else is known."""


class Motors(NamedTuple):
    """Rotor inertia and friction of the joints, (na,) each; for prismatic joints m instead of rad.

    rotor_inertia_kg_m2: at the joint, the square of the gear ratio included.
    friction_speed_rad_s: at which dry friction has tanh(1) of its size.
    """

    rotor_inertia_kg_m2: NDArray[np.float64]
    dry_friction_nm: NDArray[np.float64]
    viscous_friction_nm_s_rad: NDArray[np.float64]
    friction_speed_rad_s: NDArray[np.float64]

    def friction(self, velocity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Friction torque (..., na) against joint velocities (..., na): d tanh(v / v_0) + b v."""
        taken: NDArray[np.float64] = self.viscous_friction_nm_s_rad * velocity
        taken += self.dry_friction_nm * np.tanh(velocity / self.friction_speed_rad_s)
        return taken


MotorRows = Sequence[tuple[str, Mapping[str, float]]]
"""Pattern of joint names, as ``*_KFE``, and some fields of ``Motors``; later rows count more."""


def resolve_urdf(location: str | Path) -> Path:
    """Find a URDF file.

    Accepts a plain path, ``package://contact_id_controller/urdf/x.urdf`` (ROS share directory,
    Python prefix or source tree) and ``example-robot-data://solo_description/robots/solo12.urdf``
    (the PyPI package ``example-robot-data``).

    Raises:
        RobotDescriptionError: when no such file exists; the message lists where it was sought.
    """
    text = str(location)
    if text.startswith("package://"):
        package, _, rest = text[len("package://") :].partition("/")
        candidates = [base / rest for base in _share_directories(package)]
    elif text.startswith("example-robot-data://"):
        rest = text[len("example-robot-data://") :]
        shared = "share/example-robot-data/robots"
        roots = [Path(base) / "cmeel.prefix" / shared for base in sys.path]
        roots += [Path(sys.prefix) / shared]
        roots += [base / "robots" for base in _share_directories("example-robot-data")]
        candidates = [root / rest for root in dict.fromkeys(roots) if root.is_dir()]
    elif "://" in text:
        raise RobotDescriptionError(
            f"URDF {text!r} must be a path, or begin with package:// or example-robot-data://"
        )
    else:
        candidates = [Path(text).expanduser()]
    for path in candidates:
        if path.is_file():
            return path
    sought = ", ".join(str(path) for path in candidates) or "nowhere: no such package"
    raise RobotDescriptionError(f"URDF {text!r} not found (looked in {sought})")


def _share_directories(package: str) -> list[Path]:
    """Candidate directories of a package's shared files: ROS installation, Python prefix, source tree."""
    directories: list[Path] = []
    if importlib.util.find_spec("ament_index_python") is not None:
        from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

        with contextlib.suppress(PackageNotFoundError, OSError):  # OSError: no AMENT_PREFIX_PATH
            directories.append(Path(get_package_share_directory(package)))
    directories.append(Path(sys.prefix) / "share" / package)
    if package == PACKAGE:
        directories.append(Path(__file__).resolve().parent.parent)
    return directories


class _Workspace(threading.local):
    """Pinocchio's data with views into it; one for each thread, made on its first use.

    The views are kept because fetching them again costs more than the computation.
    """

    def __init__(self, model: pin.Model, *tree: Any):
        self._tree = tree
        self.data: Any = model.createData()
        self.scratch: Any = None
        self.mass_matrix: NDArray[np.float64] = self.data.M
        # Of a robot with one coordinate Pinocchio gives (6,).
        self.jacobian: NDArray[np.float64] = self.data.J.reshape((6, model.nv), order="F")
        self.nonlinear_effects: NDArray[np.float64] = self.data.nle

    @cached_property
    def mechanism(self) -> Mechanism:
        """Struct of these views and the tree of the coordinates, for kernels."""
        actuated, unactuated, supports, coordinate_joint = self._tree
        return Mechanism(
            M=self.mass_matrix,
            J=self.jacobian,
            h=self.nonlinear_effects,
            actuated=actuated,
            unactuated=unactuated,
            supports=supports,
            coordinate_joint=coordinate_joint,
        )

    @cached_property
    def reduce(self) -> Kernel:
        """Compiled call of ``reduction.reduce`` for this mechanism."""
        row, rows, places = np.empty(0), np.empty((0, 3)), np.empty(0, np.int64)
        pairs = np.empty((0, 2), np.int64)
        given = np.empty((1, 4)), row, pairs, places, rows, row, rows, row
        return direct(reduce, *given, self.mechanism, row, row, rows)


def symmetric(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """The whole matrix (n, n) of which Pinocchio writes the upper half only, as ``data.M`` and `crba`."""
    return np.triu(upper) + np.triu(upper, 1).T


class RobotModel:
    """A multi-body with some coordinates under torque control and the others free.

    Threads may share one: each has ``data`` and its views of its own, and nothing else is written
    to after construction. Copies, pickles and processes give identical results.

    Attributes:
        model: Pinocchio's.
        data: Pinocchio's, of the calling thread; every computation of this package writes into it.
        mass_matrix_view, jacobian_view, nonlinear_effects_view: ``data.M``, ``data.J``,
            ``data.nle`` of the calling thread; the first holds its upper triangle only.
        joint_names: names of the na actuated joints, in command order.
        actuated, unactuated: indices into v, shapes (na,) and (nu,).
        q_index: indices of the actuated joints into q, shape (na,); of a continuous joint
            that of its cosine, which the sine follows. ``joints_of`` and ``put_joints`` read and
            write their positions.
        turns: (na,) bool, continuous joints (URDF type ``continuous``): their positions
            are determined only up to whole turns.
        effort_limits: N·m (N for prismatic joints), (na,); infinite if the URDF has none.
        velocity_limits: rad/s, (na,).  lower, upper: rad, (na,); infinite for continuous joints.
        mass: kg.  weight: N.
        unit_parts: (name, slice of q) of each quaternion, and of each angle given as cosine, sine.
        supports: (njoints, nv) bool; row j marks the velocity coordinates that move joint j's link.
        locked: joints of the description that are fixed, and their positions, rad; the model lacks them, their
            links belong to their parents.
        motors: friction of the joints, and rotor inertia, which is part of the model (its ``armature``).
    """

    def __init__(
        self, model: pin.Model, joints: Sequence[str] | None = None, motors: MotorRows = ()
    ):
        self.model = model
        self.locked: dict[str, float] = {}
        self._neutral: NDArray[np.float64] = pin.neutral(model)
        self.nq: int = model.nq
        self.nv: int = model.nv
        single = [model.names[j] for j in range(1, model.njoints) if model.joints[j].nv == 1]
        names = single if joints is None else list(joints)
        unknown = [name for name in names if name not in single]
        if unknown:
            raise UnknownJointError(
                f"joint {unknown[0]!r} is not a one-freedom joint of this robot; "
                f"it has {choices(single)}"
            )
        if len(set(names)) != len(names):
            raise UnknownJointError(f"joints listed twice in {names}")
        self.joint_names = names
        ids = [model.getJointId(name) for name in names]
        self.actuated = np.array([model.joints[j].idx_v for j in ids], dtype=np.int64)
        self.q_index = np.array([model.joints[j].idx_q for j in ids], dtype=np.int64)
        self.unactuated = np.setdiff1d(np.arange(model.nv), self.actuated)
        self.na, self.nu = len(self.actuated), len(self.unactuated)
        self.motors = _motors(model, names, self.actuated, motors)
        if motors:
            armature = np.array(model.armature)
            armature[self.actuated] = self.motors.rotor_inertia_kg_m2
            model.armature = armature
        effort = np.asarray(model.upperEffortLimit)[self.actuated]
        self.effort_limits = np.where(effort > 0.0, effort, np.inf)
        speed = np.asarray(model.upperVelocityLimit)[self.actuated]
        self.velocity_limits = np.where(speed > 0.0, speed, np.inf)
        self.turns = np.array([model.joints[j].nq == 2 for j in ids], dtype=np.bool_)
        self._turning = np.flatnonzero(self.turns)
        self._sines = self.q_index[self._turning] + 1
        lower, upper = model.lowerPositionLimit, model.upperPositionLimit
        self.lower = np.where(self.turns, -np.inf, np.array(lower)[self.q_index])
        self.upper = np.where(self.turns, np.inf, np.array(upper)[self.q_index])
        self.floating_base: bool = model.njoints > 1 and model.joints[1].nq == 7
        self.mass = float(sum(body.mass for body in model.inertias))
        self.weight = self.mass * float(np.linalg.norm(model.gravity.linear))
        self.supports = np.zeros((model.njoints, model.nv), dtype=np.bool_)
        for joint in range(1, model.njoints):
            for parent in model.supports[joint]:
                if parent:
                    start = model.joints[parent].idx_v
                    self.supports[joint, start : start + model.joints[parent].nv] = True
        # Joint that owns each velocity coordinate: a Jacobian column turns with its own link.
        self.coordinate_joint = np.zeros(model.nv, dtype=np.int64)
        for joint in range(1, model.njoints):
            start = model.joints[joint].idx_v
            self.coordinate_joint[start : start + model.joints[joint].nv] = joint
        self.unit_parts = tuple(_unit_parts(model))
        self._workspace = self._new_workspace()

    def _new_workspace(self) -> _Workspace:
        tree = self.actuated, self.unactuated, self.supports, self.coordinate_joint
        return _Workspace(self.model, *tree)

    # The control loop's; without a Python function each, as they are fetched several times a step.
    data = property(attrgetter("_workspace.data"), doc="Pinocchio's data of the calling thread.")
    mechanism = property(
        attrgetter("_workspace.mechanism"),
        doc="Inertia, joint axes and bias forces of the calling thread, and the tree, for kernels.",
    )
    reduce = property(attrgetter("_workspace.reduce"), doc="Call of ``reduction.reduce`` for it.")

    @property
    def scratch(self) -> Any:
        """A second Pinocchio data of the calling thread, for computations that must not overwrite ``data``."""
        workspace = self._workspace
        if workspace.scratch is None:
            workspace.scratch = self.model.createData()
        return workspace.scratch

    @property
    def mass_matrix_view(self) -> NDArray[np.float64]:
        """``data.M`` of the calling thread, (nv, nv)."""
        return self._workspace.mass_matrix

    @property
    def jacobian_view(self) -> NDArray[np.float64]:
        """``data.J`` of the calling thread, (6, nv)."""
        return self._workspace.jacobian

    @property
    def nonlinear_effects_view(self) -> NDArray[np.float64]:
        """``data.nle`` of the calling thread, (nv,)."""
        return self._workspace.nonlinear_effects

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_workspace"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._workspace = self._new_workspace()

    @classmethod
    def from_urdf(
        cls,
        path: str | Path,
        floating_base: bool = True,
        joints: Sequence[str] | None = None,
        locked: Mapping[str, float] | None = None,
        motors: MotorRows = (),
        *,
        base_held: bool = False,
    ) -> RobotModel:
        """Load a URDF (see ``resolve_urdf``); ``joints`` fixes the command order.

        ``locked``: joints fixed by other means, and their positions, rad (m for prismatic joints): they are
        welded there.  ``motors``: values that replace or add to the URDF's
        ``dynamics`` (damping, friction).  ``base_held``: with a fixed base, a root that floats in the URDF is
        welded to the world.

        Raises:
            RobotDescriptionError: file missing or not a URDF that Pinocchio reads.
            UnknownJointError: a name in ``joints`` or ``locked`` that the URDF lacks, or in both.
            ConfigurationError: a joint locked outside its limits; motors of no joint, or with an invalid number.
        """
        file = resolve_urdf(path)
        try:
            model = model_of(file, floating_base, base_held)
        except ConfigurationError:
            raise
        except (ValueError, RuntimeError, OSError) as error:
            raise RobotDescriptionError(f"URDF {str(file)!r} cannot be read: {error}") from error
        held = dict(locked or {})
        both = [name for name in joints or () if name in held]
        if both:
            raise UnknownJointError(f"joint {both[0]!r} is locked: it takes no command")
        robot = cls(_welded(model, held), joints, motors)
        robot.locked = held
        return robot

    def with_object(self, mass: float, inertia: ArrayLike, name: str = "object") -> RobotModel:
        """The same robot with one additional free rigid body (mass kg, inertia (3,3) kg m2 about its centre).

        The body's six degrees of freedom join the unactuated ones (first paper, section 1.5); its frame,
        at its centre of mass, is called ``name``.
        """
        model = pin.Model(self.model)
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), name + "_joint")
        body = pin.Inertia(float(mass), np.zeros(3), np.asarray(inertia, dtype=float))
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
        model.addFrame(pin.Frame(name, joint, pin.SE3.Identity(), pin.FrameType.BODY))
        robot = RobotModel(model, self.joint_names)
        robot.locked, robot.motors = dict(self.locked), self.motors
        return robot

    def frame_id(self, name: str) -> int:
        """Index of a frame; of a link, where a joint has the same name.

        Raises:
            UnknownFrameError: when the robot has no such frame.
        """
        return frame_index(self.model, name)

    def neutral(self) -> NDArray[np.float64]:
        """The neutral configuration, (nq,)."""
        return self._neutral.copy()

    def configuration(
        self, base_pose: ArrayLike | None, joint_positions: ArrayLike
    ) -> NDArray[np.float64]:
        """q from base pose (x, y, z, quaternion xyzw; None for a fixed base) and joints (na,).

        Raises:
            StateError: another shape, or no numbers.
        """
        q = self.neutral()
        if base_pose is not None:
            q[:7] = vector("base_pose", base_pose, 7)
        self.put_joints(q, vector("joint_positions", joint_positions, self.na))
        return q

    @property
    def model_order(self) -> NDArray[np.int64]:
        """Indices (na,) in ``joint_names`` of the commanded joints in the model's order."""
        return np.argsort(self.actuated)

    def joints_of(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions (..., na), rad or m, of the actuated joints in configurations (..., nq).

        Continuous joints are within half a turn of 0.
        """
        positions: NDArray[np.float64] = q[..., self.q_index]
        if len(self._turning):
            cosine, sine = positions[..., self._turning], q[..., self._sines]
            positions[..., self._turning] = np.arctan2(sine, cosine)
        return positions

    def joints_near(
        self, q: NDArray[np.float64], reference: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """As ``joints_of``, with continuous joints within half a turn of a reference (..., na)."""
        return self.nearest(self.joints_of(q), reference)

    def nearest(
        self, positions: NDArray[np.float64], reference: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Positions (..., na) with the whole turns that bring them nearest to a reference (..., na)."""
        return nearest(positions, reference, self.turns) if len(self._turning) else positions

    def put_joints(self, q: NDArray[np.float64], positions: ArrayLike) -> None:
        """Write positions (..., na), rad or m, of the actuated joints into configurations (..., nq)."""
        q[..., self.q_index] = positions
        if len(self._turning):
            angles = q[..., self.q_index[self._turning]]
            q[..., self._sines] = np.sin(angles)
            q[..., self.q_index[self._turning]] = np.cos(angles)

    def velocity(
        self, base_twist: ArrayLike | None, joint_velocities: ArrayLike
    ) -> NDArray[np.float64]:
        """v from base twist (6,) in the base frame (None for a fixed base) and joints (na,)."""
        v = np.zeros(self.nv)
        if base_twist is not None:
            v[:6] = base_twist
        v[self.actuated] = joint_velocities
        return v


def _motors(
    model: pin.Model, names: Sequence[str], actuated: NDArray[np.int64], rows: MotorRows
) -> Motors:
    """Motors of a description, changed by rows; ConfigurationError for a row of no joint."""
    stated = (model.armature, model.friction, model.damping, np.full(model.nv, FRICTION_SPEED))
    motors = Motors(*(np.array(values)[actuated] for values in stated))
    for pattern, given in rows:
        fits = [bool(fnmatch.fnmatchcase(name, pattern)) for name in names]
        if not any(fits):
            raise ConfigurationError(
                f"motors {pattern!r} fit no joint of this robot, which has {choices(names)}"
            )
        for setting, value in given.items():
            if not (0.0 < value or (value == 0.0 and setting != "friction_speed_rad_s")):
                raise ConfigurationError(
                    f"motors {pattern!r}: {setting} is {value:g}, is too small"
                )
            getattr(motors, setting)[fits] = value
    return motors


def frame_index(model: pin.Model, name: str) -> int:
    """Index of a frame; of a link, where a joint has the same name.

    Raises:
        UnknownFrameError: when the model has no such frame.
    """
    if not model.existFrame(name):
        names = [frame.name for frame in model.frames]
        raise UnknownFrameError(f"frame {name!r} does not exist; this robot has {choices(names)}")
    try:
        return int(model.getFrameId(name))
    except ValueError:  # several, of which Pinocchio chooses none
        same = [k for k, frame in enumerate(model.frames) if frame.name == name]
        links = [k for k in same if model.frames[k].type == pin.FrameType.BODY]
        return (links or same)[0]


def model_of(urdf: Path | str, floating_base: bool, base_held: bool = False) -> pin.Model:
    """Pinocchio's model of a URDF, a file or a text; its own floating joint at the root, if any, is the base's.

    ``base_held`` welds that joint where the base is fixed.

    Raises:
        ValueError: not a URDF.
        ConfigurationError: a fixed base although the root floats, or another joint with more than one freedom.
    """
    build = pin.buildModelFromXML if isinstance(urdf, str) else pin.buildModelFromUrdf
    model = build(str(urdf))
    own = model.njoints > 1 and model.joints[1].nq == 7 and 0 not in list(model.parents)[2:]
    for name, joint in list(zip(model.names, model.joints))[2 if own else 1 :]:
        if joint.nv != 1:
            raise ConfigurationError(
                f"the URDF's joint {name!r} has {joint.nv} freedoms, must have 1: only the base floats"
            )
    if not floating_base:
        if own and base_held:
            return pin.buildReducedModel(model, [1], pin.neutral(model))
        if own:
            raise ConfigurationError(
                f"the URDF's joint {model.names[1]!r} floats: floating_base is false, must be true"
            )
        return model
    if not own:
        return build(str(urdf), pin.JointModelFreeFlyer())
    model.jointPlacements[1] = pin.SE3.Identity()
    return model


_OF_A_JOINT = " (joint)"


def _welded(model: pin.Model, locked: Mapping[str, float]) -> pin.Model:
    """The model without the locked joints, each at its position."""
    if not locked:
        return model
    single = [model.names[j] for j in range(1, model.njoints) if model.joints[j].nv == 1]
    q = pin.neutral(model)
    for name, position in locked.items():
        if name not in single:
            raise UnknownJointError(
                f"joint {name!r} cannot be locked: it is no one-freedom joint of this robot; "
                f"it has {choices(single)}"
            )
        joint = model.joints[model.getJointId(name)]
        start = joint.idx_q
        if joint.nq == 2:
            q[start : start + 2] = math.cos(position), math.sin(position)
            continue
        low, high = model.lowerPositionLimit[start], model.upperPositionLimit[start]
        if not (math.isfinite(position) and (low <= position <= high or low >= high)):
            raise ConfigurationError(
                f"joint {name!r} would be locked at {position:g}, must be within [{low:g}, {high:g}]"
            )
        q[start] = position
    # Pinocchio looks frames up by name alone: a joint that has a link's name has another one meanwhile.
    held = [model.getJointId(name) for name in locked]
    names = [frame.name for frame in model.frames]
    for frame in model.frames:
        if frame.type == pin.FrameType.JOINT and names.count(frame.name) > 1:
            frame.name = model.names[frame.parentJoint] = frame.name + _OF_A_JOINT
    welded = pin.buildReducedModel(model, held, q)
    for frame in welded.frames:
        frame.name = frame.name.removesuffix(_OF_A_JOINT)
    for k, name in enumerate(welded.names):
        welded.names[k] = name.removesuffix(_OF_A_JOINT)
    return welded


# How many of a joint's last coordinates make a unit quaternion, or the cosine and sine of an angle.
_UNIT_TAILS = {
    "JointModelFreeFlyer": 4,
    "JointModelSpherical": 4,
    "JointModelPlanar": 2,
    "JointModelRUBX": 2,
    "JointModelRUBY": 2,
    "JointModelRUBZ": 2,
    "JointModelRevoluteUnboundedUnaligned": 2,
}


def _unit_parts(model: pin.Model) -> list[tuple[str, slice]]:
    """Slices of a configuration that must have length 1, with names."""
    parts = []
    for name, joint in zip(list(model.names)[1:], list(model.joints)[1:]):
        tail, end = _UNIT_TAILS.get(joint.shortname(), 0), joint.idx_q + joint.nq
        if tail:
            what = "quaternion" if tail == 4 else "cosine and sine"
            parts.append((f"{what} of joint {name!r}", slice(end - tail, end)))
    return parts


def real_array(name: str, value: ArrayLike, error: type[ValueError]) -> NDArray[np.float64]:
    """As ``dense``; an error of that class names what is no array of real numbers."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return dense(value)
    try:
        return dense(np.asarray(value).astype(np.float64, casting="same_kind"))
    except (TypeError, ValueError):
        raise error(f"{name} must be an array of real numbers, got {short(value)}") from None


def vector(name: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """Convert a value to an array (size,) of numbers.

    Raises:
        StateError: another shape, or no numbers.
    """
    array = real_array(name, value, StateError)
    if array.size != size or array.ndim != 1:  # comparing the shape takes longer
        raise StateError(f"{name} must have shape ({size},), got {array.shape}")
    return array
