"""A `Log` from a file of any kind: .csv, .npz, .mat, or a bag of ROS 1 or 2."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError, RecordError, choices
from contact_id_controller.files import read_yaml
from contact_id_controller.logs.bag_files import METADATA, STORAGE_FILES
from contact_id_controller.logs.column_map import (
    FOOT,
    UNITS,
    ColumnMap,
    channel_of,
    propose,
    read_map,
)
from contact_id_controller.logs.log import (
    COMMANDED,
    JOINT_CHANNELS,
    Array,
    BasePose,
    Commands,
    Imu,
    Log,
)
from contact_id_controller.logs.tables import CSV, MAT, NPZ, Tables, need, read_tables

BAGS = (".mcap", ".db3", ".bag")
STAMPS = ("time", "imu.time")
EPOCH_UNITS = {"ns": 1e17, "us": 1e14, "ms": 1e11}
"""Unit of stamps above this value, which seconds since 1970 reach in the year 5138."""

_NUMBERED = re.compile(r"joint_[0-9]+")
_LAST_NUMBER = re.compile(r"[0-9]{1,9}(?=[^0-9]*$)")


def read_log(
    path: Path,
    map_file: Path | None = None,
    joints: Sequence[str] = (),
    namespace: str | None = None,
) -> Log:
    """Read a log.

    Args:
        path: .csv, .npz or .mat file, folder of .csv files, rosbag2 folder, .mcap, .db3 or .bag.
        map_file: YAML that assigns arrays to channels, where the names in the file do not (`column_map`).
        joints: of the robot, in its order: used if the file has no names, or numbers, and as many columns.
        namespace: of the topics, if a bag has several robots.

    Raises:
        RecordError: a file that cannot be read, or lacks time or any channel of the joints.
        ConfigurationError: a map that does not fit it.
        MissingExtraError: a library that reads it is not installed.
    """
    if is_bag(path):
        need("rosbags", "bags", "log")
        from contact_id_controller.logs.bag_log import read_bag_log

        log = read_bag_log(path, namespace)
        return _usable(log if map_file is None else _remapped(log, path, map_file))
    if not path.is_dir() and path.suffix not in (*CSV, NPZ, MAT):
        raise RecordError(
            f"{str(path)!r} is no log: a name must end with {choices([*CSV, NPZ, MAT, *BAGS])}, or be "
            "the folder of a bag or of .csv files"
        )
    tables = read_tables(path)
    columns, assigned = proposed_map(tables), set[str]()
    if map_file is not None:
        columns = read_map(map_file, columns)
        assigned = set((read_yaml(map_file) or {}).get("channels") or ())
    _refuse_other_joints(path, columns, assigned)
    log = _assembled(tables, columns, tuple(joints))
    return _usable(corrected(log, _without_units(columns)))


def _refuse_other_joints(path: Path, columns: ColumnMap, assigned: Set[str]) -> None:
    """Raise RecordError if a channel that no map assigns is by its names of other joints than the positions."""

    def joints_in(channel: str) -> list[str]:
        names = columns.channels.get(channel, ())
        return [found[1] if (found := channel_of(name)) else "" for name in names]

    own = joints_in("position")
    for channel in (*JOINT_CHANNELS, *(f"commands.{name}" for name in COMMANDED)):
        found = joints_in(channel)
        if channel in assigned or len(found) != len(own) or set(found) == set(own):
            continue
        stems = [{re.sub("[0-9]+", "0", each) for each in names} for names in (own, found)]
        numbered = all(each.isdigit() for each in (*own, *found))
        if not (numbered or _from_0_and_1(own, found) or _from_0_and_1(found, own)) and (
            set(own) & set(found) or stems[0] == stems[1]
        ):
            raise RecordError(
                f"{channel} of the log {str(path)!r} is of joints {choices(found)}, position of {choices(own)}; "
                "name the columns with --map"
            )


def _from_0_and_1(names: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the first names are counted from 0 by their last number, and the others are the same from 1."""
    numbers = [int(found[0]) for found in map(_LAST_NUMBER.search, names) if found]
    next_ones = [_LAST_NUMBER.sub(lambda n: str(int(n[0]) + 1), each) for each in names]
    return 0 in numbers and next_ones == list(others)


