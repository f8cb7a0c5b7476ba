"""The names that an importer or an exporter needs: its values, and readers of the files of other programs.

**What it is**: `Found` and `Refused` of an importer, `Exporter`.

**Files of others**, read with limits: `file_at`, `lines_of`, `json_of`, `foreign_database`, and the points of a vector
database: `foreign_points`, `ForeignPoint`.

**Values of others**: `fields_of`, `items_of`, `text_of`, `time_of`.

**A memory file**, before it is opened: `file_header`, `prepare_file`, `file_problems_explained`.

Names that need SQLite or a client of Qdrant are loaded when they are accessed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from memory_core.transfer.foreign_files import file_at, foreign_database, json_of, lines_of
from memory_core.transfer.foreign_values import fields_of, items_of, text_of, time_of
from memory_core.transfer.formats import Exporter, Found, Refused

if TYPE_CHECKING:
    from memory_core.storage.qdrant.points import ForeignPoint, foreign_points
    from memory_core.storage.sqlite.files import file_header, prepare_file
    from memory_core.storage.sqlite.problems import file_problems_explained

_AT_FIRST_USE: Final = {
    "ForeignPoint": "memory_core.storage.qdrant.points",
    "file_header": "memory_core.storage.sqlite.files",
    "file_problems_explained": "memory_core.storage.sqlite.problems",
    "foreign_points": "memory_core.storage.qdrant.points",
    "prepare_file": "memory_core.storage.sqlite.files",
}


def __getattr__(name: str) -> Any:  # typed by the imports above
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


__all__ = [
    "Exporter",
    "ForeignPoint",
    "Found",
    "Refused",
    "fields_of",
    "file_at",
    "file_header",
    "file_problems_explained",
    "foreign_database",
    "foreign_points",
    "items_of",
    "json_of",
    "lines_of",
    "prepare_file",
    "text_of",
    "time_of",
]
