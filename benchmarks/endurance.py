"""A long walk in real time: memory of the nodes, and the time of the controller's steps.

    python benchmarks/endurance.py --duration 300

The quadruped trots at 1 kHz of wall time, planner, controller and simulated robot as processes
that talk over ROS topics. Each second the memory of the processes is read from /proc and the
controller's /diagnostics are taken. Nothing is recorded, so that memory may stay flat.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray

from contact_id_controller.runs.processes import (
    NodeGroup,
    free_domain,
    node_command,
    ros_environment,
)
from contact_id_controller.runs.setup import make_setup
from contact_id_controller.runs.supervisor import CONFIGURE, Supervisor

SETTLED_S = 60.0
"""Memory is compared with what it is after this long."""


def resident_mb(pid: int) -> float:
    """Memory of a process that is its own and resident, MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024.0
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


def walk(setup, folder: Path):
    """Rows (time, memory of each node) and the last diagnostics of the controller, as text."""
    setup.write(folder / "parameters.yaml")
    environment = ros_environment(free_domain(), folder / "log")
    os.environ.update(environment)
    commands = {name: node_command(name, folder / "parameters.yaml") for name in setup.nodes}
    rows, heard = [], {}

    def hear(message):
        for status in message.status:
            if status.name.startswith("controller:"):
                heard.update({pair.key: pair.value for pair in status.values})

    with NodeGroup(commands, folder / "log", environment) as nodes:
        with Supervisor(environment) as supervisor:
            supervisor.wait_for_controller(nodes.check, 60.0)
            if not (
                supervisor.change_state(CONFIGURE, nodes.check, 600.0)
                and supervisor.activate(nodes.check, 60.0)
            ):
                raise RuntimeError("the controller does not start")
        rclpy.init()
        listener = rclpy.create_node("endurance")
        listener.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
        begun = time.monotonic()
        while nodes["simulated_robot"].running:
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                rclpy.spin_once(listener, timeout_sec=0.2)
            if nodes["simulated_robot"].running:
                rows.append(
                    [time.monotonic() - begun, *(resident_mb(nodes[name].pid) for name in commands)]
                )
        rclpy.shutdown()
        output = nodes["simulated_robot"].last_lines()
    return list(commands), np.array(rows), heard, output


def main() -> int:
    """Print the figures; 1 when the robot fell or a bound was not kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=300.0, help="seconds of walking")
    parser.add_argument("--mu", type=float, default=1.0, help="friction of ground and controller")
    parser.add_argument("--robot", default="quadruped")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        setup = make_setup(
            Path(folder),
            robot=arguments.robot,
            duration_s=arguments.duration,
            mu=arguments.mu,
            mode="real_time",
            changes=["record_path=''", "simulated_robot.record_path=''"],
        )
        names, rows, heard, output = walk(setup, Path(folder))
    print(output.splitlines()[-1])
    if not heard or not len(rows):
        print("nothing was heard of the controller")
        return 1
    settled = rows[rows[:, 0] >= min(SETTLED_S, 0.2 * rows[-1, 0])]
    for k, name in enumerate(names, start=1):
        memory = settled[:, k]
        print(
            f"{name}: {memory[0]:.1f} MB settled, {memory[-1]:.1f} MB at the end, "
            f"range {np.ptp(memory):.1f} MB"
        )
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
    controller = settled[:, 1 + names.index("controller")]
    long_share = int(heard["controller steps over half a period"]) / max(int(heard["steps"]), 1)
    kept = {
        "did not fall": "ended by duration" in output,
        "memory of the controller flat within 5 MB": bool(np.ptp(controller) <= 5.0),
        f"99.9 % of its steps within half a period ({1 - long_share:.4%})": long_share <= 1e-3,
    }
    for what, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'NOT KEPT'}: {what}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
