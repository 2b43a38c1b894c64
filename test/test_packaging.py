"""The package installs whole, with pip and for ROS, and declares everything that it imports."""

import ast
import configparser
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile
from functools import cache
from importlib import import_module

import pytest
from paths import EXPERIMENTS, PACKAGE, ROOT

import contact_id_controller

# Module -> (rosdep key in package.xml, requirement in setup.py)
DEPENDENCIES = {
    "numpy": ("python3-numpy", "numpy"),
    "scipy": ("python3-scipy", "scipy"),
    "yaml": ("python3-yaml", "pyyaml"),
    "numba": ("python3-numba", "numba"),
    "pinocchio": ("pinocchio", "pin"),
    "coal": ("pinocchio", "pin"),
    "mujoco": ("python3-mujoco-pip", "mujoco"),
    "matplotlib": ("python3-matplotlib", "matplotlib"),
    "PIL": ("python3-pil", "pillow"),
    "rich": ("python3-rich", "rich"),
    "jinja2": ("python3-jinja2", "jinja2"),
    "markupsafe": ("python3-jinja2", "jinja2"),  # a part of it
    "rclpy": ("rclpy", "ros-rclpy"),
    "rcl_interfaces": ("rclpy", "ros-rclpy"),
    "builtin_interfaces": ("rclpy", "ros-rclpy"),
    "ament_index_python": ("ament_index_python", "ros-ament-index-python"),
    **{
        name: (name, "ros-" + name.replace("_", "-"))
        for name in (
            "diagnostic_msgs",
            "geometry_msgs",
            "lifecycle_msgs",
            "nav_msgs",
            "rosgraph_msgs",
            "sensor_msgs",
            "std_msgs",
            "std_srvs",
            "trajectory_msgs",
            "visualization_msgs",
        )
    },
}

NODES = {
    "controller",
    "command_watchdog",
    "dynamics_estimator",
    "gait_planner",
    "kinodynamic_planner",
    "simulated_robot",
    "viewer",
}

# Used where they are there, for comparison: rosdep does not install them, an extra of pip does.
OPTIONAL = {
    "quadprog",
    "quantecon",
    "clarabel",
    "distributed",
    "h5py",
    "idyntree",
    "casadi",
    "pyarrow",
    "rosbags",
    "trimesh",
    "viser",
    "websockets",
}
# Measured by the benchmark in an environment of its own, which the user makes; and the plugin of
# ros2_control that imports our module, not the other way round. Type checkers know
# typing_extensions by themselves, and nothing imports it at run time. tf2_msgs comes with a ROS
# installation, not from PyPI; without it the estimator publishes no /tf.
OURS = {"contact_id_controller", "experiments"}
FOREIGN = {"placo", "agimus_pytroller_py", "typing_extensions", "tf2_msgs"}

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


