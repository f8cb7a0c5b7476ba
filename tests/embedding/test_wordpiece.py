"""Our WordPiece against the `tokenizers` package, set up as the model's own tokenizer.json says."""

from __future__ import annotations

import tracemalloc
import unicodedata
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.embedding.wordpiece import WordPiece
from memory_core.errors import EmbeddingError
from tests.embedding.texts import NASTY, varied

tokenizers = pytest.importorskip("tokenizers")

VOCABULARY = files("memory_core.embedding.minilm").joinpath("vocab.txt").read_text(encoding="utf-8").splitlines()
OURS = WordPiece(VOCABULARY)


def make_reference() -> Any:
    pieces = {piece: number for number, piece in enumerate(VOCABULARY)}
    reference = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(pieces, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    reference.normalizer = tokenizers.normalizers.BertNormalizer()
    reference.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    reference.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    reference.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    reference.enable_truncation(256)
    return reference


REFERENCE = make_reference()


def is_comparable(char: str) -> bool:
    """True if `tokenizers` and this Python can be expected to agree on what kind of character it is.

    Its tables stop at Unicode 8: marks and punctuation that came or were reclassified later are letters to it. (All of
    them are unknown words to the model.) So it is asked for what has not changed since Unicode 3.2, which covers the
    scripts in use, and for later letters and symbols, emoji among them.
    """
    before, now = unicodedata.ucd_3_2_0.category(char), unicodedata.category(char)
    return now[0] not in "MPC" if before == "Cn" else before == now


COMPARABLE = st.characters(codec="utf-8").filter(is_comparable)
PIECES = st.sampled_from([piece.removeprefix("##") for piece in VOCABULARY]).filter(
    lambda p: all(map(is_comparable, p))
)


def assert_equal(text: str) -> None:
    assert OURS.encode(text, max_tokens=256) == REFERENCE.encode(text).ids


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text[:20]))
def test_nasty_texts_get_the_ids_of_the_reference(text: str) -> None:
    assert_equal(text)


def test_varied_texts_get_the_ids_of_the_reference() -> None:
    for text in varied():
        assert_equal(text)


@given(st.text(COMPARABLE))
def test_any_text_gets_the_ids_of_the_reference(text: str) -> None:
    assert_equal(text)


@given(st.lists(st.one_of(PIECES, st.sampled_from([" ", "", "-", "'", "[MASK]", "é", "中", "\u0301", "\0"]))))
def test_any_series_of_pieces_gets_the_ids_of_the_reference(pieces: list[str]) -> None:
    assert_equal("".join(pieces))


@given(st.text(COMPARABLE, min_size=1), st.integers(3, 20))
def test_a_cut_text_keeps_its_beginning_and_its_end_mark(text: str, limit: int) -> None:
    whole, cut = OURS.encode(text * 10, max_tokens=10_000), OURS.encode(text * 10, max_tokens=limit)
    assert cut == (whole if len(whole) <= limit else [*whole[: limit - 1], whole[-1]])


def test_every_comparable_character_is_treated_as_the_reference_does() -> None:
    chars = [char for code in range(0x20000) if not 0xD800 <= code < 0xE000 and is_comparable(char := chr(code))]
    # a letter before and after shows whether the character parts words, joins them or vanishes
    for start in range(0, len(chars), 40):
        assert_equal(" ".join(f"a{char}b" for char in chars[start : start + 40]))


def test_half_a_character_counts_as_nothing() -> None:
    assert OURS.encode("tea\ud83c pot", max_tokens=256) == OURS.encode("tea pot", max_tokens=256)


def test_an_empty_text_is_the_two_marks() -> None:
    assert OURS.encode("", max_tokens=256) == [101, 102]


def test_the_words_remembered_are_bounded() -> None:
    pieces = WordPiece(VOCABULARY)
    for number in range(60_000):
        pieces.encode(f"x{number}", max_tokens=8)
    assert pieces._pieces.cache_info().currsize <= 32_768  # pyright: ignore[reportPrivateUsage]


def test_a_vocabulary_without_the_special_tokens_is_refused() -> None:
    with pytest.raises(EmbeddingError, match=r"of 2 pieces lacks \[PAD\], \[CLS\], \[SEP\], \[MASK\]"):
        WordPiece(["[UNK]", "tea"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([f"{number}x" * 2_000 for number in range(1_000, 1_200)], id="words of 10,000 characters"),
        pytest.param(["".join(map(chr, range(0x10000, 0x110000, 5)))], id="200,000 characters"),
    ],
)
def test_what_is_odd_does_not_stay_in_memory(texts: list[str]) -> None:
    pieces = WordPiece(VOCABULARY)
    tracemalloc.start()
    try:
        for text in texts:
            pieces.encode(text, max_tokens=256)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 30_000_000 if len(texts) == 1 else kept < 1_000_000
