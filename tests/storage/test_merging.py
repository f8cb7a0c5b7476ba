"""The fate of a record when another one has its source key, or when it changes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core import Draft, Memory, Scope, utc_now
from memory_core.handle import settled
from memory_core.records.draft_to_record import complete
from memory_core.storage.shared.merging import is_searched_differently
from tests.storage.embedders import WordEmbedder

NOW = utc_now()
STORED = complete(Draft("Tea at five", author="Ann", session="kitchen"), Scope(app="demo", user="ann"), NOW)


@pytest.mark.parametrize(
    "changes",
    [{"text": "Tea at six"}, {"author": "Bob"}, {"occurred_at": NOW - timedelta(days=1)}, {"session": "garden"}],
    ids=", ".join,
)
def test_words_the_speaker_the_time_and_the_session_change_how_a_record_is_searched(changes: dict[str, Any]) -> None:
    assert is_searched_differently(STORED, replace(STORED, **changes))


@pytest.mark.parametrize(
    "changes",
    [{}, {"tags": ("drinks",)}, {"importance": 0.9}, {"state": "archived"}, {"version": 2}, {"expires_at": NOW}],
    ids=lambda changes: ", ".join(changes) or "nothing",
)
def test_other_fields_do_not_change_how_a_record_is_searched(changes: dict[str, Any]) -> None:
    assert not is_searched_differently(STORED, replace(STORED, **changes))


class Lines:
    """A piece for so many lines."""

    def __init__(self, together: int) -> None:
        self._together = together

    def split(self, text: str) -> list[tuple[int, int]]:
        ends = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]
        places = [*ends[: -1 : self._together], ends[-1]]
        return list(itertools.pairwise(places))


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)], ids=["fewer pieces", "more pieces"])
async def test_vectors_are_kept_for_the_same_pieces_only(tmp_path: Path, before: int, after: int) -> None:
    """A text that is stored again by another author, in a file that another chunker splits now."""
    text = "".join(
        f"line {n} is about {'tea' if n < 5 else 'boats'} in the old harbour of the town\n" for n in range(10)
    )
    async with Memory(tmp_path / "memory.db", embedder=WordEmbedder(), chunker=Lines(before)) as memory:
        await memory.bind(user="ann").add(Draft(text, author="Ann", source_key="page"))
    async with Memory(tmp_path / "memory.db", embedder=WordEmbedder(), chunker=Lines(after)) as memory:
        ann = memory.bind(user="ann")
        await ann.add(Draft(text, author="Bob", source_key="page"))
        await settled(ann)
        assert await memory.operator().check() == []
        (hit,) = await ann.search("boats in the harbour", floor=False)
        assert hit.record.author == "Bob"
        assert hit.passage is not None
        assert "boats" in hit.passage.text
        assert len(hit.passage.text.splitlines()) == after
