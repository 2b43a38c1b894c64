"""Maps arrays of a file to measurements: proposed by the arrays' names, overridden by a YAML file."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.files import read_yaml
from contact_id_controller.logs.log import COMMANDED, JOINT_CHANNELS

AXES = ("x", "y", "z", "w")
CHANNELS = (
    "time",
    *JOINT_CHANNELS,
    *(f"commands.{name}" for name in COMMANDED),
    "imu.time",
    "imu.angular_velocity",
    "imu.acceleration",
    "imu.orientation",
    "imu.rpy",
    "base.position",
    "base.orientation",
    "base.rpy",
)
_OF_JOINTS = {*JOINT_CHANNELS, *(f"commands.{name}" for name in COMMANDED)}
FEET, FOOT = "feet", "feet."
UNITS = {
    "deg": 0.017453292519943295,
    "deg/s": 0.017453292519943295,
    "rpm": 0.10471975511965978,
    "mA": 1e-3,
    "g": 9.80665,
    "mg": 9.80665e-3,
    "mm": 1e-3,
    "mNm": 1e-3,
    "kgf": 9.80665,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
}
"""Unit -> factor to SI units."""

_SPELLINGS = {
    "deg": "deg degree degrees ° \ufffd",
    "deg/s": "deg/s deg_s degs degps dps degree/s degrees/s °/s \ufffd/s",
    "rpm": "rpm 1/min",
    "mNm": "mnm nmm",
    "us": "us µs μs",
    **{unit: unit.lower() for unit in ("mA", "g", "mg", "mm", "kgf", "ms", "ns")},
}
"""Unit -> its spellings in headers, in lower case without dots, spaces and stars; U+FFFD is a degree sign of another
code page."""

_SPELT = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
_BRACKETS = re.compile(
    r"\s*[(\[]([a-zA-Z0-9/^°\ufffd²µμ·*.-]*[a-zA-Z°\ufffd][a-zA-Z0-9/^°\ufffd²µμ·*.-]*)[)\]]\s*$"
)
_ENDS = re.compile(
    r"[_ ./](degrees?|deg_s|degs|degps|dps|deg|rpm|mA|mNm|Nmm|kgf|ms|us|ns|rad_s|rads|radps|rad|Nm|sec)$"
)
_UNITS_OF = {
    "time": ("ms", "us", "ns"),
    "position": ("deg", "mm"),
    "velocity": ("deg/s", "rpm", "mm"),
    "acceleration": ("deg/s", "mm", "g", "mg"),
    "angular_velocity": ("deg/s", "rpm"),
    "effort": ("mNm", "kgf"),
    "current": ("mA",),
    "rpy": ("deg",),
}
"""Units that a channel may have; a foot's force those of an effort."""

_COMMANDED = re.compile(
    r"(?:^|_)(?:cmd|command|commanded|commands|target|desired|des|wanted|ref|reference|setpoint|goal)(?=_|$)"
)
_WORDS = (
    ("imu.orientation", r"imu_(?:quat|quaternion|orientation)"),
    ("imu.rpy", r"imu_(?:rpy|rot|euler)"),
    ("base.orientation", r"(?:link_)?base_(?:quat|quaternion|orientation)"),
    ("base.rpy", r"(?:link_)?base_(?:rpy|rot|euler)"),
    ("base.position", r"(?:link_)?base_(?:pos|position)"),
    ("imu.time", r"imu_(?:t|time|stamp|timestamp)"),
    ("imu.angular_velocity", r"(?:imu_)?(?:gyro|gyroscope|omega|angular_velocity|ang_vel)"),
    ("imu.acceleration", r"imu_acc|imu_accel|imu_acceleration"),
    ("imu.acceleration", r"acc|accel|accelerometer|linear_acceleration|lin_acc"),
    ("time", r"(?:.*_)?(?:time|times|timestamp|stamp|zeit)(?:_s|_ns|_ms|_us|_sec)?|t|t_s"),
    ("acceleration", r"a|ddq|qdd|qacc|accelerations?|joint_acc|joint_accelerations?"),
    ("velocity", r"v|dq|qd|qvel|vel|velocity|velocities|joints?_vel|joint_velocity"),
    ("effort", r"tau|torque|torques|effort|efforts|trq|joint_torques?|current_as_torque"),
    ("current", r"i|current|currents|motor_currents?|joint_currents?|amps?"),
    ("position", r"q|qpos|pos|position|positions|angles?|joints?_pos|joint_positions?"),
)
"""Channel and pattern of its names; the first that matches is taken."""

