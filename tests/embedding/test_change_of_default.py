"""A file whose vectors are the English model's goes on with the default one: online, and nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memory_core import DEFAULT_EMBEDDER, FingerprintError, Memory, MiniLmEmbedder
from memory_core.handle import settled
from memory_core.transfer.jsonl import export_jsonl, import_jsonl

TEXTS = [*(f"Ann counts to {n}" for n in range(60)), "Der Schlüssel hängt neben der Kellertür."]
QUESTION = "Where do I find the key to the cellar?"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that was written with the English model."""
    with Memory(tmp_path / "memory.db", embedder=MiniLmEmbedder()) as memory:
        memory.bind(user="ann").sync.add_many(TEXTS)
    return tmp_path / "memory.db"


def test_the_default_embedder_does_not_mix_its_vectors_with_those_of_another(path: Path) -> None:
    with pytest.raises(FingerprintError, match="reembed"), Memory(path) as memory:
        memory.bind(user="ann").sync.search(QUESTION)


def test_searches_go_on_while_the_vectors_are_computed(path: Path) -> None:
    async def work() -> tuple[int, list[str]]:
        async with Memory(path, embedder=MiniLmEmbedder()) as memory:
            ann = memory.bind(user="ann")
            computing = asyncio.create_task(memory.reembed(DEFAULT_EMBEDDER))
            searches = 0
            while not computing.done():
                assert await ann.search("Ann counts to 7", limit=1)
                searches += 1
            await computing
            return searches, [hit.record.text for hit in await ann.search(QUESTION, limit=1)]

    searches, found = asyncio.run(work())
    assert searches > 1
    assert found == [TEXTS[-1]]
    with Memory(path) as memory:
        assert memory.bind(user="ann").sync.search(QUESTION, limit=1)[0].record.text == TEXTS[-1]


def test_an_export_with_other_vectors_comes_in_and_gets_the_vectors_of_the_default(path: Path, tmp_path: Path) -> None:
    lines: list[bytes] = []

    async def work() -> tuple[int, str]:
        async with Memory(path, embedder=MiniLmEmbedder()) as source:
            await export_jsonl(source, lines.append)
        async with Memory(tmp_path / "other.db") as target:
            await import_jsonl(target, b"".join(lines).splitlines(keepends=True))
            ann = target.bind(user="ann")
            await settled(ann)
            (hit,) = await ann.search(QUESTION, limit=1)
            return (await ann.stats()).vectors_pending, hit.record.text

    assert asyncio.run(work()) == (0, TEXTS[-1])
