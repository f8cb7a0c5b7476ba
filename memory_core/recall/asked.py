"""The purpose of a recall: the question, and what its caller knows about the prompt that the block goes into.

An application sets `RecallOptions`; what is here is known to the module that asks, and is never an option of a user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from memory_core.conversation.messages.message_to_draft import Message
from memory_core.models import MemoryRecord
from memory_core.where.conditions import Condition, FieldCondition, NoneOf
from memory_core.where.where import Where


def shows_nothing_yet(record: MemoryRecord) -> bool:  # noqa: ARG001  (called with each record)
    """A prompt that shows no memories yet."""
    return False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and its prompt."""

    text: str
    """The question, or the words of a tool; blank without any, as for an image."""
    before: Sequence[str | Message] = ()
    """The messages before the question in the same conversation, oldest first; a bare text is the person's. The
    question itself may be the last."""
    shows: Callable[[MemoryRecord], bool] = shows_nothing_yet
    """True if the prompt shows a record already."""
    shown: Condition | None = None
    """A condition that only such records satisfy, which a store looks up: see `condition_of_shown`. If they may crowd
    out the others, the search leaves them out itself, so that a recall costs no more in a long conversation than in a
    short one."""
    shows_query: bool = True
    """True if the prompt shows the text, so that a user's message equal to it is left out. `False` for words to search
    for, which may equal a statement; a question equal to them is left out, and questions like them come last, in either
    case."""
    counts_reads: bool = True
    """Count the best memories of the block as read, once a day, so that what is used does not fade."""

    def shows_few(self, most: int) -> bool:
        """True if `shown` names so few records that they crowd out no others."""
        named = self.shown if isinstance(self.shown, FieldCondition) and self.shown.op == "in" else None
        return self.shown is None or (named is not None and len(cast("Sequence[str]", named.value)) <= most)

    def not_shown(self, where: Where) -> Where:
        """The same conditions without what `shown` says; those with a `matching` of their own stay as they are, since
        the number of its conditions is limited."""
        if self.shown is None or where.matching:
            return where
        return replace(where, matching=(NoneOf((self.shown,)),))
