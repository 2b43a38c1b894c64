"""The report of a run: summary.json, plots, animation and a page that ties them together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from contact_id_controller.geometry import SphereFoot
from contact_id_controller.report.animation import save_animation
from contact_id_controller.report.plots import save_plots
from contact_id_controller.report.summary import METRICS, measure
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.machine import describe_machine, installed_versions
from contact_id_controller.runs.record import Walk
from contact_id_controller.runs.setup import RunSetup

SUMMARY, PAGE, INDEX, ANIMATION = "summary.json", "report.html", "index.html", "animation.gif"

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; margin: 2rem auto; max-width: 62rem;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .7rem;
       border-bottom: 1px solid #e9ecef; vertical-align: top; }
th { font-weight: 600; } td.number { text-align: right; font-variant-numeric: tabular-nums;
       white-space: nowrap; }
img { max-width: 100%; } figure { margin: 1.2rem 0 2rem; } figcaption { color: #495057; }
code { background: #f1f3f5; padding: .1rem .3rem; border-radius: 3px; overflow-wrap: anywhere; }
td code { white-space: nowrap; }
.good { color: #2b8a3e; } .bad { color: #c92a2a; } .small { color: #868e96; font-size: .9em; }
.wide { overflow-x: auto; }
.runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
"""


@dataclass(frozen=True)
class RunReport:
    """A finished run: where its report is, and its figures."""

    title: str
    folder: Path
    summary: dict[str, Any]


def write_report(walk: Walk, setup: RunSetup, folder: Path, wall_time_s: float) -> RunReport:
    """Write everything about one run into ``folder``, where its parameters and logs are."""
    robot = RobotModel.from_urdf(
        setup.settings.urdf, setup.settings.floating_base, list(setup.settings.joints) or None
    )
    summary = summarise(walk, setup, robot, folder, wall_time_s)
    write_json(folder / SUMMARY, summary)
    captions = save_plots(
        walk, folder, weight_n=robot.weight, normal=setup.normal, waypoints=setup.waypoints
    )
    radii = setup.settings.spread("contact_radii_m", len(walk.foot_names))
    feet = [SphereFoot(frame, radius) for frame, radius in zip(walk.foot_names, radii)]
    caption = save_animation(
        walk,
        folder / ANIMATION,
        urdf=setup.settings.urdf,
        robot=robot,
        feet=feet,
        normal=setup.normal,
    )
    page = _page(setup.title, _run_body(setup.title, summary, {ANIMATION: caption, **captions}))
    (folder / PAGE).write_text(page, encoding="utf-8")
    return RunReport(setup.title, folder, summary)


