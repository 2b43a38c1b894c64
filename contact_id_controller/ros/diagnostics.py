"""Text and figures as diagnostic_msgs/DiagnosticArray."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue


def diagnostic_array(
    stamp: Any, name: str, level: bytes, summary: str, figures: dict[str, str]
) -> DiagnosticArray:
    """The message for /diagnostics: one status with `figures` as its values."""
    values = [KeyValue(key=key, value=value) for key, value in figures.items()]
    status = DiagnosticStatus(level=level, name=name, message=summary, values=values)
    message = DiagnosticArray(status=[status])
    message.header.stamp = stamp
    return message
