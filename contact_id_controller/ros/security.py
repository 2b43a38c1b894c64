"""Errors where security of ROS 2 is enabled and not available (docs/security.md).

If ``ROS_SECURITY_ENABLE`` is true and a node is not secured, it reports that in one line, or does not run.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from contact_id_controller.exceptions import ConfigurationError

ENABLE, STRATEGY, KEYSTORE = (f"ROS_SECURITY_{name}" for name in ("ENABLE", "STRATEGY", "KEYSTORE"))


def is_asked_for() -> bool:
    """Whether ROS is configured to secure its topics."""
    return os.environ.get(ENABLE) == "true"


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Context for starting ROS and making a node: errors of security become one line.

    Args:
        name: begins the line that is printed where security is not enforced.

    Raises:
        ConfigurationError: security is enabled and this ROS does not provide it.
    """
    if is_asked_for() and os.environ.get(STRATEGY) != "Enforce":
        print(
            f"{name}: {ENABLE} is true, but {STRATEGY} is not Enforce: without files of its enclave "
            "this node runs unsecured",
            file=sys.stderr,
        )
    try:
        yield
    except RuntimeError as error:  # all errors of rcl
        if not is_asked_for():
            raise
        raise ConfigurationError(_line(str(error))) from error


def _line(text: str) -> str:
    """One line for an error of ROS security: what is missing, and what it must be."""
    if "security libraries" in text:
        return (
            f"{ENABLE} is true, but this build of Fast DDS has no security libraries, as none from "
            f"PyPI has: use those of a ROS installation, or unset {ENABLE}"
        )
    store = os.environ.get(KEYSTORE)
    return (
        f"{ENABLE} is true, but ROS reports: {text.splitlines()[0]}; {KEYSTORE} is "
        f"{repr(store) if store else 'not set'}, must be a keystore with an enclave of this node"
    )
