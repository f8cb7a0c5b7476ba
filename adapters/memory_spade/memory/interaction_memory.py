"""Notes of an agent by conversation, as spade_llm's document describes them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from memory_core.adapting import call_in_thread
from memory_spade import files
from memory_spade.memory.exceptions import MemoryStorageError, reported_as
from memory_spade.memory.place import IN_MEMORY, directory


class Notes(Protocol):
    """A storage for notes."""

    def get(self, conversation_id: str, last: int | None = None) -> list[str]:
        """Return the notes of a conversation, oldest first; with `last` (at least 1), only this many of the newest."""
        ...

    def conversations(self) -> list[str]:
        """Return the conversations that have notes, in the order of their first note."""
        ...

    def add(self, conversation_id: str, information: str, now: datetime) -> None:
        """Append a note; return when it is stored durably."""
        ...

    def clear(self, conversation_id: str) -> bool:
        """Delete the notes of a conversation; return whether there were any."""
        ...


class AgentInteractionMemory:
    """The notes of an agent, by conversation.

    Every method is synchronous and sees the changes of other processes; the two methods that begin with `a` run in a
    thread, for use on event loops.

    Args:
        agent_id: The agent, usually a JID; resource and case are ignored.
        memory_path: A directory for `{agent}_interactions.json`, or `":memory:"`. The default is the directory in the
            environment variable SPADE_LLM_MEMORY_PATH, else `spade_llm/data/agent_memory`.
    """

    def __init__(self, agent_id: str, memory_path: str | os.PathLike[str] | None = None) -> None:
        self.agent_id = agent_id
        folder = directory(memory_path)
        self._notes: Notes = _NotesInProcess()
        if folder != IN_MEMORY:
            self._notes = files.NotesFile(Path(folder).expanduser(), agent_id)

    @classmethod
    def over(cls, agent_id: str, notes: Notes) -> Self:
        """Create the same interface for notes in another storage."""
        memory = cls(agent_id, IN_MEMORY)
        memory._notes = notes
        return memory

    def add_information(self, conversation_id: str, information: str) -> str:
        """Add a note to a conversation; return a confirmation once it is on disk.

        Raises:
            MemoryStorageError: An argument is empty or not a string, or the note cannot be written.
        """
        _check_text("conversation_id", conversation_id)
        _check_text("information", information)
        with reported_as(MemoryStorageError):
            self._notes.add(conversation_id, information, datetime.now(UTC))
        return f"Remembered information about this interaction: {information}"

    def get_information(self, conversation_id: str) -> list[str]:
        """Return the notes of a conversation, oldest first."""
        with reported_as(MemoryStorageError):
            return self._notes.get(conversation_id)

    def get_context_summary(self, conversation_id: str) -> str | None:
        """Return the notes of a conversation as one text, or `None` without notes."""
        notes = self.get_information(conversation_id)
        return "\n".join(["Previous interactions:", *(f"- {note}" for note in notes)]) if notes else None

    def clear_conversation(self, conversation_id: str) -> bool:
        """Delete all notes of a conversation; return whether there were any."""
        with reported_as(MemoryStorageError):
            return self._notes.clear(conversation_id)

    def get_all_conversations(self) -> list[str]:
        """Return the conversations that have notes."""
        with reported_as(MemoryStorageError):
            return self._notes.conversations()

    async def aadd_information(self, conversation_id: str, information: str) -> str:
        """`add_information` without blocking the event loop."""
        add = partial(self.add_information, conversation_id, information)
        with reported_as(MemoryStorageError):
            return await call_in_thread("adding a note", add)

    async def aget_information(self, conversation_id: str, *, last: int | None = None) -> list[str]:
        """`get_information` without blocking the event loop; with `last`, only this many of the newest notes."""
        with reported_as(MemoryStorageError):
            return await call_in_thread("reading notes", partial(self._notes.get, conversation_id, last))


class _NotesInProcess:
    def __init__(self) -> None:
        self._notes: dict[str, list[str]] = {}

    def get(self, conversation_id: str, last: int | None = None) -> list[str]:
        return self._notes.get(conversation_id, [])[-(last or 0) :]

    def conversations(self) -> list[str]:
        return list(self._notes)

    def add(self, conversation_id: str, information: str, now: datetime) -> None:  # noqa: ARG002
        self._notes.setdefault(conversation_id, []).append(information)

    def clear(self, conversation_id: str) -> bool:
        return self._notes.pop(conversation_id, None) is not None


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise MemoryStorageError(f"{name} must be a non-empty string, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise MemoryStorageError(f"{name} {value!r:.80} cannot be written as UTF-8: {error.reason}") from error
