"""Memory follows the visible conversation: what the difference between a thread and its records means.

A thread changes in two ways. Between runs, a person changes it: an edit, a fork, a removal. Within a run, the framework
and its middleware do: they trim, summarise and redact what the model is shown. Only a person's change is followed. So a
record remembers what the thread showed of its message last: a difference from that, when a run begins, is a person's.
`docs/conversations.md` has the cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_core.capture.sent_files import without_files
from memory_core.capture.taking_back import Change, Changed, brought_back, is_taken_back, untouched
from memory_core.models import Draft, Json, MemoryRecord, Patch, Role

THREAD: Final = "thread"
"""Key in a record's data: the id of the message in its thread, and a digest of the text that the thread showed last."""
_ID, _SHOWN, _TRIMMED = "id", "shown", "trimmed"
"""Keys of that value. The last one marks a message that a run has left out, although nobody took it back."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A message that a thread shows."""

    role: Role | None
    text: str
    id: str | None
    """Its id in the thread."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation as it is visible when the memory is told about it."""

    messages: Sequence[Visible]
    """In order."""
    began: Mapping[str, str] | None = None
    """What it showed when the run began: `digest` of the text by id. `None` if that is unknown."""
    is_whole: bool = False
    """Whether the framework keeps the thread, so that a message that is missing was taken out of it. A thread that a
    client sends may lack anything."""
    is_over: bool = False
    """Whether this is the end of the run: what is missing then, the run has left out."""
    is_part: bool = False
    """Whether it is what one agent of a graph is shown: what others say in the same run may be missing."""
    is_fork: bool = False
    """Whether the person chose the point from which the conversation goes on."""

    def places(self) -> dict[str, int]:
        """The position of each message with an id."""
        return {message.id: place for place, message in enumerate(self.messages) if message.id is not None}


@dataclass(frozen=True, slots=True)
class Due:
    """What is due on the records of a conversation."""

    left: Sequence[MemoryRecord]
    """Their messages are on a branch that the thread has left."""
    resumed: Sequence[MemoryRecord]
    """Their messages are on the visible branch again."""
    edited: Sequence[tuple[MemoryRecord, int]]
    """A person has changed their messages, which are at these positions in the thread."""
    marks: Sequence[Changed]
    """The changes of what the thread shows of messages that stay as they were said."""


def threaded(draft: Draft, message_id: str | None) -> Draft:
    """A draft that is recognised by the id of its message in the thread, if it has one."""
    if message_id is None:
        return draft
    return replace(draft, data={**draft.data, THREAD: {_ID: message_id, _SHOWN: digest(draft.text)}})


def id_in_thread(message: MemoryRecord | Draft) -> str | None:
    """The id of a message in its thread, if it has one."""
    found = _mark(message).get(_ID)
    return found if isinstance(found, str) else None


def digest(text: str) -> str:
    """What a record remembers of the text that its thread shows, which may have been redacted since; without files."""
    return hashlib.sha256(without_files(text).encode(errors="surrogatepass")).hexdigest()[:16]


def due(stored: Sequence[MemoryRecord], thread: Thread, same: Mapping[str, int]) -> Due:
    """What is due on the records of a conversation, given how it is visible now.

    Args:
        stored: The last messages of the conversation, in order, in every state.
        thread: What is visible.
        same: Positions in the thread of messages that were recognised without their ids, by the id of the record.
    """
    places, began = thread.places(), thread.began or {}
    known = [(record, name) for record in stored if (name := id_in_thread(record)) is not None]
    between, behind = _missing([name for _, name in known], places, thread)
    left: list[MemoryRecord] = []
    resumed: list[MemoryRecord] = []
    edited: list[tuple[MemoryRecord, int]] = []
    marks: list[Changed] = []
    for at, (record, name) in enumerate(known):
        place = places.get(name, same.get(record.id) if thread.is_whole else None)
        if place is not None:
            message = thread.messages[place]
            mark = {_ID: message.id, _SHOWN: digest(message.text)}
            if _mark(record).get(_SHOWN) not in (mark[_SHOWN], began.get(name)):  # not by the run, which began so
                edited.append((record, place))
                continue
            resumed += [record] if is_taken_back(record) else []
            marks += _marked(record, mark)
        elif record.id in same:  # what a client sends may have other ids each time
            continue
        elif name in began and began[name] == _mark(record).get(_SHOWN):
            marks += _marked(record, {**_mark(record), _TRIMMED: True})
        elif name in began or at in behind or (at in between and _TRIMMED not in _mark(record)):
            left += [] if is_taken_back(record) else [record]
    return Due(left, resumed, edited, marks)


def to_text(draft: Draft) -> Change:
    """The change to what a person has made of a message. It is on the visible branch, so it is not taken back."""

    def change(now: MemoryRecord) -> Patch | None:
        data = {**untouched(now.data), **draft.data}
        return replace(brought_back(now) or Patch(), text=draft.text, data=data)

    return change


def _missing(known: Sequence[str], places: Mapping[str, int], thread: Thread) -> tuple[range, range]:
    """The places where a message that is missing was left: between the first and the last visible one, unless a run has
    trimmed it; and behind the last one, whatever the runs of another branch have trimmed. Threads are trimmed at their
    beginning. If nothing is in common, a person has gone back so far, or it is another thread."""
    visible = [at for at, name in enumerate(known) if name in places]
    if not thread.is_whole or not (visible or thread.is_fork):
        return range(0), range(0)
    if thread.is_over:
        questions = [at for at in visible if thread.messages[places[known[at]]].role == "user"]
        return _said_meanwhile(questions, len(known), thread)
    first, last = (visible[0], visible[-1]) if visible else (0, -1)
    end = last + 1 if thread.is_part and not thread.is_fork else len(known)
    return range(first, last + 1), range(last + 1, end)


def _said_meanwhile(questions: Sequence[int], end: int, thread: Thread) -> tuple[range, range]:
    """`_missing` at the end of a run: what other runs of the thread have said since it began. The thread goes on from
    the run that ends last. What the run itself has dropped is not meant: it was there when the run began, or, if that
    is unknown, before its question."""
    if not questions or thread.is_part:
        return range(0), range(0)
    first, last = questions[0], questions[-1]
    return range(first if thread.began is not None else last, last), range(last + 1, end)


def _marked(record: MemoryRecord, mark: Mapping[str, Json]) -> Iterator[Changed]:
    """The change of what the thread shows of a message that stays as it was said."""
    if _mark(record) != mark:
        yield Changed(record, lambda now: None if _mark(now) == mark else Patch(data={**now.data, THREAD: mark}))


def _mark(message: MemoryRecord | Draft) -> Mapping[str, Json]:
    mark = message.data.get(THREAD)
    return mark if isinstance(mark, Mapping) else {}
