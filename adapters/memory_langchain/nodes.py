"""Recalling and remembering as nodes of anybody's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from memory_core import PUSHED, MemoryRecord, RecallOptions, run_sync
from memory_core.adapting import Asked, Conversations, Deadline, block_of_turn, limits, on_core, one_of
from memory_langchain.history import FRAMEWORK, draft_of, key_of
from memory_langchain.messages import searchable_text, spoken_text, to_messages
from memory_langchain.run_start import astart_of, start_of
from memory_langchain.scope import CallScope, Given, ScopeResolver, field_of
from memory_langchain.thread_changes import MESSAGES, Start, said_in_run


def recall_node(
    memory: Given,
    *,
    messages_key: str = MESSAGES,
    memories_key: str = "memories",
    recall: RecallOptions = PUSHED,
    timeout: float = limits.EXPLICIT_SECONDS,
) -> Runnable[Any, dict[str, str]]:
    """A node that recalls memories for the last question and writes them into the state, as text.

    ```python
    class State(MessagesState):
        memories: Annotated[str, UntrackedValue(str)]  # in no checkpoint, which would keep what a user deletes


    graph = StateGraph(State).add_node("recall", recall_node(memory))
    ```

    Args:
        memory: A handle or a memory (a run names the user), or a function from user and context to a handle; see
            `memory_langchain.scope`.
        messages_key: Key of the messages in the state; those are not recalled again.
        memories_key: Key of the text in the state; it is empty if nothing is relevant.
        recall: Number, budget, conditions and so on of the memories.
        timeout: The number of seconds that the node waits for its memory, before it is an error.

    Raises:
        ScopeError: During a run, if no user is named.
    """
    scopes, deadline = ScopeResolver(memory), Deadline(timeout, "a graph")

    async def recalled(state: object, config: RunnableConfig) -> dict[str, str]:
        scope, messages = await scopes.resolved(deadline, config), _messages(state, messages_key)
        asked = _asked(scope, messages)
        found = await deadline.read("recalling", lambda: block_of_turn(scope.reach, asked, recall))
        return {memories_key: found.text}

    def sync(state: object, config: RunnableConfig) -> dict[str, str]:
        return run_sync(recalled, state, config)

    async def asynchronous(state: object, config: RunnableConfig) -> dict[str, str]:
        return await on_core(recalled, state, config)

    return RunnableLambda(sync, asynchronous, name="recall")


def remember_node(
    memory: Given, *, messages_key: str = MESSAGES, timeout: float = limits.EXPLICIT_SECONDS
) -> Runnable[Any, dict[str, str]]:
    """A node that stores the turn: what the person of this run has said, and the answers to it, without tool calls.

    Each message is stored once, identified by its id. Put the node behind the model, and before it as well if the
    question of a run that fails has to be kept. A run needs a conversation (`thread_id`). What a person changes in the
    thread is not followed; `MemoryMiddleware` does that.

    Args:
        memory: See `recall_node`, as for all other arguments.
        messages_key: Key of the messages in the state.
        timeout: As in `recall_node`; what was to be stored still may be, and may be stored again.

    Raises:
        ScopeError: During a run, if no user or no conversation is named.
    """
    scopes, conversations = ScopeResolver(memory), Conversations(FRAMEWORK, "a graph", seconds=timeout)

    async def remembered(start: Start | None, state: object, config: RunnableConfig) -> dict[str, str]:
        scope = await scopes.resolved(conversations.deadline, config, needs_session=True)
        conversation = conversations.of(scope.memory, scope.session or "")
        said = said_in_run(start, _messages(state, messages_key))
        await conversation.remember(draft_of(message, scope) for message in said)
        await conversation.settled()
        return {}

    def sync(state: object, config: RunnableConfig) -> dict[str, str]:
        return run_sync(remembered, start_of(config), state, config)

    async def asynchronous(state: object, config: RunnableConfig) -> dict[str, str]:
        return await on_core(remembered, await astart_of(config), state, config)

    return RunnableLambda(sync, asynchronous, name="remember")


def _asked(scope: CallScope, messages: Sequence[BaseMessage]) -> Asked:
    """The last question of messages, and what they show, which is not recalled again."""
    keys = [key_of(scope, message.id) for message in messages if message.id is not None]
    shown, texts = frozenset(keys), {form(one) for one in messages for form in (searchable_text, spoken_text)}

    def is_shown(record: MemoryRecord) -> bool:
        is_here = record.session == scope.session
        return is_here and (record.source_key in shown or record.text in texts)  # a client may resend it without its id

    said = [str(message.text) for message in messages if message.type == "human"]
    return Asked(said[-1] if said else "", said[:-1], is_shown, one_of("source_key", keys))


def _messages(state: object, key: str) -> list[BaseMessage]:
    """The messages in the state of a graph: a mapping, a dataclass or a pydantic model."""
    found = field_of(state, key)
    if found is None:
        raise KeyError(f"the state has no {key!r}; name the key of its messages as messages_key=")
    return to_messages(found, role=HumanMessage)
