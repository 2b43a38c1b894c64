"""The step program: judged by quadprog, by the pendulum's differential equation, and by closed forms."""

import math

import numpy as np
import pytest
import quadprog
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

from contact_id_controller.planning.walking.feet import Footing, Swing, SwingShape
from contact_id_controller.planning.walking.program import landing_within, next_landing
from contact_id_controller.planning.walking.program_kernels import best_landing
from contact_id_controller.planning.walking.step_rules import Rules, Situation, Weights

NOTHING = np.zeros((0, 2)), np.zeros(0)
ANYWHERE = np.full(2, np.nan)


def turned(yaw):
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s], [s, c]])


def a_biped(**changes):
    values = dict(
        rate=3.5,
        swing_s=0.4,
        double_s=0.1,
        offset=np.array([0.0, 0.2]),
        reach=np.array([0.5, 0.4]),
        width=np.array([0.14, 0.45]),
        sole=np.array([0.06, 0.03]),
        foot_speed=2.0,
        foot_acceleration=40.0,
        slack_m=0.005,
        settle_s=0.02,
        leg_m=np.inf,
        hips=np.array([[0.0, 0.09], [0.0, -0.09]]),
    )
    return Rules(**{**values, **changes})


def box(center, half, yaw=0.0):
    """A turned rectangle as normals and bounds."""
    normals = np.vstack([turned(yaw).T, -turned(yaw).T])
    return normals, normals @ center + np.array([*half, *half])


def a_situation(rules, **changes):
    feet = np.array([[0.0, 0.1], [0.0, -0.1]])
    normals, bounds = box(feet[0], (0.08, 0.05))
    values = dict(
        com=np.zeros(2),
        speed=np.zeros(2),
        feet=feet,
        carry=0,
        both=False,
        heading=0.0,
        turn=0.0,
        velocity=np.zeros(2),
        hull_normals=normals,
        hull_bounds=bounds,
        area_normals=NOTHING[0],
        area_bounds=NOTHING[1],
        aloft=np.full((2, 2), np.nan),
        previous=ANYWHERE,
        nominal_s=rules.swing_s,
        left_s=rules.swing_s,
    )
    return Situation(**{**values, **changes})


# The same program in plain numpy: costs and slacks as functions of z, their matrices by evaluation


def xi_ahead(rules, now, first_s, z):
    """xi where the fourth stance begins, phase by phase."""
    w = rules.rate
    p0, u1, d1, u2, d2, u3 = z
    xi = now.com + now.speed / w

    def hold(xi, p, s):
        return p + math.exp(w * s) * (xi - p)

    def shift(xi, a, b, s):
        grown = math.exp(w * s)
        part = (grown - 1.0) / (w * s) - 1.0 if s > 1e-6 else 0.0
        return grown * xi - (grown - 1.0 - part) * a - part * b

    xi = hold(xi, p0, first_s)
    if not now.both:
        xi = shift(xi, p0, u1 + d1, rules.double_s)
    xi = shift(hold(xi, u1 + d1, rules.swing_s), u1 + d1, u2 + d2, rules.double_s)
    return shift(hold(xi, u2 + d2, rules.swing_s), u2 + d2, u3, rules.double_s)


def headings_of(rules, now):
    """When u1, u2, u3 and the foot after them land, rad."""
    cycle_s = rules.swing_s + rules.double_s
    begin_s = now.left_s - rules.double_s if now.both else now.left_s
    return [now.heading + now.turn * (begin_s + k * cycle_s) for k in range(4)]


