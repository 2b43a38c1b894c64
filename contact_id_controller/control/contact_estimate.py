"""Contact as an estimate: how likely each foot stands, and how high the ground under it is.

Evidence is added up as logarithms of odds: the plan, the distance to the ground as far as it is known, the force that
the leg's joints feel, and the foot's speed, for what touches slides little. The force of a foot follows from the joints
of its own leg, by what moved the robot besides its motors (``disturbance.unexplained``),

    r_leg = J_leg^T f,

low-passed: an impulse, so that a single period decides nothing. A sole is felt as a whole, force and moment, for its
corners share one leg.

Where the ground is as believed, and feet stand when they are planned to, contact is as by plan and distance: what is
felt is needed only where it contradicts.

- A foot that is felt above the ground, or below: the ground there is corrected to where it is.
- A foot that comes down and is felt, or is stopped and bears a little, before it is planned to stand, stands (*early*).
- A foot that is planned to stand, should carry and is not felt, does not stand (*late*): it comes down. If it does not,
  and bears a little, it stands.

The ground is the believed one and what it rises above that: under a foot as much as at its touchdown, elsewhere as much
as the plane through the last touchdowns of all feet. A sole has one height, that of its lowest corner: the others keep
their distances from it, for one that is in the air bears nothing. On soles the plan of the base rises with the ground;
with round feet the legs' plan counts more. Touchdowns from `SINKS_M` below to `AS_BELIEVED_M` above are as
believed, exactly. A foot that stands is never above the ground.

Source: Bledt et al., "Contact model fusion for event-based locomotion in unstructured environments", ICRA 2018, for
plan, height and force as odds; the correction of the ground is this module's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.control.disturbance import (
    LEVERLESS,
    LONGEST_S,
    SETTLED_S,
    unexplained,
)
from contact_id_controller.control.period import Period
from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
)
from contact_id_controller.kernels.spatial import middle_of, point_column

FELT_S = 0.003
"""Time constant of the felt force: some periods of a walking robot, as an impact takes."""
SINKS_M, AS_BELIEVED_M = 1e-3, 5e-5
"""Ground is as believed where it is lower by less, for feet sink a little, and where it is higher by less, or by less than
the foot moves from state to state. On ground that is higher no foot may be taken to be above it: it would get no force
until the robot has fallen as far."""
PLAN = 2.0
"""Odds, as a logarithm, that a foot does as planned."""
NEAR = 2.0
"""Odds that the ground being where it is expected speaks for a contact."""
FAR_M = 0.03
"""Standard deviation of the ground's height where it is not known."""
FORCE = 8.0
"""Odds that a force as large as an even share of the weight speaks for, less those that none speaks against."""
NO_FORCE = 3.0
"""Odds that no force speaks against a contact."""
SLIDES_M_S = 0.3
"""Standard deviation of the speed of a foot that has just touched."""
STANDS, PARTS = 2.0, -2.0
"""Odds from which on a contact begins, and below which it ends: a probability of .88, and of .12."""
MISSED_S = 0.02
"""A foot that lacks the force foreseen for so long, at an even share of the weight, does not stand."""
BLOCKED_S, BEARS = 0.01, 0.1
"""A foot that shall come down, does not and bears something stands after so long, at this part of an even share of
the weight or more: it cannot bear more than its leg is accelerated with."""
COMES, NOT_COMING = 0.5, -1.0
"""Share of its planned speed with which a swing comes down before the ground can stop it; ``blocked`` until it does."""
SLOWEST_M_S = 1e-3
LOADED = 0.3
"""Share of an even share of the weight that a foot carries at least where it shows how high the ground is."""
PARTED_M = 1e-4
"""A foot that has landed stands until it is farther away: a bounce is farther."""
ELSEWHERE_M = 3e-4
"""Rise at which the ground certainly differs from the model; half of it is no evidence."""
ROUGHEST_M = 0.05
"""Largest error that counts: late feet come down at the speed that it gives, and are not to be thrown down a stair."""
SMOOTHER = 0.8
"""Share of the largest error of a touchdown's expected height that is left after each further one: some strides."""
RELIEF_S = 1.0
"""Time constant of the mean of the largest rise. While heights differ from the model at all, it is unknown at first."""
NOISES = 3.0
"""A height is measured if it exceeds so many standard deviations of its noise."""
NOISE_S = 1.0
"""Time constant of the noise of heights, over some strides."""
LEAST_ARM_M = 0.02
"""Smallest standard deviation of the places of touchdowns in a direction for which a slope is learnt."""


