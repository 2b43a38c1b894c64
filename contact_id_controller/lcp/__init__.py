"""Linear complementarity problems: pivoting kernels and their Python doors.

    find z, w >= 0 with w = M z + q and z_i w_i = 0
"""

from .lemke import lemke
from .lemke_friction import FrictionResult, lemke_friction
from .ppm import ppm
from .ppm_factored import ppm_factored
from .status import STATUS_NAMES, LcpResult

__all__ = ["FrictionResult", "LcpResult", "STATUS_NAMES", "lemke", "lemke_friction", "ppm",
           "ppm_factored"]
