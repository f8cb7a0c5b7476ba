"""The default backend: a core store in one SQLite file."""

from __future__ import annotations

import os

from memory_spade.memory.backends.handle_backend import HandleBackend
from memory_spade.memory.place import in_database


class SqliteBackend(HandleBackend):
    """Long-term memories of any number of agents in one file.

    Args:
        database_path: The file, or `":memory:"`, whose memories are lost at `cleanup`.
    """

    def __init__(self, database_path: str | os.PathLike[str]) -> None:
        super().__init__(in_database(database_path))
