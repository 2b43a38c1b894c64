"""``python -m experiments reproduce``: runs are done once, side by side, and all of them are reported."""

import argparse
import dataclasses
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT
from square_runs import describe, fingerprint_of_the_process, square, tasks, times_done
from waiting import until

from contact_id_controller import cli
from contact_id_controller.exceptions import ConfigurationError, RunError
from contact_id_controller.exit_codes import NOT_ALL_WELL
from contact_id_controller.files import plain
from contact_id_controller.report.figures import draw
from contact_id_controller.runs import worker_pool
from experiments import __main__ as experiments
from experiments.benchmark import speed as benchmark
from experiments.commands import reproduce as command
from experiments.papers import (
    arm_and_box,
    chatter,
    flops,
    grasp,
    locomotion,
    manipulator,
    registry,
    reproduction,
    runner,
    walks,
)
from experiments.papers.arm_and_box import Arm, MujocoArm, RigidArm
from experiments.papers.blocks import (
    BETTERED,
    NOT_MEASURED,
    VERDICTS,
    WRONG,
    Claim,
    Picture,
    Section,
    Table,
    Text,
    shown,
)
from experiments.papers.manipulator_report import WEIGHT_N
from experiments.papers.page import html_page, markdown
from experiments.papers.registry import EXPERIMENTS, Experiment
from experiments.papers.store import RunDescription, RunResult, RunStore, sources


@pytest.fixture
def place(tmp_path):
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks", RunStore(tmp_path / "runs", code=runner.code_fingerprint())


# What a run is


def test_key_depends_on_what_is_described_and_on_nothing_else():
    one = RunDescription("walk", {"mu": "inf", "seconds": 3.0})
    assert one.key == RunDescription("walk", {"seconds": 3.0, "mu": "inf"}).key
    assert re.fullmatch(r"[0-9a-f]{12}", one.key)
    others = {
        RunDescription("walk", {"mu": 1.0, "seconds": 3.0}).key,
        RunDescription("run", {"mu": "inf", "seconds": 3.0}).key,
    }
    assert one.key not in others and len(others) == 2
    # Written down: results found by another session must be found under the same name.
    assert RunDescription("walk", {"mu": 1.0}).key == "0e9fa071185c"


def test_what_json_does_not_know_is_refused_or_becomes_none():
    with pytest.raises(ValueError):
        _ = RunDescription("walk", {"mu": float("inf")}).key
    values = {"a": np.array([1.0, np.nan]), "b": np.float64(1 / 3), "c": (np.int64(3), True)}
    assert plain(values, 6, infinities=False) == {"a": [1.0, None], "b": 0.333333, "c": [3, True]}


def test_result_is_kept_and_found_again(place):
    folder, store = place
    description = describe(folder, 3)
    assert store.load(description) is None and not store.finished(description)
    store.save(RunResult(description, {"square": 9}, "", 0.5, "cpu"))
    assert store.finished(description) and store.load(description)["square"] == 9
    assert [path.suffix for path in store.folder.iterdir()] == [".json"]
    content = json.loads(store.path(description).read_text())
    assert content["command"] == f"python -m experiments reproduce square --run {description.key}"
    other = RunStore(store.folder, code="of other sources")
    assert not other.finished(description)


def test_results_outlive_other_words_in_the_report_and_nothing_else():
    names = {file.name for file in sources()}
    assert {
        "walks.py",
        "chatter.py",
        "grasp.py",
        "worker_pool.py",
        "locomotion.py",
        "metrics.py",
        "controller.py",
        "quadruped.urdf",
        "quadruped.yaml",
    } <= names
    assert not {"walks_report.py", "walks_claims.py", "page.py", "test_reproduce.py"} & names
    # What a run calls is known to the fingerprint: no such module is imported by another one's run.
    for module in (walks, locomotion, chatter, manipulator, arm_and_box, runner):
        text = Path(module.__file__).read_text()
        assert not re.search(r"import \w+_(report|claims)|report\.(blocks|figures|page)\b", text)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"values": {}}'])
def test_damaged_result_does_not_count(place, damage):
    folder, store = place
    description = describe(folder, 3)
    store.path(description).write_text(damage)
    assert store.load(description) is None


# Doing them