def steps_of(rules, now):
    """Usual steps from u0 to u1 (nothing where both stand), u1 to u2, u2 to u3, u3 to the next one."""
    drift = now.velocity * (rules.swing_s + rules.double_s)
    away = rules.offset * (1.0 if now.carry == 1 else -1.0)
    signs = (0.0, 1.0, -1.0, 1.0) if now.both else (1.0, -1.0, 1.0, -1.0)
    turns = headings_of(rules, now)
    steps = [sign * turned(yaw) @ away for sign, yaw in zip(signs, turns, strict=True)]
    drifts = [turned(yaw - now.heading) @ drift for yaw in turns]
    if now.both:
        drifts[0] = np.zeros(2)
    together = [step + way for step, way in zip(steps, drifts, strict=True)]
    return together[:3], (steps[3], drifts[3])


def residuals(rules, weights, now, first_s, z):
    """What is squared and summed."""
    p0, u1, d1, u2, d2, u3 = z
    steps, (away, drift) = steps_of(rules, now)
    w, here = rules.rate, now.feet[now.carry]
    grown = math.exp(w * (rules.double_s + rules.swing_s))
    part = (math.exp(w * rules.double_s) - 1.0) / (w * rules.double_s) if rules.double_s else 1.0
    # xi - u before each step is A step + B drift, turned with it: the shift adds what the next one lacks.
    turn = turned(now.turn * (rules.double_s + rules.swing_s))
    end = part * np.linalg.solve(grown * np.eye(2) + turn, away)
    end += part * np.linalg.solve(grown * np.eye(2) - turn, drift)
    usual = now.feet.mean(axis=0) if now.both else here
    terms = [
        (weights.shift, d1),
        (weights.shift, d2),
        (weights.pressure, p0 - usual),
        (weights.step, u1 - here - steps[0]),
        (weights.later, u2 - u1 - steps[1]),
        (weights.later, u3 - u2 - steps[2]),
        (weights.end, xi_ahead(rules, now, first_s, z) - u3 - end),
    ]
    if not (now.both or np.isnan(now.previous[0])):
        terms.append((weights.keep, u1 - now.previous))
    return np.concatenate([math.sqrt(weight) * term for weight, term in terms])


def slacks(rules, now, first_s, legs, z):
    """What must not be negative."""
    p0, u1, d1, u2, d2, u3 = z
    back = turned(now.heading).T
    here, out = now.feet[now.carry], [now.hull_bounds - now.hull_normals @ p0]
    sole = np.maximum(rules.sole, 1e-4)
    for shift in (d1, d2):
        out += [sole - back @ shift, sole + back @ shift]
    size = np.linalg.norm(rules.offset)
    along = rules.offset / size if size else np.array([0.0, 1.0])
    across = np.array([along[1], -along[0]])
    lands = now.carry if now.both else 1 - now.carry
    steps = [u2 - u1, u3 - u2]
    if now.both:
        lands = 1 - lands
    else:
        steps = [u1 - here, *steps]
    for k, step in enumerate(steps):
        left, yaw = (lands + k) % 2 == 0, headings_of(rules, now)[k + (1 if now.both else 0)]
        own = turned(yaw).T @ step
        x, y = across @ own, (1.0 if left else -1.0) * (along @ own)
        out += [[rules.reach[0] - x, x + rules.reach[1], rules.width[1] - y, y - rules.width[0]]]
    out.append(now.area_bounds - now.area_normals @ (u2 if now.both else u1))
    if not (now.both or np.isnan(now.aloft[0, 0])):
        moves_s = max(first_s - rules.settle_s, 0.4 * first_s)
        most, speed = rules.foot_acceleration, back @ now.aloft[1]
        by_peak = np.maximum(most * moves_s**2 - speed**2 / most, 0.0) / 5.8
        far = np.minimum(rules.foot_speed * moves_s, by_peak)
        at = now.aloft[0] + 0.5 * moves_s * now.aloft[1]
        way, low, high = back @ (u1 - at), -far, far
        if first_s >= now.left_s and not np.isnan(now.previous[0]):
            led = back @ (now.previous - at)
            low, high = np.minimum(low, led), np.maximum(high, led)
        out += [high + rules.slack_m - way, way - low + rules.slack_m]
    if legs:
        com, speed = along_the_pendulum(rules.rate, now.com, now.speed, p0, first_s)
        if now.both:
            com, _ = along_the_pendulum(rules.rate, com, speed, u1 + d1, rules.swing_s)
        next_one = u2 if now.both else u1
        angles = 2.0 * np.pi * np.arange(8) / 8
        edges = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        radius = rules.leg_m * math.cos(math.pi / 8)
        for foot, group in ((next_one, 1 - now.carry), (here, now.carry)):
            out.append(radius - edges @ (foot - com - turned(now.heading) @ rules.hips[group]))
    return np.concatenate(out)


