"""One turn of a chain: its input, its output, and the messages to store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

from memory_core import ClosedError, MemoryRecord, RecallOptions, run_sync
from memory_core.adapting import Asked, Deadline, block_of_turn, on_core, one_of, reason_for_log
from memory_langchain.history import first_sent_again, read, read_window, write_turn
from memory_langchain.messages import spoken_text, to_message, to_messages
from memory_langchain.scope import CallScope

logger = logging.getLogger(__name__)

_DEFAULT_INPUT: Final = "input"
_DEFAULT_OUTPUT: Final = "output"
_MOST_SHOWN: Final = 9_999
"""Largest limit of a history: with one more, to see whether it is cut, it is what the core lists at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Keys of the turn in a chain's input and output, and the amount of memory to add."""

    input_key: str | None
    history_key: str | None
    memories_key: str | None
    output_key: str | None
    history_limit: int | None
    keep_partial: bool
    answer: Callable[[Any], object] | None
    recall: RecallOptions
    deadline: Deadline

    def __post_init__(self) -> None:
        if self.history_limit is not None and not 0 <= self.history_limit <= _MOST_SHOWN:
            raise ValueError(f"history_limit must be from 0 to {_MOST_SHOWN:,}, or None, not {self.history_limit}")

    @property
    def merges(self) -> bool:
        """True if history and memories are prepended to the question as messages."""
        return self.history_key is None and self.memories_key is None

    def check_form(self, options: Mapping[str, object]) -> None:
        """Refuse a call of a graph in whose form of output no answer stands.

        Raises:
            ValueError: It asks for such a form, and no function `answer=` reads it.
        """
        for name, readable in (("stream_mode", "values"), ("subgraphs", False), ("version", "v1")):
            if self.answer is None and options.get(name, readable) != readable:
                raise ValueError(
                    f"no answer can be found in what a graph yields with {name}={options[name]!r}: call it with "
                    f"{name}={readable!r}, or pass answer=, a function that finds the answer"
                )

    def question_in(self, given: object) -> list[BaseMessage]:
        """The question in a chain's input, instructions included."""
        named = _named(given)
        if named is not None:
            return to_messages(named[self.question_key(named)], role=HumanMessage)
        if self.input_key is not None or not self.merges:
            key = self.input_key or _DEFAULT_INPUT
            raise TypeError(f"the input must be a dict with the question under {key!r}, not {given!r:.80}")
        return to_messages(given, role=HumanMessage)

    def question_key(self, given: Mapping[str, object]) -> str:
        """Return the key of the question in a chain's input."""
        key = self.input_key or (next(iter(given)) if len(given) == 1 else _DEFAULT_INPUT)
        if key not in given:
            raise ValueError(f"the input has keys {sorted(given)}, not {key!r}; name the question's key as input_key=")
        return key

    def answer_of(self, output: Mapping[str, object], given: object) -> object:
        """Return the answer in a chain's output, which is nothing that the chain only passes on."""
        if self.output_key is None and len(output) == 1:
            return next(iter(output.values()))
        passed_on = _named(given) or {}
        for key in (self.output_key,) if self.output_key else (_DEFAULT_OUTPUT, self.input_key):
            if key is not None and key in output and (self.output_key or output[key] is not passed_on.get(key)):
                return output[key]
        raise ValueError(
            f"no answer found under the output's keys {sorted(output)}; name its key as output_key=, or pass "
            "answer=json.dumps, say, to store all of it"
        )


