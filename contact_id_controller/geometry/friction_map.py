"""Ground whose friction differs from place to place, drawn at random from a seed."""

from __future__ import annotations

import numpy as np

from contact_id_controller.exceptions import ConfigurationError

TILE = 1024  # patches along each axis after which the pattern repeats


class FrictionMap:
    """Friction coefficients of square patches of ground, each uniform in [lowest, highest].

    They depend on the place and the seed only, so simulator and controller can evaluate the same map; patches smaller
    than a step give each landing another coefficient.

    Args:
        lowest, highest: coefficients.
        patch_m: edge of a patch, in the horizontal plane.
        seed: of the draw.

    Raises:
        ConfigurationError: coefficients negative, infinite or in the wrong order, no positive edge.
    """

    def __init__(self, lowest: float, highest: float, patch_m: float = 0.02, seed: int = 0):
        if not 0.0 <= lowest <= highest < np.inf:
            raise ConfigurationError(
                f"friction between {lowest} and {highest}: must be finite, not negative, in order"
            )
        if not 0.0 < patch_m < np.inf:
            raise ConfigurationError(f"patch_m is {patch_m}, must be positive")
        self.patch_m = float(patch_m)
        self.values = np.random.default_rng(seed).uniform(lowest, highest, (TILE, TILE))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Coefficients (n,) of the ground below world points (n, 3), m."""
        cells = np.floor(np.asarray(points)[:, :2] / self.patch_m).astype(np.int64) % TILE
        return self.values[cells[:, 0], cells[:, 1]]