@kernel
def _feel(period, elapsed, lasted):
    """Low-pass into ``pressure`` (n,) N the normal force at each foot that its leg's joints show, J_leg^T f = r_leg.

    A sole gives a force at its middle and a moment, which counts as forces at the distance of its corners.
    elapsed: since the last state, s; lasted: so long that what moved the robot meanwhile is known.
    Writes ``foot_speed`` (n, 3) m/s: the speed of each foot, with which the plan of the joints takes it down, and with
    which it comes down.
    """
    settings, J, v, rest = period.settings, period.jacobian, period.v, period.rest
    normals, reference, begins = period.normals, period.reference, settings.begins
    if lasted:
        unexplained(period, elapsed)
    gram, wrench, column = np.empty((6, 6)), np.empty(6), np.empty(6)
    speed, middle = np.empty(3), np.empty(3)
    for foot in range(begins.shape[0] - 1):
        i = begins[foot]
        reach = middle_of(period.points, i, begins[foot + 1], middle)
        size = 6 if reach > 0.0 else 3
        moves, down = settings.supports[settings.links[i]], 0.0
        fill(wrench, 0.0)
        fill(speed, 0.0)
        for a in range(size):
            fill(gram[a], 0.0)
        for k in range(v.shape[0]):
            if moves[k]:
                x, y, z = point_column(J, k, middle)
                speed[0] += x * v[k]
                speed[1] += y * v[k]
                speed[2] += z * v[k]
        for d in range(3):
            down -= normals[i, d] * speed[d]
        period.foot_speed[i, 2] = down
        for j in range(settings.actuated.shape[0]):
            k = settings.actuated[j]
            if not moves[k]:
                continue
            column[0], column[1], column[2] = point_column(J, k, middle)
            along = 0.0
            for d in range(3):
                column[3 + d] = reach * J[3 + d, k]
                along += normals[i, d] * column[d]
            down -= along * (reference[1, j] - v[k])
            for a in range(size):
                wrench[a] += column[a] * rest[k]
                for b in range(a + 1):
                    gram[a, b] += column[a] * column[b]
        period.foot_speed[i, 0] = np.sqrt(speed[0] ** 2 + speed[1] ** 2 + speed[2] ** 2)
        period.foot_speed[i, 1] = down
        if lasted and _solve_wrench(gram, size, wrench):
            along = 0.0
            for d in range(3):
                along += normals[i, d] * wrench[d]
            if abs(along) < np.inf:
                period.pressure[i] += (along - period.pressure[i]) * elapsed / (elapsed + FELT_S)


@kernel
def _solve_wrench(gram, size, wrench):
    """Solve (J J^T + LEVERLESS trace(J J^T)) f = J r for the foot's wrench f, the least squares of J^T f = r.

    Without the second term a leg without lever in some direction, such as a straight one, would give any force there.

    Args:
        gram: (6, 6), J J^T in its lower triangle; overwritten.
        size: 3, of a force (N), or 6, of a sole's force and moment.
        wrench: (6,), the first ``size``: J r in, f out.

    Returns False if the leg has no joint that feels it.
    """
    trace = 0.0
    for a in range(size):
        trace += gram[a, a]
    for a in range(size):
        gram[a, a] += LEVERLESS * trace
    if not cholesky(gram, size, 0.0):
        return False
    forward_substitute(gram, size, wrench)
    backward_substitute(gram, size, wrench)
    return True


@kernel
def _fit(period, slope):
    """Slopes (2,) of the plane through what the ground rises at the last touchdowns; whether it rises at all.

    None under soles: few feet on stones are no evidence of a slope, and each sole has its own.
    """
    places, n = period.touchdowns, period.touchdowns.shape[0]
    fill(slope, 0.0)
    known, risen = 0, False
    for i in range(n):
        if not np.isnan(places[i, 0]):
            known += 1
            risen = risen or places[i, 2] != 0.0
    if not risen or period.settings.soles:
        return risen
    mean = np.empty(3)
    _mean_touchdown(places, mean)
    xx = yy = known * LEAST_ARM_M**2
    xy = xz = yz = 0.0
    for i in range(n):
        if np.isnan(places[i, 0]):
            continue
        x, y, z = places[i, 0] - mean[0], places[i, 1] - mean[1], places[i, 2] - mean[2]
        xx += x * x
        xy += x * y
        yy += y * y
        xz += x * z
        yz += y * z
    determinant = xx * yy - xy * xy
    slope[0] = (xz * yy - yz * xy) / determinant
    slope[1] = (yz * xx - xz * xy) / determinant
    return True


