"""Ground models of the gait planner: level, felt by the feet, or a height map.

All heights are those of the centre of a foot in contact, world, m; horizontal places are complex, x + iy.
A sphere of radius r on heights h(p) has its centre at

    z(p) = max over |d| <= r of h(p + d) + sqrt(r^2 - |d|^2),

so slopes and edges raise the centre as they do in reality. The maximum is taken over a few d.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.gait import MAP, GaitSettings

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
        """Heights (n,), m, at x, y (n,), m; NaN outside the map."""


class Ground(Protocol):
    """Interface of the ground models for `Footsteps`; centres (3,) and heights are of feet, m, world."""

    @property
    def follows(self) -> bool:
        """Whether the base's height, roll and pitch follow the feet."""

    def begin(self, centers: np.ndarray, touches: np.ndarray) -> None:
        """Forget what was felt; all feet are in stance with centres (L, 3); touches (L,) bool: contact is measured."""

    def feel(self, foot: int, center: np.ndarray, touches: bool) -> None:
        """Update from a foot in stance with its centre at (3,); touches: contact is measured."""

    def stands(self, foot: int, center: np.ndarray) -> float:
        """Planned height of the centre of a foot in stance that is measured at (3,)."""

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """Centre (3,) of a foot that is to land near ``place`` (x + iy)."""

    def obstacle(
        self, start: np.ndarray, target: np.ndarray, share: np.ndarray, bump: np.ndarray
    ) -> float:
        """Height, m, by which a swing must be raised to clear the ground.

        start, target (3,): centre of the foot at lift-off and touchdown; share, bump (n,): fraction of the way and of
        the height that the swing has reached, at the same n times.
        """


class LevelGround:
    """Level ground of a given height, replaced by a plane through touchdowns where feet touch elsewhere.

    A touchdown within `AS_BELIEVED_M` of the given height leaves the model unchanged. Otherwise the foot stands where
    it touches, and footholds are expected on the plane fitted to the last touchdowns of all feet.
    """

    def __init__(self, height_m: float, count: int):
        self._height_m = height_m
        self._felt = np.zeros((count, 3))

    @property
    def follows(self) -> bool:
        """Whether the last touchdown of any foot was off the given height."""
        return bool(self._felt[:, 2].any())

    def begin(self, centers: np.ndarray, touches: np.ndarray) -> None:
        """Put all feet in stance with centres (L, 3); touches (L,) bool: contact is measured."""
        self._felt = np.array(centers, dtype=float)
        self._felt[:, 2] = 0.0
        for foot, center in enumerate(centers):
            self.feel(foot, center, bool(touches[foot]))

    def feel(self, foot: int, center: np.ndarray, touches: bool) -> None:
        """Take centre (3,) as this foot's last touchdown, if its contact is measured."""
        if not touches:
            return
        rise = center[2] - self._height_m
        if abs(rise) < AS_BELIEVED_M:
            rise = 0.0
        self._felt[foot] = center[0], center[1], rise

    def stands(self, foot: int, center: np.ndarray) -> float:
        """The given height, or the measured one for a foot whose touchdown was off it."""
        return float(center[2]) if self._felt[foot, 2] else self._height_m

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """Centre (3,), m, of a foot at x + iy on the given height.

        Once a touchdown was off it: this foot's last touchdown plus the slope of the plane through those of all feet.
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
        """Range of the touchdowns' distances from their fitted plane: an obstacle may be that high."""
        if not self.follows:
            return 0.0
        felt = self._felt
        mean, slope_x, slope_y = plane(felt, 0.0)
        away = felt[:, :2] - felt[:, :2].mean(axis=0)
        return float(np.ptp(felt[:, 2] - mean - away @ np.array([slope_x, slope_y])))


