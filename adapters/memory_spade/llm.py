"""Memory for agents with a language model: tools, and recall into the prompt."""

from __future__ import annotations

try:
    from spade_llm import __version__ as spade_llm_version
    from spade_llm.agent import LLMAgent
    from spade_llm.behaviour import LLMBehaviour
    from spade_llm.behaviour.llm_behaviour import ConversationState
    from spade_llm.context import ContextManager
    from spade_llm.providers.base_provider import BaseLLMProvider
    from spade_llm.tools import LLMTool
except ImportError as error:
    raise ImportError(
        "`MemoryLLMAgent` needs spade_llm 0.3, which runs on Python 3.11 and 3.12; there: "
        "pip install 'memory-core[spade-llm]'"
    ) from error

import copy
import functools
import logging
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from slixmpp import JID

from memory_core import MemoryCoreError, MemoryRecord, RecallOptions
from memory_core.adapting import (
    FORGET_MEMORY,
    LIST_MEMORIES,
    MEMORY_PIN,
    REMEMBER_INTERACTION_INFO,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    UPDATE_MEMORY,
    AgentMemory,
    Arguments,
    Tool,
    ToolContext,
    reason_for_log,
    remembered_block,
)
from memory_spade.conversation import session_of
from memory_spade.memory.exceptions import MemoryTimeoutError
from memory_spade.memory.home import Grants, Home
from memory_spade.recalling import recalled

if not spade_llm_version.startswith("0.3."):
    # On unsupported Python versions, pip silently installs 0.2, whose agents have a different structure.
    raise ImportError(
        f"`MemoryLLMAgent` needs spade_llm 0.3, which runs on Python 3.11 and 3.12, and found {spade_llm_version}; "
        "there: pip install 'memory-core[spade-llm]'"
    )

__all__ = ["LLMAgent", "Remembering", "attach", "equip", "forget_conversation", "offer"]

logger = logging.getLogger(__name__)

MAX_NOTES: Final = 20
"""Most notes of a conversation that are added to the prompt, the newest ones."""
_READING: Final = (SEARCH_MEMORIES, LIST_MEMORIES)


class Remembering(Protocol):
    """The attributes of an agent that this module uses: `MemoryMixin` with an agent class that has a model."""

    home: Home
    interaction_memory: Any
    agent_base_memory: Any
    inject_memories: int
    recall_options: RecallOptions
    behaviours: list[Any]

    @property
    def address(self) -> str:
        """The agent's bare JID."""
        ...

    def peer_at(self, jid: JID) -> str | None:
        """See `MemoryMixin.peer_at`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message that an agent is answering. JIDs are bare; the peer is `None` if the history does not name it."""

    agent: str
    conversation_id: str
    session: str
    peer: str | None
    grants: Grants
    """What was shared with the agent when the block was recalled."""
    block: str
    """The recalled block, added to the prompt of every model call for this answer."""


_running: ContextVar[Turn | None] = ContextVar("memory_spade_turn", default=None)
"""The turn of the current task. Tools and agents cannot store it, because several tasks use them at the same time."""


def equip(agent: Remembering, *, editing: bool) -> None:
    """Give an agent with a model its memory tools and recall."""
    llm: Any = agent  # an LLMAgent behind the mixin, which the protocol cannot express without importing it
    attach(agent, llm.llm_behaviour)
    if agent.interaction_memory is not None:
        offer(agent, MemoryTool(agent, REMEMBER_INTERACTION_INFO))
    if agent.agent_base_memory is not None:
        changing = (UPDATE_MEMORY, FORGET_MEMORY, MEMORY_PIN) if editing else ()
        for tool in (STORE_MEMORY, SEARCH_MEMORIES, LIST_MEMORIES, *changing):
            offer(agent, MemoryTool(agent, tool))


def attach(agent: Remembering, behaviour: object) -> None:
    """Let a behaviour recall before it calls its model, if it has one."""
    if not isinstance(behaviour, LLMBehaviour):
        return
    if not isinstance(behaviour.provider, RecallingProvider):
        behaviour.provider = RecallingProvider(behaviour.provider, agent)
    # spade_llm drops messages whose id it has seen, and uses the address of an object as the id: after about 1,500
    # messages addresses repeat, and the agent ignores more and more messages.
    if hasattr(behaviour, "_processed_messages"):
        behaviour._processed_messages = _Forgetful()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if not isinstance(behaviour.on_conversation_end, _Reviving):
        behaviour.on_conversation_end = _Reviving(behaviour, behaviour.on_conversation_end)


