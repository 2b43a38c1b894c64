"""The nodes of a run as separate processes that never outlive it."""

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
"""Whose ports are looked at: a run has fewer."""


def _private(path: str, flags: int) -> int:
    """Open a file that no other user reads: the link of a page may stand in it."""
    return os.open(path, flags, 0o600)


class NodeProcess:
    """One process with its output in a log file, or where else it is to go."""

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
            log.unlink(missing_ok=True)  # an old one may be everybody's
        # In a session of its own, Ctrl-C reaches this process only, which then ends the nodes
        # in order.
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
        """Code the process ended with (negative: the signal); None while it runs."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Send a signal; one that stops or kills acts at once."""
        self._process.send_signal(number)

    def output(self) -> str:
        """All that it has printed."""
        return self._log.read_text(errors="replace")

    def last_lines(self) -> str:
        """The end of its output."""
        lines = self.output().strip().splitlines()
        return "\n".join(lines[-LAST_LINES:]) or "(no output)"

    def interrupt(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        if self.running:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Make sure that it has ended: ask, then insist, then kill; what one that was killed left, too."""
        self._end()
        if self.exit_code == -signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _end(self) -> None:
        """End the process: SIGINT, then SIGTERM, then SIGKILL, each with its patience, s."""
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
        """Wait for its end; False when it still runs after ``patience_s``."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True


class NodeGroup:
    """The nodes of one run; leaving the ``with`` block ends whatever still runs.

    Args:
        commands: name of the node -> its command line.
        logs: folder for their output, ``<name>.log``.
        variables: of the environment, on top of those of this process.
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
        """Start one more node, which ends with the others."""
        self._commands[name] = command
        self._nodes[name] = NodeProcess(command, self._logs / f"{name}.log", self._environment)

    def restart(self, name: str, output: int | None = None) -> None:
        """Start a node again that has ended; its output goes on in the same file.

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
        """Ask all nodes to end, then see to each."""
        for node in self._nodes.values():
            node.interrupt()
        for node in self._nodes.values():
            node.end()


def node_command(name: str, parameters: Path, options: Sequence[str] = ()) -> list[str]:
    """Command line of a node of this package with a ROS parameter file.

    options: words before the ROS arguments, see ``ros.scheduling``.
    """
    module = "-m", f"contact_id_controller.ros.{name}"
    return [sys.executable, *module, *options, *_ros_arguments(parameters)]


def script_command(script: Path, parameters: Path) -> list[str]:
    """Command line of a node of the user's own, a Python script, with the same file."""
    return [sys.executable, str(script.resolve()), *_ros_arguments(parameters)]


def _ros_arguments(parameters: Path) -> tuple[str, ...]:
    return "--ros-args", "--params-file", str(parameters)


def ros_environment(domain: int, logs: Path) -> dict[str, str]:
    """Environment of a run that is isolated from any other ROS system.

    Its state folder is its own: an emergency stop of an earlier run in the same folder is gone.
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
    # So that no observer in another process waits for a lock that a killed one holds.
    confined = {**os.environ, **environment}
    loopback.confine(confined)
    loopback.send_again_soon(confined)
    return environment | {name: confined[name] for name in loopback.SET if name in confined}


_reserved: collections.deque[socket.socket] = collections.deque(maxlen=8)
"""Names of the domains that this process was given last: by then participants are in those before."""


def free_domain() -> int:
    """An unused ROS domain of this machine, which no other run gets meanwhile.

    Raises:
        RunError: none is left.
    """
    candidates = np.random.default_rng(time.time_ns()).permutation(HIGHEST_DOMAIN) + 1
    for domain in candidates.tolist():
        if not _is_taken(domain) and _reserve(domain):
            return domain
    raise RunError(f"all ROS domains from 1 to {HIGHEST_DOMAIN} are in use on this machine")


def _is_taken(domain: int) -> bool:
    """Whether a participant is in a domain.

    Each of domain d listens on UDP port 7410 + 250 d + 2 k, k its number there; who looks for others by
    multicast, on 7400 + 250 d, too.
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
    """Keep a domain for this process, whose participants come later; whether it was free."""
    if sys.platform != "linux":
        return True
    place = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # No file: the kernel forgets the name with the process.
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
    """In the child: hear SIGHUP, also under nohup; on Linux, be killed when the parent dies, even by SIGKILL."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
