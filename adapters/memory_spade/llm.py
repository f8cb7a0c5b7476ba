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

import asyncio
import copy
import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from slixmpp import JID
from spade.message import Message

from memory_core import BoundMemory, MemoryCoreError, MemoryRecord
from memory_core.adapting import (
    EDITING_TOOLS,
    LIST_MEMORIES,
    REMEMBER_INTERACTION_INFO,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    AgentMemory,
    Arguments,
    Asked,
    LateError,
    Tool,
    ToolContext,
    remembered_block,
)
from memory_spade.conversation import invented_thread, session_of
from memory_spade.memory.home import Home
from memory_spade.prompting import WrappingProvider, with_block
from memory_spade.recalling import Remembering, recalled

if not spade_llm_version.startswith("0.3."):
    # On unsupported Python versions, pip silently installs 0.2, whose agents have a different structure.
    raise ImportError(
        f"`MemoryLLMAgent` needs spade_llm 0.3, which runs on Python 3.11 and 3.12, and found {spade_llm_version}; "
        "there: pip install 'memory-core[spade-llm]'"
    )

__all__ = ["LLMAgent", "Model"]

logger = logging.getLogger(__name__)

MAX_INVENTED: Final = 1_000
"""Most conversations kept in spade_llm for messages without a thread; older ones are dropped."""
MAX_NOTES: Final = 20
"""Most notes of a conversation that are added to the prompt, the newest ones."""
_READING: Final = (SEARCH_MEMORIES, LIST_MEMORIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message that an agent is answering. JIDs are bare; the peer is `None` if the history does not name it."""

    agent: str
    conversation_id: str
    session: str
    peer: str | None
    given: BoundMemory | None
    """The handle that the agent was given when the block was recalled: what was shared with it then."""
    block: str
    """The recalled block, added to the prompt of every model call for this answer."""
    task: asyncio.Task[Any] | None
    """The task of the answer; others that it starts have their own turns."""


_running: ContextVar[Turn | None] = ContextVar("memory_spade_turn", default=None)
"""The turn of the current task. Tools and agents cannot store it, because several tasks use them at the same time."""


class Model:
    """The language model of an agent: its behaviours, its tools and the threads of its conversations."""

    def __init__(self, agent: Remembering) -> None:
        self._agent = agent
        self._llm: Any = agent  # an LLMAgent, which a class behind the mixin is
        self._invented: deque[str] = deque()

    def equip(self, *, editing: bool) -> None:
        """Give it the tools of the agent's memories, and recall."""
        self.attach(self._llm.llm_behaviour)
        if self._agent.interaction_memory is not None:
            self.offer(MemoryTool(self._agent, REMEMBER_INTERACTION_INFO))
        if self._agent.agent_base_memory is not None:
            changing = EDITING_TOOLS if editing else ()
            for tool in (STORE_MEMORY, SEARCH_MEMORIES, LIST_MEMORIES, *changing):
                self.offer(MemoryTool(self._agent, tool))

    def attach(self, behaviour: object) -> None:
        """Let a behaviour recall before it calls its model, if it has one."""
        if not isinstance(behaviour, LLMBehaviour):
            return
        if not isinstance(behaviour.provider, RecallingProvider):
            behaviour.provider = RecallingProvider(behaviour.provider, self._agent)
        # spade_llm drops messages whose id it has seen, and uses the address of an object as the id: after about 1,500
        # messages addresses repeat, and the agent ignores more and more messages.
        if hasattr(behaviour, "_processed_messages"):
            behaviour._processed_messages = _Forgetful()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if not isinstance(behaviour.on_conversation_end, _Reviving):
            behaviour.on_conversation_end = _Reviving(behaviour, behaviour.on_conversation_end)

    def offer(self, tool: LLMTool) -> None:
        """Register a tool once with the agent and once with its behaviour; the two may share one list."""
        if any(known.name == tool.name for known in self._llm.tools):
            logger.warning("an agent has a tool named %s already; the other one is left out", tool.name)
            return
        bind = getattr(tool, "set_agent", None)  # human-in-the-loop tools need their agent
        if callable(bind):
            bind(self._agent)
        self._llm.tools.append(tool)
        if self._llm.llm_behaviour.tools is not self._llm.tools:
            self._llm.llm_behaviour.register_tool(tool)

    def in_thread(self, message: Message, peer: str) -> Message:
        """The message, with an invented thread if it has none and a behaviour with a model receives it."""
        if (message.thread or "").strip() or not any(each.match(message) for each in self._behaviours()):
            return message
        message = copy.copy(message)  # a sender in the same process uses the same object
        message.thread = invented_thread(peer)
        self._invented.append(message.thread)
        if len(self._invented) > MAX_INVENTED:
            self._forget(self._invented.popleft())
        return message

    def _behaviours(self) -> list[LLMBehaviour]:
        return [each for each in self._agent.behaviours if isinstance(each, LLMBehaviour)]

    def _forget(self, conversation_id: str) -> None:
        """Delete spade_llm's own state of a conversation, which it never does itself. Memories are not affected."""
        behaviours = self._behaviours()
        for keeper in (self._llm.context, *behaviours, *(each.context for each in behaviours)):
            for name in ("_conversations", "_conversation_metadata", "_active_conversations", "_output_schemas"):
                kept = getattr(keeper, name, None)
                if isinstance(kept, dict):
                    kept.pop(conversation_id, None)
                elif isinstance(kept, set):
                    kept.discard(conversation_id)


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


class _Forgetful(set[Any]):
    """A set that is always empty."""

    def add(self, element: object) -> None:
        """Do nothing."""


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
        except LateError as error:
            later = "" if self._tool in _READING else "; it may still be done later, so do not repeat it"
            return f"{self.name} failed: {error}{later}"
        except MemoryCoreError as error:
            return f"{self.name} failed: {error}"

    async def _result(self, turn: Turn, arguments: Mapping[str, object]) -> str:
        home = self._agent.home
        notes = await home.reached(home.notes, turn.peer)
        if self._tool is REMEMBER_INTERACTION_INFO and notes is not None:
            return await notes.aadd_information(turn.session, Arguments(arguments).text("information"))
        memory = await home.reached(home.base, turn.peer)
        context = ToolContext(memory=memory, agent=turn.agent, session=turn.session, author=turn.peer)
        return (await self._tool(context, arguments)).text


async def _offered(agent: Remembering, tools: list[LLMTool] | None, turn: Turn) -> list[LLMTool] | None:
    """The tools of one call of the model, with what is shared with the agent at that moment."""
    home = agent.home
    if not tools or home.given is None or not home.given.spaces:
        return tools
    try:
        memory = await home.deadline.read("offering tools", lambda: home.reached(home.base, turn.peer))
    except MemoryCoreError:  # the tool itself will tell the model
        return tools
    return [tool.offered_for(memory) if isinstance(tool, MemoryTool) else tool for tool in tools]


class RecallingProvider(WrappingProvider):
    """A provider that adds the agent's memories to the prompt and otherwise delegates to the wrapped provider.

    A turn begins here, because spade_llm passes the conversation of the current task to the provider.
    """

    def __init__(self, provider: BaseLLMProvider, agent: Remembering) -> None:
        super().__init__(provider)
        self._agent = agent

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
            or turn.task is not asyncio.current_task()
            or (turn.agent, turn.conversation_id) != (self._agent.address, conversation_id)
            or turn.given is not self._agent.home.given
        ):
            turn = await begin(self._agent, context, conversation_id)
        offered = await _offered(self._agent, tools, turn)
        response = await self.provider.get_llm_response(
            with_block(context, turn.block, conversation_id), offered, conversation_id, output_schema
        )
        # A call without tools is spade_llm's last one of a turn, even if the model requests tools.
        _running.set(turn if tools and response.get("tool_calls") else None)
        return response


