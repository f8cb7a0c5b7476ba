"""The ends of the runs of threads in this process, so that a run that only goes on need not ask the record.

Asking takes a turn of a thread of 500 messages from 37 to 52 ms of CPU, with a checkpointer in a file of SQLite.

One invariant holds here: *the steps of a thread count without gaps, so between an end and a run two steps later lies
nothing but the input of that run.* An `update_state`, a run that failed, a node before the agent and another branch
take steps of their own or show other messages; then the record is asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Self
from weakref import ref

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from memory_langchain.langgraph_record import Run, Saver, run_of
from memory_langchain.thread_changes import Changes, last_questions

_MOST: Final = 1_000
"""Most threads whose end is kept."""
_INPUT_STEPS: Final = 2
"""Steps between the end of a run and the first node of the next one: the input, and its distribution to the nodes."""


@dataclass(frozen=True, slots=True)
class _End:
    saver: ref[Saver]
    conversation: Hashable
    step: int
    size: int
    """The number of messages that the thread had."""
    content: int
    """Of their ids and contents."""


class RunEnds:
    """The last end of each thread; runs in several threads note it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: OrderedDict[Hashable, _End] = OrderedDict()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same: copies of a middleware see the same threads."""
        return self

    def note(self, config: RunnableConfig, conversation: Hashable, thread: Sequence[BaseMessage]) -> None:
        """Remember how the run of a hook behind the agent ends, if it is a root graph with a checkpointer."""
        run = run_of(config)
        if run is None or run.step is None:
            return
        end = _End(ref(run.saver), conversation, run.step + 1, len(thread), _content(thread))
        with self._lock:
            self._ends[_name(run)] = end
            self._ends.move_to_end(_name(run))
            while len(self._ends) > _MOST:
                self._ends.popitem(last=False)

    def since(self, config: RunnableConfig, conversation: Hashable, thread: Sequence[BaseMessage]) -> Changes | None:
        """The changes by the input of a run that goes on where the last one of the same conversation has ended.

        Args:
            config: Of the hook before the agent.
            thread: The messages that the agent sees first.

        Returns:
            `None` if it may not go on there, so that the record has to be asked.
        """
        run = run_of(config)
        end = None if run is None else self._ends.get(_name(run))
        if run is None or end is None or run.is_resuming or run.named is not None:
            return None
        if (end.saver(), end.conversation, end.step + _INPUT_STEPS) != (run.saver, conversation, run.step):
            return None
        if len(thread) < end.size or end.content != _content(thread[: end.size]):
            return None
        return Changes(last_questions(thread[end.size :]))


def _name(run: Run) -> Hashable:
    return id(run.saver), run.thread


def _content(thread: Sequence[BaseMessage]) -> int:
    """Tells these messages apart from others."""
    return hash(tuple((one.id, one.content if isinstance(one.content, str) else repr(one.content)) for one in thread))
