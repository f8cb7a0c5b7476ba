"""The people whom an owner trusts, as the records say: they may have more than a share of a block.

Invariant: trust is a fact of the records or a setting, never a guess from texts. The owner, the owner's agents and the
authors that the caller names are trusted with everything; an author whom the owner has answered, which is that a record
of the owner comes later in a session of a hit of that author, has no share either, but a copy of the question by them
is one. In a shared space anybody may take any name and any role, so there nobody is known.

The owner speaks under the name of the binding, or under that of the one person who speaks alone with the assistant. If
several people do that, the memory serves them all, and none of them is the owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol, TypeGuard

from memory_core.agent_memory import Searching
from memory_core.models import Hit, MemoryRecord, Role, Scope
from memory_core.recall.authors import is_shared
from memory_core.recall.values import RecallOptions
from memory_core.values.attributes import has
from memory_core.where.conditions import AnyOf, FieldCondition
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
    name: str | None = None
    """The author of what the owner says to the assistant, if that is not the user of the binding."""
    answered: frozenset[str | None] = frozenset()

    def is_own(self, record: MemoryRecord) -> bool:
        """True if a record is of the owner, of the owner's agents, of nobody, or of one whom the options trust."""
        trusted = self.options.trusted
        if record.author is None or record.author in trusted or (record.role is not None and record.role in trusted):
            return True
        if self.owner is None:
            return False
        is_agents = record.app == self.owner.app and (record.role in _OF_AGENTS or record.author == record.agent)
        return is_agents or self.is_owners(record)

    def is_owners(self, record: MemoryRecord) -> bool:
        """True if the owner said it."""
        if self.owner is None:
            return False
        return record.author == self.owner.user or (record.role == "user" and record.author == self.name)

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
    speaks = AnyOf(
        (
            FieldCondition("author", "eq", trust.owner.user),
            FieldCondition("role", "in", ("user", "assistant")),
        )
    )
    where = Where(matching=(FieldCondition("session", "in", sessions), speaks))
    turns = (await handle.list(where=where, order="newest", limit=_MOST_TURNS)).records
    trust = replace(trust, name=_alone_with_assistant([*turns, *others], trust.owner.user))
    last: dict[str | None, datetime] = {}
    for each in filter(trust.is_owners, turns):
        last.setdefault(each.session, each.occurred_at)
    answered = (each.author for each in others if each.session in last and each.occurred_at < last[each.session])
    return replace(trust, answered=frozenset(answered))


def _alone_with_assistant(turns: Sequence[MemoryRecord], user: str | None) -> str | None:
    """The one author of role `user` in every session in which an assistant serves a single person; `None` if there are
    several, or if the owner is the assistant."""
    people, served = defaultdict[str | None, set[str | None]](set), set[str | None]()
    for each in turns:
        if each.role == "user":
            people[each.session].add(each.author)
        elif each.role == "assistant" and each.author != user:
            served.add(each.session)
    alone = (people[session] for session in served if len(people[session]) == 1)
    names = {name for each in alone for name in each} - {user, None}
    return names.pop() if len(names) == 1 else None