def along_the_pendulum(rate, com, speed, p, s):
    """Centre of mass and its velocity after s with the centre of pressure at p."""
    ch, sh = math.cosh(rate * s), math.sinh(rate * s)
    return p + ch * (com - p) + sh * speed / rate, rate * sh * (com - p) + ch * speed


def matrix_of(affine):
    """(M, m): affine(z) = M z + m, z (6, 2)."""
    start = affine(np.zeros((6, 2)))
    rows = [affine(np.eye(12)[k].reshape(6, 2)) - start for k in range(12)]
    return np.array(rows).T, start


def judged(rules, weights, now, first_s, legs=False):
    """Cost and z (6, 2) by quadprog; infinite where nothing is feasible."""
    J, r = matrix_of(lambda z: residuals(rules, weights, now, first_s, z))
    C, c = matrix_of(lambda z: slacks(rules, now, first_s, legs, z))
    equal = 0
    if now.both:
        E, e = matrix_of(lambda z: z[1] - now.feet[now.carry])
        C, c, equal = np.vstack([E, C]), np.concatenate([e, c]), 2
    try:
        z = quadprog.solve_qp(J.T @ J, -J.T @ r, C.T, -c, equal)[0]
    except ValueError:
        return math.inf, None
    time = (
        weights.time * (first_s - now.nominal_s) ** 2 + weights.stay * (first_s - now.left_s) ** 2
    )
    return float(np.sum((J @ z + r) ** 2)) + time, z.reshape(6, 2)


def random_problem(rng):
    rate = rng.uniform(3.0, 6.0)
    rules = a_biped(
        rate=rate,
        swing_s=rng.uniform(1.0, 2.0) / rate,
        double_s=rng.choice([0.0, rng.uniform(0.1, 0.5) / rate]),
        offset=rng.choice([[0.0, 0.2], [0.26, 0.0], [0.0, 0.0]]),
        width=np.sort(rng.uniform(-0.1, 0.5, 2)),
        sole=rng.choice([0.0, 1.0]) * np.array([0.06, 0.03]),
        foot_acceleration=40.0 if rate > 4.0 else 3.0,
        leg_m=rng.uniform(0.3, 0.6),
    )
    yaw, carry, both = rng.uniform(-3.0, 3.0), int(rng.integers(2)), bool(rng.integers(2))
    middle, apart = rng.normal(size=2), turned(yaw) @ (rules.offset + 0.05 * rng.normal(size=2))
    feet = np.array([middle + 0.5 * apart, middle - 0.5 * apart])
    where = middle if both else feet[carry]
    normals, bounds = box(where, rng.uniform(0.01, 0.1, 2), yaw + rng.normal())
    aloft = np.array([feet[1 - carry] + 0.1 * rng.normal(size=2), rng.normal(size=2)])
    previous = feet[1 - carry] + 0.1 * rng.normal(size=2) if rng.integers(2) else ANYWHERE
    area = box(feet[1 - carry], (0.2, 0.2), rng.normal()) if rng.integers(4) == 0 else NOTHING
    return rules, a_situation(
        rules,
        com=where + 0.05 * rng.normal(size=2),
        speed=0.2 * rng.normal(size=2),
        feet=feet,
        carry=carry,
        both=both,
        heading=yaw,
        turn=rng.choice([0.0, rng.uniform(-1.0, 1.0)]),
        velocity=0.3 * rng.normal(size=2),
        hull_normals=normals,
        hull_bounds=bounds,
        area_normals=area[0],
        area_bounds=area[1],
        aloft=aloft if rng.integers(2) else np.full((2, 2), np.nan),
        previous=previous,
        left_s=rng.uniform(0.1, 0.5),
    )


