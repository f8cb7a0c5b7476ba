"""Memory for agents made with `create_agent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary, ref

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from typing_extensions import override

from memory_core import PUSHED, Draft, RecallOptions, StorageError, run_sync
from memory_core.adapting import (
    OF_THE_APPLICATION,
    Conversation,
    Conversations,
    Tool,
    Visible,
    limits,
    on_core,
)
from memory_langchain.history import FRAMEWORK, draft_of, key_of, unused_keys
from memory_langchain.messages import searchable_text, to_draft, to_messages
from memory_langchain.record_reader import MOST_SECONDS
from memory_langchain.run_ends import RunEnds
from memory_langchain.run_start import astart_of, start_of
from memory_langchain.scope import CallScope, Given, ScopeResolver
from memory_langchain.thread_changes import Changes, Start, changes, is_spoken
from memory_langchain.tools import DEFAULT_TOOLS, memory_tools
from memory_langchain.turns import with_memories
from memory_langchain.unstored import Brought, Unstored, brought

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

_TOOL_NODE: Final = "tools"
"""Name of the node that calls tools, in agents of `create_agent` and by default in graphs (`ToolNode`)."""
_NO_RECORD: Final = "a run goes on without the record of its thread"
_TAKEN: Final = "an answer may be taken for an earlier one"
_MOST_BEFORE: Final = 4
"""Messages of the person that may say what a question is about."""


class MemoryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Recalls memories before each model call, stores the conversation, and gives the agent its memory tools.

    ```python
    agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=Context)
    thread = {"configurable": {"thread_id": "monday"}}
    agent.invoke({"messages": [("user", "Which tea?")]}, thread, context=Context(user_id="ann"))
    ```

    Recalled memories are appended to the system message of that request, after the agent's own instructions. They are
    not part of the state, so that no checkpoint keeps memories that a user deleted. Each request recalls again, also
    after an interrupt. Messages that the request shows are not recalled. Middleware that replaces the system message,
    such as `dynamic_prompt`, stands before this one in the list.

    LangGraph's record says what the person of a run has said, edited, and left; that is stored before the first model
    call, so that it is not lost if the model fails. The answers are stored when the agent has finished. What nodes,
    summaries and other agents write is nobody's words and is not stored, nor are tool calls and their results. A
    sub-agent that a tool calls with its `runtime.config` recalls and stores nothing: its question is the words of the
    calling agent. `docs/conversations.md` has what is followed, and what is not.

    Args:
        memory: A handle or a memory (a run names the user), or a function from user and context to a handle; see
            `memory_langchain.scope`.
        recall: Number, budget, conditions and so on of the memories; a limit of 0 recalls nothing.
        capture: True to store the conversation. Runs then need a conversation (`thread_id`).
        tools: The agent's memory tools; empty for none.
        timeout: The number of seconds that a run waits for one call of its memory, opening the memory and loading its
            model not counted. A memory, or a function that makes it, that hangs or fails costs the run its memory,
            which is logged, and nothing else; what was to be stored is stored when the memory answers again, or with
            the next run of this user.
        name: Its name in the graph; give a second one in the same agent another.

    Raises:
        ScopeError: During a run, if user or conversation is missing or contradicts the handle.
        ClosedError: During a run, if the application has closed the memory.
    """

    def __init__(
        self,
        memory: Given,
        *,
        recall: RecallOptions = PUSHED,
        capture: bool = True,
        tools: Sequence[Tool] = DEFAULT_TOOLS,
        timeout: float = limits.CALL_SECONDS,
        name: str = "memory_core",
    ) -> None:
        super().__init__()
        self._scopes = ScopeResolver(memory)
        self._conversations = Conversations(FRAMEWORK, "an agent", seconds=timeout, options=recall)
        self._captures = capture
        self._unstored = Unstored()
        self._ends = RunEnds()
        self._begun: WeakKeyDictionary[object, dict[str, bool]] = WeakKeyDictionary()
        """True if LangGraph's record tells what was said, by the invocation and the namespace of the agent in it."""
        self._node = name
        self._seconds = min(timeout, MOST_SECONDS)
        """The time for which a run waits for its record."""
        self._tools = tools
        self.tools = memory_tools(memory, tools=tools, timeout=timeout)

    @property
    @override
    def name(self) -> str:
        """Its name in the graph. Frameworks on LangChain merge middleware with equal names."""
        return self._node

    @override
    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Ask LangGraph's record what the person of this run has said and changed."""
        config = ensure_config()
        if self._asks(config) and (scope := run_sync(self._named, config, runtime)) is not None:
            goes_on = self._ends.since(config, _name(scope), state["messages"])
            self._begin(scope, config, runtime, state, goes_on or self._changes(config, state))

    @override
    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `before_agent`."""
        config = ensure_config()
        if self._asks(config) and (scope := await self._named(config, runtime)) is not None:
            goes_on = self._ends.since(config, _name(scope), state["messages"])
            self._begin(scope, config, runtime, state, goes_on or await self._achanges(config, state))

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Store what was said, as other middleware has redacted it; recall, and call the model."""
        config = ensure_config()
        if (scope := run_sync(self._named, config, request.runtime)) is None:
            return handler(request)
        if self._asks(config) and self._is_new(config, request.runtime):
            self._begin(scope, config, request.runtime, request.state, self._changes(config, request.state))
        block = run_sync(self._enter, scope, config, request)
        response = handler(self._filled(request, scope, block))
        if self._asks(config):
            self._unstored.answer(_name(scope), response.result)
        return response

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        config = ensure_config()
        if (scope := await self._named(config, request.runtime)) is None:
            return await handler(request)
        if self._asks(config) and self._is_new(config, request.runtime):
            self._begin(scope, config, request.runtime, request.state, await self._achanges(config, request.state))
        block = await on_core(self._enter, scope, config, request)
        response = await handler(self._filled(request, scope, block))
        if self._asks(config):
            self._unstored.answer(_name(scope), response.result)
        return response

    @override
    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what the agent has answered."""
        config = ensure_config()
        if self._asks(config) and (scope := run_sync(self._named, config, runtime)) is not None:
            run_sync(self._end, scope, config, runtime, state)

    @override
    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `after_agent`."""
        config = ensure_config()
        if self._asks(config) and (scope := await self._named(config, runtime)) is not None:
            await on_core(self._end, scope, config, runtime, state)

    async def _named(self, config: RunnableConfig, runtime: Runtime[Any]) -> CallScope | None:
        """The scope of the memory that a run has; `None` if a function makes it and does not do so, which costs the
        run its memory."""
        deadline, needs_session = self._conversations.deadline, self._captures
        with deadline.spared("a run goes on without its memory", StorageError):
            return await self._scopes.resolved(deadline, config, context=runtime.context, needs_session=needs_session)
        return None

    def _asks(self, config: RunnableConfig) -> bool:
        """True if this run is a person's, and is stored; a tool starts a sub-agent with its own configuration."""
        return self._captures and _TOOL_NODE not in _nodes_around(config)

    def _changes(self, config: RunnableConfig, state: AgentState[Any]) -> Changes:
        """The changes that the record tells; a checkpointer that fails costs a run its record."""
        start: Start | None = None
        with self._conversations.deadline.spared(_NO_RECORD, Exception):
            start = start_of(config, seconds=self._seconds)
        return changes(start, state["messages"])

    async def _achanges(self, config: RunnableConfig, state: AgentState[Any]) -> Changes:
        """As `_changes`."""
        start: Start | None = None
        with self._conversations.deadline.spared(_NO_RECORD, Exception):
            start = await astart_of(config, seconds=self._seconds)
        return changes(start, state["messages"])

    def _begin(
        self, scope: CallScope, config: RunnableConfig, runtime: Runtime[Any], state: AgentState[Any], found: Changes
    ) -> None:
        self._begun.setdefault(_invocation(runtime), {})[_namespace(config)] = found.has_record
        self._unstored.bring(_name(scope), brought(found, state["messages"], ref(_invocation(runtime))))

    def _is_new(self, config: RunnableConfig, runtime: Runtime[Any]) -> bool:
        """True if this invocation goes on behind `before_agent`: after an interrupt, or from a checkpoint."""
        return _namespace(config) not in self._begun.get(_invocation(runtime), {})

    async def _enter(self, scope: CallScope, config: RunnableConfig, request: ModelRequest[Any]) -> str:
        thread = request.state["messages"]
        if self._asks(config):
            await self._follow(scope, request.runtime, thread)
        given = cast("Sequence[object]", request.messages)  # other middleware may add dicts and tuples
        are_messages = all(isinstance(one, BaseMessage) for one in given)
        shown = request.messages if are_messages else to_messages(given, role=HumanMessage)
        return await self._conversation(scope).recall(_question(shown, thread), _visible(scope, shown))

    async def _end(
        self, scope: CallScope, config: RunnableConfig, runtime: Runtime[Any], state: AgentState[Any]
    ) -> None:
        thread = state["messages"]
        has_record = self._begun.get(_invocation(runtime), {}).pop(_namespace(config), False)
        await self._follow(scope, runtime, thread)
        self._ends.note(config, _name(scope), thread)
        with self._conversations.deadline.spared(_lack(scope), Exception, but=OF_THE_APPLICATION):
            said = self._unstored.take_answers(_name(scope), thread)
            keys = [key_of(scope, message.id or "") for message in said]
            with self._conversations.deadline.spared(_TAKEN, Exception, but=OF_THE_APPLICATION):
                keys = await self._conversations.deadline.read(
                    "looking for answers", lambda: unused_keys(scope, [message.id for message in said])
                )
            drafts = [to_draft(message, scope, source_key=key) for message, key in zip(said, keys, strict=True)]
            await self._remember(scope, drafts, said, thread, has_record=has_record)

    async def _follow(self, scope: CallScope, runtime: Runtime[Any], thread: Sequence[BaseMessage]) -> None:
        """Store what the person has said and changed in this run and in unfinished ones, once."""
        for given in self._unstored.take_brought(_name(scope), ref(_invocation(runtime)), thread):
            with self._conversations.deadline.spared(_lack(scope), Exception, but=OF_THE_APPLICATION):
                await self._store(scope, given, thread)

    async def _store(self, scope: CallScope, given: Brought, thread: Sequence[BaseMessage]) -> None:
        """Store what a run has brought."""
        found, conversation = given.changes, self._conversation(scope)
        await conversation.leave(key_of(scope, identity) for identity in found.left)
        await conversation.resume(key_of(scope, identity) for identity in found.resumed)
        for identity, message in found.edited.items():
            await conversation.edit(key_of(scope, identity), searchable_text(message))
        drafts = [draft_of(message, scope) for message in found.asked]
        await self._remember(scope, drafts, found.asked, thread, has_record=found.has_record)

    async def _remember(
        self,
        scope: CallScope,
        drafts: Sequence[Draft],
        said: Sequence[BaseMessage],
        thread: Sequence[BaseMessage],
        *,
        has_record: bool,
    ) -> None:
        """Store messages of a turn. Without a record, the thread is what a client sends, perhaps again and under other
        ids; then only the order of the messages tells which are known. A first question has no order yet."""
        context = [] if has_record else [draft_of(message, scope) for message in _before(said, thread)]
        if not has_record and sum(draft.role == "user" for draft in (*context, *drafts)) > 1:
            context, drafts = ([replace(draft, source_key=None) for draft in part] for part in (context, drafts))
        conversation = self._conversation(scope)
        await conversation.remember(drafts, context=context, ids_may_differ=bool(context), are_shown=True)
        await conversation.settled()

    def _conversation(self, scope: CallScope) -> Conversation:
        return self._conversations.of(scope.reach, scope.session or "")

    def _filled(self, request: ModelRequest[Any], scope: CallScope, block: str) -> ModelRequest[Any]:
        """The request with the block and, if each call has its own spaces, with tools that offer those of this one."""
        request = request.override(system_message=with_memories(request.system_message, block))
        if self._scopes.handle is not None or not scope.reach.spaces:
            return request
        own = memory_tools(scope.reach, tools=self._tools, timeout=self._conversations.deadline.seconds)
        offered = {id(mine): tool for mine, tool in zip(self.tools, own, strict=True)}
        return request.override(tools=[offered.get(id(tool), tool) for tool in request.tools])


