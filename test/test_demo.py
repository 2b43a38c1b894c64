"""The command ``contact_id demo``: what it starts, how it fails, a short walk from end to end."""

import argparse
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import yaml
from other_processes import alive
from paths import ROOT
from waiting import until

from contact_id_controller import cli
from contact_id_controller.commands import demo
from contact_id_controller.exceptions import ConfigurationError, RunError
from contact_id_controller.runs import processes, progress
from contact_id_controller.runs.progress import ProgressBar
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.runs.setup import NODE_RECORDS, RECORD, make_setup
from contact_id_controller.safety.latch import EmergencyLatch, state_folder
from contact_id_controller.settings.robot_files import file_of


def _arguments(*words):
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    return parser.parse_args(words)


def _planned(*words):
    return demo.planned(_arguments(*words))


# What is run


def test_without_a_robot_three_walks_are_planned(tmp_path):
    runs = _planned("--output", str(tmp_path))
    assert [(folder.name, choice["duration_s"]) for folder, choice in runs] == [
        ("quadruped_mu1", 30.0),
        ("quadruped_mu0.1", 30.0),
        ("solo12_mu0.6", 10.0),
    ]


def test_a_robot_is_one_walk_in_the_output_folder(tmp_path):
    ((folder, choice),) = _planned(
        "--robot", "solo12", "--duration", "4", "--mu", "0.3", "--output", str(tmp_path)
    )
    assert folder == tmp_path
    assert choice["robot"] == "solo12" and choice["duration_s"] == 4.0 and choice["mu"] == 0.3


@pytest.mark.parametrize("name", ["bolt", "g1", "talos"])
def test_a_biped_is_found_by_its_name_goes_to_way_points_and_can_be_driven(tmp_path, name):
    for options, driven in ((), False), (("--teleop", "--view"), True):
        ((folder, choice),) = _planned("--robot", name, *options, "--output", str(tmp_path))
        setup = make_setup(folder, **choice)
        assert setup.config.parent.name == "bipeds" and setup.config.stem == name
        assert setup.parameters["gait_planner"]["gait"] == "step"
        assert len(setup.waypoints) == (0 if driven else 3)
        assert f"--robot {name} " in setup.command(folder)


def test_friction_coefficient_is_that_of_ground_and_controller(tmp_path):
    setup = make_setup(tmp_path, robot="quadruped", mu=0.25)
    assert setup.settings.friction_coefficient == (0.25,)
    assert setup.parameters["simulated_robot"]["friction_coefficient"] == 0.25


@pytest.mark.parametrize(
    "options, compiled",
    [
        ((), ["coulomb/qp"]),
        (("--solver", "ncp"), ["coulomb/ncp"]),
        (("--set", "live_models=[coulomb/qp, no_slip/qp]"), ["coulomb/qp", "no_slip/qp"]),
        (("--view",), None),
        (("--teleop",), None),
    ],
)
def test_only_where_it_can_be_changed_other_contact_models_are_compiled(
    tmp_path, options, compiled
):
    ((_, choice),) = _planned("--robot", "quadruped", *options, "--output", str(tmp_path))
    controller = make_setup(tmp_path, **choice).parameters["controller"]
    found = controller.get("live_models")
    assert found is None if compiled is None else list(found) == compiled


def test_set_changes_the_controller_or_a_named_node(tmp_path):
    setup = make_setup(
        tmp_path,
        robot="quadruped",
        changes=["contact_time_constant_s=0.02", "gait_planner.step_height_m=0.03"],
    )
    assert setup.settings.contact_time_constant_s == 0.02
    assert setup.parameters["gait_planner"]["step_height_m"] == 0.03


@pytest.mark.parametrize(
    "change, message",
    [
        (
            "gait_planner.speed=1",
            "gait_planner: unknown parameter 'speed', did you mean 'speed_m_s'",
        ),
        ("simulated_robot.period_s=-1.0", "simulated_robot: parameter 'period_s' is -1, must be"),
    ],
)
def test_a_bad_value_is_refused_before_any_node_starts(tmp_path, change, message):
    with pytest.raises(ConfigurationError, match=message):
        make_setup(tmp_path, robot="quadruped", changes=[change])


