"""After the warm-up a walk compiles nothing: a kernel compiled on the way costs a second."""

import gc
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from paths import ROOT
from robots import QUADRUPED, QUADRUPED_FEET

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.warm_up import standing_state, warm_up
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.plans.goals import ComGoal, FootPath, Heading, Posture, TaskGoals
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait import GaitSettings
from contact_id_controller.state import RobotState

RADIUS = 0.01


def controller_of(**changes):
    settings = ControllerSettings.from_mapping(
        {"urdf": QUADRUPED, "contact_frames": QUADRUPED_FEET, "contact_radii_m": RADIUS, **changes}
    )
    robot = RobotModel.from_urdf(QUADRUPED, settings.floating_base)
    return Controller(robot, settings)


def compiled():
    """Number of compiled variants of every kernel in this process."""
    counts = Counter()  # a kernel has two dispatchers: for Python, and as a part of others
    for kernel in gc.get_objects():
        if issubclass(type(kernel), Dispatcher):  # not through a weak proxy
            counts[kernel.py_func.__qualname__] += len(kernel.signatures)
    return counts


def received(plan, time_s):
    """The plan as it is read from the bytes it travels in."""
    if importlib.util.find_spec("rclpy") is None:
        return plan
    from contact_id_controller.ros import conversions, plan_messages

    stamp_ns = round(time_s * 1e9)
    return Plan(
        conversions.joint_trajectory(plan_messages.joint_message(plan.joints, stamp_ns), True),
        conversions.base_trajectory(plan_messages.base_message(plan.base, stamp_ns)),
        conversions.contact_schedule(plan_messages.stance_message(plan.contacts, stamp_ns)),
    )


def warm_up_door(controller):
    """Warm up what the node does, as far as ROS is there; its loop, or None."""
    if importlib.util.find_spec("rclpy") is None:
        warm_up(controller)
        return None
    from contact_id_controller.ros.control_loop import ControlLoop

    loop = ControlLoop(controller, print)
    loop.warm_up()
    return loop


def guarded_steps(loop, count=600):
    """Steps of the node's loop, from the messages of a standing robot; the record of each is kept."""
    from nav_msgs.msg import Odometry
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    robot = loop.controller.robot
    state = standing_state(loop.controller)
    joints, base = JointState(name=robot.joint_names), Odometry(child_frame_id="base")
    base.header.frame_id = "world"
    place, turn = base.pose.pose.position, base.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = state.q[:7].tolist()
    joints.position = robot.joints_of(state.q).tolist()
    joints.velocity = joints.effort = [0.0] * robot.na
    for number in range(count):
        for message in (joints, base):
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(
                10**9 + 10**6 * number, 10**9
            )
        loop.take_odometry(serialize_message(base))
        if number < 5:
            loop.observe(serialize_message(joints), None)
            continue
        if number == 5:
            assert loop.guard.start() == ""
        torques = loop.command(serialize_message(joints), None)
        loop.finish(time.perf_counter())
    assert loop.result is not None and np.isfinite(torques).all()


def walk(controller):
    """0.6 s of trot; the joints are where the plan is, so that feet really leave the ground."""
    planner = GaitPlanner(
        RobotModel.from_urdf(QUADRUPED),
        GaitSettings.from_mapping(
            {"feet": QUADRUPED_FEET, "foot_radius_m": RADIUS, "waypoints_m": [0.0, 0.0, 0.5, 0.0]}
        ),
    )
    posture = np.outer([1, -1, -1, 1], [0.1, 0.8, 1.2]).ravel()
    q, v = controller.robot.configuration([0, 0, 0.172, 0, 0, 0, 1], posture), np.zeros(18)
    controller.reset(RobotState(1.0, q, v))
    contacts = set()
    for number in range(600):
        time_s = 1.0 + 0.001 * number
        if number % 50 == 0:
            controller.follow(received(planner.plan(time_s, q, v), time_s), time_s)
        result = controller.step(RobotState(time_s, q, v))
        q[controller.robot.q_index] = result.reference.position
        contacts.add(int(result.contact.sum()))
    assert {2, 4} <= contacts


@pytest.mark.parametrize("friction, solver", [("coulomb", "qp"), ("none", "pid")])
def test_walk_after_the_warm_up_compiles_nothing(friction, solver):
    # In a process of its own: other tests compile kernels in this one.
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    subprocess.run([sys.executable, __file__, friction, solver], env=environment, check=True)