class _Reviving:
    """Called when a conversation ends: one that an error has ended goes on with its next message.

    spade_llm would ignore its thread for ever, although a provider may fail once and work again.
    """

    def __init__(self, behaviour: LLMBehaviour, then: Callable[[str, str], None] | None) -> None:
        self._behaviour, self._then = behaviour, then

    def __call__(self, conversation_id: str, reason: str) -> None:
        state = self._behaviour.get_conversation_state(conversation_id)
        if reason == ConversationState.ERROR and state is not None:
            state["state"] = ConversationState.ACTIVE
        if self._then is not None:
            self._then(conversation_id, reason)


def offer(agent: Remembering, tool: LLMTool) -> None:
    """Register a tool once with the agent and once with its behaviour; the two may share one list."""
    llm: Any = agent
    if any(known.name == tool.name for known in llm.tools):
        logger.warning("an agent has a tool named %s already; the other one is left out", tool.name)
        return
    bind = getattr(tool, "set_agent", None)  # human-in-the-loop tools need their agent
    if callable(bind):
        bind(agent)
    llm.tools.append(tool)
    if llm.llm_behaviour.tools is not llm.tools:
        llm.llm_behaviour.register_tool(tool)


def forget_conversation(agent: Remembering, conversation_id: str) -> None:
    """Delete spade_llm's own state of a conversation, which it never does itself. Memories are not affected."""
    llm: Any = agent
    for keeper in (llm.context, *(each for each in agent.behaviours if isinstance(each, LLMBehaviour))):
        for name in ("_conversations", "_conversation_metadata", "_active_conversations", "_output_schemas"):
            kept = getattr(keeper, name, None)
            if isinstance(kept, dict):
                kept.pop(conversation_id, None)
            elif isinstance(kept, set):
                kept.discard(conversation_id)


class MemoryTool(LLMTool):
    """A tool of the core for spade_llm; the running turn determines the owner of the memory."""

    def __init__(self, agent: Remembering, tool: Tool) -> None:
        super().__init__(tool.name, tool.description, dict(tool.parameters), self._run)
        self._agent, self._tool = agent, tool

    def offered_for(self, memory: AgentMemory) -> LLMTool:
        """A copy with the parameters that `memory` offers, such as the spaces that may be written to."""
        offered = copy.copy(self)
        offered.parameters = dict(self._tool.offered_for(memory).parameters)
        return offered

    async def _run(self, **arguments: object) -> str:
        turn, home = _running.get(), self._agent.home
        if turn is None or turn.agent != self._agent.address:
            return f"{self.name} failed: no conversation is running, so the owner of the memory is unknown"
        within = home.deadline.read if self._tool in _READING else home.deadline.write
        try:
            return await within(f"the tool {self.name}", lambda: self._result(turn, arguments))
        except MemoryTimeoutError as error:
            later = "" if self._tool in _READING else "; it may still be done later, so do not repeat it"
            return f"{self.name} failed: {error}{later}"
        except MemoryCoreError as error:
            return f"{self.name} failed: {error}"

    async def _result(self, turn: Turn, arguments: Mapping[str, object]) -> str:
        home = self._agent.home
        notes = home.notes(turn.peer)
        if self._tool is REMEMBER_INTERACTION_INFO and notes is not None:
            return await notes.aadd_information(turn.session, Arguments(arguments).text("information"))
        memory = await home.reached(home.base, turn.peer)
        context = ToolContext(memory=memory, agent=turn.agent, session=turn.session, author=turn.peer)
        return (await self._tool(context, arguments)).text


async def _offered(agent: Remembering, tools: list[LLMTool] | None, turn: Turn) -> list[LLMTool] | None:
    """The tools of one call of the model, with what is shared with the agent at that moment."""
    home = agent.home
    if not tools or not home.grants.spaces:
        return tools
    try:
        memory = await home.deadline.read("offering tools", lambda: home.reached(home.base, turn.peer))
    except MemoryCoreError:  # the tool itself will tell the model
        return tools
    return [tool.offered_for(memory) if isinstance(tool, MemoryTool) else tool for tool in tools]