def test_what_check_finds_without_a_step_is_told_before_the_run(tmp_path, capsys, monkeypatch):
    from contact_id_controller.report import demo as play

    original = make_setup(tmp_path, robot="quadruped").config
    mine, played = tmp_path / "mine.yaml", []
    content = yaml.safe_load(original.read_text(encoding="utf-8"))
    content["gait_planner"]["ros__parameters"]["foot_radius_m"] = 0.02
    content["controller"]["ros__parameters"]["joint_position_gain"] = [1e6]
    mine.write_text(yaml.safe_dump(content), encoding="utf-8")
    monkeypatch.setattr(play, "play", lambda *_: played.append(capsys.readouterr().err))
    monkeypatch.setattr(play, "end_on_signals", lambda: None)
    with pytest.raises(AttributeError):  # nothing was played: there is no report
        play.play_all(
            [(tmp_path / "out", {"robot": "mine", "config": mine, "duration_s": 1.0})], tmp_path
        )
    (told,) = played
    gains, sections = sorted(told.splitlines())
    assert gains.startswith("mine.yaml: error    gains: joint_position_gain 1e+06")
    assert "gait_planner.foot_radius_m is 0.02" in sections


def test_the_ros_domain_may_be_chosen_and_must_be_one(capsys):
    assert _arguments("--domain", "42").domain == 42 and _arguments().domain is None
    for word in ("102", "-1", "mine"):
        with pytest.raises(SystemExit):
            _arguments("--domain", word)
        assert f"'{word}' is no number from 0 to 101" in capsys.readouterr().err


def test_parameter_file_is_what_the_nodes_get(tmp_path):
    setup = make_setup(tmp_path, robot="quadruped", duration_s=7.0, mu=float("inf"))
    setup.write(tmp_path / "parameters.yaml")
    content = yaml.safe_load((tmp_path / "parameters.yaml").read_text())
    assert content["simulated_robot"]["ros__parameters"]["duration_s"] == 7.0
    assert content["controller"]["ros__parameters"]["start_ramp_s"] == 0.0
    assert content["controller"]["ros__parameters"]["friction_coefficient"] == [float("inf")]


def test_own_configuration_file_needs_no_known_robot(tmp_path):
    original = make_setup(tmp_path, robot="quadruped").config
    mine = tmp_path / "mine.yaml"
    mine.write_text(original.read_text(encoding="utf-8"), encoding="utf-8")
    ((_, choice),) = _planned("--config", str(mine))
    setup = make_setup(tmp_path, **choice)
    assert (setup.robot, setup.config) == ("mine", mine)


def test_command_of_a_report_does_the_same_run_again(tmp_path):
    setup = make_setup(
        tmp_path,
        robot="solo12",
        duration_s=4.0,
        mu=0.3,
        mode="real_time",
        changes=["period_s=0.002"],
    )
    words = setup.command(tmp_path).split()
    ((folder, choice),) = _planned(*words[2:])
    assert folder == tmp_path
    assert make_setup(tmp_path, **choice).parameters == setup.parameters


def test_a_planner_of_ones_own_stands_in_place_of_the_files(tmp_path):
    """Its section, if there is one, and what is set on the command line are its parameters."""
    script, config = tmp_path / "mine.py", tmp_path / "robot.yaml"
    script.touch()
    sections = yaml.safe_load(file_of("solo12").read_text("utf-8"))
    config.write_text(
        yaml.safe_dump({**sections, "mine": {"ros__parameters": {"down_m": 0.1, "up_m": 0.2}}})
    )
    ((folder, choice),) = _planned(
        *("--config", str(config), "--planner", str(script), "--set", "mine.down_m=0.3"),
        *("--rt-priority", "0", "--output", str(tmp_path / "run")),
    )
    setup = make_setup(folder, **choice)
    assert setup.nodes == ("controller", "simulated_robot", "mine")
    assert setup.parameters["mine"] == {"down_m": 0.3, "up_m": 0.2, "use_sim_time": True}
    assert "planner_required" not in setup.parameters["controller"]
    assert setup.parameters["simulated_robot"]["wait_for_plan_s"] == setup.duration_s
    assert f"--planner {script}" in setup.command(folder) and "mine" not in setup.scheduling
    assert make_setup(folder, robot="solo12", planner=script).nodes == setup.nodes
    taken = tmp_path / "controller.py"
    taken.touch()
    with pytest.raises(ConfigurationError, match="has the name of a node of the package"):
        make_setup(folder, robot="solo12", planner=taken)