def test_a_thousand_programs_are_those_of_quadprog():
    rng, weights, solved = np.random.default_rng(5), Weights(), 0
    for _ in range(1000):
        rules, now = random_problem(rng)
        first_s, legs = rng.uniform(0.0, 2.0) / rules.rate, bool(rng.integers(2))
        z = np.full(12, np.nan)
        number, cost = best_landing(
            tuple(rules), tuple(weights), tuple(now), np.array([first_s]), legs, z
        )
        expected, there = judged(rules, weights, now, first_s, legs)
        assert (number == 0) == (expected < math.inf)
        if number == 0:
            solved += 1
            assert np.abs(z.reshape(6, 2) - there).max() < 1e-8
            assert cost == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert 300 < solved < 950  # both kinds were asked


def test_the_cheapest_of_nine_times_is_taken():
    rng, weights = np.random.default_rng(6), Weights()
    for _ in range(30):
        rules, now = random_problem(rng)
        rules = rules._replace(leg_m=math.inf)
        times = np.linspace(0.05, 0.6, 9)
        costs = [judged(rules, weights, now, first_s)[0] for first_s in times.tolist()]
        landing = next_landing(rules, weights, now, times)
        if landing is None:
            assert min(costs) == math.inf
        else:
            assert landing.after_s == times[np.argmin(costs)]
            assert landing.cost == pytest.approx(min(costs), rel=1e-8)


# Closed forms


@pytest.mark.parametrize("both", [False, True])
def test_xi_ahead_is_that_of_the_differential_equation(both):
    """What both programs say of xi, against the pendulum integrated with p linear in time."""
    rules = a_biped()
    now = a_situation(rules, com=np.array([0.02, 0.03]), speed=np.array([0.1, -0.2]), both=both)
    z = 0.1 * np.random.default_rng(1).normal(size=(6, 2))
    first_s, double_s, swing_s = 0.23, rules.double_s, rules.swing_s
    p0, p1, p2, p3 = z[0], z[1] + z[2], z[3] + z[4], z[5]
    phases = [(first_s, p0, p0), (swing_s, p1, p1), (double_s, p1, p2)]
    if not both:
        phases.insert(1, (double_s, p0, p1))
    phases += [(swing_s, p2, p2), (double_s, p2, p3)]
    xi = now.com + now.speed / rules.rate
    for lasts_s, a, b in phases:
        xi = solve_ivp(
            lambda t, x, a=a, b=b, s=lasts_s: rules.rate * (x - a - (b - a) * t / s),
            (0.0, lasts_s),
            xi,
            rtol=1e-11,
            atol=1e-12,
        ).y[:, -1]
    assert xi_ahead(rules, now, first_s, z) == pytest.approx(xi, abs=1e-8)


