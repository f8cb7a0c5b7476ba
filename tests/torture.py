"""The long forms of tests: CI runs short ones, in ten minutes, and `make torture` the long ones, in an hour or more.

`TORTURE=1` is the only switch. A test takes its long form as a parameter with the marker `torture`, so that
`-m torture` finds it; a property has one without a word of its own, see `tests/conftest.py`.
"""

from __future__ import annotations

import os
from typing import Final

TORTURE: Final = bool(os.environ.get("TORTURE"))
LONGEST_SECONDS: Final = 7_200
"""The time limit of a long form, instead of the one in pyproject.toml."""
FEW_EXAMPLES: Final = 8
MANY_EXAMPLES: Final = 1_000
"""Of a property in CI, the same ones each time, and in `make torture`, others each time."""
