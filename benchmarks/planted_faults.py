"""Faults planted in logs of real and simulated robots, and whether ``contact_id diagnose`` names them first.

    git clone https://github.com/kjyv/FloBaRoID DATA/FloBaRoID
    git -C DATA/FloBaRoID checkout 4e2e5a29 -- data/KUKA/HW/measurements_1.npz
    git -C DATA/FloBaRoID checkout 9c068044 -- model/kuka_lwr4.urdf
    git clone https://github.com/shamilmamedov/dynamic_calibration DATA/dynamic_calibration
    git -C DATA/dynamic_calibration checkout 11af40e7
    git clone https://github.com/ami-iit/paper_ramadoss_2021_icra_proprioceptive-base-estimator DATA/ramadoss
    git -C DATA/ramadoss checkout c81846f9
    pip install h5py
    python benchmarks/planted_faults.py DATA              # 4 untouched logs, 24 faults, about 4 minutes
    python benchmarks/planted_faults.py DATA --only mass  # those whose names have this word

A walk of the quadruped is recorded by the simulator, with the noise of good sensors (DATA/quadruped.npz, kept).
Each fault changes the log after it was read, or the description that it is compared with. It counts as named where
the first finding has the check that it should have, and the untouched log none at all. Nothing is set
for a robot or a log. Measured table: results/real_logs.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import checkout  # noqa: F401  before what is not installed
import numpy as np
import pinocchio as pin

from contact_id_controller.diagnosis.case import in_order_of
from contact_id_controller.diagnosis.diagnose import diagnose
from contact_id_controller.logs.log import Log
from contact_id_controller.logs.reader import read_log

CONFIG = Path(__file__).resolve().parent.parent / "config" / "quadruped.yaml"
LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
ICUB = [
    *(f"{part}_{axis}" for part, axes in (("neck", "pry"), ("torso", "pry")) for axis in axes),
    *(f"{side}_{joint}" for side in "lr" for joint in ARM),
    *(f"{side}_{joint}" for side in "lr" for joint in LEG),
]
AXES = {"p": "pitch", "r": "roll", "y": "yaw"}
MAPS = {
    "kuka": "joints: [" + ", ".join(f"lwr_{k}_joint" for k in range(7)) + "]\n",
    "ur10e": "joints: [shoulder_pan_joint, shoulder_lift_joint, elbow_joint, wrist_1_joint, wrist_2_joint, "
    "wrist_3_joint]\nchannels: {time: 1, position: '2:7', velocity: '8:13', current: '14:19', "
    "commands.current: '20:25', commands.effort: '26:31'}\n",
    "icub": "joints: ["
    + ", ".join(re.sub(r"_([pry])$", lambda found: "_" + AXES[found[1]], name) for name in ICUB)
    + "]\n",
}
FILES = {
    "kuka": ("FloBaRoID/data/KUKA/HW/measurements_1.npz", "FloBaRoID/model/kuka_lwr4.urdf"),
    "ur10e": (
        "dynamic_calibration/dataset_ur10e/identification_data/ur-20_02_19_14harm50sec.csv",
        "dynamic_calibration/URe/urdf/ur10e.urdf",
    ),
    "icub": ("ramadoss/matlab/resources/walking.mat", "ramadoss/matlab/resources/model.urdf"),
}


@dataclasses.dataclass(frozen=True)
class Planted:
    """A log, and what it is compared with."""

    log: Log
    urdf: str | None
    config: Path | None


def record_walk(path: Path, seconds: float = 8.0) -> None:
    """A trot of the quadruped at 250 Hz: encoders, efforts and commands, IMU, normal forces."""
    from contact_id_controller.runs import one_process
    from contact_id_controller.simulation.sensor_noise import SimulatedSensors

    settings = one_process.controller_settings("quadruped")
    world = one_process.mujoco_robot(settings, 0.8, imu_frame="")
    sensors, rows, step = SimulatedSensors(world, "good", 0), [], world.step

    def recorded(torques):
        state = step(torques)
        read = sensors.read(state, mounted=False)
        rows.append(
            (
                state.time_s,
                *(np.array(x) for x in (read.position, read.velocity, read.effort, torques)),
                *(np.array(x) for x in (read.angular_velocity, read.linear_acceleration)),
                world.foot_forces()[:, 2],
            )
        )
        return state

    world.step = recorded
    one_process.InProcessRun("quadruped", settings, world).record(seconds)
    names = ("t", "q", "v", "tau", "tau_cmd", "gyro", "acc")
    *columns, forces = (np.array(column) for column in zip(*rows[::4]))
    feet = {f"{foot}_force_z": force for foot, force in zip(world.foot_frames, forces.T)}
    np.savez_compressed(
        path, names=np.array(world.robot.joint_names), **dict(zip(names, columns)), **feet
    )


def untouched(data: Path, folder: Path) -> dict[str, Planted]:
    """The logs of which there is a copy."""
    found = {}
    for name, (file, urdf) in FILES.items():
        if (data / file).exists():
            names = folder / f"{name}.yaml"
            names.write_text(MAPS[name])
            found[name] = Planted(read_log(data / file, names), str(data / urdf), None)
        else:
            print(f"{name}: {data / file} is not there, left out", file=sys.stderr)
    walk = data / "quadruped.npz"
    if not walk.exists():
        record_walk(walk)
    found["quadruped"] = Planted(read_log(walk), None, CONFIG)
    return found


def scaled(log: Log, channels: tuple[str, ...], factor, joint: str | None = None) -> Log:
    """Channels times a factor, of all joints or of one."""
    times = np.ones(len(log.joints))
    times[slice(None) if joint is None else log.joints.index(joint)] = factor
    present = [each for each in channels if getattr(log, each) is not None]
    return dataclasses.replace(log, **{each: getattr(log, each) * times for each in present})


def swapped(log: Log, a: str, b: str) -> Log:
    """Two joints' columns exchanged, under the old names."""
    names = [{a: b, b: a}.get(name, name) for name in log.joints]
    return dataclasses.replace(in_order_of(log, tuple(names)), joints=log.joints)


