"""The messages that a robot says its state in."""

from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState


def odometry_and_joints(robot, q, v, stamp_ns):
    """Odometry and JointState of a floating robot at one time."""
    odometry, joints = Odometry(), JointState(name=list(robot.joint_names))
    for message in (odometry, joints):
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
    odometry.header.frame_id = "odom"
    place, turn = odometry.pose.pose.position, odometry.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = q[:7].tolist()
    linear, angular = odometry.twist.twist.linear, odometry.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = v[:6].tolist()
    joints.position, joints.velocity = q[robot.q_index].tolist(), v[robot.actuated].tolist()
    return odometry, joints