@pytest.mark.parametrize("velocity", [(0.0, 0.0), (0.4, 0.0), (-0.2, 0.1), (0.3, -0.1)])
@pytest.mark.parametrize("double_s", [0.0, 0.1])
def test_undisturbed_it_walks_the_periodic_orbit(velocity, double_s):
    """From the orbit every step is the usual one, at the usual time, and xi is on the orbit again after two."""
    rules, weights = a_biped(double_s=double_s), Weights()
    cycle_s, swing = rules.swing_s + double_s, np.exp(rules.rate * rules.swing_s)
    drift, away = np.array(velocity) * cycle_s, -rules.offset
    E = np.exp(rules.rate * double_s)
    G = (E - 1.0) / (rules.rate * double_s) - 1.0 if double_s else 0.0

    # The orbit by its own equation: offsets a of the left and b of the right stance, a fixed point of two steps.
    def after(offset, step):
        return E * swing * offset + (1.0 - E + G) * 0.0 - G * step - step

    M, m = np.zeros((4, 4)), np.zeros(4)
    first, second = away + drift, -away + drift
    M[:2, :2], M[:2, 2:] = E * swing * np.eye(2), -np.eye(2)
    M[2:, 2:], M[2:, :2] = E * swing * np.eye(2), -np.eye(2)
    m[:2], m[2:] = (1.0 + G) * first, (1.0 + G) * second
    a, b = np.linalg.solve(M, m).reshape(2, 2)
    assert after(a, first) == pytest.approx(b, abs=1e-12)
    feet = np.array([[0.0, 0.1], [0.0, -0.1]])
    now = a_situation(rules, com=feet[0] + a, feet=feet, velocity=np.array(velocity))
    times = np.append(np.linspace(0.25, 0.6, 8), rules.swing_s)
    landing = next_landing(rules, weights, now, times)
    assert landing.after_s == rules.swing_s and landing.cost < 1e-18
    assert landing.pressure == pytest.approx(feet[0], abs=1e-9)
    assert landing.footholds[0] == pytest.approx(feet[0] + first, abs=1e-9)
    assert landing.footholds[1] == pytest.approx(feet[0] + first + second, abs=1e-9)


def test_a_shift_of_weight_that_takes_no_time_is_the_limit_of_short_ones():
    weights, places = Weights(), []
    for double_s in (1e-4, 1e-5, 0.0):
        rules = a_biped(double_s=double_s)
        now = a_situation(rules, speed=np.array([0.3, 0.1]))
        places.append(next_landing(rules, weights, now, np.array([0.4])).footholds)
    assert np.abs(places[1] - places[2]).max() < 0.2 * np.abs(places[0] - places[2]).max()
    assert np.abs(places[1] - places[2]).max() < 1e-4


@pytest.mark.parametrize("push", [(0.0, 0.0), (0.35, 0.0), (-0.3, -0.1), (0.1, 0.2)])
def test_with_fixed_pressure_it_steps_as_khadivs_closed_form(push):
    """A point foot, one time, one step ahead: between the usual foothold and u0 + (xi - u0) e^{w T} - b."""
    far = np.array([9.0, 9.0])
    rules = a_biped(
        double_s=0.0, sole=np.zeros(2), reach=far, width=np.array([-9.0, 9.0]), foot_speed=99.0
    )
    weights = Weights(
        pressure=1.0, shift=1e8, later=1e8
    )  # one step ahead: the later ones are fixed
    feet = np.array([[0.0, 0.1], [0.0, -0.1]])
    hull = box(feet[0], (1e-9, 1e-9))
    now = a_situation(
        rules,
        com=feet[0] + [0.0, -0.05],
        speed=np.array(push),
        feet=feet,
        hull_normals=hull[0],
        hull_bounds=hull[1],
    )
    T, w = 0.35, rules.rate
    grown = math.exp(w * rules.swing_s)
    b = rules.offset / (1.0 + grown)
    deadbeat = feet[0] + (now.com + now.speed / w - feet[0]) * math.exp(w * T) - b
    share = weights.end * grown**4 / (weights.step + weights.end * grown**4)
    expected = share * deadbeat + (1.0 - share) * (feet[0] - rules.offset)
    landing = next_landing(rules, weights, now, np.array([T]))
    assert landing.footholds[0] == pytest.approx(expected, abs=1e-6)


# Infeasible, and what is given up


