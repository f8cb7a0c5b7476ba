"""Recall for prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

from memory_core import MemoryRecord, Recalled, RecallOptions
from memory_core.adapting import recall_with
from memory_langchain.scope import CallScope

SearchMode = Literal["vector", "hybrid", "lexical"]
"""Ranking modes of the store and the vector store."""

DEFAULT_RECALL: Final = RecallOptions()
"""Default recall options."""
NOTHING: Final = Recalled("", (), ())


async def recall(
    scope: CallScope, query: str, options: RecallOptions, *, k: int, is_shown: Callable[[MemoryRecord], bool]
) -> Recalled:
    """Recall memories of the user for a question as a block, without the records that the prompt already shows.

    Args:
        scope: The owner of the memories.
        query: The question.
        options: Recall options.
        k: Most memories; 0 recalls nothing. A `limit` in the options takes precedence.
        is_shown: Whether the prompt shows a record.
    """
    if k == 0 or not query.strip():
        return NOTHING
    limit = k if options.limit is None else options.limit

    def without(record: MemoryRecord) -> bool:
        return is_shown(record) or options.without(record)

    return await recall_with(scope.memory, query, replace(options, limit=limit, without=without))
