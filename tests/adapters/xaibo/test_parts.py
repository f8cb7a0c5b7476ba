"""The chunker, the embedders and the index, beside what Xaibo's own promise.

Where ours differ there is a reason: a chunk never lies inside another one, tokens are words unless an encoding is named
(which needs a download), ids of vectors are texts, and a vector without a direction is refused.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken
from foreign_parts import Digests, Spellings

from memory_core import EmbeddingError, InvalidInputError, Memory
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.testing import EmbedderContract
from memory_xaibo import (
    SentenceTransformerEmbedder,
    TextEmbedder,
    TokenChunker,
    UnsupportedModalityError,
    VectorIndex,
    XaiboEmbedder,
)

SENTENCE = "This is a longer piece of text that should be split into multiple chunks based on token count."


def test_a_chunker_takes_xaibos_configuration_and_defaults() -> None:
    assert (TokenChunker().window_size, TokenChunker({}).window_overlap) == (512, 50)
    given = TokenChunker({"window_size": 256, "window_overlap": 25, "encoding_name": "p50k_base"})
    assert (given.window_size, given.window_overlap, given.encoding_name) == (256, 25, "p50k_base")
    assert TokenChunker({"window_size": 256}, window_size=128).window_size == 128
    with pytest.raises(InvalidInputError, match="must be smaller than"):
        TokenChunker({"window_size": 10, "window_overlap": 10})
    with pytest.raises(InvalidInputError, match="no config option 'size'"):
        TokenChunker({"size": 10})


async def test_a_chunker_cuts_as_xaibos_does() -> None:
    assert await TokenChunker().chunk("") == await TokenChunker().chunk("   ") == []
    assert await TokenChunker({"window_size": 100}).chunk(SENTENCE) == [SENTENCE]
    overlapping = await TokenChunker({"window_size": 10, "window_overlap": 5}).chunk(SENTENCE)
    apart = await TokenChunker({"window_size": 10, "window_overlap": 0}).chunk(SENTENCE)
    assert len(overlapping) > len(apart) > 1
    assert len("".join(await TokenChunker({"window_size": 10, "window_overlap": 2}).chunk(SENTENCE))) >= len(SENTENCE)


TEXTS = {
    "words": " ".join(map(str, range(18))),
    "japanese": "".join(f"{n}毎日お茶を飲みます。" for n in range(20)),
    "families": "".join(f"{n}👩‍👩‍👧‍👦" for n in range(40)),
    "special tokens": "".join(f"<|endoftext|>{n} " for n in range(30)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_no_chunk_lies_in_another_one_and_no_character_is_cut(text: str) -> None:
    chunks = await TokenChunker(window_size=10, window_overlap=2).chunk(text)
    assert len(chunks) > 1
    assert all(later not in earlier for earlier, later in itertools.pairwise(chunks))
    assert "\ufffd" not in "".join(chunks)
    assert all(chunk in text for chunk in chunks)


async def test_an_encoding_of_tiktoken_tells_the_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes as tokens: an encoding that needs no download."""
    ranks = {bytes([n]): n for n in range(256)}
    bytewise = tiktoken.Encoding("bytewise", pat_str=".|\n", mergeable_ranks=ranks, special_tokens={"<|end|>": 256})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "bytewise", bytewise)
    chunker = TokenChunker(window_size=8, window_overlap=2, encoding_name="bytewise")
    assert await chunker.chunk("abcdefghijklmn") == ["abcdefgh", "ghijklmn"]
    assert "".join(await chunker.chunk("<|end|>é💥ü<|end|>")).count("\ufffd") == 0
    with pytest.raises(InvalidInputError, match="no encoding 'klingon'"):
        await TokenChunker(encoding_name="klingon").chunk("x")


async def test_an_embedder_of_texts_does_what_xaibos_does() -> None:
    embedder = SentenceTransformerEmbedder({"model_name": "all-MiniLM-L6-v2", "model_kwargs": {"device": "cpu"}})
    assert embedder.model_name == SentenceTransformerEmbedder({}).model_name
    cat, mat, other = [
        await embedder.text_to_embedding(text)
        for text in ("The cat sat on the mat", "A cat is sitting on a mat", "Completely different text")
    ]
    assert cat.dtype == np.float32
    assert cat @ mat > 0.7 > cat @ other
    assert not (await embedder.text_to_embedding("   ")).any()
    with pytest.raises(NotImplementedError, match="Image embedding requires a CLIP model"):
        await embedder.image_to_embedding(b"x")
    with pytest.raises(UnsupportedModalityError, match="reads text only"):
        await embedder.audio_to_embedding(b"x")
    hashed = TextEmbedder(embedder=HashingEmbedder(dimensions=32))
    assert (await hashed.text_to_embedding("tea")).shape == (32,)


