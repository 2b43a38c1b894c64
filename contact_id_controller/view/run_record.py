"""The `RunRecord` of a finished run: from its nodes' records, or from its bag, replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact_id_controller.runs.record import RunRecord, merge_records
from contact_id_controller.runs.setup import (
    CONTROLLER_RECORD,
    ESTIMATOR_RECORD,
    RECORD,
    ROBOT_RECORD,
    RunSetup,
)
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR
from contact_id_controller.simulation.recording import FallDetector
from contact_id_controller.state import RobotState
from contact_id_controller.view.bag import read_bag
from contact_id_controller.view.replay import Replay, Replayed


def record_of_run(path: Path, setup: RunSetup, namespace: str | None = None) -> RunRecord:
    """Load the record of a demo's folder; without records its bag is replayed.

    The nodes' own records come first, then the merged record.

    Raises:
        RecordError: neither records nor a bag.
    """
    control, robot = path / CONTROLLER_RECORD, path / ROBOT_RECORD
    if control.is_file() and robot.is_file():
        estimates = path / ESTIMATOR_RECORD if ESTIMATOR in setup.nodes else None
        return merge_records(control, robot, setup.settings.period_s, estimates)
    if (path / RECORD).is_file():
        return RunRecord.load(path / RECORD)
    replayed = Replay(read_bag(path, namespace), setup.settings).run()
    return record_of_replay(replayed, setup)


def record_of_replay(replayed: Replayed, setup: RunSetup) -> RunRecord:
    """Convert a replayed bag to a `RunRecord` with at most one row per control period.

    Of several samples in one period (the robot is held at the start) the last is kept. Torques are those sent where
    the bag has a command, otherwise the recomputed ones. Measured ground forces are unknown (NaN); computing times
    are those of the replay.
    """
    period_s = replayed.period_s
    periods = np.rint(replayed.time_s / period_s).astype(np.int64)
    rows = np.flatnonzero(np.append(np.diff(periods) > 0, True))
    robot = setup.settings.robot()
    unknown = np.full_like(replayed.forces[rows], np.nan)
    return RunRecord(
        period_s=period_s,
        time_s=replayed.time_s[rows],
        joint_names=replayed.joint_names,
        foot_names=replayed.contact_names,
        q=replayed.q[rows],
        v=replayed.v[rows],
        position=robot.joints_near(replayed.q[rows], replayed.reference_position[rows]),
        velocity=replayed.velocity[rows],
        reference_position=replayed.reference_position[rows],
        reference_velocity=replayed.reference_velocity[rows],
        torques=np.where(replayed.compared[:, None], replayed.sent, replayed.torques)[rows],
        saturated=replayed.saturated[rows],
        predicted_forces=replayed.forces[rows],
        simulated_forces=unknown,
        contact=replayed.contact[rows],
        solve_time_s=replayed.solve_time_s[rows],
        step_time_s=replayed.step_time_s[rows],
        power_loss_w=replayed.power_loss_w[rows],
        status=replayed.status[rows],
        fell_time_s=_fall(replayed, rows, setup) if setup.settings.floating_base else None,
        refused_inputs=dict(replayed.refusals),
        **replayed.followed._asdict(),
    )


def _fall(replayed: Replayed, rows: np.ndarray, setup: RunSetup) -> float | None:
    """Time at which the base has fallen, s, by the simulated robot's detector; None: it did not fall."""
    states = [RobotState(replayed.time_s[k], replayed.q[k], replayed.v[k]) for k in rows]
    detector = FallDetector(states[0], True, terrain=setup.settings.terrain)
    for state in states:
        if detector.has_fallen(state):
            break
    return detector.fell_time_s
