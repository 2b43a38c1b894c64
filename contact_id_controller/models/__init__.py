"""Contact models, one file each, behind ``solve``; each has a row in the registry."""

from contact_id_controller.models.contact_model import ContactModel, Normal, Option, Tangential
from contact_id_controller.models.registry import (
    ROWS,
    available,
    check,
    contact_models,
    options,
    register,
    row_of,
    solve,
)

__all__ = [
    "ROWS",
    "ContactModel",
    "Normal",
    "Option",
    "Tangential",
    "available",
    "check",
    "contact_models",
    "options",
    "register",
    "row_of",
    "solve",
]
