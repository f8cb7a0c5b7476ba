"""LangGraph's record of a run, and the only place with private names of LangGraph.

A run of a graph with a checkpointer has its record in the checkpoints of its thread. LangGraph has no public way from
inside a node to the checkpointer and to the root checkpoint of the run; `run_of` reads both from the configuration of
the node. Where a version of LangGraph no longer has these names, there is no record.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

try:
    from langchain_core.messages import BaseMessage, RemoveMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.types import Overwrite
except ImportError as error:
    raise ImportError("`MemoryMiddleware` needs langgraph: pip install 'memory-core[langgraph]'") from error

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
_STOPPED: Final = frozenset({"__error__", "__interrupt__"})
"""Channels of what a node has written that failed or waits for a person (langgraph 1.2, `_internal/_constants.py`)."""
_DELTAS: Final = "counters_since_delta_snapshot"
"""Key of a checkpoint's metadata with the names of its delta channels."""
_STEP: Final = "langgraph_step"
"""Key of a node's metadata with the number of its step: one more than that of its checkpoint."""
_FIRST: Final = 1
"""The step of the first nodes of a graph that begins without a history."""

Saver = BaseCheckpointSaver[Any]
Values = Mapping[str, Sequence[BaseMessage]]


@dataclass(frozen=True, slots=True)
class Run:
    """The place of the record of a run."""

    saver: Saver
    thread: str
    checkpoint: str
    """The id of the root graph's checkpoint that the run has reached; it may not be stored yet."""
    step: int | None
    """The number of that checkpoint; `None` for an agent that is part of a graph."""
    named: str | None
    """The checkpoint that the caller named."""
    is_resuming: bool
    """True if the run has just been resumed or repeated, without an input."""
    is_stored_at_once: bool
    """True if checkpoints are stored while the run goes on, and not at its end."""
    namespace: str
    """Of the agent; empty for the root graph."""
    own_checkpoint: str | None
    """The id of the checkpoint that the agent has reached in its namespace."""
    inner: tuple[tuple[str, str], ...]
    """The namespaces and checkpoints of the graphs around this hook, without the root graph and without an agent whose
    first step this is; each of them may have been resumed."""
    user: object
    """The user whom the caller named in the configuration."""

    @property
    def task(self) -> str:
        """The root graph's task that runs the agent; empty for the root graph itself."""
        return self.namespace.split("|")[0].partition(":")[2]

    @property
    def has_history(self) -> bool:
        """True if the agent has a history of its own inside a graph: its namespace is the same in each run."""
        return bool(self.namespace) and ":" not in self.namespace.rpartition("|")[2]


def run_of(config: RunnableConfig) -> Run | None:
    """The run to which the configuration of a node of an agent belongs; `None` if it has no record."""
    configurable, metadata = config.get("configurable", {}), config.get("metadata", {})
    saver, ids, thread = configurable.get(_CHECKPOINTER), configurable.get(_MAP), configurable.get("thread_id")
    if not _is_saver(saver) or not isinstance(ids, Mapping) or "" not in ids or thread is None:
        return None
    reached, step = cast("Mapping[str, str]", ids), metadata.get(_STEP)
    namespace = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]
    inner = [(name, at) for name, at in reached.items() if name and (name != namespace or step != _FIRST)]
    return Run(
        saver=saver,
        thread=str(thread),
        checkpoint=reached[""],
        step=step - 1 if isinstance(step, int) and not namespace else None,
        named=metadata.get("checkpoint_id"),
        is_resuming=bool(configurable.get(_RESUMING)),
        is_stored_at_once=configurable.get(_DURABILITY) != "exit",
        namespace=namespace,
        own_checkpoint=reached.get(namespace),
        inner=tuple(inner),
        user=configurable.get("user_id"),
    )


def _is_saver(value: object) -> TypeGuard[Saver]:
    return isinstance(value, BaseCheckpointSaver)


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
        """True if its run has nothing left to do."""
        values = self.entry.checkpoint["channel_values"]
        return not any(name in {_INPUT, _TASKS} or name.startswith(_BRANCH) for name in values)

    @property
    def resumed_at(self) -> Mapping[str, object]:
        """The versions of the channels when its run was last resumed; empty if there was an input since, or never."""
        seen = self.entry.checkpoint["versions_seen"].get(_INTERRUPT, {})
        versions = self.entry.checkpoint["channel_versions"]
        return seen if seen.get(_INPUT) == versions.get(_INPUT) else {}

    def has_stopped(self, task: str) -> bool:
        """True if a task has failed here before, or has waited for a person."""
        return any(one == task and channel in _STOPPED for one, channel, _ in self.entry.pending_writes or ())

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


def replayed(histories: Mapping[str, Any]) -> Values:
    """The messages of delta channels: what they started from, and then each write."""
    return {
        name: applied(messages_in(one.get("seed")), [w[2] for w in one["writes"]]) for name, one in histories.items()
    }


def applied(messages: Sequence[BaseMessage], writes: Sequence[object]) -> list[BaseMessage]:
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
