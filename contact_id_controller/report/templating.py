"""Renders pages from the templates beside this module."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from contact_id_controller.report.tables import format_noise, format_value, in_words

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> str:
    """Render a template with these values; in HTML, text is escaped."""
    return _environment().get_template(template).render(values)


def describe_origin(summary: dict[str, Any]) -> str:
    """The machine and the versions of a summary, and the wall time if it has one, as a sentence."""
    machine, wall_s = summary["machine"], summary.get("wall_time_s", math.nan)
    parts = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    return f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {parts}." + (
        f" It took {wall_s:.1f} s of wall time." if wall_s == wall_s else ""
    )


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    made = environment(TEMPLATES)
    made.filters |= {"figure": format_value, "noise": format_noise, "in_words": in_words}
    return made


def environment(*folders: Path) -> jinja2.Environment:
    """The jinja2 environment of templates in these folders."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
