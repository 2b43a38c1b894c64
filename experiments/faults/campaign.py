"""The campaign: a simulated robot walks over real topics, and things fail.

Processes of the simulated robot, the planner, the controller and the command watchdog, and a relay
between robot and controller (``FaultRelay``). After each fault: was the reaction the stated one,
in time; did the robot end as stated; did anything that is not finite or beyond the limits reach it;
did a process die that was not killed?
"""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from contact_id_controller.exceptions import ConfigurationError, RunError, choices
from contact_id_controller.files import write_text
from contact_id_controller.runs.computer import describe_machine
from contact_id_controller.settings.command_interfaces import DEFAULT, INTERFACES
from experiments.faults import hangs, inputs, peers, processes, states, web
from experiments.faults.nodes import REAL_TIME_FACTOR
from experiments.faults.row import ALLOWANCE_S, Fault, Observed
from experiments.faults.world import FaultWorld

FAULTS: tuple[Fault, ...] = (
    states.FAULTS + inputs.FAULTS + peers.FAULTS + web.FAULTS + processes.FAULTS + hangs.FAULTS
)


def marks(interface: str) -> tuple[str, str]:
    """Lines between which a document holds the table of a command interface."""
    named = f" {interface}" if INTERFACES[interface].bridges else ""
    return f"<!-- faults{named}: begin -->", f"<!-- faults{named}: end -->"


BEGIN, END = marks(DEFAULT)


def faults_of(interface: str) -> tuple[Fault, ...]:
    """The faults with what is stated of them for a command interface."""
    if not INTERFACES[interface].bridges:
        return FAULTS
    otherwise = states.BRIDGED | processes.BRIDGED
    return tuple(fault._replace(**otherwise.get(fault.name, {})) for fault in FAULTS)


WIDTH = 120

HEAD = (
    "| fault | reaction | stated within | measured | afterwards |",
    "|---|---|---|---|---|",
)
"""Of the table, Markdown."""


class Row(NamedTuple):
    """A fault and what came of it; ``wrong`` is empty when all was as stated.

    forbidden: of these, what no busy machine explains.
    before: what was wrong at the attempt before this one.
    """

    fault: Fault
    within_s: float | None
    observed: Observed
    wrong: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def run_campaign(
    output: Path,
    *,
    only: str = "",
    real_time_factor: float = REAL_TIME_FACTOR,
    document=None,
    interface: str = DEFAULT,
    tell: Callable[[str], None] = print,
    is_interrupted: Callable[[], bool] = lambda: False,
) -> list[Row]:
    """Do the faults whose name contains ``only`` (upper or lower case), and tell the table, each row as it is finished.

    Args:
        output: folder for parameters and logs.
        document: in whose table between its ``marks`` the rows of these faults are replaced;
            None: none.
        interface: ``command_interface`` of all nodes.
        tell: takes the lines.
        is_interrupted: whether this process is to end: the rows so far are kept.

    Raises:
        ConfigurationError: no such fault, or a document without a place for the table.
        RunError: the robot does not even walk at the beginning.
        KeyboardInterrupt: interrupted, after all has been printed and written.
    """
    chosen = [fault for fault in faults_of(interface) if only.lower() in fault.name.lower()]
    if not chosen:
        words = only.lower().split()
        near = [each.name for each in FAULTS if any(word in each.name.lower() for word in words)]
        raise ConfigurationError(
            f"--only {only!r} is part of no fault's name; nearest: {choices(near) or 'none'}"
        )
    text = document.read_text(encoding="utf-8") if document else ""
    begin, end = marks(interface)
    if document and not (text.count(begin) == text.count(end) == 1):
        raise ConfigurationError(f"{document} lacks the lines {begin!r} and {end!r}")
    begun_s, rows = time.monotonic(), []

    def finished(row: Row) -> None:
        if not rows:
            tell("\n".join(HEAD))
        rows.append(row)
        tell(_line(row))

    with FaultWorld(
        output,
        real_time_factor=real_time_factor,
        interface=interface,
        is_interrupted=is_interrupted,
    ) as world:
        try:
            campaign(world, chosen, finished)
        finally:
            if rows:
                whole = len(rows) == len(faults_of(interface))
                options = "" if whole else f"--only {shlex.quote(only)} "
                command = _command(options, written=document is not None)
                summary = summarise(
                    world, command, len(rows), len(chosen), time.monotonic() - begun_s
                )
                if document:
                    head, _, rest = text.partition(begin)
                    old, _, rest = rest.partition(end)
                    page = _replaced("" if whole else old, command, summary, rows)
                    write_text(document, f"{head}{begin}\n{page}{end}{rest}")
                tell(f"\n{summary}")
    return rows


