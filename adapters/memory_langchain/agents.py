"""What all middleware for agents does: it shows the model a block, and goes on without a memory that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memory_core import ClosedError, FingerprintError, InvalidInputError
from memory_langchain.turns import with_memories

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest

OF_THE_APPLICATION: Final = (ClosedError, FingerprintError, InvalidInputError)
"""Errors that end a run, such as an owner that is not named: another run would fail in the same way."""


def filled(request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
    """The request with a block behind the instructions."""
    return request.override(system_message=with_memories(request.system_message, block)) if block else request
