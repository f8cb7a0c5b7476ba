"""A look at a source: how many memories each owner would get, since when, and said by whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from rich.console import RenderableType

from memory_core.app import showing
from memory_core.app.mapping import PERSON_KEYS, Ownership
from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Scope
from memory_core.records.draft_to_record import check_draft
from memory_core.transfer.foreign_values import name_of
from memory_core.transfer.formats import Found, Refused

MOST_OWNERS: Final = 20
"""Owners in the table; the rest are counted."""
_NAMES_KEPT: Final = 1_000
"""Names of people kept for each field."""


@dataclass(slots=True)
class _Share:
    """The memories that one owner would get."""

    memories: int = 0
    sessions: set[str] = field(default_factory=set[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    speakers: Counter[str] = field(default_factory=Counter[str])
    """Roles; authors of memories without a role."""
    first: datetime | None = None
    last: datetime | None = None
    undated: int = 0
    """Memories without a time, which would be dated now."""
    sample: str = ""

    def add(self, draft: Draft) -> None:
        self.memories += 1
        self.kinds[draft.kind] += 1
        if draft.session is not None:
            self.sessions.add(draft.session)
        if speaker := draft.role or draft.author:
            self.speakers[speaker] += 1
        if (at := draft.occurred_at) is not None:
            self.first, self.last = min(self.first or at, at), max(self.last or at, at)
        self.undated += draft.occurred_at is None
        self.sample = self.sample or draft.text


@dataclass(slots=True)
class Look:
    """The memories that a source would become."""

    shares: defaultdict[Scope, _Share] = field(default_factory=lambda: defaultdict[Scope, _Share](_Share))
    people: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set[str]))
    """By field, the names in it of what would become the default owner's."""

    of_somebody: int = 0
    """Memories that may be anybody's."""

    def insist_on_one_person(self, default: Scope) -> None:
        """Refuse to make one owner of several people.

        Raises:
            InvalidInputError: A field that usually names people names several of them.
        """
        for key, found in self.people.items():
            if len(found) > 1:
                some = ", ".join(sorted(found)[:3]) + (", ..." if len(found) > 3 else "")
                raise InvalidInputError(
                    f"the field {key!r} names {len(found)} people ({some}), who would all become "
                    f"{default.app}/{default.user}; give each an owner with --user-from {key}, or make everything "
                    "--user's with --one-user"
                )

    def insist_on_an_owner(self) -> None:
        """Refuse to guess whose memories are that may be anybody's.

        Raises:
            InvalidInputError: The source does not say it.
        """
        if self.of_somebody:
            raise InvalidInputError(
                f"the source does not say whose its {self.of_somebody} memories are; if all of them are --user's, "
                "say so with --one-user"
            )

    def table(self) -> RenderableType:
        """An owner a line, with a sample."""
        head = ("owner", "memories", "sessions", "from", "to", "undated", "kinds", "by", "such as")
        rows = [
            (
                f"{owner.app}/{owner.user}",
                share.memories,
                len(share.sessions),
                share.first,
                share.last,
                share.undated or "",
                _counted(share.kinds),
                _counted(share.speakers),
                showing.line(share.sample, 60),
            )
            for owner, share in list(self.shares.items())[:MOST_OWNERS]
        ]
        more = len(self.shares) - len(rows)
        return showing.table(head, [*rows, *([(f"and {more} more", *[""] * 8)] if more else [])])

    def to_dict(self) -> list[dict[str, Any]]:
        """The shares as JSON."""
        return [
            {
                "app": owner.app,
                "user": owner.user,
                "memories": share.memories,
                "sessions": len(share.sessions),
                "first": share.first and share.first.isoformat(),
                "last": share.last and share.last.isoformat(),
                "undated": share.undated,
                "kinds": dict(share.kinds),
                "sample": share.sample,
            }
            for owner, share in self.shares.items()
        ]


def _counted(names: Mapping[str, int]) -> str:
    ordered = sorted(names.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count}" for name, count in ordered[:3]) + (", ..." if len(ordered) > 3 else "")


async def look_at(found: AsyncIterator[Found | Refused], ownership: Ownership) -> Look:
    """Read a source to its end; what it refuses is reported when it is imported."""
    look = Look()
    async for item in found:
        if isinstance(item, Refused):
            continue
        try:
            owner, draft = ownership.of(item)
            check_draft(draft)
        except InvalidInputError:
            continue
        look.shares[owner].add(draft)
        look.of_somebody += item.is_of_somebody
        if owner == ownership.default and item.user is None:
            fields = {**item.given, **item.draft.data}
            for key in (*PERSON_KEYS, *item.people):
                name = name_of(fields.get(key))
                if name is not None and len(look.people[key]) < _NAMES_KEPT:
                    look.people[key].add(name)
    return look
