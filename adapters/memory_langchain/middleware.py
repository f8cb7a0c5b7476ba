"""Memory for agents made with `create_agent`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final
from weakref import WeakKeyDictionary, ref

from memory_core import (
    BoundMemory,
    ClosedError,
    EmbeddingError,
    MemoryCoreError,
    Recalled,
    RecallOptions,
    StorageError,
    Where,
    run_sync,
)
from memory_core.adapting import (
    NOTHING,
    TURN,
    Access,
    Deadline,
    LateError,
    Thread,
    Tool,
    digest,
    limits,
    on_core,
    reason_for_log,
)
from memory_langchain.agents import OF_THE_APPLICATION, filled
from memory_langchain.history import capture
from memory_langchain.messages import searchable_text, spoken, to_messages
from memory_langchain.recall import recall_for
from memory_langchain.scope import CallScope, Given, ScopeResolver
from memory_langchain.tools import DEFAULT_TOOLS, memory_tools

try:
    from typing import NotRequired

    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
    from langchain_core.runnables import RunnableConfig, ensure_config
    from langchain_core.tools import BaseTool
    from langgraph.channels import UntrackedValue
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`MemoryMiddleware` needs langchain: pip install 'memory-core[langgraph]'") from error

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

logger = logging.getLogger(__name__)

_BEGAN: Final = "memory_began"
"""Key of `ThreadState`."""
_CHECKPOINTER: Final = "__pregel_checkpointer"
"""Key of a run's checkpointer (langgraph 1.2, `_internal/_constants.py`)."""
_TOOL_NODE: Final = "tools"
"""Name of the node that calls tools, in agents of `create_agent` and by default in graphs (`ToolNode`)."""


class ThreadState(AgentState[Any]):
    """The state of an agent, with what its thread showed when the run began; no checkpoint keeps that."""

    memory_began: Annotated[NotRequired[dict[str, str]], UntrackedValue, PrivateStateAttr]


