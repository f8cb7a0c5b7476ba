"""The cost of a file without a memory around it: texts in SQLite with FTS5, and vectors as numbers of 16 bits.

It answers by `bm25()` and, with vectors, by one product of numpy; nothing else is stored and no rule is applied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from common import DIMENSIONS, GivenVectors

SHOWN: Final = 10


class PlainFile:
    """One open file; `close` it."""

    def __init__(self, path: Path, vectors: GivenVectors | None) -> None:
        self._vectors = vectors
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS memory (id INTEGER PRIMARY KEY, owner INT, text, vector)")
        self._db.execute("CREATE INDEX IF NOT EXISTS by_owner ON memory (owner)")
        self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content='memory')")
        self._matrix: NDArray[np.float32] | None = None

    def add(self, owner: int, texts: Sequence[str]) -> None:
        """Store texts of an owner in one commit, which waits for the disk."""
        made = self._vectors
        rows = [(owner, text, made and made.vector(text).astype(np.float16).tobytes()) for text in texts]
        first: int = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM memory").fetchone()[0]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO memory (owner, text, vector) VALUES (?, ?, ?)", rows)
        self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts, first))
        self._db.execute("COMMIT")

    def read(self, owner: int) -> int:
        """Read an owner's rows once, as a first search has to; returns how many there are."""
        rows = self._db.execute("SELECT text, vector FROM memory WHERE owner = ?", (owner,)).fetchall()
        if self._vectors is not None:
            packed = b"".join(vector for _, vector in rows)
            self._matrix = np.frombuffer(packed, np.float16).reshape(-1, DIMENSIONS).astype(np.float32)
        return len(rows)

    def search(self, owner: int, question: str) -> None:
        """The best rows of an owner by words, and by vectors where there are some."""
        wanted = " OR ".join(question.split())
        self._db.execute(
            "SELECT memory.id FROM words JOIN memory ON memory.id = words.rowid WHERE words MATCH ? AND owner = ? "
            "ORDER BY rank LIMIT ?",
            (wanted, owner, SHOWN),
        ).fetchall()
        if self._matrix is not None and self._vectors is not None:
            np.argpartition(self._matrix @ self._vectors.vector(question), -SHOWN)

    def close(self) -> None:
        """Write the log into the file."""
        with closing(self._db):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
