"""The figures of a report mean what they say, and its files are complete."""

import dataclasses
import html.parser
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from PIL import Image
from synthetic_walk import FEET, PERIOD_S, SPEED_M_S, URDF, synthetic_walk

from contact_id_controller.exceptions import RecordError, RenderingError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.report import animation, comparison, metrics, plots, report, tables
from contact_id_controller.report.force_strip import ForceStrip
from contact_id_controller.report.tables import in_words
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.record import COLUMNS, merge_records
from contact_id_controller.runs.setup import make_setup
from contact_id_controller.simulation import rendering

UP = np.array([0.0, 0.0, 1.0])
WEIGHT_N = 4.8 * 9.81

REQUIRED = {
    "robot",
    "friction",
    "solver",
    "duration_s",
    "fell",
    "mean_joint_position_error_rad",
    "mean_joint_velocity_error_rad_s",
    "normal_force_relative_error",
    "torque_mean_nm",
    "torque_rate_mean_nm_s",
    "solve_time_median_s",
    "solve_time_p99_s",
    "step_time_median_s",
    "step_time_p99_s",
    "deadline_misses",
    "distance_travelled_m",
}


def _figure(walk, name):
    (value,) = metrics.measure(walk, WEIGHT_N, UP, (name,)).values()
    return value


@pytest.mark.parametrize(
    "name, words",
    [
        ("mean_joint_position_error_rad", "mean joint position error"),
        ("torque_rate_mean_nm_s", "torque rate mean"),
        ("step_time_p99_s", "step time p99"),
        ("fell", "fell"),
    ],
)
def test_figures_have_names_in_words_where_their_unit_stands_beside(name, words):
    assert in_words(name) == words


def test_force_error_is_the_missing_share_of_the_weight():
    walk = synthetic_walk(2.0, predicted_share=0.97)
    assert _figure(walk, "normal_force_relative_error") == pytest.approx(0.03, rel=1e-6)


def test_force_error_does_not_cancel_between_times_and_leaves_out_the_first_second():
    walk = synthetic_walk(3.0)
    signs = np.where(np.arange(len(walk)) % 2, 1.02, 0.98)
    signs[walk.time_s < 1.0] = 5.0
    walk = dataclasses.replace(walk, predicted_forces=walk.simulated_forces * signs[:, None, None])
    assert _figure(walk, "normal_force_relative_error") == pytest.approx(0.02, rel=1e-6)


def test_force_error_counts_only_the_direction_of_the_normal():
    walk = synthetic_walk(2.0)
    sideways = walk.predicted_forces + np.array([3.0, -2.0, 0.0])
    walk = dataclasses.replace(walk, predicted_forces=sideways)
    assert _figure(walk, "normal_force_relative_error") == pytest.approx(0.0, abs=1e-12)


def test_torque_rate_of_a_ramp_is_its_slope():
    walk = synthetic_walk(1.0)
    slopes = np.linspace(-30.0, 20.0, len(walk.joint_names))
    walk = dataclasses.replace(walk, torques=walk.time_s[:, None] * slopes)
    assert _figure(walk, "torque_rate_mean_nm_s") == pytest.approx(np.abs(slopes).mean(), rel=1e-9)


def test_distance_of_a_straight_walk_with_sway_is_its_length():
    walk = synthetic_walk(10.0)
    assert _figure(walk, "distance_travelled_m") == pytest.approx(10.0 * SPEED_M_S, rel=0.03)


def test_joint_errors_are_means_of_absolute_values():
    walk = synthetic_walk(1.0)
    alternating = 0.01 * np.where(np.arange(len(walk)) % 2, 1.0, -1.0)[:, None]
    walk = dataclasses.replace(walk, reference_position=walk.position + alternating)
    figures = metrics.measure(walk, WEIGHT_N, UP)
    assert figures["mean_joint_position_error_rad"] == pytest.approx(0.01)
    assert figures["mean_joint_velocity_error_rad_s"] == pytest.approx(0.05)


