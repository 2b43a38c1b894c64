"""The record of a run out of what it left: the nodes' records, or its bag, computed again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact_id_controller.runs.estimated_state import ESTIMATOR
from contact_id_controller.runs.record import RunRecord, merge_records
from contact_id_controller.runs.setup import (
    CONTROLLER_RECORD,
    ESTIMATOR_RECORD,
    RECORD,
    ROBOT_RECORD,
    RunSetup,
)
from contact_id_controller.simulation.recording import FallDetector
from contact_id_controller.state import RobotState
from contact_id_controller.view.bag import read_bag
from contact_id_controller.view.replay import Replay, Replayed


def record_of_run(path: Path, setup: RunSetup, namespace: str | None = None) -> RunRecord:
    """Of a demo's folder, from the records of its nodes, or what they were merged into; else its bag.

    Raises:
        RecordError: there is neither.
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
    """Of a bag that was computed again: sent torques, forces that were predicted.

    What the ground really exerted is not in it, and times of computing are those of the replay. States
    that a held robot repeats at the start are one.
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
    """When the base had fallen, judged as the simulated robot does."""
    states = [RobotState(replayed.time_s[k], replayed.q[k], replayed.v[k]) for k in rows]
    detector = FallDetector(states[0], True, terrain=setup.settings.terrain)
    for state in states:
        if detector.has_fallen(state):
            break
    return detector.fell_time_s
