"""Twenty mistakes in a good parameter file: each gives one error, the line that results/mistakes.md shows."""

import re

import pytest
import yaml
from paths import CONFIG, ROOT

from contact_id_controller import cli
from contact_id_controller.check.findings import ERROR
from contact_id_controller.kernels.compile_progress import SIGN
from contact_id_controller.robot import resolve_urdf

PAGE = ROOT / "results" / "mistakes.md"


class File:
    """The parameters of the quadruped, to be spoiled."""

    def __init__(self, folder):
        self.folder = folder
        self.content = yaml.safe_load((CONFIG / "quadruped.yaml").read_text(encoding="utf-8"))
        self.text = ""

    def of(self, node):
        return self.content[node]["ros__parameters"]

    def set(self, name, value, node="controller"):
        self.of(node)[name] = value

    def everywhere(self, change, *names):
        for node in self.content:
            values = self.of(node)
            values.update({name: change(values[name]) for name in names if name in values})

    def urdf(self, old, new):
        text = resolve_urdf(self.of("controller")["urdf"]).read_text(encoding="utf-8")
        assert old in text
        place = self.folder / "robot.urdf"
        place.write_text(text.replace(old, new, 1), encoding="utf-8")
        self.everywhere(lambda _: str(place), "urdf")

    def write(self):
        place = self.folder / "robot.yaml"
        place.write_text(self.text or yaml.safe_dump(self.content), encoding="utf-8")
        return place


def twice(file):
    file.text = yaml.safe_dump(file.content).replace(
        "    period_s: 0.001\n", "    period_s: 0.001\n    period_s: 0.002\n", 1
    )
    assert file.text.count("period_s: 0.002") == 1


def exchanged(file):
    names = file.of("simulated_robot")["joints"]
    names[0], names[3] = names[3], names[0]


def crossed(file):
    def turn(values):
        return [-8.0 * v if i % 3 == 0 else v for i, v in enumerate(values)]

    file.everywhere(turn, "posture", "initial_joint_positions")


FEET, POSTURES = ("contact_frames", "feet"), ("posture", "initial_joint_positions")
MISTAKES = {
    "`friction: coulumb`": lambda f: f.set("friction", "coulumb"),
    "`frictoin: coulomb`": lambda f: f.set("frictoin", "coulomb"),
    "`period_s: -0.001`": lambda f: f.everywhere(lambda _: -0.001, "period_s"),
    "`solver: 3`": lambda f: f.set("solver", 3),
    "a key that stands twice": twice,
    "`joint_position_gain: [1e6]`": lambda f: f.set("joint_position_gain", [1e6]),
    "a posture in degrees": lambda f: f.everywhere(
        lambda values: [round(57.29578 * value, 1) for value in values], *POSTURES
    ),
    "a posture with one joint less": lambda f: f.everywhere(lambda v: v[:-1], "posture"),
    "hips turned inwards": crossed,
    "shanks given as feet": lambda f: f.everywhere(
        lambda names: [name.replace("FOOT", "SHANK") for name in names], *FEET
    ),
    "a foot that the URDF lacks": lambda f: f.everywhere(lambda n: [*n[:-1], "TAIL"], *FEET),
    "a frame of the base as a foot": lambda f: f.everywhere(lambda n: [*n[:-1], "base"], *FEET),
    "one knee bent less than the others": lambda f: f.everywhere(
        lambda values: [*values[:2], 0.9, *values[3:]], *POSTURES
    ),
    "another radius for the planner": lambda f: f.everywhere(lambda _: 0.02, "foot_radius_m"),
    "a joint that the URDF lacks": lambda f: f.everywhere(lambda n: [*n[:-1], "RH_KNEE"], "joints"),
    "a joint listed twice": lambda f: f.everywhere(lambda n: [*n[:-1], n[0]], "joints"),
    "joints in another order for one node": exchanged,
    "`effort_limits_nm: [0.1]`": lambda f: f.set("effort_limits_nm", [0.1]),
    "two effort limits for twelve joints": lambda f: f.set("effort_limits_nm", [1.0, 2.0]),
    "a negative mass": lambda f: f.urdf('<mass value="', '<mass value="-'),
}


def promised():
    """Mistake -> line, from the table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("| mistake | line |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| (.+?) \| (.+?) \|$", table, flags=re.M))


def told(mistake, folder, capsys):
    """Errors that the command prints, the file named robot.yaml."""
    file = File(folder)
    MISTAKES[mistake](file)
    cli.run(["check", "--quiet", "--config", str(file.write())])
    out = capsys.readouterr()
    lines = [line for line in out.out.splitlines() if line.startswith(ERROR)]
    refused = [line for line in out.err.splitlines() if not line.startswith(SIGN)]
    return [line.replace(f"{folder}/", "") for line in lines + refused]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_the_one_line_that_the_page_promises(mistake, tmp_path, capsys):
    (line,) = told(mistake, tmp_path, capsys)
    whole, cut, _ = promised()[mistake].partition(" ...")
    assert line.startswith(whole) and (cut or line == whole)


def test_the_page_lists_these_mistakes_and_no_others():
    assert set(promised()) == set(MISTAKES) and len(MISTAKES) == 20