def _write_records(
    folder, *, control_times, robot_times, shuffle_feet=False, feet=("left", "right")
):
    """Records whose every value tells the time and the foot it belongs to."""
    joints, f = ["a", "b"], len(feet)
    order = list(range(f))[:: -1 if shuffle_feet else 1]
    n, m = len(control_times), len(robot_times)
    stamps, times = np.array(control_times), np.array(robot_times)
    per_joint = np.repeat(stamps[:, None], 2, axis=1)
    foot_values = 10.0 * np.arange(1, f + 1)
    predicted = np.zeros((n, f, 3))
    predicted[..., 2] = stamps[:, None] + foot_values
    simulated = np.zeros((m, f, 3))
    simulated[..., 2] = times[:, None] + foot_values[order]
    np.savez(
        folder / "controller.npz",
        time_s=stamps,
        torques=per_joint,
        forces=predicted,
        contact=np.ones((n, f), bool),
        saturated=np.zeros((n, 2), bool),
        position=per_joint,
        velocity=per_joint,
        reference_position=per_joint,
        reference_velocity=per_joint,
        solve_time_s=np.arange(n) + 1.0,
        step_time_s=np.arange(n) + 2.0,
        power_loss_w=np.arange(n) + 3.0,
        status=np.full(n, "solved"),
        deadline_misses=3,
        joint_names=joints,
        foot_names=feet,
        refused_reasons=["stale"],
        refused_counts=[2],
    )
    np.savez(
        folder / "simulated_robot.npz",
        time_s=times,
        q=np.repeat(times[:, None], 2, axis=1),
        v=np.zeros((m, 2)),
        torques=np.repeat(times[:, None], 2, axis=1),
        contact_forces=simulated,
        fell_time_s=np.nan,
        late_periods=1,
        joint_names=joints,
        foot_names=[feet[i] for i in order],
    )
    return folder / "controller.npz", folder / "simulated_robot.npz"


def test_records_are_paired_by_stamp_and_by_name(tmp_path):
    files = _write_records(
        tmp_path,
        control_times=[0.001, 0.002, 0.004, 0.005],
        robot_times=[0.0, 0.001, 0.002, 0.003, 0.004],
        shuffle_feet=True,
    )
    walk = merge_records(*files, PERIOD_S)
    np.testing.assert_allclose(walk.time_s, [0.001, 0.002, 0.004])
    np.testing.assert_allclose(walk.predicted_forces, walk.simulated_forces)
    np.testing.assert_allclose(walk.torques[:, 0], walk.position[:, 0])
    assert walk.unanswered_states == 2
    assert walk.refused_inputs == {"stale": 2}


def test_estimated_forces_of_flat_feet_are_compared_foot_by_foot(tmp_path):
    """An estimator knows whole feet, a simulator contacts: here two soles with four corners, and a ball."""
    times = [0.0, 0.001, 0.002, 0.003]
    soles = [f"{side}_{corner}" for side in ("left", "right") for corner in range(1, 5)]
    files = _write_records(
        tmp_path, control_times=times, robot_times=times, feet=["tail_1", *soles]
    )
    forces = np.zeros((4, 3, 3))
    forces[..., 2] = [10.0, 20.0 + 30.0 + 40.0 + 50.0, 60.0 + 70.0 + 80.0 + 90.0]
    forces[..., 2] += np.array([1.0, 4.0, 4.0]) * (np.array(times) - PERIOD_S)[:, None]
    forces[..., 1] += 3.0
    path = tmp_path / "dynamics_estimator.npz"
    arrays = {"time_s": times, "q": np.zeros((4, 2)), "v": np.zeros((4, 2)), "forces": forces}
    np.savez(path, **arrays, foot_names=["tail_1", "left", "right"])
    walk = merge_records(*files, PERIOD_S, path)
    assert walk.estimated.forces.shape == walk.simulated_forces.shape == (3, 9, 3)
    found = metrics.measure(walk, WEIGHT_N, UP, ["estimated_force_rms"])["estimated_force_rms"]
    assert found == pytest.approx(3.0 / WEIGHT_N)
    np.savez(path, **arrays, foot_names=["tail_1", "left", "other"])
    with pytest.raises(RecordError, match="not of the feet"):
        merge_records(*files, PERIOD_S, path)


