"""Effort limits in a robot description, for callers that must not load Pinocchio themselves.

    python -m contact_id_controller.settings.urdf_efforts URDF JOINT...

prints them as a JSON list, 1e999 where none is stated; or one line about the error, with exit code 1.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from contact_id_controller.exceptions import ContactIdError, UnknownJointError, choices
from contact_id_controller.settings.robot_description import read_description, refuse_unreadable

NONE = "1e999"
"""Infinity, as a number that every reader of JSON takes."""


def urdf_efforts(urdf: str, joints: Sequence[str]) -> list[float]:
    """Effort limit of each joint, N·m or N; infinite where the description states none.

    Raises:
        RobotDescriptionError: the file cannot be read, or is no robot description.
        UnknownJointError: it has no such joint.
    """
    description = read_description(urdf)
    refuse_unreadable(description)
    limits: dict[Any, Any] = {
        joint.get("name"): joint.find("limit") for joint in description.findall("joint")
    }
    efforts = []
    for name in joints:
        if name not in limits:
            raise UnknownJointError(f"the URDF has no joint {name!r}; joints are {choices(limits)}")
        limit = limits[name]
        stated = None if limit is None else limit.get("effort")
        efforts.append(math.inf if stated is None else abs(float(stated)))
    return efforts


def main(words: Sequence[str]) -> int:
    """Print the effort limits of joints ``words[1:]`` of the description ``words[0]``; return the exit code."""
    try:
        efforts = urdf_efforts(words[0], words[1:])
    except ContactIdError as error:
        print(error)
        return 1
    print("[" + ", ".join(NONE if math.isinf(each) else json.dumps(each) for each in efforts) + "]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
