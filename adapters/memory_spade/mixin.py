"""Memory for any SPADE agent: `class MyAgent(MemoryMixin, LLMAgent)`, or `MemoryMixin` before plain `Agent`."""

from __future__ import annotations

try:
    from spade.agent import Agent
    from spade.behaviour import CyclicBehaviour
    from spade.message import Message
    from spade.template import Template
except ImportError as error:
    raise ImportError("`memory_spade` needs SPADE: pip install 'memory-core[spade]'") from error

from asyncio import Task, gather
from typing import TYPE_CHECKING, Any

from slixmpp import JID
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

from memory_core import PUSHED, BoundMemory, Memory, RecallOptions
from memory_core.adapting import core_loop, limits
from memory_spade.arguments import check_arguments
from memory_spade.beginnings import Beginnings
from memory_spade.carriable import carriable_stanza
from memory_spade.conversation import sender_of
from memory_spade.memory import MemoryBackend
from memory_spade.memory.flags import Flag, read_flags
from memory_spade.memory.home import Home, Owner
from memory_spade.memory.place import StrPath
from memory_spade.recalling import Listening
from memory_spade.stanzas import (
    RETRACT,
    arrival_of,
    identified,
    identified_stanza,
    is_identified,
    is_of_room,
    received,
)

if TYPE_CHECKING:
    from spade_llm.tools import LLMTool

    from memory_spade.llm import Model

    _AgentBehind = Agent
else:
    # A mixin like SPADE's own: were it an `Agent`, a base of another mixin would come behind `Agent`, which calls none.
    _AgentBehind = object