def moved(log: Log, joint: str, by: float) -> Log:
    """A joint's zero elsewhere."""
    offset = np.zeros(len(log.joints))
    offset[log.joints.index(joint)] = by
    return dataclasses.replace(log, position=log.position + offset)


def turned(log: Log, rpy) -> Log:
    """An IMU whose axes are others."""
    turn = pin.rpy.rpyToMatrix(*rpy)
    imu = log.imu
    return dataclasses.replace(
        log,
        imu=dataclasses.replace(
            imu,
            angular_velocity=imu.angular_velocity @ turn,
            acceleration=imu.acceleration @ turn,
        ),
    )


def late(log: Log, seconds: float) -> Log:
    """An IMU whose measurements are stamped late."""
    return dataclasses.replace(log, imu=dataclasses.replace(log.imu, time=log.imu.time + seconds))


def lost(log: Log, share: float) -> Log:
    """Some messages never arrived."""
    keep = np.random.default_rng(0).random(len(log.time)) > share
    return log.rows(keep)


def hole(log: Log, seconds: float) -> Log:
    """A gap in the middle."""
    middle = log.time[len(log.time) // 2]
    return log.rows((log.time < middle) | (log.time > middle + seconds))


def delayed(log: Log, channel: str, seconds: float) -> Log:
    """A channel of the joints whose values arrive late under the stamps of the others."""
    values = getattr(log, channel)
    columns = [np.interp(log.time - seconds, log.time, column) for column in values.T]
    return dataclasses.replace(log, **{channel: np.column_stack(columns)})


def clipped(log: Log, channel: str, share: float) -> Log:
    """Measurements that stop at a limit, here a share of the largest one of the second joint."""
    values = getattr(log, channel).copy()
    limit = share * np.abs(values[:, 1]).max()
    values[:, 1] = np.clip(values[:, 1], -limit, limit)
    return dataclasses.replace(log, **{channel: values})


def description(case: Planted, change: Callable[[str], str], folder: Path) -> Planted:
    """The log with a description whose text is another one."""
    path = folder / f"{len(list(folder.iterdir()))}.urdf"
    path.write_text(change(Path(case.urdf).read_text()))
    return dataclasses.replace(case, urdf=str(path))


def numbers(text: str, pattern: str, factor: float) -> str:
    """A text in which the number after each match of a pattern is multiplied."""
    return re.sub(
        rf"({pattern})([-+.0-9eE]+)", lambda found: f"{found[1]}{float(found[2]) * factor!r}", text
    )


def heavier(text: str) -> str:
    """All masses and moments of inertia by a tenth too large."""
    for pattern in (
        '<mass value="',
        *(f'{each}="' for each in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    ):
        text = numbers(text, re.escape(pattern), 1.1)
    return text


def config(case: Planted, pattern: str, factor: float, folder: Path) -> Planted:
    """A parameter file in which a value is multiplied."""
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    text = case.config.read_text()
    if "contact_force_on_n" not in text and "force_on" in pattern:
        text = text.replace(
            "    period_s: 0.001\n", "    period_s: 0.001\n    contact_force_on_n: 5.0\n", 1
        )
    path.write_text(numbers(text, pattern, factor))
    return dataclasses.replace(case, config=path)


def with_friction(case: Planted, factor: float, folder: Path) -> Planted:
    """The UR10e with the friction that its other log shows, times a factor, in its description."""
    stated = ((18.0, 15.0), (17.0, 16.0), (6.2, 7.1), (2.4, 2.2), (0.7, 0.4), (0.02, 0.02))

    def change(text: str) -> str:
        values = iter(stated)

        def dynamics(_):
            dry, viscous = next(values, (0.0, 0.0))
            return f'<dynamics damping="{viscous * factor}" friction="{dry * factor}"/>'

        return re.sub(r"<dynamics [^>]*/>", dynamics, text)

    return description(case, change, folder)


def faults(logs: dict[str, Planted], folder: Path):
    """(log, what was planted, the check that should name it, the case)."""
    changes: list[tuple[str, str, str, Callable[[Log], Log]]] = [
        ("kuka", "joints 1 and 3 exchanged", "order of joints", lambda x: swapped(x, "lwr_1_joint", "lwr_3_joint")),
        ("kuka", "sign of joint 3", "sign of joints", lambda x: scaled(x, ("position", "velocity", "acceleration"), -1, "lwr_3_joint")),
        ("kuka", "positions in degrees", "units of angles", lambda x: scaled(x, ("position",), 180 / np.pi)),
        ("kuka", "joint 1 off by 6 degrees", "zero offsets", lambda x: moved(x, "lwr_1_joint", np.radians(6))),
        ("kuka", "gear ratio of joint 3 by 1.25", "gear ratios", lambda x: scaled(x, ("position", "velocity", "acceleration"), 1.25, "lwr_3_joint")),
        ("kuka", "torque constant of joint 3 by .8", "torque constants", lambda x: scaled(x, ("effort",), 0.8, "lwr_3_joint")),
        ("kuka", "effort of joint 1 limited", "saturation", lambda x: clipped(x, "effort", 0.8)),
        ("ur10e", "currents in mA", "unit of the currents", lambda x: scaled(x, ("current",), 1e3)),
        ("ur10e", "gap of .2 s", "stamps", lambda x: hole(x, 0.2)),
        ("ur10e", "velocity of the elbow reversed", "sign and gear ratio of velocities", lambda x: scaled(x, ("velocity",), -1, "elbow_joint")),
        ("ur10e", "currents 30 ms after commands", "loop delay", lambda x: delayed(x, "current", 0.03)),
        ("ur10e", "torque constant of the elbow by .8", "torque constants", lambda x: scaled(x, ("current",), 0.8, "elbow_joint")),
        ("ur10e", "positions in steps of .01 rad", "quantisation", lambda x: dataclasses.replace(x, position=np.round(x.position, 2))),
        ("icub", "IMU turned by 90 degrees", "IMU mounting", lambda x: turned(x, (0, 0, np.pi / 2))),
        ("icub", "IMU 20 ms late", "delay of the IMU", lambda x: late(x, 0.02)),
        ("icub", "sign of the left knee", "sign of joints", lambda x: scaled(x, ("position", "velocity"), -1, "l_knee")),
        ("icub", "6 % of the messages dropped", "dropped messages", lambda x: lost(x, 0.06)),
        ("icub", "accelerometer in g", "unit of the accelerometer", lambda x: dataclasses.replace(x, imu=dataclasses.replace(x.imu, acceleration=x.imu.acceleration / 9.80665))),
        ("quadruped", "a thigh and a knee exchanged", "order of joints", lambda x: swapped(x, "LF_HFE", "RF_KFE")),
        ("quadruped", "IMU 20 ms late", "delay of the IMU", lambda x: late(x, 0.02)),
        ("quadruped", "a knee off by 10 degrees", "zero offsets", lambda x: moved(x, "RH_KFE", np.radians(10))),
    ]  # fmt: skip
    for name, what, check, change in changes:
        if name in logs:
            yield name, what, check, dataclasses.replace(logs[name], log=change(logs[name].log))
    if "kuka" in logs:
        case = description(logs["kuka"], heavier, folder)
        yield "kuka", "URDF 10 % too heavy", "mass and payload", case
        mounted = description(logs["kuka"], hung, folder)
        yield "kuka", "base on a wall in the URDF", "gravity", mounted
    if "icub" in logs:
        case = description(logs["icub"], lambda text: numbers(text, '<mass value="', 0.9), folder)
        yield "icub", "robot 10 % heavier than its URDF", "mass and payload", case
    if "ur10e" in logs:
        yield "ur10e", "friction stated as it is", "", with_friction(logs["ur10e"], 1.0, folder)
        yield "ur10e", "friction doubled", "friction", with_friction(logs["ur10e"], 0.5, folder)
    walk = logs["quadruped"]
    yield (
        "quadruped",
        "thresholds doubled",
        "contact thresholds",
        config(walk, "contact_force_on_n: ", 2.0, folder),
    )
    yield (
        "quadruped",
        "foot radius 5 times",
        "foot radius",
        config(walk, r"contact_radii_m: \[", 5.0, folder),
    )


def hung(text: str) -> str:
    """The description with its first joint's chain turned by 90 degrees about x."""
    root = '<link name="wall"/><joint name="on_wall" type="fixed"><parent link="wall"/>'
    first = re.search(r"<robot[^>]*>", text)
    children = set(re.findall(r'<child link="([^"]+)"', text))
    links = re.findall(r'<link name="([^"]+)"', text)
    base = next(name for name in links if name not in children)
    root += f'<child link="{base}"/><origin xyz="0 0 0" rpy="1.5707963 0 0"/></joint>'
    return text[: first.end()] + root + text[first.end() :]


def main() -> int:
    """Print one row for each log and fault; 1 where one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with copies of the repositories")
    parser.add_argument("--only", default="", help="word in what was planted")
    arguments = parser.parse_args()
    missed = planted = 0
    print("| log | planted | named first | of | s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = untouched(arguments.data, folder)
        cases = [(log, "nothing", "", case) for log, case in logs.items()]
        for log, what, check, case in (*cases, *faults(logs, folder)):
            if arguments.only not in f"{log} {what}":
                continue
            begin = time.perf_counter()
            wrong = diagnose(case.log, case.urdf, case.config).wrong
            first = f"{wrong[0].check}: {wrong[0].text}" if wrong else "nothing"
            right = (wrong[0].check if wrong else "") == check
            planted += 1
            missed += not right
            print(
                f"| {log} | {what} | {'' if right else '**missed** '}{first} | {len(wrong)} "
                f"| {time.perf_counter() - begin:.1f} |",
                flush=True,
            )
    print(f"\n{planted - missed} of {planted} as they should be", file=sys.stderr)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
