"""`make refresh`, whose modules are in the folder of tools."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
