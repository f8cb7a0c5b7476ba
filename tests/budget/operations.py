"""The main operations of a memory of one owner with 1,000 records."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from memory_core import Draft, Memory, Message, Patch
from tests.budget.counting import Counter, Work
from tests.budget.measuring import Measuring, Operation, opened

RECORDS: Final = 1_000
_SYLLABLES: Final = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "ar", "en")]
_WORDS: Final = [a + b for a in _SYLLABLES for b in _SYLLABLES][::5]
QUESTION: Final = f"What about {_WORDS[3]} and {_WORDS[200]} {_WORDS[500]}?"
OTHER_QUESTION: Final = f"Who said {_WORDS[40]} {_WORDS[41]}?"


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of twelve made-up words."""
    dice = random.Random(seed)
    return [" ".join(dice.choices(_WORDS, k=12)).capitalize() + "." for _ in range(count)]


def drafts(count: int, seed: int) -> list[Draft]:
    """Turns of conversations of 40."""
    texts = sentences(count, seed)
    return [Draft(text, author="ann", session=f"s{n // 40}", kind="message") for n, text in enumerate(texts)]


def conversation(seed: int) -> list[Message]:
    """Ten messages."""
    return [Message(text, role=("user", "assistant")[n % 2]) for n, text in enumerate(sentences(10, seed))]


async def count_operations(counter: Counter, folder: Path) -> dict[str, Work]:
    """By name the work of each operation, when all that is done once in a process has been done."""
    path = folder / "operations.db"
    async with opened(path) as memory:
        await memory.bind(app="budget", user="ann").add_many(drafts(RECORDS, 1))
        await _all(counter, memory, path, seed=100)
    return await _opening(counter, path) | await _again(counter, path)


async def _opening(counter: Counter, path: Path) -> dict[str, Work]:
    """Open the file and search, as the first things in a process that has everything imported."""
    memory = opened(path)
    measuring, ann = Measuring(counter, memory, path), memory.bind(app="budget", user="ann")
    found = {"open": await measuring.count(memory.open, opens=True)}
    found["first search"] = await measuring.count(lambda: ann.search(QUESTION))
    await memory.close()
    return found


async def _again(counter: Counter, path: Path) -> dict[str, Work]:
    async with opened(path) as memory:
        await _all(counter, memory, path, seed=200)
        return await _all(counter, memory, path, seed=300)


async def _all(counter: Counter, memory: Memory, path: Path, seed: int) -> dict[str, Work]:
    """The operations on an open file: those that change nothing first."""
    measuring, ann = Measuring(counter, memory, path), memory.bind(app="budget", user="ann")
    record = (await ann.list(limit=1)).records[0]
    await ann.search(OTHER_QUESTION)  # brings the index in memory up to date
    works: dict[str, Operation] = {
        "search": lambda: ann.search(QUESTION),
        "recall": lambda: ann.recall(QUESTION),
        "list a page": lambda: ann.list(limit=50),
        "get": lambda: ann.get(record.id),
        "update": lambda: ann.update(record.id, Patch(text=sentences(1, seed + 1)[0])),
        "add one": lambda: ann.add(drafts(1, seed + 2)[0]),
        "add 100": lambda: ann.add_many(drafts(100, seed + 3)),
        "remember 10 messages": lambda: ann.remember(conversation(seed + 4), session=f"s{seed}"),
    }
    return {name: await measuring.count(work) for name, work in works.items()}
