"""Inverse dynamics with contact: joint torques and contact forces solved together."""

from .contacts import ContactSet
from .models import solve
from .problem import Problem, build_problem
from .robot import RobotModel
from .solution import Solution

__all__ = ["ContactSet", "Problem", "RobotModel", "Solution", "build_problem", "solve"]
__version__ = "0.1.0"
