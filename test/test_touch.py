"""An arm lays its hand on a table that is not where it is believed to be, or gives way; MuJoCo's forces judge."""

import numpy as np
import pinocchio as pin
import pytest
from moving_table import MovingTable
from paths import ROOT

from contact_id_controller.control import touch
from contact_id_controller.control.controller import Controller
from contact_id_controller.geometry import HalfSpace
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.runs.one_process import controller_settings, mujoco_robot, section
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot
from contact_id_controller.simulation.mujoco_model import GroundSettings

CONFIG = str(ROOT / "config" / "arms" / "panda.yaml")
ASKED_N, PEAK_N = 20.0, 40.0
SETTLED_S = 0.5  # from the touch on
YIELDS_M_S, YIELDS_FOR_S, SPEEDS_UP_S = 0.02, 1.0, 0.05


class Arm:
    """The arm of the file in front of a table; what was pressed on, period after period."""

    def __init__(self, world, **changed):
        self.settings = controller_settings(CONFIG, **changed)
        robot = self.settings.robot()
        self.controller, self.world = Controller(robot, self.settings), world
        start = section(CONFIG, "simulated_robot")["initial_joint_positions"]
        body = getattr(world, "arm", world)
        self.state = body.reset(robot.configuration(None, np.array(start)))
        self.controller.reset(self.state)
        motion = joint_motion(section(CONFIG, "joint_motion"), robot.joint_names)
        self.controller.follow(Plan(motion), self.state.time_s)
        self.forces, self.touching, self.heights = [], [], []

    def step(self, *speed):
        result = self.controller.step(self.state)
        assert result.status == "solved"
        answer = self.world.step(result.torques, *speed)
        if speed:
            self.state, force = answer
        else:
            self.state, force = answer, self.world.contact_forces()[0, 2]
        self.forces.append(force)
        self.touching.append(bool(result.contact[0]))

    def until_it_touches(self, *speed, within_s=10.0):
        while not (self.forces and self.forces[-1] > 0.0):
            self.step(*speed)
            assert self.state.time_s < within_s, "it never touched"
        return len(self.forces) - 1

    def go_on(self, seconds, *speed):
        for _ in range(round(seconds / self.settings.period_s)):
            self.step(*speed)


def judged(arm, touch_at, peak_n=PEAK_N):
    forces = np.array(arm.forces)
    assert forces.max() < peak_n
    assert forces[touch_at:].min() > 0.0, "contact was lost"
    settled = forces[touch_at + round(SETTLED_S / arm.settings.period_s) :]
    assert len(settled) > 100
    np.testing.assert_allclose(settled, ASKED_N, atol=1.0)
    assert all(arm.touching[touch_at + 10 :])


@pytest.mark.parametrize("height_m", [0.0, 0.01, -0.01, -0.001])
def test_a_hand_is_laid_on_a_table_wherever_it_is(height_m):
    settings = controller_settings(CONFIG)
    arm = Arm(mujoco_robot(settings, 0.6, terrain=HalfSpace(offset=height_m), floating_base=False))
    at = arm.until_it_touches()
    arm.go_on(1.0)
    judged(arm, at)
    assert not any(arm.touching[:at])


def test_a_table_that_is_met_before_the_hand_is_slow_is_pressed_as_asked():
    """It took what it felt there for an error of its model, and pressed on: 600 N of a UR5."""
    settings = controller_settings(CONFIG)
    terrain = HalfSpace(offset=2.0 * touch.EARLY_M)
    arm = Arm(mujoco_robot(settings, 0.6, terrain=terrain, floating_base=False))
    at = arm.until_it_touches()
    arm.go_on(1.5)
    np.testing.assert_allclose(arm.forces[at + 500 :], ASKED_N, atol=1.0)
    assert all(arm.touching[at + 100 :])


def test_a_soft_table_is_pressed_as_asked():
    """3 kN/m: its force grew as slowly as errors of the model are learned, and 18 % of it were taken for one."""
    ground = GroundSettings(time_constant_s=0.11, impedance=(0.9, 0.9))
    arm = Arm(mujoco_robot(controller_settings(CONFIG), 0.6, floating_base=False, ground=ground))
    at = arm.until_it_touches()
    arm.go_on(1.5)
    depth = -arm.world.foot_positions()[0, 2] + arm.settings.feet[0].radius_m
    assert 0.002 < depth < 0.02
    judged(arm, at + 200)  # it is felt from a quarter of the force on


