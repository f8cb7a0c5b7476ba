"""The past of a process, cached, deleted or searched, changes no ranking: after any history a fresh one agrees."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from memory_core import BoundMemory, Draft, Memory, Patch, Where
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.models import Mode, Role
from memory_core.retrieval.owner_index import OwnerIndex

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
WORDS: Final = [
    *["boat", "pier", "friday", "harbour", "tea", "kettle", "roof"],
    *["blue", "letter", "Ann", "Tom", "walrus", "seven", "yesterday"],
]
AUTHORS: Final = ("Ann", "Tom Field", "Eve", None)
ROLES: Final[tuple[Role | None, ...]] = ("user", "assistant", "tool", None)
QUERIES: Final = (
    "When did Ann see the boat at the pier?",
    "What did you say about the blue kettle?",
    "Where do I keep the letter?",
    "tea",
)
MODES: Final[tuple[Mode, ...]] = ("hybrid", "lexical", "vector")
WHERES: Final = (Where(), Where(kinds=("fact",)), Where(session="s1"))


def draft(dice: random.Random) -> Draft:
    text = " ".join(dice.choices(WORDS, k=dice.choice((1, 4, 9, 300)))) + dice.choice((".", "?"))
    return Draft(
        text,
        kind=dice.choice(("message", "fact")),
        role=dice.choice(ROLES),
        author=dice.choice(AUTHORS),
        session=dice.choice(("s1", "s2", "s3", None)),
        occurred_at=START + timedelta(minutes=dice.randrange(500)),
    )


async def step(ann: BoundMemory, dice: random.Random) -> None:
    known = (await ann.list(limit=1_000)).records
    what = dice.choice(("add", "add many", "search", "update", "move", "leave", "delete", "delete some"))
    if what == "search" or (not known and not what.startswith("add")):
        await ann.search(dice.choice(QUERIES), mode=dice.choice(MODES), where=dice.choice(WHERES))
    elif what == "add":
        await ann.add(draft(dice))
    elif what == "add many":
        await ann.add_many([draft(dice) for _ in range(dice.randrange(1, 12))])
    elif what == "update":
        await ann.update(dice.choice(known).id, Patch(text=draft(dice).text, author=dice.choice(AUTHORS)))
    elif what == "move":
        await ann.update(dice.choice(known).id, Patch(occurred_at=draft(dice).occurred_at or START, role="user"))
    elif what == "leave":
        both = (await ann.list(where=Where(left=None), limit=1_000)).records
        await ann.update(dice.choice(both).id, Patch(left=dice.random() < 0.5))
    elif what == "delete":
        await ann.delete(dice.choice(known).id)
    else:
        gone = tuple(record.id for record in dice.sample(known, min(3, len(known))))
        await ann.delete_where(Where(ids=gone))


async def rankings(ann: BoundMemory) -> list[list[tuple[str, float]]]:
    return [
        [
            (hit.record.id, round(hit.score, 3))
            for hit in await ann.search(query, mode=mode, where=where, floor=floor, limit=50)
        ]
        for query in QUERIES
        for mode in MODES
        for where in WHERES
        for floor in (True, False)
    ]


async def disagreements(folder: Path, seed: int, steps: int) -> list[int]:
    """The rankings in which a store with a history and one that has just opened a copy of its file differ."""
    dice = random.Random(seed)
    async with Memory(folder / "lived.db", embedder=HashingEmbedder(dimensions=32)) as memory:
        ann = memory.bind(user="ann")
        for _ in range(steps):
            await step(ann, dice)
        lived = await rankings(ann)
        with (
            closing(sqlite3.connect(folder / "lived.db")) as source,
            closing(sqlite3.connect(folder / "copy.db")) as copy,
        ):
            source.backup(copy)
    async with Memory(folder / "copy.db", embedder=HashingEmbedder(dimensions=32)) as memory:
        fresh = await rankings(memory.bind(user="ann"))
    return [n for n, (one, other) in enumerate(zip(lived, fresh, strict=True)) if one != other]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_a_fresh_process_ranks_like_one_with_any_history(tmp_path: Path, seed: int) -> None:
    assert await disagreements(tmp_path, seed, 40) == []


async def test_statistics_that_count_what_was_deleted_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnerIndex, "living", property(len))
    assert await disagreements(tmp_path, 1, 40)
