"""Stand-in for effort_controllers/JointGroupEffortController of ros2_control.

Kept of the original: a command has one value for each of *its* parameter `joints`, in that order,
without names; a wrong size is an error of the update; a command that is not finite is dropped (not
in Humble); there is no timeout, the last torque is held for ever; deactivation writes zero.
"""

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray


class GroupEffortController:
    """Holds the efforts of its joints; `update` is called by the loop of ros2_control.

    Parameters
    ----------
    joints
        Names in the order of the command.
    checks_finite
        False: as in Humble.
    """

    def __init__(self, joints, checks_finite=True):
        self.joints = tuple(joints)
        self.efforts = np.zeros(len(self.joints))
        """What the motors get (n,), N·m."""
        self.active = False
        self.dropped = self.errors = 0
        self._checks_finite = checks_finite
        self._command = None

    def activate(self):
        """Start without a command: the efforts stay as they are."""
        self._command, self.active = None, True

    def deactivate(self):
        """Zero effort."""
        self.efforts[:] = 0.0
        self.active = False

    def command(self, data):
        """A message on `~/commands`."""
        data = np.array(data, dtype=float)
        if self._checks_finite and not np.isfinite(data).all():
            self.dropped += 1
            return
        self._command = data

    def update(self):
        """One period of ros2_control; False is return_type::ERROR."""
        if not self.active or self._command is None:
            return True
        if self._command.size != len(self.joints):
            self.errors += 1
            return False
        self.efforts[:] = self._command
        return True

    def effort(self, joint):
        """The effort of a joint by its name, N·m."""
        return self.efforts[self.joints.index(joint)]

    def listen(self, node, topic="commands"):
        """Subscribe as ros2_control does where that is strictest.

        It leaves reliability to the middleware: best effort with Fast DDS, reliable with Cyclone.
        """
        return node.create_subscription(
            Float64MultiArray,
            topic,
            lambda message: self.command(message.data),
            QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE),
        )

    def node(self, name, **options):
        """A node of its own, as ros2_control makes it: with `joints` as parameter."""
        node = Node(name, **options)
        if self.joints:
            node.declare_parameter("joints", list(self.joints))
        self.subscription = self.listen(node, "~/commands")
        return node
