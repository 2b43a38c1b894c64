"""Inverse dynamics with contact: joint torques and contact forces solved together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contact_id_controller.lazy import public_names

if TYPE_CHECKING:  # what editors and type checkers see; at run time each name loads on first use
    from contact_id_controller.contacts import ContactSet
    from contact_id_controller.models import solve
    from contact_id_controller.models.batch import ContactFrames, FrameSolutions, solve_batch
    from contact_id_controller.models.inverse_dynamics import InverseDynamics
    from contact_id_controller.problem import Problem, build_problem
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.solution import Solution

__all__ = [
    "ContactFrames",
    "ContactSet",
    "FrameSolutions",
    "InverseDynamics",
    "Problem",
    "RobotModel",
    "Solution",
    "build_problem",
    "solve",
    "solve_batch",
]
__version__ = "0.3.0"

_HOMES = {
    "ContactFrames": "models.batch",
    "ContactSet": "contacts",
    "FrameSolutions": "models.batch",
    "InverseDynamics": "models.inverse_dynamics",
    "Problem": "problem",
    "RobotModel": "robot",
    "Solution": "solution",
    "build_problem": "problem",
    "solve": "models",
    "solve_batch": "models.batch",
}


if not TYPE_CHECKING:  # which would take any name from it
    __getattr__, __dir__ = public_names(__name__, globals(), _HOMES)
