"""The people whom an owner trusts, as the records say: they may have more than a share of a block.

Invariant: trust is a fact of the records or a setting, never a guess from texts. The owner, the owner's agents and the
authors that the caller names are trusted with everything; an author whom the owner has answered, which is that a record
of the owner comes later in a session of a hit of that author, has no share either, but a copy of the question by them
is one. In a shared space anybody may take any name and any role, so there nobody is known.

The owner speaks under the name of the binding; another name is trusted if the caller says so (`RecallOptions.trusted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol, TypeGuard

from memory_core.agent_memory import Searching
from memory_core.models import Hit, MemoryRecord, Role, Scope
from memory_core.recall.authors import is_shared
from memory_core.recall.values import RecallOptions
from memory_core.values.attributes import has
from memory_core.where.conditions import FieldCondition
from memory_core.where.where import Where

_OF_AGENTS: Final = frozenset[Role](["assistant", "tool"])
"""The roles of what an agent or its tools said."""
_MOST_SESSIONS: Final = 100
_MOST_TURNS: Final = 500
"""Maximum number of turns that are read, newest first; who is known by older ones only is a stranger."""


class _OfOneOwner(Searching, Protocol):
    """A handle of one owner."""

    @property
    def scope(self) -> Scope: ...


def _is_of_one_owner(handle: Searching) -> TypeGuard[_OfOneOwner]:
    return has(handle, "scope") and not (has(handle, "spaces") and bool(getattr(handle, "spaces", None)))


@dataclass(frozen=True, slots=True)
class Trust:
    """The authors who are trusted in one recall."""

    options: RecallOptions
    owner: Scope | None = None
    """`None` if several owners are read."""
    answered: frozenset[str | None] = frozenset()

    def is_own(self, record: MemoryRecord) -> bool:
        """True if a record is of the owner, of the owner's agents, of nobody, or of one whom the options trust."""
        trusted = self.options.trusted
        if record.author is None or record.author in trusted or (record.role is not None and record.role in trusted):
            return True
        if self.owner is None:
            return False
        is_agents = record.app == self.owner.app and (record.role in _OF_AGENTS or record.author == record.agent)
        return is_agents or record.author == self.owner.user

    def is_known(self, record: MemoryRecord) -> bool:
        """True if a record is one of these, or its author one whom the owner has answered."""
        return self.is_own(record) or record.author in self.answered


async def trust_in(handle: Searching, options: RecallOptions, hits: Sequence[Hit]) -> Trust:
    """The authors of some hits who are trusted; one read if there are several, and strangers among them."""
    trust = Trust(options, handle.scope if _is_of_one_owner(handle) else None)
    records = [hit.record for hit in hits]
    if trust.owner is None or not is_shared(records, trust.is_own):
        return trust
    others = [each for each in records if each.session is not None and not trust.is_own(each)]
    sessions = list(dict.fromkeys(each.session for each in others))[:_MOST_SESSIONS]
    said_there = (FieldCondition("session", "in", sessions), FieldCondition("author", "eq", trust.owner.user))
    turns = (await handle.list(where=Where(matching=said_there), order="newest", limit=_MOST_TURNS)).records
    last: dict[str | None, datetime] = {}
    for each in turns:
        last.setdefault(each.session, each.occurred_at)
    answered = (each.author for each in others if each.session in last and each.occurred_at < last[each.session])
    return replace(trust, answered=frozenset(answered))