def test_runs_are_done_side_by_side_and_only_once(place):
    folder, store = place
    seen: list[RunResult] = []
    found = runner.run_all(
        tasks(folder, 4, waits_for_another=True), store, jobs=2, done=seen.append
    )
    assert [result["square"] for result in found] == [0, 1, 4, 9]
    assert len({result["pid"] for result in found}) == 2 and os.getpid() not in {
        result["pid"] for result in found
    }
    assert all(result["threads"] == ["1"] * 3 for result in found) and len(seen) == 4
    again = runner.run_all(tasks(folder, 5, waits_for_another=True), store, jobs=2)
    assert [result["square"] for result in again] == [0, 1, 4, 9, 16]
    assert times_done(folder) == dict.fromkeys(range(5), 1)


def test_runs_that_measure_time_have_the_machine_for_themselves(place):
    folder, store = place
    mixed = [*tasks(folder, 2, sleep_s=0.2), *tasks(folder, 4, alone=True, sleep_s=0.2)[2:]]
    runner.run_all(mixed, store, jobs=2)
    begun = sorted(
        (int(path.name.split("_")[2]), int(path.name.split("_")[0])) for path in folder.iterdir()
    )
    assert [x for _, x in begun][2:] == [2, 3]
    assert begun[3][0] - begun[2][0] > 0.19e9 and begun[2][0] - begun[1][0] > 0.19e9


def test_failed_run_is_listed_and_done_again_next_time(place):
    folder, store = place
    wanted = [*tasks(folder, 2), (square, describe(folder, 7, fails=True), False)]
    for attempt in (1, 2):
        *good, bad = runner.run_all(wanted, store, jobs=1)
        assert [result["square"] for result in good] == [0, 1] and not any(r.error for r in good)
        assert bad.error.strip().endswith("ValueError: no square of 7")
        assert times_done(folder) == {0: 1, 1: 1, 7: attempt}


def test_dying_process_takes_no_other_result_along(place):
    folder, store = place
    wanted = [(square, describe(folder, 9, dies=True), False), *tasks(folder, 3, sleep_s=0.1)]
    bad, *good = runner.run_all(wanted, store, jobs=2)
    assert bad.error == "its process died" and [r["square"] for r in good] == [0, 1, 4]


# Dask

NO_DASK = "the package distributed (Dask) is not installed"


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def test_cluster_does_the_same_runs_by_the_same_path(place, cluster):
    folder, store = place
    wanted = [*tasks(folder, 4, sleep_s=0.1), (square, describe(folder, 7, fails=True), True)]
    *good, bad = runner.run_all(wanted, store, jobs=1, cluster=cluster.scheduler_address)
    assert [result["square"] for result in good] == [0, 1, 4, 9]
    assert os.getpid() not in {result["pid"] for result in good}
    assert "no square of 7" in bad.error
    *again, _ = runner.run_all(wanted, store, jobs=1, cluster=cluster.scheduler_address)
    assert [r["pid"] for r in again] == [r["pid"] for r in good]
    assert times_done(folder) == {0: 1, 1: 1, 2: 1, 3: 1, 7: 2}


def test_workers_with_other_sources_are_refused(place, cluster, monkeypatch):
    folder, store = place
    monkeypatch.setattr(runner, "code_fingerprint", fingerprint_of_the_process)
    with pytest.raises(RunError, match="another version"):
        runner.run_all(tasks(folder, 1), store, jobs=1, cluster=cluster.scheduler_address)


def test_no_scheduler_is_one_line(place, monkeypatch):
    pytest.importorskip("distributed", reason=NO_DASK)
    monkeypatch.setattr(worker_pool, "CONNECT_S", 0.5)
    folder, store = place
    with pytest.raises(RunError, match="no Dask scheduler at 'tcp://127.0.0.1:9'"):
        runner.run_all(tasks(folder, 1), store, jobs=1, cluster="tcp://127.0.0.1:9")


# The command


def squares(folder, count, **more):
    """An experiment of squares."""

    def report(results):
        rows = [(r.parameters["x"], r["square"]) for r in results]
        claim = Claim("school", "squares are large", BETTERED, "they are", "contact_id")
        return Section("Squares", [Table("All", ("x", "square"), rows, ["c"] * len(rows))], [claim])

    def runs(quick):
        return [describe(folder, x, **more) for x in range(1 if quick else count)]

    return Experiment("square", runs, square, report)


@pytest.fixture
def arguments(tmp_path):
    def make(*words):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        return parser.parse_args([*words, "--output", str(tmp_path / "out"), "--jobs", "1"])

    return make


