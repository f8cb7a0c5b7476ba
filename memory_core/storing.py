"""The names that a store of your own needs beside `memory_core.protocols.Store`, which it implements.

**A whole store over the rows of your database**: `RowStore`, `Database`.

**The rules of a write**, over the rows that the store reads and writes: `rules`, `versions_of`; where a store has no
transactions, what becomes of a record: `retired`, `patched`.

**What is written for a record**: `prepare`, `Prepared`.

**What a search is, and what it means**: `SearchRequest`, `ListRequest`, `satisfies`, `rank`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from memory_core.records.draft_to_record import patched
from memory_core.records.superseding import retired
from memory_core.requests import ListRequest, SearchRequest
from memory_core.where.meaning import satisfies

if TYPE_CHECKING:
    from memory_core.retrieval.ranking import rank
    from memory_core.storage import rules
    from memory_core.storage.rules.row_store import Database, RowStore
    from memory_core.storage.shared.prepared import Prepared, prepare
    from memory_core.storage.shared.versions import versions_of

_AT_FIRST_USE: Final = {
    "Database": "memory_core.storage.rules.row_store",
    "Prepared": "memory_core.storage.shared.prepared",
    "RowStore": "memory_core.storage.rules.row_store",
    "prepare": "memory_core.storage.shared.prepared",
    "rank": "memory_core.retrieval.ranking",
    "versions_of": "memory_core.storage.shared.versions",
}
"""Names that need numpy are loaded when they are accessed."""


def __getattr__(name: str) -> Any:  # typed by the imports above
    if name == "rules":
        return import_module("memory_core.storage.rules")
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


__all__ = [
    "Database",
    "ListRequest",
    "Prepared",
    "RowStore",
    "SearchRequest",
    "patched",
    "prepare",
    "rank",
    "retired",
    "rules",
    "satisfies",
    "versions_of",
]
