"""The kinds of records that the library writes itself and treats in a way of their own; others may have any name."""

from __future__ import annotations

from typing import Final

MESSAGE_KIND: Final = "message"
"""The words that one speaker said in a conversation."""
USER_QUERY: Final = "user_query"
"""The words of a user that have no answer yet."""
CONVERSATION_TURN: Final = "conversation_turn"
"""The words of a user and the answer, in one record."""
STEP: Final = "step"
"""A step of a task, in a `MemoryBank`."""


def is_message(kind: str) -> bool:
    """True if a record was said in its session's conversation; a fact was not, no matter who stated it and where."""
    return kind == MESSAGE_KIND
