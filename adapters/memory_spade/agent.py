"""An agent with a language model and a memory."""

from __future__ import annotations

from memory_spade.llm import LLMAgent
from memory_spade.mixin import MemoryMixin


class MemoryLLMAgent(MemoryMixin, LLMAgent):
    """spade_llm's `LLMAgent` with memory; it takes the arguments of `LLMAgent` and `MemoryMixin`."""