def summarise(
    walk: Walk, setup: RunSetup, robot: RobotModel, folder: Path, wall_time_s: float
) -> dict[str, Any]:
    """What goes into summary.json: the run, its figures, and what they were measured with."""
    settings = setup.settings
    statuses = {str(name): int((walk.status == name).sum()) for name in sorted(set(walk.status))}
    return {
        "robot": setup.robot,
        "walks": setup.motion is None,
        "friction": settings.friction,
        "solver": settings.solver,
        "mu": setup.friction_coefficient,
        "mode": setup.mode,
        "contact_time_constant_s": settings.contact_time_constant_s,
        "period_s": settings.period_s,
        "weight_n": robot.weight,
        **measure(walk, robot.weight, setup.normal),
        "status_counts": statuses,
        "refused_inputs": walk.refused_inputs,
        "wall_time_s": wall_time_s,
        "command": setup.command(folder),
        "machine": describe_machine(),
        "versions": installed_versions(),
        "units": {name: metric.unit for name, metric in METRICS.items() if metric.unit},
        "meaning": {name: metric.meaning for name, metric in METRICS.items()},
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON that every reader accepts: infinities as text."""
    text = json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_index(runs: Sequence[RunReport], folder: Path) -> None:
    """Tie several runs together: index.html, and a summary.json with the first run's figures."""
    write_json(
        folder / SUMMARY,
        {
            **runs[0].summary,
            "runs": {run.folder.name: run.summary for run in runs},
        },
    )
    (folder / INDEX).write_text(_page("Walks", _index_body(runs, folder)), encoding="utf-8")


def format_value(value: Any, unit: str) -> str:
    """A figure for people: three digits, times in microseconds, errors in percent."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if unit == "1":
        return f"{100.0 * value:.2f} %"
    if unit == "s" and 0.0 < abs(value) < 0.1:
        return f"{1e6 * value:.0f} µs"
    return f"{value:.4g} {unit}".strip()


def _run_body(title: str, summary: dict[str, Any], captions: dict[str, str]) -> str:
    rows = "".join(
        f"<tr><td><code>{name}</code></td>"
        f"<td class=number>{escape(format_value(summary[name], metric.unit))}</td>"
        f"<td>{escape(metric.meaning)}</td></tr>"
        for name, metric in METRICS.items()
    )
    animation, *plots = (
        f'<figure><img src="{escape(name)}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for name, caption in captions.items()
    )
    return f"""<h1>{escape(title)}: {_verdict(summary)}</h1>
<p>Contact model <code>{escape(summary["friction"])}</code>, solver
<code>{escape(summary["solver"])}</code>, contact time constant
{1e3 * summary["contact_time_constant_s"]:g} ms, mode {escape(summary["mode"])}.
The numbers are in <a href="{SUMMARY}">{SUMMARY}</a>, all parameters in
<a href="parameters.yaml">parameters.yaml</a>, what the nodes said in <a href="log/">log</a>.</p>
{animation}
<table><tr><th>figure</th><th>value</th><th>what it is</th></tr>{rows}</table>
<h2>Plots</h2>{"".join(plots)}
<h2>How it was made</h2><p><code>{escape(summary["command"])}</code></p>
<p class=small>{escape(_origin(summary))}</p>"""


def _index_body(runs: Sequence[RunReport], folder: Path) -> str:
    heads, pictures = "", ""
    for run in runs:
        link = escape(f"{run.folder.relative_to(folder).as_posix()}/{PAGE}")
        image = escape(f"{run.folder.relative_to(folder).as_posix()}/{ANIMATION}")
        heads += f'<th><a href="{link}">{escape(run.title)}</a></th>'
        pictures += (
            f'<figure><a href="{link}"><img src="{image}" alt="{escape(run.title)}"></a>'
            f"<figcaption>{escape(run.title)}: {_verdict(run.summary)}</figcaption>"
            "</figure>"
        )
    rows = "".join(
        f'<tr title="{escape(metric.meaning)}"><td>{escape(name)}</td>'
        + "".join(
            f"<td class=number>{escape(format_value(run.summary[name], metric.unit))}</td>"
            for run in runs
        )
        + "</tr>"
        for name, metric in METRICS.items()
    )
    return f"""<h1>Walks</h1>
<p>Three processes, a controller, a gait planner and a simulated robot, talk over ROS 2 topics.
Each walk has a page of its own.</p>
<div class=runs>{pictures}</div>
<div class=wide><table><tr><th>figure</th>{heads}</tr>{rows}</table></div>
<p class=small>{escape(_origin(runs[0].summary))}</p>"""


def _verdict(summary: dict[str, Any]) -> str:
    if summary["fell"]:
        return '<span class="bad">fell</span>'
    done = "walked" if summary["walks"] else "moved"
    return f'<span class="good">{done} {summary["duration_s"]:g} s</span>'


def _origin(summary: dict[str, Any]) -> str:
    machine, versions = summary["machine"], summary["versions"]
    parts = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {parts}. "
        f"The walk took {summary['wall_time_s']:.1f} s of wall time."
    )


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>{body}</body></html>\n"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not (-float("inf") < value < float("inf")):
        return str(value)
    return value
