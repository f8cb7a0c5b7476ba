"""A chain with a memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.runnables import (
    ConfigurableFieldSpec,
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableSequence,
)
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import BaseModel, create_model
from typing_extensions import override

from memory_core import PUSHED, RecallOptions, run_sync
from memory_core.adapting import Deadline, limits, on_core
from memory_langchain.scope import Given, ScopeResolver
from memory_langchain.turns import ChainTurn, Plan, joined, to_the_end

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
# `invoke` and its variants belong to the chain and are passed on unchanged. LangChain's types ask for `run_manager`.


class MemoryRunnable(Runnable[Any, Any]):
    """A chain that gets the history of the conversation and the user's memories, and whose turns are stored.

    `with_memory` creates it. The chain gets the history as messages under `history_key`, and under `memories_key`, as
    text, the memories that are relevant to the question and not part of the history (empty without such memories).
    Without these keys, the chain gets one list of messages: instructions and memories, history, question.

    A client that manages the conversation itself may send all of it as the question: messages that are already stored
    are neither shown nor stored twice.

    Question and answer are saved in one transaction when the chain has finished, just before `invoke` returns or the
    stream ends. Errors of the memory are raised. If the chain fails or is cancelled, or if its stream is abandoned,
    only the question is stored, and with `keep_partial` the words of the answer so far; the error is the chain's.

    A call whose form of output has no answer in it, such as a graph that streams with
    `stream_mode="updates"`, is refused before the chain runs.
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

    @property
    @override
    def OutputType(self) -> Any:
        """The chain's output."""
        return self._chain.OutputType

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the chain and save the turn; return when both are done."""
        self._plan.check_form(kwargs)
        return self._call_with_config(self._invoke, input, config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`."""
        self._plan.check_form(kwargs)
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    @override
    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Yield the chain's chunks as they arrive; the turn is saved after the last one."""
        self._plan.check_form(_streamed(self._chain, kwargs))
        with ExitStack() as turns:  # also if this generator is closed, which LangChain does not tell the one inside

            def run(
                given: Iterator[Any],
                run_manager: CallbackManagerForChainRun,  # noqa: ARG001
                config: RunnableConfig,
            ) -> Iterator[Any]:
                turn = turns.enter_context(run_sync(self._turn, joined(given), config))
                for chunk in self._chain.stream(turn.chain_input(), config, **kwargs):
                    turn.chunks.append(chunk)
                    yield chunk
                run_sync(turn.save, turn.answer(joined(turn.chunks)))

            yield from self._transform_stream_with_config(iter([input]), run, config)

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """As `stream`."""
        self._plan.check_form(_streamed(self._chain, kwargs))

        async def once() -> AsyncIterator[Any]:
            yield input

        async with AsyncExitStack() as turns:

            async def run(
                given: AsyncIterator[Any],
                run_manager: AsyncCallbackManagerForChainRun,  # noqa: ARG001
                config: RunnableConfig,
            ) -> AsyncIterator[Any]:
                turn = await turns.enter_async_context(await self._turn(await anext(given), config))
                async for chunk in self._chain.astream(turn.chain_input(), config, **kwargs):
                    turn.chunks.append(chunk)
                    yield chunk
                await to_the_end(on_core(turn.save, turn.answer(joined(turn.chunks))))

            traced = cast("AsyncGenerator[Any]", self._atransform_stream_with_config(once(), run, config))
            async with aclosing(traced) as chunks:
                async for chunk in chunks:
                    yield chunk

    def _invoke(
        self,
        given: Any,
        run_manager: CallbackManagerForChainRun,  # noqa: ARG002
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        with run_sync(self._turn, given, config) as turn:
            output = self._chain.invoke(turn.chain_input(), config, **kwargs)
            run_sync(turn.save, turn.answer(output))
        return output

    async def _ainvoke(
        self,
        given: Any,
        run_manager: AsyncCallbackManagerForChainRun,  # noqa: ARG002
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        async with await self._turn(given, config) as turn:
            output = await self._chain.ainvoke(turn.chain_input(), config, **kwargs)
            await to_the_end(on_core(turn.save, turn.answer(output)))
        return output

    async def _turn(self, given: object, config: RunnableConfig) -> ChainTurn:
        return ChainTurn(
            self._plan, await self._scopes.resolved(self._plan.deadline, config, needs_session=True), given
        )


def _streamed(chain: Runnable[Any, Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options with which a chain streams: where it ends in a graph, that graph's own mode unless the call says
    another one."""
    if isinstance(chain, RunnableBinding):
        return _streamed(chain.bound, {**chain.kwargs, **kwargs})
    if isinstance(chain, RunnableSequence):
        return _streamed(chain.last, {})
    mode = getattr(chain, "stream_mode", None)
    return kwargs if mode is None else {"stream_mode": mode, **kwargs}


def with_memory(  # noqa: PLR0913  (the keywords of `RunnableWithMessageHistory`)
    chain: RunnableLike[Any, Any],
    memory: Given,
    *,
    input_key: str | None = None,
    history_key: str | None = None,
    memories_key: str | None = None,
    output_key: str | None = None,
    recall: RecallOptions = PUSHED,
    history_limit: int | None = None,
    keep_partial: bool = False,
    answer: Callable[[Any], object] | None = None,
    timeout: float = limits.EXPLICIT_SECONDS,
) -> MemoryRunnable:
    """Give a chain a memory: conversation history, recalled memories, and every turn stored (see `MemoryRunnable`).

    ```python
    prompt = ChatPromptTemplate([("system", "{memories}"), ("placeholder", "{history}"), ("human", "{question}")])
    chain = with_memory(prompt | model, memory, input_key="question", history_key="history", memories_key="memories")
    ```

    Args:
        chain: Takes and returns a string, messages, or a dict of these.
        memory: A handle, a memory (a call names the user), or a function that makes a handle; see
            `memory_langchain.scope`.
        input_key: Key of the question in a dict; required if there are several keys and none is called `"input"`.
        history_key: Key under which the chain gets the history.
        memories_key: Key under which the chain gets the memories.
        output_key: Key of the answer; required if the chain returns a dict of several keys without `"output"`.
        recall: Number, budget, conditions and so on of the memories; a limit of 0 recalls nothing.
        history_limit: Show only this many of the newest messages, at most 9,999; by default all.
        keep_partial: Store the streamed words of an answer that was never completed.
        answer: Makes the text or messages to store of an output of your own, such as `json.dumps` of a dict.
        timeout: Seconds to read what a turn needs, or to store it, before it is an error; it may still be stored.

    Raises:
        ScopeError: During a call, if user or conversation is missing or contradicts the handle.
    """
    keys = (input_key, history_key, memories_key, output_key)
    plan = Plan(*keys, history_limit, keep_partial, answer, recall, Deadline(timeout, "a chain"))
    return MemoryRunnable(coerce_to_runnable(chain), ScopeResolver(memory), plan)