@pytest.mark.parametrize(("begins_s", "lost_s", "tool_n"), [(4.99, 0.0, 8.0), (4.4, 1.4, 12.0)])
def test_a_hand_without_the_tool_of_its_model_presses_no_air(begins_s, lost_s, tool_n):
    """8 mm above the table from the start, or lost on the way down: it took that for contact, and fell with 1 to 2 kN."""
    arm = Arm(mujoco_robot(controller_settings(CONFIG), 0.6, floating_base=False))
    robot = arm.controller.robot
    motion = joint_motion(section(CONFIG, "joint_motion"), robot.joint_names)
    way = np.array([motion.sample(time_s).position for time_s in (begins_s, 5.3116)])
    arm.state = arm.world.reset(robot.configuration(None, way[0]))
    arm.controller.reset(arm.state)
    rows = way[[0, 0, 1]]
    plan = JointTrajectory(robot.joint_names, [0.0, 1.0, 2.5], rows, 0.0 * rows)
    arm.controller.follow(Plan(plan), arm.state.time_s)
    arm.go_on(lost_s)
    arm.world.mujoco_data.xfrc_applied[-1, 2] = tool_n
    arm.go_on(3.0 - lost_s)
    assert max(arm.forces) < PEAK_N


def test_a_hand_that_a_payload_holds_below_its_plan_is_not_bounded():
    """2 mm below it, 8 mm above the table: it moved along it at the speed of a touch, 54 mrad off (12)."""
    arm = Arm(mujoco_robot(controller_settings(CONFIG), 0.6, floating_base=False))
    robot = arm.controller.robot
    motion = joint_motion(section(CONFIG, "joint_motion"), robot.joint_names)
    place = motion.sample(4.99).position
    arm.state = arm.world.reset(robot.configuration(None, place))
    arm.controller.reset(arm.state)
    arm.world.mujoco_data.xfrc_applied[-1, 2] = -14.0
    arm.go_on(0.6)
    assert not arm.controller.memory.touch._approaches.any()
    assert np.abs(arm.controller.period.error).max() < 0.012


def test_a_joint_at_its_limit_lets_a_hand_neither_fall_nor_bounce():
    """Its fourth joint holds half the weight on it: before the table bore the hand, it fell there with 430 N."""
    effort = controller_settings(CONFIG).robot().effort_limits.copy()
    effort[3] = 10.0
    ground = GroundSettings(exact_friction=True)  # it comes down sideways, too
    world = mujoco_robot(controller_settings(CONFIG), 0.3, floating_base=False, ground=ground)
    arm = Arm(world, effort_limits_nm=effort.tolist())
    at = arm.until_it_touches()
    assert np.abs(arm.controller.period.error).max() > 0.3
    arm.go_on(1.0)
    judged(arm, at)


def test_a_joint_too_weak_for_the_arm_lets_it_rest_on_the_table():
    """1.5 times the force in balance: it folded, and hit the table with up to 26 times the force as it wiped."""
    arm = Arm(mujoco_robot(controller_settings(CONFIG), 0.6, floating_base=False))
    arm.until_it_touches()
    arm.go_on(0.5)
    robot, torques = arm.controller.robot, arm.controller.period.decided
    gravity = pin.computeGeneralizedGravity(robot.model, robot.data, arm.state.q)
    relief = np.abs(gravity) - np.abs(torques)
    joint = int(relief.argmax())
    arm.controller.effort_limits[joint] = np.abs(torques[joint]) - 0.5 * relief[joint]
    arm.go_on(3.0)
    forces = np.array(arm.forces[-2900:])
    assert forces.min() > 0.0 and forces.max() < 2.5 * ASKED_N
    assert forces.mean() == pytest.approx(1.5 * ASKED_N, rel=0.1)


def test_a_table_that_gives_way_is_followed(monkeypatch):
    arm = Arm(MovingTable(controller_settings(CONFIG), 0.6, 0.0, monkeypatch))
    at = arm.until_it_touches(0.0)
    arm.go_on(0.2, 0.0)
    for number in range(round(YIELDS_FOR_S / 1e-3)):
        arm.step(-YIELDS_M_S * min(1.0, number * 1e-3 / SPEEDS_UP_S))
    assert arm.world.height_m < -0.9 * YIELDS_M_S * YIELDS_FOR_S
    judged(arm, at)


