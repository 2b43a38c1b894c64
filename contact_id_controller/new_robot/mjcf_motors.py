"""Motor parameters in an MJCF file: armature, frictionloss and damping of its joints."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, MissingExtraError, choices
from contact_id_controller.robot import MotorRows


def motors_of_mjcf(path: Path, joints: Collection[str]) -> MotorRows:
    """Rows of motors for joints of these names; meshes are not needed.

    Raises:
        ConfigurationError: no such file, no MJCF, or none of these joints.
        MissingExtraError: MuJoCo is not installed.
    """
    try:
        import mujoco
    except ImportError as error:
        raise MissingExtraError(
            "an MJCF file needs the extra simulation: pip install 'contact_id_controller[simulation]'"
        ) from error
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise ConfigurationError(f"{str(path)!r}: {' '.join(str(error).split())}") from error
    rows = [
        (
            joint.name,
            {
                "rotor_inertia_kg_m2": float(joint.armature),
                "dry_friction_nm": float(joint.frictionloss),
                "viscous_friction_nm_s_rad": float(np.ravel(joint.damping)[0]),
            },
        )
        for joint in spec.joints
        if joint.name in joints
    ]
    if not rows:
        names = choices(joint.name for joint in spec.joints)
        raise ConfigurationError(f"{str(path)!r} has no joint of the URDF, only {names}")
    return rows
