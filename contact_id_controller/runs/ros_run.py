"""Runs one simulation over ROS: its nodes as processes, from their start to their records."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from contact_id_controller.exceptions import RunError
from contact_id_controller.files import check_free, make_folder
from contact_id_controller.kernels.compile_progress import SIGN
from contact_id_controller.runs.processes import (
    NodeGroup,
    free_domain,
    node_command,
    ros_environment,
    script_command,
)
from contact_id_controller.runs.progress import ProgressBar
from contact_id_controller.runs.setup import NODE_RECORDS, RECORD, RunSetup
from contact_id_controller.runs.supervisor import CONFIGURE, Supervisor
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR
from contact_id_controller.settings.shared_rows import CONFIGURE_S

APPEAR_S = 60.0
"""Timeout for nodes to appear."""

MOTION_S = 30.0
"""Timeout for nodes to subscribe to a joint motion."""

STALL_S = 60.0
"""Wall time without progress of the simulated clock after which a run has failed."""

RECORD_S = 30.0
LOOK_S = 1.0
"""Time between checks of the nodes' logs for compiling."""

PARAMETERS, LOGS = "parameters.yaml", "log"
READY = "ready"
"""The line that a side process prints when the run may begin."""

LINK = "page: "
"""Beginning of the line in which a side process prints the secret link of its page."""


def prepare_folder(folder: Path) -> None:
    """Make the folder of a run, and remove the records of an earlier run.

    Raises:
        RecordError: the folder, or a file in it, cannot be written.
    """
    make_folder(folder)
    make_folder(folder / LOGS)
    records = [folder / name for name in (*NODE_RECORDS, RECORD)]
    check_free(*records, folder / PARAMETERS)
    for record in records:
        record.unlink(missing_ok=True)


def run_nodes(
    setup: RunSetup,
    folder: Path,
    side_processes: Mapping[str, Sequence[str]] | None = None,
    domain: int | None = None,
) -> float:
    """Run to the end, with the records in ``folder``; return the wall time of the motion, s.

    Args:
        side_processes: name -> command line of further processes in the ROS domain of the run; each
            prints the line `READY` when the run may begin, and ends when interrupted after it.
        domain: ROS domain of the run; None: an unused one. It is printed.

    Raises:
        RecordError: the folder, or a file in it, cannot be written.
        RunError: a node ended early, refused to start, or the simulation stands still; the message
            has the last lines of the node's output.
    """
    parameters, logs = folder / PARAMETERS, folder / LOGS
    prepare_folder(folder)
    setup.write(parameters)
    domain = free_domain() if domain is None else domain
    environment = ros_environment(domain, logs)
    side_processes = side_processes or {}
    commands = {
        name: node_command(name, parameters, each.words())
        for name, each in setup.scheduling.items()
    }
    if setup.planner is not None:
        commands[setup.planner.stem] = script_command(setup.planner, parameters)
    bar = ProgressBar(setup.title, setup.duration_s)
    try:
        with NodeGroup({**commands, **side_processes}, logs, environment) as nodes:
            with Supervisor(environment) as supervisor:
                watch = _Watch(nodes, setup.nodes, bar)
                bar.say(f"starting in ROS domain {domain}")
                supervisor.wait_for_controller(watch, APPEAR_S)
                bar.say("compiling and configuring")
                if not supervisor.change_state(CONFIGURE, watch, CONFIGURE_S):
                    raise _refused(nodes, "configure")
                for name in side_processes:
                    supervisor.wait_for(
                        partial(_is_ready, nodes[name]),
                        watch,
                        CONFIGURE_S,
                        f"{name!r} was not ready",
                    )
                    for line in nodes[name].output().splitlines():
                        if line.startswith(LINK):
                            bar.tell(f"live view: {line.removeprefix(LINK)}")
                bar.say("activating")
                # The other nodes may compile longer than the controller, before they publish.
                if not supervisor.activate(watch, CONFIGURE_S):
                    raise _refused(nodes, "activate")
                if setup.motion is not None:
                    supervisor.send_motion(setup.motion, setup.listeners, watch, MOTION_S)
                bar.say("walking" if setup.motion is None else "moving")
                begun = time.monotonic()
                _follow(supervisor, nodes, bar)
                wall_s = time.monotonic() - begun
            bar.say("writing records")
            writers = [name for name in ("controller", ESTIMATOR) if name in setup.nodes]
            for name in writers:
                nodes[name].interrupt()
            for name in writers:
                if not nodes[name].wait(RECORD_S):
                    raise RunError(f"node {name!r} did not end within {RECORD_S:g} s")
            for name in side_processes:
                nodes[name].interrupt()
            for name in side_processes:
                if not nodes[name].wait(RECORD_S):
                    raise RunError(f"{name!r} did not end within {RECORD_S:g} s")
    finally:
        bar.close()
    return wall_s


class _Watch:
    """Checks the nodes during a wait, and shows what they compile."""

    def __init__(self, nodes: NodeGroup, names: Sequence[str], bar: ProgressBar) -> None:
        self._nodes, self._names, self._bar = nodes, names, bar
        self._shown: dict[str, str] = {}
        self._look_s = 0.0

    def __call__(self) -> None:
        """Raise if a node has ended; show a node's newest line about compiling."""
        self._nodes.check()
        if time.monotonic() < self._look_s:
            return
        self._look_s = time.monotonic() + LOOK_S
        for name in self._names:
            lines = [line for line in self._nodes[name].output().splitlines() if SIGN in line]
            if lines and lines[-1] != self._shown.get(name):
                self._shown[name] = lines[-1]
                self._bar.say(f"{name} {SIGN}{lines[-1].partition(SIGN)[2]}")


def _is_ready(node: Any) -> bool:
    return READY in node.output().splitlines()


def _refused(nodes: NodeGroup, what: str) -> RunError:
    return RunError(
        f"the controller refused to {what}; its last lines:\n{nodes['controller'].last_lines()}"
    )


def _follow(supervisor: Supervisor, nodes: NodeGroup, bar: ProgressBar) -> None:
    """Show the progress until the simulated robot has ended."""
    moved_at, last_s = time.monotonic(), supervisor.time_s
    robot = nodes["simulated_robot"]
    while robot.running:
        nodes.check("simulated_robot")
        supervisor.spin(0.05)
        bar.show(supervisor.time_s)
        if supervisor.time_s != last_s:
            moved_at, last_s = time.monotonic(), supervisor.time_s
        elif time.monotonic() - moved_at > STALL_S:
            raise RunError(
                f"the simulation stands still at {last_s:.3f} s; last lines of the "
                f"controller:\n{nodes['controller'].last_lines()}"
            )
    nodes.check("simulated_robot")
