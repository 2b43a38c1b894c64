"""``contact_id plan``: one line a pass, a page, and a robot that follows the plan over stones."""

import json
import re

import numpy as np
import pytest
from paths import CONFIG

from contact_id_controller import cli
from contact_id_controller.exit_codes import DONE, REFUSED

pytest.importorskip("matplotlib", reason="needs the extra simulation")
SOLO12 = CONFIG / "plans" / "solo12.yaml"
STEP = "- {foot: FR_FOOT, at: [0.235, -0.147, 0.02], turned: [8, 0, 0]}\n"


def plan(folder, steps, *options):
    stones = folder / "stones.yaml"
    stones.write_text(steps, encoding="utf-8")
    words = [
        "plan",
        "--config",
        str(SOLO12),
        "--stones",
        str(stones),
        "--output",
        str(folder / "out"),
    ]
    return cli.run([*words, *options])


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """One step onto a tilted stone, followed in MuJoCo."""
    pytest.importorskip("mujoco", reason="needs the extra simulation")
    folder = tmp_path_factory.mktemp("plan")
    return plan(folder, STEP, "--execute"), folder / "out"


def test_the_plan_is_followed_over_the_stone(executed):
    """Section 8 of the design: no fall, CoM within 8 mm rms and 20 mm, forces within 8 %."""
    code, folder = executed
    assert code == DONE
    figures = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["figures"]
    assert figures["fell"]["value"] is False
    assert figures["com_error_rms_m"]["value"] < 8e-3
    assert figures["com_error_max_m"]["value"] < 20e-3
    assert figures["force_error"]["value"] < 0.08
    assert figures["executed_s"]["value"] > figures["duration_s"]["value"]


def test_the_page_shows_every_picture_that_was_written(executed):
    _, folder = executed
    page = (folder / "plan.html").read_text(encoding="utf-8")
    pictures = {path.name for path in folder.iterdir() if path.suffix in (".png", ".gif")}
    assert pictures >= {
        "footprints.png",
        "passes.png",
        "forces.png",
        "time.png",
        "plan.gif",
        "execution.gif",
    }
    assert all(f'src="{name}"' in page for name in pictures)
    assert "pass 2: forces" in page and "contact_id plan --config" in page


def test_the_file_holds_the_motion(executed):
    _, folder = executed
    with np.load(folder / "plan.npz") as arrays:
        assert arrays["q"].shape == (len(arrays["times_s"]), 19)
        assert arrays["forces"].shape == (len(arrays["knots_s"]) - 1, 4, 3)
        np.testing.assert_allclose(arrays["com"][0, :2], 0.0, atol=1e-2)


def test_each_pass_is_one_line(tmp_path, capsys):
    assert plan(tmp_path, STEP, "--passes", "3") == DONE
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["pass 1", "pass 2", "pass 3"]
    assert lines[3].startswith("planned ") and lines[4].startswith("Plan: ")


@pytest.mark.parametrize(
    ("steps", "options", "message"),
    [
        (
            "- {foot: FR_FOOT, at: [0.9, -0.147, 0]}\n",
            (),
            r"phase \d, foot \w+: CoM",
        ),
        ("- {foot: tail, at: [0, 0, 0]}\n", (), "footstep 1: foot 'tail' does not exist"),
        (STEP, ("--set", "stride_m"), "'stride_m' must be NAME=VALUE"),
        (STEP, ("--set", "strid_m=1"), "did you mean 'stride_m'"),
    ],
    ids=["too far", "no such foot", "no value", "no such parameter"],
)
def test_what_is_not_possible_is_one_line(tmp_path, capsys, steps, options, message):
    assert plan(tmp_path, steps, *options) == REFUSED
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and re.search(message, error)
    assert not (tmp_path / "out" / "plan.npz").exists()


def test_without_footsteps_the_option_is_named(tmp_path, refusal):
    words = ["--config", str(SOLO12), "--output", str(tmp_path), "--set", 'footsteps=""']
    assert "give --stones FILE" in refusal("plan", *words)


def test_a_wrong_robot_lists_those_that_there_are(tmp_path, refusal):
    error = refusal("plan", "--robot", "atlas", "--output", str(tmp_path))
    assert "robot is 'atlas', must be one of 'g1', 'solo12', 'talos'" in error
