"""Uneven ground from YAML: what a file says, what is refused, the same ground for all three nodes."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import yaml

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import HeightField, TerrainFeet, read_ground
from contact_id_controller.runs.one_process import section
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot

STONES = {
    "floor_m": -0.02,
    "margin_m": 0.3,
    "boxes": [
        {"size_m": [0.25, 0.2, 0.1], "top_m": [0.3, -0.1, 0.06], "turned_deg": [-12, -6, 30]},
        {"size_m": [0.2, 0.2, 0.5], "top_m": [0.5, 0.2, 0.3]},
    ],
}


def written(tmp_path, content):
    path = tmp_path / "ground.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_boxes_stand_on_the_floor_where_mujoco_has_them(tmp_path):
    """Judge: rays from above on MuJoCo's own boxes; away from edges the heights are exact."""
    field = read_ground(written(tmp_path, STONES))
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, -0.02])
    for box in STONES["boxes"]:
        R = pin.rpy.rpyToMatrix(np.deg2rad(box.get("turned_deg", [0, 0, 0])))
        x, y, z, w = pin.Quaternion(R).coeffs()
        half = 0.5 * np.array(box["size_m"])
        place = np.array(box["top_m"]) - half[2] * R[:, 2]
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=half, pos=place, quat=[w, x, y, z]
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    geom = np.zeros(1, dtype=np.int32)

    def seen(x, y):
        return 2.0 - mujoco.mj_ray(model, data, [x, y, 2.0], [0, 0, -1.0], None, 1, -1, geom)

    rng = np.random.default_rng(1)
    compared = 0
    for x, y in rng.uniform([0.0, -0.3], [0.7, 0.4], (400, 2)):
        around = [seen(x + a, y + b) for a in (-0.02, 0.02) for b in (-0.02, 0.02)]
        height = seen(x, y)
        if np.ptp(around) < 0.012:  # no edge nearby
            compared += 1
            assert abs(field.height(x, y) - height) < 1e-9
    assert compared > 200
    assert field.height(0.5, 0.2) == 0.3 and field.height(0.0, 0.0) == -0.02


def test_heights_on_a_grid(tmp_path):
    content = {"x_m": [-1, 0, 2], "y_m": [-1, 1], "heights_m": [[0, 0], [0.1, 0.2], [0, 0]]}
    field = read_ground(written(tmp_path, content))
    assert field.height(0.0, 1.0) == 0.2 and field.heights.shape == (3, 2)


@pytest.mark.parametrize(
    "content, told",
    [
        ([], "either 'boxes' or 'heights_m'"),
        ({"boxes": STONES["boxes"], "heights_m": [[0]]}, "either 'boxes' or 'heights_m'"),
        ({"boxes": []}, "'boxes' must be a list of boxes"),
        ({"boxes": [3]}, "box 1 is 3, must have 'size_m', 'top_m', 'turned_deg'"),
        ({"boxes": [{"size_m": [1, 1, 1]}]}, "box 1 lacks 'top_m'"),
        ({"boxes": [{"size_m": [1, 0, 1], "top_m": [0, 0, 0]}]}, "'size_m' of box 1 .* above 0"),
        ({"boxes": [{"size_m": [1, 1], "top_m": [0, 0, 0]}]}, "must be 3 finite numbers"),
        ({"boxes": [{"size_m": [1, 1, 1], "top_m": [0, 0, 0], "color": 1}]}, "box 1 has 'color'"),
        ({**STONES, "boxes": [{**STONES["boxes"][0], "turned_deg": [180, 0, 0]}]}, "looks down"),
        ({**STONES, "cell_m": 1e-5}, "grid points, must have at most"),
        ({**STONES, "cell_m": 0.0}, "must be above 0"),
        ({"x_m": [0, 1], "y_m": [0, 1], "heights_m": [[0, 1], [0]]}, "rows of numbers"),
        ({"x_m": [0, 1], "y_m": [1, 0], "heights_m": [[0, 0], [0, 0]]}, "increasing"),
    ],
)  # fmt: skip
def test_what_is_no_ground_is_refused(content, told, tmp_path):
    with pytest.raises(ConfigurationError, match=told) as caught:
        read_ground(written(tmp_path, content))
    assert "ground.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_and_a_second_ground_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="ground file 'no.yaml' cannot be read"):
        read_ground("no.yaml")
    values = section("solo12", "controller", ground_file="a.yaml", ground_offset_m=0.1)
    with pytest.raises(ConfigurationError, match="'ground_offset_m' must be left out"):
        ControllerSettings.from_mapping(values)


def test_three_nodes_read_the_same_ground_and_the_robot_stands_on_it(tmp_path):
    rng = np.random.default_rng(2)
    grid = np.linspace(-1.0, 1.0, 21).tolist()
    heights = (0.02 * rng.random((21, 21))).tolist()
    path = written(tmp_path, {"x_m": grid, "y_m": grid, "heights_m": heights})
    settings = ControllerSettings.from_mapping(section("solo12", "controller", ground_file=path))
    planner = GaitPlannerSettings.from_mapping(section("solo12", "gait_planner", ground_file=path))
    world = build_robot(
        SimulatedRobotSettings.from_mapping(section("solo12", "simulated_robot", ground_file=path))
    )
    assert isinstance(planner.terrain, HeightField)
    controller = Controller(settings.robot(), settings)
    assert isinstance(controller.feet, TerrainFeet)
    state = world.state()
    controller.reset(state)
    controller.step(state)
    assert np.abs(controller.feet.gaps).max() < 1e-6
    for _ in range(100):
        result = controller.step(state)
        state = world.step(result.torques)
    assert abs(world.contact_forces()[:, 2].sum() / world.robot.weight - 1.0) < 0.01
    assert (np.abs(controller.feet.gaps) < 1e-4).all()  # nothing of it in the air, nothing below
    assert result.status == "solved"
