"""The kinds of records that the library writes itself and treats in a way of their own; others may have any name."""

from __future__ import annotations

from typing import Final

MESSAGE_KIND: Final = "message"
"""What one speaker said in a conversation."""
USER_QUERY: Final = "user_query"
"""What a user said that has no answer yet."""
CONVERSATION_TURN: Final = "conversation_turn"
"""What a user said, and the answer, in one record."""
STEP: Final = "step"
"""A step of a task, in a `MemoryBank`."""


def is_message(kind: str) -> bool:
    """Whether a record was said in its session's conversation; a fact was not, no matter who stated it and where."""
    return kind == MESSAGE_KIND
