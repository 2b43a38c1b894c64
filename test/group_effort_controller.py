"""A node around the stand-in for effort_controllers/JointGroupEffortController of ros2_control."""

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray

from experiments.faults.simulated_effort_controller import SimulatedEffortController


class GroupEffortController(SimulatedEffortController):
    """Holds the efforts of its joints; `update` is called by the loop of ros2_control.

    Args:
        joints: names in the order of the command.
        options: of `SimulatedEffortController`.
    """

    def __init__(self, joints, limits=None, **options):
        super().__init__(len(joints), limits, **options)
        self.joints = tuple(joints)

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
