"""Base odometry on logs of a real robot, an iCub that walks, against motion capture.

    git clone https://github.com/ami-iit/paper_ramadoss_2021_icra_proprioceptive-base-estimator PAPER
    git clone https://github.com/ami-iit/kindyn-vio KINDYN
    git -C KINDYN checkout b5a04bf
    pip install h5py
    python benchmarks/real_logs.py --paper PAPER --kindyn KINDYN
    git clone https://github.com/ami-iit/paper_ramadoss-2022-iros-humanoid-base-estimation IROS
    python benchmarks/real_logs.py --iros IROS    # an iCub 3 in Gazebo, whose base is its chest
    python benchmarks/real_logs.py --paper PAPER --kindyn KINDYN --every 2 --begin 1 --dropped 0.05 --seed 1

Nothing is set for this robot but where its IMU is and which frames are its soles: every noise, limit and threshold
is the default. Contact and which feet bear are found from the vertical forces of the log. Drift is the horizontal error
at the end, of the path of the motion capture, aligned in place and yaw where the odometry begins, and, because one log
ends in the middle of a step, the median over its last half second; the velocity's error
is that of the position's differences over .2 s, because the motion capture arrives late by up to 50 ms. Beside each,
what the legs alone do with the attitude of the motion capture. Measured figures: results/real_logs.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_id_controller.diagnosis.odometry_run import (
    Run,
    Samples,
    by_loads,
    errors,
    place_errors,
    run,
)
from contact_id_controller.estimation.base_odometry import BaseOdometry, BaseOdometrySettings
from contact_id_controller.estimation.contact_detector import BearingFeet
from contact_id_controller.robot import RobotModel

LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
JOINTS = [
    *(f"neck_{axis}" for axis in ("pitch", "roll", "yaw")),
    *(f"torso_{axis}" for axis in ("pitch", "roll", "yaw")),
    *(f"{side}_{joint}" for side in "lr" for joint in ARM),
    *(f"{side}_{joint}" for side in "lr" for joint in LEG),
]
"""Order of the joints in the logs."""
SOLES, RADIUS_M, IMU = ("l_sole", "r_sole"), 1e-3, "root_link_imu_frame"
PAPER = "matlab/resources/walking.mat", "matlab/resources/model.urdf"
SWAYING = "matlab/resources/com-sinusoid.mat", "matlab/resources/model.urdf"
KINDYN = (
    "src/TestData/walking/sync-walkingFrontAndBackGoodTrial.mat",
    "src/TestData/models/iCubGenova04.urdf",
)
GAZEBO = "gazebo-v3-walking.mat", "model.urdf"
CHEST_IMU = "chest_imu_acc_1x1"
BEGIN_S = -0.01
"""Of the sample before the first one, where time begins."""


@dataclasses.dataclass
class Log:
    """What a log has of n samples and na joints: SI units, axes of the sensors.

    Attributes:
        t (n,), q, v (n, na), gyro, accel (n, 3), force_z (n, 2), position (n, 3), rotation (n, 3, 3): the last two of
            the base, by motion capture.
    """

    robot: RobotModel
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    gyro: np.ndarray
    accel: np.ndarray
    force_z: np.ndarray
    position: np.ndarray
    rotation: np.ndarray


def hung_by_chest(urdf: Path) -> RobotModel:
    """The robot with its chest as base: joints from there down to the root turn the other way round.

    The place of the chest's IMU, which the file has as a sensor, becomes a frame of that name.
    """
    tree = ElementTree.parse(urdf).getroot()
    above = {joint.find("child").get("link"): joint for joint in tree.findall("joint")}
    link = "chest"
    while link in above:
        joint = above[link]
        parent, origin, axis = joint.find("parent"), joint.find("origin"), joint.find("axis")
        place = [[float(x) for x in origin.get(key, "0 0 0").split()] for key in ("rpy", "xyz")]
        back = pin.SE3(pin.rpy.rpyToMatrix(*place[0]), np.array(place[1])).inverse()
        rpy, xyz = pin.rpy.matrixToRpy(back.rotation), back.translation
        below, link = link, parent.get("link")
        joint.remove(origin)
        parent.set("link", below)
        joint.find("child").set("link", f"{link}_joint")
        axis.set("xyz", " ".join(str(-float(x)) for x in axis.get("xyz").split()))
        _fix(tree, f"{link}_joint", link, " ".join(map(str, rpy)), " ".join(map(str, xyz)))
    imu = tree.find(f"sensor[@name='{CHEST_IMU}']/origin")
    _fix(tree, "chest", CHEST_IMU, imu.get("rpy"), imu.get("xyz"))
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(ElementTree.tostring(tree, "unicode"))
        file.flush()
        return RobotModel.from_urdf(file.name, True, JOINTS)


def _fix(tree: ElementTree.Element, parent: str, child: str, rpy: str, xyz: str) -> None:
    """Fix a link to another one, both of which are added where they are missing."""
    known = {link.get("name") for link in tree.findall("link")}
    for name in {parent, child} - known:
        ElementTree.SubElement(tree, "link", name=name)
    joint = ElementTree.SubElement(tree, "joint", name=f"{child}_fixed_again", type="fixed")
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    ElementTree.SubElement(joint, "origin", rpy=rpy, xyz=xyz)


def read(matlab: Path, robot: RobotModel) -> Log:
    """A log of an iCub in MATLAB's format 7.3."""
    import h5py

    order = [JOINTS.index(name) for name in robot.joint_names]
    with h5py.File(matlab) as file:
        fields = {
            "t": "estimatorJointsTime",
            "q": "estimatorJointsPos",
            "v": "estimatorJointsVel",
            "gyro": "imuOmega",
            "accel": "imuAcc",
            "position": "linkBasePos",
            "rpy": "linkBaseRot",
            "left": "lfForceZ",
            "right": "rfForceZ",
        }
        found = {name: np.asarray(file[key], dtype=float).T for name, key in fields.items()}
    t = found["t"].ravel()
    return Log(
        robot,
        t - t[0],
        found["q"][:, order],
        found["v"][:, order],
        found["gyro"],
        found["accel"],
        np.column_stack([found["left"].ravel(), found["right"].ravel()]),
        found["position"],
        np.array([pin.rpy.rpyToMatrix(*each) for each in found["rpy"]]),
    )


