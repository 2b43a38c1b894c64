"""A long walk in real time: memory of the nodes, and the time of the controller's steps.

    python benchmarks/endurance.py --duration 300
    python benchmarks/endurance.py --duration 300 --real-time-factor 0.5    # ten minutes at 500 Hz
    python benchmarks/endurance.py --duration 2100 --rt-priority 70 --view 300    # half an hour of viewing

The quadruped trots at 1 kHz of its own time, planner, controller and simulated robot as processes
that talk over ROS topics. Each second the memory and the open files of the processes are read from /proc,
the controller's /diagnostics are taken, and parameters of the controller are set to other values and back.
Nothing is recorded, so that memory may stay flat. With ``--view S`` the live view begins after S seconds, and
a browser without a screen shows its page: what steps take is compared before and then.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter

from contact_id_controller.commands.shared_options import add_changes
from contact_id_controller.runs.processes import (
    NodeGroup,
    free_domain,
    node_command,
    ros_environment,
)
from contact_id_controller.runs.ros_run import LINK
from contact_id_controller.runs.ros_system import RosSystem
from contact_id_controller.runs.setup import make_setup
from contact_id_controller.runs.supervisor import CONFIGURE, Supervisor
from contact_id_controller.view.side_processes import place_of, viewing

SETTLED_S = 60.0
"""Memory is compared with what it is after this long."""

WATCHING = ("viewer", "browser")

CHANGED = (
    {"contact_time_constant_s": 0.051, "friction_edges": 8},
    {"contact_time_constant_s": 0.05, "friction_edges": 4},
)
"""What the controller's parameters are set to in turn."""


def resident_mb(pid: int) -> float:
    """Memory of a process that is its own and resident, MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024.0
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


def open_files(pid: int) -> int:
    """Descriptors that a process holds."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def of_session(pid: int) -> list[int]:
    """A process and all that it started: those of its session."""
    numbers = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    found = []
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(number) == pid:
                found.append(number)
    return found


def sums(pid: int) -> tuple[float, int]:
    """Memory, MB, and open files of a process and of all that it started."""
    memory, files = 0.0, 0
    for each in of_session(pid):
        with contextlib.suppress(OSError, RuntimeError):  # it has just ended
            memory, files = memory + resident_mb(each), files + open_files(each)
    return memory, files


