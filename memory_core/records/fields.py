"""The fields of a record: how a caller's value is checked, how it is stored, and whether it tells records apart.

Drafts, patches, rows and payloads follow this table. A new plain field is declared in `models.py` (with the type of
condition that compares it, and with a default in `MemoryRecord`, so that older exports can be read), gets its line
here, and its column in a migration of `storage/sqlite/schema.py`, which also renews the digests of all rows, because a
digest covers every field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar, cast

from memory_core.errors import InvalidInputError
from memory_core.models import RELATIONS, ROLES, STATES, TIERS, Json, Link
from memory_core.values.checks import (
    check_flag,
    check_key,
    check_local_time,
    check_one_of,
    check_size,
    check_text,
    check_time,
    check_unit,
    shown,
)
from memory_core.values.json_checks import check_json
from memory_core.values.limits import MAX_DATA_BYTES, MAX_LINKS, MAX_TAGS, MAX_TEXT_CHARS

T = TypeVar("T")

Form = Literal["plain", "flag", "time", "data", "tags", "links"]
"""The form in which a value is stored: as it is, as true or false, as a moment, or as JSON of the field's own shape."""


def or_none(check: Callable[[str, object], T], name: str) -> Callable[[object], T | None]:
    """The same check for a field that may be `None`."""
    return lambda value: None if value is None else check(name, value)


def check_content(value: object) -> str:
    """Return `value` if it can be the text of a record."""
    if isinstance(value, str):
        check_size("text", len(value), MAX_TEXT_CHARS, "characters", "split it into several records")
    return check_text("text", value)


def check_data(value: object) -> Mapping[str, Json]:
    """Return a copy of `value` if it is a JSON object that would come back unchanged."""
    if value == {}:  # before the type check, which takes longer
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"data must be a JSON object, not {shown(value)}")
    data, _ = check_json("data", cast("Mapping[str, Json]", value), MAX_DATA_BYTES)
    return cast("dict[str, Json]", data)


def check_links(value: object) -> tuple[Link, ...]:
    """Return `value` without repetitions if it is a sequence of links."""
    if value == ():
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(f"links must be a sequence of Link, not {shown(value)}")
    given = cast("Sequence[object]", value)
    check_size("a record", len(given), MAX_LINKS, "links", "link to a record that links to the others")
    return tuple(dict.fromkeys(_link(item) for item in given))


def _link(value: object) -> Link:
    if not isinstance(value, Link) or value.relation not in RELATIONS:
        raise InvalidInputError(f"a link is a Link of {', '.join(RELATIONS)} and an id, not {shown(value)}")
    check_key("the id of a link", value.id)
    if value.rev is not None and (not isinstance(value.rev, int) or isinstance(value.rev, bool) or value.rev < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(f"the rev of a link is a whole number from 1 on, or None, not {shown(value.rev)}")
    for name in ("session", "collection", "agent"):
        if getattr(value, name) is not None:
            check_key(f"the {name} of a link", getattr(value, name))
    return value


def _tags(value: object) -> tuple[str, ...]:
    if value == ():
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(f"tags must be a sequence of strings, not {shown(value)}")
    given = cast("Sequence[object]", value)
    check_size("a record", len(given), MAX_TAGS, "tags", "put the others into data")
    return tuple(dict.fromkeys(check_key("a tag", tag) for tag in given))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of `MemoryRecord`."""

    name: str
    check: Callable[[object], object] | None = None
    """Returns a caller's value as it is stored, or raises `InvalidInputError`; `None` for what the store maintains."""
    form: Form = "plain"
    can_change: bool = True
    """True if a `Patch` has it."""
    tells_apart: bool = False
    """True if records with equal texts say different things if they differ in it, so that they are never merged."""


FIELDS: Final = (
    Field("id", partial(check_key, "id"), can_change=False),
    Field("text", check_content),
    Field("role", or_none(partial(check_one_of, allowed=ROLES), "role"), tells_apart=True),
    Field("kind", partial(check_key, "kind"), tells_apart=True),
    Field("tier", partial(check_one_of, "tier", allowed=TIERS), tells_apart=True),
    Field("author", or_none(check_key, "author"), tells_apart=True),
    Field("data", check_data, form="data", tells_apart=True),
    Field("tags", _tags, form="tags"),
    Field("importance", partial(check_unit, "importance")),
    Field("confidence", partial(check_unit, "confidence")),
    Field("emotion", or_none(check_key, "emotion"), tells_apart=True),
    Field("created_at", form="time"),
    Field("updated_at", form="time"),
    Field("accessed_at", form="time"),
    Field("occurred_at", partial(check_local_time, "occurred_at"), form="time"),
    Field("access_count"),
    Field("expires_at", or_none(check_time, "expires_at"), form="time", tells_apart=True),
    Field("valid_from", or_none(check_time, "valid_from"), form="time"),
    Field("valid_to", or_none(check_time, "valid_to"), form="time", tells_apart=True),
    Field("state", partial(check_one_of, "state", allowed=STATES)),
    Field("left", partial(check_flag, "left"), form="flag"),
    Field("former_state"),
    Field("former_valid_to", form="time"),
    Field("source_key", or_none(check_key, "source_key"), can_change=False),
    Field("rev"),
    Field("version"),
    Field("agent", or_none(check_key, "agent"), can_change=False, tells_apart=True),
    Field("session", or_none(check_key, "session"), can_change=False),
    Field("collection", or_none(check_key, "collection"), can_change=False, tells_apart=True),
    Field("links", check_links, form="links"),
)
"""All fields of a record but its owner, in the order of `MemoryRecord`, in which they are stored."""

OFFSET: Final = "occurred_offset"
"""The column with the offset of `occurred_at` from UTC, in minutes: all other times are in UTC."""

CHECKS: Final[Mapping[str, Callable[[object], object]]] = {
    field.name: field.check for field in FIELDS if field.check is not None
}
"""By field name, the check of a value that a caller gives."""
