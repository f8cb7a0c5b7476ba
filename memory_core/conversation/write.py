"""A write of messages of one conversation: steps that are done in order, and again if one fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_core.errors import QuotaExceededError
from memory_core.models import Draft
from memory_core.values.printable import one_line

logger = logging.getLogger(__name__)

_MOST_STEPS: Final = 10_000
"""Most steps that are kept for a conversation whose store does not answer; then the oldest are given up."""
_MOST_TOGETHER: Final = 1_000
"""Most messages that wait to be stored together."""

Step = Callable[[], Awaitable[None]]
"""It may be done any number of times: each message has a key, and what was said last of it counts."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A step that stores messages with ids, and those that are said while it waits."""

    show: Callable[[Sequence[Draft]], Awaitable[None]]
    drafts: tuple[Draft, ...]

    def __call__(self) -> Awaitable[None]:
        return self.show(self.drafts)

    def and_then(self, later: Step) -> tuple[Step, ...]:
        """This step and a later one; one step for both if the later one stores messages of the same `Conversation`."""
        if isinstance(later, Shown) and later.show == self.show and len(self.drafts) < _MOST_TOGETHER:
            return (replace(self, drafts=self.drafts + later.drafts),)
        return self, later


@dataclass(frozen=True, slots=True)
class Write:
    """Steps of one conversation, in order."""

    conversation: Hashable
    """The conversation that it belongs to; its writes are done one after the other."""
    name: str
    """The name of the conversation, for logs."""
    steps: tuple[Step, ...]

    def after(self, earlier: Write) -> Write:
        """The earlier steps and then these."""
        *before, last = earlier.steps
        first, *behind = self.steps
        both = last.and_then(first) if isinstance(last, Shown) else (last, first)
        steps = (*before, *both, *behind)
        if len(steps) > _MOST_STEPS:
            logger.error("the oldest messages of session %s are not stored", one_line(self.name))
        return replace(self, steps=steps[-_MOST_STEPS:])

    async def run(self) -> None:
        """Do it; called on the core loop."""
        full: QuotaExceededError | None = None
        for step in self.steps:
            try:
                await step()
            except QuotaExceededError as error:  # a later step may make room
                full = error
        if full is not None:
            raise full
