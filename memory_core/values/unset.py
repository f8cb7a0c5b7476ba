"""The value of a field that a change leaves as it is."""

from __future__ import annotations

from typing import Final


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"  # one per process, also after copying and pickling


UNSET: Final = Unset()
"""Leave this field of a `Patch` as it is (`None` would clear it)."""
