"""Keep what a thread shows: its new messages, each once, and what a person has changed in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from memory_core.capture.alignment import Said, known_messages, said, said_under
from memory_core.capture.known_messages import within
from memory_core.capture.message_to_draft import Message, message_drafts
from memory_core.capture.remember import STEP, continuing, stored_of
from memory_core.capture.taking_back import Changed, apply, bring_back, is_taken_back, take_back, take_back_derived
from memory_core.conversation.following import Thread, Visible, digest, due, id_in_thread, threaded, to_text
from memory_core.handle import BoundMemory
from memory_core.models import STATES, Draft, MemoryRecord
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.values.times import shifted
from memory_core.where.where import Where

_OTHER_WRITERS: Final = 20
"""Messages that other writers may add to a conversation during one turn."""
_MOST: Final = 10_000
"""Most records of a conversation that are compared."""
_LONG_CHARS: Final = 20_000
"""Vectors of longer messages are computed in the background, so that no turn waits seconds for them. Until then, only
keyword search finds these messages."""

Drafts = Callable[[Sequence[int]], Awaitable[Sequence[Draft]]]
"""Makes the drafts of the messages at some positions of a thread."""


async def keep(handle: BoundMemory, session: str, thread: Thread, new: Collection[int], drafts: Drafts) -> list[str]:
    """Store what is new in a thread, and follow what a person has changed in it; returns the ids of the records of its
    messages that were stored before.

    Messages that any framework changed or deleted stay as they are, unless the person changes them in the thread. If a
    client resends a thread without ids, its messages get new ids each time and are recognised by their position in the
    thread, so a thread with a single message counts as new.

    Args:
        handle: The memory to store in.
        session: The conversation.
        thread: All that the conversation currently shows.
        new: The positions of the messages that are stored if they are not known.
        drafts: Makes drafts, without source keys.
    """
    handle, start = handle.own, _start_of_run(thread)
    records, is_complete = await _since(handle, session, thread, start), False
    if not records:
        start, (records, is_complete) = 0, await _last(handle, session, thread)
    by_id = _by_id(records, thread)
    # A message with another id is another one in a thread that the framework keeps, although it says the same.
    are_ids_certain = bool(start) or (thread.is_whole and (bool(by_id) or thread.is_fork))
    known = by_id
    if not are_ids_certain or any(thread.messages[place].id is None for place in new):
        aligned = _aligned(records, thread, by_id, is_complete=is_complete)
        without = {place: record for place, record in aligned.items() if thread.messages[place].id is None}
        known = (without if are_ids_certain else aligned) | by_id
    await _follow(handle, records, thread, known, drafts)
    answers = _answers_from(thread, by_id)
    due_now = [place for place in sorted(new) if place >= start]
    fresh = [place for place in due_now if place not in known or (place >= answers and place not in by_id)]
    if fresh:
        before = [known[place] for place in sorted(known) if place < fresh[0]]
        after = before[-1] if before else next(reversed(records), None)
        made = await _threaded(thread, fresh, drafts)
        keyed = continuing(handle.scope, made, after=after, others=records if are_ids_certain else ())
        timed = await _after_last(handle, next(reversed(records), None), keyed)
        await handle.add_many(timed, embed=when_embedded(timed))
    return [record.id for record in known.values()]


async def append(handle: BoundMemory, session: str, drafts: Sequence[Draft]) -> None:
    """Store messages at the end of a conversation. One whose id is among its last messages, however it was stored,
    replaces that message.

    Args:
        handle: The memory to store in.
        session: The conversation.
        drafts: In order, made by `threaded`. Those without source keys are new.
    """
    if not drafts:
        return
    handle = handle.own
    ids = {name for draft in drafts if (name := id_in_thread(draft)) is not None}
    limit = min(2 * len(drafts) + _OTHER_WRITERS, _MOST) if ids else 1
    where = Where(session=session, kinds=(MESSAGE_KIND,), states=STATES)
    page = await handle.list(where=where, order="newest", limit=limit)
    stored: dict[str | None, str | None] = {
        name: record.source_key for record in page.records if (name := id_in_thread(record)) in ids
    }
    keyed = [
        replace(draft, source_key=stored.get(id_in_thread(draft)) or within(handle.scope, draft.source_key))
        if draft.source_key is not None
        else draft
        for draft in drafts
    ]
    timed = await _after_last(handle, next(iter(page.records), None), keyed)
    await handle.add_many(timed, embed=when_embedded(timed))


async def follow_branch(handle: BoundMemory, session: str, visible: Sequence[Message], left: Sequence[Message]) -> None:
    """Take back the messages of branches that a conversation has left, and bring back those that it shows again.

    Args:
        handle: The memory that they were remembered in, by `BoundMemory.remember`.
        session: The conversation.
        visible: The messages with ids on the branch that is visible.
        left: The messages with ids on other branches.
    """
    handle = handle.own
    page = await handle.list(where=Where(session=session, states=("compacted",)), limit=_MOST)
    if page.records:
        shown = set(_keys(handle, session, visible))
        await bring_back(handle, [record for record in page.records if record.source_key in shown])
    if keys := _keys(handle, session, left)[-_MOST:]:
        gone = await handle.list(where=Where(session=session, source_keys=keys), limit=_MOST)
        await take_back(handle, gone.records)


def _keys(handle: BoundMemory, session: str, messages: Sequence[Message]) -> list[str]:
    drafts = message_drafts(messages, session=session, data={})
    return [within(handle.scope, draft.source_key) for draft in drafts if draft.source_key is not None]


def when_embedded(drafts: Sequence[Draft]) -> Literal["now", "later"]:
    """Whether the vectors of these messages are computed at once or in the background."""
    return "later" if sum(len(draft.text) for draft in drafts) > _LONG_CHARS else "now"


async def _after_last(handle: BoundMemory, last: MemoryRecord | None, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """The drafts; if the clock has been set back since the last message, the new ones with times after it."""
    if last is None or last.occurred_at <= handle.memory.clock():
        return drafts
    known = await stored_of(handle, [draft.source_key for draft in drafts if draft.source_key is not None])
    return [
        draft if draft.source_key in known else replace(draft, occurred_at=shifted(last.occurred_at, place * STEP))
        for place, draft in enumerate(drafts, 1)
    ]


def _start_of_run(thread: Thread) -> int:
    """The position of the question that a run that is over began with, if all before it is as it was then; else 0.

    Only in a thread that the framework keeps: elsewhere ids are new each time, and another process may have stored the
    same answer under the id that it has there.
    """
    began = list((thread.began or {}).items())
    start = len(began) - 1
    if not (thread.is_whole and thread.is_over) or not 0 < start < len(thread.messages):
        return 0
    question = thread.messages[start]
    before = [(message.id, digest(message.text)) for message in thread.messages[:start]]
    return start if question.role == "user" and question.id == began[start][0] and before == began[:start] else 0


async def _since(handle: BoundMemory, session: str, thread: Thread, start: int) -> Sequence[MemoryRecord]:
    """The records from a question on, in order and in every state; nothing if it is not stored.

    A question is stored when everything before it has been followed.
    """
    if not start:
        return ()
    where = Where(session=session, kinds=(MESSAGE_KIND,), states=STATES)
    limit = min(2 * (len(thread.messages) - start) + _OTHER_WRITERS, _MOST)
    page = await handle.list(where=where, order="newest", limit=limit)
    found = (at for at, record in enumerate(page.records) if id_in_thread(record) == thread.messages[start].id)
    place = next(found, None)
    return () if place is None or is_taken_back(page.records[place]) else page.records[place::-1]


async def _last(handle: BoundMemory, session: str, thread: Thread) -> tuple[Sequence[MemoryRecord], bool]:
    """The last messages of a conversation, in order and in every state, and whether they are all of it."""
    where = Where(session=session, kinds=(MESSAGE_KIND,), states=STATES)
    limit = _MOST if thread.is_fork else min(2 * len(thread.messages) + _OTHER_WRITERS, _MOST)
    page = await handle.list(where=where, order="newest", limit=limit)
    is_elsewhere = thread.places().keys().isdisjoint(map(id_in_thread, page.records))
    if thread.is_whole and is_elsewhere and page.cursor is not None and limit < _MOST:
        page = await handle.list(where=where, order="newest", limit=_MOST)  # it may go on from long ago
    return page.records[::-1], page.cursor is None


async def _follow(
    handle: BoundMemory,
    records: Sequence[MemoryRecord],
    thread: Thread,
    by_place: Mapping[int, MemoryRecord],
    drafts: Drafts,
) -> None:
    found = due(records, thread, {record.id: place for place, record in by_place.items()})
    texts = await _threaded(thread, [place for _, place in found.edited], drafts) if found.edited else []
    edits = [Changed(record, to_text(draft)) for (record, _), draft in zip(found.edited, texts, strict=True)]
    await take_back(handle, found.left)
    await bring_back(handle, found.resumed)
    await take_back_derived(handle, [record for record, _ in found.edited])
    await apply(handle, [*edits, *found.marks])


async def _threaded(thread: Thread, places: Sequence[int], drafts: Drafts) -> list[Draft]:
    made = await drafts(places)
    return [threaded(draft, thread.messages[place].id) for place, draft in zip(places, made, strict=True)]


def _by_id(records: Sequence[MemoryRecord], thread: Thread) -> dict[int, MemoryRecord]:
    """The records of messages with ids that the thread has, by position in the thread."""
    places = thread.places()
    named = ((id_in_thread(record), record) for record in records)
    return {places[name]: record for name, record in named if name is not None and name in places}


def _aligned(
    records: Sequence[MemoryRecord], thread: Thread, by_id: Mapping[int, MemoryRecord], *, is_complete: bool
) -> dict[int, MemoryRecord]:
    """The records of messages at the same place of the conversation, by position in the thread. A record and a message
    are the same if they have the same id, or the same text and not both a known id."""
    ids = {thread.messages[place].id for place in by_id}
    stored = [record for record in records if id_in_thread(record) in ids or not is_taken_back(record)]
    spoken = [place for place, message in enumerate(thread.messages) if message.text.strip()]
    if len(spoken) <= 1:
        return {}
    tokens = [_recognised(Visible(record.role, record.text, id_in_thread(record)), ids) for record in stored]
    given = [_recognised(thread.messages[place], ids) for place in spoken]
    found = known_messages(given, tokens, is_complete=is_complete)
    return {spoken[at]: stored[there] for at, there in found.items()}


def _answers_from(thread: Thread, by_id: Mapping[int, MemoryRecord]) -> int:
    """The position of the first answer that belongs to this run alone: the one after a last question stored under its
    own id.

    Other runs may have received the same answer in this conversation in the meantime. A question that was recognised
    by its text was asked before, so its answer may be stored as well.
    """
    asked = [place for place, said in enumerate(thread.messages) if said.role == "user" and said.text.strip()]
    return asked[-1] + 1 if asked and asked[-1] in by_id else len(thread.messages)


def _recognised(message: Visible, ids: Container[str | None]) -> Said:
    """The key by which a message is recognised: its id if both sides have one, else its text."""
    if message.id is not None and message.id in ids:
        return said_under(message.role, message.id)
    return said(message.role, message.text)
