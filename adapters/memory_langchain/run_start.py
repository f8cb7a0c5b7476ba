"""The start of a run of an agent, asked of LangGraph's record.

Checkpoints have a source and a parent. A run with an input stores an `input` behind the checkpoint that it started
from: the one that the caller named, or else the newest. Each `update_state` before it stores an `update`, a repetition
stores a `fork`, and each step of the graph behind the input stores a `loop`.

An agent that is the root graph is mostly in the first step behind the input. Then the start lies one or two checkpoints
back, whether those of the run itself are stored already or not, and that costs one load or two. In all other cases the
record is followed from the checkpoint that the run has reached to the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from memory_langchain.langgraph_record import Run, Stored, Values, run_of
from memory_langchain.record_reader import MOST_LOADS, MOST_SECONDS, Asking, At, Before, Writes, aread, read
from memory_langchain.thread_changes import Start, by_id, is_said

try:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
except ImportError as error:
    raise ImportError("`memory_langchain` needs langchain-core: pip install 'memory-core[langchain]'") from error


_INNER_SECONDS: Final = 0.2
"""The time that a checkpoint of a graph inside the root graph is waited for; one without a checkpointer stores none."""


def start_of(config: RunnableConfig, *, loads: int = MOST_LOADS, seconds: float = MOST_SECONDS) -> Start | None:
    """The start of the run to which a node's configuration belongs; `None` if it has no record.

    It is asked once in an invocation, in a hook of the agent, and blocks its thread.

    Args:
        config: The configuration of the hook (`get_config()`).
        loads: Most checkpoints to load.
        seconds: The time after which nothing more is asked. What has not been found by then is unknown.
    """
    run = run_of(config)
    try:
        return None if run is None else read(run, _start(run), loads=loads, seconds=seconds)
    except NotImplementedError:  # a checkpointer that cannot list
        return None


async def astart_of(config: RunnableConfig, *, loads: int = MOST_LOADS, seconds: float = MOST_SECONDS) -> Start | None:
    """As `start_of`, in the running event loop."""
    run = run_of(config)
    try:
        return None if run is None else await aread(run, _start(run), loads=loads, seconds=seconds)
    except NotImplementedError:
        return None


def _start(run: Run) -> Asking[Start]:
    if run.is_resuming:
        start = yield from _resumed(run)
    else:
        start = (yield from _in_first_step(run)) or (yield from _behind_nodes(run))
    if not run.has_history or run.own_checkpoint is None:
        return start
    own: list[Stored] = yield Before(run.own_checkpoint, namespace=run.namespace)
    return replace(start, private=(yield from _channels(own[0]))) if own else start


def _in_first_step(run: Run) -> Asking[Start | None]:
    """The start of an agent that is the root graph and in the first step; `None` if it is not, or not for certain."""
    if run.step is None:
        return None
    found: list[Stored] = yield Before(run.checkpoint, most=2)
    if not found:
        return Start("input") if run.step == 0 else None
    newest, steps = found[0], run.step - (found[0].step or 0)
    if newest.source == "input" and steps == 1 and run.named in {None, newest.parent}:
        return (yield from _from_input(run, newest, found[1:]))
    if run.named is not None and run.named != newest.id:
        base: Stored | None = yield At(run.named)
        if base is None or not base.is_finished or run.step - (base.step or 0) != 2:
            return None
        return Start("input", (yield from _channels(base)), departed=(yield from _channels(newest)))
    if steps == 2 and newest.is_finished:
        return (yield from _updated(run, Start("input", (yield from _channels(newest))), newest))
    return None


def _from_input(run: Run, given: Stored, older: Sequence[Stored]) -> Asking[Start]:
    """The start before an input, and what was newest before it.

    It may be the input of another run that began at the same checkpoint and was stored first, which tells the same.
    """
    if given.parent is None:
        return Start("input")
    previous = older[0] if older else None
    if previous is not None and previous.id == given.parent:
        return (yield from _updated(run, Start("input", (yield from _channels(previous))), previous))
    base: Stored | None = (yield At(given.parent)) if given.delta_channels else given
    start = Start("input", (yield from _channels(base)) if base else {})
    is_left = run.named is not None and previous is not None
    return replace(start, departed=(yield from _channels(previous))) if is_left and previous else start


def _behind_nodes(run: Run) -> Asking[Start]:
    """The start of any agent, from the checkpoint that its run has reached back to the input."""
    reached: Stored | None = yield At(run.checkpoint)
    if reached is None:
        newest: list[Stored] = yield Before(run.checkpoint)
        if run.is_stored_at_once:
            reached = yield At(run.checkpoint, waits=MOST_SECONDS)
        if reached is None:
            return (yield from _without_input(run, newest[0])) if newest else Start("unknown")
    if reached.resumed_at:
        return (yield from _behind_a_resumption(run, reached))
    if not run.is_stored_at_once:  # what is stored is not of this run
        return Start("resumption", (yield from _channels(reached)))
    first, given = yield from _back_to_input(reached)
    if given is None:
        return Start("unknown")
    if given.source != "input" or not _is_by_its_person(run, given):  # it was repeated from there
        return (yield from _from_point(run, given))
    if reached.has_stopped(run.task) or (yield from _is_resumed_inside(run)):
        return Start("resumption", (yield from _channels(reached)))
    base: Stored | None = (yield At(given.parent)) if given.parent else None
    start = Start("input", (yield from _channels(base)) if base else {})
    start = replace(start, applied=(yield from _channels(first)) if first else {**start.shown})
    if base is not None and run.named == base.id:
        start = yield from _departed(start, given.id, base.id)
    return (yield from _updated(run, start, base)) if base is not None else start


def _back_to_input(reached: Stored) -> Asking[tuple[Stored | None, Stored | None]]:
    """The first step behind the checkpoint that began the run, and that one, which is an `input` if there was one."""
    first: Stored | None = None
    given: Stored | None = reached
    while given is not None and given.source == "loop":
        first, given = given, (yield At(given.parent)) if given.parent else None
    return first, given


def _without_input(run: Run, newest: Stored) -> Asking[Start]:
    """The start of a run whose input is not stored, as far as the checkpoints before it tell.

    Where a run stores nothing until its end, the newest checkpoint is not its own.
    """
    start = Start("unknown", (yield from _channels(newest)))
    if run.is_stored_at_once or run.named is None or run.named == newest.id:
        return (yield from _updated(run, start, newest))
    base: Stored | None = yield At(run.named)
    return replace(start, shown=(yield from _channels(base)), departed=start.shown) if base else start


def _resumed(run: Run) -> Asking[Start]:
    """The start of a run that has just been resumed, or repeated from a checkpoint that the caller named."""
    point: Stored | None = yield At(run.named or run.checkpoint)
    if point is None:
        return Start("resumption")
    start = Start("resumption", (yield from _channels(point)))
    if run.named not in {None, run.checkpoint}:
        start = yield from _departed(start, run.checkpoint, point.id)
        if start.departed is not None:
            return start
    return (yield from _updated(run, start, point))


def _behind_a_resumption(run: Run, reached: Stored) -> Asking[Start]:
    """The start of a run that was resumed some steps ago: where all channels had the versions of that moment."""
    versions = reached.resumed_at
    point: Stored | None = reached
    while point is not None and point.versions != versions:
        point = (yield At(point.parent)) if point.parent else None
    return (yield from _from_point(run, point)) if point is not None else Start("resumption")


def _is_resumed_inside(run: Run) -> Asking[bool]:
    """True if a graph inside the root graph was resumed; the root graph stores that with its next checkpoint only."""
    for namespace, checkpoint in run.inner:
        reached: Stored | None = yield At(checkpoint, waits=_INNER_SECONDS, namespace=namespace)
        if reached is not None and reached.resumed_at:
            return True
    return False


def _from_point(run: Run, point: Stored) -> Asking[Start]:
    """The start of a run that has been resumed or repeated at a stored checkpoint."""
    start = Start("resumption", (yield from _channels(point)))
    if point.source == "fork" and point.parent is not None:
        return (yield from _departed(start, point.id, point.parent))
    return (yield from _updated(run, start, point))


def _departed(start: Start, begun: str, base: str) -> Asking[Start]:
    """The start with what the newest checkpoint before the run shows, unless the run has started from that one."""
    newest: list[Stored] = yield Before(begun)
    if not newest or newest[0].id == base:
        return start
    return replace(start, departed=(yield from _channels(newest[0])))


def _updated(run: Run, start: Start, base: Stored) -> Asking[Start]:
    """The start with what the thread showed before the updates that end with `base`, and who wrote what in them.

    An update of an older checkpoint has gone back to that one.
    """
    added: list[BaseMessage] = []
    is_own: dict[str, bool] = {}
    while base.source == "update":
        found: list[Stored] = yield Before(base.id)
        earlier: Stored | None = found[0] if found else None
        if earlier is not None and earlier.id != base.parent:
            start = replace(start, departed=start.departed or (yield from _channels(earlier)))
            earlier = (yield At(base.parent)) if base.parent else None
        if earlier is None and base.parent is not None:
            break
        before: Values = (yield from _channels(earlier)) if earlier else {}
        written = _written(by_id(before), by_id((yield from _channels(base))))
        by_this_person = _is_by_its_person(run, base)
        for message in written:  # the last one who wrote a message is the one whose text it has
            is_own.setdefault(str(message.id), by_this_person)
        known = by_id(before)
        added = [*(one for one in written if by_this_person and one.id not in known and is_said(one)), *added]
        start = replace(start, before_updates=before)
        if earlier is None:
            break
        base = earlier
    shown = by_id(start.shown)
    foreign = frozenset(key for key, own in is_own.items() if not own)
    return replace(start, added=[one for one in added if one.id in shown], foreign=foreign)


def _is_by_its_person(run: Run, stored: Stored) -> bool:
    """True if the person of a run made a checkpoint, as far as both name a user."""
    return stored.user is None or run.user is None or stored.user == run.user


def _written(before: Mapping[str, BaseMessage], now: Mapping[str, BaseMessage]) -> list[BaseMessage]:
    """The messages that are new, or have another text."""
    return [one for key, one in now.items() if key not in before or before[key].content != one.content]


def _channels(stored: Stored) -> Asking[Values]:
    """The messages of a checkpoint, those of delta channels too."""
    if not stored.delta_channels:
        return stored.values
    written: Values | None = yield Writes(stored)
    return {**stored.values, **(written or {})}
