"""``contact_id parameters``: page and template are those of the tables, and the template works."""

import subprocess
import sys

import pytest
import yaml
from paths import ROOT

from contact_id_controller import cli
from contact_id_controller.check.config import check_config
from contact_id_controller.check.findings import ERROR
from contact_id_controller.settings import reference
from contact_id_controller.settings.controller import TABLE, ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.settings.robot_files import robots
from contact_id_controller.settings.specification import ParameterSpec


@pytest.fixture(scope="module")
def tables():
    return reference.TABLES


def parsed(text):
    return {node: body["ros__parameters"] for node, body in yaml.safe_load(text).items()}


@pytest.mark.parametrize(
    "path, make", [(reference.PAGE, reference.page), (reference.TEMPLATE, reference.template)]
)
def test_files_are_up_to_date(tables, path, make):
    current = (ROOT / path).read_text(encoding="utf-8") == make(tables)
    assert current, f"{path} is out of date; run: {reference.COMMAND}"


def test_page_has_a_row_for_every_parameter_of_every_node(tables):
    text, seen = (ROOT / reference.PAGE).read_text(encoding="utf-8"), set()
    for node, table in tables.items():
        section = text.split(f"\n## {node}\n")[1].split("\n## ")[0]
        intro = section.split("| name |")[0]
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        own = [spec for spec in table if spec not in seen]
        assert len(rows) == len(own) > 5
        assert all(f"`{spec.name}`" in intro for spec in table if spec in seen)
        seen.update(table)
        for row, spec in zip(rows, own):
            cells = row.replace("\\|", "").split("|")[1:-1]
            assert len(cells) == 5 and f"`{spec.name}`" in cells[0] and spec.unit in cells[3]
            assert all(f"`{choice}`" in cells[3] for choice in spec.choices)


def test_template_parses_to_the_defaults(tables):
    values = parsed((ROOT / reference.TEMPLATE).read_text(encoding="utf-8"))
    assert list(values) == list(tables)
    for node, table in tables.items():
        assert set(values[node]) == {spec.name for spec in table if spec.default != ()}
        for spec in table:
            given = values[node].get(spec.name, ())
            assert spec.check(given) == spec.default, f"{node}.{spec.name}"


def filled(tmp_path):
    """The template with the robot of config/quadruped.yaml in the lines marked with (*)."""
    robot = parsed((ROOT / "config" / "quadruped.yaml").read_text(encoding="utf-8"))
    own = {name: value for name, value in robot["controller"].items() if name in reference.OWN}
    robot = {node: robot.get(node, own) for node in reference.TABLES}
    lines, node, starred = [], "", False
    for line in (ROOT / reference.TEMPLATE).read_text(encoding="utf-8").splitlines():
        name = line.lstrip(" #").partition(":")[0]
        if line and not line.startswith((" ", "#")):
            node = name
        if line.startswith("    # (*)"):
            starred = True
        elif starred and name in robot[node] and f"{name}:" in line:
            value = reference.value_text(robot[node][name])
            line, starred = f"    {name}: {value}", False
        lines.append(line)
    file = tmp_path / "mine.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_template_works_once_the_marked_lines_are_filled_in(tmp_path):
    file = filled(tmp_path)
    settings = load_settings(file)
    default = ControllerSettings()
    own = {spec.name for spec in TABLE if getattr(settings, spec.name) != spec.default}
    assert own == {"urdf", "joints", "contact_frames", "contact_radii_m", "damping_nm_s_rad"}
    assert settings.period_s == default.period_s
    assert [str(f) for f in check_config(file) if f.level == ERROR] == []


def test_ros_reads_the_filled_template(tmp_path, tables, context):
    import rclpy

    from contact_id_controller.ros.declared_parameters import ParameterTable

    file = filled(tmp_path)
    for node, table in tables.items():
        made = rclpy.create_node(
            node,
            context=context,
            automatically_declare_parameters_from_overrides=True,
            cli_args=["--ros-args", "--params-file", str(file)],
        )
        values = ParameterTable(made, table).values()
        made.destroy_node()
        wrong = {spec.name for spec in table if values[spec.name] != spec.default}
        assert "joints" in wrong
        assert all(
            spec.name in reference.OWN or reference.is_required(spec)
            for spec in table
            if spec.name in wrong
        )


