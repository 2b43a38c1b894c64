"""Frames of Solo12 on four feet, labelled: frames a second, memory, and whether they are the single solves.

    python benchmarks/labels.py --frames 1000000 --jobs 2
    python benchmarks/labels.py --walks 4

Writes a motion in which the robot sways on its four feet, labels it as ``contact_id label`` does, and asks
``build_problem`` and ``solve`` for some of its frames again: their torques and forces must be the same bits.
CPU time is that of this process, which reads and writes, and of its workers, which solve. With ``--walks``
simulated walks of so many seconds are labelled instead, and compared with what the ground and the motors did.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import tempfile
import time
from pathlib import Path

import checkout  # noqa: F401  before what is not installed
import numpy as np
import pinocchio as pin

from contact_id_controller import build_problem, solve
from contact_id_controller.geometry import feet_on
from contact_id_controller.labels.campaign import CHUNK, Workers, label_files
from contact_id_controller.labels.chunks import chunks
from contact_id_controller.labels.labeller import LAW, RECORDED, STATUSES, Labeller
from contact_id_controller.labels.recorded_motion import blocks_of
from contact_id_controller.runs.worker_pool import processes
from contact_id_controller.settings.parameter_file import load_settings
from contact_id_controller.settings.robot_files import robots

POSTURE = [0, 0.8, -1.6] * 2 + [0, -0.8, 1.6] * 2
DT = 1e-3
FELT_N = 0.2
"""Force from which on a simulated foot is taken to feel the ground."""

PIECE = 20_000
"""Frames of the motion; a longer one goes through it again after a gap."""


def sway(robot, feet, rows, seed=0):
    """q, v (rows, ...): the base moves at random, smoothly, and the feet stay where they are."""
    rng = np.random.default_rng(seed)
    size, phase = rng.uniform(0.02, 0.1, 6), rng.uniform(0.0, 6.28, 6)
    model, data = robot.model, robot.model.createData()
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    pin.forwardKinematics(model, data, q)
    feet.update(data)
    q[2] -= feet.gaps.min()
    start, frames = q.copy(), [robot.frame_id(foot.frame) for foot in feet.feet]
    states = []
    for k in range(rows):
        if k % 500 == 0:
            q = start.copy()  # steps of DT drift
        v = np.zeros(robot.nv)
        v[:6] = size * np.cos(2.0 * np.pi * k / 250.0 + phase)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        J = np.vstack(
            [pin.getFrameJacobian(model, data, f, pin.LOCAL_WORLD_ALIGNED)[:3] for f in frames]
        )
        v[6:] = np.linalg.solve(J[:, 6:], -J[:, :6] @ v[:6])
        states.append((q, v))
        q = pin.integrate(model, q, DT * v)
    return tuple(np.array(each) for each in zip(*states))


def feet_of(labeller):
    """The robot's feet on its ground."""
    settings = labeller.settings
    friction = settings.friction_coefficient[0]
    return feet_on(labeller.robot, settings.feet, settings.ground, friction)


