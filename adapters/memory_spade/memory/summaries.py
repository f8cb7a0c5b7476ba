"""Long-term memories as a text for a system message, in spade_llm's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

_TITLES: Final = {
    "fact": "Facts I remember",
    "pattern": "Patterns I remember",
    "preference": "Preferences I remember",
    "capability": "Capabilities I remember",
}


class Entry(Protocol):
    """The fields of a `MemoryEntry` that are shown."""

    category: str
    content: str


def formatted(memories: Sequence[Entry]) -> str:
    """Group memories by category, one line each; an empty text without memories."""

    def lines() -> Iterator[str]:
        for category, title in _TITLES.items():
            of_category = [f"- {memory.content}" for memory in memories if memory.category == category]
            yield from [f"{title}:", *of_category] if of_category else ()

    return "\n".join(lines())


def summary(memories: Sequence[Entry]) -> str | None:
    """List memories, one line each; `None` without memories."""
    return "\n".join(["My memories:", *(f"- {memory.content}" for memory in memories)]) if memories else None
