"""Bipeds that are driven by random commands: which fall, when, and at what command.

    python benchmarks/driven_bipeds.py --robot talos g1 --seconds 60 --seeds 4
    python benchmarks/driven_bipeds.py --robot talos g1 --seconds 8 --always 0.3 0 0
    python benchmarks/driven_bipeds.py --robot talos g1 --seconds 60 --topics
    python benchmarks/driven_bipeds.py --robot talos g1 --seconds 60 --sensors good
    python benchmarks/driven_bipeds.py --robot g1 --seconds 6 --seed 7 --most 0.3 0.1 0.4 --push 0.3 \\
        --picture docs/driven.gif

MuJoCo, one process, friction 0.6; the true state, or with ``--sensors`` what an estimator makes of them. Each 2 to 4 s another velocity: at most ``--most`` forwards and aside, m/s,
and turning, rad/s; ``--always``: this one. ``--push``: at the half of the time, to the left within 0.1 s; impulse per
mass, m/s. ``--topics``: the processes of `contact_id demo` in lockstep, driven by cmd_vel. Landings: largest speeds of the
middle of a sole a period before it first touches in a swing. Measured: results/walks.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
from PIL import Image
from scipy import constants

from contact_id_controller.report.animation import save_gif
from contact_id_controller.runs.estimated_state import controller_changes, estimator_changes
from contact_id_controller.runs.one_process import (
    TOUCHES,
    InProcessRun,
    Period,
    controller_settings,
    estimated_state,
    mujoco_robot,
    section,
)
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.settings.robot_files import robots
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.simulation.rendering import render_frames

FRICTION, PUSHED_S = 0.6, 0.1
COMMANDS_S = 0.05
"""Between two messages of cmd_vel."""
HELD_S = 2.0, 4.0
"""How long a command stays, at least and at most."""
FRAMES_PER_SECOND, COLOURS, SHOWN = 10, 100, np.s_[60:380, 310:590]
ARROW_M = 0.4
"""Length of the arrow of a force as large as the weight: a third of G1."""


class Commands:
    """Random velocities (3,): forwards, left, turning left; each with the time of its begin before it, (4,)."""

    def __init__(self, most: np.ndarray, seed: int, always: np.ndarray | None = None) -> None:
        self.most, self.random, self.always = most, np.random.default_rng(seed), always
        self.until_s, self.begun = 0.0, []

    def at(self, time_s: float) -> np.ndarray:
        """The velocity (3,) at a time, s."""
        if time_s >= self.until_s:
            self.until_s = time_s + self.random.uniform(*HELD_S)
            random = self.random.uniform(-self.most, self.most)
            velocity = random if self.always is None else self.always
            self.begun.append(np.array([time_s, *velocity]))
        return self.begun[-1][1:]


class Landings:
    """Largest speeds down and along the ground with which soles land, m/s: the first touch of each swing.

    A state with a force is one after the impact, by which one corner has turned the sole.
    """

    def __init__(self, run: InProcessRun) -> None:
        self.run, self.down, self.along = run, 0.0, 0.0
        self.last = run.state
        self.data, self.swing = run.robot.model.createData(), 0.0
        frames = [foot.frame for foot in run.settings.feet]
        self.rows = [np.flatnonzero(np.array(frames) == f) for f in run.planner.body.frames]

    def look(self, period: Period) -> None:
        """At one period."""
        planner, robot, sequence = self.run.planner, self.run.robot, self.run.planner.sequence
        before, self.last = self.last, period.before
        since_s = period.before.time_s - sequence.lifted_s
        if sequence.both or self.swing == sequence.lifted_s or since_s < sequence.patience.early_s:
            return
        (foot,) = planner.body.groups[1 - sequence.carry]
        if period.forces[self.rows[foot], 2].sum() < TOUCHES * robot.weight:
            return
        self.swing = sequence.lifted_s
        frame = robot.frame_id(planner.body.frames[foot])
        pin.forwardKinematics(robot.model, self.data, before.q, before.v)
        turn = pin.updateFramePlacement(robot.model, self.data, frame).rotation
        motion = pin.getFrameVelocity(robot.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED)
        middle = np.mean([self.run.settings.feet[row].center for row in self.rows[foot]], axis=0)
        speed = motion.linear + np.cross(motion.angular, turn @ middle)
        self.down = max(self.down, -float(speed[2]))
        self.along = max(self.along, float(np.hypot(*speed[:2])))


def drive(
    file: Path,
    seconds: float,
    commands: Commands,
    push_m_s: float = 0.0,
    sensors: str | None = None,
    seed: int = 0,
    ground: dict | None = None,
    look: Callable[[Period], None] = lambda period: None,
) -> tuple[InProcessRun, RunRecord, Landings]:
    """The run, its record and its landings; sensors: of the estimate, None: the true state.  seed: of their noise.

    ground: ``ground_file`` of all nodes and how the planner takes it; None: level.  look: called at each period.
    """
    name, changes = str(file), {}
    if sensors is not None:
        changes = controller_changes(section(name, "controller"), sensors)
    if ground is not None:
        changes["ground_file"] = ground["ground_file"]
    settings = controller_settings(name, **changes)
    mass = settings.robot().mass
    pushes = [Push(0.5 * seconds, PUSHED_S, np.array([0.0, mass * push_m_s, 0.0]))]
    world = DisturbedRobot(mujoco_robot(settings, FRICTION, imu_frame=""), 0, pushes)
    estimate = sensors and estimated_state(
        name, world, sensors, seed, **estimator_changes(settings)
    )
    run = InProcessRun(name, settings, world, estimator=estimate, planner=ground)
    landings = Landings(run)

    def command(time_s: float) -> None:
        velocity = commands.at(time_s)
        run.planner.set_velocity(velocity[:2], velocity[2])

    def each(period: Period) -> None:
        landings.look(period)
        look(period)
        command(period.after.time_s)

    command(0.0)
    return run, run.record(seconds, each=each), landings


def drive_over_topics(
    name: str, seconds: float, commands: Commands, sensors: str | None = None
) -> dict:
    """The figures of a run of `contact_id demo` that is driven by cmd_vel."""
    import rclpy
    from geometry_msgs.msg import Twist
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import JointState

    from contact_id_controller.ros.packed import stamp_ns

    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    rclpy.init()
    node = rclpy.create_node("driver")
    velocities = node.create_publisher(Twist, "cmd_vel", 1)
    last_s = -np.inf

    def on_state(packed: bytes) -> None:
        nonlocal last_s
        time_s = stamp_ns(packed) * 1e-9
        velocity = commands.at(time_s)
        if time_s > last_s + COMMANDS_S:
            last_s, twist = time_s, Twist()
            twist.linear.x, twist.linear.y, twist.angular.z = velocity.tolist()
            velocities.publish(twist)

    stream = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(JointState, "joint_states", on_state, stream, raw=True)
    with tempfile.TemporaryDirectory() as folder:
        program = "import sys; from contact_id_controller.cli import main; sys.exit(main())"
        options = ["--robot", name, "--duration", str(seconds), "--domain", domain]
        if sensors is not None:
            options += ["--state", "estimated", "--sensors", sensors]
        command = [sys.executable, "-c", program, "demo", *options, "--output", folder]
        demo = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while demo.poll() is None:
            rclpy.spin_once(node, timeout_sec=0.1)
        if demo.returncode not in (0, 1):
            raise SystemExit(f"contact_id demo ended with {demo.returncode}")
        figures = json.loads((Path(folder) / "summary.json").read_text())
    rclpy.shutdown()
    return figures


def draw(run: InProcessRun, record: RunRecord, path: Path) -> None:
    """Write the run as a GIF, with forces."""
    settings = run.settings
    frames = render_frames(
        settings.urdf,
        settings.feet,
        record.time_s,
        record.q,
        record.simulated_forces,
        locked=settings.locked,
        frames_per_second=FRAMES_PER_SECOND,
        width=900,
        height=440,
        metres_per_newton=ARROW_M / (settings.robot().mass * constants.g),
        ground_file=settings.ground_file,
    )
    middle = [Image.fromarray(frame[SHOWN]) for frame in frames]
    save_gif(middle, path, COLOURS, FRAMES_PER_SECOND)


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=1, help="number of runs")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--most", type=float, nargs=3, default=[0.5, 0.2, 1.0])
    parser.add_argument("--always", type=float, nargs=3, help="instead of random ones")
    parser.add_argument("--push", type=float, default=0.0)
    parser.add_argument("--topics", action="store_true")
    parser.add_argument("--sensors", help="walk on an estimate from these, such as good")
    parser.add_argument("--picture", type=Path, help="the last run, a GIF")
    chosen = parser.parse_args()
    always = None if chosen.always is None else np.array(chosen.always)
    titles = "robot, seed", "walked", "way, m", "command before a fall"
    titles += ("limits touched, %", "landings: down, along, m/s")
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for name in chosen.robot:
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            commands = Commands(np.array(chosen.most), seed, always)
            if chosen.topics:
                figures = drive_over_topics(name, chosen.seconds, commands, chosen.sensors)
                walked_s, fell, speeds = figures["duration_s"], figures["fell"], ""
                way, touched = figures["distance_travelled_m"], figures["saturated_share"]
            else:
                how = chosen.push, chosen.sensors, seed
                run, record, landings = drive(robots()[name], chosen.seconds, commands, *how)
                walked_s, fell = record.time_s[-1], record.fell
                way = np.linalg.norm(np.diff(record.q[::10, :2], axis=0), axis=1).sum()
                touched = record.saturated.any(axis=1).mean()
                speeds = f"{landings.down:.2f}, {landings.along:.2f}"
            last = " ".join(f"{each:.2f}" for each in commands.begun[-1]) if fell else ""
            walked = f"{walked_s:.1f} s" + (", fell" if fell else "")
            cells = f"{name}, {seed}", walked, f"{way:.1f}", last, f"{100 * touched:.1f}", speeds
            print(f"| {' | '.join(cells)} |", flush=True)
    if chosen.picture:
        draw(run, record, chosen.picture)


if __name__ == "__main__":
    main()
