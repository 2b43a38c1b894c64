"""Installs the package with colcon (ROS 2, ament_python) and with pip (no ROS needed)."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "contact_id_controller"
NODES = (
    "controller",
    "command_watchdog",
    "dynamics_estimator",
    "gait_planner",
    "kinodynamic_planner",
    "simulated_robot",
    "viewer",
)
HERE = Path(__file__).resolve().parent

# Real ROS 2 (Kilted) from PyPI, for machines without a ROS installation.
ROS_FROM_PYPI = [
    "ros-rclpy[fastrtps]>=9.1.2",
    "ros-ament-index-python>=1.11.0",
    "ros-diagnostic-msgs>=5.5.1",
    "ros-geometry-msgs>=5.5.1",
    "ros-lifecycle-msgs>=2.3.0",
    "ros-nav-msgs>=5.5.1",
    "ros-rosgraph-msgs>=2.3.0",
    "ros-sensor-msgs>=5.5.1",
    "ros-std-msgs>=5.5.1",
    "ros-std-srvs>=5.5.1",
    "ros-trajectory-msgs>=5.5.1",
    "ros-visualization-msgs>=5.5.1",
]


def shared(folder, *patterns):
    """Files of a folder, to be installed under share/ with the same name."""
    files = sorted(
        str(path.relative_to(HERE))
        for pattern in patterns
        for path in (HERE / folder).glob(pattern)
    )
    return f"share/{NAME}/{folder}", files


setup(
    name=NAME,
    version="0.3.0",
    description="Inverse dynamics control of robots in contact, with a ROS 2 controller",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="contact_id_controller maintainers",
    author_email="contact-id-controller@example.org",
    maintainer="contact_id_controller maintainers",
    maintainer_email="contact-id-controller@example.org",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={
        NAME: ["py.typed"],
        f"{NAME}.ros": ["*.xml"],
        f"{NAME}.report": ["style.mplstyle", "templates/*"],
        f"{NAME}.view": ["pages/*"],
    },
    # Outside the Python package, as ROS wants it: <prefix>/share, with colcon and with pip alike.
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        # Where `ros2 run` and launch files look; never on PATH.
        (f"lib/{NAME}", [f"scripts/{node}" for node in NODES]),
        shared("launch", "*.launch.py"),
        shared("config", "*.yaml"),
        shared("config/arms", "*.yaml"),
        shared("config/plans", "*.yaml"),
        shared("config/bipeds", "*.yaml"),
        shared("config/rviz", "*.rviz"),
        shared("config/plotjuggler", "*.xml"),
        shared("config/foxglove", "*.json"),
        shared("config/ros2_control", "*.yaml"),
        shared("config/sros2", "*.xml"),
        shared("urdf", "*.urdf"),
    ],
    install_requires=[
        "setuptools",
        "numpy>=1.26",
        "scipy>=1.11",
        "pyyaml>=6.0",
        "numba>=0.59",
        "pin>=3.4",
    ],
    extras_require={
        "ros": ROS_FROM_PYPI,
        "simulation": [
            "mujoco>=3.3.5",
            "matplotlib>=3.8",
            "pillow>=10.1",
            "example-robot-data>=4.2",
            "rich>=13.7",
            "jinja2>=3.1",
        ],
        # python -m experiments reproduce, benchmark. GPL-2.0-or-later, see README, section Licence.
        "quadprog": ["quadprog>=0.1.12"],
        # contact_id replay, contact_id demo --bag
        "replay": ["rosbags>=0.10"],
        # contact_id demo --view, the node viewer
        "view": ["viser>=1.1", "trimesh>=4.0", "websockets>=13.0"],
        # python -m experiments reproduce --cluster, contact_id label --cluster
        "cluster": ["distributed>=2024.1"],
        # contact_id label: bags and parquet files; .npz needs nothing
        "label": ["rosbags>=0.10", "pyarrow>=15.0"],
        # contact_id diagnose: bags, and MATLAB files of version 7.3; .csv, .npz and older .mat need nothing
        "log": ["rosbags>=0.10", "h5py>=3.8"],
        # make docs
        "docs": ["sphinx>=7.3", "myst-parser>=4.0", "furo>=2024.8", "latex2mathml>=3.77"],
        "test": [
            "sphinx>=7.3",
            "myst-parser>=4.0",
            "furo>=2024.8",
            "latex2mathml>=3.77",
            "distributed>=2024.1",
            "rosbags>=0.10",
            "pyarrow>=15.0",
            "trimesh>=4.0",
            "viser>=1.1",
            "websockets>=13.0",
            "quadprog>=0.1.12",
            "pytest>=8.0",
            "pytest-xdist>=3.6",
            "pytest-timeout>=2.3",
            "import-linter>=2.16",
            "mypy>=1.15",
            "ruff>=0.17,<0.18",  # one formatter makes one layout
            "setuptools>=70.1",  # the first that builds wheels by itself
            "hypothesis>=6.100",
            "quantecon>=0.8",
            "clarabel>=0.9",
            "idyntree>=15.0",
            "casadi>=3.6",
        ],
    },
    entry_points={
        "console_scripts": [
            f"contact_id = {NAME}.cli:main",
            # On PATH with pip: names that say whose they are. `ros2 run` has short ones, too.
            *(f"contact_id_{node}_node = {NAME}.ros.executables:{node}" for node in NODES),
        ],
    },
    zip_safe=False,
)
