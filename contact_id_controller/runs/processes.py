"""The nodes of a run as separate processes that end with it."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from contact_id_controller.exceptions import RunError
from contact_id_controller.files import make_folder
from contact_id_controller.ros import loopback
from contact_id_controller.safety.latch import SUFFIX

LAST_LINES = 15
INTERRUPT_S, TERMINATE_S = 10.0, 3.0

HIGHEST_DOMAIN = 101
"""On Linux the ports of higher ROS domains overlap with those that the system hands out."""

PARTICIPANTS = 16
"""Number of participants whose ports are checked: a run has fewer."""


def _private(path: str, flags: int) -> int:
    """Open a file that other users cannot read: it may hold the secret link of a page."""
    return os.open(path, flags, 0o600)


class NodeProcess:
    """A process with its output in a log file, or in another file descriptor."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: dict[str, str],
        append: bool = False,
        elsewhere: int | None = None,
    ):
        self._log = log
        if not append:
            log.unlink(missing_ok=True)  # an old one may be readable by all
        # In sessions of their own: Ctrl-C reaches only this process, which then ends the nodes in order.
        with open(log, "ab" if append else "wb", opener=_private) as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output if elsewhere is None else elsewhere,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                preexec_fn=_begin_child,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code (negative: the signal); None while it runs."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def output(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    def last_lines(self) -> str:
        """The end of its output."""
        lines = self.output().strip().splitlines()
        return "\n".join(lines[-LAST_LINES:]) or "(no output)"

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        if self.running:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """End the process: SIGINT, then SIGTERM, then SIGKILL, also to what a killed one leaves."""
        self._end()
        if self.exit_code == -signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _end(self) -> None:
        """End the process: SIGINT, then SIGTERM, then SIGKILL, each with its timeout."""
        for number, patience_s in (
            (signal.SIGINT, INTERRUPT_S),
            (signal.SIGTERM, TERMINATE_S),
            (signal.SIGKILL, TERMINATE_S),
        ):
            if not self.running:
                return
            self._process.send_signal(number)
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue

    def wait(self, patience_s: float) -> bool:
        """Wait for its end; False if it still runs after ``patience_s``."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True


class NodeGroup:
    """The nodes of one run; leaving the ``with`` block ends all that still run.

    Args:
        commands: name of the node -> its command line.
        logs: folder for their output, ``<name>.log``.
        variables: of the environment, in addition to this process' own.
    """

    def __init__(
        self, commands: Mapping[str, Sequence[str]], logs: Path, variables: Mapping[str, str]
    ):
        make_folder(logs)
        environment = dict(os.environ, **variables)
        # One thread for linear algebra: matrices are tiny, and three processes share the cores.
        environment.setdefault("OMP_NUM_THREADS", "1")
        environment["PYTHONUNBUFFERED"] = "1"
        package_parent = str(Path(__file__).resolve().parents[2])
        paths = [package_parent, os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self._nodes: dict[str, NodeProcess] = {}
        self._commands: dict[str, Sequence[str]] = {}
        self._logs, self._environment = logs, environment
        try:
            for name, command in commands.items():
                self.start(name, command)
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> NodeGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __getitem__(self, name: str) -> NodeProcess:
        return self._nodes[name]

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start another node, which ends with the others."""
        self._commands[name] = command
        self._nodes[name] = NodeProcess(command, self._logs / f"{name}.log", self._environment)

    def restart(self, name: str, output: int | None = None) -> None:
        """Restart a node that has ended; its output is appended to the same file.

        output: a file descriptor for it instead.
        """
        self._nodes[name].wait(TERMINATE_S)
        log = self._logs / f"{name}.log"
        self._nodes[name] = NodeProcess(
            self._commands[name], log, self._environment, append=True, elsewhere=output
        )

    def check(self, *ended_well: str) -> None:
        """Raise RunError with its last lines when a node has ended.

        Args:
            ended_well: nodes that may have ended with code 0.
        """
        for name, node in self._nodes.items():
            code = node.exit_code
            if code is None or (code == 0 and name in ended_well):
                continue
            raise RunError(f"node {name!r} {_how(code)}; its last lines:\n{node.last_lines()}")

    def end(self) -> None:
        """Interrupt all nodes, then end each."""
        for node in self._nodes.values():
            node.interrupt()
        for node in self._nodes.values():
            node.end()


def node_command(name: str, parameters: Path, options: Sequence[str] = ()) -> list[str]:
    """Command line of a node of this package with a ROS parameter file.

    options: arguments before the ROS arguments, see ``ros.scheduling``.
    """
    module = "-m", f"contact_id_controller.ros.{name}"
    return [sys.executable, *module, *options, *_ros_arguments(parameters)]


def script_command(script: Path, parameters: Path) -> list[str]:
    """Command line of the user's own node, a Python script, with a ROS parameter file."""
    return [sys.executable, str(script.resolve()), *_ros_arguments(parameters)]


def _ros_arguments(parameters: Path) -> tuple[str, ...]:
    return "--ros-args", "--params-file", str(parameters)


def ros_environment(domain: int, logs: Path) -> dict[str, str]:
    """Environment of a run that is isolated from other ROS systems.

    It has its own state folder, from which emergency stops of earlier runs are removed.
    """
    state = logs.resolve() / "state"  # a relative one would be ignored
    for stop in state.glob(f"*/*{SUFFIX}"):
        stop.unlink(missing_ok=True)
    environment = {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(logs / "ros"),
        "XDG_STATE_HOME": str(state),
    }
    # Without shared memory, in which a killed process may leave a lock that others wait for.
    confined = {**os.environ, **environment}
    loopback.confine(confined)
    loopback.send_again_soon(confined)
    return environment | {name: confined[name] for name in loopback.SET if name in confined}


_reserved: collections.deque[socket.socket] = collections.deque(maxlen=8)
"""Reservations of the domains taken last; earlier ones have participants by now."""


def free_domain() -> int:
    """Reserve an unused ROS domain of this machine.

    Raises:
        RunError: none is free.
    """
    candidates = np.random.default_rng(time.time_ns()).permutation(HIGHEST_DOMAIN) + 1
    for domain in candidates.tolist():
        if not _is_taken(domain) and _reserve(domain):
            return domain
    raise RunError(f"all ROS domains from 1 to {HIGHEST_DOMAIN} are in use on this machine")


def _is_taken(domain: int) -> bool:
    """Whether a domain has a participant.

    In domain d participant k has UDP port 7410 + 250 d + 2 k; discovery by multicast uses 7400 + 250 d, too.
    """
    first = 7400 + 250 * domain
    return any(map(_listens, (first, *range(first + 10, first + 10 + 2 * PARTICIPANTS, 2))))


def _listens(port: int) -> bool:
    """Whether a UDP port is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def _reserve(domain: int) -> bool:
    """Reserve a domain for this process, whose participants start later; return whether it was free."""
    if sys.platform != "linux":
        return True
    place = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # An abstract name: the kernel removes it with the process.
        place.bind(f"\0contact_id.domain.{domain}")
    except OSError:
        place.close()
        return False
    _reserved.append(place)
    return True


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _begin_child() -> None:
    """In the child: default SIGHUP, also under nohup; on Linux, die with the parent, even if that is killed."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