def browser(folder: Path, url: str) -> list[str]:
    """Command line of Debian's Chromium without a screen or graphics card."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise SystemExit("--view needs chromium: apt-get install chromium")
    flags = (
        "--headless=new --no-sandbox --no-first-run --disable-background-networking --disable-sync"
    )
    drawing = "--use-angle=swiftshader --enable-unsafe-swiftshader --window-size=360,480"
    return [program, *flags.split(), *drawing.split(), f"--user-data-dir={folder}", url]


def walk(setup, folder: Path, view_s: float | None):
    """What was seen of a walk: names of the processes; rows (time, memory of each, open files of each), NaN
    before it runs; the controller's diagnostics, each with its time; the simulation's words; answers.
    """
    setup.write(folder / "parameters.yaml")
    environment = ros_environment(free_domain(), folder / "log")
    file = folder / "parameters.yaml"
    commands = {
        name: node_command(name, file, setup.scheduling[name].words()) for name in setup.nodes
    }
    watching = ["viewer", "browser"] if view_s is not None else []
    rows, heard, answers, begun = [], [], [], time.monotonic()

    def hear(message):
        for status in message.status:
            if status.name.startswith("controller:"):
                values = {pair.key: pair.value for pair in status.values}
                heard.append((time.monotonic() - begun, values))

    with (
        contextlib.ExitStack() as later,
        NodeGroup(commands, folder / "log", environment) as nodes,
    ):
        watchers, seen = None, set()
        with Supervisor(environment) as supervisor:
            supervisor.wait_for_controller(nodes.check, 60.0)
            if not (
                supervisor.change_state(CONFIGURE, nodes.check, 600.0)
                and supervisor.activate(nodes.check, 60.0)
            ):
                raise RuntimeError("the controller does not start")
        system = RosSystem("endurance", environment)
        executor = system.executor()
        system.node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
        client = system.node.create_client(SetParameters, "controller/set_parameters")
        begun = time.monotonic()
        while nodes["simulated_robot"].running:
            changed = CHANGED[len(rows) % len(CHANGED)]
            asked = client.call_async(
                SetParameters.Request(
                    parameters=[
                        Parameter(name, value=value).to_parameter_msg()
                        for name, value in changed.items()
                    ]
                )
            )
            asked.add_done_callback(lambda future: answers.append(future.result()))
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                executor.spin_once(timeout_sec=0.2)
            if watching and watchers is None and time.monotonic() - begun >= view_s:
                words = {"viewer": viewing(folder, *place_of(":0"))}
                watchers = later.enter_context(NodeGroup(words, folder / "log", environment))
                seen = set(words)
            # The viewer alone knows its link.
            links = re.findall(f"(?m)^{LINK}(.*)$", watchers["viewer"].output()) if watchers else []
            if links and "browser" not in seen:
                watchers.start("browser", browser(folder / "browser", links[0]))
                seen.add("browser")
            if nodes["simulated_robot"].running:
                found = [sums(nodes[name].pid) for name in commands]
                for name in watching:
                    found.append(sums(watchers[name].pid) if name in seen else (np.nan, np.nan))
                memory, files = zip(*found)
                rows.append([time.monotonic() - begun, *memory, *files])
        executor.shutdown()
        system.close()
        output = nodes["simulated_robot"].last_lines()
    # The last row may be of a simulation that is about to end.
    return [*commands, *watching], np.array(rows[:-1]), heard, output, answers


def typical(heard, key: str, first_s: float, last_s: float) -> float:
    """Median of a figure over the diagnostics of a time."""
    found = [
        float(values[key]) for at_s, values in heard if first_s <= at_s < last_s and key in values
    ]
    return float(np.median(found)) if found else np.nan


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=300.0, help="seconds of walking")
    parser.add_argument("--mu", type=float, default=1.0, help="friction of ground and controller")
    parser.add_argument("--robot", default="quadruped")
    parser.add_argument("--real-time-factor", type=float, default=1.0, help="of the simulation")
    parser.add_argument(
        "--view", type=float, metavar="S", help="after so long a browser shows the live view"
    )
    parser.add_argument("--rt-priority", default="0", metavar="N", help="as of contact_id demo")
    add_changes(parser, "change a parameter, as of contact_id demo")
    return parser.parse_args()


def kept_memory(names: list[str], settled: np.ndarray) -> dict[str, bool]:
    """Print memory and open files of the processes, rows (seconds, 1 + 2 names); which bounds they keep."""
    memory, files = settled[:, 1 : 1 + len(names)], settled[:, 1 + len(names) :]
    for k, name in enumerate(names):
        print(
            f"{name}: {memory[0, k]:.1f} MB settled, {memory[-1, k]:.1f} MB at the end, "
            f"range {np.ptp(memory[:, k]):.1f} MB; open files {files[0, k]:.0f} to {files[-1, k]:.0f}, "
            f"range {np.ptp(files[:, k]):.0f}"
        )
    nodes = [k for k, name in enumerate(names) if name not in WATCHING]
    kept = {
        "memory of the nodes flat within 5 MB": bool(
            (np.ptp(memory[:, nodes], axis=0) <= 5.0).all()
        ),
        "open files flat": bool((np.ptp(files[:, nodes], axis=0) == 0).all()),
    }
    # Whoever draws collects its garbage when it likes: what counts is whether there is more and more of it.
    for name in (name for name in names if name in WATCHING):
        mine = memory[:, names.index(name)]
        thirds = [float(np.median(third)) for third in np.array_split(mine, 3)]
        grown = thirds[2] / thirds[1] - 1.0
        print(f"{name}: medians of the thirds {', '.join(f'{third:.1f}' for third in thirds)} MB")
        bound = "grows by less than 2 % from the second to the last third"
        kept[f"memory of the {name} {bound} ({grown:.1%})"] = grown < 0.02
    return kept


def kept_while_viewed(
    heard: list, settled_s: float, view_s: float, end_s: float
) -> dict[str, bool]:
    """Print the times of steps before the view and with it; which bounds they keep."""
    kept = {}
    for key in ("step time median (us)", "step time p99 (us)", "step time p99.9 (us)"):
        before = typical(heard, key, settled_s, view_s)
        then = typical(heard, key, view_s + settled_s, end_s)
        print(f"{key}, median of all windows: {before:.1f} before, {then:.1f} viewed")
        if "p99 " in key:
            slower = then / before - 1.0
            kept[f"p99 of the loop grows by less than 5 % ({slower:+.1%})"] = slower < 0.05
    return kept


def main() -> int:
    """Print the figures; 1 when the robot fell or a bound was not kept."""
    arguments = options()
    with tempfile.TemporaryDirectory() as folder:
        setup = make_setup(
            Path(folder),
            robot=arguments.robot,
            duration_s=arguments.duration,
            mu=arguments.mu,
            mode="real_time",
            changes=[
                "record_path=''",
                "simulated_robot.record_path=''",
                f"simulated_robot.real_time_factor={arguments.real_time_factor}",
                *arguments.changes,
            ],
            rt_priority=arguments.rt_priority,
        )
        names, rows, heard, output, answers = walk(setup, Path(folder), arguments.view)
    print(output.splitlines()[-1])
    if not heard or not len(rows):
        print("nothing was received from the controller")
        return 1
    end_s, view_s = rows[-1, 0], arguments.view
    settled_s = min(SETTLED_S, 0.2 * end_s)
    settled = rows[rows[:, 0] >= (view_s or 0.0) + settled_s]
    kept = {"did not fall": "ended by duration" in output, **kept_memory(names, settled)}
    taken = sum(all(each.successful for each in answer.results) for answer in answers)
    print(f"parameters changed {taken} of {len(rows)} times")
    kept["parameters changed each second"] = taken > 0.9 * len(rows)
    if view_s is not None:
        kept |= kept_while_viewed(heard, settled_s, view_s, end_s)
    heard = heard[-1][1]
    for key in (
        "steps",
        "deadline misses",
        "steps over half a period",
        "controller steps over half a period",
        "controller step median (us)",
        "controller step p99.9 (us)",
        "step time median (us)",
        "step time p99.9 (us)",
        "safety state",
        "safety reason",
    ):
        print(f"{key}: {heard.get(key)}")
    long_share = int(heard["controller steps over half a period"]) / max(int(heard["steps"]), 1)
    share = f"99.9 % of its steps within half a period ({1 - long_share:.4%})"
    kept[share] = long_share <= 1e-3
    for what, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'NOT KEPT'}: {what}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
