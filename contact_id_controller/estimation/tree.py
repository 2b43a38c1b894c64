"""The mechanism as arrays that compiled sweeps walk: links numbered depth first, the base is link 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numba.extending import register_jitable

from contact_id_controller.exceptions import RobotDescriptionError
from contact_id_controller.kernels.views import view
from contact_id_controller.robot import RobotModel

REVOLUTE_X, REVOLUTE_Y, REVOLUTE_Z, REVOLUTE, PRISMATIC = range(5)
"""Kinds of joint; the first three turn about an axis of their own frame."""

TREE_INTEGERS, TREE_NUMBERS = 7, 25  # numbers a link in the two buffers


class Tree(NamedTuple):
    """What does not change while the robot moves; n links, link 0 the base (massless: bolted down).

    parent (n,): link nearer to the base.  end (n,): the links i to end[i] - 1 hang from link i.
    limb (n,): number of the limb a link belongs to, -1 for the base.
    kind (n,), axis (n, 3): of the joint that moves the link, in its own frame.
    position, velocity (n,): where that joint stands in Pinocchio's q and v.
    turns (n,): 1 for a continuous joint, whose two entries of q are cosine and sine.
    rotation (n, 9), translation (n, 3): fixed placement of that joint in the parent link, by rows.
    mass (n,) kg, lever (n, 3) m, inertia (n, 6) kg m2 about the centre of mass: xx xy xz yy yz zz.
    """

    parent: np.ndarray
    end: np.ndarray
    limb: np.ndarray
    kind: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    turns: np.ndarray
    axis: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    mass: np.ndarray
    lever: np.ndarray
    inertia: np.ndarray


@register_jitable
def unpack_tree(integers, numbers):
    """A ``Tree`` of views into its two buffers: (7, n) and flat (25 n,).

    Two arrays cross from Python into compiled code in a tenth of the time of thirteen.
    """
    n = integers.shape[1]
    return Tree(
        parent=view(integers, 0, (n,)),
        end=view(integers, n, (n,)),
        limb=view(integers, 2 * n, (n,)),
        kind=view(integers, 3 * n, (n,)),
        position=view(integers, 4 * n, (n,)),
        velocity=view(integers, 5 * n, (n,)),
        turns=view(integers, 6 * n, (n,)),
        axis=view(numbers, 0, (n, 3)),
        rotation=view(numbers, 3 * n, (n, 9)),
        translation=view(numbers, 12 * n, (n, 3)),
        mass=view(numbers, 15 * n, (n,)),
        lever=view(numbers, 16 * n, (n, 3)),
        inertia=view(numbers, 19 * n, (n, 6)),
    )


class Mechanism:
    """Tree and names of a robot.

    Attributes:
        integers (7, n), numbers (25 n,): the buffers of the tree.  tree: views into them.
        floating: the base moves freely; else it is bolted to the world.
        joints: Pinocchio's joint number of each link.  link_of_joint: the inverse, a list.
        limbs: (first, end) links of every limb, the subtrees of the base.
        names: names of the joints of links 1 to n - 1.

    Raises:
        RobotDescriptionError: a joint with more than one freedom other than a floating base.
    """

    def __init__(self, robot: RobotModel):
        model = robot.model
        self.robot, self.floating = robot, robot.floating_base
        root = 1 if self.floating else 0
        for joint in range(root + 1, model.njoints):
            if model.joints[joint].nv != 1:
                raise RobotDescriptionError(
                    f"joint {model.names[joint]!r} has {model.joints[joint].nv} freedoms; the "
                    f"estimator knows joints with one, and one floating base"
                )
            if not model.parents[joint] and root:
                raise RobotDescriptionError(
                    f"joint {model.names[joint]!r} hangs from the world beside the floating base; "
                    f"the estimator knows one tree"
                )
        self.joints = _depth_first(model, root)
        self.link_of_joint = [0] * model.njoints
        for link, joint in enumerate(self.joints):
            self.link_of_joint[joint] = link
        self.names = [model.names[joint] for joint in self.joints[1:]]
        tree = _tree(model, self.joints, self.link_of_joint, self.floating)
        self.integers = np.array(tree[:7])
        self.numbers = np.concatenate([array.ravel() for array in tree[7:]])
        self.tree = tree
        starts = [link for link in range(1, len(self.joints)) if self.tree.parent[link] == 0]
        self.limbs = [(first, int(self.tree.end[first])) for first in starts]

    def __len__(self) -> int:
        """Number of links, the base included."""
        return len(self.joints)

    def frame(self, name: str) -> tuple[int, np.ndarray, np.ndarray]:
        """Link, rotation (3, 3) and translation (3,) m in it, of a frame of the robot.

        Raises:
            UnknownFrameError: no frame of that name.
        """
        frame = self.robot.model.frames[self.robot.frame_id(name)]
        placement = frame.placement
        return (
            self.link_of_joint[frame.parentJoint],
            np.array(placement.rotation),
            np.array(placement.translation),
        )


def _depth_first(model: pin.Model, root: int) -> list[int]:
    """Pinocchio's joints so that every subtree is one run, the base first."""
    children: dict[int, list[int]] = {joint: [] for joint in range(model.njoints)}
    for joint in range(1, model.njoints):
        children[model.parents[joint]].append(joint)
    order, waiting = [], [root]
    while waiting:
        joint = waiting.pop()
        order.append(joint)
        waiting += reversed(children[joint])
    return order


def _tree(
    model: pin.Model, joints: Sequence[int], link_of_joint: Sequence[int], floating: bool
) -> Tree:
    """The links below ``joints``, parents first, with placements, axes and inertias in the links' own frames."""
    n = len(joints)
    parent, limb, kind = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    position, velocity, turns = (np.zeros(n, np.int64) for _ in range(3))
    axis = np.zeros((n, 3))
    rotation, translation = np.zeros((n, 9)), np.zeros((n, 3))
    mass, lever, inertia = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 6))
    rotation[0] = np.eye(3).ravel()
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    limbs = 0
    for link, joint in enumerate(joints):
        if link:
            parent[link] = link_of_joint[model.parents[joint]]
            limb[link] = limb[parent[link]] if parent[link] else limbs
            limbs += parent[link] == 0
            placement = model.jointPlacements[joint]
            rotation[link], translation[link] = placement.rotation.ravel(), placement.translation
            kind[link], axis[link] = _joint(np.array(data.joints[joint].S).ravel())
            own = model.joints[joint]
            position[link], velocity[link], turns[link] = own.idx_q, own.idx_v, own.nq == 2
        if link or floating:
            body = model.inertias[joint]
            mass[link], lever[link] = body.mass, body.lever
            inertia[link] = body.inertia[np.triu_indices(3)]
    end = np.arange(1, n + 1)
    for link in range(n - 1, 0, -1):
        end[parent[link]] = max(end[parent[link]], end[link])
    return Tree(
        parent=parent,
        end=end,
        limb=limb,
        kind=kind,
        position=position,
        velocity=velocity,
        turns=turns,
        axis=axis,
        rotation=rotation,
        translation=translation,
        mass=mass,
        lever=lever,
        inertia=inertia,
    )


def _joint(subspace: np.ndarray) -> tuple[int, np.ndarray]:
    """Kind and axis (3,) of a joint with the motion subspace (6,), linear part first."""
    linear, angular = subspace[:3], subspace[3:]
    if np.any(linear):
        return PRISMATIC, linear
    for kind in (REVOLUTE_X, REVOLUTE_Y, REVOLUTE_Z):
        if angular[kind] == 1.0:
            return kind, angular
    return REVOLUTE, angular
