"""`AgentInteractionMemory` with the words of spade_llm's code."""

from __future__ import annotations

import os
from pathlib import Path

from memory_spade import files
from memory_spade.memory.interaction_memory import AgentInteractionMemory as DocumentedMemory
from memory_spade.memory.paths import directory


class AgentInteractionMemory(DocumentedMemory):
    """The notes of an agent, by conversation, in the file that spade_llm uses."""

    def __init__(self, agent_id: str, memory_path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(agent_id, memory_path)
        self.storage_path = Path(directory(memory_path), f"{files.safe_name(agent_id)}_interactions.json")

    def get_all_interactions(self) -> dict[str, list[dict[str, str]]]:
        """Return the notes of every conversation, oldest first, each as its `content`."""
        conversations = self.get_all_conversations()
        return {each: [{"content": note} for note in self.get_information(each)] for each in conversations}

    def get_context_summary(self, conversation_id: str) -> str | None:
        """Return the notes of a conversation as one text, or `None` without notes."""
        notes = self.get_information(conversation_id)
        return "\n".join(["Previous interaction notes:", *(f"- {note}" for note in notes)]) if notes else None
