"""Which steps a map lets a foot take: onto what, over what, and how far the ground goes on.

A landing is no higher above or below the foot that carries than the highest step, and nothing on the way of a foot is
higher than that above both its ends.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.planning.walking.areas import FLAT_M, SEED_M, Area, Areas

LOOKS = 4
"""Places ahead at which the ground is looked for."""


class Crossing(NamedTuple):
    """The step of one foot on a map.

    Attributes:
        areas: of the map.  most_m: the highest step.
        begin (2,): from where it steps, m.  home (2,): beside the foot that carries, m.
        stands_m: height of the map below the foot that carries.  yaw: of the foot, rad.
    """

    areas: Areas
    most_m: float
    begin: np.ndarray
    home: np.ndarray
    stands_m: float
    yaw: float

    def near(self, place: np.ndarray, alone: bool = False) -> list[Area]:
        """The areas about a place (2,), m, onto which the foot may step; the one at the place first.

        alone: no other one if the place lies in it.
        """
        found = self.areas.near(place, self.yaw, alone)
        return [area for area in found if self._leads_to(area, place)]

    def before(self, place: np.ndarray) -> list[Area]:
        """The area nearest to a place (2,), m, on the way to it from beside the foot that carries, bounded there; or none."""
        away = place - self.home
        length = float(np.linalg.norm(away))
        many = math.ceil(length / SEED_M)
        for k in range(many - 1, -1, -1):
            reached = self.home + k / many * away
            for area in self.near(reached):
                way = away / length
                ends = float(way @ area.nearest(reached))
                return [area.bounded(way, ends)]
        return []

    def clear_m(self, way: np.ndarray, longest_m: float) -> float:
        """How far areas go on along a way (2,), of length 1, from beside the foot that carries, at most ``longest_m``."""
        for k in range(LOOKS, 0, -1):
            place = self.home + k / LOOKS * longest_m * way
            if areas := self.near(place):
                reached = max(float(way @ (area.nearest(place) - self.home)) for area in areas)
                return max(reached, 0.0)
        return 0.0

    def _leads_to(self, area: Area, place: np.ndarray) -> bool:
        """Whether the foot may step to the place (2,) of an area that is nearest to this one."""
        place, most_m = area.nearest(place), self.most_m + FLAT_M
        height_m = area.height_at(place)
        if not abs(height_m - self.stands_m) <= most_m:
            return False
        ends_m = max(self.areas.height_at(self.begin), height_m)
        return self.areas.highest(self.begin, place, self.yaw) <= ends_m + most_m
