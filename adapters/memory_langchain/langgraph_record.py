"""LangGraph's record of a run, and the only place with private names of LangGraph.

A run of a graph with a checkpointer has its record in the checkpoints of its thread. LangGraph has no public way from
inside a node to the checkpointer and to the root checkpoint of the run; `run_of` reads both from the configuration of
the node. Where a version of LangGraph no longer has these names, there is no record.

The questions to the record are values (`Before`, `At`, `Writes`), so that one generator asks them and two readers answer:
`read` in the thread of a synchronous hook, `aread` in the event loop of an asynchronous one. A reader that has used up
its loads or its time answers that nothing is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Final, cast

try:
    from langchain_core.messages import BaseMessage, RemoveMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.types import Overwrite
except ImportError as error:
    raise ImportError("`MemoryMiddleware` needs langgraph: pip install 'memory-core[langgraph]'") from error

MOST_LOADS: Final = 24
"""Most checkpoints that are loaded for one invocation; one or two are, unless an agent stands behind nodes."""
MOST_SECONDS: Final = 2.0
"""The time after which nothing more is asked."""
_PAUSE: Final = 0.005
"""Seconds between two looks for a checkpoint that is being stored."""

_CHECKPOINTER: Final = "__pregel_checkpointer"
_RESUMING: Final = "__pregel_resuming"
_DURABILITY: Final = "__pregel_durability"
_MAP: Final = "checkpoint_map"
"""Keys of `configurable` (langgraph 1.2, `_internal/_constants.py`)."""
_INPUT: Final = "__start__"
_TASKS: Final = "__pregel_tasks"
_BRANCH: Final = "branch:to:"
"""Channels that hold what a checkpoint has still to do (langgraph 1.2, `graph/state.py`, `pregel/_algo.py`)."""
_INTERRUPT: Final = "__interrupt__"
"""Key of `versions_seen` for the versions of all channels when the run was last resumed (`pregel/_loop.py`)."""
_DELTAS: Final = "counters_since_delta_snapshot"
"""Key of a checkpoint's metadata with the names of its delta channels."""
_STEP: Final = "langgraph_step"
"""Key of a node's metadata with the number of its step: one more than that of its checkpoint."""

Saver = BaseCheckpointSaver[Any]
Values = Mapping[str, Sequence[BaseMessage]]


@dataclass(frozen=True, slots=True)
class Run:
    """Where the record of a run is."""

    saver: Saver
    thread: str
    checkpoint: str
    """The id of the root graph's checkpoint that the run has reached; it may not be stored yet."""
    step: int | None
    """The number of that checkpoint; `None` for an agent that is part of a graph."""
    named: str | None
    """The checkpoint that the caller named."""
    is_resuming: bool
    """Whether the run has just been resumed or repeated, without an input."""
    is_stored_at_once: bool
    """Whether checkpoints are stored while the run goes on, and not at its end."""
    namespace: str
    """Of the agent; empty for the root graph."""
    own_checkpoint: str | None
    """The id of the checkpoint that the agent has reached in its namespace."""
    user: object
    """The user whom the caller named in the configuration."""

    @property
    def has_history(self) -> bool:
        """Whether the agent has a history of its own inside a graph: its namespace is the same in each run."""
        return bool(self.namespace) and ":" not in self.namespace.rpartition("|")[2]


