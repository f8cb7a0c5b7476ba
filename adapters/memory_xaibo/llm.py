"""A model with a memory: what an agent hears and says is remembered, and what is known is shown to its model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, cast
from weakref import ReferenceType, ref

from memory_core import ClosedError, Draft, MemoryRecord
from memory_core.adapting import (
    TURN,
    Asked,
    Deadline,
    Thread,
    Visible,
    block_of_turn,
    check_count,
    ids_of_shown,
    keep,
    limits,
    new_id,
    on_core,
    storable,
    those,
)
from memory_xaibo.messages import role_of, spoken, text_of, with_block
from memory_xaibo.modules import Config, conversation_of, injects, options
from memory_xaibo.protocols import LLMMessage, LLMOptions, LLMProtocol, LLMResponse, LLMRole, MemoryProtocol

DEFAULT_K: Final = 4
"""Memories; as for LangChain."""
_MOST_TURNS: Final = 1_000
"""Most turns at the same time of one module."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent is answering."""

    question: ReferenceType[LLMMessage]
    """With it the turn is forgotten, before another message can have its identity."""
    said: Sequence[Visible]
    """What the two have said, up to the question, which is the last and has an id."""
    block: str
    """What its model is shown."""

    def answered(self, answer: str) -> Sequence[Visible]:
        """The conversation with an answer. A later one of the same turn replaces it: reasoning comes before it."""
        return [*self.said, Visible("assistant", storable(answer), f"{self.said[-1].id} answer")]


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
        config: `k`, most memories to recall (4; 0 recalls nothing), and `timeout`, how many seconds a call of the
            memory may take (5).

    Raises:
        InvalidInputError: An option is unknown, or the memory is not a `CoreMemory`.
        ScopeError: The memory names no session.
        ClosedError: During a turn, if the application has closed the memory.
    """

    @injects("llm", "memory")
    def __init__(self, llm: LLMProtocol, memory: MemoryProtocol, config: Config | None = None) -> None:
        given = options(config, "MemoryLLM", ("k", "timeout"))
        self._llm, self._conversation = llm, conversation_of(memory)
        self._deadline = Deadline(given.get("timeout", limits.CALL_SECONDS), "a Xaibo agent")
        self._k = check_count("k", given.get("k", DEFAULT_K), 0)
        self._turns: dict[int, Turn] = {}
        """By the identity of the question: a turn calls its model several times, and several turns may do so."""

    async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:
        """Call the model with what is known, and store the question and the answer."""
        turn = await self._turn(messages)
        if turn is None:
            return await self._llm.generate(messages, options)
        response = await self._llm.generate(with_block(messages, turn.block), options)
        if not response.tool_calls and response.content.strip():
            await self._remember(turn.answered(response.content))
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
            await self._remember(turn.answered(answer))

    async def _turn(self, messages: Sequence[LLMMessage]) -> Turn | None:
        """The turn of the last message of the user, which begins with its first call; `None` if that has no text."""
        at = max((at for at, message in enumerate(messages) if message.role == LLMRole.USER), default=None)
        if at is None or not text_of(messages[at]).strip():
            return None
        question = messages[at]
        if (turn := self._turns.get(id(question))) is not None:
            return turn
        said, turns, key = _said(messages[: at + 1]), self._turns, id(question)
        turn = Turn(ref(question, lambda _: turns.pop(key, None)), said, await self._recalled(said))
        turns[key] = turn
        if len(turns) > _MOST_TURNS:
            del turns[next(iter(turns))]
        await self._remember(said)
        return turn

    async def _recalled(self, said: Sequence[Visible]) -> str:
        if not self._k:
            return ""
        before = [message.text for message in said[:-1] if message.role == "user"]
        with self._deadline.spared("an agent answers without its memory", Exception, but=(ClosedError,)):
            return await self._deadline.read("recalling memories", lambda: on_core(self._block, said, before))
        return ""

    async def _block(self, said: Sequence[Visible], before: Sequence[str]) -> str:
        place, shown = self._conversation, {message.text for message in said}

        def shows(record: MemoryRecord) -> bool:
            return record.text in shown

        ids = await ids_of_shown(place.handle, place.session, len(said), shows)
        asked = Asked(said[-1].text, before, shows, those("id", ids))
        return (await block_of_turn(place.handle, asked, TURN, most=self._k)).text

    async def _remember(self, said: Sequence[Visible]) -> None:
        """Store the messages of the turn that are not stored: those with an id."""
        place = self._conversation
        new = [at for at, message in enumerate(said) if message.id is not None]

        async def drafts(places: Sequence[int]) -> list[Draft]:
            chosen = (said[at] for at in places)
            return [spoken(message.role or "user", message.text, place.session) for message in chosen]

        with self._deadline.spared("a turn is not remembered", Exception, but=(ClosedError,)):
            await self._deadline.write(
                "remembering a turn",
                lambda: on_core(keep, place.handle, place.session, Thread(said), new, drafts),
            )


def _said(messages: Sequence[LLMMessage]) -> list[Visible]:
    """What the two have said. Xaibo's servers put a question into the history, too, so that it comes twice."""
    said = [
        Visible(role_of(message), storable(text_of(message)), None)
        for message in messages
        if message.role in (LLMRole.USER, LLMRole.ASSISTANT) and text_of(message).strip()
    ]
    once = [one for one, following in zip_longest(said, said[1:]) if one.role != "user" or one != following]
    return [*once[:-1], Visible("user", once[-1].text, new_id())]