class MemoryMiddleware(AgentMiddleware[ThreadState, Any, Any]):
    """Recalls memories before each model call, stores the conversation, and gives the agent its memory tools.

    ```python
    agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=Context)
    thread = {"configurable": {"thread_id": "monday"}}
    agent.invoke({"messages": [("user", "Which tea?")]}, thread, context=Context(user_id="ann"))
    ```

    Recalled memories are appended to the system message of that request, after the agent's own instructions. They are
    not part of the state, so that no checkpoint keeps memories that a user deleted. Each request recalls again, also
    after an interrupt. Messages that the thread already shows are not recalled.

    The question is stored before the first model call, so that it is not lost if the model fails; answers are stored
    when the agent has finished. Each message is stored once, identified by its id, even if a run is resumed, retried or
    replayed; messages that were changed or deleted in the meantime stay so. Tool calls and results are not stored.
    A sub-agent that a tool calls with its `runtime.config` recalls and stores nothing: its question is the words of the
    calling agent, not of the user.

    Args:
        memory: A handle or a memory; a run may name the user. Or a function from user and context to a handle; see
            `memory_langchain.scope`.
        k: Most memories to recall; 0 recalls none.
        capture: Whether to store the conversation. Runs then need a conversation (`thread_id`).
        tools: The agent's memory tools; empty for none.
        recall: Recall options: budget, conditions, mode and so on.
        user_id: Default user for runs that name none; see `memory_langchain.scope`.
        agent_id: Default agent for runs that name none.
        timeout: How many seconds a run waits for one call of its memory, opening the memory and loading its model not
            counted. A memory, or a function that makes it, that hangs or fails costs the run its memory, which is
            logged, and nothing else; what was to be stored is stored when the memory answers again, or with the next
            run of the thread.

    Raises:
        ScopeError: A default is empty or contradicts the handle; during a run, if user or conversation is missing.
        ClosedError: During a run, if the application has closed the memory.
    """

    def __init__(  # noqa: PLR0913  (one optional keyword per setting)
        self,
        memory: Given,
        *,
        k: int = 4,
        capture: bool = True,
        tools: Sequence[Tool] = DEFAULT_TOOLS,
        recall: RecallOptions = TURN,
        user_id: str | None = None,
        agent_id: str | None = None,
        timeout: float = limits.CALL_SECONDS,
    ) -> None:
        super().__init__()
        self._scopes = ScopeResolver(memory, user_id=user_id, agent_id=agent_id)
        self._deadline = Deadline(timeout, "an agent")
        self._accesses: WeakKeyDictionary[object, Access] = WeakKeyDictionary()
        """By memory, since each user may have one."""
        self.state_schema = ThreadState
        if k < 0:
            raise ValueError(f"k is a number of memories and must be 0 or more, not {k}")
        self._k = k
        self._captures = capture
        self._recall = recall
        self._tools = tools
        self.tools = memory_tools(memory, tools=tools, user_id=user_id, agent_id=agent_id, timeout=timeout)

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Store the question, recall, and call the model."""
        scope = run_sync(self._named, ensure_config(), request.runtime)
        if scope is None:
            return handler(request)
        recalled = run_sync(self._enter, scope, request, asks=self._asks())
        return handler(filled(self._offered(request, scope), recalled.text))

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        scope = await self._named(ensure_config(), request.runtime)
        if scope is None:
            return await handler(request)
        recalled = await on_core(self._enter, scope, request, asks=self._asks())
        return await handler(filled(self._offered(request, scope), recalled.text))

    @override
    def before_agent(self, state: ThreadState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Note what the thread shows before the run changes it: a difference from the last run is a person's."""
        return {_BEGAN: _digests(state["messages"])} if self._asks() else None

    @override
    def after_agent(self, state: ThreadState, runtime: Runtime[Any]) -> None:
        """Store the turn; what the thread lacks since the run began, the run has trimmed."""
        if self._asks() and (scope := run_sync(self._named, ensure_config(), runtime)) is not None:
            thread, shown = state["messages"], replace(_shown(state), is_over=True)
            run_sync(self._keep, scope, thread, shown)

    @override
    async def aafter_agent(self, state: ThreadState, runtime: Runtime[Any]) -> None:
        """As `after_agent`."""
        if self._asks() and (scope := await self._named(ensure_config(), runtime)) is not None:
            thread, shown = state["messages"], replace(_shown(state), is_over=True)
            await on_core(self._keep, scope, thread, shown)

    async def _named(self, config: RunnableConfig, runtime: Runtime[Any]) -> CallScope | None:
        """Whose memory a run has; `None` if a function makes it and does not do so, which costs the run its memory."""
        try:
            return await self._scopes.resolved(
                self._deadline, config, context=runtime.context, needs_session=self._captures
            )
        except LateError:  # logged
            return None
        except StorageError as error:
            logger.error("a run goes on without its memory: %s", reason_for_log(error))  # noqa: TRY400  (may quote)
            return None

    def _asks(self) -> bool:
        """Whether the questions of this run are stored."""
        return self._captures and not _is_called_by_a_tool()

    async def _enter(self, scope: CallScope, request: ModelRequest[Any], *, asks: bool) -> Recalled:
        shown = to_messages(request.messages, role=HumanMessage)  # other middleware may add dicts and tuples
        thread, question = _of_thread(shown, request.state["messages"])
        stored: Sequence[str] | None = None
        if asks and _is_asked(thread):
            stored = await self._keep(scope, thread, _shown(request.state))
        try:
            return await self._access(scope.memory).run(
                lambda: recall_for(scope, shown, self._recall, k=self._k, question=question, stored=stored),
                seconds=self._deadline.seconds,
            )
        except ClosedError:
            raise
        except (StorageError, EmbeddingError):  # it is logged once that the store does not answer
            return NOTHING
        except MemoryCoreError:
            raise
        except Exception as error:  # noqa: BLE001  (a store or a function of the options may raise anything)
            logger.error("a run goes on without its memory: %s", reason_for_log(error))  # noqa: TRY400  (may quote)
            return NOTHING

    async def _keep(self, scope: CallScope, thread: Sequence[BaseMessage], shown: Thread) -> Sequence[str] | None:
        """Store what is new in a thread; returns the ids of the records that were stored before, unless it fails."""
        # All of a thread that LangGraph keeps, since earlier runs may have gone without their memory.
        said = spoken(thread, is_whole=shown.is_whole)
        lack = f"a turn of conversation {scope.session} is not stored"
        with self._deadline.spared(lack, Exception, but=OF_THE_APPLICATION):
            return await self._deadline.write(
                "remembering a conversation", lambda: capture(scope, said, thread=thread, shown=shown)
            )
        return None

    def _access(self, handle: BoundMemory) -> Access:
        """Access to the store of a memory, which is tested with a search for what nobody has stored."""
        home, scope = ref(handle.memory), handle.scope

        async def answers() -> None:
            if (memory := home()) is not None:
                where = Where(data={"memory_langchain": "test"})
                await BoundMemory(memory, scope).search("Is anybody there?", where=where, limit=1)

        return self._accesses.setdefault(handle.memory, Access(answers))

    def _offered(self, request: ModelRequest[Any], scope: CallScope) -> ModelRequest[Any]:
        """The request with tools that offer the spaces of this call, if each call has its own."""
        if self._scopes.handle is not None or not scope.reach.spaces:
            return request
        offered = {id(mine): tool for mine, tool in zip(self.tools, self._tools_of(scope.reach), strict=True)}
        return request.override(tools=[offered.get(id(tool), tool) for tool in request.tools])

    def _tools_of(self, reach: BoundMemory) -> Sequence[BaseTool]:
        return memory_tools(reach, tools=self._tools, timeout=self._deadline.seconds)


