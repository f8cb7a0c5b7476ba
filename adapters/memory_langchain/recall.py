"""Recall for prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from memory_core import MemoryRecord, Recalled, RecallOptions
from memory_core.adapting import NOTHING, Asked, block_of_turn, those
from memory_langchain.history import key_of
from memory_langchain.messages import searchable_text, spoken_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from memory_langchain.scope import CallScope

SearchMode = Literal["vector", "hybrid", "lexical"]
"""Ranking modes of the store and the vector store."""


async def recall_for(scope: CallScope, messages: Sequence[BaseMessage], options: RecallOptions, *, k: int) -> Recalled:
    """What a turn recalls for the last question of these messages, without what the messages show.

    Args:
        scope: Whose memories, shared spaces included.
        messages: What the prompt shows.
        options: Recall options.
        k: Most memories, if the options do not say it; 0 recalls nothing.
    """
    if k == 0:
        return NOTHING
    keys = [key_of(scope, message.id) for message in messages if message.id is not None]
    shown, texts = frozenset(keys), {form(one) for one in messages for form in (searchable_text, spoken_text)}

    def is_shown(record: MemoryRecord) -> bool:
        is_here = record.session == scope.session
        return is_here and (record.source_key in shown or record.text in texts)  # a client may resend it without its id

    asked = [str(message.text) for message in messages if message.type == "human"]
    question = Asked(asked[-1] if asked else "", asked[:-1], is_shown, those("source_key", keys))
    return await block_of_turn(scope.reach, question, options, most=k)
