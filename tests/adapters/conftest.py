"""Several frameworks side by side on one memory."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # tests are no package, and two of them share `frameworks`
