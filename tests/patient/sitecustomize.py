"""Deadlines of the product that a busy machine keeps, in a program with this folder on its path.

Python imports a module of this name before a program, and so before any adapter, which reads some of the deadlines when
it is imported. `tests/conftest.py` has the deadlines of the tests themselves.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

_SECONDS: Final = 60.0

with suppress(ImportError):  # a program of an environment without our packages
    from memory_core.conversation import limits

    for _name in ("RECALL_SECONDS", "CALL_SECONDS", "LOADING_SECONDS"):
        setattr(limits, _name, _SECONDS)
