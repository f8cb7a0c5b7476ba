"""The pieces of the second default model, beside those of SentencePiece."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from memory_core.embedding.multilingual.tokens import Pieces
from memory_core.embedding.multilingual.vocabulary import UNKNOWN, VOCABULARY, Vocabulary
from memory_core.embedding.multilingual.weights import package_files
from memory_core.errors import EmbeddingError
from tests.corpora.loading import CORPORA, owners

pytestmark = pytest.mark.uncovered

# ruff: noqa: RUF001  (other languages)

MAX_PIECES = 256
ALPHABET = [chr(code) for code in (*range(0x20, 0x250), *range(0x370, 0x530), *range(0x3041, 0x3100))]
ALPHABET += [chr(code) for code in (*range(0x4E00, 0x4F00), *range(0x1F600, 0x1F650), 0x200D, 0xFE0F, 0xFF5E)]


@pytest.fixture(scope="module")
def pieces() -> Pieces:
    """The tokenizer."""
    return Pieces(Vocabulary())


@pytest.fixture(scope="module")
def theirs() -> Any:
    """SentencePiece, with the vocabulary of the package."""
    sentencepiece = pytest.importorskip("sentencepiece")
    return sentencepiece.SentencePieceProcessor(model_file=str(package_files().pieces))


def assert_same(pieces: Pieces, theirs: Any, texts: list[str]) -> None:
    """Each text has the same pieces."""
    for text in texts:
        expected = [Pieces.FIRST, *theirs.encode(text, out_type=int)[: MAX_PIECES - 2], Pieces.LAST]
        assert pieces.encode(text, max_tokens=MAX_PIECES) == expected, text[:100]


@pytest.mark.parametrize("corpus", CORPORA)
def test_texts_have_the_pieces_of_sentencepiece(pieces: Pieces, theirs: Any, corpus: str) -> None:
    texts = [
        text
        for owner in owners(corpus)
        for text in [*(record.text for record in owner.records), *(question.text for question in owner.questions)]
    ]
    assert len(texts) > 100
    assert_same(pieces, theirs, texts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t \u3000",
        "  two  spaces\u00a0and\u200ba third\u2028",
        "ﬁne ＦＵＬＬ ｗｉｄｔｈ ① ½ ㌔ ﷺ",
        "cafe\u0301 café",
        "東京〜大阪～京都",
        "鍵は植木鉢の下にあります。" * 30,
        "👍🏽 👩‍👩‍👧 🦊🦊",
        "ᚠᚢᚦ ᚨᚱᚲ",
        "กุญแจอยู่ที่นี่",
        "المفتاح عند الجارة",
        "<s> </s> <unk> extra_token_id_1 ▁the",
        "Donaudampfschifffahrtsgesellschaftskapitän" * 9,
        "\x00\x07\x85",
    ],
)
def test_what_is_no_plain_text_has_the_pieces_of_sentencepiece(pieces: Pieces, theirs: Any, text: str) -> None:
    assert_same(pieces, theirs, [text])


def test_random_characters_have_the_pieces_of_sentencepiece(pieces: Pieces, theirs: Any) -> None:
    chosen = random.Random(1)
    assert_same(pieces, theirs, ["".join(chosen.choices(ALPHABET, k=chosen.randrange(1, 40))) for _ in range(1_000)])


def test_every_piece_is_found_and_nothing_else(theirs: Any) -> None:
    vocabulary = Vocabulary()
    names = [theirs.id_to_piece(number).encode() for number in range(theirs.get_piece_size())]
    assert list(vocabulary) == names
    assert [vocabulary.find(name) for name in names[3:]] == [*range(3, len(names))]
    assert {vocabulary.find(name) for name in (b"", b"<unk>", b"<s>", b"</s>", b"zzyzxq", "the▁".encode())} == {UNKNOWN}
    assert vocabulary.score(7) == theirs.get_score(7)


def test_a_lone_surrogate_is_a_question_mark(pieces: Pieces) -> None:
    assert pieces.encode("a \ud800 b", max_tokens=9) == pieces.encode("a ? b", max_tokens=9)


def test_a_vocabulary_that_is_not_whole_is_refused_with_the_way_out(tmp_path: Path) -> None:
    cut = tmp_path / "pieces.table"
    for content in (b"", b"short", VOCABULARY.read_bytes()[:-1]):
        cut.write_bytes(content)
        with pytest.raises(EmbeddingError, match="install memory-core again"):
            Vocabulary(cut)
    with pytest.raises(EmbeddingError, match="install memory-core again"):
        Vocabulary(tmp_path / "gone")