def campaign(world: FaultWorld, faults: Sequence[Fault], finished: Callable[[Row], None]) -> None:
    """Let the robot walk, and do the faults one after the other.

    What was late or ended otherwise is done once more, because a busy machine can stop any process
    for longer than these times; the row tells.

    Args:
        finished: takes each row when it is known.

    Raises:
        RunError: the robot does not walk, at the beginning or between two faults.
    """
    world.begin()
    for fault in faults:
        print(f"  {fault.name} ...", file=sys.stderr, flush=True)
        row = _row(world, fault)
        if row.wrong and not row.forbidden:
            world.begin()
            row = _row(world, fault)._replace(before=row.wrong)
        finished(row)
        if not world.walks_on(0.05):
            world.begin()


def _row(world: FaultWorld, fault: Fault) -> Row:
    violations = len(world.relay.violations)
    within_s = None if fault.within is None else fault.within(world)
    try:
        observed = fault.act(world)
        ended = f"robot {observed.ended}"
    except RunError as error:
        observed, ended = Observed(None, ""), str(error)
    wrong = []
    if within_s is not None:
        if observed.reaction_s is None:
            wrong.append("no reaction")
        elif observed.reaction_s > within_s + ALLOWANCE_S:
            wrong.append(f"reaction after {observed.reaction_s:.3f} s, stated {within_s:g} s")
    if observed.ended != fault.ends:
        wrong.append(f"{ended}, stated: robot {fault.ends}")
    forbidden = [f"reached the robot: {command}" for command in world.relay.violations[violations:]]
    forbidden += [f"process {name} died" for name in world.dead()]
    return Row(fault, within_s, observed, (*wrong, *forbidden), tuple(forbidden))


def _command(options: str, written: bool) -> str:
    """What made the rows: a command that also writes them, or one that prints them only."""
    if not written:
        return f"Run by `{f'python -m experiments faults {options}'.strip()}`"
    return f"Written by `python -m experiments faults {options}--write results/faults.md`"


def summarise(world: FaultWorld, command: str, done: int, chosen: int, took_s: float) -> str:
    """What one must know to read the table."""
    commands, machine = len(world.relay.times_s), describe_machine()
    count = f"{done} faults" if done == chosen else f"only {done} of {chosen} faults"
    text = (
        f"{command} on {date.today()}: {count} "
        f"with `command_interface: {world.interface}` in {took_s:.0f} s, {machine['processor']}, {machine['cores']} cores, load "
        f"{os.getloadavg()[1]:.1f} over the last 5 minutes, its own included. Simulated "
        f"time ran at {world.real_time_factor:g} of real time, so that the cores keep up; the "
        "time-outs by the wall clock were as many times longer: `state_timeout_s` "
        f"{world.state_timeout_s:g} s, the watchdog's `timeout_s` {world.command_timeout_s:g} s. "
        f"All times are by the wall clock, with {ALLOWANCE_S * 1e3:.0f} ms allowed beyond those "
        f"stated. {commands} commands reached the robot, {len(world.relay.violations)} of them not "
        f"finite or beyond the limits; {len(world.dead())} processes ended that were not killed."
    )
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False))


def _replaced(old: str, command: str, summary: str, rows: Sequence[Row]) -> str:
    """A page's paragraphs and table with these rows, and their summary, in place of those before."""
    words, _, body = old.partition("\n".join(HEAD))
    paragraphs = [
        each
        for each in words.strip().split("\n\n")
        if not " ".join(each.split()).startswith(command)
    ]
    lines = {line.split(" | ")[0][2:]: line for line in body.splitlines() if line.startswith("| ")}
    lines |= {row.fault.name: _line(row) for row in rows}
    order = [fault.name for fault in FAULTS if fault.name in lines]
    order += [name for name in lines if name not in order]
    above = "\n\n".join(filter(None, (*paragraphs, summary)))
    return "\n".join((f"{above}\n", *HEAD, *(lines[name] for name in order))) + "\n"


def _line(row: Row) -> str:
    fault, observed = row.fault, row.observed
    stated = "" if row.within_s is None else f"{row.within_s * 1e3:.0f} ms"
    measured = "" if observed.reaction_s is None else f"{observed.reaction_s * 1e3:.0f} ms"
    if fault.within is None:
        measured = ""
    again = f"second attempt; first: {'; '.join(row.before)}" if row.before else ""
    measured = ", ".join(filter(None, (measured, observed.remark, again)))
    wrong = f" **not as stated: {'; '.join(row.wrong)}**" if row.wrong else ""
    return f"| {fault.name} | {fault.reaction} | {stated} | {measured} | {observed.ended}{wrong} |"