def _question(shown: Sequence[BaseMessage], thread: Sequence[BaseMessage]) -> str:
    """The last question of a thread as a request shows it, or the last one of the request.

    Other middleware adds messages to a request alone, such as the names of files, which nobody said. Agents of
    deepagents leave out ids.
    """
    questions = [message for message in shown if isinstance(message, HumanMessage)]
    asked = next((message for message in reversed(thread) if isinstance(message, HumanMessage)), None)
    same = [one for one in questions if asked and (one is asked or (asked.id is not None and one.id == asked.id))]
    return str((same or questions)[-1].text) if questions else ""


def _visible(scope: CallScope, shown: Sequence[BaseMessage]) -> Visible:
    keys = [key_of(scope, message.id) for message in shown if message.id is not None]
    texts = [searchable_text(message) for message in shown if message.id is None]
    said = islice((message for message in reversed(shown) if isinstance(message, HumanMessage)), _MOST_BEFORE)
    return Visible(keys, texts, [str(message.text) for message in said][::-1])


def _before(said: Sequence[BaseMessage], thread: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages of a thread before some of its messages."""
    first = {message.id for message in said[:1]}
    return [message for message in takewhile(lambda message: message.id not in first, thread) if is_spoken(message)]


def _name(scope: CallScope) -> Hashable:
    """The key that tells a conversation of one owner apart from all others."""
    return scope.memory.scope, scope.session


def _invocation(runtime: Runtime[Any]) -> object:
    """The key of an invocation among others of its thread at the same time; LangGraph makes a writer for each."""
    return runtime.stream_writer


def _lack(scope: CallScope) -> str:
    return f"a turn of conversation {scope.session} is not stored"


def _namespace(config: RunnableConfig) -> str:
    """Of the agent whose hook has this configuration; empty if it is no part of a graph."""
    return str(config.get("configurable", {}).get("checkpoint_ns") or "").rpartition("|")[0]


def _nodes_around(config: RunnableConfig) -> list[str]:
    """The names of the nodes that run this agent, outermost first; nothing if it is no part of a graph."""
    return [node.partition(":")[0] for node in _namespace(config).split("|")]