def test_a_fast_foot_needs_time_to_stop():
    """From 2 m/s in .05 s: 40 m/s^2 for nothing but to stop, so it cannot be led on to where it would be otherwise."""
    rules, weights = a_biped(), Weights()
    rules = rules._replace(foot_acceleration=40.0, settle_s=0.0, slack_m=0.0)
    u0, way = a_situation(rules).feet[1], 0.5 * 0.05 * 2.0
    for xi, way_x in ((0.3, way), (-0.1, way)):  # wherever the motion would have it
        aloft = np.array([u0, [2.0, 0.0]])
        now = a_situation(rules, com=np.array([xi, 0.05]), aloft=aloft)
        landing = next_landing(rules, weights, now, np.array([0.05]))
        assert landing.footholds[0][0] == pytest.approx(u0[0] + way_x, abs=1e-6)


def test_a_foot_on_its_way_lands_in_its_time():
    """At the end of its reach and of its time it brakes already: G1, pushed by .5 m/s, landed .07 s late, and fell."""
    rules, weights = a_biped(), Weights()
    here, lands_s = a_situation(rules).feet[1], 0.25
    goal = np.array([rules.reach[0], here[1]])
    shape = SwingShape(0.06, 0.1, rules.settle_s)
    swing = Swing(shape, 0.0, np.array([*here, 0.0]), 0.0, lands_s)
    swing.aim(0.0, lands_s, goal, 0.0, Footing(0.0))
    for now_s in np.arange(0.05, lands_s - 0.03, 0.01):
        left_s = lands_s - now_s
        aloft = swing.at(now_s)[:2, :2]
        now = a_situation(rules, aloft=aloft, previous=goal, left_s=left_s)
        assert next_landing(rules, weights, now, np.array([left_s])) is not None


def test_what_cannot_be_is_said():
    rules, weights = a_biped(), Weights()
    far = np.array([[0.0, 2.0], [0.0, 0.0]])  # the foot aloft cannot get there
    assert next_landing(rules, weights, a_situation(rules, aloft=far), np.array([0.3])) is None
    nowhere = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-0.1, -0.1])
    empty = a_situation(rules, area_normals=nowhere[0], area_bounds=nowhere[1])
    assert next_landing(rules, weights, empty, np.array([0.3])) is None
    assert next_landing(rules, weights, a_situation(rules), np.zeros(0)) is None


def test_a_foothold_lies_in_its_area():
    rules, weights = a_biped(), Weights()
    stone = box(np.array([0.25, -0.15]), (0.05, 0.04), 0.3)
    now = a_situation(rules, area_normals=stone[0], area_bounds=stone[1])
    u1 = next_landing(rules, weights, now, np.array([0.4])).footholds[0]
    assert (stone[0] @ u1 - stone[1]).max() < 1e-9
    free = next_landing(rules, weights, a_situation(rules), np.array([0.4])).footholds[0]
    assert (stone[0] @ free - stone[1]).max() > 0.05


def test_legs_that_are_short_land_sooner_or_are_given_up():
    rules, weights = a_biped(leg_m=0.22), Weights(time=50.0)
    fast = a_situation(rules, com=np.array([0.05, 0.06]), speed=np.array([0.45, 0.0]))
    times = np.linspace(0.05, 0.6, 12)
    long = next_landing(rules._replace(leg_m=np.inf), weights, fast, times)
    short = next_landing(rules, weights, fast, times)
    assert landing_within(True, rules, weights, fast, times).after_s == short.after_s < long.after_s
    com, _ = along_the_pendulum(rules.rate, fast.com, fast.speed, short.pressure, short.after_s)
    assert np.linalg.norm(short.footholds[0] - com - rules.hips[1]) < 0.22
    tiny = rules._replace(leg_m=0.01)
    assert landing_within(True, tiny, weights, fast, times) is None
    assert next_landing(tiny, weights, fast, times) is not None


# Captured


