"""What all middleware for agents does: it shows the model a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_langchain.turns import with_memories

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest


def filled(request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
    """The request with a block behind the instructions."""
    return request.override(system_message=with_memories(request.system_message, block)) if block else request
