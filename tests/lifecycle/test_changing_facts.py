"""200 facts that change over 50 conversations, with a model that answers as it should: what is current, and the rest.

This shows that the mechanism works, and says nothing about how good a model is at its part.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from memory_core import BoundMemory, Draft, Memory, Where
from memory_core.lifecycle import MaintainPolicy, Maintenance, Manager, maintain
from memory_core.supplied import ChatMessage
from tests.lifecycle.scripted import shown

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
PEOPLE = ("Ann", "Marta", "Oskar", "Priya", "Lena", "Hugo", "Nina", "Tom", "Ingrid", "Ben")
THINGS = (
    *("locker code", "gate code", "badge number", "desk number", "parking space", "meeting room", "train line"),
    *("dentist", "landlord", "bank", "gym", "supplier", "courier", "printer", "editor", "tailor", "baker"),
    *("plumber", "vet", "tutor"),
)
TREES = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple")
SESSIONS = 50
CHANGES = 12
"""Facts that one conversation states, after all have been stated once in the first ten."""


class Bookkeeper:
    """Sees by its first words which fact a turn is about."""

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        facts, turns = shown(messages)
        known = {fact.partition(" is ")[0]: place for place, fact in enumerate(facts, 1)}
        lines = [
            f"correct T{number} F{known[about]}: {text}" if about in known else f"add T{number} fact: {text}"
            for number, (who, text) in enumerate(turns, 1)
            if who == "user"
            for about in [text.partition(" is ")[0]]
        ]
        return "\n".join(lines) or "nothing"


def conversations(chance: random.Random) -> tuple[list[Draft], dict[str, list[str]]]:
    """All turns, and the statements about each thing in the order in which they were made."""
    about = [f"{who}'s {thing}" for who in PEOPLE for thing in THINGS]
    said: dict[str, list[str]] = defaultdict(list)
    drafts: list[Draft] = []
    for day in range(SESSIONS):
        chosen = chance.sample(about, CHANGES) + about[day * 20 : day * 20 + 20]
        for minute, thing in enumerate(dict.fromkeys(chosen)):
            text = f"{thing} is {chance.choice(TREES)} {chance.randrange(100, 999)} now"
            said[thing].append(text)
            at = START + timedelta(days=day, minutes=minute)
            drafts.append(Draft(text, kind="message", role="user", session=f"day {day}", occurred_at=at))
    return drafts, said


async def history_of(ann: BoundMemory, text: str) -> list[str]:
    page = await ann.list(where=Where(kinds=["fact"], keywords=[text]))
    found = [record for record in page.records if record.text == text]
    return [version.text for version in await ann.history(found[0].id)] if len(found) == 1 else []


@pytest.mark.slow
async def test_the_current_value_is_first_and_the_history_is_whole() -> None:
    drafts, said = conversations(random.Random(4))
    policy = MaintainPolicy(contradictions="supersede", alike="keep")
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="Ann")
        await ann.add_many(drafts)
        done = await maintain(ann, policy, model=Manager(Bookkeeper(), known=100))
        assert done.usage.calls == SESSIONS
        first = whole = 0
        for thing, texts in said.items():
            hits = await ann.search(f"What is {thing}?", where=Where(kinds=["fact"]), floor=False, limit=1)
            first += hits[0].record.text == texts[-1]
            whole += await history_of(ann, texts[-1]) == texts
        assert len(said) == 200
        assert sum(map(len, said.values())) > 700
        assert first >= 190
        assert whole >= 190
        assert await maintain(ann, policy, model=Bookkeeper()) == Maintenance()