WITH_SHARED = [file for file in robots().values() if "/**:" in file.read_text("utf-8")]


@pytest.mark.parametrize(
    "file", ["new", *WITH_SHARED], ids=lambda file: getattr(file, "stem", file)
)
def test_every_node_starts_with_the_whole_file_of_a_robot(file, tmp_path, tables, context):
    """As the launch file gives it: planner and watchdog refused what others share above all sections."""
    import rclpy

    from contact_id_controller.ros.declared_parameters import NODE_OPTIONS, ParameterTable

    if file == "new":
        file = tmp_path / "a1.yaml"
        urdf = "example-robot-data://a1_description/urdf/a1.urdf"
        assert cli.run(["new", urdf, "--output", str(file)]) == 0
    content = ParameterFile(file)
    for node in set(content.nodes) & set(tables):
        words = ["--ros-args", "--params-file", str(file)]
        made = rclpy.create_node(node, context=context, cli_args=words, **NODE_OPTIONS)
        values = ParameterTable(made, tables[node]).values()
        made.destroy_node()
        assert values["urdf"] == content.section(node)["urdf"]


def test_a_new_row_is_noticed(tables):
    row = ParameterSpec("rebound", "number", 1e-5, "How high | it < jumps.", unit="m", minimum=0.0)
    more = {**tables, "controller": (*tables["controller"], row)}
    assert reference.page(more) != reference.page(tables)
    line = next(line for line in reference.page(more).splitlines() if "`rebound`" in line)
    assert line == "| `rebound` | number | `1.0e-05` | 0 or more; m | How high \\| it \\< jumps. |"
    assert parsed(reference.template(more))["controller"]["rebound"] == 1e-5


def test_printed_rows_are_those_that_contain_the_words(refusal, capsys):
    assert cli.run(["parameters", "controller.", "gain", "linear"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line.split(":")[0] for line in heads] == [
        "controller.base_linear_position_gain",
        "controller.base_linear_velocity_gain",
    ]
    assert "default [50.0]; in 1/s^2; 0 to 1e+06" in heads[0]
    assert "contains nonsense" in refusal("parameters", "nonsense")


def test_write_makes_both_files(tmp_path, tables, refusal):
    for folder in ("docs", "config", "contact_id_controller/models"):
        (tmp_path / folder).mkdir(parents=True)
    assert cli.run(["parameters", "--write", str(tmp_path)]) == 0
    assert (tmp_path / reference.PAGE).read_text(encoding="utf-8") == reference.page(tables)
    assert (tmp_path / reference.TEMPLATE).read_text(encoding="utf-8") == reference.template(tables)
    assert "root of the sources" in refusal("parameters", "--write", str(tmp_path / "docs"))


def test_the_tables_of_all_nodes_need_neither_ros_nor_a_kernel():
    """In a process of its own: what was imported on the way is seen there."""
    code = (
        "import sys; from contact_id_controller import cli; code = cli.run(['parameters']); "
        "print({'rclpy', 'numba', 'pinocchio', 'mujoco'} & set(sys.modules), file=sys.stderr); "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.strip() == "set()"
    heads = {line.split(".")[0] for line in done.stdout.splitlines() if not line.startswith(" ")}
    assert heads == set(reference.TABLES)


def test_a_name_has_one_kind_and_one_unit_in_all_nodes(tables):
    """Names that controller, planner, simulated robot and watchdog share mean the same there."""
    rows = {}
    for table in tables.values():
        for spec in table:
            rows.setdefault(spec.name, []).append(spec)
    shared = {name: specs for name, specs in rows.items() if len(specs) > 1}
    assert len(shared) > 10
    for specs in shared.values():
        assert len({(spec.kind.removesuffix("s"), spec.unit) for spec in specs}) == 1
    (limits,) = [spec for spec in tables["command_watchdog"] if spec.name == "urdf"]
    for name in ("urdf", "floating_base", "contact_frames"):  # only the watchdog needs no robot
        assert len({spec.description for spec in shared[name] if spec != limits}) == 1
