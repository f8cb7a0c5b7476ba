"""The conditions of a read, as one value.

No value is not the empty value: `None` is no condition, an empty list of alternatives (`kinds`, `tags_any`, `ids`)
matches nothing, and an empty conjunction (`tags_all`, `links`, `data`, `matching`) is no condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from memory_core.models import STATES, Link, Role, State, Tier
from memory_core.values.value import Value
from memory_core.where.conditions import NAME_FIELDS, Condition


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Where(Value):
    """Conditions on records, all of which must be true. `None` means no condition, except that only active, unexpired
    records that were not left match unless `states` and `left` say otherwise.

    Of a list of alternatives one must hold, so an empty list matches nothing: `delete_where(Where(kinds=chosen))` with
    nothing chosen deletes nothing. Of `tags_all`, `links`, `data` and `matching` all must hold, so an empty one is no
    condition."""

    roles: Sequence[Role] | None = None
    """One of these, as for `kinds` and `tiers`."""
    kinds: Sequence[str] | None = None
    tiers: Sequence[Tier] | None = None
    tags_any: Sequence[str] | None = None
    """The record has one of these tags."""
    tags_all: Sequence[str] | None = None
    """The record has all of these tags."""
    keywords: Sequence[str] | None = None
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
    records, such as superseded ones, then match as well as active ones, and so do those that were left since."""
    links: Sequence[Link] | None = None
    """The record has all of these links."""
    states: Sequence[State] = ("active",)
    """One of these. Never `None`: archived records are found only if they are named."""
    left: bool | None = False
    """True if a person has left the message: `True` finds only those, `None` both."""
    data: Mapping[str, str | int | float | bool | None] | None = None
    """Top-level keys of `data` and their required values."""
    matching: Sequence[Condition] | None = None
    """Conditions on values anywhere in `data`, on any field with any comparison, and groups of such conditions."""
    ids: Sequence[str] | None = None
    """Records with these ids."""
    source_keys: Sequence[str] | None = None
    """Records with these source keys."""


ALTERNATIVES: Final = ("roles", "kinds", "tiers", "tags_any", "keywords", "states", "ids", "source_keys")
"""Lists of which one must hold: an empty one matches nothing."""
CONJUNCTIONS: Final = ("tags_all", "links", "data", "matching")
"""Lists of which all must hold: an empty one is no condition."""
EQUAL_FIELDS: Final = tuple(each.name for each in fields(Where) if each.name in NAME_FIELDS)
"""Fields of a `Where` that a record must have with the same value, if they are given."""
EVERYTHING: Final = Where()
"""No condition: the default of every read."""
ANY_STATE: Final = Where(states=STATES, left=None)
"""Archived and compacted records, too, and those that were left: all that is stored."""
