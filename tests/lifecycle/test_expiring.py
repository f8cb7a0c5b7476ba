"""Turns that expire while maintenance works on them: what it would have drawn from them goes with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest_asyncio

from memory_core import BoundMemory, Draft, Memory, Where
from memory_core.lifecycle import Manager, apply_steps, maintain
from memory_core.models import STATES
from memory_core.retrieval.hits import EXTRACTION
from memory_core.supplied import ChatMessage
from memory_core.testing import Ticks
from tests.lifecycle.scripted import Diligent


class Slow:
    """A good model that takes two hours for its first answer."""

    def __init__(self, clock: Ticks) -> None:
        self._clock, self._model = clock, Diligent()

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        if not self._model.asked:
            self._clock.advance(hours=2)
        return await self._model.complete(messages)


@pytest_asyncio.fixture
async def clock() -> Ticks:
    return Ticks()


@pytest_asyncio.fixture
async def ann(tmp_path: Path, clock: Ticks) -> AsyncIterator[BoundMemory]:
    """Two conversations, of which the first expires in an hour."""
    async with Memory(tmp_path / "m.db", embedder=None, clock=clock) as memory:
        ann = memory.bind(user="ann")
        soon = clock.now + timedelta(hours=1)
        for session, text, expires in (("a", "I live in Oslo", soon), ("b", "I collect stamps", None)):
            await ann.add(
                Draft(text, kind="message", role="user", author="ann", session=session, expires_at=expires, id=session)
            )
            clock.advance(minutes=1)
        yield ann


async def texts(handle: BoundMemory) -> dict[str, set[str]]:
    """The texts by kind, in whatever state."""
    found: dict[str, set[str]] = {}
    for record in (await handle.list(where=Where(states=STATES))).records:
        found.setdefault(record.kind, set()).add(record.text)
    return found


async def test_a_turn_that_expires_while_a_model_reads_it_leaves_no_fact(ann: BoundMemory, clock: Ticks) -> None:
    done = await maintain(ann, model=Manager(Slow(clock)))
    assert [[draft.text for draft in step.added if draft.text] for step in done.skipped] == [["I live in Oslo"]]
    found = await texts(ann)
    assert found["fact"] == {"I collect stamps"}
    assert found["message"] == {"I collect stamps"}
    again = await maintain(ann, model=Manager(Diligent()))
    assert (again.steps, again.skipped) == ((), ())
    assert await texts(ann) == found


async def test_a_step_whose_turn_has_expired_since_it_was_planned_is_skipped_whole(
    ann: BoundMemory, clock: Ticks
) -> None:
    planned = await maintain(ann, model=Manager(Diligent()), dry_run=True)
    assert len(planned.steps) == 2
    clock.advance(hours=2)
    done = await apply_steps(ann, planned.steps)
    assert [step.added[0].expires_at is None for step in done.steps] == [True]
    assert len(done.skipped) == 1
    found = await texts(ann)
    assert found["fact"] == {"I collect stamps"}
    assert found[EXTRACTION] == {""}
    notes = await ann.list(where=Where(kinds=[EXTRACTION], states=STATES))
    assert len(notes.records) == 1  # none for the turn that is gone
