"""Conversations as JSON Lines: one object a line with `at`, `session`, `author` and `text`, or as chat APIs take them:
with `role` and `content`, in one session that is named like the file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Role
from memory_core.transfer.foreign_files import lines_of, object_in
from memory_core.transfer.formats import Found, Refused

FIELDS: Final = ("at", "session", "author", "text")
_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}


async def conversation(source: str) -> AsyncIterator[Found | Refused]:
    """A .jsonl file with an object on each line: at, session, author, text."""
    seen: Counter[str] = Counter()
    for place, line in lines_of(source):
        if line.strip():
            try:
                given = object_in(line)
                turn = _message(given, Path(source).stem) if "role" in given and "text" not in given else _turn(given)
                yield Found(place, _draft(turn, seen), given=given)
            except InvalidInputError as error:
                yield Refused(place, str(error))


def _draft(turn: dict[str, str], seen: Counter[str]) -> Draft:
    digest = hashlib.sha256(json.dumps(turn, sort_keys=True).encode()).hexdigest()
    seen[digest] += 1  # people do say "Roger." twice in the same second
    return Draft(
        turn["text"],
        kind="message",
        author=turn.get("author"),
        role=_ROLES.get(turn.get("role", "")),
        session=turn["session"],
        occurred_at=datetime.fromisoformat(turn["at"]) if "at" in turn else None,
        source_key=f"{digest}:{seen[digest]}",
    )


def _turn(given: dict[str, Any]) -> dict[str, str]:
    turn = {name: _field(given, name) for name in FIELDS}
    try:
        moment = datetime.fromisoformat(turn["at"])
    except ValueError as error:
        raise InvalidInputError(f"bad time {turn['at']!r}: {error}") from error
    if moment.tzinfo is None:
        raise InvalidInputError(f"the time {turn['at']!r} has no offset from UTC, such as +00:00")
    return turn


def _message(given: dict[str, Any], session: str) -> dict[str, str]:
    """A message of a chat API as a turn."""
    turn = {"role": _field(given, "role"), "text": _field(given, "content"), "session": session}
    if turn["role"] not in _ROLES:
        raise InvalidInputError(f"the role {turn['role']!r:.80} is not one of {', '.join(_ROLES)}")
    return turn


def _field(turn: dict[str, Any], name: str) -> str:
    value = turn.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"the field {name!r} is missing or not a non-empty string")
    return value