def test_sweep_is_one_walk_for_each_value(tmp_path):
    runs = _planned(
        "--robot",
        "solo12",
        "--set",
        "solver=qp",
        "--sweep",
        "contact_time_constant_s=0.02, 0.05",
    )
    setups = [make_setup(folder, **choice) for folder, choice in runs]
    assert [setup.settings.contact_time_constant_s for setup in setups] == [0.02, 0.05]
    assert [folder.name for folder, _ in runs] == [
        "contact_time_constant_s_0.02",
        "contact_time_constant_s_0.05",
    ]
    assert all("solver=qp" in setup.changes for setup in setups)


# Bad input


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["--robot", "unicorn"],
            "must be one of 'anymal_c', 'bolt', 'g1', 'go2', 'quadruped', 'solo12', 'talos';",
        ),
        (["--robot", "solo12", "--duration", "-1"], "duration is -1 s"),
        (["--robot", "solo12", "--mu", "-0.5"], "friction_coefficient"),
        (["--robot", "solo12", "--set", "nonsense"], "[NODE.]NAME=VALUE"),
        (["--robot", "solo12", "--set", "frictoin=coulomb"], "did you mean 'friction'"),
        (["--robot", "solo12", "--set", "wheel.size=1"], "'gait_planner'"),
        (["--robot", "solo12", "--friction", "sticky"], "coulomb/qp"),
        (["--config", "/nowhere/robot.yaml"], "/nowhere/robot.yaml"),
        (["--mu", "0.5"], "--robot"),
        (["--sweep", "period_s=1,2"], "--sweep needs --robot"),
        (["--robot", "solo12", "--sweep", "period_s"], "NAME=V1,V2"),
        (["--robot", "solo12", "--planner", "/nowhere/mine.py"], "'/nowhere/mine.py' is no file"),
        (["--robot", "solo12", "--planner", demo.__file__, "--teleop"], "nothing can be driven"),
    ],
)
def test_wrong_choices_are_one_clear_line(refusal, tmp_path, words, message):
    assert message in refusal("demo", *words, "--output", str(tmp_path))


@pytest.mark.parametrize("missing, extra", [("rclpy", "ros"), ("mujoco", "simulation")])
def test_missing_extra_is_named(refusal, monkeypatch, missing, extra):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == missing else find(name, *rest),
    )
    assert f"'contact_id_controller[{extra}]'" in refusal("demo", "--robot", "solo12")


