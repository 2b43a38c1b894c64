"""Sections as one HTML file that needs no other, and as a Markdown summary."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from contact_id_controller.report.blocks import (
    NOT_MEASURED,
    NOT_REPRODUCED,
    VERDICTS,
    WRONG,
    Claim,
    Picture,
    Section,
    Table,
    Text,
    shown,
)
from contact_id_controller.report.report import STYLE
from contact_id_controller.runs.machine import describe_machine, installed_versions
from contact_id_controller.runs.store import RunResult, code_fingerprint

PAGE, SUMMARY, FIGURES = "report.html", "report.md", "summary.json"
TITLE = "The papers' experiments, done again"
MORE_STYLE = """
td.verdict { white-space: nowrap; font-weight: 600; } details { margin: .4rem 0; }
td { font-variant-numeric: tabular-nums; } td.command code { white-space: nowrap; font-size: .85em; }
caption { text-align: left; padding: .6rem 0; color: #495057; }
pre { overflow-x: auto; font-size: .85em; } body { max-width: 78rem; }
"""
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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(html_page(sections, failed, origin), encoding="utf-8")
    (folder / SUMMARY).write_text(markdown(sections, failed, origin), encoding="utf-8")
    content = {
        "claims": [vars(claim) for section in sections.values() for claim in section.claims],
        "failed": [result.description.title for result in failed],
        "origin": origin,
    }
    (folder / FIGURES).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
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


# HTML


def html_page(sections: dict[str, Section], failed: Sequence[RunResult], origin: str) -> str:
    """The report; every picture is inside."""
    claims = [claim for section in sections.values() for claim in section.claims]
    links = "".join(
        f'<li><a href="#{escape(name)}">{escape(section.title)}</a></li>'
        for name, section in sections.items()
    )
    bodies = "".join(
        f'<h2 id="{escape(name)}">{escape(section.title)}</h2>'
        + "".join(_html_block(block) for block in section.blocks)
        + (_html_claims(section.claims) if section.claims else "")
        for name, section in sections.items()
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{TITLE}</title>'
        f"<style>{STYLE}{MORE_STYLE}</style></head>\n<body><h1>{TITLE}</h1>"
        f"<p>{_counts(claims)} Each number stands beside its command, which measures it again "
        f"in a new folder (<code>--output DIR</code>); where its result is, it is shown.</p>"
        f"<ul>{links}</ul>{_html_failed(failed)}"
        f"<h2>What could not be reproduced, or is wrong</h2>{_html_bad(claims)}"
        f"{bodies}<p class=small>{escape(origin)}</p></body></html>\n"
    )


def _html_block(block) -> str:
    if isinstance(block, Text):
        return f"<p>{_inline(block.text)}</p>"
    if isinstance(block, Picture):
        data = base64.b64encode(block.png).decode()
        return (
            f'<figure><img src="data:image/png;base64,{data}" alt="{escape(block.caption)}">'
            f"<figcaption>{_inline(block.caption)}</figcaption></figure>"
        )
    head = "".join(f"<th>{_inline(name)}</th>" for name in block.head)
    rows = ""
    for k, row in enumerate(block.rows):
        cells = "".join(map(_html_cell, row))
        if block.commands:
            cells += f"<td class=command><code>{escape(block.commands[k])}</code></td>"
        rows += f"<tr>{cells}</tr>"
    head += "<th>command</th>" if block.commands else ""
    return (
        f"<div class=wide><table><caption>{_inline(block.caption)}</caption><tr>{head}</tr>"
        f"{rows}</table></div>"
    )


def _html_cell(cell) -> str:
    kind = " class=number" if _is_number(cell) else ""
    return f"<td{kind}>{_inline(shown(cell))}</td>"


def _html_claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f"<tr><td>{_inline(claim.source)}</td><td>{_inline(claim.text)}</td>"
        f'<td class="verdict {CLASSES.get(claim.verdict, "good")}">{escape(claim.verdict)}</td>'
        f"<td>{_inline(claim.evidence)}</td><td class=command><code>{escape(claim.command)}</code>"
        f"</td></tr>"
        for claim in claims
    )
    return (
        "<div class=wide><table><caption>What the papers say</caption><tr><th>source</th>"
        f"<th>claim</th><th>verdict</th><th>evidence</th><th>command</th></tr>{rows}"
        "</table></div>"
    )


def _html_bad(claims: Sequence[Claim]) -> str:
    bad = [claim for claim in claims if claim.verdict in (WRONG, NOT_REPRODUCED)]
    return _html_claims(bad) if bad else "<p>Nothing, as far as these runs go.</p>"


def _html_failed(failed: Sequence[RunResult]) -> str:
    if not failed:
        return ""
    entries = "".join(
        f"<details><summary>{escape(result.description.title)}: <code>"
        f"{escape(result.description.command())}</code></summary>"
        f"<pre>{escape(result.error)}</pre></details>"
        for result in failed
    )
    return f'<h2 class="bad">Runs that failed</h2>{entries}'


def _inline(text: str) -> str:
    """Text with `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(str(text)))


# Markdown


def markdown(sections: dict[str, Section], failed: Sequence[RunResult], origin: str) -> str:
    """The summary: claims and tables, without pictures."""
    claims = [claim for section in sections.values() for claim in section.claims]
    parts = [f"# {TITLE}\n", _counts(claims), ""]
    if failed:
        parts += [
            "## Runs that failed\n",
            *(
                f"- {result.description.title}: `{result.description.command()}`: "
                f"{result.error.strip().splitlines()[-1]}"
                for result in failed
            ),
            "",
        ]
    bad = [claim for claim in claims if claim.verdict in (WRONG, NOT_REPRODUCED)]
    if bad:
        parts += ["## What could not be reproduced, or is wrong\n", *_markdown_claims(bad), ""]
    for section in sections.values():
        parts.append(f"## {section.title}\n")
        for block in section.blocks:
            if isinstance(block, Text):
                parts += [block.text, ""]
            elif isinstance(block, Table):
                parts += [block.caption, "", *_markdown_table(block), ""]
        if section.claims:
            parts += [*_markdown_claims(section.claims), ""]
    return "\n".join([*parts, origin]) + "\n"


def _markdown_table(table: Table) -> list[str]:
    head = [*table.head, *(["command"] if table.commands else [])]
    rows = [[shown(cell) for cell in row] for row in table.rows]
    for row, command in zip(rows, table.commands):
        row.append(f"`{command}`")
    return [_row(head), "|" + "---|" * len(head), *map(_row, rows)]


def _markdown_claims(claims: Sequence[Claim]) -> list[str]:
    return [
        _row(("source", "claim", "verdict", "evidence", "command")),
        "|" + "---|" * 5,
        *(_row((c.source, c.text, c.verdict, c.evidence, f"`{c.command}`")) for c in claims),
    ]


def _row(cells) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _counts(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"Of {len(claims)} claims: {', '.join(parts)}." if claims else ""


def _is_number(cell) -> bool:
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))
