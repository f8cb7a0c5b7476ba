"""The packages that can be imported here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

NOT_INSTALLED: Final = 3
"""The exit code of a process whose Python does not have what it is to measure."""


def missing(modules: Sequence[str]) -> list[str]:
    """The modules that are not installed."""

    def is_there(module: str) -> bool:
        try:
            return find_spec(module) is not None
        except ModuleNotFoundError:  # not even the package around it
            return False

    return [module for module in modules if not is_there(module)]
