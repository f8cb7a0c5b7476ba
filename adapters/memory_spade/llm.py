"""The part for agents with a language model: tools, recall into the prompt, and an agent that stays awake."""

from __future__ import annotations

try:
    from spade_llm import __version__ as spade_llm_version
    from spade_llm.agent import LLMAgent
    from spade_llm.behaviour import LLMBehaviour
    from spade_llm.context import ContextManager
    from spade_llm.providers.base_provider import BaseLLMProvider
    from spade_llm.tools import LLMTool
except ImportError as error:
    raise ImportError("`MemoryLLMAgent` needs spade_llm: pip install 'memory-core[spade-llm]'") from error

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from slixmpp import JID

from memory_core import (
    FORGET_MEMORY,
    LIST_MEMORIES,
    REMEMBER_INTERACTION_INFO,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    UPDATE_MEMORY,
    Arguments,
    BoundMemory,
    MemoryCoreError,
    Tool,
    ToolContext,
    Where,
)
from memory_spade.conversation import Turn, enter, running
from memory_spade.memory import AgentInteractionMemory
from memory_spade.mixin import MemoryMixin
from memory_spade.prompt import MAX_NOTES, memory_block

if not spade_llm_version.startswith("0.3."):
    # On a Python it does not support, pip quietly installs 0.2, whose agents are put together differently.
    raise ImportError(
        f"`MemoryLLMAgent` needs spade_llm 0.3, which runs on Python 3.11 and 3.12, and found {spade_llm_version}: "
        "pip install 'memory-core[spade-llm]' on one of them"
    )

logger = logging.getLogger(__name__)

MAX_QUERY_CHARS: Final = 2_000
"""So much of a message is searched for."""


Run = Callable[[Turn, Mapping[str, object]], Awaitable[str]]
"""Carries a tool call out, in a turn, with the arguments of the model."""


def equip(agent: MemoryMixin, *, editing: bool) -> None:
    """Give an agent with a model its memory tools and recall."""
    llm: Any = agent  # an LLMAgent behind the mixin, which cannot say so without importing it
    attach(agent, llm.llm_behaviour)
    home = agent.home
    if home.notes_file is not None:
        offer(agent, MemoryTool(REMEMBER_INTERACTION_INFO, agent, _in_file(home.notes_file)))
    elif home.has_interactions:
        offer(
            agent, MemoryTool(REMEMBER_INTERACTION_INFO, agent, _in_store(REMEMBER_INTERACTION_INFO, home.interactions))
        )
    if home.has_base:
        changing = (UPDATE_MEMORY, FORGET_MEMORY) if editing else ()
        for tool in (STORE_MEMORY, SEARCH_MEMORIES, LIST_MEMORIES, *changing):
            offer(agent, MemoryTool(tool, agent, _in_store(tool, home.base)))


def attach(agent: MemoryMixin, behaviour: object) -> None:
    """Let a behaviour recall before it calls its model, if it has one."""
    if not isinstance(behaviour, LLMBehaviour):
        return
    if not isinstance(behaviour.provider, RecallingProvider):
        behaviour.provider = RecallingProvider(behaviour.provider, agent)
    # spade_llm drops a message whose id it has seen, and that id is the address of an object: after some 1,500
    # messages addresses come again, and the agent ignores more and more of what it is told.
    if hasattr(behaviour, "_processed_messages"):
        behaviour._processed_messages = _Forgetful()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def offer(agent: MemoryMixin, tool: LLMTool) -> None:
    """Register a tool once with the agent and once with its behaviour, which may or may not share one list."""
    llm: Any = agent
    tools: list[LLMTool] = llm.tools
    if any(known.name == tool.name for known in tools):
        logger.warning("%s has a tool named %s already; the other one is left out", agent.address, tool.name)
        return
    bind = getattr(tool, "set_agent", None)  # a tool that asks people does so through its agent
    if callable(bind):
        bind(agent)
    tools.append(tool)
    if llm.llm_behaviour.tools is not tools:
        llm.llm_behaviour.register_tool(tool)


class MemoryTool(LLMTool):
    """One of the core's tools as spade_llm wants it.

    spade_llm calls `set_conversation_id` in the task that answers a message, just before the model is called. It is
    kept as that task's turn and not on the tool, which other tasks and behaviours use at the same time.
    """

    def __init__(self, tool: Tool, agent: MemoryMixin, run: Run) -> None:
        self._agent = agent
        self._run = run
        super().__init__(tool.name, tool.description, dict(tool.parameters), self._call)

    def set_conversation_id(self, conversation_id: str) -> None:
        """Called by `LLMBehaviour` for every message."""
        context: object = getattr(self._agent, "context", None)
        enter(self._agent.turn(conversation_id, last_sender(context, conversation_id)))

    async def _call(self, **arguments: object) -> str:
        turn = running(self._agent.address)
        if turn is None:
            return f"{self.name} failed: no conversation is running, so it is open whose memory this is"
        try:
            return await self._run(turn, arguments)
        except MemoryCoreError as error:
            return f"{self.name} failed: {error}"


def _in_store(tool: Tool, memory_of: Callable[[str | None], BoundMemory]) -> Run:
    async def run(turn: Turn, arguments: Mapping[str, object]) -> str:
        context = ToolContext(memory=memory_of(turn.peer), agent=turn.agent, session=turn.session, author=turn.peer)
        return (await tool(context, arguments)).text

    return run