_MOMENT = re.compile(r"^target_moments?(?=_|$)")
"""Universal Robots' name of a commanded torque."""

_MEASURED = r"(?:estimator_|measured_|actual_|joint_states_)?"
"""Prefixes of measured channels."""

_FOOT = re.compile(r"(?:^|_)(?:wrench|wrenches|force|forces|grf|ft)(?=_|$)")
_FOOT_SIDE = re.compile(
    r"(?:^|_)(?:foot|feet|leg|lf|rf|lh|rh|l|r|left|right|fl|fr|rl|rr|hl|hr|sole|ankle)(?=_|$)"
)
_JOINT_LISTS = ("names", "joints", "joint_names", "name", "joint_order")


@dataclasses.dataclass(frozen=True)
class ColumnMap:
    """The arrays of a log's channels, and how to convert them.

    Attributes:
        channels: channel -> array, or columns, of the file.
        joints: names of the joints in the order of the columns; empty: not known.
        units: channel -> unit of `UNITS`, or the factor itself; in a proposal also a list with one for each column.
        correct: channel -> joint -> (times, plus): the values are times * raw + plus.
        delay_s: ``imu`` -> delay of its stamps, s.
        rotation_rpy: rotates the IMU's measurements into the frame that the description states, rad.
    """

    channels: Mapping[str, tuple[str, ...]]
    joints: tuple[str, ...] = ()
    units: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    correct: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    delay_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    rotation_rpy: tuple[float, float, float] | None = None


_KEYS = ("channels", "joints", "units", "correct", "delay_s", "rotation_rpy")