def test_standing_state_has_all_feet_on_the_ground():
    controller = controller_of()
    state = standing_state(controller)
    controller.reset(state)
    assert controller.step(state).contact.all()


def test_robot_without_feet_or_floating_base_warms_up():
    warm_up(controller_of(floating_base=False, contact_frames=[], contact_radii_m=0.0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # A controller that has not walked: a walk compiles for the guard, too.
        path = os.path.join(folder, "record.npz")
        given = {"friction": sys.argv[1], "solver": sys.argv[2], "record_path": path}
        loop = warm_up_door(controller_of(**given))
        if loop is not None:
            warm = compiled()
            guarded_steps(loop)
            late = [name for name, count in compiled().items() if count != warm.get(name)]
            assert not late, f"compiled by the first steps of the node: {late}"
    walker = controller_of(friction=sys.argv[1], solver=sys.argv[2])
    warm_up_door(walker)
    # The planner compiles for itself; in ROS it is a process of its own.
    GaitPlanner(walker.robot, GaitSettings.from_mapping({"feet": QUADRUPED_FEET}))
    warm = compiled()
    walk(walker)
    late = [name for name, count in compiled().items() if count != warm.get(name)]
    assert not late, f"compiled during the walk: {late}"


def test_goals_compile_nothing_after_the_warm_up():
    controller = controller_of(base_feedback="center_of_mass")
    warm_up(controller)
    before = compiled()
    robot, state = controller.robot, standing_state(controller)
    controller.reset(state)
    still = np.zeros((3, 4))
    path = FootPath([0.0, 0.1, 0.2], still, still, still, may_land_from_s=0.1)
    posture = Posture(robot.joint_names, robot.joints_of(state.q), np.full(robot.na, 50.0))
    com = ComGoal([0.0, 0.0], [0.01, 0.0], 4.0, 0.3)
    goals = TaskGoals(com, posture, {QUADRUPED_FEET[1]: path}, 0.25, Heading(0.1, 0.1))
    stance = ContactSchedule(QUADRUPED_FEET[1:2], [0.0], [[False]])
    controller.follow(Plan(goals=goals, contacts=stance), state.time_s)
    for number in range(30):
        controller.step(RobotState(state.time_s + 0.01 * number, state.q, state.v))
    assert compiled() == before


COUNTED = """
import sys
from numba.core.dispatcher import Dispatcher

from contact_id_controller.control.controller import Controller
from contact_id_controller.safety.guard import Guard

late, make = [], Dispatcher._compile_for_args


def making(kernel, *values, **named):
    if ".simulation." not in kernel.py_func.__module__:  # a process of its own
        late.append(kernel.py_func.__qualname__)
    return make(kernel, *values, **named)


def warmed_up(settings):
    Guard(Controller(settings.robot(), settings)).warm_up()


def count():
    Dispatcher._compile_for_args = making
"""

WALK = """
from contact_id_controller.runs.one_process import InProcessRun, controller_settings, mujoco_robot

name = sys.argv[1]
settings = controller_settings(name)
warmed_up(settings)
world = mujoco_robot(settings, 0.8, imu_frame="")
run = InProcessRun(name, settings, world, planner={"waypoints_m": []})
count()
run.planner.set_velocity((0.1, 0.0))
while not (run.planner.sequence.carry if "bipeds" in name else run.state.time_s > 1.0):
    run.advance()
    assert run.error is None and run.state.time_s < 3.0
for _ in range(200):
    run.advance()
print(*late)
"""

PUSH = """
from contact_id_controller.settings.controller import ControllerSettings
from test_arm import FILES, move, sections

warmed_up(ControllerSettings.from_mapping(sections(FILES[0])["controller"]))
count()
_, _, predicted, real, _ = move(FILES[0])
assert predicted[-1, 2] > 10.0 and real[-1, 2] > 10.0
print(*late)
"""


def compiled_late(program, *arguments):
    """Names of the kernels that a program compiles after its warm-up."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED + program, *arguments],
        cwd=ROOT / "test",
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
@pytest.mark.parametrize("robot", ["quadruped", "bipeds/g1", "bipeds/bolt"])
def test_first_steps_compile_nothing(robot):
    """G1's planner compiled for seconds when it was driven first: 11 s on a busy computer, and a lockstep of 10 ended."""
    assert compiled_late(WALK, robot) == []


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_the_first_touch_of_an_arm_compiles_nothing():
    """A Panda in real time got the same torques for a second when its hand first came near the table, and fell."""
    assert compiled_late(PUSH) == []
