"""Recall for prompts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from memory_core import MemoryRecord, Recalled, RecallOptions
from memory_core.adapting import NOTHING, Asked, block_of_turn, ids_of_shown, those
from memory_langchain.messages import message_id, searchable_text, spoken_text
from memory_langchain.scope import CallScope

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

SearchMode = Literal["vector", "hybrid", "lexical"]
"""Ranking modes of the store and the vector store."""


async def recall_for(
    scope: CallScope,
    messages: Sequence[BaseMessage],
    options: RecallOptions,
    *,
    k: int,
    question: BaseMessage | None = None,
    stored: Sequence[str] | None = None,
) -> Recalled:
    """What a turn recalls for a question, by default the last one of these messages, without what the messages show.

    Args:
        scope: Whose memories, shared spaces included.
        messages: What the prompt shows.
        options: Recall options.
        k: Most memories, if the options do not say it; 0 recalls nothing.
        question: One of the messages.
        stored: The ids of the records of these messages; `None` to look for them.
    """
    ids = {message.id for message in messages if message.id is not None}

    @cache
    def texts() -> frozenset[str]:
        """What the messages say, with and without files; asked for seldom, and a long turn asks the model often."""
        return frozenset(form(message) for message in messages for form in (searchable_text, spoken_text))

    def is_shown(record: MemoryRecord) -> bool:
        if record.session != scope.session:
            return False
        return message_id(record) in ids or record.text in texts()  # a client may resend it under other ids

    if k == 0:
        return NOTHING
    if stored is None and scope.session is not None:
        stored = await ids_of_shown(scope.memory, scope.session, len(messages), is_shown)
    said = [message for message in messages if message.type == "human"]
    last = question or (said[-1] if said else None)
    before = [str(message.text) for message in (said[: said.index(last)] if last in said else said)]
    asked = Asked(str(last.text) if last else "", before, is_shown, those("id", stored or ()))
    return await block_of_turn(scope.reach, asked, options, most=k)