async def _noted(home: Home, peer: str | None, session: str) -> list[str]:
    notes = await home.reached(home.notes, peer)
    return [] if notes is None else await notes.aget_information(session, last=MAX_NOTES)


async def begin(agent: Remembering, context: ContextManager, conversation_id: str) -> Turn:
    """Begin the turn for the last user message.

    Errors of the memory do not prevent an answer: they are logged, and nothing is recalled.
    """
    history: list[Any] = context.get_conversation_history(conversation_id)
    message: Any = next((said for said in reversed(history) if said["role"] == "user"), {})
    sender, said = message.get("sender"), str(message.get("content") or "")
    peer = agent.peer_at(JID(sender)) if isinstance(sender, str) else None
    home = agent.home
    session, given = session_of(conversation_id, peer), home.given
    noted: list[str] = []
    memories, recalls = "", agent.recall_options.limit != 0
    if agent.interaction_memory is not None and recalls:
        with home.deadline.spared("an agent answers without its notes"):
            noted = await home.deadline.read("reading notes", lambda: _noted(home, peer, session))
    if agent.agent_base_memory is not None and recalls:
        shown = {str(each.get("content") or "") for each in context.get_prompt(conversation_id)}
        before = [str(each.get("content") or "") for each in history if each["role"] == "user" and each is not message]

        def shows(record: MemoryRecord) -> bool:
            return record.text in noted or (record.session == session and record.text in shown)

        reached = functools.partial(home.reached, home.base, peer)
        asked = Asked(said, before, shows)
        memories = (await recalled(reached, asked, agent, peer)).text
    block = "\n".join(filter(None, (remembered_block(noted, []), memories)))
    return Turn(
        agent=agent.address,
        conversation_id=conversation_id,
        session=session,
        peer=peer,
        given=given,
        block=block,
        task=asyncio.current_task(),
    )
