"""A model with a memory: what an agent hears and says is remembered, and what is known is shown to its model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, cast
from weakref import ReferenceType, ref

from memory_core import PUSHED, Draft
from memory_core.adapting import (
    OF_THE_APPLICATION,
    Conversation,
    Conversations,
    Visible,
    check_count,
    limits,
    new_id,
    storable,
)
from memory_xaibo.messages import role_of, spoken, text_of, with_block
from memory_xaibo.modules import Config, conversation_of, injects, options
from memory_xaibo.protocols import LLMMessage, LLMOptions, LLMProtocol, LLMResponse, LLMRole, MemoryProtocol

_MOST_TURNS: Final = 1_000
"""Most turns at the same time of one module."""


@dataclass(frozen=True, slots=True)
class AskedTurn:
    """The turn that an agent is answering."""

    question: ReferenceType[LLMMessage]
    """With it the turn is forgotten, before another message can have its identity."""
    said: Sequence[Draft]
    """The messages of the two, up to the question, which is the last and has a key."""
    answer_key: str
    """The key of the answer. A later answer of the same turn replaces an earlier one: reasoning comes before it."""
    block: str
    """The block that its model is shown."""


class MemoryLLM(LLMProtocol):
    """A model with the memory of its agent: put it between the orchestrator and the model.

    ```yaml
    - {module: memory_xaibo.MemoryLLM, id: remembering}
    exchange:
      - {module: orchestrator, protocol: LLMProtocol, provider: remembering}
      - {module: remembering, protocol: LLMProtocol, provider: llm}
    ```

    The user's message is stored before the model is called, and its answer when it has come, in the session of the
    memory; calls of tools and their results are not. The memories that are relevant to the message, and not among the
    messages, are appended to the instructions for every call of the turn. It works with each history, also with those
    of Xaibo's servers, which a client sends with each request. A memory that hangs or fails is logged, and the agent
    answers without it.

    Args:
        llm: The model.
        memory: The agent's `CoreMemory`, which names the session.
        config: `k`, most memories to recall (by default as many as fit; 0 recalls nothing), and `timeout`, how many
            seconds a call of the memory may take (5).

    Raises:
        InvalidInputError: An option is unknown, or the memory is not a `CoreMemory`.
        ScopeError: The memory names no session.
        ClosedError: During a turn, if the application has closed the memory.
    """

    @injects("llm", "memory")
    def __init__(self, llm: LLMProtocol, memory: MemoryProtocol, config: Config | None = None) -> None:
        given = options(config, "MemoryLLM", ("k", "timeout"))
        self._llm, self._place = llm, conversation_of(memory)
        self._conversations = Conversations(
            "xaibo",
            "a Xaibo agent",
            seconds=given.get("timeout", limits.CALL_SECONDS),
            options=replace(PUSHED, limit=check_count("k", given["k"], 0)) if "k" in given else PUSHED,
        )
        self._turns: dict[int, AskedTurn] = {}
        """By the identity of the question: a turn calls its model several times, and several turns may do so."""

    async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:
        """Call the model with what is known, and store the question and the answer."""
        turn = await self._turn(messages)
        if turn is None:
            return await self._llm.generate(messages, options)
        response = await self._llm.generate(with_block(messages, turn.block), options)
        if not response.tool_calls and response.content.strip():
            await self._answered(turn, response.content)
        return response

    async def generate_stream(
        self, messages: list[LLMMessage], options: LLMOptions | None = None
    ) -> AsyncIterator[str]:
        """As `generate`; the answer is stored when its last part has come."""
        turn = await self._turn(messages)
        parts: list[str] = []
        shown = messages if turn is None else with_block(messages, turn.block)
        stream = cast("AsyncGenerator[str, None]", self._llm.generate_stream(shown, options))
        async with aclosing(stream):
            async for part in stream:
                parts.append(part)
                yield part
        if turn is not None and (answer := "".join(parts)).strip():
            await self._answered(turn, answer)

    async def _turn(self, messages: Sequence[LLMMessage]) -> AskedTurn | None:
        """The turn of the last message of the user, which begins with its first call; `None` if that has no text."""
        at = max((at for at, message in enumerate(messages) if message.role == LLMRole.USER), default=None)
        if at is None or not text_of(messages[at]).strip():
            return None
        question = messages[at]
        if (turn := self._turns.get(id(question))) is not None:
            return turn
        turns, key, name, conversation = self._turns, id(question), new_id(), self._conversation
        said = self._said(messages[: at + 1], conversation.key(name))
        before = [draft.text for draft in said[:-1] if draft.role == "user"]
        block = await conversation.recall(said[-1].text, Visible((), [draft.text for draft in said], before))
        turn = AskedTurn(ref(question, lambda _: turns.pop(key, None)), said, conversation.key(name, "answer"), block)
        turns[key] = turn
        if len(turns) > _MOST_TURNS:
            del turns[next(iter(turns))]
        await self._remember(said[-1], said[:-1])
        return turn

    @property
    def _conversation(self) -> Conversation:
        return self._conversations.of(self._place.handle, self._place.session)

    async def _answered(self, turn: AskedTurn, answer: str) -> None:
        draft = spoken("assistant", storable(answer), self._place.session)
        await self._remember(replace(draft, source_key=turn.answer_key), turn.said)

    async def _remember(self, message: Draft, before: Sequence[Draft]) -> None:
        """Store a message of the turn; a client that sends its conversation again may have sent it before."""
        conversation = self._conversation
        with self._conversations.deadline.spared("a turn is not remembered", Exception, but=OF_THE_APPLICATION):
            await conversation.remember([message], context=before, ids_may_differ=bool(before))
            if message.source_key is not None:
                await conversation.edit(message.source_key, message.text)
            await conversation.settled()

    def _said(self, messages: Sequence[LLMMessage], key: str) -> list[Draft]:
        """The messages of the two. Xaibo's servers put a question into the history, too, so that it comes twice."""
        said = [
            spoken(role_of(message), storable(text_of(message)), self._place.session)
            for message in messages
            if message.role in (LLMRole.USER, LLMRole.ASSISTANT) and text_of(message).strip()
        ]
        once = [one for one, following in zip_longest(said, said[1:]) if one.role != "user" or one != following]
        return [*once[:-1], replace(once[-1], source_key=key)]
