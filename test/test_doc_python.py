"""The Python of the pages runs: as it stands, or with the names of the example that the page speaks of."""

import importlib.util
import re
import textwrap

import numpy as np
import pytest
from paths import ROOT

from contact_id_controller.runs import one_process

BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.M | re.S)
ELSEWHERE = {"adding_a_contact_model.md"}
"""Pages whose blocks another test runs: test_docs."""


def blocks(page):
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def example(name):
    """The names of an example."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def robot_of(name, **options):
    """Settings of a robot, and it in MuJoCo."""
    settings = one_process.controller_settings(name)
    return {"settings": settings, "world": one_process.mujoco_robot(settings, 0.6, **options)}


def stones(tmp_path):
    names = example("stones")
    values = names["section"](str(names["CONFIG"]), "kinodynamic_planner")
    settings = names["KinodynamicPlannerSettings"].from_mapping(values)
    (tmp_path / "stones.yaml").write_bytes(
        (names["CONFIG"].parent / "solo12_stones.yaml").read_bytes()
    )
    return {**names, "settings": settings, "folder": tmp_path}


def reaching():
    """The names of the example that reaches, with goals of a standing robot."""
    names, still = example("reach"), np.zeros((1, 3))
    return {
        **names,
        "balance": names["ComGoal"]([0.0, 0.0], [0.0, 0.0], 3.4, 0.85),
        "posture": names["Posture"](["knee"], [0.0]),
        "path": names["FootPath"]([0.0], [[0.5, -0.3, 1.0]], still, still),
    }


WITH = {
    ("docs/examples.md", 0): lambda folder: example("walk"),
    ("docs/examples.md", 1): lambda folder: {**example("squat"), **robot_of("solo12")},
    ("docs/examples.md", 2): lambda folder: reaching(),
    ("docs/examples.md", 3): lambda folder: example("sensors"),
    ("docs/examples.md", 4): stones,
    ("docs/estimation.md", 0): lambda folder: {
        **example("sensors"),
        **robot_of("solo12", imu_frame=""),
    },
    ("docs/labelling.md", 1): lambda folder: {},
    ("docs/planning.md", 0): stones,
    ("docs/planning.md", 1): lambda folder: {},
    ("docs/tutorial_arm.md", 0): lambda folder: {},
}
"""Page and number of a block -> the names that the text around it gives the reader."""

RESULTS = {
    ("docs/examples.md", 0): lambda names: not names["record"].fell,
    ("docs/examples.md", 1): lambda names: not names["run"].record(0.05).fell,
    ("docs/examples.md", 2): lambda names: list(names["goals"].frames) == [names["HAND"]],
    ("docs/examples.md", 3): lambda names: not names["run"].record(0.05).fell,
    ("docs/examples.md", 4): lambda names: not names["done"].record.fell,
    ("docs/estimation.md", 0): lambda names: names["estimate"].pipeline.settings.mounted,
    ("docs/labelling.md", 1): lambda names: set(names["batch"].names) == {"solved"},
    ("docs/planning.md", 0): lambda names: names["plan"].joints.last_s > 1.0,
    ("docs/planning.md", 1): lambda names: np.isfinite(names["freed"].moved_m).all(),
    ("docs/tutorial_arm.md", 0): lambda names: names["controller"].robot.na == 9,
}
"""What shows that it did what the page says."""


def test_each_block_of_python_is_run():
    pages = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE]
    found = {(f"docs/{p.name}", k) for p in pages for k in range(len(blocks(f"docs/{p.name}")))}
    assert found - {("docs/labelling.md", 0)} == set(WITH) == set(RESULTS)


@pytest.mark.parametrize("page, number", sorted(WITH))
def test_a_block_of_python_runs(page, number, tmp_path, monkeypatch, capsys):
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    names = WITH[page, number](tmp_path)
    monkeypatch.chdir(tmp_path if "folder" in names else ROOT)
    exec(compile(blocks(page)[number], page, "exec"), names)
    assert RESULTS[page, number](names)


def test_the_loop_of_getting_started_runs_after_the_script_of_the_first_page(capsys):
    (first,) = blocks("README.md")
    page = (ROOT / "docs/getting_started.md").read_text(encoding="utf-8")
    loop = re.search(r"(?:^    .*\n|^\n)+(?=\nThreads may share)", page, flags=re.M).group()
    names = {"period": 1e-3}
    exec(compile(first, "README.md", "exec"), names)
    robot = names["robot"]
    names |= {"v": np.zeros(robot.nv), "desired_acceleration": np.zeros(robot.na)}
    exec(compile(textwrap.dedent(loop), "getting_started.md", "exec"), names)
    np.testing.assert_array_equal(names["torques"], names["solution"].torques)