def test_of_states_repeated_while_the_robot_is_held_the_last_counts(tmp_path):
    held = [1e-9, 2e-9, 3e-9]
    files = _write_records(
        tmp_path, control_times=[*held, 0.001, 0.002], robot_times=[0.0, 0.001, 0.002]
    )
    walk = merge_records(*files, PERIOD_S)
    np.testing.assert_allclose(walk.solve_time_s, [3.0, 4.0, 5.0])
    assert walk.unanswered_states == 0


@pytest.mark.parametrize(
    "break_it, message",
    [
        (lambda control, robot: control.unlink(), "no record of the controller"),
        (
            lambda control, robot: robot.write_bytes(b"not a record"),
            "no record of the simulated robot",
        ),
        (lambda control, robot: np.savez(control, time_s=[0.0]), "lacks"),
    ],
)
def test_records_that_cannot_be_used_are_named(tmp_path, break_it, message):
    control, robot = _write_records(tmp_path, control_times=[0.0, 0.001], robot_times=[0.0, 0.001])
    break_it(control, robot)
    with pytest.raises(RecordError, match=message):
        merge_records(control, robot, PERIOD_S)


def test_records_without_common_states_are_refused(tmp_path):
    files = _write_records(tmp_path, control_times=[0.0, 0.001], robot_times=[5.0, 5.001])
    with pytest.raises(RecordError, match="0 states in common"):
        merge_records(*files, PERIOD_S)


class _Links(html.parser.HTMLParser):
    """Collects what a page refers to."""

    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("href", "src")]


