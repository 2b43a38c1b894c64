"""Contact geometry: gap, points, normals and identities of contacts of bodies that touch or are near."""

from contact_id_controller.geometry.closest import Closest, closest
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
from contact_id_controller.geometry.height_field import HeightField
from contact_id_controller.geometry.manifold import ContactPoint, contact_points
from contact_id_controller.geometry.scene import Body, Scene, Surface
from contact_id_controller.geometry.shapes import Box, Capsule, ConvexMesh, HalfSpace, Solid, Sphere
from contact_id_controller.geometry.terrain import field_points, plane_points
from contact_id_controller.geometry.terrain_feet import TerrainFeet, feet_on, lower_onto, stand_on

__all__ = [
    "Body",
    "Box",
    "Capsule",
    "Closest",
    "ContactPoint",
    "ConvexMesh",
    "FeetOnGround",
    "FlatFoot",
    "FootContacts",
    "FrictionMap",
    "HalfSpace",
    "HeightField",
    "Scene",
    "Solid",
    "Sphere",
    "SphereFoot",
    "Surface",
    "TerrainFeet",
    "closest",
    "contact_names",
    "contact_points",
    "feet_of_contacts",
    "feet_on",
    "field_points",
    "lower_onto",
    "plane_points",
    "read_ground",
    "stand_on",
]
