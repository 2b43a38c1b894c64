"""Kinematic trees on which operations are counted: the paper's and a general one.

Link i (from 0) turns about the z axis of its frame, which lies in its parent's frame a twist about x
and a shift a along x further, then a shift d along its own z (modified Denavit-Hartenberg).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.robot import RobotModel


class Tree(NamedTuple):
    """A robot of revolute joints on a fixed base; parents come before their children, -1 is the base.

    parents: of each link.  twist (n,) rad.  shift_x, shift_z (n,) m.
    mass (n,) kg, moment (n, 3) = mass times centre of mass, inertia (n, 3, 3) about the frame's origin.
    """

    parents: tuple[int, ...]
    twist: np.ndarray
    shift_x: np.ndarray
    shift_z: np.ndarray
    mass: np.ndarray
    moment: np.ndarray
    inertia: np.ndarray

    @property
    def links(self) -> int:
        return len(self.parents)


def skew(v) -> np.ndarray:
    """[v] x (3, 3)."""
    return pin.skew(np.asarray(v, dtype=float))


def parents_of(links: int, branching: float) -> tuple[int, ...]:
    """Numbered breadth first, so many children a link in the mean (Featherstone's autoTree)."""
    first = (int(np.floor((i - 2 + np.ceil(branching)) / branching)) for i in range(1, links + 1))
    return tuple(parent - 1 for parent in first)


def paper_tree(
    links: int, *, branching: float = 1.0, twist: float = 1.5, taper: float = 0.9
) -> Tree:
    """The paper's: thin tubes along x, each shorter and lighter than its parent by the taper.

    Source: autoTree of Featherstone's spatial_v2, with the paper's arguments in figure 1.
    """
    parents = parents_of(links, branching)
    length = taper ** np.arange(links)
    mass, centre = length**3, np.zeros((links, 3))
    centre[:, 0] = length / 2.0
    tube = np.diag([0.0025, 1.015 / 12.0, 1.015 / 12.0])
    inertia = [
        m * (size**2 * tube + skew(c) @ skew(c).T) for m, size, c in zip(mass, length, centre)
    ]
    on_link = np.array([parent >= 0 for parent in parents])
    shift_x = np.where(on_link, length[list(parents)], 0.0)
    return Tree(
        parents,
        np.where(on_link, twist, 0.0),
        shift_x,
        np.zeros(links),
        mass,
        mass[:, None] * centre,
        np.array(inertia),
    )


def general_tree(links: int, *, branching: float = 1.0, seed: int = 0) -> Tree:
    """One in which no constant is zero or otherwise special, but the frame of the first joint.

    The base's frame is that of the first joint, as in the counts of the literature.
    """
    rng = np.random.default_rng(seed)
    parents = parents_of(links, branching)
    twist, shift_x, shift_z = rng.uniform([[0.3], [0.2], [0.2]], [[1.2], [1.0], [1.0]], (3, links))
    mass, centre = rng.uniform(0.5, 2.0, links), rng.uniform(-0.5, 0.5, (links, 3))
    roots = rng.normal(size=(links, 3, 3))
    inertia = [0.05 * B @ B.T + m * skew(c) @ skew(c).T for B, m, c in zip(roots, mass, centre)]
    on_base = np.array(parents) < 0
    for values in (twist, shift_x, shift_z):
        values[on_base] = 0.0
    return Tree(parents, twist, shift_x, shift_z, mass, mass[:, None] * centre, np.array(inertia))


def regrouped(tree: Tree) -> Tree:
    """The same robot with base inertial parameters: mass, z moment and yy inertia on the parents.

    Joint torques and accelerations are those of the robot, the wrenches between its links are not.
    Source: Gautier and Khalil (1990), for revolute joints about z.
    """
    mass, moment, inertia = tree.mass.copy(), tree.moment.copy(), tree.inertia.copy()
    for i in reversed(range(tree.links)):
        m, h, along = mass[i], np.array([0.0, 0.0, moment[i, 2]]), inertia[i, 1, 1]
        moved = np.diag([along, along, 0.0])
        inertia[i] -= moved
        moment[i] -= h
        mass[i] = 0.0
        parent = tree.parents[i]
        if parent < 0:
            continue
        c, s = np.cos(tree.twist[i]), np.sin(tree.twist[i])
        R = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        origin = np.array([tree.shift_x[i], 0.0, 0.0]) + R @ [0.0, 0.0, tree.shift_z[i]]
        r, turned = skew(origin), skew(R @ h)
        inertia[parent] += R @ moved @ R.T - r @ turned - turned @ r - m * r @ r
        moment[parent] += R @ h + m * origin
        mass[parent] += m
    for values in (moment, inertia):
        values[np.abs(values) < 1e-12] = 0.0  # differences of equal numbers
    return tree._replace(mass=mass, moment=moment, inertia=inertia)


def link_transforms(tree: Tree, q) -> list[np.ndarray]:
    """X_i (6, 6) of each link, motion vectors of its parent into its own frame, angular part first."""
    transforms = []
    for i, angle in enumerate(q):
        c, s, ct, st = np.cos(angle), np.sin(angle), np.cos(tree.twist[i]), np.sin(tree.twist[i])
        about_z = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        about_x = np.array([[1.0, 0.0, 0.0], [0.0, ct, st], [0.0, -st, ct]])
        shifts = skew((tree.shift_x[i], 0.0, 0.0)), skew((0.0, 0.0, tree.shift_z[i]))
        E = about_z @ about_x
        moment = -(E @ shifts[0] + shifts[1] @ E)
        transforms.append(np.block([[E, np.zeros((3, 3))], [moment, E]]))
    return transforms


def robot_of(tree: Tree) -> RobotModel:
    """The same robot for Pinocchio, gravity along -z of the base."""
    model = pin.Model()
    for i, parent in enumerate(tree.parents):
        shift = np.array([tree.shift_x[i], 0.0, 0.0])
        R = pin.utils.rotate("x", float(tree.twist[i]))
        place = pin.SE3(R, shift + R @ [0.0, 0.0, tree.shift_z[i]])
        joint = model.addJoint(parent + 1, pin.JointModelRZ(), place, f"joint_{i}")
        mass, centre = tree.mass[i], tree.moment[i] / tree.mass[i]
        about_centre = tree.inertia[i] - mass * skew(centre) @ skew(centre).T
        model.appendBodyToJoint(joint, pin.Inertia(mass, centre, about_centre), pin.SE3.Identity())
    return RobotModel(model)