@kernel
def _mean_touchdown(touchdowns, mean):
    """Mean (3,) of the places and rises of the last touchdowns; nothing where there is none."""
    known = 0
    fill(mean, 0.0)
    for i in range(touchdowns.shape[0]):
        if not np.isnan(touchdowns[i, 0]):
            known += 1
            for d in range(3):
                mean[d] += touchdowns[i, d]
    for d in range(3):
        mean[d] /= max(known, 1)


@kernel
def _take_ground(period, slope):
    """Correct gaps, normals and points by what is known of the ground; ``rise`` (n,) becomes that under each foot."""
    points, normals, gaps, rise = period.points, period.normals, period.gaps, period.rise
    touchdowns, settings, mean = period.touchdowns, period.settings, np.empty(3)
    begins, radii = settings.begins, settings.radii
    _mean_touchdown(touchdowns, mean)
    for foot in range(begins.shape[0] - 1):
        first = begins[foot]
        own = period.stands[first] and not np.isnan(touchdowns[first, 0])
        x, y, z = touchdowns[first] if own else mean
        for i in range(first, begins[foot + 1]):
            rise[i] = z + slope[0] * (points[i, 0] - x) + slope[1] * (points[i, 1] - y)
            up = normals[i, 2]
            a, b = normals[i, 0] / up - slope[0], normals[i, 1] / up - slope[1]
            size = np.sqrt(a * a + b * b + 1.0)
            new = (a / size, b / size, 1.0 / size)
            gaps[i] = (gaps[i] / up - rise[i]) * new[2]
            for d in range(3):
                points[i, d] += radii[i] * (normals[i, d] - new[d])
                normals[i, d] = new[d]


@kernel
def _nearest(gaps):
    """Distance of the foot that is nearest to the ground, m, above or below."""
    least = np.inf
    for i in range(gaps.shape[0]):
        least = min(least, abs(gaps[i]))
    return least


@kernel
def largest_rise(period):
    """Largest difference of the ground from what is believed under any contact, m, up or down."""
    highest = 0.0
    for i in range(period.rise.shape[0]):
        highest = max(highest, abs(period.rise[i]))
    return highest


@kernel
def estimate_contacts(time_s, lands, period):
    """Correct gaps and normals of a ``Period`` by what is felt, and find early and missed contacts.

    Args:
        time_s: of the state.
        lands: whether a schedule says which feet swing, so that they land by plan.
        period: its ``rise``, ``odds``, ``stands``, ``caught``, ``missed``, ``touchdowns``, ``relief``, ``changed_s``,
            ``points``, ``normals`` and ``gaps`` are written.
    """
    settings, gaps = period.settings, period.gaps
    elapsed = time_s - period.seen_s[0]
    first_state, lasted = period.seen_s[0] == -np.inf, 0.0 < elapsed <= LONGEST_S
    _feel(period, elapsed, lasted)
    believed, places, normals = gaps.copy(), period.points, period.normals
    slope = np.empty(2)
    fill(period.rise, 0.0)
    if _fit(period, slope):
        places, normals = places.copy(), normals.copy()
        _take_ground(period, slope)
        if first_state and _nearest(believed) < _nearest(gaps):
            # The robot, or what it calls its place, was moved: the ground was learnt elsewhere.
            assign(gaps, believed)
            period.points[:], period.normals[:] = places, normals
            period.rise[:], period.touchdowns[:] = 0.0, np.nan
    period.relief[0] += (largest_rise(period) - period.relief[0]) * settings.period_s / RELIEF_S
    elsewhere = largest_rise(period) > 0.0 and not settings.soles
    others = False  # whether other torques were sent than those that were decided
    for j in range(period.decided.shape[0]):
        others = others or period.commanded[j] != period.decided[j]
    begins = settings.begins
    for foot in range(begins.shape[0] - 1):
        first, last = begins[foot], begins[foot + 1]
        lowest = first
        for i in range(first, last):
            lowest = i if gaps[i] < gaps[lowest] else lowest
        _weigh(period, foot, gaps[lowest], lands, first_state, others, lasted, elsewhere)
        _learn_noise(period, first, believed[lowest], time_s, elapsed, lasted)
        moved = period.foot_speed[first, 0] * elapsed if lasted else 0.0
        height, stands = believed[lowest] / normals[lowest, 2], period.stands[first]
        loaded = period.pressure[first] > LOADED * settings.share_n or period.began[first]
        if last - first == 1:
            _learn_round(period, first, height, moved, loaded and not others, places[first])
        elif stands and loaded and not others:
            # Its force is felt late.
            moved = max(AS_BELIEVED_M, period.foot_speed[first, 0] * (elapsed + FELT_S))
            _learn_sole(period, first, last, height, moved, places[lowest])
        if period.began[first] or period.ended[first]:
            period.changed_s[first, 0 if stands else 1] = time_s
        for i in range(first + 1, last):
            _follow(period, i, first)


