"""Linear complementarity problems: pivoting kernels and their Python entries.

find z, w >= 0 with w = M z + q and z_i w_i = 0
"""

from contact_id_controller.lcp.lemke import lemke
from contact_id_controller.lcp.lemke_friction import FrictionResult, lemke_friction
from contact_id_controller.lcp.ppm import ppm
from contact_id_controller.lcp.ppm_factored import ppm_factored
from contact_id_controller.lcp.status import STATUS_NAMES, LcpResult

__all__ = [
    "FrictionResult",
    "LcpResult",
    "STATUS_NAMES",
    "lemke",
    "lemke_friction",
    "ppm",
    "ppm_factored",
]