def test_command_does_quick_runs_or_all_or_one(place, arguments, monkeypatch, tmp_path, capsys):
    folder, _ = place
    monkeypatch.setattr(registry, "EXPERIMENTS", {"square": squares(folder, 3)})
    assert command.run(arguments("--quick")) == 0 and times_done(folder) == {0: 1}
    key = describe(folder, 2).key
    assert command.run(arguments("square", "--run", key[:6])) == 0
    assert times_done(folder) == {0: 1, 2: 1}
    # The report of one run leaves that of all alone.
    of_all, of_one = (
        (tmp_path / "out" / name / "report.md").read_text() for name in ("", f"run_{key[:6]}")
    )
    assert "| 0 | 0 |" in of_all and "| 2 | 4 |" in of_one and "| 2 | 4 |" not in of_all
    assert command.run(arguments()) == 0 and times_done(folder) == {0: 1, 1: 1, 2: 1}
    assert "3 of 3 runs are done, 0 failed" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Squares" in page and "squares are large" in page
    assert "| 2 | 4 | `c` |" in (tmp_path / "out" / "report.md").read_text()
    claims = json.loads((tmp_path / "out" / "summary.json").read_text())["claims"]
    assert claims[0]["verdict"] == BETTERED


def test_failed_runs_give_their_exit_code_and_stand_in_the_report(
    place, arguments, monkeypatch, tmp_path, capsys
):
    folder, _ = place
    monkeypatch.setattr(registry, "EXPERIMENTS", {"square": squares(folder, 2, fails=True)})
    assert command.run(arguments()) == NOT_ALL_WELL
    assert "0 of 2 runs are done, 2 failed" in (printed := capsys.readouterr()).out
    assert "no square of 1" in printed.err
    for name in ("report.html", "report.md"):
        text = (tmp_path / "out" / name).read_text()
        assert "Runs that failed" in text and "no square of 1" in text


def test_section_says_that_runs_are_missing(place, arguments, monkeypatch, tmp_path):
    folder, _ = place
    good, bad = squares(folder, 3), squares(folder, 2, fails=True)
    both = dataclasses.replace(good, runs=lambda quick: [*good.runs(quick), *bad.runs(quick)])
    monkeypatch.setattr(registry, "EXPERIMENTS", {"square": both})
    assert command.run(arguments()) == NOT_ALL_WELL
    assert "2 of 5 runs of this experiment failed" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize(
    "words, message",
    [
        (["dance"], "must be one of 'chatter'"),
        (["flops", "--run", "zzz"], "has key zzz"),
        (["flops", "--jobs", "0"], "--jobs is 0"),
    ],
)
def test_wrong_choices_are_one_line(words, message, tmp_path, capsys):
    code = experiments.run(["reproduce", *words, "--output", str(tmp_path / "out")])
    lines = capsys.readouterr().err.strip().splitlines()
    assert code == cli.REFUSED and len(lines) == 1 and message in lines[0]


def test_missing_extra_is_named(capsys, monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mujoco" else find(name)
    )
    assert experiments.run(["reproduce", "flops", "--output", str(tmp_path)]) == cli.REFUSED
    assert "[simulation]'" in capsys.readouterr().err


