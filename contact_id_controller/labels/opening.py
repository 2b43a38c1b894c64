"""Opens motion files of any supported format."""

from __future__ import annotations

from pathlib import Path

from contact_id_controller.exceptions import RecordError, choices
from contact_id_controller.labels.sources import (
    BagReading,
    MotionFile,
    NpzMotion,
    ParquetMotion,
    Shapes,
)
from contact_id_controller.logs.tables import need

NPZ, PARQUET, BAGS = ".npz", ".parquet", (".mcap", ".db3")


def open_motion(path: Path, shapes: Shapes, how: BagReading) -> MotionFile:
    """Open the motion in a file: .npz, .parquet, or a bag (rosbag2 folder, .mcap, .db3).

    Args:
        path: the file, or a bag's folder.
        shapes: of the robot's rows.
        how: options for bags.

    Raises:
        RecordError: no such file, another kind of file, or one that cannot be read.
        MissingExtraError: its optional library is not installed.
    """
    if not path.exists():
        raise RecordError(f"no motion at {str(path)!r}: there is no such file or folder")
    if path.is_dir() or path.suffix in BAGS:
        need("rosbags", "bags", "label")
        from contact_id_controller.labels.bags import BagMotion

        if shapes.recorded_contact:
            raise RecordError(
                f"the bag {str(path)!r} has no recorded contact, take that of geometry"
            )
        return BagMotion(path, how)
    if path.suffix == NPZ:
        return NpzMotion(path, shapes)
    if path.suffix == PARQUET:
        need("pyarrow", "parquet files", "label")
        return ParquetMotion(path, shapes)
    raise RecordError(
        f"{str(path)!r} is no motion: a name must end with {choices([NPZ, PARQUET, *BAGS])}, or be the "
        "folder of a bag"
    )
