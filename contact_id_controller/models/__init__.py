"""Contact models, one file each, behind ``solve``."""

from contact_id_controller.models.registry import available, check, options, solve

__all__ = ["available", "check", "options", "solve"]
