"""A model with a tokenizer of its own is read from a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import pytest
import tokenizers
from onnx import TensorProto, helper, numpy_helper

from memory_core import EmbeddingError, Fingerprint, Memory
from memory_core.embedding.local import OnnxEmbedder

PIECES = ["<unk>", "▁das", "▁Ersatz", "rad", "▁Keller", "▁roda", "▁reserva", "▁tea", "▁", *"abcdefghijklmnopqrstuvwxyz"]
SIZE = len(PIECES)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose vector of a text is the mean of the vectors of its pieces; two languages share one vector."""
    directory = tmp_path_factory.mktemp("multilingual")
    pieces = [(piece, -float(place)) for place, piece in enumerate(PIECES)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.save(str(directory / "tokenizer.json"))
    rows = np.eye(SIZE, dtype=np.float32)
    for german, spanish in (("▁Ersatz", "▁reserva"), ("rad", "▁roda")):
        rows[PIECES.index(spanish)] = rows[PIECES.index(german)]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["rows", "input_ids"], ["token_vectors"])],
        "multilingual",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("token_vectors", TensorProto.FLOAT, ["batch", "tokens", SIZE])],
        [numpy_helper.from_array(rows, "rows")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(directory / "model.onnx"))
    return directory


def opened(folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(folder, Fingerprint("two languages", "1", SIZE), max_tokens=32)


async def test_a_text_is_found_by_a_question_in_another_language(folder: Path) -> None:
    async with Memory(":memory:", embedder=opened(folder)) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many(["das Ersatzrad", "tea", "das Keller tea"])
        best, *_ = await ann.search("roda reserva", floor=False, explain=True)
    assert best.record.text == "das Ersatzrad"
    assert best.components is not None
    assert best.components["cosine"].raw > 0.7


async def test_long_texts_are_truncated_and_strange_ones_have_vectors(folder: Path) -> None:
    embedder = opened(folder)
    long, longer, surrogate = await embedder.embed_documents(["tea " * 100, "tea " * 100 + "Keller", "\ud800"])
    assert long == pytest.approx(longer)
    assert np.linalg.norm(surrogate) == pytest.approx(1, abs=1e-5)
    assert await embedder.familiarity("Ersatzrad") == 1.0
    await embedder.close()


async def test_a_damaged_tokenizer_or_no_library_is_an_error_with_a_way_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json is not a tokenizer"):
        await opened(tmp_path).embed_query("tea")
    with (
        mock.patch.dict(sys.modules, {"tokenizers": None}),
        pytest.raises(EmbeddingError, match=r"pip install memory-core\[tokenizers\]"),
    ):
        await opened(folder).embed_query("tea")
