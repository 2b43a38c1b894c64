"""Checks before runs begin: missing extras, and signals that end runs in order."""

from __future__ import annotations

import importlib.util
import signal

from contact_id_controller.exceptions import MissingExtraError

EXTRAS = {
    **dict.fromkeys(("rclpy", "lifecycle_msgs"), "ros"),
    **dict.fromkeys(("mujoco", "matplotlib", "PIL", "rich", "jinja2"), "simulation"),
    "rosbags": "replay",
    "viser": "view",
    "quadprog": "quadprog",
    "distributed": "cluster",
}
"""Modules that not every installation has, and the extra that brings each."""


def check_extras(who: str, *modules: str) -> None:
    """Refuse to start without the required modules, of `EXTRAS`.

    who: subject and verb of the message, such as "a run needs".

    Raises:
        MissingExtraError: names the extras to install.
    """
    missing = {EXTRAS[module] for module in modules if importlib.util.find_spec(module) is None}
    if missing:
        extras = ",".join(sorted(missing))
        raise MissingExtraError(
            f"{who} the extra{'s' if len(missing) > 1 else ''} {extras}: "
            f"pip install 'contact_id_controller[{extras}]'"
        )


def end_on_signals() -> None:
    """Let SIGTERM end the processes of a run in order, as Ctrl-C does.

    Also if the parent had signals ignored, as for a background job.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