def _links(page):
    parser = _Links()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.links


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Reports of two runs and the index of both."""
    folder = tmp_path_factory.mktemp("report")
    runs = []
    for name, mu in (("first", 1.0), ("second", float("inf"))):
        place = folder / name
        (place / "log").mkdir(parents=True)
        setup = make_setup(place, robot="quadruped", duration_s=1.0, mu=mu)
        setup.write(place / "parameters.yaml")
        runs.append(
            report.write_report(
                synthetic_walk(1.0, predicted_share=0.98, noise=0.02), setup, place, 2.0
            )
        )
    report.write_index(runs, folder)
    return folder


def test_summary_has_every_required_figure(written):
    content = json.loads((written / "first" / "summary.json").read_text())
    assert REQUIRED <= content.keys()
    assert content["robot"] == "quadruped" and content["fell"] is False
    assert content["versions"]["numpy"] == np.__version__
    assert set(content["meaning"]) == set(metrics.REPORTED)


def test_summary_of_several_runs_leads_with_the_first(written):
    content = json.loads((written / "summary.json").read_text())
    assert REQUIRED <= content.keys() and content["mu"] == 1.0
    assert list(content["runs"]) == ["first", "second"]
    assert content["runs"]["second"]["mu"] == "inf"  # JSON has no infinity


def test_a_page_begins_with_verdict_and_five_figures_then_pictures_then_tables(written):
    text = (written / "first" / "report.html").read_text()
    verdict, first, picture, last_picture, table = (
        text.index("<h1>"),
        text.index('<dl class="headline">'),
        text.index("<img"),
        text.rindex("<img"),
        text.index("<table>"),
    )
    assert verdict < first < picture < last_picture < table
    assert "walked 1 s" in text[verdict:first]
    assert text[first:picture].count("<dt>") == 5 and "in lockstep" not in text


def test_pages_compare_the_runs_in_a_chart_with_their_noise(written):
    text = (written / "index.html").read_text()
    assert text.index(comparison.CHART) < text.index("<table>") and "±" in text
    assert (written / comparison.CHART).stat().st_size > 5000
    summaries = [
        json.loads((written / name / "summary.json").read_text()) for name in ("first", "second")
    ]
    figure = comparison.plot_comparison(["first", "second"], summaries)
    assert len(figure.axes) == 5
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["first", "second"]
    other = [summaries[0], {**summaries[1], "robot": "another"}]
    assert comparison.save_comparison(["first", "second"], other, written) == []


def test_noise_is_the_standard_error_of_what_differs_from_part_to_part():
    """The error of a joint is 4 mrad in half of the parts, 2 mrad in the others."""
    walk = synthetic_walk(9.0)
    large = (np.arange(len(walk)) // 1000 % 2 == 0)[:, None]
    walk = dataclasses.replace(walk, reference_position=walk.position + np.where(large, 4e-3, 2e-3))
    found = metrics.noise(walk, WEIGHT_N, UP)
    expected = np.std([4e-3, 2e-3] * 4, ddof=1) / np.sqrt(8)
    assert found["mean_joint_position_error_rad"] == pytest.approx(expected, rel=0.02)
    assert set(found) <= set(metrics.REPORTED)
    assert metrics.noise(synthetic_walk(0.5), WEIGHT_N, UP) == {}
    assert tables.format_noise(4.567e-4, "s") == " ± 460" and tables.format_noise(None, "s") == ""


def test_a_run_that_did_not_follow_says_why_and_late_steps_in_lockstep_are_explained(
    tmp_path, capsys
):
    (tmp_path / "log").mkdir()
    setup = make_setup(tmp_path, robot="quadruped", duration_s=0.3)
    walk = dataclasses.replace(
        synthetic_walk(0.3), not_following="base 0.059 m too low", deadline_misses=7
    )
    run = report.write_report(walk, setup, tmp_path, 1.0)
    page = (tmp_path / "report.html").read_text()
    assert "did not follow its plan: base 0.059 m too low" in page
    assert run.summary["followed"] is False and run.summary["fell"] is False
    tables.print_figures([(run.title, run.summary)])
    shown = capsys.readouterr().out
    assert "(1) did not follow: base 0.059 m too low" in shown
    for text in (page, shown):
        assert "in lockstep the simulation waits for each step" in text
    assert metrics.note("deadline_misses", [{**run.summary, "mode": "real_time"}]) == ""


def test_pages_link_only_to_files_beside_them(written):
    for page in (written / "index.html", *written.glob("*/report.html")):
        links = _links(page)
        assert links
        for link in links:
            assert not re.match(r"[a-z]+:|/", link), f"{link} leaves the report"
            assert (page.parent / link).exists(), f"{page} refers to {link}"


def test_every_plot_is_drawn_and_shown(written):
    plots = sorted(path.name for path in (written / "first").glob("*.png"))
    assert plots == [
        "base_motion.png",
        "base_path.png",
        "joint_error.png",
        "normal_forces.png",
        "power_loss.png",
        "solve_time.png",
        "torque.png",
    ]
    assert set(plots) <= set(_links(written / "first" / "report.html"))
    for name in plots:
        with Image.open(written / "first" / name) as picture:
            colours = picture.convert("RGB").getcolors(1 << 24)
        assert len(colours) > 100, f"{name} is nearly empty"


def _animate(walk, path):
    return animation.save_animation(
        walk,
        path,
        urdf=URDF,
        robot=RobotModel.from_urdf(URDF),
        feet=[SphereFoot(name, 0.01) for name in FEET],
        normal=UP,
    )


def _frames(path):
    with Image.open(path) as picture:
        frames = []
        for number in range(picture.n_frames):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("RGB")))
    return frames


def test_animation_moves_and_lasts_as_long_as_the_walk(written):
    frames = _frames(written / "first" / "animation.gif")
    of_all = animation.SMALL if animation.writes_avif() else 1
    assert len(frames) == pytest.approx(animation.FRAMES_PER_SECOND / of_all, abs=1)
    robot = [frame[: animation.HEIGHT].astype(int) for frame in frames]
    assert np.abs(robot[0] - robot[3]).max() > 50


@pytest.mark.skipif(not animation.writes_avif(), reason="this Pillow writes no AVIF")
def test_a_sharp_animation_stands_beside_a_small_gif(written):
    """A GIF of twelve seconds had seven megabytes."""
    sharp, small = written / "first" / "animation.avif", written / "first" / "animation.gif"
    frames, reduced = _frames(sharp), _frames(small)
    assert len(reduced) == (len(frames) + 1) // animation.SMALL
    height = animation.HEIGHT + animation.STRIP_HEIGHT
    assert frames[0].shape[:2] == (height, animation.WIDTH)
    assert reduced[0].shape[:2] == (height // 2, animation.WIDTH // 2)
    assert (
        np.abs(frames[0][: animation.HEIGHT].astype(int) - frames[3][: animation.HEIGHT]).max() > 50
    )
    assert small.stat().st_size < 12e3 * len(frames)
    assert {"animation.avif", "animation.gif"} <= set(_links(written / "first" / "report.html"))
    page = (written / "index.html").read_text()
    assert '<source type="image/avif" srcset="first/animation.avif">' in page


def test_where_no_avif_can_be_written_the_gif_is_as_large_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(animation.features, "check", lambda name: False)
    setup = make_setup(tmp_path, robot="quadruped", duration_s=30.0)
    (tmp_path / "animation.avif").write_bytes(b"of a run before")
    report.write_report(synthetic_walk(0.2), setup, tmp_path, 0.1)
    assert not (tmp_path / "animation.avif").exists()
    assert _frames(tmp_path / "animation.gif")[0].shape[1] == animation.WIDTH
    assert "animation.avif" not in (tmp_path / "report.html").read_text()


def test_without_opengl_a_stick_figure_is_drawn(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise RenderingError("no OpenGL here")

    monkeypatch.setattr(rendering, "render_frames", refuse)
    caption = _animate(synthetic_walk(0.5), tmp_path / "stick.gif")
    assert "stick figure" in caption
    frames = _frames(tmp_path / "stick.gif")
    assert len(frames) == 10
    blue = np.array([0x1C, 0x3D, 0x5A])
    picture = frames[5][: animation.HEIGHT].astype(int)
    assert (np.abs(picture - blue).max(axis=2) < 30).sum() > 100, "no simulated force is drawn"


def test_run_that_fell_at_once_has_a_report_too(tmp_path):
    setup = make_setup(tmp_path, robot="quadruped", duration_s=30.0)
    walk = dataclasses.replace(synthetic_walk(0.03), fell_time_s=0.02)
    written = report.write_report(walk, setup, tmp_path, 0.1)
    assert written.summary["fell"] and "fell" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "animation.gif").stat().st_size > 0


def test_run_of_an_arm_that_touches_nothing_has_a_report_without_forces(tmp_path):
    walk, nothing = synthetic_walk(0.3), np.zeros((300, 0, 3))
    walk = dataclasses.replace(
        walk,
        foot_names=(),
        predicted_forces=nothing[: len(walk)],
        simulated_forces=nothing[: len(walk)],
        contact=np.zeros((len(walk), 0), dtype=bool),
    )
    changes = ["contact_frames=[]", "simulated_robot.contact_frames=[]"]
    setup = make_setup(tmp_path, robot="quadruped", duration_s=30.0, changes=changes)
    written = report.write_report(walk, setup, tmp_path, 0.1)
    assert written.summary["normal_force_relative_error"] is None
    assert "normal_forces.png" not in _links(tmp_path / "report.html")
    assert len(_frames(tmp_path / "animation.gif")) > 1


def _arm():
    """Of a bolted arm whose hand touches: the settings' posture, forces of a made-up contact."""
    config = ROOT / "config" / "arms" / "panda.yaml"
    walk = synthetic_walk(0.3)
    setup = make_setup(Path("unused"), robot="panda", config=config, duration_s=0.3)
    names = tuple(setup.settings.robot().joint_names)
    n, j = len(walk), len(names)
    cut = {
        name: getattr(walk, name)[:, : {"j": j, "f": 1}[column.shape[0]]]
        for name, column in COLUMNS.items()
        if column.shape[:1] in (("j",), ("f",))
    }
    start = setup.parameters["simulated_robot"]["initial_joint_positions"]
    q, v = np.tile(start, (n, 1)), np.zeros((n, j))
    record = dataclasses.replace(
        walk, joint_names=names, foot_names=("panda_hand_tcp",), q=q, v=v, **cut
    )
    return setup, record