def can_be_captured(rules, xi, grown=1.0):
    """Whether some steps at the candidates' times bring xi into the third sole: a linear program each.

    Stance on the left at the origin of the situation; xi is scaled about that sole's middle.
    """
    feet = a_situation(rules).feet
    xi = feet[0] + grown * (xi - feet[0])
    for T in (0.25, 0.4, 0.6):
        now = a_situation(rules, com=xi, aloft=np.array([feet[1], np.zeros(2)]))
        C, c = matrix_of(lambda z, now=now, T=T: slacks(rules, now, T, False, z))
        X, x = matrix_of(lambda z, now=now, T=T: xi_ahead(rules, now, T, z) - z[5])
        half = np.array([*rules.sole, *rules.sole])
        X, x = np.vstack([X, -X]), np.concatenate([x, -x])
        A, b = np.vstack([-C, X]), np.concatenate([c, half - x])
        if linprog(np.zeros(12), A, b, bounds=(None, None)).status == 0:
            return True
    return False


def captured(rules, weights, xi):
    """Steps of the pendulum, replanned every 20 ms, until xi lies in the rectangle around both feet; 9: never."""
    now = a_situation(rules, com=xi)
    feet, carry, xi = now.feet.copy(), 0, xi.copy()
    aloft = np.array([feet[1], np.zeros(2)])
    elapsed_s, left_s, steps = 0.0, rules.swing_s, 0
    while steps < 3:
        hull = box(feet[carry], (0.08, 0.05))
        nominal_s = max(rules.swing_s - elapsed_s, 0.0)
        now = now._replace(
            com=xi,
            feet=feet,
            carry=carry,
            hull_normals=hull[0],
            hull_bounds=hull[1],
            nominal_s=nominal_s,
            left_s=left_s,
            aloft=aloft,
        )
        times = np.append(np.linspace(0.25, 0.6, 8) - elapsed_s, left_s)
        landing = next_landing(rules, weights, now, times[times > 0.02])
        if landing is None:
            return None if steps == 0 and elapsed_s == 0.0 else 9
        lasts_s = min(0.02, landing.after_s)
        # The foot moves along its quintic from where it is.
        aloft = aloft_after(aloft, landing.footholds[0], landing.after_s, lasts_s)
        xi = landing.pressure + math.exp(rules.rate * lasts_s) * (xi - landing.pressure)
        elapsed_s, left_s = elapsed_s + lasts_s, landing.after_s - lasts_s
        if left_s < 0.021:
            u1, s = landing.footholds[0], left_s
            xi = landing.pressure + math.exp(rules.rate * s) * (xi - landing.pressure)
            grown = math.exp(rules.rate * rules.double_s)
            part = (grown - 1.0) / (rules.rate * rules.double_s) - 1.0
            xi = grown * xi - (grown - 1.0 - part) * landing.pressure - part * u1
            feet[1 - carry], carry = u1, 1 - carry
            elapsed_s, left_s, steps = 0.0, rules.swing_s, steps + 1
            aloft = np.array([feet[1 - carry], np.zeros(2)])
            middle, half = feet.mean(axis=0), 0.5 * np.abs(feet[0] - feet[1])
            if (np.abs(xi - middle) < half + [0.1, 0.06]).all():
                return steps
    return 9


def aloft_after(aloft, goal, whole_s, s):
    """Place and velocity on the cubic from here to rest at the goal."""
    x, v = aloft
    h = whole_s
    u = s / h
    a = goal - x
    b, c = 3.0 * a - 2.0 * v * h, -2.0 * a + v * h
    return np.array([x + v * h * u + b * u**2 + c * u**3, v + (2.0 * b * u + 3.0 * c * u**2) / h])


def test_what_can_be_captured_is_captured_within_three_steps():
    rules, weights, rng = a_biped(), Weights(), np.random.default_rng(8)
    held = lost = 0
    for _ in range(80):
        xi = np.array([0.0, 0.1]) + rng.uniform(-1.0, 1.0, 2) * [0.35, 0.25]
        if can_be_captured(rules, xi, 1.0 / 0.9):
            held += 1
            assert captured(rules, weights, xi) in (1, 2, 3), xi
        else:
            lost += 1
    assert held > 20 and lost > 10
