"""Whose vectors the file holds: plain functions inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from functools import lru_cache

from memory_core.errors import FingerprintError
from memory_core.models import Fingerprint
from memory_core.storage.sqlite import meta


def held(db: sqlite3.Connection, name: str = "fingerprint") -> Fingerprint | None:
    """The embedder whose vectors searches read, if there is any (or another fingerprint kept in `meta`)."""
    value = meta.get(db, name)
    return None if value is None else _parsed(str(value))


@lru_cache(maxsize=8)
def _parsed(text: str) -> Fingerprint:
    return Fingerprint(**json.loads(text))


def hold(db: sqlite3.Connection, fingerprint: Fingerprint, name: str = "fingerprint") -> None:
    """Make it the one the file holds."""
    meta.put(db, name, json.dumps(asdict(fingerprint)))


def claim(db: sqlite3.Connection, wanted: Fingerprint) -> None:
    """Make it the one the file holds, unless there is one already."""
    if held(db) is None:
        hold(db, wanted)


def insist(db: sqlite3.Connection, wanted: Fingerprint) -> None:
    """Refuse vectors of one embedder where the file holds those of another.

    Raises:
        FingerprintError: It says which, and what to do.
    """
    found = held(db)
    if found is not None and found != wanted:
        raise FingerprintError(
            f"the vectors in the memory file were made by {found.name} {found.revision} ({found.dimensions} "
            f"dimensions), not by {wanted.name} {wanted.revision} ({wanted.dimensions}); open it with that embedder, "
            "or compute them anew: open it with embedder=None and call `await memory.reembed(embedder)`"
        )
