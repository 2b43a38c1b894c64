"""Where things are in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "contact_id_controller"
EXPERIMENTS = ROOT / "experiments"
CONFIG = ROOT / "config"
QUADRUPED_URDF = ROOT / "urdf" / "quadruped.urdf"
