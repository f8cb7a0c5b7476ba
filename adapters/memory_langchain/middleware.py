"""Memory for agents made with `create_agent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from memory_core import BoundMemory, Memory, MemoryRecord, Recalled, RecallOptions, run_sync
from memory_core.adapting import Tool, on_core
from memory_langchain.history import capture
from memory_langchain.messages import message_id, searchable_text
from memory_langchain.recall import DEFAULT_RECALL, recall
from memory_langchain.scope import CallScope, ScopeResolver
from memory_langchain.tools import DEFAULT_TOOLS, memory_tools
from memory_langchain.turns import with_memories

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
    from langchain_core.runnables import ensure_config
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`MemoryMiddleware` needs langchain: pip install 'memory-core[langgraph]'") from error

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

_WRITTEN_BY: Final = "lc_source"
"""How LangChain marks a message that one of its middlewares wrote (langchain 1.4, `summarization.py`)."""


class MemoryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Recalls before the model is asked, keeps what was said, and gives the agent its memory tools.

    ```python
    agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=Context)
    thread = {"configurable": {"thread_id": "monday"}}
    agent.invoke({"messages": [("user", "Which tea?")]}, thread, context=Context(user_id="ann"))
    ```

    What is recalled stands at the end of the system message of that one request, behind the agent's own instructions.
    It is part of no state, so that no checkpoint keeps what a user had forgotten; each request recalls anew, also
    after an interrupt. Messages that the thread shows are not recalled on top.

    The question is kept when the model is first asked, so that it is not lost if the model fails; answers are kept
    when the agent is done. Each message once, by its id, whatever is resumed, retried or replayed; and one that was
    changed or forgotten meanwhile stays so. Tool calls and their results are not kept.

    Args:
        memory: A handle, whose user a run may name, or a memory.
        k: How many memories to recall at most; 0 recalls none.
        capture: Keep what was said. It needs a conversation (`thread_id`); without, a run needs none.
        tools: The agent's memory tools; empty for none.
        recall: How to recall: budget, conditions, mode and the rest.
        user_id: The user, unless a run names one; see `memory_langchain.scope`.
        agent_id: The agent, unless a run names one.

    Raises:
        ScopeError: A default is empty or contradicts the handle; in each run, if user or conversation is missing.
    """

    def __init__(
        self,
        memory: BoundMemory | Memory,
        *,
        k: int = 4,
        capture: bool = True,
        tools: Sequence[Tool] = DEFAULT_TOOLS,
        recall: RecallOptions = DEFAULT_RECALL,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        super().__init__()
        if k < 0:
            raise ValueError(f"k counts memories, so it cannot be negative: {k}")
        self._scopes = ScopeResolver(memory, user_id=user_id, agent_id=agent_id)
        self._k = k
        self._captures = capture
        self._recall = recall
        self.tools = memory_tools(memory, tools=tools, user_id=user_id, agent_id=agent_id)

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Keep the question, recall, ask."""
        return handler(self._filled(request, run_sync(self._enter, self._scope(request.runtime), request.messages)))

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        recalled = await on_core(self._enter, self._scope(request.runtime), request.messages)
        return await handler(self._filled(request, recalled))

    @override
    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Keep the turn."""
        if self._captures:
            run_sync(capture, self._scope(runtime), spoken(state["messages"]), thread=state["messages"])

    @override
    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `after_agent`."""
        if self._captures:
            await on_core(capture, self._scope(runtime), spoken(state["messages"]), thread=state["messages"])

    def _scope(self, runtime: Runtime[Any]) -> CallScope:
        return self._scopes.resolve(ensure_config(), context=runtime.context, needs_session=self._captures)

    async def _enter(self, scope: CallScope, messages: Sequence[BaseMessage]) -> Recalled:
        if self._captures and messages and isinstance(messages[-1], HumanMessage):
            await capture(scope, spoken(messages), thread=messages)
        ids = {message.id for message in messages if message.id is not None}
        texts = {searchable_text(message) for message in messages}  # a client may send it again under other ids

        def is_shown(record: MemoryRecord) -> bool:
            return record.session == scope.session and (message_id(record) in ids or record.text in texts)

        return await recall(scope, _question(messages), self._recall, k=self._k, is_shown=is_shown)

    def _filled(self, request: ModelRequest[Any], recalled: Recalled) -> ModelRequest[Any]:
        if not recalled:
            return request
        return request.override(system_message=with_memories(request.system_message, recalled.text))


def spoken(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """What was said in the last turn of a thread: the latest questions, and the answers since, without tool calls.

    Summaries that LangChain's own middleware puts into a thread as human messages were said by nobody.
    """
    start = len(messages)
    while start > 0 and not isinstance(messages[start - 1], HumanMessage):
        start -= 1
    while start > 0 and isinstance(messages[start - 1], HumanMessage):
        start -= 1
    return [
        message
        for message in messages[start:]
        if (isinstance(message, HumanMessage) and _WRITTEN_BY not in message.additional_kwargs)
        or (isinstance(message, AIMessage) and not message.tool_calls)
    ]


def _question(messages: Sequence[BaseMessage]) -> str:
    return next((str(message.text) for message in reversed(messages) if isinstance(message, HumanMessage)), "")
