"""Goals of the whole body: what they are refused for, and what they want at a time."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from contact_id_controller.control.course import Course
from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.checks import Followed, prepare, ready_to_follow
from contact_id_controller.plans.goals import (
    ComGoal,
    FootPath,
    FrameGoal,
    Heading,
    Posture,
    Sample,
    TaskGoals,
)
from contact_id_controller.plans.parts import PlanParts
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.plan_limits import PlanLimits
from contact_id_controller.plans.trajectories import (
    BaseTrajectory,
    ContactSchedule,
    JointTrajectory,
    PlanSlot,
)

JOINTS, FRAMES = ["hip", "knee"], ["left", "left", "right"]
RATE = 3.4


def path(times=(0.1, 0.3, 0.6), **changes):
    rng = np.random.default_rng(3)
    p = len(times)
    rows = {
        "positions": rng.normal(size=(p, 4)),
        "velocities": rng.normal(size=(p, 4)),
        "accelerations": rng.normal(size=(p, 4)),
    }
    return FootPath(times, **{**rows, **changes})


def way_of_a_hand(by_m=0.3, at_rest=0.0):
    still = np.full((2, 3), at_rest)
    return FootPath([0.1, 0.6], [[0.3, -0.2, 1.0], [0.3 + by_m, -0.2, 1.1]], still, still)


def goals(feet=None, start_s=2.0, lasts_s=0.5, **changes):
    values = {
        "com": ComGoal([0.1, 0.2], [0.12, 0.17], RATE, 0.8),
        "posture": Posture(["knee", "hip"], [0.5, -0.25], [40.0, 200.0]),
        "heading": Heading(0.3, -0.4),
        **changes,
    }
    return TaskGoals(feet={} if feet is None else feet, lasts_s=lasts_s, start_s=start_s, **values)


def climbs(rate, acceleration, **changes):
    return goals(com=ComGoal([0.1, 0.2], [0.12, 0.17], RATE, 0.8, [rate, acceleration]), **changes)


def followed(**changes):
    count = len(JOINTS)
    limits = PlanLimits(
        np.full(count, -1.0),
        np.full(count, 1.0),
        np.full(count, 10.0),
        1e5,
        (0.5, 1.0),
        (10.0, 20.0),
        (500.0, 2000.0),
        1e4,
    )
    given = {"takes_goals": True, **changes}
    return Followed(
        JOINTS, FRAMES, PlanSlot(), np.zeros(count), None, 0.5, limits, PlanSlot(), **given
    )


class Robot:
    """What `Course` asks of a robot."""

    na, floating_base, locked = 2, True, ()

    def joints_of(self, q):
        return q[7:]


def test_divergent_component_follows_its_equation():
    """xi' = w (xi - p), integrated by scipy."""
    xi0, p = np.array([0.12, 0.17]), np.array([0.1, 0.2])
    judge = solve_ivp(lambda _, xi: RATE * (xi - p), (0.0, 0.4), xi0, rtol=1e-10, atol=1e-12)
    com = goals().sample(2.4).com
    assert com[:2] == pytest.approx(judge.y[:, -1], abs=1e-8)
    assert com[2:4] == pytest.approx(RATE * (judge.y[:, -1] - p), abs=1e-7)
    assert com[4:] == pytest.approx(p)


def test_foot_passes_through_points_and_goes_on_after_the_last_one():
    """A quintic by numpy, from the six conditions of a segment."""
    way = path()
    found = goals({"right": way}, lasts_s=0.75).in_order(JOINTS, FRAMES)
    a, b, t = 0.1, 0.3, 0.17
    rows = [[n * 0.0 + s**n for n in range(6)] for s in (a, b)]
    rows += [[n * s ** max(n - 1, 0) for n in range(6)] for s in (a, b)]
    rows += [[n * (n - 1) * s ** max(n - 2, 0) for n in range(6)] for s in (a, b)]
    ends = np.concatenate([way.points[:2, d] for d in range(3)])
    c = np.linalg.solve(np.array(rows), ends)
    place = found.sample(2.0 + t)
    powers = np.arange(6)
    assert place.feet[1, 0] == pytest.approx(t**powers @ c)
    assert place.feet[1, 1] == pytest.approx((powers[1:] * t ** powers[:-1]) @ c[1:])
    second = powers[2:] * powers[1:-1]
    assert place.feet[1, 2] == pytest.approx((second * t ** powers[:-2]) @ c[2:])
    assert place.aloft.tolist() == [False, True]
    early, late = found.sample(2.05), found.sample(2.7)
    assert early.feet[1, 0] == pytest.approx(way.points[0, 0])
    assert not early.feet[1, 1:].any()
    assert late.feet[1, 0] == pytest.approx(way.points[-1, 0] + 0.1 * way.points[-1, 1])
    assert late.feet[1, 1] == pytest.approx(way.points[-1, 1])
    after = found.sample(60.0)  # nobody plans any more: it stays
    assert after.feet[1, 0] == pytest.approx(way.points[-1, 0] + 0.15 * way.points[-1, 1])
    assert not after.feet[1, 1:].any()


