"""JSON Lines of any program: one object a line, with fields under their usual names."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Role
from memory_core.transfer.foreign_files import lines_of, object_in
from memory_core.transfer.foreign_values import TIMES, fields_of, items_of, name_of, text_of, time_of
from memory_core.transfer.formats import Found, Refused
from memory_core.values.checks import shown

TEXT: Final = ("text", "content", "memory", "document", "message", "value", "fact", "data")
USER: Final = ("user_id", "userId", "user", "username", "owner")
SESSION: Final = ("session", "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "run_id", "chat_id")
KIND: Final = ("kind", "type", "category")
AUTHOR: Final = ("author", "speaker", "actor_id", "from", "name")
ID: Final = ("id", "uuid", "key", "memory_id")
_ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "system": "system",
}


async def jsonl(source: str) -> AsyncIterator[Found | Refused]:
    """A .jsonl file of any program: text or content, user_id, session, time, kind, role under their usual names."""
    seen: Counter[str] = Counter()
    for place, line in lines_of(source):
        if line.strip():
            try:
                yield _found(place, line, seen)
            except InvalidInputError as error:
                yield Refused(place, str(error))


def _found(place: str, line: bytes, seen: Counter[str]) -> Found:
    given = object_in(line)
    fields = {**fields_of(given.get("metadata")), **{name: given[name] for name in given if name != "metadata"}}
    used: set[str] = {"metadata"}

    def first(names: Sequence[str], read: Any) -> Any:
        """The first of these fields that has such a value."""
        for name in names:
            if (value := read(fields.get(name))) is not None:
                used.add(name)
                return value
        return None

    said = first(TEXT, text_of)
    if said is None:
        raise InvalidInputError(f"it has no text under any of {', '.join(TEXT)}")
    role = first(("role",), _role)
    session, user = first(SESSION, name_of), first(USER, name_of)
    whose = next(((name, fields[name]) for name in USER if fields.get(name) is not None), None)
    if whose is not None and name_of(whose[1]) is None:
        raise InvalidInputError(f"its {whose[0]} is {shown(whose[1])}, not the name of a user")
    kind, tags = first(KIND, text_of), [tag for tag in items_of(fields.get("tags")) if text_of(tag)]
    draft = Draft(
        said,
        kind=kind or ("note" if role is None else "message"),
        role=role,
        session=session,
        author=first(AUTHOR, text_of),
        occurred_at=first(TIMES, time_of),
        tags=tags,
        source_key=f"jsonl:{_identity(first(ID, name_of), user, line, seen)}",
        data={name: value for name, value in fields.items() if name not in used and not (tags and name == "tags")},
    )
    return Found(place, draft, user=user, given=fields)


def _role(value: object) -> Role | None:
    return _ROLES.get(value.lower()) if isinstance(value, str) else None


def _identity(id_: str | None, user: str | None, line: bytes, seen: Counter[str]) -> str:
    """The same in the next import: the id, which users may share, or else the line and how often it came before."""
    if id_ is not None:
        return hashlib.sha256(json.dumps([user, id_]).encode()).hexdigest()
    digest = hashlib.sha256(line.strip()).hexdigest()
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
