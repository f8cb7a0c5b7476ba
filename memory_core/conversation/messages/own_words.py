"""Keep out what this memory itself has written: its blocks, and the answers of its tools.

Invariant: what is stored as a message is what somebody said. So every door through which messages come passes them
through here: `BoundMemory.remember` and `remember_drafts` (all adapters), and imports. Blocks have one frame
(`memory_core.values.frame`), and a message that is nothing else is no message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from memory_core.models import Draft
from memory_core.values.frame import without_blocks

OWN_TOOLS: Final = frozenset(
    {
        "forget_memory",
        "list_memories",
        "memory_delete",
        "memory_forget",
        "memory_history",
        "memory_list",
        "memory_pin",
        "memory_recall",
        "memory_remember",
        "memory_search",
        "memory_statistics",
        "memory_store",
        "memory_store_many",
        "memory_store_shared",
        "memory_supersede",
        "memory_update",
        "remember_interaction_info",
        "search_memories",
        "search_past_conversations",
        "store_important_information",
        "store_memory",
        "update_memory",
    }
)
"""The names of all tools that this memory offers, through MCP and through frameworks; a test compares them."""
_OF_A_SERVER: Final = "__"
"""Stands in many clients between the name of an MCP server and that of its tool: `mcp__memory__memory_search`."""


def is_own_answer(role: object, tool: object) -> bool:
    """True if a message is the answer of one of our tools.

    Args:
        role: Of the message.
        tool: The name of the tool that the message says it is from, perhaps after that of its server.
    """
    return role == "tool" and isinstance(tool, str) and tool.rpartition(_OF_A_SERVER)[2] in OWN_TOOLS


def in_own_words(draft: Draft) -> Draft | None:
    """A message without what this memory has written into it; `None` if nothing else is in it."""
    if not draft.text.strip():  # a framework's copy of what has no words
        return draft
    if is_own_answer(draft.role, draft.author):
        return None
    text = without_blocks(draft.text)
    if text == draft.text:
        return draft
    return replace(draft, text=text) if text else None


def all_in_own_words(drafts: Iterable[Draft]) -> list[Draft]:
    """Messages in order, without what this memory has written."""
    return [own for draft in drafts if (own := in_own_words(draft)) is not None]


def names_of_calls(calls: object) -> dict[str, str]:
    """The names of the tools that a message of a chat API calls, by the ids of the calls, which the answers repeat.

    Args:
        calls: As in the API: `{"id": ..., "function": {"name": ...}}` each, or only the inner mapping with an id.
    """
    names: dict[str, str] = {}
    for call in cast("Sequence[object]", calls) if isinstance(calls, list | tuple) else ():
        if isinstance(call, Mapping):
            outer = cast("Mapping[str, object]", call)
            function = outer.get("function")
            inner = cast("Mapping[str, object]", function) if isinstance(function, Mapping) else outer
            id_, name = outer.get("id"), inner.get("name")
            if isinstance(id_, str) and isinstance(name, str):
                names[id_] = name
    return names
