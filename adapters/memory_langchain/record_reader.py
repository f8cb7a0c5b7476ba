"""Questions to the record of a run, and their answers, in the thread of a hook or in its event loop.

The questions are values, so that one generator asks them and two readers answer. A reader that has used up its loads or
its time answers that nothing is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from memory_langchain.langgraph_record import Run, Stored, replayed

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple
except ImportError as error:
    raise ImportError("`MemoryMiddleware` needs langgraph: pip install 'memory-core[langgraph]'") from error

MOST_LOADS: Final = 24
"""Most checkpoints that are loaded for one invocation; one or two are, unless an agent is part of a graph."""
MOST_SECONDS: Final = 2.0
"""The time after which nothing more is asked."""
_PAUSE: Final = 0.005
"""Seconds between two looks for a checkpoint that is being stored."""


@dataclass(frozen=True, slots=True)
class Before:
    """Ask for the newest stored checkpoints before one, newest first: `most`, or only the first if it is no input."""

    id: str
    most: int = 1
    namespace: str = ""

    def is_answered(self, found: Sequence[Stored]) -> bool:
        return len(found) >= self.most or found[-1].source != "input"


@dataclass(frozen=True, slots=True)
class At:
    """Ask for a checkpoint, and wait so many seconds for one that is being stored."""

    id: str
    waits: float = 0.0
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Writes:
    """Ask for the messages that were written to the delta channels of a checkpoint."""

    stored: Stored


Question = Before | At | Writes

R = TypeVar("R")
Asking = Generator[Question, Any, R]
"""Yields questions, and is sent a list of `Stored`, a `Stored` or `None`, or the messages of channels or `None`."""


class _Budget:
    """The loads and the time that are left for one invocation."""

    def __init__(self, loads: int, seconds: float) -> None:
        self._loads = loads
        self._end = time.monotonic() + seconds

    def allows(self, question: Question) -> bool:
        """True if something is left; a wait needs time alone."""
        waits = isinstance(question, At) and question.waits > 0
        return (self._loads > 0 or waits) and time.monotonic() < self._end

    def stored(self, entry: CheckpointTuple) -> Stored:
        self._loads -= 1
        return Stored(entry)

    def spend(self) -> None:
        self._loads -= 1


def read(run: Run, asking: Asking[R], *, loads: int = MOST_LOADS, seconds: float = MOST_SECONDS) -> R:
    """Answer the questions of `asking` in this thread, and return what it returns."""
    budget, answer = _Budget(loads, seconds), cast("object", None)
    with closing(asking):
        while True:
            try:
                question = asking.send(answer)
            except StopIteration as end:
                return cast("R", end.value)
            answer = _ask(run, question, budget)


async def aread(run: Run, asking: Asking[R], *, loads: int = MOST_LOADS, seconds: float = MOST_SECONDS) -> R:
    """As `read`, in the running event loop."""
    budget, answer = _Budget(loads, seconds), cast("object", None)
    with closing(asking):
        while True:
            try:
                question = asking.send(answer)
            except StopIteration as end:
                return cast("R", end.value)
            answer = await _aask(run, question, budget)


def _ask(run: Run, question: Question, budget: _Budget) -> object:
    match question:
        case Before():
            return _before(run, question, budget)
        case At():
            return _at(run, question, budget)
        case Writes(stored):
            if not budget.allows(question):
                return None
            budget.spend()
            saver, channels = run.saver, stored.delta_channels
            return replayed(saver.get_delta_channel_history(config=stored.entry.config, channels=channels))


async def _aask(run: Run, question: Question, budget: _Budget) -> object:
    match question:
        case Before():
            return await _abefore(run, question, budget)
        case At():
            return await _aat(run, question, budget)
        case Writes(stored):
            if not budget.allows(question):
                return None
            budget.spend()
            saver, channels = run.saver, stored.delta_channels
            return replayed(await saver.aget_delta_channel_history(config=stored.entry.config, channels=channels))


def _before(run: Run, question: Before, budget: _Budget) -> list[Stored]:
    found: list[Stored] = []
    if budget.allows(question):
        listed = run.saver.list(_in(run, question.namespace), before=_named(question.id), limit=question.most)
        with closing(cast("Generator[CheckpointTuple]", listed)) as entries:  # which its type does not say
            for entry in entries:
                found.append(budget.stored(entry))
                if question.is_answered(found):
                    break
    return found


async def _abefore(run: Run, question: Before, budget: _Budget) -> list[Stored]:
    found: list[Stored] = []
    if budget.allows(question):
        listed = run.saver.alist(_in(run, question.namespace), before=_named(question.id), limit=question.most)
        async with aclosing(cast("AsyncGenerator[CheckpointTuple]", listed)) as entries:  # which its type does not say
            async for entry in entries:
                found.append(budget.stored(entry))
                if question.is_answered(found):
                    break
    return found


def _at(run: Run, question: At, budget: _Budget) -> Stored | None:
    end = time.monotonic() + question.waits
    while budget.allows(question):
        entry = run.saver.get_tuple(_in(run, question.namespace, question.id))
        if entry is not None:
            return budget.stored(entry)
        if time.monotonic() >= end:
            break
        time.sleep(_PAUSE)
    return None


async def _aat(run: Run, question: At, budget: _Budget) -> Stored | None:
    end = time.monotonic() + question.waits
    while budget.allows(question):
        entry = await run.saver.aget_tuple(_in(run, question.namespace, question.id))
        if entry is not None:
            return budget.stored(entry)
        if time.monotonic() >= end:
            break
        await asyncio.sleep(_PAUSE)
    return None


def _in(run: Run, namespace: str, checkpoint: str | None = None) -> RunnableConfig:
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": run.thread, "checkpoint_ns": namespace, **named}}


def _named(checkpoint: str) -> RunnableConfig:
    return {"configurable": {"checkpoint_id": checkpoint}}