def run_of(config: RunnableConfig) -> Run | None:
    """The run to which the configuration of a node of an agent belongs; `None` if it has no record."""
    configurable, metadata = config.get("configurable", {}), config.get("metadata", {})
    saver, ids, thread = configurable.get(_CHECKPOINTER), configurable.get(_MAP), configurable.get("thread_id")
    if not isinstance(saver, BaseCheckpointSaver) or not isinstance(ids, Mapping) or "" not in ids or thread is None:
        return None
    reached, step = cast("Mapping[str, str]", ids), metadata.get(_STEP)
    namespace = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]
    return Run(
        saver=cast("Saver", saver),
        thread=str(thread),
        checkpoint=reached[""],
        step=step - 1 if isinstance(step, int) and not namespace else None,
        named=metadata.get("checkpoint_id"),
        is_resuming=bool(configurable.get(_RESUMING)),
        is_stored_at_once=configurable.get(_DURABILITY) != "exit",
        namespace=namespace,
        own_checkpoint=reached.get(namespace),
        user=configurable.get("user_id"),
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint of the record."""

    entry: CheckpointTuple

    @property
    def id(self) -> str:
        return self.entry.checkpoint["id"]

    @property
    def parent(self) -> str | None:
        parent = self.entry.parent_config
        return parent.get("configurable", {}).get("checkpoint_id") if parent else None

    @property
    def source(self) -> str:
        """`input`, `loop`, `update` or `fork`."""
        return self.entry.metadata.get("source", "")

    @property
    def step(self) -> int | None:
        return self.entry.metadata.get("step")

    @property
    def user(self) -> object:
        """The user whom the caller named who made it, if it is stored with the checkpoint."""
        return cast("Mapping[str, object]", self.entry.metadata).get("user_id")

    @property
    def is_finished(self) -> bool:
        """Whether its run has nothing left to do."""
        values = self.entry.checkpoint["channel_values"]
        return not any(name in {_INPUT, _TASKS} or name.startswith(_BRANCH) for name in values)

    @property
    def resumed_at(self) -> Mapping[str, object]:
        """The versions of the channels when its run was last resumed; empty if there was an input since, or never."""
        seen = self.entry.checkpoint["versions_seen"].get(_INTERRUPT, {})
        versions = self.entry.checkpoint["channel_versions"]
        return seen if seen.get(_INPUT) == versions.get(_INPUT) else {}

    @property
    def versions(self) -> Mapping[str, object]:
        return self.entry.checkpoint["channel_versions"]

    @property
    def delta_channels(self) -> list[str]:
        """Channels of which it keeps only what was written."""
        values, names = self.entry.checkpoint["channel_values"], self.entry.metadata.get(_DELTAS) or {}
        return [name for name in names if name not in values]

    @property
    def values(self) -> Values:
        """The messages in its channels, without those of its input and without delta channels."""
        channels = self.entry.checkpoint["channel_values"]
        found = {name: messages_in(value) for name, value in channels.items() if name != _INPUT}
        return {name: messages for name, messages in found.items() if messages}


@dataclass(frozen=True, slots=True)
class Before:
    """Ask for the newest stored checkpoints before one, newest first: `most`, fewer if the first is no input."""

    id: str
    most: int = 1
    namespace: str = ""

    def is_enough(self, found: Sequence[Stored]) -> bool:
        return len(found) >= self.most or found[-1].source != "input"


@dataclass(frozen=True, slots=True)
class At:
    """Ask for a checkpoint of the root graph; for one that is being stored, `waits`."""

    id: str
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Writes:
    """Ask for what was written to the delta channels of a checkpoint."""

    stored: Stored


Question = Before | At | Writes
Asking = Generator[Question, Any, Any]
"""Yields questions and is sent the answers: a list of `Stored`, a `Stored` or `None`, the messages of channels."""


class _Budget:
    """The loads and the time that are left for one invocation."""

    def __init__(self, loads: int, seconds: float) -> None:
        self._loads = loads
        self._end = time.monotonic() + seconds

    @property
    def is_used_up(self) -> bool:
        return self._loads <= 0 or time.monotonic() >= self._end

    def spend(self, loads: int = 1) -> None:
        self._loads -= loads


def read(run: Run, asking: Asking, *, loads: int = MOST_LOADS, seconds: float = MOST_SECONDS) -> Any:  # as `Asking`
    """Answer the questions of `asking` in this thread, and return what it returns."""
    budget, answer = _Budget(loads, seconds), cast("object", None)
    with closing(asking):
        while True:
            try:
                question = asking.send(answer)
            except StopIteration as end:
                return end.value
            answer = _answer(run, question, budget)


async def aread(run: Run, asking: Asking, *, loads: int = MOST_LOADS, seconds: float = MOST_SECONDS) -> Any:
    """As `read`, in the running event loop."""
    budget, answer = _Budget(loads, seconds), cast("object", None)
    with closing(asking):
        while True:
            try:
                question = asking.send(answer)
            except StopIteration as end:
                return end.value
            answer = await _aanswer(run, question, budget)


def _answer(run: Run, question: Question, budget: _Budget) -> object:
    match question:
        case Before():
            found: list[Stored] = []
            if budget.is_used_up:
                return found
            listed = run.saver.list(_thread(run, question.namespace), before=_named(question.id), limit=question.most)
            with closing(cast("Generator[CheckpointTuple]", listed)) as entries:
                for entry in entries:
                    _take(found, entry, budget)
                    if question.is_enough(found):
                        break
            return found
        case At():
            while not budget.is_used_up:
                entry = run.saver.get_tuple(_thread(run, "", question.id))
                if entry is not None:
                    budget.spend()
                    return Stored(entry)
                if not question.waits:
                    break
                time.sleep(_PAUSE)
            return None
        case Writes():
            if budget.is_used_up:
                return None
            budget.spend()
            channels = question.stored.delta_channels
            return _replayed(
                run.saver.get_delta_channel_history(config=question.stored.entry.config, channels=channels)
            )


async def _aanswer(run: Run, question: Question, budget: _Budget) -> object:
    match question:
        case Before():
            found: list[Stored] = []
            if budget.is_used_up:
                return found
            listed = run.saver.alist(_thread(run, question.namespace), before=_named(question.id), limit=question.most)
            async with aclosing(cast("Any", listed)) as entries:  # an async generator, which its type does not say
                async for entry in cast("AsyncIterator[CheckpointTuple]", entries):
                    _take(found, entry, budget)
                    if question.is_enough(found):
                        break
            return found
        case At():
            while not budget.is_used_up:
                entry = await run.saver.aget_tuple(_thread(run, "", question.id))
                if entry is not None:
                    budget.spend()
                    return Stored(entry)
                if not question.waits:
                    break
                await asyncio.sleep(_PAUSE)
            return None
        case Writes():
            if budget.is_used_up:
                return None
            budget.spend()
            channels = question.stored.delta_channels
            return _replayed(
                await run.saver.aget_delta_channel_history(config=question.stored.entry.config, channels=channels)
            )


def _take(found: list[Stored], entry: CheckpointTuple, budget: _Budget) -> None:
    budget.spend()
    found.append(Stored(entry))


def _thread(run: Run, namespace: str, checkpoint: str | None = None) -> RunnableConfig:
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": run.thread, "checkpoint_ns": namespace, **named}}


def _named(checkpoint: str) -> RunnableConfig:
    return {"configurable": {"checkpoint_id": checkpoint}}


def messages_in(value: object) -> list[BaseMessage]:
    """The messages in the value of a channel: one, a list, or a mapping or a snapshot that has such values."""
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, Mapping):
        return [one for item in cast("Mapping[object, object]", value).values() for one in _listed(item)]
    return _listed(value)


def _listed(value: object) -> list[BaseMessage]:
    if isinstance(value, list | tuple):  # a snapshot of a delta channel is a tuple with its value
        items = cast("Sequence[object]", value)
        if len(items) == 1 and isinstance(items[0], list):
            items = cast("Sequence[object]", items[0])
        return [one for one in items if isinstance(one, BaseMessage)]
    return [value] if isinstance(value, BaseMessage) else []


def _replayed(histories: Mapping[str, Any]) -> Values:
    """The messages of delta channels: what they started from, and then each write."""
    return {
        name: replayed(messages_in(one.get("seed")), [w[2] for w in one["writes"]]) for name, one in histories.items()
    }


def replayed(messages: Sequence[BaseMessage], writes: Sequence[object]) -> list[BaseMessage]:
    """Apply writes to the messages of a channel as LangGraph does: by id, with removals, or all of it at once."""
    known: dict[object, BaseMessage] = {one.id or id(one): one for one in messages}
    for write in writes:
        if isinstance(write, Overwrite):
            known.clear()
        for one in messages_in(write.value if isinstance(write, Overwrite) else write):
            if not isinstance(one, RemoveMessage):
                known[one.id or id(one)] = one
            elif one.id == REMOVE_ALL_MESSAGES:
                known.clear()
            else:
                known.pop(one.id, None)
    return list(known.values())
