"""The conditions of a read, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final

from memory_core.hints import hinted_fields
from memory_core.models import STATES, Link, Role, State, Tier
from memory_core.values.value import Value
from memory_core.where.conditions import NAME_FIELDS, Condition


@hinted_fields
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Where(Value):
    """Conditions on records, all of which must be true. Empty means no condition, except that only active, unexpired
    records match unless `states` says otherwise."""

    roles: Sequence[Role] = ()
    kinds: Sequence[str] = ()
    tiers: Sequence[Tier] = ()
    tags_any: Sequence[str] = ()
    tags_all: Sequence[str] = ()
    keywords: Sequence[str] = ()
    """The text contains one of these, ignoring case and how accents are encoded: whole words, or any part of a text in
    a script that puts no spaces between words."""
    author: str | None = None
    agent: str | None = None
    session: str | None = None
    collection: str | None = None
    under: str | None = None
    """`collection` is this, or begins with it and a slash: collections are treated as paths."""
    emotion: str | None = None
    min_importance: float | None = None
    min_confidence: float | None = None
    since: datetime | None = None
    """`occurred_at` at or after this moment."""
    until: datetime | None = None
    """`occurred_at` before this moment."""
    as_of: datetime | None = None
    """Valid at this moment: from `valid_from` (or `occurred_at` if that is not set) until before `valid_to`. Archived
    records, such as superseded ones, then match as well as active ones."""
    links: Sequence[Link] = ()
    """The record has all of these links."""
    states: Sequence[State] = ("active",)
    data: Mapping[str, str | int | float | bool | None] = field(
        default_factory=dict[str, "str | int | float | bool | None"]
    )
    """Top-level keys of `data` and their required values."""
    matching: Sequence[Condition] = ()
    """Conditions on values anywhere in `data`, on any field with any comparison, and groups of such conditions."""
    ids: Sequence[str] | None = None
    """Records with these ids. Unlike other lists, an empty one matches nothing, so that
    `delete_where(Where(ids=chosen))` with nothing chosen deletes nothing."""
    source_keys: Sequence[str] | None = None
    """Records with these source keys. An empty list matches nothing, as for `ids`."""


EQUAL_FIELDS: Final = tuple(each.name for each in fields(Where) if each.name in NAME_FIELDS)
"""Fields of a `Where` that a record must have with the same value, if they are given."""
EVERYTHING: Final = Where()
"""No condition: the default of every read."""
ANY_STATE: Final = Where(states=STATES)
"""Archived and compacted records, too."""
