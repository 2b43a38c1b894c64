"""How large modelling errors a robot tolerates: figures, a table in Markdown, a chart and a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import check_free, make_folder, write_json, write_text, write_with
from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS, LIMIT
from contact_id_controller.report.templating import render
from contact_id_controller.runs.computer import describe_machine, installed_versions
from contact_id_controller.runs.perturbed_runs import (
    NOMINAL,
    Borne,
    Case,
    Outcome,
    bisect_all,
    chosen,
    run_all,
    seeds_of,
)
from contact_id_controller.simulation.perturbations import TABLE

FIGURES, TABLES = "robustness.json", "robustness.md"
CHART, PAGE = "robustness.png", "robustness.html"
HEAD = ("what", "size", "outcome", "joint error, mrad", "of nominal", "speed, m/s", "what limits")
BORNE_HEAD = ("what", "unit", "borne", "fails at", "when, s", "what limits")
ROW_IN, WIDTH_IN = 0.24, 9.0

Rows = list[tuple[str, ...]]


def judge(
    nominal: Case,
    only: Sequence[str],
    folder: Path,
    *,
    seeds: int = 1,
    jobs: int = 1,
    bisected: bool = False,
    command: str = "",
    report: Callable[[str], None] = print,
) -> bool:
    """Do the runs, and write figures, tables and page into a folder; return whether the run without an error fails.

    Args:
        nominal: the run without an error.
        only: rows of the table, see ``perturbed_runs.chosen``.
        seeds: number of runs for each size of a random perturbation.
        jobs: number of processes.
        bisected: find the tolerated size of each error, instead of using the table's sizes.
        report: called with a line for each run as it ends.

    Raises:
        ConfigurationError: rows that do not exist, or begin after the runs.
        RecordError: the folder cannot be written to.
    """
    sizes = chosen(only)
    for name, _ in sizes:
        if nominal.seconds is not None and nominal.seconds <= (at_s := TABLE[name].at_s):
            raise ConfigurationError(
                f"runs of {nominal.seconds:g} s end before {name!r} begins: they must be longer than {at_s:g} s"
            )
    check_free(*(make_folder(folder) / name for name in (FIGURES, TABLES, CHART, PAGE)))
    cases = [
        nominal._replace(name=name, size=size, seed=seed)
        for name, size in sizes
        for seed in seeds_of(name, seeds)
    ]
    outcomes: list[Outcome] = []
    for outcome in run_all([nominal, *([] if bisected else cases)], jobs):
        outcomes.append(outcome)
        report(in_line(outcome))
    found: list[Borne] = []
    if bisected:
        for borne in bisect_all(_farthest(cases), jobs):
            found.append(borne)
            report(" | ".join(_borne_row(borne)))
    order = {case: number for number, case in enumerate([nominal, *cases, *_farthest(cases)])}
    outcomes.sort(key=lambda each: order[each.case])
    found.sort(key=lambda each: order[each.case])
    _write(folder, outcomes, found, command)
    return outcomes[0].failed_s is not None


def _farthest(cases: Sequence[Case]) -> list[Case]:
    """Of each row and seed the largest sizes, from which bisection starts."""
    rows = {(case.name, case.seed): case for case in cases}
    return [
        case._replace(size=size) for (name, _), case in rows.items() for size in TABLE[name].far
    ]


def in_line(outcome: Outcome) -> str:
    """An outcome as a line for a terminal."""
    case = outcome.case
    which = f"{case.name} {case.size:g}" if case.name else "nominal"
    seed = f", seed {case.seed}" if case.seed else ""
    more = f"; {outcome.limit}" if outcome.limit else ""
    return (
        f"{which}{seed}: {_verdict(outcome)}, joint error {1e3 * outcome.joint_error_rad:.1f} mrad, "
        f"{outcome.speed_m_s:.2f} m/s{more}"
    )


def _verdict(outcome: Outcome) -> str:
    if outcome.failed_s is None:
        return "stands"
    why = f" ({outcome.why})" if outcome.why else ""
    return f"falls at {outcome.failed_s:.2f} s{why}"


def outcome_rows(outcomes: Sequence[Outcome]) -> Rows:
    """Rows of a table of outcomes, the nominal one first; of several seeds the worst is shown."""
    groups: dict[tuple[str, float], list[Outcome]] = {}
    for each in outcomes:
        groups.setdefault((each.case.name, each.case.size), []).append(each)
    nominal = outcomes[0].joint_error_rad
    rows: Rows = []
    for (name, size), same in groups.items():
        fallen = [each for each in same if each.failed_s is not None]
        worst = max(same, key=lambda each: each.joint_error_rad)
        if fallen:
            worst = min(fallen, key=lambda each: each.failed_s or 0.0)
        outcome = _verdict(worst)
        if len(same) > 1 and fallen:
            outcome = (
                f"{len(fallen)} of {len(same)} fall, the first {outcome.removeprefix('falls ')}"
            )
        rows.append(
            (
                name or "nothing",
                f"{size:g} {TABLE[name].unit}" if name else "",
                outcome,
                f"{1e3 * worst.joint_error_rad:.1f}",
                f"{worst.joint_error_rad / nominal:.1f}" if nominal > 0.0 else "",
                f"{worst.speed_m_s:.2f}",
                worst.limit,
            )
        )
    return rows


def _borne_row(borne: Borne) -> tuple[str, ...]:
    """A bisection as a row below ``BORNE_HEAD``."""
    row, outcome = TABLE[borne.case.name], borne.outcome
    fails = "" if borne.failed is None else f"{borne.failed:.3g}"
    when = "" if outcome.failed_s is None else f"{outcome.failed_s:.2f}"
    least = f"at least {borne.borne:g}" if borne.failed is None else f"{borne.borne:.3g}"
    if math.isnan(borne.borne):
        least, fails = outcome.why, ""
    return row.name, row.unit, least, fails, when, outcome.limit


def in_markdown(head: Sequence[str], rows: Rows) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _write(folder: Path, outcomes: list[Outcome], found: list[Borne], command: str) -> None:
    """Write figures, table, chart and page of all runs, the nominal one first."""
    case = outcomes[0].case
    robot, state = Path(case.config).stem, f"estimated, sensors {case.sensors}"
    state = state if case.sensors else "true"
    rows, borne = outcome_rows(outcomes), [_borne_row(each) for each in found]
    machine = describe_machine()
    content = {
        "machine": machine,
        "versions": installed_versions(),
        "command": command,
        "robot": robot,
        "state": state,
        "outcomes": [_figures(each) for each in outcomes],
        "borne": [
            {
                "name": each.case.name,
                "seed": each.case.seed,
                "borne": each.borne,
                "failed": each.failed,
                "at_failure": _figures(each.outcome),
            }
            for each in found
        ],
    }
    write_json(folder / FIGURES, content)
    text = f"`{command}`, state {state}\n\n" + in_markdown(HEAD, rows)
    if borne:
        text += "\n" + in_markdown(BORNE_HEAD, borne)
    write_text(folder / TABLES, text)
    if len(outcomes) > 1:
        write_with(folder / CHART, lambda file: file.write(_chart(outcomes)))
    page = render(
        "robustness.html",
        kind="walk",
        title=f"{robot}: what it bears",
        state=state,
        head=HEAD,
        rows=rows,
        borne_head=BORNE_HEAD,
        borne=borne,
        meanings={name: TABLE[name].meaning for name in _names(outcomes, found)},
        chart=CHART if len(outcomes) > 1 else "",
        command=command,
        origin=f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, {machine['architecture']}",
        figures=FIGURES,
    )
    write_text(folder / PAGE, page)


def _names(outcomes: Sequence[Outcome], found: Sequence[Borne]) -> list[str]:
    named = [each.case.name for each in outcomes] + [each.case.name for each in found]
    return [name for name in dict.fromkeys(named) if name != NOMINAL]


def _figures(outcome: Outcome) -> dict[str, Any]:
    """An outcome for the file of figures."""
    case = outcome.case
    return {
        "name": case.name,
        "size": case.size,
        "seed": case.seed,
        "failed_s": outcome.failed_s,
        "why": outcome.why,
        "joint_error_rad": outcome.joint_error_rad,
        "speed_m_s": outcome.speed_m_s,
        "limits": dict(outcome.limits),
    }


def _chart(outcomes: Sequence[Outcome]) -> bytes:
    """Bar chart of each run's joint error relative to the nominal run; red: it fell."""
    nominal, rest = outcomes[0].joint_error_rad, outcomes[1:]

    def fill(axes: Any) -> None:
        axis, places = axes[0, 0], range(len(rest))
        values = [each.joint_error_rad / nominal if nominal > 0.0 else 0.0 for each in rest]
        colours = [COLOURS[0] if each.failed_s is None else LIMIT for each in rest]
        axis.barh(places, values, color=colours, height=0.7)
        axis.set_yticks(places, [f"{each.case.name} {each.case.size:g}" for each in rest])
        axis.invert_yaxis()
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_xlim(0.0, min(20.0, max([2.0, *values])))
        axis.set_xlabel("joint error over that of the run without an error; red: it fell")

    return draw(WIDTH_IN, 1.0 + ROW_IN * len(rest), 1, 1, fill)
