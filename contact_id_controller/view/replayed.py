"""Replays a bag with the settings of its run, and with changed ones beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import make_folder, write_arrays
from contact_id_controller.logs.bag_files import find_bag
from contact_id_controller.models import row_of
from contact_id_controller.runs.ros_run import PARAMETERS
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile, changed_parameters
from contact_id_controller.view.bag import read_bag
from contact_id_controller.view.replay import Replay, Replayed

RECORDED = "as recorded"


def find_parameters(path: Path) -> Path:
    """Find the parameter file of a bag: in the folder ``path``, beside the bag, or up to two folders above it.

    Raises:
        ConfigurationError: there is none.
    """
    bag = find_bag(path)
    places = [path, bag, *list(bag.parents)[:2]]
    for folder in places:
        if (folder / PARAMETERS).is_file():
            return folder / PARAMETERS
    raise ConfigurationError(
        f"no {PARAMETERS} beside the bag {str(bag)!r}: name the parameter file of the run with --config"
    )


def replay_all(
    path: Path,
    *,
    config: Path | None = None,
    node: str = "controller",
    namespace: str | None = None,
    friction: str | None = None,
    solver: str | None = None,
    changes: Sequence[str] = (),
) -> dict[str, Replayed]:
    """Replay a bag with the settings of its run and, if any are changed, with the changed ones.

    Args:
        path: a bag, or the folder of its run.
        config: parameter file of the run; None: found beside the bag.
        node: its section.  namespace: of the controller's topics; None: the bag's own.
        friction, solver, changes (``name=value``): what is changed; by default nothing.

    Returns:
        Replays by the name of their settings, the recorded ones first.

    Raises:
        ContactIdError: no bag or parameters, or settings that are refused.
    """
    mapping = ParameterFile(config or find_parameters(path)).section(node)
    recorded = ControllerSettings.from_mapping(mapping)
    settings = {RECORDED: recorded}
    changed = changed_parameters(friction, solver, changes)
    if changed:
        other = ControllerSettings.from_mapping({**mapping, **changed})
        row_of(other.friction, other.solver)
        settings[", ".join(f"{name} {value}" for name, value in changed.items())] = other
    bag = read_bag(path, namespace)
    return {name: Replay(bag, recorded, chosen).run() for name, chosen in settings.items()}


def write_all(replays: dict[str, Replayed], folder: Path) -> None:
    """Write the arrays of each replay into ``folder``, as a .npz file named after its settings.

    Raises:
        RecordError: a file cannot be written.
    """
    make_folder(folder)
    for name, replayed in replays.items():
        arrays = {
            key: value
            for key, value in vars(replayed).items()
            if key not in ("refusals", "followed", "logged", "remarks")
        }
        arrays["refused_reasons"] = np.array(list(replayed.refusals), dtype=str)
        arrays["refused_counts"] = np.array(list(replayed.refusals.values()), dtype=int)
        arrays["remarks"] = np.array(replayed.remarks, dtype=str)
        file = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
        write_arrays(folder / f"{file}.npz", arrays)
