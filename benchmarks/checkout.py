"""Makes ``experiments`` importable: a benchmark runs as a file, and only the package is installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