def test_report_of_an_arm_speaks_of_no_walk_no_feet_and_no_fall(tmp_path):
    setup, record = _arm()
    (tmp_path / "log").mkdir()
    run = report.write_report(record, setup, tmp_path, 1.0)
    report.write_index([run], tmp_path)
    for page in ("report.html", "index.html"):
        words = re.sub(
            r"<style>.*?</style>|<[^>]*>", " ", (tmp_path / page).read_text(), flags=re.S
        )
        found = re.findall(r"(?i)\b(?:walk|f[eo][eo]t|gait|steps of|fell|distance)\w*", words)
        assert found == [], page
        assert "moved 0.3 s" in words


def test_a_robot_that_stays_where_it_is_stood(tmp_path):
    """The page of a squat said "walked 4 s", 4.285e-09 m, along a path of nanometres."""
    walk, still = synthetic_walk(0.3), synthetic_walk(0.3).q.copy()
    still[:, 0] = np.linspace(0.0, -4.3e-9, len(still))
    still[:, 1] = 0.0
    (tmp_path / "log").mkdir()
    setup = make_setup(tmp_path, robot="quadruped", duration_s=0.3)
    record = dataclasses.replace(walk, q=still)
    report.write_report(record, setup, tmp_path, 1.0)
    text = (tmp_path / "report.html").read_text()
    assert "stood 0.3 s" in text and "e-09" not in text and "0 m" in text
    left, right = plots.plot_base_path(record, np.zeros((0, 2))).axes[0].get_xlim()
    assert right - left >= 2.0 * plots.STILL_M


