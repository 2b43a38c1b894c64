"""What the gait planner takes the ground to be: level, felt by the feet, or known from a map.

All heights are those of the centre of a foot that stands there, in the world, m; horizontal places
are complex, x + iy. A sphere of radius r on heights h(p) has its centre at

    z(p) = max over |d| <= r of h(p + d) + sqrt(r^2 - |d|^2),

so slopes and edges hold a foot as high as they really do. The maximum is taken over a few d.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.gait import GaitSettings

RINGS = (0.5, 1.0)
"""Parts of the radius at which the surface under a sphere is looked up, beside its centre."""

DIRECTIONS = np.exp(0.25j * np.pi * np.arange(8))

ROUGH_RADII = 2.0
"""Radius around a foothold, in radii of the foot, within which its ground should be even."""

AS_BELIEVED_M = 1e-3
"""Level ground that a foot touches within this of the height believed is as believed."""

LEAST_REACH_M = 5e-3
"""Radius of that circle where feet are points."""


class Surface(Protocol):
    """A height map: `geometry.HeightField` is one."""

    def heights_at(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights (n,), m, at the places (n,); NaN where the map has none."""


class Ground(Protocol):
    """What `Footsteps` asks of the ground."""

    @property
    def follows(self) -> bool:
        """Whether the base's height, roll and pitch follow the feet."""

    def begin(self, centers: np.ndarray, touches: np.ndarray) -> None:
        """All feet are to stand, with their centres at (L, 3); touches (L,) bool: those that are felt to."""

    def feel(self, foot: int, center: np.ndarray, touches: bool) -> None:
        """A foot is to stand with its centre at (3,); touches: it was felt to."""

    def stands(self, foot: int, center: np.ndarray) -> float:
        """Planned height of a foot that stands with its centre measured at (3,)."""

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """Where a foot that shall land at a place stands then, (3,)."""

    def obstacle(
        self, start: np.ndarray, target: np.ndarray, share: np.ndarray, bump: np.ndarray
    ) -> float:
        """How much higher, m, a swing must be than on level ground.

        start, target (3,): centre of the foot; share, bump (n,): parts of the way and of the height
        of the swing at some of its times.
        """


class LevelGround:
    """Level ground of a known height, corrected where feet touch it elsewhere.

    A foot that touches within `AS_BELIEVED_M` of that height leaves it exactly as it is. Else it stands where it
    touches, and what the ground rises there and at the other feet's last touchdowns is expected, as a plane, where
    they land next.
    """

    def __init__(self, height_m: float, count: int):
        self._height_m = height_m
        self._felt = np.zeros((count, 3))

    @property
    def follows(self) -> bool:
        """Whether a foot has touched elsewhere."""
        return bool(self._felt[:, 2].any())

    def begin(self, centers: np.ndarray, touches: np.ndarray) -> None:
        """All feet are to stand, with their centres at (L, 3); touches (L,) bool: where one is felt to."""
        self._felt = np.array(centers, dtype=float)
        self._felt[:, 2] = 0.0
        for foot, center in enumerate(centers):
            self.feel(foot, center, bool(touches[foot]))

    def feel(self, foot: int, center: np.ndarray, touches: bool) -> None:
        """A foot that touches stands with its centre at (3,)."""
        if not touches:
            return
        rise = center[2] - self._height_m
        if abs(rise) < AS_BELIEVED_M:
            rise = 0.0
        self._felt[foot] = center[0], center[1], rise

    def stands(self, foot: int, center: np.ndarray) -> float:
        """The known height, where all touch there; else where it was measured."""
        return float(center[2]) if self._felt[foot, 2] else self._height_m

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """A place x + i y with the height that is expected there, (3,) m.

        On ground that is felt: this foot's last touchdown and the slope of the plane through those of all feet.
        """
        height = self._height_m
        if self.follows:
            felt = self._felt
            _, slope_x, slope_y = plane(felt, 0.0)
            away = place - complex(felt[foot, 0], felt[foot, 1])
            height += felt[foot, 2] + slope_x * away.real + slope_y * away.imag
        return np.array([place.real, place.imag, height])

    def obstacle(
        self, start: np.ndarray, target: np.ndarray, share: np.ndarray, bump: np.ndarray
    ) -> float:
        """As much as touchdowns lie off their plane: what is next may rise so much above it."""
        if not self.follows:
            return 0.0
        felt = self._felt
        mean, slope_x, slope_y = plane(felt, 0.0)
        away = felt[:, :2] - felt[:, :2].mean(axis=0)
        return float(np.ptp(felt[:, 2] - mean - away @ np.array([slope_x, slope_y])))


