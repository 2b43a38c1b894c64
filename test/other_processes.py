"""What Linux knows of other processes, by their number."""

from pathlib import Path


def state_of(pid):
    """Letter of a process's state, X where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def alive(pid):
    """Whether a process runs, rather than waits to be looked at."""
    return state_of(pid) not in "ZX"


def children(pid):
    """The processes that one has started, the oldest first."""
    return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
