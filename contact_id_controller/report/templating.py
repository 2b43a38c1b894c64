"""Pages from the templates beside this module."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from contact_id_controller.report.blocks import Picture, Text, shown
from contact_id_controller.report.tables import format_noise, format_value, in_words

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> str:
    """The page that a template makes of these values; in HTML, text is escaped."""
    return _environment().get_template(template).render(values)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "base64": lambda data: base64.b64encode(data).decode(),
        "code": _code,
        "figure": format_value,
        "noise": format_noise,
        "in_words": in_words,
        "shown": shown,
        "cell": lambda cell: shown(cell).replace("|", "\\|"),
    }
    environment.tests |= {
        "numeric": lambda cell: (
            cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))
        ),
        "paragraph": lambda block: isinstance(block, Text),
        "picture": lambda block: isinstance(block, Picture),
    }
    return environment


def _code(text: Any) -> Markup:
    """Text with `code` between backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(str(text)))))
