"""BERDY, the estimator of iDynTree (PyPI ``idyntree``), set to the problem that ours solves: judge and peer.

BERDY minimises over all accelerations and wrenches d of every link

    |D d + b|^2 / var_D + |Y d + b_Y - y|^2_Sigma_y^-1 + |d|^2 / var_d

where ours holds D d + b = 0 exactly. Its answer tends to ours as var_D falls and var_d grows, until digits are
lost in products of large and small weights.
Source: Latella et al. (2016), as in ``iDynTree/BerdySparseMAPSolver.h``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.robot import RobotModel, resolve_urdf

DYNAMICS_VARIANCE, PRIOR_VARIANCE = 1e-7, 1e7  # of D d + b = 0, and of d
NOWHERE_VARIANCE = 1e-8  # of wrenches where nothing touches, N2 and (N m)2


class Noise(NamedTuple):
    """Standard deviations that both estimators get; contact: of forces about zero, N."""

    joint_acceleration: float = 20.0
    joint_effort: float = 0.05
    accelerometer: float = 0.1
    angular_acceleration: float = 5.0
    contact: float = 1000.0


class Berdy:
    """The estimator of iDynTree for a floating base with a base IMU, joint sensors and point or flat feet.

    Args:
        robot, urdf: the same mechanism; frames that are fixed are lumped by both.
        contacts: frame -> components (of force, then moment, in the frame's axes) that are free.
        noise: see ``Noise``; a moment at a point foot has ``NOWHERE_VARIANCE``.

    Raises:
        ImportError: idyntree is not installed.
        RuntimeError: iDynTree refuses the model.
    """

    def __init__(
        self, robot: RobotModel, urdf: str, contacts: Mapping[str, tuple[int, ...]], noise: Noise
    ):
        import idyntree.bindings as idyntree

        self._idyntree, self.robot, self.contacts = idyntree, robot, dict(contacts)
        loader = idyntree.ModelLoader()
        names = list(robot.model.names)[2:]
        if not loader.loadReducedModelFromFile(str(resolve_urdf(urdf)), _strings(idyntree, names)):
            raise RuntimeError(f"iDynTree does not load {urdf}")
        self._model = model = loader.model().copy()
        self._base = model.getDefaultBaseLink()
        self._add_imu()
        self._helper = helper = idyntree.BerdyHelper()
        options = idyntree.BerdyOptions()
        options.berdyVariant = idyntree.BERDY_FLOATING_BASE
        options.includeAllJointAccelerationsAsSensors = True
        options.includeAllJointTorquesAsSensors = True
        options.includeAllNetExternalWrenchesAsSensors = True
        options.includeAllNetExternalWrenchesAsDynamicVariables = True
        options.baseLink = model.getLinkName(self._base)
        if not helper.init(model, options):
            raise RuntimeError(f"BERDY does not take {urdf}")
        self._names = names
        joints = [model.getJoint(model.getJointIndex(name)) for name in names]
        self._dofs = np.array([joint.getDOFsOffset() for joint in joints])
        self._frames = {}
        for frame in self.contacts:
            own = robot.model.frames[robot.frame_id(frame)]
            child = model.getJoint(model.getJointIndex(robot.model.names[own.parentJoint]))
            link = child.getSecondAttachedLink()
            self._frames[frame] = (link, own.placement)
            helper.setNetExternalWrenchMeasurementFrame(link, _transform(idyntree, own.placement))
        self._measurements(noise)
        self._solver = solver = idyntree.BerdySparseMAPSolver(helper)
        if not solver.initialize():
            raise RuntimeError(f"BERDY's solver does not begin with {urdf}")
        count = helper.getNrOfDynamicVariables()
        self.unknowns = count
        _fill(solver.dynamicsConstraintsPriorCovarianceInverse(),
              np.full(helper.getNrOfDynamicEquations(), 1.0 / DYNAMICS_VARIANCE))  # fmt: skip
        _fill(
            solver.dynamicsRegularizationPriorCovarianceInverse(),
            np.full(count, 1 / PRIOR_VARIANCE),
        )
        self._nothing = idyntree.VectorDynSize(count)
        self._nothing.zero()
        solver.setDynamicsRegularizationPriorExpectedValue(self._nothing)
        _fill(solver.measurementsPriorCovarianceInverse(), 1.0 / self._variance)
        self._q, self._v = idyntree.JointPosDoubleArray(model), idyntree.JointDOFsDoubleArray(model)
        self._w, self._y = idyntree.Vector3(), idyntree.VectorDynSize(len(self._variance))
        self._efforts = idyntree.JointDOFsDoubleArray(model)

    def _add_imu(self):
        idyntree = self._idyntree
        for kind in (idyntree.AccelerometerSensor, idyntree.ThreeAxisAngularAccelerometerSensor):
            sensor = kind()
            sensor.setName(kind.__name__)
            sensor.setParentLink(self._model.getLinkName(self._base))
            sensor.setParentLinkIndex(self._base)
            sensor.setLinkSensorTransform(idyntree.Transform.Identity())
            self._model.sensors().addSensor(sensor)

    def _measurements(self, noise):
        """Variances of y, and where each quantity stands in it."""
        idyntree, helper = self._idyntree, self._helper
        variance = np.zeros(helper.getNrOfSensorsMeasurements())
        self._places = {"joint_acceleration": {}, "joint_effort": {}}
        single = {
            idyntree.DOF_ACCELERATION_SENSOR: "joint_acceleration",
            idyntree.DOF_TORQUE_SENSOR: "joint_effort",
        }
        imu = {
            idyntree.ACCELEROMETER_SENSOR: "accelerometer",
            idyntree.THREE_AXIS_ANGULAR_ACCELEROMETER_SENSOR: "angular_acceleration",
        }
        for sensor in helper.getSensorsOrdering():
            at = slice(sensor.range.offset, sensor.range.offset + sensor.range.size)
            if sensor.type in single:
                name = single[sensor.type]
                self._places[name][sensor.id] = at.start
                variance[at] = getattr(noise, name) ** 2
            elif sensor.type in imu:
                self._places[imu[sensor.type]] = at
                variance[at] = getattr(noise, imu[sensor.type]) ** 2
            else:
                variance[at] = NOWHERE_VARIANCE
                for frame, (link, _) in self._frames.items():
                    if sensor.id == self._model.getLinkName(link):
                        free = list(self.contacts[frame])
                        variance[np.arange(at.start, at.stop)[free]] = noise.contact**2
        self._variance = variance

    def measure(self, measurements: Mapping[str, np.ndarray]) -> None:
        """Take measurements by the names of ``Noise``, joints in Pinocchio's order; contacts read zero."""
        y = np.zeros(len(self._variance))
        for name in ("joint_acceleration", "joint_effort"):
            y[[self._places[name][joint] for joint in self._names]] = measurements[name]
        for name in ("accelerometer", "angular_acceleration"):
            y[self._places[name]] = measurements[name]
        for k, value in enumerate(y):
            self._y.setVal(k, float(value))

    def state(self, q, v, angular_velocity) -> None:
        """Take joint positions and velocities (Pinocchio's order, no base), rad/s of the base."""
        for k, at in enumerate(self._dofs):
            self._q.setVal(int(at), float(q[k]))
            self._v.setVal(int(at), float(v[k]))
        for k in range(3):
            self._w.setVal(k, float(angular_velocity[k]))

    def solve(self) -> None:
        """The estimate at the state and measurements last taken: what is timed."""
        self._solver.updateEstimateInformationFloatingBase(
            self._q, self._v, self._base, self._w, self._y
        )
        self._solver.doEstimate()

    def settle(self) -> None:
        """Solve twice, the second time with the prior about the first answer, where it pulls nowhere.

        About zero it moves forces by a relative 1e-4, and a weaker one costs more in digits.
        """
        self._solver.setDynamicsRegularizationPriorExpectedValue(self._nothing)
        self.solve()
        first = self._idyntree.VectorDynSize(self._solver.getLastEstimate())
        self._solver.setDynamicsRegularizationPriorExpectedValue(first)
        self.solve()

    def contact_wrench(self, frame: str) -> np.ndarray:
        """(6,) of a contact, in its frame's axes about its origin."""
        link, placement = self._frames[frame]
        at = self._helper.getRangeLinkVariable(self._idyntree.NET_EXT_WRENCH, link)
        d = self._solver.getLastEstimate().toNumPy()
        return placement.actInv(pin.Force(d[at.offset : at.offset + at.size])).vector

    def joint_efforts(self) -> np.ndarray:
        """(n,) in Pinocchio's order, N m or N."""
        self._helper.extractJointTorquesFromDynamicVariables(
            self._solver.getLastEstimate(), self._q, self._efforts
        )
        return self._efforts.toNumPy()[self._dofs].copy()

    def joint_accelerations(self) -> np.ndarray:
        """(n,) in Pinocchio's order, rad/s2 or m/s2."""
        d = self._solver.getLastEstimate().toNumPy()
        kind = self._idyntree.DOF_ACCELERATION
        at = [self._helper.getRangeDOFVariable(kind, int(k)).offset for k in self._dofs]
        return d[at].copy()


def _strings(idyntree, names):
    found = idyntree.StringVector()
    for name in names:
        found.push_back(name)
    return found


def _transform(idyntree, placement):
    rotation = idyntree.Rotation(*(float(x) for x in placement.rotation.ravel()))
    return idyntree.Transform(rotation, idyntree.Position(*map(float, placement.translation)))


def _fill(matrix, diagonal):
    matrix.zero()
    for k, value in enumerate(diagonal):
        matrix.setValue(k, k, float(value))
