"""This machine alone, and no shared memory: what a killed process held would stop all others.

With ``ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST`` rmw_fastrtps gives each process shared memory whatever
the environment says. Its queues have a lock that a process killed in the wrong moment keeps: whoever
sends to the same reader then stands still for seconds (docs/safety.md). The profile beside this file
confines discovery in the same way, to 127.0.0.1, by UDP alone; it finds and is found by processes with
the range LOCALHOST, and by those with SUBNET.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILES = "FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE"
PEERS = "ROS_STATIC_PEERS"
MIDDLEWARE = "RMW_IMPLEMENTATION"
PROFILE = Path(__file__).with_name("loopback.xml")


def confine(environment: MutableMapping[str, str] = os.environ) -> None:
    """Take the profile where the range is LOCALHOST and nobody has a profile of their own.

    To be called before the first participant of the process is made.
    """
    theirs = [name for name in (*PROFILES, PEERS) if environment.get(name)]
    fast = environment.get(MIDDLEWARE, "rmw_fastrtps").startswith("rmw_fastrtps")
    if environment.get(RANGE) == "LOCALHOST" and fast and not theirs:
        environment[RANGE] = "SYSTEM_DEFAULT"  # rmw_fastrtps then leaves all to the profile
        environment[PROFILES[0]] = str(PROFILE)
