"""The dynamics estimator: time of a step beside Pinocchio and BERDY; foot forces on walks against the truth.

    python benchmarks/estimation.py                # times; again in a second process, all compiled
    python benchmarks/estimation.py --walks        # foot forces, 10 s of the controller's own walks

Times: base IMU, joint accelerations and efforts, all noisy, on four robots of example-robot-data; one
thread, measurements in one vector. Medians in us of calls that take turns, block by block, with
``pinocchio.rnea`` and ``aba`` of the same robot, so that all see the same machine; in brackets the ratio
to rnea. BERDY only where idyntree is installed.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import checkout  # noqa: F401  before what is not installed
import numpy as np
import pinocchio as pin

from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator
from contact_id_controller.estimation.pipeline import PipelineSettings
from contact_id_controller.estimation.sensors import (
    Accelerometer,
    AngularAcceleration,
    Contact,
    JointAcceleration,
    JointEffort,
)
from contact_id_controller.robot import RobotModel
from experiments.benchmark.berdy import Berdy, Noise
from experiments.benchmark.foot_forces import UNFILTERED_HZ, foot_forces
from experiments.benchmark.sensed_walk import sensed_walk

ROBOTS = {  # URDF, contact frames, kind of contact
    "Solo12": (
        "example-robot-data://solo_description/robots/solo12.urdf",
        ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        "point",
    ),
    "ANYmal C": (
        "example-robot-data://anymal_c_simple_description/urdf/anymal.urdf",
        ("LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT"),
        "point",
    ),
    "iCub": (
        "example-robot-data://icub_description/robots/icub.urdf",
        ("l_sole", "r_sole"),
        "surface",
    ),
    "TALOS": (
        "example-robot-data://talos_data/robots/talos_full_v2.urdf",
        ("left_sole_link", "right_sole_link"),
        "surface",
    ),
}
STATES = 20  # visited in turn, so that no branch is learned by heart
BLOCKS, REPEATED = 200, 20
NOISE = Noise()


def estimator_of(robot: RobotModel, frames, kind: str) -> DynamicsEstimator:
    """Everything noisy."""
    base = robot.model.names[1]
    sensors = [
        JointAcceleration(NOISE.joint_acceleration),
        JointEffort(NOISE.joint_effort),
        Accelerometer(base, NOISE.accelerometer),
        AngularAcceleration(base, NOISE.angular_acceleration),
    ]
    return DynamicsEstimator(robot, sensors, dict.fromkeys(frames, kind))


def median_us(*functions) -> np.ndarray:
    """Median times of calls with a number, us; some in a row, in turns with the others."""
    times = np.empty((len(functions), BLOCKS, REPEATED))
    for block in range(BLOCKS):
        for i, function in enumerate(functions):
            for call in range(REPEATED):
                start = time.perf_counter()
                function(call % STATES)
                times[i, block, call] = time.perf_counter() - start
    return 1e6 * np.median(times, axis=(1, 2))


def allocated(function) -> int:
    """Bytes that 100 calls leave or use at their peak."""
    for call in range(STATES):
        function(call)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for call in range(100):
        function(call % STATES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


def time_robot(name: str, berdy: bool) -> str:
    """One line of the table."""
    urdf, frames, kind = ROBOTS[name]
    robot = RobotModel.from_urdf(urdf, True)
    estimator, rng = estimator_of(robot, frames, kind), np.random.default_rng(0)
    model, data = robot.model, robot.model.createData()
    states = []
    for _ in range(STATES):
        q = pin.integrate(model, pin.neutral(model), 0.5 * rng.normal(size=model.nv))
        v, a = rng.normal(size=(2, model.nv))
        size = max(place.stop for place in estimator.slices.values())
        states.append((q, v, v[3:6].copy(), a, rng.normal(size=size)))

    def ours(k):
        q, v, w, _, y = states[k]
        estimator.estimate(q, v, w, y)

    def rnea(k):
        q, v, _, a, _ = states[k]
        pin.rnea(model, data, q, v, a)

    def aba(k):
        q, v, _, a, _ = states[k]
        pin.aba(model, data, q, v, a)

    functions = [ours, rnea, aba]
    if berdy:
        components = dict.fromkeys(frames, Contact(frames[0], kind).components)
        peer = Berdy(robot, urdf, components, NOISE)
        q, v, w, _, _ = states[0]
        peer.state(q[7:], v[6:], w)
        functions.append(lambda k: peer.solve())
    for function in functions:
        function(0)
    times = median_us(*functions)
    line = (
        f"{name:9s} {model.nv - 6:6d} {times[0]:10.1f} ({times[0] / times[1]:.1f}) "
        f"{times[1]:9.1f} {times[2]:8.1f} {allocated(ours):8d}"
    )
    return line + (f" {times[3]:9.0f} = {times[3] / times[0]:.0f} x" if berdy else "")


def judge_walks(names, seconds: float, seeds: int) -> None:
    """Errors of foot forces on the controller's own walks."""
    print("of the weight: against truth, against filtered truth | contact | touch-downs")
    for name in names:
        walk = sensed_walk(name, seconds)
        for noise, cutoff in (
            ("perfect", UNFILTERED_HZ),
            ("perfect", 100.0),
            ("good", 100.0),
            ("motor_currents", 100.0),
            ("cheap", 100.0),
        ):
            settings = PipelineSettings(period_s=walk.period_s, cutoff_hz=cutoff)
            for seed in range(seeds if noise != "perfect" else 1):
                found = foot_forces(walk, noise, seed, settings=settings)
                filtered = "unfiltered" if cutoff == UNFILTERED_HZ else f"{cutoff:g} Hz"
                print(
                    f"{name:10s} {noise:15s} {filtered:10s} seed {seed}: {found.raw:.2%} "
                    f"{found.filtered:.2%} | {found.contact:.1%} | {found.touch_downs}, missed "
                    f"{found.missed}, false {found.false}, delay {1e3 * found.delay_s:.0f} ms",
                    flush=True,
                )


def main() -> None:
    """Times of every robot, or walks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walks", nargs="*", metavar="CONFIGURATION")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS), choices=list(ROBOTS))
    arguments = parser.parse_args()
    if arguments.walks is not None:
        names = arguments.walks or ["solo12", "quadruped"]
        judge_walks(names, arguments.seconds, arguments.seeds)
        return
    try:
        import idyntree  # noqa: F401
    except ImportError:
        berdy = False
    else:
        berdy = True
    print("robot     joints  ours us (rnea)      rnea      aba    bytes     BERDY")
    for name in arguments.robots:
        print(time_robot(name, berdy), flush=True)


if __name__ == "__main__":
    main()