def _remapped(log: Log, path: Path, map_file: Path) -> Log:
    """Apply a map to the log of a bag, whose channels are the arrays, by their own names."""
    arrays = {name: getattr(log, name) for name in JOINT_CHANNELS}
    arrays |= {f"{FOOT}{name}": values for name, values in log.feet.items()}
    for part in (log.imu, log.base):
        if part is not None:
            where = "imu" if part is log.imu else "base"
            values = {each.name: getattr(part, each.name) for each in dataclasses.fields(part)}
            arrays |= {f"{where}.{name}": v for name, v in values.items() if not isinstance(v, str)}
    arrays = {"time": log.time} | {name: v for name, v in arrays.items() if v is not None}
    own = ColumnMap({name: (name,) for name in arrays}, log.joints)
    columns = read_map(map_file, own)
    new = _assembled(Tables(path, arrays, {}), columns, ())
    if new.imu is not None and log.imu is not None:
        new = dataclasses.replace(new, imu=dataclasses.replace(new.imu, frame=log.imu.frame))
    new = dataclasses.replace(new, arrival=log.arrival, start=log.start)
    return corrected(new, _without_units(columns))


def _without_units(columns: ColumnMap) -> ColumnMap:
    """The map without the units of arrays that are already converted to SI units."""
    units = {each: unit for each, unit in columns.units.items() if each not in columns.channels}
    return dataclasses.replace(columns, units=units)


def _usable(log: Log) -> Log:
    """The rows with a stamp; RecordError if a joint has no position in any of them."""
    stamped = np.isfinite(log.time)
    if not stamped.all():
        log = log.rows(stamped)
    if log.position is not None:
        for name, each in zip(log.joints, log.position.T):
            if not np.isfinite(each).any():
                raise RecordError(
                    f"the log {log.source!r} has no number in the position of {name!r}"
                )
    return log


def is_bag(path: Path) -> bool:
    """Whether rosbags reads this file or folder."""
    if path.is_dir():
        inside = [file for pattern in STORAGE_FILES for file in path.glob(pattern)]
        return (path / METADATA).is_file() or bool(inside)
    return path.suffix in BAGS


def proposed_map(tables: Tables) -> ColumnMap:
    """The map suggested by the names of the arrays."""
    return propose({name: a.shape for name, a in tables.arrays.items()}, tables.words)


def _assembled(tables: Tables, columns: ColumnMap, joints: tuple[str, ...]) -> Log:
    """The log in the file's arrays, without corrections."""
    where, what = columns.channels, f"the log {str(tables.path)!r}"
    if "time" not in where:
        raise RecordError(
            f"{what} has no array that is clearly time; name it with --map; it has {_short(tables)}"
        )
    time = _array(tables, columns, "time", None)[:, 0]
    n = len(time)
    found = {
        name: _array(tables, columns, name, n)
        for name in (*JOINT_CHANNELS, *(f"commands.{name}" for name in COMMANDED))
        if name in where
    }
    if not any(name in found for name in ("position", "velocity", "effort", "current")):
        raise RecordError(
            f"{what} has no array that is clearly a channel of the joints; name them with --map; "
            f"it has {_short(tables)}"
        )
    widths = {name: values.shape[1] for name, values in found.items()}
    na = widths.get("position", next(iter(widths.values())))
    names = columns.joints or tuple(f"joint_{k + 1}" for k in range(na))
    if len(joints) == na and all(_NUMBERED.fullmatch(each) for each in names):
        if not set(names) & set(joints):
            names = joints
            print(
                f"{tables.path}: no names of joints, taken in the order of the URDF: {', '.join(names)}",
                file=sys.stderr,
            )
    names = _as_described(names, joints)
    if len(names) != na:
        raise RecordError(f"{what} has {na} columns of joints and {len(names)} names of joints")
    for name in [name for name, width in widths.items() if width != na]:
        raise RecordError(f"{name} of {what} has {widths[name]} columns, others have {na}")
    start = float(time[np.isfinite(time)][0]) if np.isfinite(time).any() else 0.0
    return Log(
        time=time - start,
        joints=names,
        **{name: found.get(name) for name in JOINT_CHANNELS},
        imu=_imu(tables, columns, time - start, start),
        feet=_feet(tables, columns, n),
        commands=Commands(**{name: found.get(f"commands.{name}") for name in COMMANDED}),
        base=_base(tables, columns, n),
        start=start,
        source=str(tables.path),
    )


