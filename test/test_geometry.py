"""Gaps, closest points, normals and contact points of shapes, against closed forms and sampling."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import HalfSpace, HeightField
from experiments.rigid.closest import closest
from experiments.rigid.manifold import contact_points
from experiments.rigid.solids import Box, Capsule, ConvexMesh, Sphere
from experiments.rigid.terrain import field_points, plane_points


def pose(x=0.0, y=0.0, z=0.0, angles=(0, 0, 0)):
    return pin.SE3(Rotation.from_euler("xyz", angles).as_matrix(), np.array([x, y, z], float))


def random_pose(rng, spread):
    return pin.SE3(
        Rotation.random(random_state=rng.integers(1 << 30)).as_matrix(), spread * rng.normal(size=3)
    )


def cloud(rng):
    return ConvexMesh(rng.normal(size=(14, 3)) * [0.1, 0.15, 0.08])


def solids(rng):
    return [Sphere(0.1), Capsule(0.05, 0.3), Box((0.2, 0.3, 0.1)), cloud(rng)]


def support(solid, at, direction):
    """Largest extent of a placed solid along a direction."""
    return ((solid.vertices @ at.rotation.T + at.translation) @ direction).max() + solid.radius_m


def test_distance_of_solids_is_the_best_separating_direction():
    # A gap is the largest separation over all directions: sampled ones never beat it, and the
    # reported normal reaches it.
    rng = np.random.default_rng(0)
    apart = 0
    for _ in range(12):
        shapes = solids(rng)
        for first in shapes:
            for second in shapes:
                here, there = random_pose(rng, 0.15), random_pose(rng, 0.15)
                near = closest(first, here, second, there)
                directions = rng.normal(size=(200, 3))
                directions /= np.linalg.norm(directions, axis=1)[:, None]
                sampled = max(
                    -support(first, here, -n) - support(second, there, n) for n in directions
                )
                assert sampled <= near.gap + 1e-7
                n = near.normal
                assert abs(-support(first, here, -n) - support(second, there, n) - near.gap) < 1e-6
                np.testing.assert_allclose(near.first - near.second, near.gap * n, atol=1e-6)
                apart += near.gap > 0.0
    assert 50 < apart < 190  # both kinds were met


def test_distance_of_spheres_and_capsules_in_closed_form():
    assert closest(Sphere(0.1), pose(0, 0, 0.5), Sphere(0.2), pose()).gap == pytest.approx(0.2)
    crossed = closest(
        Capsule(0.05, 1.0),
        pose(0, 0, 0.3, (np.pi / 2, 0, 0)),
        Capsule(0.1, 1.0),
        pose(angles=(0, np.pi / 2, 0)),
    )
    assert crossed.gap == pytest.approx(0.15)
    np.testing.assert_allclose(crossed.normal, [0, 0, 1], atol=1e-6)
    corner = closest(Sphere(0.1), pose(1, 1, 1), Box((1, 1, 1)), pose())
    assert corner.gap == pytest.approx(np.sqrt(0.75) - 0.1)
    np.testing.assert_allclose(corner.normal, np.ones(3) / np.sqrt(3), atol=1e-6)


def test_solids_over_a_half_space_touch_with_their_vertices():
    rng = np.random.default_rng(1)
    for _ in range(50):
        normal = rng.normal(size=3)
        ground = HalfSpace(normal, rng.normal() * 0.1)
        for solid in solids(rng):
            at = random_pose(rng, 0.3)
            points = plane_points(solid, at, ground, 10.0)
            near = closest(solid, at, ground, pose())
            assert min(p.gap for p in points) == pytest.approx(near.gap, abs=1e-7)
            for p in points:
                assert ground.distance(p.point) == pytest.approx(p.gap, abs=1e-12)
                np.testing.assert_allclose(p.normal, ground.normal)


def test_box_on_a_plane_touches_with_four_corners_and_tilted_ones_are_anticipated():
    box, ground = Box((0.2, 0.2, 0.1)), HalfSpace()
    flat = plane_points(box, pose(z=0.05), ground, 0.005)
    assert [p.feature for p in flat] == [("a", i) for i in (0, 2, 4, 6)]
    np.testing.assert_allclose([p.gap for p in flat], 0.0, atol=1e-12)
    tilt = 0.01
    edge = 0.1 * np.sin(tilt) + 0.05 * np.cos(tilt)
    tilted = plane_points(box, pose(z=edge, angles=(tilt, 0, 0)), ground, 0.005)
    np.testing.assert_allclose(
        sorted(p.gap for p in tilted), [0, 0, 0.2 * np.sin(tilt), 0.2 * np.sin(tilt)], atol=1e-12
    )
    assert len(plane_points(box, pose(z=edge, angles=(tilt, 0, 0)), ground, 0.001)) == 2
    capsule = plane_points(
        Capsule(0.05, 0.4), pose(z=0.05, angles=(np.pi / 2, 0, 0)), ground, 0.001
    )
    assert len(capsule) == 2
    assert np.linalg.norm(capsule[0].point - capsule[1].point) == pytest.approx(0.4)


def test_box_on_box_touches_with_the_corners_of_the_common_face():
    small, large = Box((0.2, 0.2, 0.2)), Box((1, 1, 0.2))
    for height in (0.2, 0.199, 0.203):  # touching, overlapping, anticipated
        points = contact_points(small, pose(0.1, 0, height, (0, 0, 0.3)), large, pose(), 0.01)
        assert sorted(p.feature for p in points) == [("a", i) for i in (0, 2, 4, 6)]
        np.testing.assert_allclose([p.gap for p in points], height - 0.2, atol=1e-9)
        np.testing.assert_allclose([p.normal for p in points], [[0, 0, 1]] * 4, atol=1e-9)
    # Hanging over the edge: two corners of the small box, two crossings with the large one's edge.
    points = contact_points(small, pose(0.5, 0, 0.2), large, pose(), 0.01)
    assert sorted(p.feature[0] for p in points) == ["a", "a", "e", "e"]
    np.testing.assert_allclose(sorted(p.point[0] for p in points), [0.4, 0.4, 0.5, 0.5], atol=1e-9)
    # The large one on the small one: the same place, the other body's
    # vertices, the other direction.
    points = contact_points(large, pose(), small, pose(0.1, 0, 0.2), 0.01)
    assert sorted(p.feature for p in points) == [("b", i) for i in (0, 2, 4, 6)]
    np.testing.assert_allclose([p.normal for p in points], [[0, 0, -1]] * 4, atol=1e-9)


def test_crossed_boxes_touch_in_an_octagon():
    points = contact_points(
        Box((0.2, 0.2, 0.2)),
        pose(z=0.2, angles=(0, 0, np.pi / 4)),
        Box((0.2, 0.2, 0.2)),
        pose(),
        0.001,
    )
    assert len(points) == 8
    assert {p.feature[0] for p in points} == {"e"}
    assert len({p.feature for p in points}) == 8


def test_edge_over_edge_touches_in_one_point():
    # Two boxes standing on edge, at right angles.
    root = np.sqrt(2.0) * 0.1
    points = contact_points(
        Box((0.2, 0.2, 0.2)),
        pose(0.02, 0.03, 2 * root, (np.pi / 4, 0, 0)),
        Box((0.2, 0.2, 0.2)),
        pose(0, 0, 0, (0, np.pi / 4, 0)),
        0.001,
    )
    assert len(points) == 1 and points[0].feature == ("c",)
    np.testing.assert_allclose(points[0].normal, [0, 0, 1], atol=1e-5)
    np.testing.assert_allclose(points[0].point, [0, 0.03, root], atol=1e-5)


def test_box_on_its_edge_touches_a_face_with_two_corners():
    root = np.sqrt(2.0) * 0.1
    points = contact_points(
        Box((0.2, 0.2, 0.2)),
        pose(z=0.1 + root, angles=(np.pi / 4, 0, 0)),
        Box((1, 1, 0.2)),
        pose(),
        0.001,
    )
    assert len(points) == 2
    assert {p.feature[0] for p in points} == {"a"}


def test_capsules_side_by_side_touch_in_two_points_and_crossed_ones_in_one():
    capsule = Capsule(0.05, 0.4)
    lying = (0, np.pi / 2, 0)
    points = contact_points(capsule, pose(0.1, 0, 0.1, lying), capsule, pose(angles=lying), 0.001)
    assert len(points) == 2
    np.testing.assert_allclose(sorted(p.point[0] for p in points), [-0.1, 0.2], atol=1e-9)
    np.testing.assert_allclose([p.gap for p in points], 0.0, atol=1e-9)
    crossed = contact_points(
        capsule, pose(0, 0, 0.1, (np.pi / 2, 0, 0)), capsule, pose(angles=lying), 0.001
    )
    assert [p.feature for p in crossed] == [("c",)]


def test_capsule_on_a_box_touches_where_it_ends_and_where_the_face_does():
    points = contact_points(
        Capsule(0.05, 0.6),
        pose(0.2, 0, 0.15, (0, np.pi / 2, 0)),
        Box((0.4, 0.4, 0.2)),
        pose(),
        0.001,
    )
    np.testing.assert_allclose(sorted(p.point[0] for p in points), [-0.1, 0.2], atol=1e-9)
    np.testing.assert_allclose([p.point[2] for p in points], 0.1, atol=1e-9)


def test_every_contact_point_lies_on_the_first_and_its_gap_from_the_second():
    rng = np.random.default_rng(3)
    several = 0
    for _ in range(120):
        shapes = solids(rng)
        first, second = shapes[rng.integers(4)], shapes[rng.integers(4)]
        # Nearly parallel axes, so that faces come to lie on faces and capsules on their sides.
        there = random_pose(rng, 0.1)
        turn = Rotation.from_euler("zyx", [*(0.5 * np.pi * rng.integers(0, 2, 2)), 0.0])
        tilt = Rotation.from_rotvec(0.002 * rng.normal(size=3))
        here = pin.SE3(
            there.rotation @ (turn * tilt).as_matrix(),
            there.act(np.eye(3)[rng.integers(3)] + 0.03 * rng.normal(size=3)),
        )
        near = closest(first, here, second, there)
        here = pin.SE3(here.rotation, here.translation + (0.001 - near.gap) * near.normal)
        points = contact_points(first, here, second, there, 0.002)
        assert min(p.gap for p in points) == pytest.approx(0.001, abs=2e-6)
        several += len(points) > 1
        for p in points:
            on_first = closest(Sphere(1e-9), pin.SE3(np.eye(3), p.point), first, here).gap
            on_second = closest(
                Sphere(1e-9), pin.SE3(np.eye(3), p.point - p.gap * p.normal), second, there
            ).gap
            assert abs(on_first) < 1e-5 and abs(on_second) < 1e-5
    assert several > 10


def test_mesh_of_a_cube_is_a_box():
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.1
    mesh = ConvexMesh(np.vstack([corners, 0.5 * corners]))
    assert len(mesh.vertices) == 8 and len(mesh.faces) == 6
    assert all(len(face) == 4 for face in mesh.faces)
    points = contact_points(mesh, pose(z=0.2, angles=(0, 0, 0.2)), Box((1, 1, 0.2)), pose(), 0.001)
    assert len(points) == 4
    for face, normal in zip(mesh.faces, mesh.face_normals):
        a, b, c = mesh.vertices[list(face[:3])]
        assert np.cross(b - a, c - b) @ normal > 0.0


def test_mesh_is_read_from_a_file(tmp_path):
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3]])
    lines = ["solid wedge"]
    for triangle in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)):
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += ["vertex {} {} {}".format(*corners[i]) for i in triangle]
        lines += ["endloop", "endfacet"]
    file = tmp_path / "wedge.stl"
    file.write_text("\n".join([*lines, "endsolid wedge"]))
    mesh = ConvexMesh.from_file(file, (2, 2, 2))
    np.testing.assert_allclose(
        sorted(map(tuple, mesh.vertices)), sorted(map(tuple, 2 * corners)), atol=1e-6
    )
    with pytest.raises(ConfigurationError, match="nowhere.stl"):
        ConvexMesh.from_file(tmp_path / "nowhere.stl")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sphere(0.0),
        lambda: Sphere(np.nan),
        lambda: Capsule(0.1, -1.0),
        lambda: Box((1, 1)),
        lambda: Box((1, 1, 0)),
        lambda: ConvexMesh(np.zeros((3, 3))),
        lambda: ConvexMesh(np.zeros((9, 3))),
        lambda: HalfSpace((0, 0, 0)),
        lambda: HeightField([0, 1], [0, 1], np.zeros((2, 3))),
        lambda: HeightField([1, 0], [0, 1], np.zeros((2, 2))),
    ],
)
def test_impossible_shapes_are_refused(make):
    with pytest.raises(ConfigurationError):
        make()


def flat_field(height=0.0, nx=6, ny=5):
    return HeightField(np.linspace(-1, 1, nx), np.linspace(-1, 1, ny), np.full((nx, ny), height))


def test_flat_height_field_is_a_half_space():
    rng = np.random.default_rng(4)
    field, ground = flat_field(0.3), HalfSpace(offset=0.3)
    for solid in solids(rng):
        for _ in range(10):
            at = pin.SE3(
                Rotation.random(random_state=rng.integers(1 << 30)).as_matrix(),
                np.array([*(0.2 * rng.normal(size=2)), 0.35]),
            )
            on_field = field_points(solid, at, field, 0.02)
            on_plane = plane_points(solid, at, ground, 0.02)
            assert len(on_field) == len(on_plane)
            for p, r in zip(on_field, on_plane):
                np.testing.assert_allclose(p.point, r.point, atol=1e-9)
                np.testing.assert_allclose(p.normal, r.normal, atol=1e-9)
                assert p.gap == pytest.approx(r.gap, abs=1e-9)
    assert len(field_points(Box((0.5, 0.5, 0.1)), pose(z=0.35), field, 0.001)) == 4


def test_ball_over_hills_has_the_sampled_distance():
    rng = np.random.default_rng(5)
    grid = np.linspace(-1, 1, 9)
    field = HeightField(grid, grid, 0.1 * rng.normal(size=(9, 9)))
    fine = np.linspace(-0.6, 0.6, 241)
    surface = np.array([(x, y, field.height(x, y)) for x in fine for y in fine])
    for _ in range(20):
        x, y = rng.uniform(-0.25, 0.25, 2)
        center = np.array([x, y, field.height(x, y) + rng.uniform(0.02, 0.2)])
        points = field_points(Sphere(0.1), pin.SE3(np.eye(3), center), field, 1.0)
        distance = np.linalg.norm(surface - center, axis=1).min()
        assert points and min(p.gap for p in points) <= distance - 0.1 + 1e-9
        assert min(p.gap for p in points) == pytest.approx(distance - 0.1, abs=5e-3)


def test_ball_in_a_valley_touches_both_sides_and_keeps_their_names():
    grid = np.linspace(-1, 1, 5)
    field = HeightField(grid, grid, np.repeat(np.abs(grid)[:, None], 5, axis=1))
    height = 0.1 * np.sqrt(2.0)
    for shift in (-1e-4, 0.0, 1e-4):
        points = field_points(Sphere(0.1), pose(shift, 0.1, height), field, 0.01)
        assert [p.feature for p in points] == [("a", 0, 0), ("a", 0, 1)]
        assert points[0].normal[0] > 0.7 and points[1].normal[0] < -0.7
        np.testing.assert_allclose(
            [p.gap for p in points], [shift / np.sqrt(2), -shift / np.sqrt(2)], atol=1e-12
        )


def test_box_on_a_long_ridge_touches_where_the_ridge_enters_and_leaves():
    grid = np.array([-1.0, 0.0, 1.0])
    field = HeightField(grid, [-1.0, 1.0], np.array([[-0.5, -0.5], [0, 0], [-0.5, -0.5]]))
    points = field_points(Box((0.2, 0.2, 0.1)), pose(z=0.0505), field, 0.002)
    assert len(points) == 2
    np.testing.assert_allclose(sorted(p.point[1] for p in points), [-0.1, 0.1], atol=1e-9)
    np.testing.assert_allclose([p.gap for p in points], 0.0005, atol=1e-9)
    np.testing.assert_allclose([p.normal for p in points], [[0, 0, 1]] * 2, atol=1e-9)


def test_box_on_a_peak_touches_the_peak():
    grid = np.linspace(-1, 1, 5)
    heights = np.zeros((5, 5))
    heights[2, 2] = 0.2
    field = HeightField(grid, grid, heights)
    points = field_points(Box((0.2, 0.2, 0.1)), pose(0.03, 0.02, 0.249), field, 0.002)
    assert [p.feature for p in points] == [("b", 12)]
    assert points[0].gap == pytest.approx(-0.001, abs=1e-9)
    np.testing.assert_allclose(points[0].normal, [0, 0, 1], atol=1e-9)


def test_capsule_across_a_ridge_touches_once():
    grid = np.array([-1.0, 0.0, 1.0])
    field = HeightField(grid, [-1.0, 1.0], np.array([[-0.5, -0.5], [0, 0], [-0.5, -0.5]]))
    points = field_points(
        Capsule(0.05, 0.3), pose(z=0.0505, angles=(0, np.pi / 2, 0)), field, 0.002
    )
    assert len(points) == 1
    assert points[0].gap == pytest.approx(0.0005, abs=1e-7)
    np.testing.assert_allclose(points[0].normal, [0, 0, 1], atol=1e-5)


def test_nothing_beside_the_field():
    assert field_points(Sphere(0.1), pose(3, 0, 0.05), flat_field(), 0.01) == []
    assert flat_field().height(3, 0) is None
