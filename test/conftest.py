"""What every test may use: a ROS domain of its own, random numbers that repeat, a bench for nodes."""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from paths import ROOT
from queue_of_files import IN_REAL_TIME, pytest_xdist_make_scheduler  # noqa: F401

# Read when ROS and BLAS start: nothing of these tests leaves this machine.
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="contact_id_state_")

from contact_id_controller.runs.processes import free_domain

atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Under nohup every process started here would ignore it, and some tests ask what it does.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


LONGEST = (
    *IN_REAL_TIME,
    "test_report.py",
    "test_kinodynamic_planner_node.py",
    "test_packaging.py",
    "test_demo.py",
    "test_fuzz.py",
    "test_base_odometry.py",
    "test_labels.py",
    "test_typing.py",
    "test_gait_planner_node.py",
)
"""Begun first, so that `make test` never waits at its end for one of them alone."""


def pytest_collection_modifyitems(items):
    """The longest files first, the others in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="module", autouse=True)
def private_domain():
    """Each test file has a ROS domain of its own; the processes that it starts inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(free_domain()))
        yield


@pytest.fixture(autouse=True)
def private_state(tmp_path_factory):
    """No test finds the emergency stop of another one, nor leaves one to the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def closing():
    """Keeps what a test makes, ``closing(made)``, and closes it at the end, the last one first."""
    with contextlib.ExitStack() as stack:

        def keep(made, close=None):
            stack.callback(close or made.close)
            return made

        yield keep


@pytest.fixture(scope="module")
def context():
    """A context of ROS, for nodes in this process."""
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
    context = rclpy.Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()


@pytest.fixture
def node_within(context, closing):
    """Makes nodes of a class in this process, with parameters by their names, and destroys them."""

    def make(kind, **values):
        from rclpy.parameter import Parameter

        overrides = [Parameter(name, value=value) for name, value in values.items()]
        node = kind(context=context, parameter_overrides=overrides)
        return closing(node, node.destroy_node)

    return make


@pytest.fixture
def refusal(capsys):
    """Runs a command line of contact_id that must be refused, and gives the one line that it says."""
    from contact_id_controller import cli

    def line(*words):
        assert cli.run(words) == cli.REFUSED
        (said,) = capsys.readouterr().err.splitlines()
        return said

    return line


@pytest.fixture
def bench_of(closing):
    """Makes benches of a controller node and its peer (ros_bench.py)."""
    from ros_bench import Bench

    return lambda **changes: closing(Bench(**changes))


@pytest.fixture
def node_of(closing, tmp_path):
    """Starts nodes in processes of their own (node_process.py), and kills them."""
    from node_process import NodeProcess

    def start(name, values, kind=NodeProcess):
        process = kind(name, tmp_path, values)
        return closing(process, process.end)

    return start


@pytest.fixture
def python_of(closing):
    """Starts programs of Python, given as text, in processes of their own, and kills them."""

    def start(program, *arguments, environment=(), **options):
        pipe = {"stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), **dict(environment)},
            **{**pipe, **options},
        )

        def end():
            process.kill()
            process.communicate()

        return closing(process, end)

    return start


@pytest.fixture
def same_random_configurations():
    """Pinocchio's random configurations are the same in every run."""
    import pinocchio

    pinocchio.seed(1)