def test_replanned_path_is_continuous():
    """From its own motion at a time to the same points: the same motion on."""
    old = goals({"right": path()}).in_order(JOINTS, FRAMES)
    x, v, a = old.sample(2.2).feet[1]
    new_path = FootPath(
        [0.0, 0.1], *(np.array([r, s]) for r, s in zip((x, v, a), path().points[1]))
    )
    new = goals({"right": new_path}, start_s=2.2).in_order(JOINTS, FRAMES)
    assert new.sample(2.25).feet[1] == pytest.approx(old.sample(2.25).feet[1], abs=1e-10)


def test_may_land_and_end():
    ready = goals({"left": path(may_land_from_s=0.35)}).in_order(JOINTS, FRAMES)
    assert not ready.sample(2.34).may_land.any()
    assert ready.sample(2.36).may_land.tolist() == [True, False]
    assert ready.sample(2.4).heading == pytest.approx([0.3 - 0.4 * 0.4, -0.4])
    out = Sample.of(2)
    assert ready.fill(2.49, out)
    assert not ready.fill(2.7, out)
    assert out.heading == pytest.approx([0.3 - 0.4 * 0.5, 0.0])
    resting = goals(com=ComGoal([0, 0], [0, 0], RATE, 0.8), lasts_s=1e6)
    assert resting.sample(1e5).com == pytest.approx(np.zeros(6))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: path(times=(0.3, 0.1)), "times of the points must increase"),
        (lambda: path(positions=np.full((3, 4), math.nan)), "not finite"),
        (lambda: path(positions=np.zeros((3, 5))), r"shape \(3, 5\), must have \(3, 4\)"),
        (lambda: path(positions=np.zeros((3, 3))), r"shape \(3, 4\), must have \(3, 3\)"),
        (lambda: goals({"left": way_of_a_hand()}), "foot 'left' has rows x, y, z, must have"),
        (lambda: goals(frames={"hand": FrameGoal(path())}), "'hand' has rows of 4 numbers"),
        (lambda: goals(frames={"hand": FrameGoal(way_of_a_hand(at_rest=0.1))}), "must end at rest"),
        (
            lambda: goals(frames={str(k): FrameGoal(way_of_a_hand()) for k in range(9)}),
            "lead 9 frames that are no feet, must be at most 8",
        ),
        (lambda: goals(frames={"hand": FrameGoal()}), "'hand' .* neither a path nor a rotation"),
        (
            lambda: goals(frames={"hand": FrameGoal(rotation=[0, 0, 0, 2])}),
            "rotation of frame 'hand' of the goals has length 2, must be a unit quaternion",
        ),
        (lambda: path(velocities=None), "no velocities, must have all three"),
        (lambda: path(may_land_from_s=math.nan), "not a number"),
        (lambda: goals(lasts_s=0.0), "lasts_s of the goals is 0, must be positive"),
        (lambda: goals(com=ComGoal([0, 0], [0, 0], -1.0, 0.8)), "rate .* must be positive"),
        (lambda: goals(com=ComGoal([0, 0], [0, 0], 1.0, math.inf)), "not finite"),
        (lambda: goals(com=ComGoal([0, 0, 0], [0, 0], 1.0, 1.0)), r"must have \(2,\)"),
        (lambda: goals(posture=Posture(["hip", "hip"], [0, 0])), "names a joint twice"),
        (lambda: goals(posture=Posture(["hip"], [0], [-1.0])), "stiffness .* not be negative"),
        (lambda: goals(start_s=-1.0), "start is -1"),
    ],
)
def test_bad_goals_are_refused(make, words):
    with pytest.raises(TrajectoryError, match=words):
        make()