def _as_described(names: tuple[str, ...], joints: tuple[str, ...]) -> tuple[str, ...]:
    """Names of joints as in the robot, if they differ only in capitals, punctuation and the word joint."""
    if set(names) & set(joints):
        return names
    known = {re.sub(r"joint|[^a-z0-9]", "", joint.lower()): joint for joint in joints}
    found = [known.get(re.sub(r"joint|[^a-z0-9]", "", name.lower()), "") for name in names]
    unique = len(known) == len(joints) and all(found) and len(set(found)) == len(found)
    return tuple(found) if unique else names


def _imu(tables: Tables, columns: ColumnMap, time: Array, start: float) -> Imu | None:
    """The IMU, with the joints' stamps if it has none of its own."""
    where = columns.channels
    if "imu.angular_velocity" not in where or "imu.acceleration" not in where:
        return None
    stamps = time
    if "imu.time" in where:
        stamps = _array(tables, columns, "imu.time", None)[:, 0] - start
    n = len(stamps)
    return Imu(
        stamps,
        _array(tables, columns, "imu.angular_velocity", n),
        _array(tables, columns, "imu.acceleration", n),
        _orientation(tables, columns, "imu", n),
    )


def _base(tables: Tables, columns: ColumnMap, n: int) -> BasePose | None:
    if "base.position" not in columns.channels:
        return None
    position = _array(tables, columns, "base.position", n)
    return BasePose(position, _orientation(tables, columns, "base", n))


def _orientation(tables: Tables, columns: ColumnMap, part: str, n: int) -> Array | None:
    """Quaternions xyzw (n, 4), also from roll, pitch and yaw (R = Rz Ry Rx)."""
    if f"{part}.orientation" in columns.channels:
        return _array(tables, columns, f"{part}.orientation", n)
    if f"{part}.rpy" in columns.channels:
        angles = _array(tables, columns, f"{part}.rpy", n)
        turns = [pin.Quaternion(pin.rpy.rpyToMatrix(*each)).coeffs() for each in angles]
        return np.array(turns)
    return None


def _feet(tables: Tables, columns: ColumnMap, n: int) -> dict[str, Array]:
    """Each foot's array; an array with as many columns as feet is split, one column per foot.

    If there are a wrench and its vertical force, the wrench is taken.
    """
    found: dict[str, Array] = {}
    for channel in columns.channels:
        if not channel.startswith(FOOT):
            continue
        values, name = _array(tables, columns, channel, n), channel[len(FOOT) :]
        if values.shape[1] in (1, 3, 6):
            if name not in found or values.shape[1] > found[name].shape[1]:
                found[name] = values
        else:
            found |= {f"{name}_{k + 1}": values[:, k : k + 1] for k in range(values.shape[1])}
    return found


def _array(tables: Tables, columns: ColumnMap, channel: str, n: int | None) -> Array:
    """The values (n, k) of a channel, converted by the unit of the map."""
    parts = []
    for name in _columns(columns.channels[channel]):
        if name not in tables.arrays:
            raise ConfigurationError(
                f"{channel!r} is mapped to {name!r}, which the log lacks; it has {_short(tables)}"
            )
        values = tables.arrays[name]
        if (
            values.ndim == 2 and n is not None and values.shape[0] != n and values.shape[1] == n
        ) or (values.ndim == 2 and n is None and values.shape[0] == 1):
            values = values.T
        parts.append(values.reshape(len(values), -1))
    lengths = {len(part) for part in parts}
    if len(lengths) > 1 or (n is not None and lengths != {n}):
        raise RecordError(
            f"{channel!r} of {str(tables.path)!r} has {sorted(lengths)} rows, must have {n}"
        )
    values = np.hstack(parts)
    unit = columns.units.get(channel, _epoch_unit(values) if channel in STAMPS else 1.0)
    values = values * factor(unit)
    return np.where(np.isfinite(values), values, np.nan)  # infinite values count as missing


