"""What a test looks at on the server's side, once the work in the background is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from memory_core.storage.qdrant.codec import TEXT, WORDS
from tests.storage.qdrant.loopback import Loopback

Point = tuple[dict[str, Any], dict[str, Any]]
"""Payload and vectors."""


def records_collection(loopback: Loopback) -> str:
    """The one collection that holds records."""
    (name,) = [name for name in loopback.engine.created if not name.endswith("-ledger")]
    return name


def points(loopback: Loopback) -> dict[str, Point]:
    """All points that hold records, by the record's id."""
    return {payload["id"]: (payload, vectors) for payload, vectors in _all(loopback, records_collection(loopback))}


def journals(loopback: Loopback) -> list[dict[str, Any]]:
    """The pieces of writes that are under way."""
    (name,) = [name for name in loopback.engine.created if name.endswith("-ledger")]
    return [payload for payload, _ in _all(loopback, name) if payload["kind"] == "journal"]


def debts(loopback: Loopback) -> list[str]:
    """The ids of records that owe vectors."""
    return [id_ for id_, (payload, _) in points(loopback).items() if payload.get("_pending") is not None]


def settle(loopback: Loopback) -> None:
    """Wait until nothing is owed and no write is under way; then every point has to be whole."""
    wait_for(lambda: not journals(loopback) and not debts(loopback))  # in this order: a write may leave debts
    for payload, vectors in points(loopback).values():
        assert WORDS in vectors
        assert (TEXT in vectors) == bool(payload["text"])


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def _all(loopback: Loopback, collection: str) -> list[Point]:
    found: list[Point] = []

    def read() -> None:
        records, _ = loopback.engine.client.scroll(collection, limit=1_000_000, with_vectors=True)
        for record in records:
            vectors: Any = record.vector or {}
            found.append((record.payload or {}, vectors))

    loopback.on_loop(read)
    return found