def _of_thread(
    shown: Sequence[BaseMessage], thread: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], BaseMessage | None]:
    """The messages of a request that are of the thread, as the request shows them, and the last question among them.

    Other middleware adds messages to a request alone, such as the names of files, which nobody said. If it shows
    another question instead of the last one, the question is `None`. Agents of deepagents leave out ids.
    """
    known, same = {message.id for message in thread} - {None}, {id(message) for message in thread}
    said = [message for message in shown if message.id in known or id(message) in same]
    asked = next((message for message in reversed(thread) if isinstance(message, HumanMessage)), None)
    return said, next((one for one in said if asked and (one is asked or (asked.id and one.id == asked.id))), None)


def _is_asked(thread: Sequence[BaseMessage]) -> bool:
    """Whether a thread ends with a question, behind which other middleware may have added instructions."""
    last = next((message for message in reversed(thread) if not isinstance(message, SystemMessage)), None)
    return isinstance(last, HumanMessage)


def _digests(thread: Sequence[BaseMessage]) -> dict[str, str]:
    return {message.id: digest(searchable_text(message)) for message in thread if message.id is not None}


def _shown(state: Mapping[str, Any]) -> Thread:
    """How the thread of a run is visible: LangGraph keeps it if there is a checkpointer, and copies the checkpoint that
    a caller names into the metadata of the run."""
    config = ensure_config()
    return Thread(
        (),
        began=state.get(_BEGAN),
        is_whole=config.get("configurable", {}).get(_CHECKPOINTER) is not None,
        is_part=bool(_nodes_around()),
        is_fork=bool(config.get("metadata", {}).get("checkpoint_id")),
    )


def _is_called_by_a_tool() -> bool:
    """Whether this run is a sub-agent's: a tool started it with its own configuration, in the same conversation."""
    return _TOOL_NODE in _nodes_around()


def _nodes_around() -> list[str]:
    """The names of the nodes that run this agent, outermost first; nothing if it is no part of a graph."""
    around = str(ensure_config().get("configurable", {}).get("checkpoint_ns") or "").split("|")[:-1]
    return [node.partition(":")[0] for node in around]
