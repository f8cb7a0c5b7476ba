"""A summary stands in a block for the turns that it replaced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory_core import Draft, Link, Memory, Patch

START = datetime(2026, 3, 2, tzinfo=UTC)
SUMMARY = "Ann: I'm allergic to peanuts.\nAnn: We bought a compass at the fair."


async def test_a_summary_stands_for_turns_that_are_compacted() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for number, text in enumerate(("I'm allergic to peanuts.", "We bought a compass at the fair.")):
            at = START + timedelta(minutes=number)
            await ann.add(Draft(text, kind="message", role="user", session="s", occurred_at=at, id=f"t{number}"))
        links = [Link("summarizes", f"t{number}") for number in range(2)]
        await ann.add(Draft(SUMMARY, kind="summary", session="s", links=links, id="sum"))
        for number in range(2):
            await ann.update(f"t{number}", Patch(state="compacted"))
        assert [record.id for record in (await ann.recall("Which compass did we buy?")).records] == ["sum"]
