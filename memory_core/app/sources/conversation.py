"""Conversations as JSON Lines: one object a line with `at`, `session`, `author` and `text`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, cast

from memory_core.errors import InvalidInputError
from memory_core.models import Draft
from memory_core.transfer.foreign_files import lines_of
from memory_core.transfer.formats import Found, Refused

FIELDS: Final = ("at", "session", "author", "text")


async def conversation(source: str) -> AsyncIterator[Found | Refused]:
    """A .jsonl file with an object on each line: at, session, author, text."""
    seen: Counter[str] = Counter()
    for place, line in lines_of(source):
        if line.strip():
            try:
                yield Found(place, _draft(_turn(line), seen))
            except InvalidInputError as error:
                yield Refused(place, str(error))


def _draft(turn: dict[str, str], seen: Counter[str]) -> Draft:
    digest = hashlib.sha256(json.dumps(turn, sort_keys=True).encode()).hexdigest()
    seen[digest] += 1  # people do say "Roger." twice in the same second
    return Draft(
        turn["text"],
        kind="message",
        author=turn["author"],
        session=turn["session"],
        occurred_at=datetime.fromisoformat(turn["at"]),
        source_key=f"{digest}:{seen[digest]}",
    )


def _turn(line: bytes) -> dict[str, str]:
    try:
        found: Any = json.loads(line)
    except RecursionError as error:
        raise InvalidInputError("not a turn: JSON in too many levels") from error
    except ValueError as error:
        raise InvalidInputError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"not a JSON object but {type(found).__name__}")
    turn = {name: _field(cast("dict[str, Any]", found), name) for name in FIELDS}
    try:
        moment = datetime.fromisoformat(turn["at"])
    except ValueError as error:
        raise InvalidInputError(f"bad time {turn['at']!r}: {error}") from error
    if moment.tzinfo is None:
        raise InvalidInputError(f"the time {turn['at']!r} has no offset from UTC, such as +00:00")
    return turn


def _field(turn: dict[str, Any], name: str) -> str:
    value = turn.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"the field {name!r} is missing or not a non-empty string")
    return value
