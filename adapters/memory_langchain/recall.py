"""Recall for prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from memory_core import PUSHED, MemoryRecord, Recalled, RecallOptions
from memory_core.adapting import NOTHING, Asked, block_for, with_profile
from memory_langchain.messages import message_id, searchable_text, spoken_text
from memory_langchain.scope import CallScope

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

SearchMode = Literal["vector", "hybrid", "lexical"]
"""Ranking modes of the store and the vector store."""

DEFAULT_RECALL: Final = replace(PUSHED, limit=None)
"""Default recall options: what is pushed into a prompt, up to `k` memories."""


async def recall(
    scope: CallScope,
    query: str,
    options: RecallOptions,
    *,
    k: int,
    is_shown: Callable[[MemoryRecord], bool],
    before: Sequence[str] = (),
) -> Recalled:
    """Recall memories of the user for a question as a block, after the profile and without what the prompt shows.

    Args:
        scope: Whose memories, shared spaces included.
        query: The question.
        options: Recall options.
        k: Most memories; 0 recalls nothing. A `limit` in the options takes precedence.
        is_shown: Whether the prompt shows a record.
        before: What the person said before the question, oldest first.
    """
    if k == 0:
        return NOTHING
    limit = k if options.limit is None else options.limit
    found = await block_for(scope.reach, Asked(query, before, is_shown), replace(options, limit=limit))
    return replace(found, text=await with_profile(scope.reach, found.text))


async def recall_for(
    scope: CallScope,
    messages: Sequence[BaseMessage],
    options: RecallOptions,
    *,
    k: int,
    question: BaseMessage | None = None,
) -> Recalled:
    """`recall` for a question, by default the last one of these messages, without what the messages show."""
    ids = {message.id for message in messages if message.id is not None}

    @cache
    def texts() -> frozenset[str]:
        """What the messages say, with and without files; asked for seldom, and a long turn asks the model often."""
        return frozenset(form(message) for message in messages for form in (searchable_text, spoken_text))

    def is_shown(record: MemoryRecord) -> bool:
        if record.session != scope.session:
            return False
        return message_id(record) in ids or record.text in texts()  # a client may resend it under other ids

    said = [message for message in messages if message.type == "human"]
    asked = question or (said[-1] if said else None)
    before = [str(message.text) for message in (said[: said.index(asked)] if asked in said else said)]
    return await recall(scope, str(asked.text) if asked else "", options, k=k, is_shown=is_shown, before=before)