def test_a_table_that_is_taken_away_is_found_again_without_a_jolt(monkeypatch):
    arm = Arm(MovingTable(controller_settings(CONFIG), 0.6, 0.0, monkeypatch))
    arm.until_it_touches(0.0)
    arm.go_on(0.2, 0.0)
    arm.go_on(0.01, -0.5)  # 5 mm in 10 ms: no hand follows
    assert not arm.forces[-1]
    arm.go_on(0.05, 0.0)
    assert not arm.touching[-1]
    lost = len(arm.forces)
    arm.forces[:lost] = [0.0] * lost
    at = arm.until_it_touches(0.0, within_s=12.0)
    arm.go_on(1.0, 0.0)
    judged(arm, at)


def test_a_hand_that_finds_nothing_stops_below(monkeypatch):
    settings = controller_settings(CONFIG)
    world = mujoco_robot(settings, 0.6, terrain=HalfSpace(offset=-0.2), floating_base=False)
    arm = Arm(world)
    arm.go_on(14.0)
    height = world.foot_positions()[0, 2] - settings.feet[0].radius_m
    assert -touch.LATE_M <= height < -0.8 * touch.LATE_M
    assert np.abs(arm.state.v).max() < 0.01 and not any(arm.touching)


def test_a_force_is_right_with_a_load_that_nobody_told_of():
    settings = controller_settings(CONFIG)
    world = mujoco_robot(settings, 0.6, floating_base=False)
    world.mujoco_model.body_mass[-3] += 0.5  # the hand's link: 5 N, a quarter of what is asked for
    arm = Arm(world)
    at = arm.until_it_touches()
    arm.go_on(1.0)
    judged(arm, at, peak_n=2.5 * ASKED_N)  # more mass comes down than is known
    assert arm.controller.period.delay[2] == 0.0  # and it delays nothing


@pytest.mark.parametrize("delay_ms", [0, 10])
def test_a_hand_whose_torques_act_late_untold_presses_as_asked(delay_ms):
    """Their delay is seen as the arm comes down. By 10 ms it pressed with 5 times the force, and off and on."""
    settings = controller_settings(CONFIG)
    world = DisturbedRobot(mujoco_robot(settings, 0.6, floating_base=False), delay_ms)
    arm = Arm(world)
    at = arm.until_it_touches()
    assert arm.controller.period.delay[2] == pytest.approx(1e-3 * delay_ms, abs=1.5e-3)
    arm.go_on(1.0)
    assert max(arm.forces) < PEAK_N
    np.testing.assert_allclose(arm.forces[at + 500 :], ASKED_N, atol=1.0)


@pytest.mark.parametrize("hz", [2.0, 8.0])
def test_a_hand_that_pushes_an_arm_in_the_air_is_no_delay(hz):
    """Torques were taken to act 10 and 12 ms late, and the joints erred by twice as much (26 instead of 14 mrad)."""
    world = mujoco_robot(controller_settings(CONFIG), 0.6, floating_base=False)
    arm, late = Arm(world), []
    link = world.mujoco_model.body("panda_link7").id
    while arm.state.time_s < 1.5:
        at = 2.0 * np.pi * hz * arm.state.time_s
        world.mujoco_data.xfrc_applied[link, :3] = 20.0 * np.sin(at), 0.0, 10.0 * np.cos(1.3 * at)
        arm.step()
        late.append(arm.controller.period.delay[2])
    assert max(late) == 0.0


def test_a_controller_that_takes_over_presses_with_its_own_force_and_friction():
    """It took those of the one before: an operator who lowers the force got the old one."""
    before = controller_settings(CONFIG, least_normal_force_n=[20.0], friction_coefficient=[0.6])
    after = controller_settings(CONFIG, least_normal_force_n=[5.0], friction_coefficient=[0.2])
    old, new = (Controller(each.robot(), each) for each in (before, after))
    old.memory.touch.touches[:], old.memory.touch.felt[:] = True, 3.0
    new.take_over(old)
    taken = new.memory.touch
    assert (taken.asked == 5.0).all() and (taken.rubs == 0.2).all()
    assert taken.touches.all() and (taken.felt == 3.0).all()
    taken.felt[:] = 0.0
    assert (old.memory.touch.felt == 3.0).all()
