"""Of several values of one thing, the one that holds now stands in the block, and nothing in it is later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice

import pytest

from memory_core import BoundMemory, Memory, Message, RecallOptions
from tests.recall.people import START, Person, people

QUESTIONS = ("Where do I live now?", "Which city is my home?", "What is my job?", "What is our pet called?")


@pytest.mark.parametrize("count", [6, pytest.param(50, marks=pytest.mark.torture)])
async def test_the_current_value_is_the_latest_in_the_block(count: int) -> None:
    latest = asked = 0
    async with Memory(":memory:", clock=lambda: START + timedelta(days=900)) as memory:
        for person in islice(people(), count):
            ann = memory.bind(app="chat", user=person.name)
            for session, said in enumerate(visits(person)):
                await ann.remember(said, session=f"visit {session}")
            for question, values in zip(QUESTIONS, values_of(person), strict=True):
                asked += 1
                latest += await is_latest(ann, question, values)
    assert latest >= 0.95 * asked, f"{latest} of {asked}"


async def is_latest(ann: BoundMemory, question: str, values: Sequence[str]) -> bool:
    """True if the latest memory in the block that names one of the values, of which the last one holds, names it."""
    block = await ann.recall(question, RecallOptions(max_chars=1_500, floor=False))
    naming = [each for each in block.records if any(value in each.text for value in values)]
    return values[-1] in max(naming, key=lambda each: each.occurred_at).text if naming else False


def visits(person: Person) -> Iterator[list[Message]]:
    """The words of a person, three exchanges at a time."""
    for at in range(0, len(person.turns), 3):
        said: list[Message] = []
        for text, answer, when in person.turns[at : at + 3]:
            said += [Message(text, occurred_at=when), Message(answer, role="assistant", occurred_at=when)]
        yield said


def values_of(person: Person) -> tuple[Sequence[str], ...]:
    return person.cities, person.cities, person.jobs, person.pets