def split_unit(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit as written, in lower case: ``knee [deg/s]``, ``current_mA``."""
    found = _BRACKETS.search(name) or _ENDS.search(name)
    if found is None:
        return name, ""
    return name[: found.start()], re.sub(r"[\s·*.]", "", found.group(1)).lower()


def unit_of(name: str, channel: str) -> str:
    """The unit of `UNITS` in a name, if the channel may have it; empty: SI units, or an unknown one."""
    kind = "effort" if channel.startswith(FOOT) else channel.rpartition(".")[2]
    unit = _SPELT.get(split_unit(name)[1], "")
    allowed = _UNITS_OF.get(kind, ())
    if unit == "deg" and unit not in allowed:  # of a velocity
        unit = "deg/s"
    return unit if unit in allowed else ""


def words_of(name: str) -> str:
    """A name as lower-case words with underscores: ``imuOmega`` is ``imu_omega``."""
    name, _ = split_unit(name)
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")


def channel_of(name: str) -> tuple[str, str] | None:
    """The channel that a name means, and the rest of the name: a joint, an axis, or nothing. None: no channel.

    ``left_wrench`` is foot ``left``; ``target_positions`` a commanded position. If the whole name has no meaning, its
    last parts may, as in a structure or a topic: ``data.t``, ``field.position0``.
    """
    holder = ""
    while not _COMMANDED.search(words_of(holder)):
        found = _meant(words_of(name))
        if found is not None or "." not in name:
            return found
        holder, _, name = name.partition(".")
    return None


def _meant(word: str) -> tuple[str, str] | None:
    """The channel that words mean, and the rest of them; None: none."""
    word = _MOMENT.sub("target_torque", word)
    found = _COMMANDED.search(word)
    commanded = found is not None
    if found is not None:
        word = (word[: found.start()] + word[found.end() :]).strip("_")
    prefix = "commands." if commanded else ""
    if not commanded and _FOOT.search(word) and _FOOT_SIDE.search(word):
        axis = re.search(r"_([xyz])$", word)
        rest = _FOOT.sub("", word[: axis.start()] if axis else word).strip("_")
        return FOOT + (rest or "foot"), axis.group(1) if axis else ""
    for channel, pattern in _WORDS:
        if not commanded or channel in COMMANDED:
            if re.fullmatch(rf"{_MEASURED}(?:{pattern})", word):
                return prefix + channel, ""
    # Words before letters: ``a_position`` is the position of a joint a.
    for letters in (False, True):
        for channel, pattern in _WORDS:
            if channel == "time" or channel.startswith("base."):
                continue
            if commanded and channel not in COMMANDED:
                continue
            each = "|".join(w for w in pattern.split("|") if (len(w) == 1) == letters)
            if not each:
                continue
            start = re.match(rf"(?:imu_)?{_MEASURED}(?:{each})(?=_|[0-9])_?(.+)$", word)
            found_in = start or re.fullmatch(rf"{_MEASURED}(.+)_(?:{each})", word)
            if found_in:
                return prefix + channel, found_in.group(1)
    return None


def propose(
    shapes: Mapping[str, tuple[int, ...]], words: Mapping[str, tuple[str, ...]]
) -> ColumnMap:
    """The map suggested by the names in a file.

    Args:
        shapes: name -> shape of each array.
        words: name -> words of each list of them.
    """
    wide: dict[str, tuple[str, ...]] = {}
    columns: dict[str, dict[str, str]] = {}
    times: list[str] = []
    for name, shape in shapes.items():
        found = channel_of(name)
        if found is not None and found[0] == "time":
            times.append(name)
            continue
        if found is None or (found[0] == "imu.acceleration" and len(shape) == 2 and 3 not in shape):
            continue
        channel, rest = found
        if len(shape) == 2 or channel == "imu.time" or channel.startswith(FOOT):
            if channel.startswith(FOOT) and len(shape) == 1 and rest and rest != "z":
                continue
            if channel not in wide or (len(shape) == 2 and len(shapes[wide[channel][0]]) == 1):
                wide[channel] = (name,)
        elif not channel.startswith(FOOT):
            columns.setdefault(channel, {}).setdefault(rest, name)
    columns = _of_joints(columns)
    for channel, named in columns.items():
        if channel in wide:
            continue
        order = list(named)
        if channel.startswith(("imu.", "base.")):
            order = [axis for axis in AXES if axis in named]
            if len(order) < 3:
                continue
        wide[channel] = tuple(named[rest] for rest in order)
    first = next((wide[name] for name in ("position", *JOINT_CHANNELS) if name in wide), ())
    if times:
        fits = [t for t in times if first and max(shapes[t]) in shapes[first[0]]] or times
        stamps = [
            t for t in fits if words_of(t).endswith("header_stamp")
        ]  # rather than the recorder's
        wide["time"] = (min(stamps or fits, key=len),)
    _leave_out_others(wide, shapes, first)
    lists = {name.rpartition(".")[2]: found for name, found in words.items()}
    joints = next((lists[name] for name in _JOINT_LISTS if name in lists), ())
    named = columns.get("position", columns.get("velocity", {}))
    if not joints and len(named) > 0 and "position" in wide and len(wide["position"]) == len(named):
        joints = tuple(_joint_name(rest, k) for k, rest in enumerate(named))
    return ColumnMap(wide, joints, _proposed_units(wide))


def _of_joints(columns: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The columns of each channel, without those that belong to no joint, such as the whole robot's current.

    Numbered joints are sorted by number, and unnumbered columns dropped.
    """
    found = dict(columns)
    for channel in _OF_JOINTS & set(columns):
        numbered = sorted((rest for rest in columns[channel] if rest.isdigit()), key=int)
        if len(numbered) > 1:
            found[channel] = {rest: columns[channel][rest] for rest in numbered}
    own = found.get("position", found.get("velocity", {}))
    for channel in _OF_JOINTS & set(found):
        if own and set(own) <= set(found[channel]):
            found[channel] = {rest: found[channel][rest] for rest in own}
    return found


def _proposed_units(wide: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The units in the names: one per channel, or one for each of its columns."""
    found: dict[str, Any] = {}
    for channel, names in wide.items():
        units = [unit_of(name, channel) for name in names]
        if any(units):
            alike = len(set(units)) == 1
            found[channel] = units[0] if alike else [each or 1.0 for each in units]
    return found


def _leave_out_others(
    wide: dict[str, tuple[str, ...]], shapes: Mapping[str, tuple[int, ...]], first: tuple[str, ...]
) -> None:
    """Remove from ``wide`` arrays with another shape than the joints', as a base's velocity, and forces given twice.

    Args:
        wide: channel -> names of arrays; changed in place.
        shapes: of each array, by its name.
        first: arrays of the joints to compare with.
    """
    for channel in (*JOINT_CHANNELS, *(f"commands.{name}" for name in COMMANDED)):
        if first and len(wide.get(channel, ())) == 1 and len(first) == 1:
            if shapes[wide[channel][0]] != shapes[first[0]]:
                del wide[channel]
    feet = {name: shapes[wide[name][0]] for name in wide if name.startswith(FOOT)}
    wrenches = [name for name, shape in feet.items() if 6 in shape or 3 in shape]
    for name, shape in feet.items():
        if len(wrenches) > 1 and len(wrenches) in shape:
            del wide[name]


def _joint_name(rest: str, k: int) -> str:
    return f"joint_{rest or k + 1}" if not rest or rest.isdigit() else rest


def read_map(path: Path, proposed: ColumnMap) -> ColumnMap:
    """The proposed map, overridden by a YAML file.

    Raises:
        ConfigurationError: a key, channel or unit that does not exist.
    """
    content = read_yaml(path) or {}
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"'{path}' is no map of columns: it must have keys {choices(_KEYS)}"
        )
    unknown = [key for key in content if key not in _KEYS]
    if unknown:
        raise ConfigurationError(
            f"{unknown[0]!r} in '{path}' is unknown; there are {choices(_KEYS)}"
        )
    channels = dict(proposed.channels)
    assigned: set[str] = set()
    for channel, where in _section(content, "channels", path).items():
        if channel not in CHANNELS and not channel.startswith(FOOT):
            raise ConfigurationError(
                f"channel {channel!r} in '{path}' does not exist; there are {choices(CHANNELS)}, 'feet.NAME'"
            )
        if where is None:
            channels.pop(channel, None)
        else:
            channels[channel] = tuple(map(str, where if isinstance(where, list) else [where]))
            assigned |= set(channels[channel])
    for channel in set(channels) & _OF_JOINTS - set(content.get("channels") or {}):
        if assigned & set(
            channels[channel]
        ):  # the file assigns the column to another channel than its name suggests
            del channels[channel]
    stated = _section(content, "units", path)
    units = _proposed_units(channels) | stated
    for channel, unit in stated.items():
        if not (isinstance(unit, str) and unit in UNITS) and not _is_number(unit):
            raise ConfigurationError(
                f"unit {unit!r} of {channel!r} in '{path}' is unknown; there are {choices(UNITS)}, or a factor"
            )
    rotation, joints = content.get("rotation_rpy"), content.get("joints") or proposed.joints
    if rotation is not None and not (
        isinstance(rotation, list) and len(rotation) == 3 and all(map(_is_number, rotation))
    ):
        raise ConfigurationError(
            f"'rotation_rpy' in '{path}' is {rotation!r}, must be three angles in rad"
        )
    if not isinstance(joints, (list, tuple)):
        raise ConfigurationError(f"'joints' in '{path}' is {joints!r}, must be a list of names")
    return ColumnMap(
        channels,
        tuple(map(str, joints)),
        units,
        _corrections(content, path),
        _delays(content, path),
        None if rotation is None else tuple(map(float, rotation)),  # type: ignore[arg-type]
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _corrections(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The section ``correct``: channel -> joint -> times, plus."""
    section = _section(content, "correct", path)
    for channel in section:
        for joint, rule in _section(section, channel, path).items():
            if (
                not isinstance(rule, dict)
                or not set(rule) <= {"times", "plus"}
                or not all(map(_is_number, rule.values()))
            ):
                raise ConfigurationError(
                    f"the correction of {channel!r} of {joint!r} in '{path}' is {rule!r}, must have "
                    "numbers 'times' and 'plus', or one of them"
                )
    return section


def _delays(content: Mapping[str, Any], path: Path) -> dict[str, float]:
    """The section ``delay_s``."""
    section = _section(content, "delay_s", path)
    for part, delay in section.items():
        if part != "imu" or not _is_number(delay):
            raise ConfigurationError(
                f"'delay_s' in '{path}' has {part!r}: {delay!r}; there is 'imu', a number of seconds"
            )
    return section


def _section(content: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    section = content.get(key) or {}
    if not isinstance(section, dict):
        raise ConfigurationError(f"{key!r} in '{path}' is {section!r}, must be a section of names")
    return section


def map_text(content: Mapping[str, Any]) -> str:
    """A map, or a part of one, in YAML."""
    return (
        str(yaml.safe_dump(dict(content), sort_keys=False, default_flow_style=None))
        if content
        else ""
    )
