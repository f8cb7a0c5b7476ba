"""Memory for any SPADE agent: `class MyAgent(MemoryMixin, LLMAgent)`, or `MemoryMixin` before plain `Agent`."""

from __future__ import annotations

try:
    from spade.agent import Agent
    from spade.behaviour import CyclicBehaviour
    from spade.message import Message
    from spade.template import Template
except ImportError as error:
    raise ImportError("`memory_spade` needs SPADE: pip install 'memory-core[spade]'") from error

import copy
from asyncio import Task
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from memory_core import BoundMemory, Memory, RecallOptions
from memory_core.adapting import core_loop
from memory_spade.arguments import check_arguments
from memory_spade.conversation import MESSAGE_ID, identified, invented_thread, sender_of
from memory_spade.memory import MemoryBackend
from memory_spade.memory.flags import Flag, StrPath, read_flags
from memory_spade.memory.home import Home, Owner

if TYPE_CHECKING:
    from spade_llm.tools import LLMTool

DEFAULT_RECALL: Final = RecallOptions()
"""How memories are recalled for a prompt unless somebody says otherwise."""
MAX_INVENTED: Final = 1_000
"""Of so many messages without a thread, the last ones, spade_llm keeps the conversation."""


class MemoryMixin(Agent):
    """Gives an agent class memory; stands before that class: `class MyAgent(MemoryMixin, LLMAgent)`.

    All keywords that are not named here go to the classes behind. The two flags of spade_llm are taken over, so its
    own memory is never made.

    Args:
        interaction_memory: Keep notes about each conversation: `True`, `False` or `(True, directory)`.
        agent_base_memory: Keep long-term memories; same form, or a `MemoryBackend` of your own that keeps them.
        memory_path: Directory of both kinds, unless a flag names its own. Without either it is what the environment
            variable SPADE_LLM_MEMORY_PATH says, else `spade_llm/data/agent_memory`. `":memory:"` keeps everything in
            the process, until the agent stops.
        memory: Keep both kinds (or the one whose flag is `True`) in a memory shared with others: a `Memory`, a handle
            of one, or the path of its file. The agent closes only what it was given as a path.
        owner: Whose memories they are, unless a handle says so: the agent's own (`"agent"`), those of whom it talks
            to (`"peer"`), or those of whoever a function makes of the peer's bare JID (a LookupError means nobody).
        memory_editing: Offer the model `update_memory` and `forget_memory` too.
        inject_memories: Before each call of the model, put the notes of the conversation and at most this many
            long-term memories that fit the last message into the prompt, for that call only. 0 puts nothing there.
        recall: How they are recalled: budget, conditions, mode and the rest.

    Raises:
        TypeError: A flag has a wrong value or place, a keyword is unknown, or the class has its bases in the wrong
            order.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[: cls.__mro__.index(MemoryMixin)]:
            if issubclass(base, Agent) and not issubclass(base, MemoryMixin):
                raise TypeError(
                    f"{cls.__name__} names MemoryMixin after {base.__name__}, whose constructor would keep the memory "
                    f"flags to itself; write class {cls.__name__}(MemoryMixin, {base.__name__})"
                )

    def __init__(  # noqa: PLR0913  (a keyword for each wish an agent may have, none of them needed)
        self,
        *args: Any,  # they belong to the agent class behind, whichever that is
        interaction_memory: Flag = False,
        agent_base_memory: Flag | MemoryBackend = False,
        memory_path: StrPath | None = None,
        memory: Memory | BoundMemory | StrPath | None = None,
        owner: Owner = "agent",
        memory_editing: bool = False,
        inject_memories: int = 5,
        recall: RecallOptions = DEFAULT_RECALL,
        **kwargs: Any,
    ) -> None:
        check_arguments(type(self), MemoryMixin, args, kwargs)
        if type(inject_memories) is not int or inject_memories < 0:
            raise TypeError(f"inject_memories must be a whole number, 0 or more, not {inject_memories!r}")
        super().__init__(*args, **kwargs)
        if "port" in kwargs:
            self.xmpp_port = kwargs["port"]  # LLMAgent takes the keyword and forgets it
        places = read_flags(
            self.address,
            interaction_memory=interaction_memory,
            agent_base_memory=agent_base_memory,
            memory_path=memory_path,
            memory=memory,
        )
        self.home = Home(self.address, places, owner)
        # LLMAgent has attributes of these names and types of its own; ours are `AgentInteractionMemory` and
        # `AgentBaseMemory` of `memory_spade.memory`, or None.
        self.interaction_memory: Any = self.home.notes(None)
        self.agent_base_memory: Any = self.home.base_door
        self.inject_memories = inject_memories
        self.recall_options = recall
        self._invented: deque[str] = deque()
        core_loop()  # starts a thread: better now than inside a coroutine
        if self._has_model():
            from memory_spade.llm import equip  # noqa: PLC0415  (plain agents must not load spade_llm)

            equip(self, editing=memory_editing)

    @property
    def address(self) -> str:
        """The agent's bare JID: one identity, whatever its resource and case."""
        return str(self.jid.bare)

    @property
    def memory(self) -> BoundMemory:
        """The agent's long-term memories; with `owner="peer"` use `memory_of(message)`."""
        return self.home.handle(None)

    def memory_of(self, message: Message) -> BoundMemory:
        """The long-term memories that the conversation a message belongs to may reach."""
        return self.home.handle(sender_of(message))

    def dispatch(self, msg: Message) -> list[Task[None]]:
        """Deliver a message to the behaviours, as `Agent.dispatch`; one for the model gets a thread if it has none."""
        peer = sender_of(msg)
        if msg.get_metadata(MESSAGE_ID) is None:
            msg = identified(msg)  # two behaviours that hear it keep it once
        blank = not (msg.thread or "").strip()
        if peer and blank and self._has_model() and msg.get_metadata("message_type") == "llm":
            from memory_spade.llm import forget_conversation  # noqa: PLC0415

            msg = copy.copy(msg)  # in one process the sender holds the same object
            msg.thread = invented_thread(peer)
            self._invented.append(msg.thread)
            if len(self._invented) > MAX_INVENTED:
                forget_conversation(self, self._invented.popleft())
        return super().dispatch(msg)

    def add_behaviour(self, behaviour: CyclicBehaviour, template: Template | None = None) -> None:
        """See `Agent.add_behaviour`; behaviours that call a model recall memories first."""
        if self._has_model():
            from memory_spade.llm import attach  # noqa: PLC0415

            attach(self, behaviour)
        super().add_behaviour(behaviour, template)

    def add_tool(self, tool: LLMTool) -> None:
        """Offer a tool to the model; one of a name that is taken already is left out."""
        if not self._has_model():
            raise TypeError(f"{type(self).__name__} has no model that could use the tool {tool.name!r}")
        from memory_spade.llm import offer  # noqa: PLC0415

        offer(self, tool)

    register_tool = add_tool

    async def start(self, auto_register: bool = True) -> None:  # noqa: FBT001, FBT002  (spade's signature)
        """Open the memory, then start as usual. If either fails, memory and connection are closed again."""
        try:
            await self.home.open()
            await super().start(auto_register=auto_register)
        except BaseException:  # a cancelled start included: nothing may stay open
            await self.home.close()
            if self.client is not None:
                await self.client.disconnect()  # `stop` does so only for an agent that got through its start
            raise

    async def stop(self) -> None:
        """Stop as usual, then close what this agent opened. Stopping twice is fine."""
        try:
            await super().stop()
        finally:
            await self.home.close()

    def _has_model(self) -> bool:
        return "llm_behaviour" in vars(self)