def test_interrupted_command_leaves_no_process_and_goes_on_later(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    code = f"""
import sys

if __name__ == "__main__":  # workers import this file as well
    sys.path.insert(0, {str(ROOT / "test")!r})
    from pathlib import Path

    from test_reproduce import experiments, registry, squares

    registry.EXPERIMENTS = {{"square": squares(Path({str(marks)!r}), 4, sleep_s=2.0)}}
    sys.exit(experiments.run(["reproduce", "--jobs", "2", "--output", {str(tmp_path)!r}]))
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    process = subprocess.Popen(
        [sys.executable, script], env=environment, stderr=subprocess.PIPE, text=True
    )
    until(lambda: len(list((tmp_path / "runs").glob("*.json"))) >= 2, 240.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == cli.INTERRUPTED and "interrupted" in errors
    workers = {int(path.name.split("_")[1]) for path in marks.iterdir()}
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    finished = len(list((tmp_path / "runs").glob("*.json")))
    assert 2 <= finished < 4
    assert subprocess.run([sys.executable, script], env=environment, timeout=240).returncode == 0
    assert sum(times_done(marks).values()) <= 4 + 2  # only what was under way is done again


# The report


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.sources, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_one_file_that_needs_no_other():
    png = draw(2.0, 1.0, 1, 1, lambda axes: axes[0, 0].plot([1, 2]))
    assert png.startswith(b"\x89PNG")
    claims = [
        Claim("a < b", "x & y", WRONG, "3 `code`", "contact_id a"),
        Claim("paper", "z", NOT_MEASURED, "-", "contact_id b"),
    ]
    section = Section(
        "One <two>",
        [
            Text("a `b` & c"),
            Picture("p", png, "shows |"),
            Table("T", ("n", "text"), [(0.123456, None), (True, "a|b")], ["c1", "c2"]),
        ],
        claims,
    )
    failed = [RunResult(RunDescription("walk"), {}, "Trace\nValueError: <x>", 0.0, "")]
    page = html_page({"one": section}, failed, "origin")
    parser = _Page()
    parser.feed(page)
    assert not parser.open
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in parser.sources)
    for words in (
        "0.1235",
        "<code>b</code> &amp; c",
        "One &lt;two&gt;",
        "ValueError: &lt;x&gt;",
        "<code>c1</code>",
    ):
        assert words in page
    bad = page.split("could not be reproduced")[1].split("<h2 id=")[0]
    assert "x &amp; y" in bad and ">z<" not in bad
    text = markdown({"one": section}, failed, "origin")
    assert "a\\|b" in text and "Of 2 claims: 1 wrong, 1 not measured." in text


def test_cells_for_people():
    assert [shown(cell) for cell in (None, 1234, 0.000123456, 1e6, True, "x")] == [
        "-",
        "1234",
        "0.0001235",
        "1e+06",
        "yes",
        "x",
    ]


# The experiments


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_runs_of_an_experiment_are_different_and_json(name):
    experiment = EXPERIMENTS[name]
    for quick in (True, False):
        runs = experiment.runs(quick)
        assert len({run.key for run in runs}) == len(runs) > 0
        assert all(run.experiment == name for run in runs)
    assert len(experiment.runs(True)) <= len(experiment.runs(False))


def result_of(experiment, description):
    """A run done here, its values as they come back from a file."""
    values = json.loads(json.dumps(plain(experiment.run(description)), allow_nan=False))
    return RunResult(description, values, "", 0.0, "cpu")


def check_section(section):
    assert section.blocks and section.claims
    assert all(claim.verdict in VERDICTS and claim.evidence for claim in section.claims)
    for block in section.blocks:
        if isinstance(block, Table):
            assert all(len(row) == len(block.head) for row in block.rows)
            assert len(block.commands) in (0, len(block.rows))


def test_configuration_error_of_an_unknown_name():
    with pytest.raises(ConfigurationError, match="must be one of"):
        reproduction.choose(["nothing"])


# Single experiments, in short


def short(name, **parameters):
    """Values of a short run."""
    return result_of(EXPERIMENTS[name], RunDescription(name, parameters))


def test_flops_of_the_paper_come_from_its_formulas_and_ours_are_linear():
    experiment = EXPERIMENTS["flops"]
    results = [result_of(experiment, run) for run in experiment.runs(True)]
    values = {(r.parameters["joints"], r.parameters["contacts"]): r.values for r in results}
    for joints, (before, after) in flops.PAPER_TOTALS.items():
        found = values[joints, 4]
        assert (found["before"], found["after_as_summed"]) == (before, after)
    ours = [values[12, n]["ours"] for n in (4, 8, 20, 40)]
    slopes = np.diff(ours) / np.diff([4, 8, 20, 40])
    # Contacts that share a body share its rows: from the first that does on.
    np.testing.assert_allclose(slopes[1:], slopes[1])
    assert ours[0] < ours[1] - 4 * slopes[1]
    check_section(experiment.report(results))


def test_counted_numbers_count_each_operation_once():
    flops.Counter.total = 0
    a, b = flops.Counted(3.0), flops.Counted(4.0)
    assert float((a * b + 2 * a - b / a) - (1.0 - a)) == pytest.approx(12 + 6 - 4 / 3 + 2)
    assert flops.Counter.total == 7 and float(-a) == -3.0 and flops.Counter.total == 7


def test_formulas_of_the_paper_fail_where_the_report_says_so():
    experiment = EXPERIMENTS["formulas"]
    results = [result_of(experiment, run) for run in experiment.runs(True)]
    ours, energy, frozen, sign = results
    assert ours["normal_n"] == pytest.approx(ours["weight_n"], rel=1e-6)
    assert energy["normal_n"] > 10.0 * energy["weight_n"] and energy["braking_n"] > 100.0
    assert abs(frozen["normal_n"] / frozen["weight_n"] - 1.0) > 0.02
    assert sign["minus"] > 1.0 and sign["plus"] < 1e-12 and sign["round_trip_nm"] < 1e-9
    section = experiment.report(results)
    check_section(section)
    assert [claim.verdict for claim in section.claims].count(WRONG) == 3


def test_boxes_are_held_by_every_model():
    for model in ("coulomb/lemke", "coulomb/lcp", "no_slip/lcp"):
        held = short("grasp", model=model, boxes=2, steps=6, trials=1)
        assert held["contacts"] == 36 and held["dropped_step"] is None
        assert held["status_counts"] == {"solved": 6} and abs(held["sunk_m"]) < 1e-3
    robot, scene, q = grasp.row(3)
    assert robot.mass == pytest.approx(5.0) and len(scene.contacts(q)) == 16


def test_both_engines_of_the_arm_agree_with_forward_dynamics_in_free_motion():
    arm, rng = Arm.make(), np.random.default_rng(0)
    q = arm.start()
    q[:11] += 0.2 * rng.normal(size=11)
    q[11:13] += 0.5  # out of the hand
    torques = rng.normal(size=11)
    data = arm.robot.model.createData()
    expected = pin.aba(arm.robot.model, data, q, np.zeros(17), np.append(torques, np.zeros(6)))
    for make in (MujocoArm, RigidArm):
        world = make(arm, 1.0, 1e-4)
        world.reset(q)
        state = world.step(torques)
        np.testing.assert_allclose(state.v / 1e-4, expected, rtol=1e-3, atol=1e-2)
        assert not world.contact_forces().any()


@pytest.mark.parametrize("engine", manipulator.ENGINES)
def test_a_firm_hand_holds_the_box_and_predicts_the_forces(engine):
    firm = {
        "engine": engine,
        "mu": 1.0,
        "squeeze_n": manipulator.SQUEEZE_N,
        "trust": manipulator.TRUST,
    }
    case = manipulator.describe(controller="coulomb/qp", duration_s=0.25, **firm)
    held = result_of(EXPERIMENTS["manipulator"], case)
    assert held["dropped_s"] is None and held["slip_m"] < 2e-3
    assert held["mean_joint_position_error_rad"] < 1e-3
    assert held["box_force_error_n"] < 0.25 * WEIGHT_N
    assert held["tip_forces_n"] > 4 * 0.9 * manipulator.SQUEEZE_N
    pid = result_of(
        EXPERIMENTS["manipulator"],
        manipulator.describe(controller="none/pid", mu=1.0, engine=engine, duration_s=0.25),
    )
    assert pid["mean_joint_position_error_rad"] > 20.0 * held["mean_joint_position_error_rad"]
    check_section(EXPERIMENTS["manipulator"].report([held, pid]))


def test_stage_two_takes_the_chatter_out_of_a_trot():
    results = [
        short(
            "chatter",
            model="coulomb/lcp",
            distribution=distribution,
            mu=1.0,
            duty_factor=0.75,
            duration_s=1.0,
        )
        for distribution in ("none", "least_torque")
    ]
    one, two = results
    assert one["fell_time_s"] is None and two["fell_time_s"] is None
    # Of the forces that bring all contacts to rest the first stage has the least: with others it was 53 N m/s for 42.
    assert one["torque_rate_mean_nm_s"] > 1.5 * two["torque_rate_mean_nm_s"]
    assert two["share_of_feet_loaded"] > one["share_of_feet_loaded"]
    check_section(EXPERIMENTS["chatter"].report(results))


def test_running_times_are_reported_beside_the_paper(monkeypatch):
    monkeypatch.setattr(benchmark, "BUDGET_S", 0.01)
    monkeypatch.setattr(benchmark, "MODELS", {"coulomb/qp": {}, "no_slip/lcp": {}})
    monkeypatch.setitem(benchmark.LARGEST, "QuantEcon Lemke", 0)
    section = EXPERIMENTS["running_time"].report(
        [short("running_time", contacts=n) for n in (4, 8)]
    )
    check_section(section)
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["coulomb/qp, paper"] == (278.0, None) and rows["coulomb/qp"][0] > 1.0


def test_walks_are_reported(tmp_path):
    experiment = EXPERIMENTS["locomotion"]
    wanted = [
        run
        for run in experiment.runs(True)
        if run.parameters["terrain"] == "rigid_high"
        and run.parameters["controller"] in ("qp_mu", "pid")
        and run.parameters["engine_model"] == "coulomb/lcp"
    ]
    assert {run.parameters["settings"] for run in wanted} == {"ours", "papers"}
    results = [
        result_of(experiment, RunDescription(run.experiment, {**run.parameters, "duration_s": 0.3}))
        for run in wanted
    ]
    assert all(r["figures"]["finished"] for r in results)
    check_section(experiment.report(results))
