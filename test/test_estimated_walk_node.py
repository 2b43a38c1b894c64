"""A walk over real topics on the estimator's state: sensors in, torques out, nobody hears the truth."""

from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from contact_id_controller import RobotModel
from contact_id_controller.report.metrics import measure
from contact_id_controller.runs import ros_run
from contact_id_controller.runs.record import merge_records
from contact_id_controller.runs.setup import (
    CONTROLLER_RECORD,
    ESTIMATOR_RECORD,
    ROBOT_RECORD,
    make_setup,
)
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR

DURATION_S, ROBOT = 2.0, "solo12"
FIGURES = (
    "mean_joint_position_error_rad",
    "distance_travelled_m",
    "estimated_drift_share",
    "estimated_velocity_rms_m_s",
    "estimated_force_rms",
)


class Watcher(ros_run.Supervisor):
    """Supervisor that notes, once the controller is active, who speaks and listens on each topic."""

    graph: ClassVar[dict[str, tuple[set[str], set[str]]]] = {}

    def activate(self, *arguments):
        active = super().activate(*arguments)
        node = self._node
        for topic, _ in node.get_topic_names_and_types():
            ends = (
                node.get_publishers_info_by_topic(topic),
                node.get_subscriptions_info_by_topic(topic),
            )
            self.graph[topic] = tuple({end.node_name for end in side} for side in ends)
        return active


def test_a_robot_walks_over_topics_on_what_its_sensors_say(tmp_path, monkeypatch):
    monkeypatch.setattr(ros_run, "Supervisor", Watcher)
    monkeypatch.setattr(Watcher, "graph", {})
    setup = make_setup(tmp_path, robot=ROBOT, duration_s=DURATION_S, state="estimated")
    ros_run.run_nodes(setup, tmp_path)
    record = merge_records(
        tmp_path / CONTROLLER_RECORD,
        tmp_path / ROBOT_RECORD,
        setup.settings.period_s,
        tmp_path / ESTIMATOR_RECORD,
    )
    # It walks, and knows where it is.
    weight = RobotModel.from_urdf(setup.settings.urdf).weight
    found = measure(record, weight, (0.0, 0.0, 1.0), FIGURES)
    assert not record.fell and record.duration_s > DURATION_S - 0.01
    assert record.unanswered_states < 0.01 * len(record)
    assert found["distance_travelled_m"] > 0.15
    assert found["mean_joint_position_error_rad"] < 0.01
    assert found["estimated_drift_share"] < 0.025
    assert found["estimated_velocity_rms_m_s"] < 0.02
    assert found["estimated_force_rms"] < 0.06
    # State and contacts come from the estimator alone; the truth has no listener.
    graph = Watcher.graph
    for topic, users in (
        ("/odometry", {"controller", "gait_planner"}),
        ("/contact_states", {"gait_planner"}),
    ):
        speaks, listens = graph[topic]
        assert speaks == {ESTIMATOR} and users <= listens, topic
    truths = [topic for topic in graph if topic.startswith("/ground_truth/")]
    assert "/ground_truth/odometry" in truths
    assert all(graph[topic] == ({"simulated_robot"}, set()) for topic in truths)
    # What the controller was told is near the truth, and not the truth.
    told = record.estimated
    assert not np.isclose(told.q[:, :3], record.q[:, :3], rtol=0.0, atol=1e-9).all(axis=1).any()