def write_motion(path, rows):
    """``rows`` frames with their own accelerations, so that each of them is labelled."""
    labeller = Labeller(load_settings(robots()["solo12"]))
    robot, feet = labeller.robot, feet_of(labeller)
    q, v = sway(robot, feet, min(rows, PIECE))
    times = -(-rows // len(q))
    acceleration = np.gradient(v[:, robot.actuated], DT, axis=0)
    arrays = {"q": q, "v": v, "acceleration": acceleration}
    content = {name: np.tile(rows_, (times, 1))[:rows] for name, rows_ in arrays.items()}
    np.savez(path, time_s=DT * np.arange(rows), **content)
    return arrays


def single(labeller, feet, motion, k):
    """The problem of frame k, and friction and solver, as a user writes them."""
    robot, settings = labeller.robot, labeller.settings
    q, v, acceleration = (motion[name][k] for name in ("q", "v", "acceleration"))
    pin.forwardKinematics(robot.model, robot.data, q)
    feet.update(robot.data)
    touching = feet.select(feet.gaps <= settings.contact_gap_m)
    problem = build_problem(
        robot,
        q,
        v,
        acceleration,
        touching.moved(gaps=np.zeros(len(touching))),
        settings.period_s,
        contact_time_constant_s=settings.contact_time_constant_s,
    )
    return problem, settings.friction, settings.solver


def step_s(labeller, motion):
    """CPU seconds of a single frame: contacts, problem and solution; the median of many."""
    feet, times = feet_of(labeller), []
    for k in range(0, len(motion["q"]), 7):
        began = time.thread_time()
        solve(*single(labeller, feet, motion, k))
        times.append(time.thread_time() - began)
    return float(np.median(times))


def differing_bits(folder, motion, labeller, every):
    """How many of the frames looked at differ from a single solve, and how many were looked at."""
    feet = feet_of(labeller)
    wrong = seen = 0
    for labels in chunks(folder, ("frame", "torques", "forces", "contact")):
        for row in range(0, len(labels["frame"]), every):
            k = int(labels["frame"][row]) % len(motion["q"])
            solution = solve(*single(labeller, feet, motion, k))
            forces = np.zeros((len(feet), 3))
            forces[labels["contact"][row]] = solution.forces
            seen += 1
            wrong += (
                labels["torques"][row].tobytes() != solution.torques.tobytes()
                or labels["forces"][row].tobytes() != forces.tobytes()
            )
    return wrong, seen


def walks_table(duration_s):
    """Errors of labels against the simulation: force on each foot, all feet, share of weight; torques, N·m."""
    from experiments.papers.locomotion import LocomotionRun, prepare  # no worker loads it

    for engine in ("mujoco", "rigid"):
        walk, ground = prepare(LocomotionRun("qp_mu", "rigid_high", engine, duration_s=duration_s))
        record = walk.record(duration_s, each=lambda period: None, ground_height_m=ground.height_m)
        felt = np.linalg.norm(record.simulated_forces, axis=2) > FELT_N
        motion = {"time_s": record.time_s, "q": record.q, "v": record.v, "contact": felt}
        (block,) = blocks_of([motion], len(record))
        settings = walk.controller.settings
        exact = dataclasses.replace(settings, contact_gap_m=1e-4)
        for name, labeller in {
            "law, feet within 2 mm": Labeller(settings, base=LAW),
            "recorded, feet within 2 mm": Labeller(settings),
            "recorded, feet within .1 mm": Labeller(exact),
            "recorded, contact recorded": Labeller(settings, RECORDED),
        }.items():
            labels = labeller.label(block)
            wrong = (labels["forces"] - record.simulated_forces)[:-1] / walk.robot.weight
            each, torque = np.linalg.norm(wrong, axis=2), (labels["torques"] - record.torques)[:-1]
            cells = [
                ("each foot", each),
                ("all feet", np.linalg.norm(wrong.sum(axis=1), axis=1)),
                ("torques", np.abs(torque)),
            ]
            print(
                f"{engine:7s} {name:28s}"
                + ", ".join(
                    f" {cell} rms {np.sqrt(np.square(values).mean()):.4f}"
                    f" p95 {np.percentile(values, 95):.4f}"
                    for cell, values in cells
                ),
                flush=True,
            )


def cpu_s():
    """Of this process and of those that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=CHUNK)
    parser.add_argument("--check-every", type=int, default=997)
    parser.add_argument("--walks", type=float, metavar="SECONDS")
    arguments = parser.parse_args()
    if arguments.walks:
        walks_table(arguments.walks)
        return
    labeller = Labeller(load_settings(robots()["solo12"]))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "sway.npz"
        with processes(1) as executor:  # which takes its memory along
            motion = executor.submit(write_motion, path, arguments.frames).result()
        alone = step_s(labeller, motion)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun, worked = time.perf_counter(), cpu_s()
        (told,) = label_files(
            [path],
            labeller,
            Path(place) / "labels",
            workers=Workers(arguments.jobs),
            chunk=arguments.chunk,
        )
        wall_s, worked = time.perf_counter() - begun, cpu_s() - worked
        standing = sum(
            int((labels["contact"].sum(axis=1) == 4).sum())
            for labels in chunks(told.folder, ("contact",))
        )
        megabytes = sum(file.stat().st_size for file in told.folder.iterdir()) / 1e6
        wrong, seen = differing_bits(told.folder, motion, labeller, arguments.check_every)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts = ", ".join(f"{told.counts[name]} {name}" for name in STATUSES if name in told.counts)
    print(f"{told.frames} frames, {standing} on four feet: {counts}")
    print(
        f"{wall_s:.1f} s, {told.frames / wall_s:.0f} frames/s, {arguments.jobs} processes; "
        f"{1e6 * worked / told.frames:.0f} us of CPU a frame, start of the workers included; "
        f"a single step in this process {1e6 * alone:.0f} us"
    )
    print(
        f"labels {megabytes:.0f} MB; this process "
        f"{memory / 1024:.0f} MB at the beginning, {own / 1024:.0f} MB at the end"
    )
    print(f"{wrong} of {seen} frames looked at differ from the single solve in any bit")


if __name__ == "__main__":
    main()
