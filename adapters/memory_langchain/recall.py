"""What is recalled for a prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

from memory_core import MemoryRecord, Recalled, RecallOptions
from memory_core.adapting import recall_with
from memory_langchain.scope import CallScope

SearchMode = Literal["vector", "hybrid", "lexical"]
"""How stores of items and of documents rank."""

DEFAULT_RECALL: Final = RecallOptions()
"""How memories are recalled unless somebody says otherwise."""
NOTHING: Final = Recalled("", (), ())


async def recall(
    scope: CallScope, query: str, options: RecallOptions, *, k: int, is_shown: Callable[[MemoryRecord], bool]
) -> Recalled:
    """What is remembered of the user for a question, as a block, without what the prompt shows anyway.

    Args:
        scope: Whose memories.
        query: The question.
        options: How to recall.
        k: At most this many memories; 0 recalls nothing. A `limit` of the options goes first.
        is_shown: Whether the prompt shows a record.
    """
    if k == 0 or not query.strip():
        return NOTHING
    limit = k if options.limit is None else options.limit

    def without(record: MemoryRecord) -> bool:
        return is_shown(record) or options.without(record)

    return await recall_with(scope.memory, query, replace(options, limit=limit, without=without))
