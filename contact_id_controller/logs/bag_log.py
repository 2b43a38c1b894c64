"""Reads a `Log` from a bag of ROS 1 or 2; without ROS, by ``rosbags``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore

from contact_id_controller.exceptions import ContactIdError, RecordError, choices
from contact_id_controller.logs.bag_files import find_bag
from contact_id_controller.logs.log import Array, BasePose, Imu, Log

JOINT_STATE, IMU = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu"
BASE = "nav_msgs/msg/Odometry"
WRENCH = "geometry_msgs/msg/WrenchStamped"
READ = (JOINT_STATE, IMU, BASE, WRENCH)
TRUTH = ("ground_truth", "truth", "mocap", "vicon")
"""Words in the topic of a base that was measured from outside."""
KINDS_OF_FORCE = ("wrench", "force", "forces", "ft", "ft_sensor", "contact")

Rows = list[tuple[int, int, Any]]
"""Stamp, ns, arrival, ns, and content of each message."""


def read_bag_log(path: Path, namespace: str | None = None) -> Log:
    """Read joint states, the IMU, forces of the feet and the base from a bag.

    Joints are in the order of the first message; of several topics of a kind the one with most messages is taken.
    Forces and base are interpolated linearly to the joints' stamps.

    Raises:
        RecordError: no bag, one that cannot be read, or one without joint states.
    """
    path = find_bag(path)
    try:
        messages = _messages(path, namespace)
    except ContactIdError:
        raise
    except Exception as error:  # damaged bags make the readers of three formats raise anything
        why = " ".join(str(error).split())[:200]
        raise RecordError(f"cannot read the bag {str(path)!r}: {why}") from error
    states = _most(messages[JOINT_STATE])
    if len(states) < 2:
        raise RecordError(f"the bag {str(path)!r} has no joint states")
    names = tuple(states[0][2].name)
    used = [row for row in states if set(names) <= set(row[2].name)]
    start = used[0][0]
    time = np.array([row[0] - start for row in used]) * 1e-9
    wrenches = {topic: rows for topic, rows in messages[WRENCH].items() if len(rows) > 1}
    return Log(
        time=time,
        joints=names,
        position=_joint_values(used, names, "position"),
        velocity=_joint_values(used, names, "velocity"),
        effort=_joint_values(used, names, "effort"),
        imu=_imu(_most(messages[IMU]), start),
        feet={
            _foot_name(topic, wrenches): _at(time, start, rows, _wrench)
            for topic, rows in wrenches.items()
        },
        base=_base(messages[BASE], time, start),
        arrival=np.array([row[1] - start for row in used]) * 1e-9,
        start=start * 1e-9,
        source=str(path),
    )


def _messages(path: Path, namespace: str | None) -> Mapping[str, dict[str, Rows]]:
    """Type -> topic -> readable messages in a robot's namespace; unreadable ones are skipped.

    Raises:
        RecordError: no topic of joint states, or one without a readable message.
    """
    found: Mapping[str, dict[str, Rows]] = defaultdict(dict)
    broken: dict[str, str] = {}
    prefix = "/" if namespace is None else f"/{namespace.strip('/')}/".replace("//", "/")
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_KILTED)) as reader:
        wanted = [
            each
            for each in reader.connections
            if each.msgtype in READ and each.topic.startswith(prefix)
        ]
        topics = {each.topic for each in wanted if each.msgtype == JOINT_STATE}
        if not topics:
            have = choices({each.topic for each in reader.connections}) or "nothing"
            raise RecordError(
                f"the bag {str(path)!r} has no topic of type {JOINT_STATE}; it has {have}"
            )
        for connection, arrival, data in reader.messages(wanted) if wanted else ():
            try:
                message: Any = reader.deserialize(data, connection.msgtype)
            except (AnyReaderError, SerdeError, ValueError, LookupError) as error:
                # of another version of the type, or cut off
                broken.setdefault(connection.topic, " ".join(str(error).split())[:200])
                continue
            stamp = message.header.stamp
            row = stamp.sec * 10**9 + stamp.nanosec, arrival, message
            found[connection.msgtype].setdefault(connection.topic, []).append(row)
    if broken and not found[JOINT_STATE]:
        topic, why = next(iter(broken.items()))
        raise RecordError(f"no message of {topic!r} in the bag {str(path)!r} can be read: {why}")
    return found


def _most(topics: Mapping[str, Rows]) -> Rows:
    return max(topics.values(), key=len, default=[])


def _joint_values(rows: Rows, names: tuple[str, ...], field: str) -> Array | None:
    """Values (n, joints) of a field; None if no message has it."""
    values = np.full((len(rows), len(names)), np.nan)
    for k, (_, _, message) in enumerate(rows):
        given = getattr(message, field)
        if len(given) == len(message.name):
            order = (
                range(len(names))
                if tuple(message.name) == names
                else [list(message.name).index(name) for name in names]
            )
            values[k] = np.asarray(given)[list(order)]
    return None if np.isnan(values).all() else values


def _imu(rows: Rows, start: int) -> Imu | None:
    """The IMU; an orientation that is always the unit quaternion or 0 counts as missing."""
    if len(rows) < 2:
        return None
    orientation = np.array([_xyzw(message.orientation) for _, _, message in rows])
    return Imu(
        np.array([row[0] - start for row in rows]) * 1e-9,
        np.array([_xyz(message.angular_velocity) for _, _, message in rows]),
        np.array([_xyz(message.linear_acceleration) for _, _, message in rows]),
        orientation if np.abs(orientation[:, :3]).any() else None,
        str(rows[0][2].header.frame_id),
    )


def _base(topics: Mapping[str, Rows], time: Array, start: int) -> BasePose | None:
    """The base, if its topic's name says that it was measured from outside."""
    outside = {name: rows for name, rows in topics.items() if any(word in name for word in TRUTH)}
    rows = _most(outside)
    if len(rows) < 2:
        return None
    poses = _at(time, start, rows, _pose)
    orientation = poses[:, 3:] / np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return BasePose(poses[:, :3], orientation)


def _at(time: Array, start: int, rows: Rows, values: Any) -> Array:
    stamps = np.array([row[0] - start for row in rows]) * 1e-9
    order = np.argsort(stamps, kind="stable")
    table = np.array([values(row[2]) for row in rows])[order]
    return np.column_stack([np.interp(time, stamps[order], column) for column in table.T])


def _wrench(message: Any) -> list[float]:
    return [*_xyz(message.wrench.force), *_xyz(message.wrench.torque)]


def _pose(message: Any) -> list[float]:
    return [*_xyz(message.pose.pose.position), *_xyzw(message.pose.pose.orientation)]


def _xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]


def _xyzw(quaternion: Any) -> list[float]:
    return [quaternion.x, quaternion.y, quaternion.z, quaternion.w]


def _foot_name(topic: str, topics: Mapping[str, Rows]) -> str:
    """The parts of a topic that distinguish it from the others, without the kind of message."""
    parts = [part for part in topic.strip("/").split("/") if part not in KINDS_OF_FORCE]
    others = {part for other in topics if other != topic for part in other.strip("/").split("/")}
    return "_".join([part for part in parts if part not in others] or parts) or topic.strip("/")
