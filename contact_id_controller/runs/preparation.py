"""Checks before runs begin: missing extras, and signals that end runs in order."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Sequence

from contact_id_controller.exceptions import MissingExtraError


def check_extras(modules: Sequence[tuple[str, str]], who: str) -> None:
    """Refuse to start without the required modules.

    Args:
        modules: each with the extra of the installation that has it.
        who: subject and verb of the message, such as "a run needs".

    Raises:
        MissingExtraError: names the extras to install.
    """
    missing = {extra for module, extra in modules if importlib.util.find_spec(module) is None}
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
