"""A release as strangers get it: built, installed where nothing of the sources is, and tried."""

import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest
from paths import ROOT

WHERE = "import contact_id_controller as c; print(c.__file__, c.__version__)"
LIBRARY = """
import numpy as np
from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.robot import resolve_urdf
robot = RobotModel.from_urdf(resolve_urdf("package://contact_id_controller/urdf/quadruped.urdf"))
q, v = robot.neutral(), np.zeros(robot.nv)
frames = ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]
import pinocchio as pin
pin.framesForwardKinematics(robot.model, robot.data, q)
points = np.array([robot.data.oMf[robot.frame_id(name)].translation for name in frames])
contacts = ContactSet(points, [[0, 0, 1]] * 4, frames, 0.6)
problem = build_problem(robot, q, v, np.zeros(robot.na), contacts, 1e-3)
print(solve(problem, "coulomb", "qp").forces[:, 2].sum() / robot.weight)
"""


def run(words, **options):
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=600, **options
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source distribution, and the wheel made from it: what an upload would hold."""
    folder = tmp_path_factory.mktemp("release")
    made = ["build", "dist", "install", "log", "report", "faults"]

    def ignored(place, names):
        common = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")(place, names)
        return common | {name for name in names if name in made and place == str(ROOT)}

    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    make = "from setuptools import build_meta as b; print(b.build_{}({!r}))"
    done = run([sys.executable, "-c", make.format("sdist", str(folder))], cwd=folder / "source")
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    done = run([sys.executable, "-c", make.format("wheel", str(folder))], cwd=unpacked)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return archive, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Programs of an environment that has the wheel, and of this one nothing but other packages."""
    folder = tmp_path_factory.mktemp("environment")
    assert run([sys.executable, "-m", "venv", "--without-pip", folder]).returncode == 0
    place = sysconfig.get_path("purelib", "venv", {"base": folder, "platbase": folder})
    others = [path for path in site.getsitepackages() if os.path.isdir(path)]
    with open(os.path.join(place, "others.pth"), "w") as file:
        file.writelines(f"import site; site.addsitedir({path!r})\n" for path in others)
    done = run(
        [
            sys.executable,
            *("-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"),
            *("install", "--no-deps", "--no-index", "--ignore-installed", built[1]),
        ]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


@pytest.fixture
def environment():
    """The variables of this process without those that lead to its sources."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def test_the_archive_has_what_the_wheel_needs_and_what_strangers_read(built):
    archive, wheel = built
    with tarfile.open(archive) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    for name in ("README.md", "CHANGELOG.md", "LICENSE", "package.xml", "config/quadruped.yaml"):
        assert name in inside
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    modules = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "contact_id_controller").rglob("*.py")
    }
    assert modules <= names and "contact_id_controller/ros/loopback.xml" in names


def test_library_check_and_demo_work_where_nothing_else_is(installed, tmp_path, environment):
    done = run([installed / "python", "-c", WHERE], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    place, version = done.stdout.split()
    assert place.startswith(str(installed.parent))
    newest = re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert version == newest.group(1)
    done = run([installed / "python", "-c", LIBRARY], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1.0, rel=1e-6)
    program = installed / "contact_id"
    done = run([program, "--version"], cwd=tmp_path, env=environment)
    assert done.stdout.split() == ["contact_id", version]
    config = installed.parent / "share" / "contact_id_controller" / "config" / "quadruped.yaml"
    done = run([program, "check", "--config", config], cwd=tmp_path, env=environment)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout + done.stderr
    words = [program, "demo", "--robot", "quadruped", "--duration", "1", "--output", "walk"]
    done = run(words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    page = re.search(r"^Report: (.*)$", done.stdout, re.M).group(1)
    assert (tmp_path / page).is_file() and (tmp_path / "walk" / "summary.json").is_file()
