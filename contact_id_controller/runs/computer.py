"""The computer and software versions of a measurement."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "contact_id_controller",
    "numpy",
    "scipy",
    "numba",
    "pin",
    "quadprog",
    "mujoco",
    "ros-rclpy",
    "ros-rmw-fastrtps-cpp",
    "example-robot-data",
)


def describe_machine() -> dict[str, str | int]:
    """Processor, usable cores, operating system."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
    }


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages in `PACKAGES` that are installed."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
