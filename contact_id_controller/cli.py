"""The command ``contact_id``: its subcommands, their exit codes, and error messages of one line."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import shlex
import sys
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from contact_id_controller import __version__
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.exit_codes import BROKEN_PIPE, BUG, DONE, INTERRUPTED, MEANINGS, REFUSED

COMMANDS_ROOM = "contact_id_controller.commands"
COMMANDS = {
    "demo": "let a simulated robot walk through real ROS 2 topics and write a report",
    "new": "write a parameter file for a robot from its URDF",
    "check": "check the parameter file of a robot before anything moves",
    "compile": "compile what the nodes of a robot need, before anything waits for it",
    "parameters": "show every parameter of every node, its default, range and meaning",
    "policies": "write who may say and hear what, for ROS 2 with security (SROS2)",
    "plan": "plan the motion of a whole robot over stones, with its forces, and let it follow",
    "replay": "compute the torques of a recorded run again, with its settings and with others",
    "report": "draw the report of a run from its folder or its bag, also of one that was interrupted",
    "identify": "find inertias, friction, rotors and torque constants of a robot from a log",
    "label": "label recorded motions: torques, contact forces, residual and slip of every frame",
    "diagnose": "find what is wrong with a log of a real robot, or with the description of that robot",
    "robustness": "find what a robot bears that is not as its controller believes",
}
"""Name -> help. The module of this name in ``commands`` has ``add_arguments(parser)`` and
``run(arguments) -> exit code``."""

MOVED = ("benchmark", "faults", "power", "reproduce")
"""Subcommands of version 0.2.0 that a checkout alone has now."""

CODES = textwrap.fill(
    "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + ".",
    width=88,
    break_on_hyphens=False,
)


class Parser(argparse.ArgumentParser):
    """Refuses in one line; ``usage`` is that of --help."""

    def error(self, message: str) -> NoReturn:
        """Exit, with the one line on stderr."""
        self.exit(REFUSED, f"{self.prog}: error: {message}; {self.prog} --help shows all\n")


class Once(argparse.Action):
    """Stores a value; refuses an option that is given twice, of which one would be ignored."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """As ``argparse`` calls it."""
        given = vars(namespace).setdefault("given", set())
        if option_string and self.dest in given:
            parser.error(f"argument {option_string} is given twice, must be given once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; input errors are reported in one line."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command line, without the program's name, and return its exit code."""
    if arguments and arguments[0] in MOVED:
        command = f"python -m experiments {arguments[0]}"
        return _refuse(f"contact_id {arguments[0]}", f"run in a checkout of the sources: {command}")
    return run_program(
        "contact_id", "Contact inverse dynamics.", COMMANDS, COMMANDS_ROOM, arguments
    )


def run_program(
    program: str, description: str, commands: Mapping[str, str], room: str, arguments: Sequence[str]
) -> int:
    """Run one subcommand and return its exit code.

    Args:
        program: its name on the command line.  description: one line for its help.
        commands: name -> help.
        room: package whose module of that name has ``add_arguments(parser)`` and
            ``run(arguments) -> exit code``; its ``arguments.typed`` is the whole command line.
        arguments: the command line without the program's name.
    """
    style: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "epilog": CODES,
    }
    parser = whole = Parser(prog=program, description=description, **style)
    whole.add_argument("--version", action="version", version=f"{program} {__version__}")
    subparsers = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # Only the module of the command in question is loaded: each needs other extras.
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    modules = {}
    for name, text in commands.items():
        subparser = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", **style
        )
        if name == wanted:
            modules[name] = importlib.import_module(f"{room}.{name}")
            for action in (None, "store"):
                subparser.register("action", action, Once)
            modules[name].add_arguments(subparser)
            parser = subparser  # which names itself in a refusal
    parsed, surplus = whole.parse_known_args(arguments)
    if surplus:
        parser.error(f"unrecognized arguments: {shlex.join(surplus)}")
    parsed.typed = f"{program} {shlex.join(arguments)}"
    called = f"{program} {parsed.command}"
    return _code(called, partial(modules[parsed.command].run, parsed))


def run_script(main: Callable[..., object], words: Sequence[str] | None = None) -> NoReturn:
    """Run the ``main`` of a script with the words of its command line, and exit as ``contact_id`` does.

    Args:
        main: its parameters are the words, each with a default; a number where that is one. If it returns an int,
            that is the exit code.
        words: command line without the program's name, None: that of the process.
    """
    parser = Parser(
        description=sys.modules[main.__module__].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, word in inspect.signature(main).parameters.items():
        kind = float if isinstance(word.default, float) else str
        parser.add_argument(name, nargs="?", type=kind, default=word.default, metavar=name.upper())
    values = vars(parser.parse_args(words))

    def work() -> int:
        result = main(**values)
        return result if isinstance(result, int) else DONE

    sys.exit(_code(parser.prog, work))


def _code(called: str, work: Callable[[], int]) -> int:
    """Exit code of ``work``: what it returns, or that of its error, which is told in one line."""
    try:
        return work()
    except ContactIdError as error:
        return _refuse(called, str(error))
    except KeyboardInterrupt:
        print(f"{called}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader is gone, as with `| head`; what is left must not fail at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            traceback.print_exc()
            return BUG
        return _refuse(called, f"{error.filename!r}: {error.strerror}")
    except Exception:  # noqa: BLE001  its code must not be that of a fall
        traceback.print_exc()
        return BUG


def _refuse(called: str, why: str) -> int:
    print(f"{called}: error: {why}", file=sys.stderr)
    return REFUSED