def thinned(log: Log, every: int, begin: int, dropped: float, seed: int) -> Log:
    """Every so many samples from one on, and of these a share is dropped by chance."""
    kept = np.arange(begin, len(log.t), every)
    return picked(log, kept[np.random.default_rng(seed).random(len(kept)) >= dropped])


def picked(log: Log, rows: np.ndarray) -> Log:
    """These rows of all channels."""
    channels = {
        field.name: getattr(log, field.name)[rows]
        for field in dataclasses.fields(log)
        if field.name != "robot"
    }
    return dataclasses.replace(log, **channels)


def estimate(log: Log, imu: str) -> Run:
    """What the odometry makes of it."""
    odometry = BaseOdometry(log.robot, SOLES, RADIUS_M, BaseOdometrySettings(imu_frame=imu), SOLES)
    samples = Samples(log.t, log.q, log.v, log.gyro, log.accel, -BEGIN_S)
    return run(by_loads(odometry, samples, log.force_z, log.robot.weight), log.t, len(SOLES))


def legs_alone(log: Log) -> np.ndarray:
    """Positions (n, 3) by the soles that bear, none of which moves, and the attitude of the motion capture."""
    robot, bearing = log.robot, BearingFeet(2)
    data, frames = robot.model.createData(), [robot.frame_id(name) for name in SOLES]
    at, before, stood, places = log.position[0].copy(), None, None, []
    for q, rotation, loads in zip(log.q, log.rotation, log.force_z):
        pin.framesForwardKinematics(
            robot.model, data, robot.configuration([0, 0, 0, 0, 0, 0, 1], q)
        )
        feet = np.array([rotation @ data.oMf[frame].translation for frame in frames])
        bears = bearing.among(loads).copy()
        if before is not None:
            same = bears & stood if (bears & stood).any() else bears
            at = at + (before - feet)[same].mean(axis=0)
        before, stood = feet, bears
        places.append(at)
    return np.array(places)


def judge(name: str, log: Log, imu: str) -> None:
    """Print one row for the odometry and one for the legs alone."""
    found = estimate(log, imu)
    first = int(np.argmax(found.ready))
    whole = errors(found, log.position, log.rotation)
    alone = place_errors(log.t[first:], (legs_alone(log) - log.position)[first:])
    rest = f"{whole.tilt_deg:.2f} | {len(found.lost)} | {found.step_us:.0f}"
    for what, off, more in (("odometry", whole, rest), ("legs alone", alone, "| |")):
        print(
            f"| {name} | {what} | {whole.path_m:.1f} | {100 * off.drift_m / whole.path_m:.1f} | "
            f"{100 * off.late_drift_m / whole.path_m:.1f} | {1e3 * off.height_m:.0f} | {1e3 * off.height_rms_m:.0f} | "
            f"{100 * off.velocity_m_s:.1f} | {more} |"
        )


def sources(paper: Path | None, kindyn: Path | None, iros: Path | None) -> list[tuple]:
    """Name, folder (None: no copy), paths in it of log and URDF, and the IMU's frame, of each log."""
    gazebo = iros and iros / "src/resources/iCubGazeboV3"
    return [
        ("walking", paper, PAPER, IMU),
        ("swaying", paper, SWAYING, IMU),
        ("front and back", kindyn, KINDYN, IMU),
        ("iCub 3 in Gazebo", gazebo, GAZEBO, CHEST_IMU),
    ]


def robot_of(urdf: Path, imu: str) -> RobotModel:
    """The robot of a log, whose base is where its IMU is."""
    return RobotModel.from_urdf(str(urdf), True, JOINTS) if imu == IMU else hung_by_chest(urdf)


def main() -> None:
    """One table for the logs of which a copy is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paper", type=Path, help="copy of the first repository")
    parser.add_argument("--kindyn", type=Path, help="copy of the second one")
    parser.add_argument("--iros", type=Path, help="copy of the third one")
    parser.add_argument("--every", type=int, default=1, help="1: each sample, 2: each other one ..")
    parser.add_argument("--begin", type=int, default=0, help="the first sample")
    parser.add_argument("--dropped", type=float, default=0.0, help="share of samples that is lost")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| log | | path, m | drift, % | in the last .5 s | height at the end, mm | rms, mm | velocity, cm/s | tilt, degrees | "
          "lost | us a step |\n|" + "---|" * 11)  # fmt: skip
    for name, copy, (matlab, urdf), imu in sources(given.paper, given.kindyn, given.iros):
        if copy is not None:
            log = read(copy / matlab, robot_of(copy / urdf, imu))
            judge(name, thinned(log, given.every, given.begin, given.dropped, given.seed), imu)


if __name__ == "__main__":
    main()
