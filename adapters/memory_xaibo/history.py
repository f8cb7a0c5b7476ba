"""The history of a Xaibo agent's conversation, in the memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from memory_core import Where
from memory_core.adapting import ANY_STATE, MESSAGE_KIND, Deadline, check_count, limits
from memory_xaibo.messages import to_draft, to_message
from memory_xaibo.modules import Config, conversation_of, injects, options
from memory_xaibo.protocols import ConversationHistoryProtocol, LLMMessage, MemoryProtocol

MAX_HISTORY: Final = 100
"""Messages; Xaibo's own default."""


class MemoryConversation(ConversationHistoryProtocol):
    """A conversation that survives a restart, in place of Xaibo's `SimpleConversation`.

    Its messages are those of the session in the agent's memory. Xaibo's orchestrators only read a history: `MemoryLLM`
    stores what they hear and say.

    Args:
        memory: The agent's `CoreMemory`, which names the session.
        config: `max_history`, how many of the last messages the model is shown (100), and `timeout`, how many seconds a
            call may take (30). Then it raises `StoreUnavailableError`.

    Raises:
        InvalidInputError: An option is unknown, or the memory is not a `CoreMemory`.
        ScopeError: The memory names no session.
    """

    @injects("memory")
    def __init__(self, memory: MemoryProtocol, config: Config | None = None) -> None:
        given = options(config, "MemoryConversation", ("max_history", "timeout"))
        self._conversation = conversation_of(memory)
        self._deadline = Deadline(given.get("timeout", limits.EXPLICIT_SECONDS), "a Xaibo agent")
        self._most = check_count("max_history", given.get("max_history", MAX_HISTORY), 1)

    async def get_history(self) -> list[LLMMessage]:
        """The last messages of the conversation, oldest first."""
        place = self._conversation
        shown = Where(session=place.session, kinds=(MESSAGE_KIND,), states=("active", "compacted"))
        page = await self._deadline.read(
            "reading a conversation", lambda: place.handle.own.list(where=shown, order="newest", limit=self._most)
        )
        return [to_message(record) for record in reversed(page.records)]

    async def add_message(self, message: LLMMessage) -> None:
        """Store a message at the end of the conversation."""
        place = self._conversation
        draft = to_draft(message, place.session)
        await self._deadline.write("adding a message", lambda: place.handle.own.add(draft))

    async def clear_history(self) -> None:
        """Delete the messages of the conversation; memories that tools stored during it remain."""
        place = self._conversation
        everything = replace(ANY_STATE, session=place.session, kinds=(MESSAGE_KIND,))
        await self._deadline.write(
            "clearing a conversation", lambda: place.handle.delete_where(everything, forget=False)
        )
