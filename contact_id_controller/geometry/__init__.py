"""Ground and feet: gaps, points, normals and names of their contacts."""

from contact_id_controller.geometry.feet import (
    FeetOnGround,
    FlatFoot,
    FootContacts,
    SphereFoot,
    contact_names,
    feet_of_contacts,
)
from contact_id_controller.geometry.friction_map import FrictionMap
from contact_id_controller.geometry.ground_file import read_ground
from contact_id_controller.geometry.half_space import HalfSpace
from contact_id_controller.geometry.height_field import HeightField
from contact_id_controller.geometry.terrain_feet import TerrainFeet, feet_on, lower_onto, stand_on

__all__ = [
    "FeetOnGround",
    "FlatFoot",
    "FootContacts",
    "FrictionMap",
    "HalfSpace",
    "HeightField",
    "SphereFoot",
    "TerrainFeet",
    "contact_names",
    "feet_of_contacts",
    "feet_on",
    "lower_onto",
    "read_ground",
    "stand_on",
]
