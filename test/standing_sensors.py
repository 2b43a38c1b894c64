"""What the sensors of a robot say that stands still on its feet, by Pinocchio alone."""

import numpy as np
import pinocchio as pin

UP = np.array([0.0, 0.0, 9.81])


class StandingSensors:
    """Readings of a robot at rest in a posture (na,), each foot carrying a share of the weight.

    uneven: N, by which the load of the first foot is smaller than an even share, where statics leaves that open.
    """

    def __init__(self, robot, feet, posture, radius_m, seed=0, noise=1.0, uneven=0.0):
        self.robot, self.position = robot, np.array(posture, dtype=float)
        self.velocity = np.zeros(robot.na)
        self.gyro, self.accel = np.zeros(3), UP.copy()
        self._rng, self._noise = np.random.default_rng(seed), noise
        model, data = robot.model, robot.model.createData()
        q = robot.configuration([0, 0, 0, 0, 0, 0, 1], self.position)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        columns, lever = [], np.array([0.0, 0.0, -radius_m])
        for foot in feet:
            J = pin.getFrameJacobian(model, data, robot.frame_id(foot), pin.LOCAL_WORLD_ALIGNED)
            columns.append((J[:3] - pin.skew(lever) @ J[3:])[2])
        J = np.array(columns)  # (feet, nv), of vertical forces
        needed = pin.rnea(model, data, q, np.zeros(robot.nv), np.zeros(robot.nv))
        self.forces = np.linalg.lstsq(J[:, :6].T, needed[:6], rcond=None)[0]
        if uneven:
            free = np.linalg.svd(J[:, :6].T)[2][-1]  # of four feet on a plane one way is free
            self.forces -= uneven / free[0] * free
        self.effort = (needed - J.T @ self.forces)[robot.actuated]
        self._wrenches(q, feet, radius_m)

    def _wrenches(self, q, feet, radius_m):
        """What force/torque sensors of feet and joints feel, name -> (6,), in their own axes."""
        model, data = self.robot.model, self.robot.model.createData()
        pin.framesForwardKinematics(model, data, q)
        self.wrenches, outside = {}, [pin.Force.Zero() for _ in range(model.njoints)]
        for foot, load in zip(feet, self.forces):
            frame = model.frames[self.robot.frame_id(foot)]
            placement = data.oMf[self.robot.frame_id(foot)]
            force, lever = np.array([0.0, 0.0, load]), np.array([0.0, 0.0, -radius_m])
            turn = placement.rotation.T
            wrench = pin.Force(turn @ force, turn @ np.cross(lever, force))
            self.wrenches[foot] = wrench.vector
            outside[frame.parentJoint] += frame.placement.act(wrench)
        forces = pin.StdVec_Force()
        for force in outside:
            forces.append(force)
        pin.rnea(model, data, q, np.zeros(model.nv), np.zeros(model.nv), forces)
        for name in self.robot.joint_names:
            self.wrenches[name] = data.f[model.getJointId(name)].vector.copy()

    def sample(self, **changes):
        """Keywords of one step: gyro, accel, position, velocity, effort, with a little noise."""

        def noisy(values, deviation):
            return values + self._noise * deviation * self._rng.standard_normal(values.shape)

        found = {
            "gyro": noisy(self.gyro, 0.005),
            "accel": noisy(self.accel, 0.05),
            "position": noisy(self.position, 1e-4),
            "velocity": noisy(self.velocity, 0.02),
            "effort": noisy(self.effort, 0.01),
        }
        return {**found, **changes}