@kernel
def _follow(period, i, first):
    """What holds of the first contact of a sole holds of contact i, too."""
    period.pressure[i], period.odds[i] = period.pressure[first], period.odds[first]
    period.stands[i], period.caught[i] = period.stands[first], period.caught[first]
    period.missed[i], period.left[i] = period.missed[first], period.left[first]
    period.began[i], period.ended[i] = period.began[first], period.ended[first]
    for d in range(2):
        period.changed_s[i, d] = period.changed_s[first, d]
    for d in range(3):
        period.foot_speed[i, d] = period.foot_speed[first, d]


@kernel
def _learn_noise(period, i, gap, time_s, elapsed, lasted):
    """Low-pass the variance of the noise of heights into ``height_noise`` (1,) m2: half the squared change at rest.

    gap: of the lowest contact of the foot whose first one is i, from the believed ground, m; elapsed: since the last
    state, s; lasted: whether that is a period; time_s: of the state.
    """
    settled = time_s - period.changed_s[i, 0] > SETTLED_S
    loaded = period.pressure[i] > LOADED * period.settings.share_n
    if lasted and period.stands[i] and settled and loaded:
        apart = gap - period.height[i]
        noise = period.height_noise
        noise[0] += (0.5 * apart * apart - noise[0]) * elapsed / NOISE_S
    period.height[i] = gap


@kernel
def _learn_round(period, i, height, moved, tells, place):
    """Rise of the ground under round foot i, which is ``height`` m above the believed one at a place (3,), m.

    moved: how far it has moved since the last state, m: it may be as high by that.  tells: loaded, by known torques.
    """
    stands = period.stands[i]
    rise, known = height, -SINKS_M <= height <= max(AS_BELIEVED_M, moved)
    if known and period.rise[i] == 0.0:
        rise = 0.0
    if period.began[i]:
        error = min(abs(rise - period.rise[i]), ROUGHEST_M)
        period.rough[0] = max(error, SMOOTHER * period.rough[0])
    if stands and tells and (rise != 0.0 or period.began[i]):
        period.touchdowns[i, 0], period.touchdowns[i, 1] = place[0], place[1]
        period.touchdowns[i, 2] = 0.0 if known else rise
        period.rise[i] = rise
    # Where the ground is as modelled, one that bears little and is farther away than noise has bounced.
    bears = period.began[i] or period.pressure[i] > LOADED * period.settings.share_n
    near = period.gaps[i] <= max(PARTED_M, NOISES * np.sqrt(period.height_noise[0]))
    if stands and (period.rise[i] != 0.0 or (period.gaps[i] > 0.0 and (bears or near))):
        period.gaps[i] = 0.0


@kernel
def _learn_sole(period, first, last, height, moved, place):
    """Rise of the ground under a sole, of which the lowest corner is ``height`` m above the believed one at a place (3,).

    A corner that bears is on the ground, or sinks: the ground is there, or higher by at most ``SINKS_M``. Within that
    it stays where it was, for what sole and ground give changes with the load. It is lower only where the sole rests:
    one that is thrown down is 3 mm in the ground for some ms. The other corners are as far from it as the sole says;
    one that is in the air bears nothing.

    first, last: its contacts, first to last - 1.  moved: higher by so much, m, it may be lifting off.
    """
    before = period.rise[first]
    rise, rests = before, moved <= AS_BELIEVED_M
    if height > before + moved or (rests and height < before - SINKS_M):
        rise = height
    for i in range(first, last):
        period.gaps[i] -= (rise - before) * period.normals[i, 2]
        period.rise[i] = rise
    period.touchdowns[first, 0], period.touchdowns[first, 1] = place[0], place[1]
    period.touchdowns[first, 2] = rise


