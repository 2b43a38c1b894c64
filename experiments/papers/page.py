"""Sections as one HTML file that needs no other, and as a Markdown summary."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from contact_id_controller.files import make_folder, write_json, write_text
from contact_id_controller.report import templating
from contact_id_controller.runs.computer import describe_machine, installed_versions
from experiments.papers.blocks import (
    NOT_MEASURED,
    NOT_REPRODUCED,
    VERDICTS,
    WRONG,
    Claim,
    Picture,
    Section,
    Text,
    shown,
)
from experiments.papers.store import RunResult, code_fingerprint

TEMPLATES = Path(__file__).with_name("templates")
PAGE, SUMMARY, FIGURES = "report.html", "report.md", "summary.json"
TITLE = "The papers' experiments, done again"
CLASSES = {WRONG: "bad", NOT_REPRODUCED: "bad", NOT_MEASURED: "small"}


def write_report(experiments, results: Sequence[RunResult], folder: Path) -> Path:
    """Write report, summary and figures of all results into ``folder``; the report's path."""
    good = [result for result in results if not result.error]
    failed = [result for result in results if result.error]
    sections = {}
    for experiment in experiments:
        own = [result for result in good if result.description.experiment == experiment.name]
        lost = sum(result.description.experiment == experiment.name for result in failed)
        if own:
            sections[experiment.name] = _complete(experiment.report(own), len(own), lost)
    origin = _origin(good)
    make_folder(folder)
    write_text(folder / PAGE, html_page(sections, failed, origin))
    write_text(folder / SUMMARY, markdown(sections, failed, origin))
    content = {
        "claims": [vars(claim) for section in sections.values() for claim in section.claims],
        "failed": [result.description.title for result in failed],
        "origin": origin,
    }
    write_json(folder / FIGURES, content)
    return folder / PAGE


def _complete(section: Section, done: int, lost: int) -> Section:
    """The section, which says so where runs are missing: they might have changed its verdicts."""
    if not lost:
        return section
    note = Text(
        f"{lost} of {done + lost} runs of this experiment failed; tables and verdicts know "
        "the others alone."
    )
    return dataclasses.replace(section, blocks=[note, *section.blocks])


def _origin(results: Sequence[RunResult]) -> str:
    machine, versions = describe_machine(), installed_versions()
    processors = sorted({result.machine for result in results}) or [machine["processor"]]
    parts = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{len(results)} runs, {sum(r.wall_s for r in results):.0f} s of computing on "
        f"{', '.join(processors)}; report by {machine['cores']} cores, {machine['system']}; "
        f"{parts}; sources {code_fingerprint()}."
    )


def html_page(sections: dict[str, Section], failed: Sequence[RunResult], origin: str) -> str:
    """The report; every picture is inside."""
    return _render("experiments.html", _values(sections, failed, origin))


def markdown(sections: dict[str, Section], failed: Sequence[RunResult], origin: str) -> str:
    """The summary: claims and tables, without pictures."""
    return _render("experiments.md", _values(sections, failed, origin))


def _values(sections: dict[str, Section], failed, origin: str) -> dict[str, Any]:
    claims = [claim for section in sections.values() for claim in section.claims]
    return {
        "kind": "experiments",
        "title": TITLE,
        "counts": _counts(claims),
        "sections": sections,
        "failed": failed,
        "bad": [claim for claim in claims if claim.verdict in (WRONG, NOT_REPRODUCED)],
        "classes": CLASSES,
        "origin": origin,
    }


def _counts(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"Of {len(claims)} claims: {', '.join(parts)}." if claims else ""


def _render(template: str, values: dict[str, Any]) -> str:
    return _environment().get_template(template).render(values)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    made = templating.environment(TEMPLATES, templating.TEMPLATES)
    made.filters |= {
        "base64": lambda data: base64.b64encode(data).decode(),
        "code": _code,
        "shown": shown,
        "cell": lambda cell: shown(cell).replace("|", "\\|"),
    }
    made.tests |= {
        "numeric": lambda cell: (
            cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))
        ),
        "paragraph": lambda block: isinstance(block, Text),
        "picture": lambda block: isinstance(block, Picture),
    }
    return made


def _code(text: Any) -> Markup:
    """Text with `code` between backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(str(text)))))
