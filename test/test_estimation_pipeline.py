"""From sensors to a state a robot can walk on: the walk, and what each sensor's lies do."""

import numpy as np
import pytest
from paths import CONFIG

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.period import find_contact, keep_estimate
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.runs import one_process
from contact_id_controller.runs.estimated_state import (
    EstimatedState,
    controller_changes,
    estimator_changes,
)
from experiments.papers.terrains import BLIND_STEPS, Ground


class Walk:
    """A walk on the estimate alone; of each period what is true and what was estimated."""

    def __init__(self, name, mu, noise, seconds, seed=0, *, ground=None, planner=None):
        settings = one_process.controller_settings(name, friction_coefficient=[mu])
        friction, terrain = (mu, None) if ground is None else (ground.friction, ground.field)
        world = one_process.mujoco_robot(settings, friction, terrain=terrain, imu_frame="")
        self.robot = world.robot
        pipeline = EstimationPipeline(
            world.robot, settings.contact_frames, settings.contact_radii_m
        )
        told = EstimatedState(world, pipeline, noise, seed)
        run = one_process.InProcessRun(name, settings, world, estimator=told, planner=planner)
        self.touched = []
        self.planner_told = self._listen(run.planner)
        rows, self.faults, self.differences = [], [], []
        kept = np.zeros(1 + world.robot.nq + world.robot.nv + 3 * len(pipeline.feet))
        lasts = [np.zeros((4, 3))]

        def each(period):
            estimate = told.estimate
            self.touched.append(estimate.contact.copy())
            lasts[0] += (period.forces - lasts[0]) * pipeline.period.share
            rows.append((
                period.after.q, period.after.v, run.believed.q, run.believed.v,
                lasts[0].copy(), period.forces, estimate.world_forces, estimate.contact.copy(),
            ))  # fmt: skip
            keep_estimate(pipeline.period, estimate.time_s, kept)
            state = estimate.state
            parts = [state.time_s], state.q, state.v, estimate.world_forces.ravel()
            self.differences.append(np.abs(kept - np.concatenate(parts)).max())
            self.faults += [(period.after.time_s, fault) for fault in estimate.faults]

        self.record = run.record(seconds, each=each)
        names = ("q", "v", "q_told", "v_told", "filtered", "forces", "estimated", "contact")
        for attribute, column in zip(names, zip(*rows)):
            setattr(self, attribute, np.array(column))

    def _listen(self, planner):
        """Contacts that the gait planner is told, beside those that the estimate has or had begin since the last plan."""
        heard, plan, last = [], planner.plan, np.ones((1, 4), dtype=bool)

        def listening(time_s, q, v, contact=None):
            nonlocal last
            if contact is not None and self.touched:
                seen = np.array(self.touched)
                began = (seen & ~np.vstack([last, seen[:-1]])).any(axis=0)
                heard.append((contact.copy(), seen[-1] | began))
                last = seen[-1:]
            self.touched.clear()
            return plan(time_s, q, v, contact)

        planner.plan = listening
        return heard

    @property
    def drift(self):
        distance = np.linalg.norm(np.diff(self.q[:, :2], axis=0), axis=1).sum()
        error = (self.q_told - self.q)[:, :3]
        return np.linalg.norm(error[-1] - error[0]) / distance

    @property
    def velocity_rms(self):
        return np.sqrt(((self.v_told - self.v)[:, :3] ** 2).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("name", "mu", "noise"),
    [("solo12", 1.0, "good"), ("quadruped", 0.1, "motor_currents")],
)
def test_a_walk_knows_only_its_imu_encoders_and_efforts(name, mu, noise):
    walk = Walk(name, mu, noise, 3.0)
    assert not walk.record.fell and len(walk.record) == 3000
    assert np.linalg.norm(walk.q[-1, :2] - walk.q[0, :2]) > 0.2
    assert walk.drift < 0.025 and walk.velocity_rms < 0.02
    error = np.sqrt(((walk.estimated - walk.filtered) ** 2).sum(axis=2)[100:].mean())
    assert error < 0.03 * walk.robot.weight
    assert (walk.contact == (walk.forces[:, :, 2] > 0.0))[100:].mean() > 0.965
    assert max(walk.differences) < 1e-12, "a record is the estimate"
    # What the controller saw is the estimate, not the truth.
    joints = walk.robot.q_index
    assert (walk.q_told[:-1, joints] == walk.record.position[1:]).all()
    assert not (walk.q_told[:, joints] == walk.q[:, joints]).any()
    assert walk.faults == []
    heard, estimated = zip(*walk.planner_told)
    assert (np.array(heard) == np.array(estimated)).all() and not np.array(heard).all()