def test_configuration_without_a_section_is_refused(tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text("controller: {ros__parameters: {urdf: x}}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="no section 'simulated_robot'"):
        make_setup(tmp_path, robot="robot", config=file)


# Processes


def _python(code):
    return [sys.executable, "-c", textwrap.dedent(code)]


def test_a_dead_process_is_reported_with_its_last_lines(tmp_path):
    dying = _python("print('loading'); raise SystemExit('URDF not found')")
    with processes.NodeGroup({"controller": dying}, tmp_path, {}) as nodes:
        assert nodes["controller"].wait(120.0)
        with pytest.raises(RunError, match=r"(?s)'controller' ended with code 1.*URDF not found"):
            nodes.check()


def test_the_output_of_a_node_is_its_users_alone(tmp_path):
    """The link of a page stands there."""
    log = tmp_path / "node.log"
    log.write_text("of a run before")
    log.chmod(0o666)
    with processes.NodeGroup({"node": _python("print('said')")}, tmp_path, {}) as nodes:
        assert nodes["node"].wait(120.0)
        assert log.stat().st_mode & 0o777 == 0o600 and nodes["node"].output() == "said\n"
        nodes.restart("node")
        assert nodes["node"].wait(120.0) and nodes["node"].output() == 2 * "said\n"


def test_a_node_hears_hangups_though_this_process_does_not(tmp_path):
    """As under nohup: a campaign that sends SIGHUP waited for the end of a node that ignored it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        says = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL)"
        with processes.NodeGroup({"node": _python(says)}, tmp_path, {}) as nodes:
            nodes["node"].wait(120.0)
            assert "True" in nodes["node"].output()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_process_that_ended_well_is_no_failure_where_that_is_expected(tmp_path):
    with processes.NodeGroup({"robot": _python("pass")}, tmp_path, {}) as nodes:
        assert nodes["robot"].wait(120.0)
        nodes.check("robot")
        with pytest.raises(RunError, match="ended with code 0"):
            nodes.check()


def test_a_process_that_ignores_signals_is_ended_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "INTERRUPT_S", 0.2)
    monkeypatch.setattr(processes, "TERMINATE_S", 0.2)
    stubborn = _python("""
        import signal, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", flush=True)
        time.sleep(60)""")
    with processes.NodeGroup({"stubborn": stubborn}, tmp_path, {}) as nodes:
        while "ready" not in nodes["stubborn"].last_lines():
            time.sleep(0.01)
    nodes["stubborn"].wait(120.0)
    assert nodes["stubborn"].exit_code == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_nodes_die_with_a_killed_parent(tmp_path):
    parent = _python(f"""
        import sys, time
        from pathlib import Path
        from contact_id_controller.runs.processes import NodeGroup
        child = [sys.executable, "-c",
                 "import os, time; print(os.getpid(), flush=True); time.sleep(60)"]
        with NodeGroup({{"child": child}}, Path({str(tmp_path)!r}), {{}}):
            time.sleep(60)""")
    process = subprocess.Popen(parent, env={**os.environ, "PYTHONPATH": str(ROOT)})
    log = tmp_path / "child.log"
    while not (log.exists() and log.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.01)
    child = int(log.read_text())
    process.kill()
    process.wait()
    assert until(lambda: not alive(child)), "the node outlives its killed parent"


IN_A_DOMAIN = """
import sys, rclpy
rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node("somebody")
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("confined", [True, False])
def test_a_domain_in_use_is_left_alone(tmp_path, confined):
    """Whoever is confined to the loopback interface has another port than who looks by multicast."""
    domain = processes.free_domain()
    environment = {**os.environ, **processes.ros_environment(domain, tmp_path)}
    if not confined:
        environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SUBNET"
        environment.pop("FASTDDS_DEFAULT_PROFILES_FILE", None)
    command = [sys.executable, "-c", IN_A_DOMAIN, str(domain)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as somebody:
        try:
            assert somebody.stdout.readline() == "there\n"
            assert processes._is_taken(domain)
        finally:
            somebody.kill()


def test_nobody_else_is_given_a_domain_before_anybody_takes_part(tmp_path):
    """Two runs that begin at once."""
    given = [processes.free_domain() for _ in range(5)]
    question = (
        "import sys; from contact_id_controller.runs.processes import _reserve\n"
        "print([_reserve(int(word)) for word in sys.argv[1:]])"
    )
    command = [sys.executable, "-c", question, *map(str, given)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=True)
    assert len(set(given)) == 5 and answer.stdout.strip() == str([False] * 5)


def test_an_emergency_stop_of_a_run_ends_with_the_run(tmp_path, monkeypatch):
    """A stop pressed on the page of one kept every later demo and launch of the account from moving."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def latch(logs):
        environment = processes.ros_environment(5, Path(logs))
        for name in ("ROS_DOMAIN_ID", "XDG_STATE_HOME"):
            monkeypatch.setenv(name, environment[name])
        return EmergencyLatch(state_folder(), "/controller", "quadruped", simulated=True)

    pressed = latch("report/log")
    pressed.engage()
    assert not pressed.keep()
    assert pressed.path.is_relative_to(tmp_path / "report/log"), "not in the user's state"
    assert not latch("report/log").engaged, "of the same folder, and the same domain"
    assert not (tmp_path / "home").exists()


def test_a_run_leaves_the_robots_own_state_folder_alone(tmp_path):
    file = tmp_path / "robot.yaml"
    content = yaml.safe_load(make_setup(tmp_path, robot="quadruped").config.read_text())
    content["controller"]["ros__parameters"]["state_folder"] = "/var/lib/robot"
    file.write_text(yaml.safe_dump(content))
    setup = make_setup(tmp_path, robot="quadruped", config=file)
    assert setup.settings.state_folder == "" == setup.parameters["controller"]["state_folder"]


# Progress


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def _lines(stream):
    """What a terminal has shown, without the signs that move and colour."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    return re.split(r"[\r\n]+", text)


def test_bar_fills_with_simulated_time(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = _Terminal()
    bar = ProgressBar("quadruped", 10.0, stream)
    bar.say("configuring")
    bar.show(5.0)
    bar.show(10.0)
    bar.close()
    lines = _lines(stream)
    assert any("configuring" in line for line in lines)
    assert "━" * 28 in next(line for line in lines if "10.0 of 10 s" in line)
    assert stream.getvalue().endswith("\n") or stream.getvalue().endswith("\x1b[?25h")


def test_bar_stays_on_its_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = _Terminal()
    bar = ProgressBar("reproduce", 10.0, stream, unit="runs")
    bar.say("locomotion: controller qp_mu, terrain rigid_high, engine mujoco")
    bar.show(3)
    bar.close()
    lines = [line for line in _lines(stream) if line]
    assert all(line.startswith("reproduce") and len(line) <= 60 for line in lines), lines


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_link_stands_whole_on_a_line_of_its_own(monkeypatch, on_terminal):
    monkeypatch.setenv("COLUMNS", "40")
    stream, link = (
        _Terminal() if on_terminal else io.StringIO(),
        "live view: http://127.0.0.1:8080/?token=" + 32 * "[t]",
    )
    bar = ProgressBar("quadruped", 10.0, stream)
    bar.say("configuring")
    bar.tell(link)
    bar.show(5.0)
    bar.close()
    assert link in [line.strip() for line in _lines(stream)]


def test_without_a_terminal_a_few_lines_are_written():
    stream = io.StringIO()
    bar = ProgressBar("quadruped", 10.0, stream)
    for step in range(1, 1001):
        bar.show(0.01 * step)
    bar.close()
    assert "\r" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 4


def test_without_a_terminal_no_wait_is_long_without_a_line(monkeypatch):
    monkeypatch.setattr(progress, "QUIET_S", 0.05)
    stream = io.StringIO()
    bar = ProgressBar("quadruped", 1000.0, stream)
    end_s = time.monotonic() + 0.3
    while time.monotonic() < end_s:
        bar.show(0.01)
    bar.close()
    assert 3 <= len(stream.getvalue().splitlines()) <= 6
    told = io.StringIO()
    with progress.telling("drawing", told):
        time.sleep(0.3)
    lines = told.getvalue().splitlines()
    assert lines[0] == "drawing" and 3 <= len(lines) <= 7 and lines[1].startswith("drawing (")


# From end to end, over real ROS 2 topics


def _demo(options, folder):
    """The command in a process of its own, as a user has it; its output comes by a pipe."""
    words = f"{sys.executable} -m contact_id_controller demo --robot quadruped {options} --output {folder}"
    return subprocess.Popen(
        words.split(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Folder of a short walk made by the command."""
    folder = tmp_path_factory.mktemp("walk") / "report"
    process = _demo("--duration 3 --mu 0.6", folder)
    try:
        output = process.communicate(timeout=600)[0]
    finally:
        process.kill()  # one that hangs; its nodes die with it
    assert process.returncode == 0 and "normal_force_relative_error" in output, output
    return folder


def test_quadruped_walks_within_the_limits_of_the_demo(walked):
    summary = json.loads((walked / "summary.json").read_text())
    assert not summary["fell"]
    assert summary["duration_s"] == pytest.approx(3.0, abs=0.01)
    assert summary["unanswered_states"] == 0
    assert summary["mean_joint_position_error_rad"] < 0.03
    assert summary["normal_force_relative_error"] < 0.03
    assert summary["torque_rate_mean_nm_s"] < 52.6
    assert summary["distance_travelled_m"] > 0.2


def test_walk_leaves_a_whole_report(walked):
    names = {path.name for path in walked.iterdir()}
    assert {
        "report.html",
        "summary.json",
        "animation.gif",
        "parameters.yaml",
        "record.npz",
        "normal_forces.png",
        "base_path.png",
        "log",
    } <= names
    assert not names & set(NODE_RECORDS), "merged into record.npz"
    periods = len(RunRecord.load(walked / RECORD))
    assert (walked / RECORD).stat().st_size < 360 * periods  # 100,000 periods are three walks


def test_interrupted_run_leaves_no_process_behind(tmp_path):
    process = _demo("--duration 60", tmp_path)
    output = ""
    while "walking" not in output:
        line = process.stdout.readline()
        output += line
        assert line, output
    process.send_signal(signal.SIGINT)
    output += process.communicate(timeout=60)[0]
    assert process.returncode == cli.INTERRUPTED and "interrupted" in output, output
    assert _processes_with(str(tmp_path)) == []


def _processes_with(text):
    """Command lines of living processes that hold a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command and int(entry.parent.name) != os.getpid():
            found.append(command)
    return found
