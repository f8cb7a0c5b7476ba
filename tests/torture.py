"""The long forms of tests: CI runs short ones, in ten minutes, and `make torture` the long ones, in some more.

`TORTURE=1` is the only switch. A test that has a long form takes it as a parameter that is marked with `LONG`, so that
`-m torture` finds it; properties have theirs in `tests/conftest.py`, without a word of their own.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

TORTURE: Final = bool(os.environ.get("TORTURE"))
LONG: Final = [pytest.mark.torture, pytest.mark.timeout(1_800)]
"""Marks of a long form; it takes minutes, and half an hour on a busy machine."""
FEW_EXAMPLES: Final = 25
MANY_EXAMPLES: Final = 1_000
"""Of a property in CI, the same ones each time, and in `make torture`, others each time."""
