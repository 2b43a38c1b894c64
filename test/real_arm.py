"""Logs of a UR5 as one finds them: torques of plain Pinocchio, gears that rub, noise, and faults that are planted."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_id_controller.logs.log import Log
from contact_id_controller.robot import resolve_urdf

UR5 = "example-robot-data://ur_description/urdf/ur5_robot.urdf"
DRY, VISCOUS = np.array([9.0, 9.0, 5.0, 1.6, 1.4, 0.9]), np.array([8.0, 8.0, 4.0, 0.8, 0.7, 0.4])
ROTOR = np.array([1.2, 1.2, 0.7, 0.15, 0.15, 0.1])
NOISE_NM = np.array([0.5, 0.5, 0.3, 0.1, 0.1, 0.1])


def sines(time, seed, joints, speed=1.0):
    """Positions, velocities and accelerations (n, joints) of five harmonics of .1 Hz, as excitations are."""
    random = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * speed * np.arange(1, 6)
    size = random.normal(size=(joints, 5)) * 0.45 / np.arange(1, 6)
    phase = random.uniform(0.0, 2.0 * np.pi, (joints, 5))
    angle = time[:, None, None] * w + phase
    q = np.sum(size * np.sin(angle), axis=2) + random.uniform(-0.5, 0.5, joints)
    v = np.sum(size * w * np.cos(angle), axis=2)
    return q, v, -np.sum(size * w**2 * np.sin(angle), axis=2)


def ur5_log(
    seed=0, width=0.03, seconds=30.0, hz=125.0, speed=1.0, load=None, trembling=None, breakaway=0.0
):
    """A log without a fault, or of an arm that carries something, or trembles.

    Args:
        width: rad/s, over which dry friction turns round.  breakaway: what it has more at standstill, as a share.
        load: mass, kg, and its place in the flange's frame, m.  trembling: joint, Hz and amplitude, rad.
    """
    model = pin.buildModelFromUrdf(str(resolve_urdf(UR5)))
    data, random = model.createData(), np.random.default_rng(1000 + seed)
    time = np.arange(0.0, seconds, 1.0 / hz)
    q, v, a = sines(time, seed, model.nv, speed)
    if trembling is not None:
        joint, at, size = trembling
        w = 2.0 * np.pi * at
        size = size * (1.0 + 0.2 * np.sin(0.9 * time))
        q[:, joint] += size * np.sin(w * time)
        v[:, joint] += size * w * np.cos(w * time)
        a[:, joint] -= size * w**2 * np.sin(w * time)
    if load is not None:
        mass, place = load
        body = pin.Inertia(mass, np.array(place), 0.002 * mass * np.eye(3))
        flange = model.frames[model.getFrameId("tool0")]
        model.appendBodyToJoint(model.nv, body, flange.placement)
        data = model.createData()
    torque = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a)])
    dry = np.tanh(v / width) * (1.0 + breakaway * np.exp(-((v / 0.1) ** 2)))
    torque += ROTOR * a + DRY * dry + VISCOUS * v
    return Log(
        time=time,
        joints=tuple(model.names)[1:],
        position=q + random.normal(0.0, 2e-5, q.shape),
        velocity=v + random.normal(0.0, 1e-3, v.shape),
        effort=torque + NOISE_NM * random.normal(size=q.shape),
        source="UR5",
    )