class FeltGround:
    """Ground known by the last footholds of the feet.

    A foot is expected to land at its last height plus the rise, on the way, of the plane fitted to the last footholds
    of all feet.
    """

    follows: bool = True

    def __init__(self, count: int):
        self._felt = np.zeros((count, 3))

    def begin(self, centers: np.ndarray, touches: np.ndarray | None = None) -> None:
        """Put all feet in stance with centres (L, 3)."""
        self._felt = np.array(centers, dtype=float)

    def feel(self, foot: int, center: np.ndarray, touches: bool = True) -> None:
        """Take centre (3,) as this foot's last foothold."""
        self._felt[foot] = center

    def stands(self, foot: int, center: np.ndarray) -> float:
        """The measured height."""
        return float(center[2])

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """Centre (3,), m, at x + iy, its height extrapolated from the last footholds."""
        felt = self._felt
        _, slope_x, slope_y = plane(felt, 0.0)
        away = place - complex(felt[foot, 0], felt[foot, 1])
        height = felt[foot, 2] + slope_x * away.real + slope_y * away.imag
        return np.array([place.real, place.imag, height])

    def obstacle(
        self, start: np.ndarray, target: np.ndarray, share: np.ndarray, bump: np.ndarray
    ) -> float:
        """Zero: nothing is known of the ground between footholds."""
        return 0.0


class MappedGround:
    """Ground of a height map; outside the map a foot lands at the height of its last stance.

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
        """Heights (n,), m, of the centres of feet at complex places (n,); NaN outside the map."""
        under = np.add.outer(places, self._under)
        surface = self._surface.heights_at(under.real.ravel(), under.imag.ravel())
        return np.max(surface.reshape(under.shape) + self._cap_m, axis=1)

    def begin(self, centers: np.ndarray, touches: np.ndarray | None = None) -> None:
        """Put all feet in stance with centres (L, 3)."""
        self._last_m = np.array(centers[:, 2])

    def feel(self, foot: int, center: np.ndarray, touches: bool = True) -> None:
        """Keep the height of a foot in stance with centre (3,), for footholds outside the map."""
        self._last_m[foot] = center[2]

    def stands(self, foot: int, center: np.ndarray) -> float:
        """The map's height below the centre (3,), or the measured height outside the map."""
        height = float(self.heights(np.array([complex(center[0], center[1])]))[0])
        return height if np.isfinite(height) else float(center[2])

    def foothold(self, foot: int, place: complex) -> np.ndarray:
        """Centre (3,), m, on the map at the place near x + iy with the least sum of roughness and displacement."""
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
        """Least height of the bump with which the swing clears the map."""
        way = start + np.multiply.outer(share, target - start)
        over = self.heights(way[:, 0] + 1j * way[:, 1]) - way[:, 2]
        return float(np.nanmax(np.append(over / bump, 0.0)))


def plane(points: np.ndarray, yaw: float) -> tuple[float, float, float]:
    """Fit a plane to points (n, 3); returns mean height, slope along heading ``yaw`` (rad) and slope to its left.

    A slope that the points do not determine (fewer than three, or in a line) is 0.
    """
    offset = points - points.mean(axis=0)
    turned = (offset[:, 0] + 1j * offset[:, 1]) * np.exp(-1j * yaw)
    arms = np.column_stack([turned.real, turned.imag])
    slopes = np.linalg.lstsq(arms, offset[:, 2], rcond=1e-6)[0]
    return float(points[:, 2].mean()), float(slopes[0]), float(slopes[1])


def refuse_ground(settings: GaitSettings, surface: Surface | None) -> None:
    """Refuse settings that ask for a map where there is none, or do not use the one that is given: for all planners.

    Raises:
        ConfigurationError: ground `map` without a surface, or a surface with another ground.
    """
    if (surface is not None) != (settings.ground == MAP):
        raise ConfigurationError(
            f"parameter 'ground' is {settings.ground!r}, "
            + ("must be 'map' where a height map is given" if surface else "but no map is given")
        )


def make_ground(settings: GaitSettings, surface: Surface | None) -> Ground:
    """Make the ground model that the settings name.

    Raises:
        ConfigurationError: see ``refuse_ground``.
    """
    refuse_ground(settings, surface)
    count = len(settings.feet)
    if settings.ground == "felt":
        return FeltGround(count)
    if settings.ground == MAP and surface is not None:
        return MappedGround(surface, settings.foot_radius_m, settings.foothold_search_m, count)
    return LevelGround(settings.ground_height_m + settings.foot_radius_m, count)
