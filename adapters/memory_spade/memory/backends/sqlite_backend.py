"""The default backend: a core store in one SQLite file."""

from __future__ import annotations

import os

from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.opening import Opening


class SqliteBackend(HandleBackend):
    """Long-term memories of any number of agents in one file.

    Args:
        database_path: The file, or `":memory:"`, whose memories are lost at `cleanup`.
    """

    def __init__(self, database_path: str | os.PathLike[str]) -> None:
        opening = Opening.of_database(database_path)
        super().__init__(opening.partition, opened=opening.open, closed=opening.close)