def test_a_joint_that_turns_without_end_makes_no_free_base():
    _, record = _arm()
    turning = np.hstack([record.q, np.ones((len(record), 1))])  # its cosine and sine
    assert not dataclasses.replace(record, q=turning).floating_base
    assert synthetic_walk(0.01).floating_base


def test_a_run_that_touches_late_is_shown_in_detail_where_it_does():
    walk = synthetic_walk(8.0)
    assert plots._zoom(walk).start == 3250
    late = np.zeros_like(walk.contact)
    late[5463:] = True
    rows = plots._zoom(dataclasses.replace(walk, contact=late))
    assert rows.start < 5463 < rows.stop and rows.stop - rows.start == 1500
    late[:7990] = False
    assert plots._zoom(dataclasses.replace(walk, contact=late)).stop == 8000


def test_many_joints_are_drawn_in_pictures_of_a_few():
    joints = 29  # of a humanoid, and eight corners of its soles
    walk = synthetic_walk(0.1)
    n = len(walk)
    walk = dataclasses.replace(
        walk,
        joint_names=tuple(f"left_shoulder_joint_{k}" for k in range(joints)),
        foot_names=tuple(f"corner_{k}" for k in range(8)),
        torques=np.ones((n, joints)),
    )
    figure = plots.plot_torque(walk)
    lines = [len(axis.lines) for axis in figure.axes[1:]]
    assert sum(lines) == joints and max(lines) <= plots.MOST_LINES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()


def test_names_of_feet_are_whole_beside_their_forces():
    """Of corners of soles only `nkle_roll_link_1` was to be read, left and right alike."""
    walk = synthetic_walk(0.5)
    names = tuple(f"right_ankle_roll_link_{k}" for k in range(len(walk.foot_names)))
    walk = dataclasses.replace(walk, foot_names=names)
    picture = np.asarray(ForceStrip(walk, np.array([0.0, 0.0, 1.0]), 560, 150).draw(0.5))
    assert (picture[:, :2] == 255).all() and (picture[40:, :60] < 200).any()


def test_animation_of_a_fall_shows_the_end():
    walk = dataclasses.replace(synthetic_walk(14.0), fell_time_s=0.02)
    rows = animation._excerpt(walk)
    assert walk.time_s[rows][-1] == walk.time_s[-1]
    assert len(walk.time_s[rows]) * PERIOD_S == pytest.approx(animation.LONGEST_S)
