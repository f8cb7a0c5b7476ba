"""A chain with a memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

from memory_core import RecallOptions, run_sync
from memory_core.adapting import TURN, Deadline, limits, on_core
from memory_langchain.scope import Given, ScopeResolver
from memory_langchain.turns import Plan, Turn, joined, to_the_end

try:
    from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
    from langchain_core.runnables.base import coerce_to_runnable
    from langchain_core.runnables.config import (
        ensure_config,
        get_async_callback_manager_for_config,
        get_callback_manager_for_config,
        patch_config,
        set_config_context,
    )
    from langchain_core.runnables.graph import Graph
    from langchain_core.runnables.utils import get_unique_config_specs
    from pydantic import BaseModel, create_model
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
    from langchain_core.runnables.base import RunnableLike

_SCOPE: Final = [
    ConfigurableFieldSpec(id=name, annotation=str, description=meaning, is_shared=True)
    for name, meaning in (
        ("user_id", "The user who owns the memory."),
        ("session_id", "The conversation."),
        ("agent_id", "The agent that answers."),
    )
]

# Inputs and outputs of a chain can have any type, so this wrapper is a Runnable[Any, Any]. The keyword arguments of
# `invoke` and its variants belong to the chain and are passed on unchanged. LangChain inspects the parameters of stream
# functions, so `run_manager` must be there although it is not used. `invoke` and `ainvoke` start their run themselves,
# as LangChain's own sequences do: `_call_with_config` inspects signatures at every call, which takes longer than
# everything else it does.


class MemoryRunnable(Runnable[Any, Any]):
    """A chain that gets the history of the conversation and the user's memories, and whose turns are stored.

    `with_memory` creates it. The chain gets the history as messages under `history_key`, and under `memories_key`, as
    text, the memories that are relevant to the question and not part of the history (empty without such memories).
    Without these keys, the chain gets one list of messages: instructions and memories, history, question.

    A client that manages the conversation itself may send all of it as the question: messages that are already stored
    are neither shown nor stored twice.

    Question and answer are saved in one transaction when the chain has finished, just before `invoke` returns or the
    stream ends. Errors of the memory are raised. If the chain fails or is cancelled, or if its stream is abandoned,
    only the question is stored.
    """

    def __init__(self, chain: Runnable[Any, Any], scopes: ScopeResolver, plan: Plan) -> None:
        self._chain = chain
        self._scopes = scopes
        self._plan = plan

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The fields of `config["configurable"]`: those of the chain, and user, conversation and agent."""
        return get_unique_config_specs([*self._chain.config_specs, *_SCOPE])

    @override
    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """The chain's input without the keys that this class adds."""
        schema = cast("type[BaseModel]", self._chain.get_input_schema(config))  # of pydantic 2, as langchain-core 1 is
        fields = schema.model_fields
        added = {self._plan.history_key, self._plan.memories_key} & fields.keys()
        if not added:
            return schema
        asked: Any = {name: (field.annotation, field) for name, field in fields.items() if name not in added}
        return create_model(self.get_name("Input"), **asked)

    @override
    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """The chain's output."""
        return cast("type[BaseModel]", self._chain.get_output_schema(config))

    @override
    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """The chain's graph between `recall` and `remember`, what happens before and after it."""
        graph, chain = Graph(), self._chain.get_graph(config)
        chain.trim_first_node()
        chain.trim_last_node()
        asked, recalled = graph.add_node(self.get_input_schema(config)), graph.add_node(self, id="recall")
        first, last = graph.extend(chain)
        remembered, answered = graph.add_node(self, id="remember"), graph.add_node(self.get_output_schema(config))
        for before, after in ((asked, recalled), (recalled, first), (last, remembered), (remembered, answered)):
            if before is not None and after is not None:
                graph.add_edge(before, after)
        return graph

    @property
    @override
    def InputType(self) -> Any:
        """Any: `get_input_schema` says more."""
        return Any

    @property
    @override
    def OutputType(self) -> Any:
        """The chain's output."""
        return self._chain.OutputType

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the chain and save the turn; return when both are done."""
        config = ensure_config(config)
        run = get_callback_manager_for_config(config).on_chain_start(None, input, **self._run_of(config))
        try:
            inner = patch_config(config, callbacks=run.get_child())
            with set_config_context(inner) as context:
                output = context.run(self._invoke, input, inner, kwargs)
        except BaseException as failure:  # Ctrl-C included: a run that began has to end for its tracers
            run.on_chain_error(failure)
            raise
        run.on_chain_end(output)
        return output

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`."""
        config = ensure_config(config)
        run = await get_async_callback_manager_for_config(config).on_chain_start(None, input, **self._run_of(config))
        try:
            inner = patch_config(config, callbacks=run.get_child())
            with set_config_context(inner) as context:
                output = await asyncio.create_task(self._ainvoke(input, inner, kwargs), context=context)
        except BaseException as failure:  # cancellation included: a run that began has to end for its tracers
            await run.on_chain_error(failure)
            raise
        await run.on_chain_end(output)
        return output

    @override
    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Yield the chain's chunks as they arrive; the turn is saved after the last one."""
        yield from self.transform(iter([input]), config, **kwargs)

    @override
    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """As `stream`."""

        async def once() -> AsyncIterator[Any]:
            yield input

        async with aclosing(self.atransform(once(), config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    @override
    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Like `stream`, for an input that arrives in chunks; the chain starts when the input is complete."""
        turns: list[Turn] = []

        def run(
            pieces: Iterator[Any],
            run_manager: CallbackManagerForChainRun,  # noqa: ARG001
            config: RunnableConfig,
        ) -> Iterator[Any]:
            turn = run_sync(self._turn, joined(pieces), config)
            turns.append(turn)
            run_sync(turn.load)
            for chunk in self._chain.stream(turn.chain_input(), config, **kwargs):
                turn.chunks.append(chunk)
                yield chunk
            run_sync(turn.save, turn.answer(joined(turn.chunks)))

        try:
            yield from self._transform_stream_with_config(input, run, config)
        except BaseException as failure:  # closing the generator included: the question was asked all the same
            for turn in turns:
                run_sync(turn.keep, failure)
            raise

    @override
    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """As `transform`."""
        turns: list[Turn] = []

        async def run(
            pieces: AsyncIterator[Any],
            run_manager: AsyncCallbackManagerForChainRun,  # noqa: ARG001
            config: RunnableConfig,
        ) -> AsyncIterator[Any]:
            turn = await self._turn(joined([piece async for piece in pieces]), config)
            turns.append(turn)
            await on_core(turn.load)
            async for chunk in self._chain.astream(turn.chain_input(), config, **kwargs):
                turn.chunks.append(chunk)
                yield chunk
            await to_the_end(on_core(turn.save, turn.answer(joined(turn.chunks))))

        try:
            traced = self._atransform_stream_with_config(input, run, config)
            async with aclosing(
                cast("AsyncGenerator[Any, None]", traced)
            ) as chunks:  # it is a generator and must be closed
                async for chunk in chunks:
                    yield chunk
        except BaseException as failure:  # closing and cancellation included: the question was asked all the same
            for turn in turns:
                await to_the_end(on_core(turn.keep, failure))
            raise

    def _invoke(self, given: Any, config: RunnableConfig, kwargs: dict[str, Any]) -> Any:
        turn = run_sync(self._turn, given, config)
        run_sync(turn.load)
        try:
            output = self._chain.invoke(turn.chain_input(), config, **kwargs)
            answer = turn.answer(output)
        except BaseException as failure:  # Ctrl-C included: whatever ended the chain, the question is kept
            run_sync(turn.keep, failure)
            raise
        run_sync(turn.save, answer)
        return output

    async def _ainvoke(self, given: Any, config: RunnableConfig, kwargs: dict[str, Any]) -> Any:
        turn = await self._turn(given, config)
        await on_core(turn.load)
        try:
            output = await self._chain.ainvoke(turn.chain_input(), config, **kwargs)
            answer = turn.answer(output)
        except BaseException as failure:  # cancellation included: whatever ended the chain, the question is kept
            await to_the_end(on_core(turn.keep, failure))
            raise
        await to_the_end(on_core(turn.save, answer))
        return output

    def _run_of(self, config: RunnableConfig) -> dict[str, Any]:
        """Name and id of the run for traces and events; the id applies to this run only."""
        return {"name": config.get("run_name") or self.get_name(), "run_id": config.pop("run_id", None)}

    async def _turn(self, given: object, config: RunnableConfig) -> Turn:
        return Turn(self._plan, await self._scopes.resolved(self._plan.deadline, config, needs_session=True), given)


def with_memory(  # noqa: PLR0913  (the keywords of `RunnableWithMessageHistory`)
    chain: RunnableLike[Any, Any],
    memory: Given,
    *,
    input_key: str | None = None,
    history_key: str | None = None,
    memories_key: str | None = None,
    output_key: str | None = None,
    k: int = 4,
    recall: RecallOptions = TURN,
    history_limit: int | None = None,
    answer: Callable[[Any], object] | None = None,
    user_id: str | None = None,
    session_id: str | None = None,
    agent_id: str | None = None,
    timeout: float = limits.EXPLICIT_SECONDS,
) -> MemoryRunnable:
    """Give a chain a memory: conversation history, recalled memories, and every turn stored (see `MemoryRunnable`).

    ```python
    prompt = ChatPromptTemplate([("system", "{memories}"), ("placeholder", "{history}"), ("human", "{question}")])
    chain = with_memory(prompt | model, memory, input_key="question", history_key="history", memories_key="memories")
    ```

    Args:
        chain: Takes and returns a string, messages, or a dict of these.
        memory: A handle, a memory (a call may name the user), or a function that makes a handle.
        input_key: Key of the question in a dict; required if there are several keys and none is called `"input"`.
        history_key: Key under which the chain gets the history.
        memories_key: Key under which the chain gets the memories.
        output_key: Key of the answer; required if the chain returns a dict of several keys without `"output"`.
        k: Most memories to recall; 0 recalls none.
        recall: Recall options: budget, conditions, mode and so on.
        history_limit: Show only this many of the newest messages; by default all.
        answer: Makes the text or messages to store of an output of your own, such as `json.dumps` of a dict.
        user_id: Default user for calls that name none; see `memory_langchain.scope`.
        session_id: Default conversation for calls that name none.
        agent_id: Default agent for calls that name none.
        timeout: Seconds to read what a turn needs, or to store it, before it is an error; it may still be stored.

    Raises:
        ScopeError: A default is empty or contradicts the handle; during a call, if user or conversation is missing.
    """
    keys = (input_key, history_key, memories_key, output_key)
    plan = Plan(*keys, k, history_limit, answer, recall, Deadline(timeout, "a chain"))
    return MemoryRunnable(coerce_to_runnable(chain), ScopeResolver(memory, user_id, session_id, agent_id), plan)