def test_frames_follow_their_paths_after_the_feet():
    """Until its first point and after its last one a hand rests; a rotation alone has no place."""
    frames = {
        "head": FrameGoal(rotation=[0.0, 0.0, 0.001, 1.0]),
        "hand": FrameGoal(way_of_a_hand()),
    }
    made = goals({"right": path()}, frames=frames)
    found = made.in_order(JOINTS, FRAMES, others=["hand", "head"])
    assert np.linalg.norm(found.frames["head"].rotation) == pytest.approx(1.0)
    for t_s, place in (
        (2.0, [0.3, -0.2, 1.0]),
        (2.35, [0.45, -0.2, 1.05]),
        (9.0, [0.6, -0.2, 1.1]),
    ):
        sample = found.sample(t_s)
        assert sample.aloft.tolist() == [False, True, False, True]  # left, right, head, hand
        longer = goals(frames=frames, lasts_s=20.0).in_order(
            JOINTS, FRAMES, others=["hand", "head"]
        )
        np.testing.assert_allclose(longer.sample(t_s).feet[3, 0, :3], place, atol=1e-12)


@pytest.mark.parametrize(
    ("plan", "changes", "words"),
    [
        (lambda: Plan(goals=goals({"tail": path()})), {}, "unknown contact frame 'tail'; known"),
        (
            lambda: Plan(goals=goals(frames={"tail": FrameGoal(way_of_a_hand())})),
            {"others": ("hand", "head")},
            "unknown frame 'tail'; known are .*hand.*, .*head",
        ),
        (
            lambda: Plan(goals=goals(frames={"hand": FrameGoal(way_of_a_hand(by_m=20.0))})),
            {"others": ("hand",)},
            "frame 'hand' would reach linear speed",
        ),
        (lambda: Plan(goals=goals(posture=Posture(["hip"], [0.0]))), {}, "lack joints 'knee'"),
        (
            lambda: Plan(goals=goals(posture=Posture(["hip", "knee", "toe"], [0, 0, 0]))),
            {},
            "unknown joint 'toe'",
        ),
        (lambda: Plan(goals=goals()), {"locked": ("hip",)}, "'hip', which is locked"),
        (
            lambda: Plan(goals=goals(posture=Posture(JOINTS, [0.0, 1.5]))),
            {},
            "joint 'knee' would reach position 1.5",
        ),
        (
            lambda: Plan(goals=goals({"left": path(velocities=np.full((3, 4), 20.0))})),
            {},
            "foot 'left' would reach linear speed",
        ),
        (
            lambda: Plan(
                goals=goals(
                    {"left": FootPath([0.1], np.zeros((1, 4)), [[0, 0, 0, 1e4]], np.zeros((1, 4)))}
                )
            ),
            {},
            "foot 'left' would reach angular speed",
        ),
        (
            lambda: Plan(goals=goals({"left": path(positions=np.full((3, 4), 1e5))})),
            {},
            "foot 'left' would go to 1e.05 m",
        ),
        (
            lambda: Plan(goals=goals(heading=Heading(0.0, 1e6))),
            {},
            "yaw rate of the goals is 1e.06",
        ),
        (
            lambda: Plan(goals=goals(com=ComGoal([0, 0], [0, 1e300], RATE, 0.8))),
            {},
            r"place of the goals is 1e\+300",
        ),
        (
            lambda: Plan(goals=goals(com=ComGoal([0, 0], [0, 0], 1e-300, 0.8))),
            {},
            "rate of the goals is 1e-300, must lie in",
        ),
        (
            lambda: Plan(goals=climbs(-40.0, 0.0)),
            {},
            "climb of the goals is 40, must lie in .0, 10",
        ),
        (lambda: Plan(goals=climbs(0.0, 400.0)), {}, "climb of the goals is 200, must"),
        (
            lambda: Plan(goals=climbs(9.0, -501.0)),
            {},
            "acceleration of the height of the goals is 501",
        ),
        (lambda: Plan(goals=climbs(-3.0, 0.0)), {}, "lowest height_m of the goals is -0.7, must"),
        (lambda: Plan(goals=climbs(-5.0, 12.5)), {}, "lowest height_m of the goals is -0.2, must"),
        (
            lambda: Plan(goals=climbs(9.0, -0.2, lasts_s=50.0)),
            {},
            "height_m of the goals is 203, must",
        ),
        (
            lambda: Plan(goals=goals(posture=Posture(JOINTS, [0, 0], [1e8, 1.0]))),
            {},
            "stiffness of the goals is 1e.08",
        ),
        (lambda: Plan(goals=goals(start_s=0.1)), {}, "planned goals end at 0.6"),
        (
            lambda: Plan(goals=goals()),
            {"takes_goals": False},
            "need base_feedback 'center_of_mass'",
        ),
        (
            lambda: Plan(
                JointTrajectory(JOINTS, [0.0], np.zeros((1, 2)), start_s=2.0), goals=goals()
            ),
            {},
            "not both: this one has goals and joints",
        ),
        (
            lambda: Plan(
                goals=goals(), contacts=ContactSchedule(["left"], [0.0], [[1.0]], start_s=2.1)
            ),
            {},
            "must begin together",
        ),
    ],
)
def test_plans_with_bad_goals_are_refused(plan, changes, words):
    given = followed(**changes)
    with pytest.raises(TrajectoryError, match=words):
        ready_to_follow(prepare(plan(), given), 2.0, given)


