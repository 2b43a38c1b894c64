"""Where bodies touch, or are about to: gap, points, normals and names of contacts."""

from .closest import Closest, closest
from .feet import FootContacts, SphereFoot
from .friction_map import FrictionMap
from .height_field import HeightField
from .manifold import ContactPoint, contact_points
from .scene import Body, Scene, Surface
from .shapes import Box, Capsule, ConvexMesh, HalfSpace, Solid, Sphere
from .terrain import field_points, plane_points
from .terrain_feet import TerrainFeet, lower_onto, stand_on

__all__ = [
    "Body",
    "Box",
    "Capsule",
    "Closest",
    "ContactPoint",
    "ConvexMesh",
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
    "contact_points",
    "field_points",
    "lower_onto",
    "stand_on",
    "plane_points",
]
