"""Plans of momentum and whole-body motion over given footholds."""

from contact_id_controller.planning.kinodynamic.alternation import MotionPlan, Pass, plan_motion
from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPhase,
    ContactPlan,
    ContactPlanError,
    Foothold,
    KnotContacts,
    Sole,
)
from contact_id_controller.planning.kinodynamic.feasibility import InfeasiblePlanError
from contact_id_controller.planning.kinodynamic.foothold_search import FreedPlan, free_footholds
from contact_id_controller.planning.kinodynamic.holdable import holdable_velocity
from contact_id_controller.planning.kinodynamic.momentum import (
    HESSIANS,
    MomentumError,
    MomentumPlan,
    solve_momentum,
)
from contact_id_controller.planning.kinodynamic.momentum_problem import (
    CONES,
    MomentumProblem,
    MomentumReference,
    MomentumWeights,
    build_momentum_problem,
)
from contact_id_controller.planning.kinodynamic.standing import standing_start
from contact_id_controller.planning.kinodynamic.whole_body import (
    MotionProblem,
    MotionWeights,
    WholeBodyMotion,
    solve_motion,
)

__all__ = [
    "ContactPhase",
    "ContactPlan",
    "ContactPlanError",
    "Foothold",
    "KnotContacts",
    "Sole",
    "InfeasiblePlanError",
    "FreedPlan",
    "free_footholds",
    "holdable_velocity",
    "HESSIANS",
    "MomentumError",
    "MomentumPlan",
    "solve_momentum",
    "CONES",
    "MomentumProblem",
    "MomentumReference",
    "MomentumWeights",
    "build_momentum_problem",
    "MotionPlan",
    "Pass",
    "plan_motion",
    "standing_start",
    "MotionProblem",
    "MotionWeights",
    "WholeBodyMotion",
    "solve_motion",
]