@pytest.mark.parametrize(
    "config", [{"model": "x"}, {"model_kwargs": {"token": "x"}}, {"model_name": "somebody/model-of-unknown-length"}]
)
def test_a_configuration_of_an_embedder_that_cannot_work_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises((InvalidInputError, ImportError)):
        SentenceTransformerEmbedder(config)


class TestXaiboEmbedder(EmbedderContract):
    @pytest.fixture
    def make_embedder(self) -> Any:
        return lambda: XaiboEmbedder(Spellings(), name="spelling", dimensions=512)


async def test_a_memory_searches_with_an_embedder_of_xaibo(tmp_path: Path) -> None:
    embedder = XaiboEmbedder(SentenceTransformerEmbedder(), name="minilm", dimensions=384)
    async with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many(["Ann rows on the lake", "The passport expires in June"])
        assert (await ann.search("water sports"))[0].record.text == "Ann rows on the lake"


async def test_an_embedder_of_xaibo_that_lies_about_its_length_is_refused() -> None:
    embedder = XaiboEmbedder(Digests(), name="digests", dimensions=10)
    with pytest.raises(EmbeddingError, match="384"):
        await embedder.embed_query("tea")
    await embedder.close()
    gc.collect()  # an event loop that was left open would warn now


def row(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


async def test_an_index_does_what_xaibos_does(tmp_path: Path) -> None:
    index = VectorIndex({"storage_dir": str(tmp_path / "index")})
    assert await index.search(row(1, 0, 0)) == []
    assert not (tmp_path / "index").exists()
    names = [{"name": f"vector{n}"} for n in (1, 2, 3)]
    await index.add_vectors([row(2, 0, 0), row(0, 1, 0), row(0.5, 0.5, 0)], names)
    best, second = await index.search(row(0.9, 0.1, 0), k=2)
    assert (best.attributes, second.attributes) == ({"name": "vector1"}, {"name": "vector3"})
    assert best.similarity_score > second.similarity_score
    assert (await index.search(row(1, 0, 0)))[0].similarity_score == 1.0
    assert (await index.search(row(-1, 0, 0)))[-1].similarity_score == 0.0
    await index.add_vectors([row(0, 0, 1)])
    (best,) = await index.search(row(0, 0, 5), k=1)
    assert best.attributes == {}
    with pytest.raises(ValueError, match="Number of vectors and attributes must match"):
        await index.add_vectors([row(1, 0, 0), row(0, 1, 0)], [{}])
    for wrong in (index.add_vectors([row(1, 0)]), index.search(row(1, 0, 0, 0))):
        with pytest.raises(ValueError, match=r"Vector dimension mismatch\. Expected 3"):
            await wrong
    for nowhere in (row(0, 0, 0), row(float("nan"), 0, 0), row(float("inf"), 0, 0)):
        with pytest.raises(ValueError, match="one that has a direction"):
            await index.add_vectors([nowhere])
    await index.add_vectors([])
    assert len(await index.search(row(1, 0, 0), 20_000)) == 4
    await index.close()


@pytest.mark.process
async def test_an_index_is_the_same_in_another_process(tmp_path: Path) -> None:
    folder = {"storage_dir": str(tmp_path)}
    index = VectorIndex(folder)
    await index.add_vectors([row(1, 0), row(0, 1)], [{"memory_id": "a"}, {"memory_id": "b"}])
    code = (
        "import asyncio, sys, numpy\nfrom memory_xaibo import VectorIndex\n"
        "async def main():\n"
        "    index = VectorIndex({'storage_dir': sys.argv[1]})\n"
        "    deleted = await index.delete_where({'memory_id': 'a'})\n"
        "    await index.add_vectors([numpy.array([1, 1])], [{'memory_id': 'c'}])\n"
        "    found = await index.search(numpy.array([1, 0]))\n"
        "    print(deleted, [one.attributes['memory_id'] for one in found])\n"
        "    await index.close()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert (await process.communicate())[0].decode().strip() == "1 ['c', 'b']"
    assert [(one.attributes or {})["memory_id"] for one in await index.search(row(1, 0))] == ["c", "b"]
    assert await VectorIndex(folder).delete_where({"memory_id": "z"}) == 0
    assert await VectorIndex().delete_where({"memory_id": "z"}) == 0
    with pytest.raises(ValueError, match="at least one attribute"):
        await index.delete_where({})
