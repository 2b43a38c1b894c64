"""Confines ROS to this machine without shared memory, in which a killed process could block all others.

With ``ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST`` rmw_fastrtps gives each process shared memory whatever the environment
sets. A process killed in the wrong moment keeps the lock of its queues: senders to the same reader then block for
seconds (docs/safety.md). The profile beside this file confines discovery in the same way, to 127.0.0.1, by UDP alone;
its processes discover, and are discovered by, those with the range LOCALHOST, and those with SUBNET.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILES = "FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE"
SET = RANGE, PROFILES[0]
"""Environment variables that are set here."""
PEERS = "ROS_STATIC_PEERS"
MIDDLEWARE = "RMW_IMPLEMENTATION"
FAST_DDS_2 = os.environ.get("ROS_DISTRO") in ("humble", "iron", "jazzy")
"""Whether Fast DDS is of version 2, whose profiles name the period of heartbeats otherwise."""

PROFILE = Path(__file__).with_name("loopback_fast_dds_2.xml" if FAST_DDS_2 else "loopback.xml")
SOON = Path(__file__).with_name("fastdds.xml")


def confine(environment: MutableMapping[str, str] = os.environ) -> None:
    """Use our profile where the range is LOCALHOST and the user has no profile of their own.

    Call it before the first participant of the process is made.
    """
    theirs = [name for name in (*PROFILES, PEERS) if environment.get(name)]
    fast = environment.get(MIDDLEWARE, "rmw_fastrtps").startswith("rmw_fastrtps")
    if environment.get(RANGE) == "LOCALHOST" and fast and not theirs:
        environment[RANGE] = "SYSTEM_DEFAULT"  # rmw_fastrtps then leaves all to the profile
        environment[PROFILES[0]] = str(PROFILE)


def send_again_soon(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let writers ask every 20 ms, not every 3 s, for lost messages, unless the user has a profile.

    A message that a flood pushes out of a socket is sent again only then: also a call of the emergency stop.
    """
    if not FAST_DDS_2 and not any(environment.get(name) for name in PROFILES):
        environment[PROFILES[0]] = str(SOON)