class FeltGround:
    """Ground known by where the feet last stood.

    A foot is expected to land as high as it stood, plus what the plane through the last footholds
    of all feet rises on the way.
    """

    follows: bool = True

    def __init__(self, count: int):
        self._felt = np.zeros((count, 3))

    def begin(self, centers: np.ndarray, touches: np.ndarray | None = None) -> None:
        """All feet stand, with their centres at (L, 3)."""
        self._felt = np.array(centers, dtype=float)

    def feel(self, foot: int, center: np.ndarray, touches: bool = True) -> None:
        """A foot stands with its centre at (3,)."""
        self._felt[foot] = center

    def stands(self, foot: int, center: np.ndarray) -> float:
        """Where it was measured."""
        return float(center[2])

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """The place, as high as the last footholds let expect."""
        felt = self._felt
        _, slope_x, slope_y = plane(felt, 0.0)
        away = place - complex(felt[foot, 0], felt[foot, 1])
        height = felt[foot, 2] + slope_x * away.real + slope_y * away.imag
        return np.array([place.real, place.imag, height])

    def obstacle(
        self, start: np.ndarray, target: np.ndarray, share: np.ndarray, bump: np.ndarray
    ) -> float:
        """Nothing lies between."""
        return 0.0


class MappedGround:
    """Ground known from a height map; beside the map it is as where a foot stood last.

    Args:
        surface: the map.  radius_m: of the feet.  search_m: how far from its nominal place a
            foothold may be moved to more even ground.  count: number of feet.
    """

    follows: bool = True

    def __init__(self, surface: Surface, radius_m: float, search_m: float, count: int):
        self._surface, self._radius_m = surface, radius_m
        around = np.outer(RINGS, DIRECTIONS).ravel()
        self._under = np.append(0.0, radius_m * around) if radius_m > 0.0 else np.zeros(1)
        self._cap_m = np.sqrt(np.maximum(radius_m**2 - np.abs(self._under) ** 2, 0.0))
        self._near = max(ROUGH_RADII * radius_m, LEAST_REACH_M) * np.append(0.0, DIRECTIONS)
        self._moves = search_m * np.append(0.0, around) if search_m > 0.0 else np.zeros(1)
        self._last_m = np.zeros(count)

    def heights(self, places: np.ndarray) -> np.ndarray:
        """Heights of the centres of feet at places (n,); NaN beside the map."""
        under = np.add.outer(places, self._under)
        surface = self._surface.heights_at(under.real.ravel(), under.imag.ravel())
        return np.max(surface.reshape(under.shape) + self._cap_m, axis=1)

    def begin(self, centers: np.ndarray, touches: np.ndarray | None = None) -> None:
        """All feet stand, with their centres at (L, 3)."""
        self._last_m = np.array(centers[:, 2])

    def feel(self, foot: int, center: np.ndarray, touches: bool = True) -> None:
        """A foot stands with its centre at (3,)."""
        self._last_m[foot] = center[2]

    def stands(self, foot: int, center: np.ndarray) -> float:
        """The map's height."""
        height = float(self.heights(np.array([complex(center[0], center[1])]))[0])
        return height if np.isfinite(height) else float(center[2])

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """The place, or one nearby with more even ground, on the map's surface."""
        places = place + self._moves
        if len(places) > 1:
            around = np.add.outer(places, self._near)
            heights = self.heights(around.ravel()).reshape(around.shape)
            rough = np.ptp(heights, axis=1) / abs(self._near[1])
            cost = rough + np.abs(self._moves) / abs(self._moves[-1])
            if np.isfinite(cost).any():
                place = places[np.nanargmin(cost)]
        height = float(self.heights(np.array([place]))[0])
        if not np.isfinite(height):
            height = float(self._last_m[foot])
        return np.array([place.real, place.imag, height])

    def obstacle(
        self, start: np.ndarray, target: np.ndarray, share: np.ndarray, bump: np.ndarray
    ) -> float:
        """The least height of the bump that passes over what lies between."""
        way = start + np.multiply.outer(share, target - start)
        over = self.heights(way[:, 0] + 1j * way[:, 1]) - way[:, 2]
        return float(np.nanmax(np.append(over / bump, 0.0)))


def plane(points: np.ndarray, yaw: float) -> tuple[float, float, float]:
    """Mean height and slopes, along a heading and to its left, of the plane nearest to (n, 3).

    Fewer than three points, or points in a line, leave a slope that they do not show at zero.
    """
    offset = points - points.mean(axis=0)
    turned = (offset[:, 0] + 1j * offset[:, 1]) * np.exp(-1j * yaw)
    arms = np.column_stack([turned.real, turned.imag])
    slopes = np.linalg.lstsq(arms, offset[:, 2], rcond=1e-6)[0]
    return float(points[:, 2].mean()), float(slopes[0]), float(slopes[1])


def make_ground(settings: GaitSettings, surface: Surface | None) -> Ground:
    """The ground of the settings.

    Raises:
        ConfigurationError: a map that is needed and missing, or given and not used.
    """
    if (surface is not None) != (settings.ground == "map"):
        raise ConfigurationError(
            f"parameter 'ground' is {settings.ground!r}, "
            + ("must be 'map' where a height map is given" if surface else "but no map is given")
        )
    count = len(settings.feet)
    if settings.ground == "felt":
        return FeltGround(count)
    if settings.ground == "map":
        return MappedGround(surface, settings.foot_radius_m, settings.foothold_search_m, count)
    return LevelGround(settings.ground_height_m + settings.foot_radius_m, count)
