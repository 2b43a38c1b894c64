"""Contact models, one file each, behind ``solve``."""

from .registry import available, check, options, solve

__all__ = ["available", "check", "options", "solve"]