def _epoch_unit(stamps: Array) -> str | float:
    """The unit of stamps that count from 1970, if none is named."""
    since = float(np.nanmedian(stamps)) if np.isfinite(stamps).any() else 0.0
    return next((unit for unit, least in EPOCH_UNITS.items() if since > least), 1.0)


def _columns(names: Sequence[str]) -> list[str]:
    """The names, with ``2:4`` expanded to 2, 3, 4: columns of a file without header."""
    found: list[str] = []
    for name in names:
        first, colon, last = name.partition(":")
        if colon and first.isdigit() and last.isdigit():
            found += map(str, range(int(first), int(last) + 1))
        else:
            found.append(name)
    return found


def _short(tables: Tables) -> str:
    names = sorted(tables.arrays)
    return choices(names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")


def factor(unit: Any) -> Any:
    """Factor from a unit to SI units; for a list of units an array."""
    if isinstance(unit, list):
        return np.array([factor(each) for each in unit])
    return UNITS[unit] if isinstance(unit, str) else float(unit)


def rescaled(log: Log, units: Mapping[str, Any]) -> Log:
    """The log with channels converted to SI units.

    Raises:
        ConfigurationError: a channel that the log lacks.
    """
    changed: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {"imu": {}, "commands": {}, "base": {}}
    for channel, unit in units.items():
        part, _, name = channel.rpartition(".")
        if channel in STAMPS:
            continue
        if part == FOOT[:-1] and name in log.feet:
            feet = changed.get("feet", dict(log.feet))
            changed["feet"] = {**feet, name: feet[name] * factor(unit)}
            continue
        owner = getattr(log, part, None) if part in parts else log
        values = getattr(owner, name, None) if part in parts or channel in JOINT_CHANNELS else None
        if values is None:
            raise ConfigurationError(f"{channel!r} has a unit in the map, which the log lacks")
        (parts[part] if part else changed)[name] = values * factor(unit)
    for part, values in parts.items():
        if values:
            changed[part] = dataclasses.replace(getattr(log, part), **values)
    return dataclasses.replace(log, **changed)


def corrected(log: Log, columns: ColumnMap) -> Log:
    """The log with the corrections of a map: signs, gears, zero offsets, a late or turned IMU.

    Raises:
        ConfigurationError: a channel or joint that the log lacks.
    """
    log = rescaled(log, columns.units)
    changed: dict[str, Array] = {}
    for channel, joints in columns.correct.items():
        values = getattr(log, channel, None) if channel in JOINT_CHANNELS else None
        if values is None:
            raise ConfigurationError(f"{channel!r} is to be corrected, which the log lacks")
        values = values.copy()
        for joint, rule in joints.items():
            if joint not in log.joints:
                raise ConfigurationError(
                    f"joint {joint!r} is to be corrected; the log has {choices(log.joints)}"
                )
            k = log.joints.index(joint)
            values[:, k] = float(rule.get("times", 1.0)) * values[:, k] + float(
                rule.get("plus", 0.0)
            )
        changed[channel] = values
    imu = log.imu
    if imu is None and (columns.delay_s or columns.rotation_rpy is not None):
        raise ConfigurationError(
            "the map corrects an IMU, which the log lacks: it takes 'imu.angular_velocity' and 'imu.acceleration'"
        )
    if imu is not None and "imu" in columns.delay_s:
        imu = dataclasses.replace(imu, time=imu.time - float(columns.delay_s["imu"]))
    if imu is not None and columns.rotation_rpy is not None:
        turn = pin.rpy.rpyToMatrix(*columns.rotation_rpy)
        imu = dataclasses.replace(
            imu,
            angular_velocity=imu.angular_velocity @ turn.T,
            acceleration=imu.acceleration @ turn.T,
        )
    return dataclasses.replace(log, imu=imu, **changed)  # type: ignore[arg-type]