def test_a_foot_that_the_plan_lifts_does_not_pull_the_base_down():
    """Its filtered load outlasts its contact; nothing else is known of the ground's height."""
    walk = Walk("solo12", 1.0, "good", 3.0)
    sunk = (walk.q_told - walk.q)[:, 2]
    assert abs(sunk[-1]) < 1e-3  # 2.4 mm where such feet counted as standing


def test_dry_friction_that_changes_its_sign_in_a_swing_is_no_touch():
    """Nobody told of it: it pulls the foot as the knee bends, and presses from then on; what presses more has landed."""
    settings = one_process.controller_settings("quadruped")
    world = one_process.mujoco_robot(settings, 0.6, imu_frame="")
    period = one_process.estimated_state("quadruped", world, "good").pipeline.period
    period.odometry.record[filtering.O_ROTATION : filtering.O_VELOCITY] = np.eye(3).ravel()
    period.observable[:], period.sure[:], period.stands[:] = True, True, False
    weight, touched = settings.robot().weight, []
    for k, share in enumerate(np.repeat([0.0, -0.05, 0.055, 0.3], [10, 60, 40, 10])):
        period.forces[:] = np.array([0.0, 0.0, share * weight])
        find_contact(period, 1e-3 * k, True, True)
        touched.append(period.contact.all())
    assert not any(touched[:110]) and touched[-1]


@pytest.mark.parametrize("name", ["talos", "g1"])
def test_a_leg_that_swings_fast_has_not_landed(name):
    """For 1 to 4 ms its noise exceeds what tells a touch: a step was over .2 s early, with its foot 6 cm up."""
    sensors = "motor_currents"
    file = str(CONFIG / "bipeds" / f"{name}.yaml")
    changes = controller_changes(one_process.section(file, "controller"), sensors)
    settings = one_process.controller_settings(file, **changes)
    world = one_process.mujoco_robot(settings, 0.6, imu_frame="")
    told = one_process.estimated_state(file, world, sensors)
    run = one_process.InProcessRun(file, settings, world, estimator=told)
    swing_s, steps = [], [0]

    def each(period):
        run.planner.set_velocity([0.3, 0.1], 0.5)
        sequence = run.planner.sequence
        if sequence.steps > steps[0]:
            steps[0] = sequence.steps
            swing_s.append(period.after.time_s - sequence.lifted_s)

    record = run.record(3.0, each=each)
    assert not record.fell and len(swing_s) >= 4
    assert min(swing_s[1:]) > 0.7 * run.planner.sequence.patience.swing_s


def test_an_estimated_walk_goes_over_bumps_that_nobody_knows():
    """Height field and friction of the first paper; seed 5 is none of those in the docs' table."""
    ground = Ground.make("height_field", 5)
    walk = Walk("quadruped", 0.5, "good", 3.0, ground=ground, planner=BLIND_STEPS)
    assert not walk.record.fell and len(walk.record) == 3000
    assert np.ptp(walk.forces[:, :, 2].argmax(axis=1)) == 3  # each foot carried most at some time
    assert walk.drift < 0.02 and walk.velocity_rms < 0.01  # .003 to .011 of .4 m on seeds 5 to 7


def test_sensed_forces_may_be_estimated_ones():
    """Solver sensed, told estimated forces, has within 10 % the joint error that it has with true ones."""
    chosen = {"friction": "none", "solver": "sensed", "friction_coefficient": [1.0]}
    chosen |= controller_changes(chosen, "good")
    settings = one_process.controller_settings("solo12", **chosen)
    error = {}
    for true_forces in (True, False):
        world = one_process.mujoco_robot(settings, 1.0, imu_frame="")
        told = one_process.estimated_state(
            "solo12", world, "good", true_forces=true_forces, **estimator_changes(settings)
        )
        record = one_process.InProcessRun("solo12", settings, world, estimator=told).record(3.0)
        assert not record.fell and len(record) == 3000
        error[true_forces] = np.abs(record.position - record.reference_position).mean()
    assert error[False] < 1.1 * error[True], error
