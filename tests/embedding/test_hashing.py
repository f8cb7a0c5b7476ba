"""The embedder without a model."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.embedding.hashing import HashingEmbedder
from memory_core.errors import InvalidInputError

ANY_TEXT = st.text(st.characters(codec=None))


async def test_texts_that_share_words_or_spelling_are_near() -> None:
    embedder = HashingEmbedder()
    rows = await embedder.embed_documents(["we drank tea in Kyoto", "drinking teas", "quarterly revenue rose"])
    near = rows @ await embedder.embed_query("drink tea")
    assert near.argmin() == 2
    assert (near[:2] > 0.2).all()


@given(st.lists(ANY_TEXT), st.integers(2, 64))
async def test_any_texts_have_unit_vectors(texts: list[str], dimensions: int) -> None:
    rows = await HashingEmbedder(dimensions=dimensions).embed_documents(texts)
    assert rows.shape == (len(texts), dimensions)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


async def test_case_and_blanks_do_not_count() -> None:
    rows = await HashingEmbedder().embed_documents(["Green  Tea\n", "green tea"])
    assert np.array_equal(rows[0], rows[1])


async def test_texts_without_words_differ() -> None:
    rows = await HashingEmbedder().embed_documents(["!", "?", ""])
    assert rows[0] @ rows[1] < 0.9


@pytest.mark.process
def test_the_vector_is_the_same_in_every_process() -> None:
    code = """
import asyncio
from memory_core.embedding.hashing import HashingEmbedder
print(asyncio.run(HashingEmbedder(dimensions=16).embed_query("green tea")).tolist())
"""
    made = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout.strip()
        for env in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    }
    assert made == {str(asyncio.run(HashingEmbedder(dimensions=16).embed_query("green tea")).tolist())}


async def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"a list of texts, not one text: \['tea'\]"):
        await HashingEmbedder().embed_documents("tea")


def test_one_dimension_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="dimensions must be at least 2, not 1"):
        HashingEmbedder(dimensions=1)
