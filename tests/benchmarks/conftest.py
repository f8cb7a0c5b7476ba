"""The short forms of the lines, and the page that is written from their results."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # as for a script in this folder
