"""Formats of other programs, which this package and others register as entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from memory_core.errors import InvalidInputError

IMPORTERS: Final = "memory_core.importers"
EXPORTERS: Final = "memory_core.exporters"
LOSSLESS: Final = "jsonl"
"""The format of this package, which is no entry point."""


def formats(group: str) -> list[str]:
    """The names of the formats of a group."""
    return sorted({LOSSLESS, *(point.name for point in entry_points(group=group))})


def sources() -> list[str]:
    """The formats of `import`."""
    return formats(IMPORTERS)


def targets() -> list[str]:
    """The formats of `export`."""
    return formats(EXPORTERS)


def entry_of(group: str, name: str) -> Any:  # an Importer or an Exporter
    """The importer or exporter of a format.

    Raises:
        InvalidInputError: The entry is missing, or needs a package that is not installed.
    """
    found = next(iter(entry_points(group=group, name=name)), None)
    noun = group.rpartition(".")[2].removesuffix("s")
    if found is None:
        raise InvalidInputError(f"there is no {noun} for {name!r}; the formats are {', '.join(formats(group))}")
    try:
        return found.load()
    except ImportError as error:
        raise InvalidInputError(f"the {noun} for {name!r} cannot be loaded: {error}") from error
