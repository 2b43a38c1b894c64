"""A simulated robot on rigid ground: time stepping on the forward problems of the contact models.

Each step solves one contact problem for the velocity at its end and moves the configuration along it (semi-implicit
Euler), so stacking, sliding, sticking and impacts without bounce need no case of their own. The interface is that of
``MujocoRobot``; the two share no contact code, so a disagreement of the engines shows an error in one of them.

Source: first paper, section 2.3; viscous and no-slip paper, section III; Stewart and Trinkle
(1996), Anitescu and Potra (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.geometry import HalfSpace, SphereFoot, feet_on
from contact_id_controller.models import ROWS, Tangential, solve
from contact_id_controller.robot import RobotModel
from contact_id_controller.simulation.stepped_robot import SteppedRobot, checked_vector
from contact_id_controller.solution import SOLVED, Solution
from contact_id_controller.state import RobotState
from experiments.rigid.forward import ForwardProblem, build_forward_problem, free_robot, step
from experiments.rigid.rigid_contacts import FeetFinder, SceneFinder

MODELS = tuple(pair for pair, row in ROWS.items() if row.engine)
"""Contact models that can drive the simulation. Those that give complementarity up are solved until
their sliding contacts stay on the ground, see ``complementarity``."""


class RigidRobot(SteppedRobot):
    """A robot on rigid ground, advanced one control period at a time.

    Torques are applied unchanged: no limit, no friction, no delay; limits of joint positions
    are not simulated. A command that is not finite or not of shape (na,) is replaced by zero and
    counted in `refused_commands`.

    No contact closes faster than its gap allows, so penetration only comes from the curvature of motion within one
    step. For a body of extent r that turns at omega that is at most (omega dt)^2 r / 2 in a step; since the share
    `penetration_gain` of it is undone in the next, penetration stays below (omega dt)^2 r / (2 penetration_gain), and
    decays to zero at rest.

    Args:
        robot: location of a description, see `resolve_urdf`, or a model (with objects, if any).
        feet: spheres that may touch the ground, in the order of every per-foot array.
        joints, floating_base: as for `RobotModel.from_urdf`; only for a description.
        friction: Coulomb coefficient: a number (may be infinite), one a foot, or a function of
            points (n, 3) such as `FrictionMap`.
        period_s, substeps: control period, s, over which torque is held and forces are averaged;
            steps in it.
        model: (friction, solver), one of `MODELS`.
        ground: `HalfSpace` or `HeightField`.
        bodies, pairs: other solids (`geometry.Body`) that touch the ground, and pairs of frames
            whose bodies touch each other. Without them only feet touch, which is several times
            faster.
        viscosity_n_s_m: of model viscous/lcp.
        edges, polygon: of the friction polygon, as for the models.
        anticipation_m: largest gap of contacts in the problem; one that closes a larger gap within one step
            penetrates first.
        penetration_gain: share in [0, 1] of a penetration that is undone in one step. The velocity
            it takes stays, so it adds a little energy; with 0 contact never adds any.

    Attributes:
        refused_commands: see above.
        unsolved_steps: steps in which the model found no exact solution and its fallback was taken.

    Raises:
        RobotDescriptionError, UnknownJointError, UnknownFrameError, ConfigurationError: the
            description is missing, or does not fit; a number outside its range; no such model.
    """

    def __init__(
        self,
        robot: RobotModel | str | Path,
        feet: Sequence[SphereFoot] = (),
        *,
        joints: Sequence[str] | None = None,
        floating_base: bool = True,
        friction: Any = 0.6,
        period_s: float = 1e-3,
        substeps: int = 1,
        model: tuple[str, str] = ("coulomb", "lcp"),
        ground: Any = HalfSpace(),
        bodies: Sequence[Any] = (),
        pairs: Sequence[Any] = (),
        viscosity_n_s_m: float = 0.0,
        edges: int = 4,
        polygon: str = "inscribed",
        anticipation_m: float = 0.01,
        penetration_gain: float = 0.2,
    ) -> None:
        row = ROWS.get(tuple(model))
        if row is None or not row.engine:
            names = ", ".join(str(row) for row in ROWS.values() if row.engine)
            raise ConfigurationError(f"no simulation of {'/'.join(model)}; there is {names}")
        if not 0.0 <= penetration_gain <= 1.0:
            raise ConfigurationError(f"penetration_gain must lie in [0, 1], got {penetration_gain}")
        if not isinstance(robot, RobotModel):
            robot = RobotModel.from_urdf(robot, floating_base, joints)
        super().__init__(robot, feet, feet_on(robot, feet, ground, friction), period_s, substeps)
        self.model, self.unsolved_steps = row.pair, 0
        self._row = row
        self._step_s = self.period_s / self.substeps
        self._gain, self._viscosity = float(penetration_gain), float(viscosity_n_s_m)
        if bodies or pairs:
            self._finder = SceneFinder(
                robot, self.feet, bodies, pairs, ground, friction, anticipation_m
            )
        else:
            # The model of the forward problems, so that contact frames are looked up only once.
            self._finder = FeetFinder(
                free_robot(robot), self.feet, ground, friction, anticipation_m
            )
        wanted = {"edges": edges, "polygon": polygon, "distribution": "least_force"}
        self._options = {name: value for name, value in wanted.items() if row.takes(name)}
        self._data = robot.model.createData()  # its own: a controller may share the robot's
        self._floating = [joint.idx_v for joint in robot.model.joints if joint.nq == 7]
        self.reset(robot.neutral())

    @property
    def last_solution(self) -> Solution | None:
        """Contact problem and solution of the last step; None before the first."""
        return self._last

    def reset(self, q: np.ndarray, v: np.ndarray | None = None) -> RobotState:
        """Start again at time 0 from configuration q (nq,) and velocity v (nv,), default 0.

        Raises:
            StateError: wrong shape or not finite.
        """
        self._q = checked_vector("q", q, self.robot.nq)
        self._v = np.zeros(self.robot.nv) if v is None else checked_vector("v", v, self.robot.nv)
        self._last: Solution | None = None
        self._start()
        return self.state()

    def state(self) -> RobotState:
        """State at the end of the last period."""
        return RobotState(self._periods * self.period_s, self._q.copy(), self._v.copy())

    def step(self, torques: np.ndarray) -> RobotState:
        """Hold `torques` (na,), N m, over one control period; return the state at its end.

        Raises:
            SimulationError: the state is no longer finite.
        """
        torques = self._accepted(torques)
        self._forces[:] = 0.0
        for _ in range(self.substeps):
            self._advance(torques)
        self._forces /= self.substeps
        self._periods += 1
        return self.state()

    def contacts(self) -> ContactSet:
        """Contacts of the present configuration with a gap of at most ``anticipation_m``."""
        return self._find().contacts

    def foot_positions(self) -> np.ndarray:
        """Centres of the foot spheres at the end of the last period: (n_feet, 3), world, m."""
        pin.forwardKinematics(self.robot.model, self._data, self._q)
        pin.updateFramePlacements(self.robot.model, self._data)
        places = [self._data.oMf[self.robot.frame_id(foot.frame)] for foot in self.feet]
        return np.array(
            [place.act(np.asarray(foot.center, float)) for place, foot in zip(places, self.feet)]
        ).reshape(-1, 3)

    def _find(self) -> Any:
        pin.forwardKinematics(self.robot.model, self._data, self._q)
        return self._finder.find(self._data)

    def _advance(self, torques: np.ndarray) -> None:
        """Advance one time step: solve the forward contact problem, then integrate q."""
        contacts, foot = self._find()
        if self._row.tangential is Tangential.VISCOUS:
            contacts = contacts.moved(viscosity=np.full(len(contacts), self._viscosity))
        try:
            problem = build_forward_problem(
                self.robot,
                self._q,
                self._v,
                torques,
                contacts,
                self._step_s,
                penetration_gain=self._gain,
            )
            solution = self._solve(problem)
        except StateError as error:
            raise self._diverged() from error
        if not np.isfinite(solution.velocity.sum()):
            raise self._diverged()
        self._q, self._v = step(solution, self._q), self._carried(solution.velocity)
        self._last = solution
        for i, force in zip(foot.tolist(), solution.forces):
            if i >= 0:
                self._forces[i] += force

    def _solve(self, problem: ForwardProblem) -> Solution:
        solution = solve(problem, *self.model, warm_start=self._last, **self._options)
        self.unsolved_steps += solution.status != SOLVED
        return solution

    def _carried(self, velocity: np.ndarray) -> np.ndarray:
        """Express velocity (nv,) at the step's end in the axes that floating bodies have then.

        Their linear velocity is in body axes. To first order v+ = v - dt omega x v, which is longer than v: a spinning
        body in flight would gain speed. So v without that term, the velocity in fixed axes, is rotated instead.
        """
        carried = velocity.copy()
        for k in self._floating:
            linear, angular = self._v[k : k + 3], self._v[k + 3 : k + 6]
            resting = velocity[k : k + 3] + self._step_s * cross(angular, linear)
            carried[k : k + 3] = pin.exp3(-self._step_s * velocity[k + 3 : k + 6]) @ resting
        return carried


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b of two vectors (3,), in a tenth of the time that numpy's general one takes."""
    x, y, z = a.tolist()
    u, v, w = b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])