def _in_file(notes: AgentInteractionMemory) -> Run:
    async def run(turn: Turn, arguments: Mapping[str, object]) -> str:
        return await notes.aadd_information(turn.session, Arguments(arguments).text("information"))

    return run


class RecallingProvider(BaseLLMProvider):
    """A provider that shows its model what the agent remembers; everything else is the provider it wraps."""

    def __init__(self, provider: BaseLLMProvider, agent: MemoryMixin) -> None:
        self.provider = provider
        self._agent = agent

    def __getattr__(self, name: str) -> object:
        if name == "provider":  # asked for on a copy that is not filled in yet
            raise AttributeError(name)
        return getattr(self.provider, name)

    async def get_llm_response(
        self,
        context: ContextManager,
        tools: list[LLMTool] | None = None,
        conversation_id: str | None = None,
        output_schema: object | None = None,
    ) -> dict[str, Any]:
        """See `BaseLLMProvider`: recall, then ask the wrapped provider."""
        if conversation_id is not None:
            turn = self._turn(context, tools, conversation_id)
            block = await recall(self._agent, turn, last_said(context, conversation_id))
            view: Any = Reminded(context, conversation_id, block)  # stands in for a ContextManager
            context = view
        return await self.provider.get_llm_response(context, tools, conversation_id, output_schema)

    def _turn(self, context: ContextManager, tools: list[LLMTool] | None, conversation_id: str) -> Turn:
        turn = running(self._agent.address)
        entered = any(isinstance(tool, MemoryTool) for tool in tools or ())
        if not entered or turn is None or turn.conversation_id != conversation_id:
            turn = self._agent.turn(conversation_id, last_sender(context, conversation_id))
            enter(turn)
        return turn


class Reminded:
    """A conversation's context whose prompt also says what is remembered; the context itself is not changed."""

    def __init__(self, context: ContextManager, conversation_id: str, block: str) -> None:
        self._context = context
        self._conversation_id = conversation_id
        self._block = block

    def __getattr__(self, name: str) -> object:
        return getattr(self._context, name)

    def get_prompt(self, conversation_id: str | None = None) -> list[dict[str, Any]]:
        """See `ContextManager`: what is remembered ends the first system message, or becomes it."""
        prompt: list[Any] = list(self._context.get_prompt(conversation_id or self._conversation_id))
        if not self._block:
            return prompt
        if prompt and prompt[0]["role"] == "system":
            return [{**prompt[0], "content": f"{prompt[0]['content']}\n\n{self._block}"}, *prompt[1:]]
        return [{"role": "system", "content": self._block}, *prompt]

    def get_tracing_metadata(self, conversation_id: str | None = None) -> dict[str, Any]:
        """See `ContextManager`, of this conversation rather than of the last one anybody wrote in."""
        return self._context.get_tracing_metadata(conversation_id or self._conversation_id)


async def recall(agent: MemoryMixin, turn: Turn, said: str) -> str:
    """The block for the prompt of a message; empty, and logged, when memory cannot be read.

    The answer to a message does not wait for a memory that is out of order.
    """
    if not agent.inject_memories:
        return ""
    if said not in turn.recalled:
        try:
            turn.recalled[said] = await _recall(agent, turn, said)
        except MemoryCoreError:
            logger.exception("%s answers without its memory", agent.address)
            return ""
    return turn.recalled[said]


async def _recall(agent: MemoryMixin, turn: Turn, said: str) -> str:
    notes, shown = await _notes(agent, turn)
    memories: list[str] = []
    if agent.home.has_base:
        hits = await agent.home.base(turn.peer).search(said[:MAX_QUERY_CHARS], limit=agent.inject_memories)
        memories = [hit.record.text for hit in hits if hit.record.id not in shown]
    return memory_block(notes, memories)


async def _notes(agent: MemoryMixin, turn: Turn) -> tuple[list[str], set[str]]:
    """The latest notes of the conversation, oldest first, and the ids of those that are records."""
    if agent.home.notes_file is not None:
        return await agent.home.notes_file.aget_information(turn.session), set()
    if not agent.home.has_interactions:
        return [], set()
    where = Where(kinds=("note",), session=turn.session, agent=turn.agent)
    page = await agent.home.interactions(turn.peer).list(where=where, limit=MAX_NOTES)
    return [record.text for record in reversed(page.records)], {record.id for record in page.records}


def last_said(context: ContextManager, conversation_id: str) -> str:
    """The last message of the user in a conversation."""
    return str((_last_of_user(context, conversation_id) or {}).get("content") or "")


def last_sender(context: object, conversation_id: str) -> str | None:
    """The bare JID of whoever wrote the last message in a conversation, if the context says so."""
    if not isinstance(context, ContextManager):
        return None
    sender = (_last_of_user(context, conversation_id) or {}).get("sender")
    return str(JID(sender).bare) or None if isinstance(sender, str) else None


def _last_of_user(context: ContextManager, conversation_id: str) -> dict[str, Any] | None:
    history: list[Any] = context.get_conversation_history(conversation_id)
    return next((message for message in reversed(history) if message["role"] == "user"), None)


class _Forgetful(set[Any]):
    """A set that never holds anything."""

    def add(self, element: object) -> None:
        """Do nothing."""


class MemoryLLMAgent(MemoryMixin, LLMAgent):
    """spade_llm's `LLMAgent` with memory: its arguments, and those of `MemoryMixin`."""