@kernel
def _weigh(period, foot, gap, lands, first_state, others, lasted, elsewhere):
    """Odds of the contact of a foot, at its first one, and what follows: whether it stands, and early, or is missed.

    gap: of its lowest contact, m.
    lands: a schedule says which feet swing.  others: other torques were sent than those that were decided.
    lasted: the force since the last state is known; otherwise no foot is missed.  elsewhere: the ground is not where it
    is believed to be, under round feet.
    """
    settings = period.settings
    i, last = settings.begins[foot], settings.begins[foot + 1]
    pressure, speed, share = period.pressure[i], period.foot_speed[i, 0], settings.share_n
    planned, force, contact = period.planned[i], 0.0, False
    for k in range(i, last):
        force += period.forces[k, 2]
        contact = contact or period.contact[k]
    off = max(abs(gap) - settings.contact_gap_m, 0.0) / FAR_M
    total = PLAN if planned else -PLAN
    falls = lands and period.left[i] and period.foot_speed[i, 1] > 0.0
    if not planned and (falls or period.caught[i]) and elsewhere:
        total = 0.0  # where the ground is elsewhere no plan knows when a foot lands
    total += min(FORCE * pressure / share, FORCE) - NO_FORCE
    total += NEAR if off == 0.0 and (planned or period.caught[i]) else -0.5 * off * off
    total -= 0.5 * min((speed / SLIDES_M_S) ** 2, 9.0)
    period.odds[i] = total
    stood = period.stands[i]
    down = settings.touchdown_speed_m_s if planned else period.foot_speed[i, 1]
    if stood or not lasted:
        period.blocked[i] = 0.0
    elif not planned and not (falls and elsewhere):
        period.blocked[i] = NOT_COMING
    elif not others:
        fast, comes = max(down, settings.touchdown_speed_m_s, SLOWEST_M_S), period.foot_speed[i, 2]
        stopped = (down - comes) / fast
        if not planned:
            stopped = min(stopped, 1.0)
        # Until a swing comes down, it is its leg that lags, not the ground that stops it.
        if planned or comes > COMES * fast:
            period.blocked[i] = max(period.blocked[i], 0.0)
        if period.blocked[i] >= 0.0:
            bears = min(max(pressure, 0.0) / (BEARS * share), 1.0)
            period.blocked[i] = max(period.blocked[i] + bears * stopped * settings.period_s, 0.0)
    felt = total > STANDS or (stood and total > PARTS) or period.blocked[i] > BLOCKED_S
    if first_state and planned and not lands and abs(gap) < 3.0 * FAR_M:
        felt = True
    # A foot that has not left the ground since its stance is no early one.
    if planned:
        period.left[i] = False
    elif total < PARTS and gap > settings.contact_gap_m:
        period.left[i] = True
    # Where the ground is as high as expected, the plan lands in a moment.
    early = felt and not planned and period.left[i]
    begins = lands and off > 0.0 and period.foot_speed[i, 1] > 0.0
    period.caught[i] = early and (period.caught[i] or begins)
    stands = felt and (planned or period.caught[i])
    # One that should carry and does not.
    if not planned or not lasted or pressure > LOADED * share:
        period.lack[i], period.missed[i] = 0.0, False
    elif contact and not others:
        lacking = min(force, share) - max(pressure, 0.0)
        period.lack[i] = max(period.lack[i] + lacking / share * settings.period_s, 0.0)
        period.missed[i] = period.missed[i] or period.lack[i] > MISSED_S
    stands = stands and not period.missed[i]
    period.began[i], period.ended[i] = stands and not stood, stood and not stands
    period.stands[i] = stands


@kernel
def mean_rise(touchdowns):
    """How much higher than believed the ground is where feet touched down last, m; touchdowns (n, 3): of a ``Period``."""
    mean = np.empty(3)
    _mean_touchdown(touchdowns, mean)
    return mean[2]


def forget_contacts(period: Period) -> None:
    """Nothing was felt, and the ground is as believed."""
    for numbers in (
        period.pressure,
        period.odds,
        period.rise,
        period.lack,
        period.blocked,
        period.height,
    ):
        numbers[:] = 0.0
    for flags in (period.stands, period.caught, period.missed, period.left):
        flags[:] = False
    period.height_noise[:], period.relief[:], period.rough[:] = 0.0, ELSEWHERE_M, 0.0
    period.touchdowns[:] = np.nan
    period.changed_s[:] = -np.inf


def contact_room(contacts: int) -> dict[str, NDArray[np.generic]]:
    """The arrays of a ``Period`` that the estimate works on, by name."""
    flags = ("stands", "caught", "missed", "left")
    numbers = ("pressure", "odds", "lack", "blocked", "height")
    return {
        **{name: np.zeros(contacts) for name in numbers},
        **{name: np.zeros(contacts, dtype=bool) for name in flags},
        "height_noise": np.zeros(1),
        "relief": np.full(1, ELSEWHERE_M),
        "rough": np.zeros(1),
        "touchdowns": np.full((contacts, 3), np.nan),
        "changed_s": np.full((contacts, 2), -np.inf),
        "began": np.zeros(contacts, dtype=bool),
        "ended": np.zeros(contacts, dtype=bool),
        "foot_speed": np.zeros((contacts, 3)),
    }