class RecallingProvider(BaseLLMProvider):
    """A provider that adds the agent's memories to the prompt and otherwise delegates to the wrapped provider.

    A turn begins here, because spade_llm passes the conversation of the current task to the provider.
    """

    def __init__(self, provider: BaseLLMProvider, agent: Remembering) -> None:
        self.provider = provider
        self._agent = agent

    def __getattr__(self, name: str) -> object:
        if name == "provider":  # requested on a copy that is not initialised yet
            raise AttributeError(name)
        return getattr(self.provider, name)

    async def get_llm_response(
        self,
        context: ContextManager,
        tools: list[LLMTool] | None = None,
        conversation_id: str | None = None,
        output_schema: object | None = None,
    ) -> dict[str, Any]:
        """See `BaseLLMProvider`: recall, then call the wrapped provider."""
        turn = _running.get()
        _running.set(None)
        if conversation_id is None:
            return await self.provider.get_llm_response(context, tools, conversation_id, output_schema)
        if (
            turn is None
            or (turn.agent, turn.conversation_id) != (self._agent.address, conversation_id)
            or turn.grants is not self._agent.home.grants
        ):
            turn = await begin(self._agent, context, conversation_id)
        offered = await _offered(self._agent, tools, turn)
        response = await self.provider.get_llm_response(
            _reminded(context, turn), offered, conversation_id, output_schema
        )
        # A call without tools is spade_llm's last one of a turn, even if the model requests tools.
        _running.set(turn if tools and response.get("tool_calls") else None)
        return response


async def begin(agent: Remembering, context: ContextManager, conversation_id: str) -> Turn:
    """Begin the turn for the last user message.

    Errors of the memory do not prevent an answer: they are logged, and nothing is recalled.
    """
    history: list[Any] = context.get_conversation_history(conversation_id)
    message: Any = next((said for said in reversed(history) if said["role"] == "user"), {})
    sender, said = message.get("sender"), str(message.get("content") or "")
    peer = agent.peer_at(JID(sender)) if isinstance(sender, str) else None
    home = agent.home
    session, grants = session_of(conversation_id, peer), home.grants
    noted: list[str] = []
    memories = ""
    try:
        notes = home.notes(peer) if agent.inject_memories else None
        if notes is not None:
            noted = await home.deadline.read("reading notes", lambda: notes.aget_information(session, last=MAX_NOTES))
    except MemoryTimeoutError:  # logged
        pass
    except MemoryCoreError as error:
        reason = reason_for_log(error)  # without the traceback, whose messages may quote
        logger.log(home.deadline.level, "an agent answers without its notes: %s", reason)
    if agent.agent_base_memory is not None and agent.inject_memories:
        options = recall_options(agent, noted)
        before = [str(each.get("content") or "") for each in history if each["role"] == "user" and each is not message]
        reached = functools.partial(home.reached, home.base, peer)
        memories = (await recalled(reached, said, options, home.deadline, peer, before)).text
    block = "\n".join(filter(None, (remembered_block(noted, []), memories)))
    return Turn(
        agent=agent.address, conversation_id=conversation_id, session=session, peer=peer, grants=grants, block=block
    )


def recall_options(agent: Remembering, noted: Collection[str]) -> RecallOptions:
    """The recall options of an agent, which also exclude the notes that are in the prompt anyway."""
    given = agent.recall_options
    limit = agent.inject_memories if given.limit is None else given.limit

    def is_left_out(record: MemoryRecord) -> bool:
        return record.text in noted or given.without(record)

    return replace(given, limit=limit, without=is_left_out)


def _reminded(context: ContextManager, turn: Turn) -> ContextManager:
    """The context of one call, with the recalled block appended to its first system message or added as the only one.
    The conversations themselves are not changed."""
    view: Any = copy.copy(context)
    view.set_current_conversation(
        turn.conversation_id
    )  # for callers that do not name it, while other tasks change the current one

    def get_prompt(conversation_id: str | None = None) -> list[Any]:
        prompt: list[Any] = list(context.get_prompt(conversation_id or turn.conversation_id))
        if not turn.block:
            return prompt
        if prompt and prompt[0]["role"] == "system":
            return [{**prompt[0], "content": f"{prompt[0]['content']}\n\n{turn.block}"}, *prompt[1:]]
        return [{"role": "system", "content": turn.block}, *prompt]

    view.get_prompt = get_prompt
    return view  # type: ignore[no-any-return]


class _Forgetful(set[Any]):
    """A set that is always empty."""

    def add(self, element: object) -> None:
        """Do nothing."""