class ChainTurn:
    """A question that a chain is processing, as a `with` block.

    It begins with what the memory knows; if the memory fails to tell, nothing is saved. If it is cancelled or fails
    after that, but before the answer is saved, the question is saved alone, or with what was streamed of the answer.
    """

    def __init__(self, plan: Plan, scope: CallScope, given: object) -> None:
        self.chunks: list[object] = []
        """The chunks streamed so far."""
        self._plan = plan
        self._scope = scope
        self._given = given
        self._question = plan.question_in(given)
        self._history: list[MemoryRecord] = []
        self._memories = ""
        self._sent: list[BaseMessage] = []
        """All messages given to the chain, if history and question are passed as one list."""
        self._is_saved = False

    def __enter__(self) -> Self:
        try:
            run_sync(self._load)
        except KeyboardInterrupt as failure:
            run_sync(self._keep, failure, self._part())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if failure is not None:  # Ctrl-C and the end of a generator included
            run_sync(self._keep, failure, self._part())

    async def __aenter__(self) -> Self:
        try:
            await on_core(self._load)
        except asyncio.CancelledError as failure:
            await to_the_end(on_core(self._keep, failure, self._part()))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if failure is not None:  # cancellation included
            await to_the_end(on_core(self._keep, failure, self._part()))

    async def _load(self) -> None:
        await self._plan.deadline.read("reading a conversation", self._read)

    async def _read(self) -> None:
        """Read the history and recall memories that it does not show."""
        plan, resent = self._plan, list[MemoryRecord]()
        if plan.merges or plan.history_key is not None:
            most = plan.history_limit
            self._history = await (read(self._scope) if most is None else read_window(self._scope, most))
        if _is_conversation(self._question):
            first = first_sent_again(self._history, self._question)
            self._history, resent = self._history[:first], self._history[first:]
        if not plan.merges and plan.memories_key is None:
            return
        shown = [record.id for record in (*resent, *self._history)]
        before, ids = [record.text for record in self._history if record.role == "user"], frozenset(shown)
        query = "\n".join(filter(None, map(spoken_text, self._question)))
        asked = Asked(query, before, lambda record: record.id in ids, one_of("id", shown))
        found = await block_of_turn(self._scope.reach, asked, plan.recall)
        self._memories = found.text

    def chain_input(self) -> object:
        """Return the chain's input, with history and memories filled in."""
        plan, history = self._plan, [to_message(record) for record in self._history]
        if plan.merges:
            self._sent = in_order(self._question, history, self._memories)
        named = _named(self._given)
        if named is None:
            return list(self._sent)
        filled = dict(named)
        if plan.merges:
            filled[plan.question_key(named)] = list(self._sent)
        if plan.history_key is not None:
            filled[plan.history_key] = history
        if plan.memories_key is not None:
            filled[plan.memories_key] = self._memories
        return filled

    def answer(self, output: object) -> list[BaseMessage]:
        """Return the new messages in a chain's output."""
        if output is None:
            return []
        if self._plan.answer is not None:
            return to_messages(self._plan.answer(output), role=AIMessage)
        if isinstance(output, BaseModel) and not isinstance(output, BaseMessage | PromptValue):
            return [AIMessage(output.model_dump_json())]  # structured output
        named = _named(output)
        messages = to_messages(output if named is None else self._plan.answer_of(named, self._given), role=AIMessage)
        return messages[len(self._sent) :] if _begins_with(messages, self._sent) else messages

    async def save(self, answer: Sequence[BaseMessage]) -> None:
        """Append question and answer to the history in one transaction; of a resent conversation, only new messages.

        Removals in an answer shorten the chain's own state, and what was said stays; those of the person remove.
        """
        self._is_saved = True
        asked = [message for message in self._question if not isinstance(message, SystemMessage)]
        said = [message for message in answer if not isinstance(message, RemoveMessage)]
        await self._write(asked, said, is_resent=_is_conversation(self._question))

    def _part(self) -> list[BaseMessage]:
        """The part of an answer that a chain did not end: words only, if they are to be kept."""
        if not self._plan.keep_partial:
            return []
        with suppress(Exception):  # part of an output may have no answer yet, or none that the caller's function reads
            said = self.answer(joined(self.chunks))
            return [AIMessage(one.text, id=one.id) for one in said if isinstance(one, AIMessage) and one.text]
        return []

    async def _keep(self, failure: BaseException, part: Sequence[BaseMessage]) -> None:
        """Save the question after a failure or an abandoned stream, and then the part of the answer.

        The caller sees the original failure; if saving them fails too, a note is added to it.
        """
        if self._is_saved:
            return
        try:
            await self.save(())
            if part:
                await self._write((), part, is_resent=False)
        except Exception as lost:  # noqa: BLE001  (nothing may hide the original failure)
            failure.add_note(f"its turn was not saved: {lost}")
            logger.log(_level_of(lost), "a turn that failed was not saved: %s", reason_for_log(lost))

    async def _write(self, asked: Sequence[BaseMessage], said: Sequence[BaseMessage], *, is_resent: bool) -> None:
        await self._plan.deadline.write(
            "remembering a turn", lambda: write_turn(self._scope, asked, said, is_resent=is_resent)
        )


async def to_the_end(saving: Coroutine[object, object, None]) -> None:
    """Wait until a turn is saved. It is saved even if the caller is cancelled; a failure is logged then."""
    going_on = asyncio.create_task(saving)
    try:
        await asyncio.shield(going_on)
    except asyncio.CancelledError:
        going_on.add_done_callback(_log_failure)
        raise


def _log_failure(saving: asyncio.Task[None]) -> None:
    error = None if saving.cancelled() else saving.exception()
    if error is not None:
        logger.log(_level_of(error), "a turn that was cancelled was not saved: %s", reason_for_log(error))


def _level_of(error: BaseException) -> int:
    return logging.WARNING if isinstance(error, ClosedError) else logging.ERROR  # it was closed on purpose


def in_order(question: Sequence[BaseMessage], history: Sequence[BaseMessage], memories: str) -> list[BaseMessage]:
    """Return one list of messages: instructions followed by the memories, then the history, then the question."""
    first = next((n for n, message in enumerate(question) if not isinstance(message, SystemMessage)), len(question))
    instructions, rest = list(question[:first]), question[first:]
    last = instructions.pop() if instructions else None
    if (filled := with_memories(cast("SystemMessage | None", last), memories)) is not None:
        instructions.append(filled)
    return [*instructions, *history, *rest]


def with_memories(instruction: SystemMessage | None, memories: str) -> SystemMessage | None:
    """A system message with the memories appended at the end, so that prompt caches can reuse its beginning.

    Without memories it is what it was.
    """
    if not memories or instruction is None:
        return SystemMessage(memories) if memories else instruction
    before = instruction.content
    blocks = [{"type": "text", "text": before}] if isinstance(before, str) else before
    return instruction.model_copy(update={"content": [*blocks, {"type": "text", "text": memories}]})


def joined(chunks: Iterable[object]) -> object:
    """Combine streamed chunks into one output: their sum, or the last chunk if they cannot be added."""
    total: Any = None  # any type the chain yields; only its `+` is used
    for chunk in chunks:
        try:
            total = chunk if total is None else total + chunk
        except TypeError:
            total = chunk
    return total


def _named(value: object) -> Mapping[str, object] | None:
    """Return the value if it is a dict with string keys, as chains take and return them."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _is_conversation(question: Sequence[BaseMessage]) -> bool:
    """True if the question is a whole conversation, sent by a client that manages it itself."""
    return any(isinstance(message, AIMessage) for message in question)


def _begins_with(messages: Sequence[BaseMessage], sent: Sequence[BaseMessage]) -> bool:
    return len(messages) >= len(sent) and all(
        (one.type, one.content) == (other.type, other.content) for one, other in zip(messages, sent, strict=False)
    )
