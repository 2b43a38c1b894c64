"""The torques that are commanded when the controller's may not be."""

from __future__ import annotations

import numpy as np


class SafeOutput:
    """Damping or zero torque, within the effort limits.

    tau = -D qd while the joint velocity qd is known and ``kind`` is "damping"; otherwise tau = 0.
    Never the last command, and never damping of a velocity that is no longer true. Drives that damp by themselves do
    so instead, whatever ``kind`` is.

    Parameters
    ----------
    kind
        "damping" or "zero".
    damping_nm_s_rad
        D of each joint, (na,).
    effort_limits_nm
        Largest torque of each joint, (na,), infinite where there is none.
    """

    def __init__(
        self, kind: str, damping_nm_s_rad: np.ndarray, effort_limits_nm: np.ndarray
    ) -> None:
        self.kind = kind
        self._damping = np.asarray(damping_nm_s_rad, dtype=float)
        self._limits = np.asarray(effort_limits_nm, dtype=float)

    def torques(
        self, joint_velocity: np.ndarray | None, by_drives: np.ndarray | None = None
    ) -> np.ndarray:
        """Safe torques (na,), N·m, for joint velocities (na,), rad/s, or None if unknown.

        by_drives: (na,) N·m·s/rad, damping of the drives; None: they have none.
        """
        if joint_velocity is None:
            return np.zeros_like(self._damping)
        damping = self._damping if self.kind == "damping" else np.zeros_like(self._damping)
        if by_drives is not None:
            damping = np.where(by_drives > 0.0, by_drives, damping)
        return np.clip(-damping * joint_velocity, -self._limits, self._limits)
