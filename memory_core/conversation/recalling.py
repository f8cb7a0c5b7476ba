"""The block of a turn: what is recalled before the model is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal

from memory_core.agent_memory import Searching
from memory_core.handle import BoundMemory, known
from memory_core.models import MemoryRecord
from memory_core.profile import with_profile
from memory_core.recall.asked import Asked, shows_nothing_yet
from memory_core.recall.recalling import recall_for
from memory_core.recall.values import Recalled, RecallOptions
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.values.frame import without_blocks
from memory_core.values.limits import MAX_ALTERNATIVES
from memory_core.values.query_text import cut_query
from memory_core.where.conditions import AllOf, Condition, FieldCondition, NoneOf
from memory_core.where.where import Where

NOTHING: Final = Recalled("", (), ())
"""The result if nothing is to be recalled."""
_FEW: Final = 100
"""Messages that a prompt shows which are looked up one by one; of more, it is asked what is stored besides."""
_BEFORE: Final = 3
"""Messages before a question that may say what it is about; the question itself may be among them."""


def one_of(field: Literal["id", "source_key"], values: Sequence[str]) -> FieldCondition | None:
    """The condition that a record is one of these; of more than a search takes, the last ones."""
    return FieldCondition(field, "in", tuple(values[-MAX_ALTERNATIVES:])) if values else None


async def condition_of_shown(memory: BoundMemory, session: str, keys: Sequence[str]) -> Condition | None:
    """The condition that a record is one of the messages with an id that a prompt shows of a conversation.

    A long prompt mostly shows all that is stored of its conversation; then what it does not show is named instead.

    Args:
        memory: The conversation is in its own memory.
        session: The conversation.
        keys: Of the messages that the prompt shows, in order.
    """
    if len(keys) <= _FEW or memory.spaces:  # a space may have a session of the same name
        return one_of("source_key", keys)
    shown = frozenset(keys)
    others = [one.key for one in await known(memory.own.bind(session=session)) if one.key not in shown]
    if len(others) >= min(len(keys), MAX_ALTERNATIVES):
        return one_of("source_key", keys)
    not_shown = FieldCondition("source_key", "in", (*others, None))
    return AllOf((FieldCondition("session", "eq", session), NoneOf((not_shown,))))


async def ids_of_shown(
    memory: BoundMemory, session: str, messages: int, shows: Callable[[MemoryRecord], bool]
) -> list[str]:
    """The ids of the records that a prompt shows, oldest first; they are looked for among the last of a conversation.

    Args:
        memory: The conversation is in its own memory.
        session: The conversation.
        messages: The number of messages that the prompt shows.
        shows: True if the prompt shows a record of this conversation.
    """
    where, limit = Where(session=session, kinds=(MESSAGE_KIND,)), min(2 * messages, MAX_ALTERNATIVES)
    page = await memory.own.list(where=where, order="newest", limit=limit)
    return [record.id for record in reversed(page.records) if shows(record)]


async def block_in_session(
    memory: BoundMemory,
    question: str,
    session: str | None,
    options: RecallOptions,
    *,
    explain: bool = False,
    counts_reads: bool = True,
    is_shown: Callable[[MemoryRecord], bool] = shows_nothing_yet,
) -> Recalled:
    """Recall for a question of a stored conversation: its messages are left out, and the last say what it is about.

    Args:
        memory: The memory that is recalled from; the conversation is in its own memory.
        session: The conversation; `None` for a question by itself.
        counts_reads: See `Asked`.
        is_shown: True if the conversation shows a record of another one.
    """
    if session is None:
        return await block_for(memory, Asked(question, counts_reads=counts_reads), options, explain=explain)

    def shows(record: MemoryRecord) -> bool:
        return (record.session == session and memory.label_of(record) is None) or is_shown(record)

    page = await memory.own.list(where=Where(session=session, roles=["user"]), limit=_BEFORE)
    before = [record.text for record in reversed(page.records)]
    # a space may have a session of the same name
    shown = None if memory.spaces else FieldCondition("session", "eq", session)
    asked = Asked(question, before, shows, shown, counts_reads=counts_reads)
    return await block_for(memory, asked, options, explain=explain)


async def block_of_turn(
    memory: Searching, asked: Asked, options: RecallOptions, *, owner: str | None = None
) -> Recalled:
    """The block that is pushed into the prompt of a turn: the profile, and the memories that are relevant to the
    question; nothing if the options allow no memory.

    Args:
        owner: The name under which the owner of the memory speaks, if it is not the user of the memory.
    """
    if options.limit == 0:
        return NOTHING
    found = await block_for(memory, asked, options)
    return replace(found, text=await with_profile(memory, found.text, owner=owner))


async def block_for(memory: Searching, asked: Asked, options: RecallOptions, *, explain: bool = False) -> Recalled:
    """Recall for a question, without what the prompt shows; nothing for a blank one. Too long ones are cut."""
    text = without_blocks(asked.text.encode(errors="replace").decode())  # a model's may have halves of characters
    if not text.strip():
        return NOTHING
    before = [
        without_blocks(each) if isinstance(each, str) else replace(each, text=without_blocks(each.text))
        for each in asked.before
    ]
    return await recall_for(memory, replace(asked, text=cut_query(text), before=before), options, explain=explain)
