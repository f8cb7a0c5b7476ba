"""fastembed, run offline on a directory made from the model we ship."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import memory_core.embedding.minilm
from memory_core import Embedder, EmbeddingError, InvalidInputError, Memory
from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.testing.embedder import STRANGE_TEXTS, TEXTS, EmbedderContract

fastembed = pytest.importorskip("fastembed", reason="fastembed is not installed: pip install 'memory-core[fastembed]'")
tokenizers = pytest.importorskip("tokenizers", reason="the directory is made with tokenizers")

from memory_core.embedding.fastembed import FastEmbedEmbedder  # noqa: E402

SHIPPED = Path(memory_core.embedding.minilm.__file__).parent
MODEL = "our-minilm"
SPECIAL = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


@pytest.fixture(scope="session")  # fastembed registers a model once a process
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped model, which pools by itself, with the files that fastembed reads beside it."""
    descriptions = import_module("fastembed.common.model_description")
    fastembed.TextEmbedding.add_custom_model(
        MODEL,
        pooling=descriptions.PoolingType.DISABLED,
        normalization=False,
        sources=descriptions.ModelSource(hf="none"),
        dim=384,
        model_file="model.onnx",
    )
    folder = tmp_path_factory.mktemp("minilm")
    shutil.copy(SHIPPED / "model.onnx", folder / "model.onnx")
    tokenizer = tokenizers.BertWordPieceTokenizer(str(SHIPPED / "vocab.txt"), lowercase=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": {"pad_token_id": 0, "hidden_size": 384},
        "special_tokens_map.json": SPECIAL,
        "tokenizer_config.json": SPECIAL | {"max_length": 256, "model_max_length": 256},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


class TestFastEmbed(EmbedderContract):
    tolerance: ClassVar[float] = 0.03  # int8 activations are scaled by the extremes of the whole batch

    @pytest.fixture
    def make_embedder(self, directory: Path) -> Callable[[], Embedder]:
        return lambda: FastEmbedEmbedder(MODEL, dimensions=384, directory=directory, threads=1)


async def test_it_makes_the_vectors_of_the_embedder_we_ship(directory: Path) -> None:
    ours, theirs = MiniLmEmbedder(), FastEmbedEmbedder(MODEL, dimensions=384, directory=directory, threads=1)
    for text in (*TEXTS, *STRANGE_TEXTS[5:7]):
        assert float(np.dot(await ours.embed_query(text), await theirs.embed_query(text))) > 0.99
    await ours.close()
    await theirs.close()


async def test_a_memory_works_with_it(directory: Path) -> None:
    async with Memory(":memory:", embedder=FastEmbedEmbedder(MODEL, dimensions=384, directory=directory)) as memory:
        handle = memory.bind(user="ann")
        await handle.add_many(list(TEXTS))
        assert (await handle.search("Which animal lives with her?"))[0].record.text == "My sister adopted a grey cat"


@pytest.mark.usefixtures("directory")
async def test_a_directory_without_a_model_is_an_error(tmp_path: Path) -> None:
    embedder = FastEmbedEmbedder(MODEL, dimensions=384, directory=tmp_path)
    with pytest.raises(EmbeddingError, match=f"{MODEL} cannot be used: .*"):
        await embedder.embed_query("tea")
    await embedder.close()


async def test_other_dimensions_than_promised_are_refused(directory: Path) -> None:
    embedder = FastEmbedEmbedder(MODEL, dimensions=100, directory=directory)
    with pytest.raises(EmbeddingError, match=r"shape \(1, 384\) .* 100 dimensions; give dimensions=384"):
        await embedder.embed_query("tea")
    await embedder.close()


def test_a_model_of_unknown_length_has_to_say_it() -> None:
    with pytest.raises(InvalidInputError, match="the dimensions of 'my/model' are not known"):
        FastEmbedEmbedder("my/model")
    assert FastEmbedEmbedder("my/model", dimensions=12).fingerprint.dimensions == 12
