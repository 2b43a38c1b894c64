"""The whole step of two checkouts of this package, in turn on one core: which is faster, and by how much.

    python benchmarks/two_versions.py /path/to/the/old/checkout /path/to/the/new [--models F/S ...] \
        [--contacts 4 40 1000] [--prepared]

A process for each checkout; both are held to the same core (Linux) and run in turn for about ten
milliseconds of steps, so that whatever else the machine does meets both. Printed: the median time
of a step in each, and the median of the ratios of neighbouring turns. `--prepared`: the steps of
`InverseDynamics`, cold, of the models that it has a compiled call for.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time

CONTACTS = (4, 40)
PREPARED = ("coulomb/qp", "no_slip/lcp")
TURN_S = 0.01  # long enough to warm the caches after the other's turn
PERIOD_S, TIME_CONSTANT_S = 1e-3, 0.05
PLACES = (
    "experiments.benchmark.speed",
    "contact_id_controller.benchmark.speed",  # version 0.2.0
    "contact_id_controller.experiments.benchmark",  # the first version
)


def serve(root: str, prepared: bool) -> None:
    """Answer lines ``friction/solver n seconds`` with the mean time of a step, s; the worker's part."""
    sys.path.insert(0, root)
    speed = importlib.import_module(
        next(
            name for name in PLACES if os.path.isfile(os.path.join(root, *name.split(".")) + ".py")
        )
    )
    import contact_id_controller

    place = os.path.realpath(contact_id_controller.__file__)
    if not place.startswith(os.path.realpath(root) + os.sep):
        raise SystemExit(f"{root} holds no contact_id_controller; {place} was imported")
    robot, cases = contact_id_controller.RobotModel.from_urdf(speed.SOLO12), {}
    models = speed.MODELS  # with their options in earlier versions
    print(
        json.dumps([name for name in models if isinstance(models, tuple) or not models[name]]),
        flush=True,
    )
    for line in sys.stdin:
        name, n, seconds = line.split()
        n, (friction, solver) = int(n), name.split("/")
        if (name, n) not in cases:
            q, contacts = speed.stance(robot, n)
            states, how = (
                list(speed.states(robot, q)),
                {"contact_time_constant_s": TIME_CONSTANT_S},
            )
            given = contacts, PERIOD_S, friction, solver
            ready = (
                contact_id_controller.InverseDynamics(robot, *given, **how) if prepared else None
            )
            cases[name, n] = states, contacts, how, ready
        states, contacts, how, ready = cases[name, n]
        k, last, began = 0, None, time.process_time()
        while k % len(states) or k == 0 or time.process_time() - began < float(seconds):
            if ready is not None:
                ready.torques(*states[k % len(states)])
            else:
                state = states[k % len(states)]
                problem = contact_id_controller.build_problem(
                    robot, *state, contacts, PERIOD_S, **how
                )
                last = contact_id_controller.solve(problem, friction, solver, warm_start=last)
            k += 1
        print((time.process_time() - began) / k, flush=True)


def main() -> None:
    """Start both workers, ask them in turn and print a row for each model and number of contacts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("roots", nargs=2, metavar="CHECKOUT")
    parser.add_argument("--models", nargs="+", default=(), metavar="F/S")
    parser.add_argument("--contacts", nargs="+", type=int, default=CONTACTS, metavar="N")
    parser.add_argument("--turns", type=int, default=70)
    parser.add_argument("--prepared", action="store_true")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "--serve", root, *["--prepared"] * arguments.prepared],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "OMP_NUM_THREADS": "1"},
        )
        for root in arguments.roots
    ]

    def ask(worker, name, n, seconds):
        worker.stdin.write(f"{name} {n} {seconds}\n")
        worker.stdin.flush()
        return float(worker.stdout.readline())

    known = [set(json.loads(worker.stdout.readline())) for worker in workers]
    names = (
        arguments.models
        or (PREPARED if arguments.prepared else ())
        or sorted(
            name
            for name in (known[0] & known[1]) - {"none/sensed", "coulomb/lcp_min_diff"}
            if " " not in name  # of a library, which is asked in another way
        )
    )
    print(f"{'model':24}{'contacts':>9}{'first, us':>11}{'second, us':>12}{'ratio':>8}")
    for name in names:
        for n in arguments.contacts:
            for worker in workers:
                ask(worker, name, n, 0.0)  # compiles
            turns = []
            for k in range(arguments.turns):
                order = (0, 1) if k % 2 else (1, 0)
                answers = {i: ask(workers[i], name, n, TURN_S) for i in order}
                turns.append((answers[0], answers[1]))
            first, second = (sorted(turn[i] for turn in turns)[len(turns) // 2] for i in (0, 1))
            ratio = sorted(b / a for a, b in turns)[len(turns) // 2]
            row = f"{name:24}{n:9}{1e6 * first:11.1f}{1e6 * second:12.1f}{ratio:8.3f}"
            print(row, flush=True)
    for worker in workers:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], "--prepared" in sys.argv)
    else:
        main()
