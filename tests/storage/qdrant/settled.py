"""The points that a test looks at on the server's side, once the work in the background is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from memory_core.storage.qdrant.codec import PENDING, WORDS
from tests.storage.qdrant.loopback import Loopback

Point = tuple[dict[str, Any], dict[str, Any]]
"""Payload and vectors."""


def records_collection(loopback: Loopback) -> str:
    """The one collection that holds records."""
    (name,) = [name for name in loopback.engine.created if not name.endswith("-meta")]
    return name


def points(loopback: Loopback) -> dict[str, Point]:
    """All points that hold records, by the record's id."""
    found = everything(loopback, records_collection(loopback))
    return {payload["id"]: (payload, vectors) for payload, vectors in found if "_owner" in payload}


def markers(loopback: Loopback) -> list[dict[str, Any]]:
    """The points of the records' collection that hold no record."""
    found = everything(loopback, records_collection(loopback))
    return [payload for payload, _ in found if "_owner" not in payload]


def dense_of(vectors: dict[str, Any]) -> Any:
    """The rows of the vectors of a point's text; `None` if they are pending."""
    return next((rows for name, rows in vectors.items() if name != WORDS and not name.endswith("-first")), None)


def pending(loopback: Loopback) -> list[str]:
    """The ids of records whose vectors are pending."""
    return [id_ for id_, (payload, _) in points(loopback).items() if PENDING in payload["_keys"]]


def settle(loopback: Loopback) -> None:
    """Wait until nothing is pending; then every point has to be whole."""
    wait_for(lambda: not pending(loopback))
    for payload, vectors in points(loopback).values():
        assert (WORDS in vectors) == bool(payload["_terms"])
        assert (dense_of(vectors) is not None) == bool(payload["text"])


def wait_for(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def everything(loopback: Loopback, collection: str) -> list[Point]:
    """All points of a collection."""
    found: list[Point] = []

    def read() -> None:
        records, _ = loopback.engine.client.scroll(collection, limit=1_000_000, with_vectors=True)
        for record in records:
            vectors: Any = record.vector or {}
            found.append((record.payload or {}, vectors))

    loopback.on_loop(read)
    return found