class MemoryMixin(_AgentBehind):
    """Adds memory to the agent class behind it: `class MyAgent(MemoryMixin, LLMAgent)`.

    Other mixins, as those of SPADE's plugins, may stand on either side of it, before the agent class. All keywords not
    listed here are passed to the classes behind it. The two flags of spade_llm are handled here, so its own memory is
    never created.

    Args:
        interaction_memory: True to keep notes about each conversation: `True`, `False` or `(True, directory)`.
        agent_base_memory: True to keep long-term memories; same form, or your own `MemoryBackend`.
        memory_path: Directory for both kinds, unless a flag has its own. The default is the directory in the
            environment variable SPADE_LLM_MEMORY_PATH, else `spade_llm/data/agent_memory`. `":memory:"` keeps
            everything in the process until the agent stops.
        memory: Keep both kinds (or the one whose flag is `True`) in a shared memory: a `Memory`, a handle, or the
            path of a file. The agent closes the memory only if it was given as a path. The spaces of a handle, as a
            team's blackboard, are read beside the long-term memories.
        owner: The owner of the memories, if no handle names one: the agent (`"agent"`), its peer (`"peer"`), or the
            user that a function, which may be `async`, returns for the peer's bare JID (a LookupError means that the
            peer has none). It is asked once a message.
        memory_editing: True if the model is offered the tools that change memories, too (`EDITING_TOOLS`).
        recall: Options of what is added to the prompt before each model call, besides the notes of the conversation:
            number, budget, conditions, mode and so on. A limit of 0 adds nothing, notes neither.
        memory_timeout: The number of seconds that a behaviour, tool, start or stop of the agent waits for one call of
            its memory. Then it goes on without. A write is completed when the memory answers again, while the agent
            runs.

    Raises:
        TypeError: A flag has an invalid value or is passed by position, a keyword is unknown, the bases of the class
            are in the wrong order, or no agent class is among them.
        InvalidInputError: `memory_timeout` is not a number above 0.
    """

    _equipped: Model | None = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[: cls.__mro__.index(MemoryMixin)]:
            if issubclass(base, Agent) and not issubclass(base, MemoryMixin):
                raise TypeError(
                    f"{cls.__name__} has MemoryMixin after {base.__name__}, whose constructor would not pass on the "
                    f"memory flags; write class {cls.__name__}(MemoryMixin, {base.__name__})"
                )

    def __init__(  # noqa: PLR0913  (one keyword per option, all of them optional)
        self,
        *args: Any,  # arguments of the agent class behind the mixin
        interaction_memory: Flag = False,
        agent_base_memory: Flag | MemoryBackend = False,
        memory_path: StrPath | None = None,
        memory: Memory | BoundMemory | StrPath | None = None,
        owner: Owner = "agent",
        memory_editing: bool = False,
        recall: RecallOptions = PUSHED,
        memory_timeout: float = limits.CALL_SECONDS,
        **kwargs: Any,
    ) -> None:
        if Agent not in type(self).__mro__:
            name = type(self).__name__
            raise TypeError(f"{name} has no agent class behind MemoryMixin; write class {name}(MemoryMixin, Agent)")
        check_arguments(type(self), MemoryMixin, args, kwargs)
        super().__init__(*args, **kwargs)
        if "port" in kwargs:
            self.xmpp_port = kwargs["port"]  # LLMAgent accepts the keyword but ignores it
        places = read_flags(
            self.address,
            interaction_memory=interaction_memory,
            agent_base_memory=agent_base_memory,
            memory_path=memory_path,
            memory=memory,
        )
        self.home = Home(self.address, places, owner, memory_timeout)
        # LLMAgent declares attributes of these names with its own types; here they are `AgentInteractionMemory` and
        # `AgentBaseMemory` of `memory_spade.memory`, or None.
        self.interaction_memory: Any = self.home.notes(None)
        self.agent_base_memory: Any = self.home.base_door
        self.beginnings = Beginnings()
        self.recall_options = recall
        core_loop()  # starts a thread, which should not happen inside a coroutine
        if (model := self._model) is not None:
            model.equip(editing=memory_editing)

    @property
    def address(self) -> str:
        """The agent's identity: its bare JID, without resource and in lower case."""
        return str(self.jid.bare)

    @property
    def memory(self) -> BoundMemory:
        """The agent's long-term memories; with another owner use `memory_of(message)`."""
        return self.home.handle(None)

    def use(self, memory: BoundMemory) -> None:
        """Replace the handle of `memory=` by one with other spaces, from the next call of the memory on.

        Raises:
            ScopeError: The agent was not made with a handle or a `Memory`, or the scope is another one.
        """
        self.home.use(memory)

    async def memory_of(self, message: Message) -> BoundMemory:
        """Return the long-term memories that are available in the conversation of a message."""
        return await self.home.reached(self.home.handle, self.peer_of(message))

    def peer_of(self, message: Message) -> str | None:
        """The peer of the conversation to which a message belongs: `peer_at` of its sender, or the room that it was
        said in."""
        return sender_of(message) if is_of_room(message) else self.peer_at(message.sender)

    def peer_at(self, jid: JID) -> str | None:
        """The peer at an address: its bare JID, or, in a room that the agent has joined, the room and the nick."""
        bare = str(jid.bare)
        return str(jid) if jid.resource and bare in self._nicks() else bare or None

    def is_own_nick(self, message: Message) -> bool:
        """True if a room has sent the agent's own message back to it."""
        return is_of_room(message) and self._nicks().get(str(message.sender.bare)) == message.sender.resource

    def _nicks(self) -> dict[str, str]:
        """The agent's nick in every room that it has joined."""
        rooms: Any = None if self.client is None else self.client.plugin.get("xep_0045", None)
        joined = {} if rooms is None else rooms.our_nicks
        # slixmpp keeps what a join asked for by address, and what has changed since under None.
        by_room = [*(nicks for address, nicks in joined.items() if address is not None), joined.get(None, {})]
        return {str(JID(room).bare): str(nick) for nicks in by_room for room, nick in nicks.items()}

    async def _async_connect(self) -> None:  # SPADE's own: the client is made, and has sent nothing yet
        """Let all stanzas of the agent pass the door to XML, whichever behaviour or class sends them, and hear what
        SPADE does not: when the agent may be told what was said before, and retractions, which have no body."""
        client: Any = self.client
        client.add_filter("out", identified_stanza)
        client.add_filter("out", carriable_stanza)
        client.add_event_handler("session_start", self.beginnings.logged_in)
        client.add_event_handler("groupchat_presence", self.beginnings.presence_in_room)
        path = f"{{{client.default_ns}}}message/{RETRACT}"
        client.register_handler(Callback("retraction", MatchXPath(path), self._retracted))
        await super()._async_connect()

    def _message_received(self, msg: Any) -> list[Task[None]]:  # SPADE's callback for stanzas
        """Deliver a stanza with what SPADE's own callback leaves out."""
        if msg.xml.find(RETRACT) is not None:
            return []  # its body is for clients that do not know retractions
        room = str(msg["from"].bare) if msg["type"] == "groupchat" else None
        return self.dispatch(received(msg, is_backlog=self.beginnings.is_backlog(room)))

    def _retracted(self, stanza: Any) -> None:
        """Pass a retraction to all behaviours that remember, after the messages that they have not received yet."""
        message = received(stanza)
        self.home.heard(self.peer_of(message))
        for behaviour in self._listening:
            self.submit(behaviour.enqueue(message))

    def dispatch(self, msg: Message) -> list[Task[None]]:
        """Deliver a message like `Agent.dispatch`; a message for the model gets a thread if it has none."""
        peer = self.peer_of(msg)
        self.home.heard(peer)
        if arrival_of(msg) is None and not is_identified(msg):
            msg = identified(msg, peer)  # so that two behaviours that receive it store it once
        if peer is not None and (model := self._model) is not None:
            msg = model.in_thread(msg, peer)
        return super().dispatch(msg)

    def add_behaviour(self, behaviour: CyclicBehaviour, template: Template | None = None) -> None:
        """See `Agent.add_behaviour`; behaviours that call a model recall memories first."""
        if (model := self._model) is not None:
            model.attach(behaviour)
        super().add_behaviour(behaviour, template)

    def add_tool(self, tool: LLMTool) -> None:
        """Offer a tool to the model; a tool whose name is already in use is left out."""
        if (model := self._model) is None:
            raise TypeError(f"{type(self).__name__} has no model that could use the tool {tool.name!r}")
        model.offer(tool)

    register_tool = add_tool

    async def start(self, auto_register: bool = True) -> None:  # noqa: FBT001, FBT002  (spade's signature)
        """Open the memory, then start the agent. If either fails, memory and connection are closed again.

        An agent whose memory takes longer than `memory_timeout` to open starts without it, and has it once it is open.
        """
        try:
            await self.home.begin()
            await super().start(auto_register=auto_register)
        except BaseException:  # also if the start is cancelled: nothing may stay open
            await self.home.end()
            if self.client is not None:
                await self.client.disconnect()  # `stop` disconnects only agents that were started completely
            raise

    async def stop(self) -> None:
        """Stop the agent, remember what its behaviours have not received yet, complete late writes, and close the
        memories it opened. May be called twice.

        A memory that hangs delays this by at most `memory_timeout` for the writes, and as long for the closing.
        """
        try:
            await super().stop()
            await gather(*(behaviour.remember_waiting() for behaviour in self._listening))
        finally:
            await self.home.end()

    @property
    def _listening(self) -> list[Listening]:
        """The behaviours that remember what they receive."""
        return [behaviour for behaviour in self.behaviours if isinstance(behaviour, Listening)]

    @property
    def _model(self) -> Model | None:
        """The language model of the class behind the mixin, if it has one."""
        if self._equipped is None and "llm_behaviour" in vars(self):
            from memory_spade.llm import Model  # noqa: PLC0415  (plain agents must not load spade_llm)

            self._equipped = Model(self)
        return self._equipped
