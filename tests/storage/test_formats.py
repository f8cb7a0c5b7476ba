"""A file of every released format opens, and has all that its version wrote."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from memory_core import Draft, ForgottenError, Memory, MiniLmEmbedder
from memory_core.where.where import ANY_STATE

FORMATS = sorted((Path(__file__).parent / "formats").glob("*.db.gz"))


def test_there_is_a_file_of_a_format() -> None:
    assert FORMATS


@pytest.fixture(params=FORMATS, ids=lambda file: file.name)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    released: Path = request.param
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress(released.read_bytes()))
    return path


async def test_a_file_of_a_released_format_is_read_and_written(path: Path) -> None:
    async with Memory(path, embedder=MiniLmEmbedder()) as memory:  # the default of 0.1
        ann = memory.bind(app="demo", user="ann")
        records = {record.text: record for record in await ann.list(where=ANY_STATE)}
        assert set(records) == {
            "The spare key is with Mrs Okafor, second floor",
            "Ann lives in Oslo",
            "Ann lives in Bergen",
            "Where did I park?",
            "Where did I pakr?",
            "In front of the bakery.",
            "Das Fahrrad steht im Keller",
        }
        assert [text for text, record in records.items() if record.left] == ["Where did I pakr?"]
        key = records["The spare key is with Mrs Okafor, second floor"]
        assert (key.tags, key.importance, key.confidence, key.emotion) == (("house", "pinned"), 0.9, 0.8, "calm")
        assert (key.data, key.collection, key.agent) == ({"floor": 2, "names": ["Okafor", None]}, "home/keys", "helper")
        assert (await ann.history(key.id))[0].text == "The spare key is with Mrs Okafor"
        assert (await ann.search("Who has the spare key?"))[0].record.id == key.id
        assert "second floor" in (await ann.profile()).text
        assert [hit.record.text for hit in await ann.search("Where does Ann live now?", limit=1)] == [
            "Ann lives in Bergen"
        ]
        assert records["Ann lives in Bergen"].links[0].id in {key.id, records["Ann lives in Oslo"].id}
        with pytest.raises(ForgottenError):
            await ann.add(Draft("Forget me", source_key="gone"))
        await ann.add("New here")
        assert (await ann.search("New here", mode="substring"))[0].record.text == "New here"
        assert await memory.operator().check() == []
