"""How many Python functions, in how many files, stand between a state and its torques in one process.

    python benchmarks/path_of_a_state.py [--robot solo12] [--list]
    PYTHONPATH=/path/to/another/checkout python benchmarks/path_of_a_state.py

A robot in MuJoCo follows its gait planner's plans through the in-process door. Counted is what
`InProcessController.update` calls until its torques are decided (`sys.setprofile`: Python's functions and compiled
ones, of this package and of others; not built-in ones), and not `Guard.finish`, which counts and times the
step afterwards. Printed: the commonest path of the walk, and the median time of a whole update.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import contact_id_controller
from contact_id_controller.runs import one_process
from contact_id_controller.safety.in_process import InProcessController

WARM_PERIODS, PERIODS, PLAN_EVERY = 600, 400, 20
HOME = Path(contact_id_controller.__file__).parent


def walk(name: str) -> tuple[list[str], list[float]]:
    """Walk; the calls of the commonest path to torques, "file:line name", and times of the updates, s."""
    settings = one_process.controller_settings(name)
    run = one_process.InProcessRun(name, settings, one_process.mujoco_robot(settings, 1.0))
    door = InProcessController(settings, clock=lambda: run.state.time_s + 1e-9)
    robot, times_s, paths = run.robot, [], Counter()
    for period in range(WARM_PERIODS + PERIODS):
        state = run.state
        base = (state.q[:7], state.v[:6]) if robot.floating_base else ()
        measured = np.concatenate([robot.joints_of(state.q), state.v[robot.actuated], *base])
        if period >= WARM_PERIODS and period % 2:
            path, torques = calls_of(door.update, measured)
            paths[tuple(path)] += 1
        else:
            begun = time.perf_counter()
            torques = door.update(measured)
            times_s.append(time.perf_counter() - begun)
        run.state = run.world.step(torques)
        if period % PLAN_EVERY == 0:
            plan = run.planner.plan(run.state.time_s, run.state.q, run.state.v, None)
            door.follow(lambda plan=plan: plan)
    if door.safety.state.value != "following":
        raise SystemExit(f"the robot does not walk: {door.safety.state.value}, {door.guard.news()}")
    return list(paths.most_common(1)[0][0]), times_s[WARM_PERIODS:]


def calls_of(update, measured: np.ndarray) -> tuple[list[str], np.ndarray]:
    """What an update calls until its torques are decided, and the torques."""
    entered: list[str] = []

    def profile(frame, event, _):
        if event == "call":
            code = frame.f_code
            entered.append(f"{code.co_filename}:{code.co_firstlineno} {code.co_name}")

    sys.setprofile(profile)
    try:
        torques = update(measured)
    finally:
        sys.setprofile(None)
    own = [call for call in entered if not call.startswith(__file__)]
    decided = next(
        k for k, call in enumerate(own) if call.endswith(" finish") and "guard.py:" in call
    )
    return own[:decided], torques


def main() -> int:
    """Walk, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="solo12", help="whose configuration is used")
    parser.add_argument("--list", action="store_true", help="the functions, in their order")
    given = parser.parse_args()
    path, times_s = walk(given.robot)
    if given.list:
        print(*(call.removeprefix(f"{HOME}/") for call in path), sep="\n", end="\n\n")
    files = {call.partition(":")[0] for call in path}
    own = sum(call.startswith(str(HOME)) for call in path)
    print(
        f"{given.robot}: {len(path)} calls ({own} of this package) in {len(files)} files, from {HOME}"
    )
    print(f"median time of an update {1e6 * np.median(times_s):.0f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
