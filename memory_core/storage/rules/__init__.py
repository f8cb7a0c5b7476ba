"""The meaning of a write, once for every store that has transactions: plain functions over the rows of one owner.

`rows.py` is the gateway that a database offers; a store of your own begins with it (`docs/howto/own-store.md`).
"""

from memory_core.storage.rules.adding import add
from memory_core.storage.rules.changing import update
from memory_core.storage.rules.deleting import BEFORE_EVERYTHING, delete, erase, remove, sweep
from memory_core.storage.rules.deriving import loses_source
from memory_core.storage.rules.putting import postpone, put
from memory_core.storage.rules.reading import matching, page, search, touch
from memory_core.storage.rules.rows import Head, Row, Rows

__all__ = [
    "BEFORE_EVERYTHING",
    "Head",
    "Row",
    "Rows",
    "add",
    "delete",
    "erase",
    "loses_source",
    "matching",
    "page",
    "postpone",
    "put",
    "remove",
    "search",
    "sweep",
    "touch",
    "update",
]