def test_goals_and_joints_end_each_other():
    course = Course(Robot(), 3)
    course.hold(np.zeros(9))
    reference, limits = np.zeros((3, 2)), followed()
    slow = JointTrajectory(JOINTS, [0.0, 1.0], np.ones((2, 2)), start_s=1.0)
    base = BaseTrajectory([0.0], np.zeros((1, 3)), [[0, 0, 0, 1]], *np.zeros((2, 1, 3)), 1.0)
    course.follow(Plan(slow, base))
    assert course.take(1.5, reference)
    course.follow(ready_to_follow(Plan(goals=goals()), 1.6, limits))
    course.take(1.7, reference)
    assert reference[0] == pytest.approx([1.0, 1.0])  # goals begin later
    assert course.take(2.1, reference)
    assert reference[0] == pytest.approx([-0.25, 0.5])
    assert course.joints.current is None
    assert course.base.current is None
    assert not course.copy().take(2.6, reference)
    later = JointTrajectory(JOINTS, [0.0, 1.0], np.ones((2, 2)), start_s=2.3)
    course.caught[:] = True
    course.follow(Plan(later))
    course.take(2.2, reference)
    assert reference[0] == pytest.approx([-0.25, 0.5])
    course.take(2.3, reference)
    assert reference[0] == pytest.approx([1.0, 1.0])
    assert course.goals.current is None
    assert not course.caught.any()


def test_schedule_waits_for_its_goals():
    parts = PlanParts()
    schedule = ContactSchedule(["left"], [0.0], [[1.0]], start_s=2.0)
    assert parts.join(Plan(contacts=schedule), 1.9) is None
    joined = parts.join(Plan(goals=goals()), 1.9)
    assert joined.contacts is schedule
    assert joined.goals is not None
    parts.note_outcome(joined, refused=True)
    with pytest.raises(TrajectoryError, match="joints or goals of this plan"):
        parts.join(Plan(contacts=schedule), 2.1)


def test_the_height_of_the_centre_of_mass_climbs_and_stays_where_the_goals_end():
    climbing = goals(com=ComGoal([0, 0], [0, 0], RATE, 0.8, [0.2, -0.6]))
    assert climbing.sample(2.3).height == pytest.approx([0.8 + 0.06 - 0.027, 0.2 - 0.18, -0.6])
    assert climbing.sample(3.0).height == pytest.approx([0.8 + 0.1 - 0.075, 0.0, 0.0])


def test_a_level_foot_has_no_slopes():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(3, 2, 4))
    level = FootPath([0.0, 0.2], *rows)
    sloping = FootPath([0.0, 0.2], *np.pad(rows, ((0, 0), (0, 0), (0, 2))))
    np.testing.assert_array_equal(level.points, sloping.points)
    assert not level.points[:, :, 4:].any()