def _imported(file):
    """Top-level names of the modules that a file imports, relative imports left out."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


@cache
def _foreign_imports():
    """Module -> files of package and experiments that import it, the standard library left out."""
    found = {}
    for file in (*PACKAGE.rglob("*.py"), *EXPERIMENTS.rglob("*.py")):
        for name in _imported(file) - set(sys.stdlib_module_names) - OURS:
            found.setdefault(name, []).append(file.relative_to(ROOT).as_posix())
    return found


@pytest.fixture(scope="module")
def manifest():
    """The root of package.xml."""
    return ElementTree.parse(ROOT / "package.xml").getroot()


def _run(words, **options):
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
    done = _run([sys.executable, "-c", make.format("sdist", str(folder))], cwd=folder / "source")
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    done = _run([sys.executable, "-c", make.format("wheel", str(folder))], cwd=unpacked)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return archive, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Programs of an environment that has the wheel, and of this one nothing but other packages."""
    folder = tmp_path_factory.mktemp("environment")
    assert _run([sys.executable, "-m", "venv", "--without-pip", folder]).returncode == 0
    place = sysconfig.get_path("purelib", "venv", {"base": folder, "platbase": folder})
    others = [path for path in site.getsitepackages() if os.path.isdir(path)]
    with open(os.path.join(place, "others.pth"), "w") as file:
        file.writelines(f"import site; site.addsitedir({path!r})\n" for path in others)
    done = _run(
        [
            sys.executable,
            *("-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"),
            *("install", "--no-deps", "--no-index", "--ignore-installed", built[1]),
        ]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(built):
    return built[1]


@pytest.fixture
def environment():
    """The variables of this process without those that lead to its sources."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def test_version_is_the_same_everywhere(manifest, wheel):
    version = manifest.findtext("version")
    assert contact_id_controller.__version__ == version
    assert wheel.name.startswith(f"contact_id_controller-{version}-")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d\S*)", changelog, re.MULTILINE)
    assert released[0] == version


def test_manifest_is_one_of_an_ament_python_package(manifest):
    assert manifest.get("format") == "3"
    assert manifest.findtext("name") == "contact_id_controller"
    assert manifest.findtext("export/build_type") == "ament_python"
    assert re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", manifest.find("maintainer").get("email"))
    license_file = ROOT / manifest.find("license").get("file")
    assert manifest.findtext("license") == "Apache-2.0"
    assert "Apache License" in license_file.read_text(encoding="utf-8")


def test_every_import_is_declared_for_rosdep_and_for_pip(manifest, wheel):
    keys = {element.text for tag in ("depend", "exec_depend") for element in manifest.iter(tag)}
    required = _requirements(wheel)
    for module, files in _foreign_imports().items():
        if module in FOREIGN:
            continue
        if module in OPTIONAL:
            assert module in required, f"setup.py lacks {module}, imported by {files}"
            continue
        assert module in DEPENDENCIES, f"{module}, imported by {files}, is declared nowhere"
        key, requirement = DEPENDENCIES[module]
        assert key in keys, f"package.xml lacks {key}, imported by {files}"
        assert requirement in required, f"setup.py lacks {requirement}, imported by {files}"


def test_launch_files_have_their_dependencies(manifest):
    keys = {element.text for element in manifest.iter("exec_depend")}
    imported = set().union(*map(_imported, (ROOT / "launch").glob("*.py")))
    assert imported - set(sys.stdlib_module_names) - {"contact_id_controller"} <= keys


def test_quadprog_is_of_tests_and_experiments_only(manifest):
    """Its licence is the GPL: the package does without it, and a robot does not install it."""
    assert set(_foreign_imports()["quadprog"]) == {
        "experiments/benchmark/quadprog_two_stages.py",
        "experiments/papers/kinetic_energy.py",
    }
    wanted = [element.tag for element in manifest if element.text == "quadprog-pip"]
    assert wanted == ["test_depend"]


def _requirements(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
    return {match[1].lower() for match in re.finditer(r"^Requires-Dist: ([\w-]+)", metadata, re.M)}


def test_wheel_holds_every_module_and_shared_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py")}
    report = PACKAGE / "report"
    read = {path.relative_to(ROOT).as_posix() for path in (report / "templates").iterdir()}
    read.add((report / "style.mplstyle").relative_to(ROOT).as_posix())
    read |= {"contact_id_controller/py.typed", "contact_id_controller/ros/loopback.xml"}
    assert modules | read <= names
    assert not [name for name in names if name.startswith("experiments")]
    shared = {
        path.relative_to(ROOT).as_posix()
        for folder, pattern in (
            ("config", "*.yaml"),
            ("config/arms", "*.yaml"),
            ("config/plans", "*.yaml"),
            ("config/bipeds", "*.yaml"),
            ("config/rviz", "*.rviz"),
            ("config/plotjuggler", "*.xml"),
            ("config/foxglove", "*.json"),
            ("config/ros2_control", "*.yaml"),
            ("urdf", "*.urdf"),
            ("launch", "*.launch.py"),
        )
        for path in (ROOT / folder).glob(pattern)
    }
    assert shared
    for name in (*shared, "package.xml"):
        assert any(n.endswith(f"data/share/contact_id_controller/{name}") for n in names), name
    assert any(
        n.endswith("ament_index/resource_index/packages/contact_id_controller") for n in names
    )


def test_pip_puts_scripts_where_a_shell_finds_them(installed):
    scripts = {"contact_id", *(f"contact_id_{node}_node" for node in NODES)}
    # No names that other packages might have as well.
    names = {path.name for path in installed.iterdir() if os.access(path, os.X_OK)}
    assert scripts == {name for name in names if not name.startswith("python")}
    assert (installed.parent / "share/contact_id_controller/config/quadruped.yaml").is_file()


def test_ros2_run_knows_the_short_names_of_the_nodes(installed):
    folder = installed.parent / "lib" / "contact_id_controller"
    assert NODES == {path.name for path in folder.iterdir() if os.access(path, os.X_OK)}
    for node in NODES:
        code = compile((folder / node).read_text(encoding="utf-8"), node, "exec")
        names = {"__name__": "not_main"}
        exec(code, names)
        assert names["main"] is getattr(
            import_module("contact_id_controller.ros.executables"), node
        )
        room = names["main"].args[0]
        assert callable(import_module(f"contact_id_controller.{room}").main)


def test_ros2_run_finds_the_executables_of_a_colcon_build():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    place = "$base/lib/contact_id_controller"
    assert config["develop"]["script_dir"] == place
    assert config["install"]["install_scripts"] == place


def test_entry_points_are_functions(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("entry_points.txt")]
        points = configparser.ConfigParser()
        points.read_string(archive.read(name).decode())
    for target in points["console_scripts"].values():
        module, _, function = target.partition(":")
        assert callable(getattr(import_module(module), function)), target


def test_the_archive_has_what_strangers_read(built):
    with tarfile.open(built[0]) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    for name in ("README.md", "CHANGELOG.md", "LICENSE", "package.xml", "config/quadruped.yaml"):
        assert name in inside


def test_library_check_and_demo_work_where_nothing_else_is(installed, tmp_path, environment):
    done = _run([installed / "python", "-c", WHERE], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    place, version = done.stdout.split()
    assert place.startswith(str(installed.parent))
    assert version == contact_id_controller.__version__
    done = _run([installed / "python", "-c", LIBRARY], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1.0, rel=1e-6)
    program = installed / "contact_id"
    done = _run([program, "--version"], cwd=tmp_path, env=environment)
    assert done.stdout.split() == ["contact_id", version]
    config = installed.parent / "share" / "contact_id_controller" / "config" / "quadruped.yaml"
    done = _run([program, "check", "--config", config], cwd=tmp_path, env=environment)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout + done.stderr
    words = [program, "demo", "--robot", "quadruped", "--duration", "1", "--output", "walk"]
    done = _run(words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    page = re.search(r"^Report: (.*)$", done.stdout, re.M).group(1)
    assert (tmp_path / page).is_file() and (tmp_path / "walk" / "summary.json").is_file()
