"""Reading a conversation file: one JSON object per line with `at`, `session`, `author` and `text`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from memory_core import BoundMemory, Draft, check_draft

BATCH = 256
"""Lines per transaction."""


@dataclass(frozen=True)
class BadLine:
    """A line that could not be used, counted from 1."""

    number: int
    reason: str


def read(path: Path) -> Iterator[Draft | BadLine]:
    """The turns of a file in order, and a `BadLine` for each invalid line; blank lines are skipped."""
    seen: Counter[str] = Counter()
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield _draft(_turn(line), seen)
            except ValueError as error:
                yield BadLine(number, str(error))


async def ingest(memory: BoundMemory, turns: Sequence[Draft]) -> AsyncIterator[int]:
    """Add the turns batch by batch and yield how many are stored; known turns are not changed."""
    for start in range(0, len(turns), BATCH):
        batch = turns[start : start + BATCH]
        await memory.add_many(batch)
        yield len(batch)


def _draft(turn: dict[str, str], seen: Counter[str]) -> Draft:
    digest = hashlib.sha256(json.dumps(turn, sort_keys=True).encode()).hexdigest()
    seen[digest] += 1  # people do say "Roger." twice in the same second
    return check_draft(
        Draft(
            turn["text"],
            kind="message",
            author=turn["author"],
            session=turn["session"],
            occurred_at=datetime.fromisoformat(turn["at"]),
            source_key=f"{digest}:{seen[digest]}",
        )
    )


def _turn(line: bytes) -> dict[str, str]:
    try:
        found: Any = json.loads(line)
    except RecursionError as error:
        raise ValueError("not a turn: JSON in too many levels") from error
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"not a JSON object but {type(found).__name__}")  # noqa: TRY004  (about the line)
    turn = {name: _field(cast("dict[str, Any]", found), name) for name in ("at", "session", "author", "text")}
    try:
        moment = datetime.fromisoformat(turn["at"])
    except ValueError as error:
        raise ValueError(f"bad time {turn['at']!r}: {error}") from error
    if moment.tzinfo is None:
        raise ValueError(f"the time {turn['at']!r} has no offset from UTC, such as +00:00")
    return turn


def _field(turn: dict[str, Any], name: str) -> str:
    value = turn.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"the field {name!r} is missing or not a non-empty string")
    return value
