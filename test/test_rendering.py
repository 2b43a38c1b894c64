"""Pictures of a recorded motion."""

import numpy as np
import pytest
from paths import QUADRUPED_URDF

from contact_id_controller.exceptions import RenderingError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.simulation.rendering import render_frames

FEET = [SphereFoot(f"{leg}_FOOT", 0.01) for leg in ("LF", "RF", "LH", "RH")]
SIZE = dict(width=160, height=120)


@pytest.fixture(scope="module")
def recording():
    """0.1 s during which the robot glides 5 cm forward."""
    simulated = MujocoRobot(QUADRUPED_URDF, FEET)
    q = simulated.place_on_ground(simulated.robot.neutral())  # legs stretched, flat
    times = np.arange(101) * 1e-3
    configurations = np.tile(q, (101, 1))
    configurations[:, 0] += 0.5 * times
    return times, configurations


def pictures(*arguments, **options):
    try:
        return list(render_frames(QUADRUPED_URDF, FEET, *arguments, **SIZE, **options))
    except RenderingError as error:
        if "cannot draw off-screen" in str(error):
            pytest.skip(f"needs OpenGL: {error}")
        raise


def test_a_recording_becomes_its_duration_times_the_rate_in_pictures(recording):
    frames = pictures(*recording, frames_per_second=30.0)
    assert len(frames) == 3
    for frame in frames:
        assert frame.shape == (120, 160, 3) and frame.dtype == np.uint8
    assert len(np.unique(frames[0].reshape(-1, 3), axis=0)) > 50
    assert (frames[0] != frames[-1]).any()


def test_an_arrow_is_drawn_for_a_force_and_only_for_a_force(recording):
    times, q = recording[0][:1], recording[1][:1]
    plain = pictures(times, q)[0]
    forces = np.zeros((1, 4, 3))
    np.testing.assert_array_equal(pictures(times, q, forces)[0], plain)
    forces[0, 0, 2] = 40.0
    green = np.array(pictures(times, q, forces)[0], dtype=int) - plain
    assert np.count_nonzero(green[..., 1] - green[..., 0] > 20) > 10


def test_what_was_predicted_is_drawn_around_the_force(recording):
    times, q = recording[0][:1], recording[1][:1]
    forces = np.zeros((1, 4, 3))
    forces[0, 0, 2] = 40.0
    alone = np.array(pictures(times, q, forces)[0], dtype=int)
    both = np.array(pictures(times, q, forces, predicted=forces)[0], dtype=int)
    orange = both - alone
    assert np.count_nonzero(orange[..., 0] - orange[..., 2] > 20) > 10
    with pytest.raises(RenderingError, match="recording to draw"):
        render_frames(QUADRUPED_URDF, FEET, times, q, forces, predicted=forces[:, :2])


def test_without_opengl_the_error_names_the_backend_and_the_remedy(recording, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(RenderingError, match="disable: .*libosmesa6.*MUJOCO_GL"):
        next(render_frames(QUADRUPED_URDF, FEET, *recording, **SIZE))


@pytest.mark.parametrize(
    "times, q, forces",
    [
        (np.zeros(0), np.zeros((0, 19)), None),
        (np.zeros(2), np.zeros((2, 19)), None),
        (np.arange(2.0), np.zeros((3, 19)), None),
        (np.arange(2.0), np.full((2, 19), np.nan), None),
        (np.arange(2.0), np.zeros((2, 19)), np.zeros((2, 3, 3))),
    ],
)
def test_recordings_that_cannot_be_drawn_are_refused(times, q, forces):
    with pytest.raises(RenderingError, match="recording to draw"):
        render_frames(QUADRUPED_URDF, FEET, times, q, forces)
