"""The knowledge of the analysis about English."""

from __future__ import annotations

import string
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.analysis import analyse, stemmed
from memory_core.retrieval.english import BASE_FORMS, STOP_WORDS, stem

STEMS_OF_VOCABULARY = "cf2d2b16b308848b337e182d022af7dca36f3f17a0b1448eb9e252c79fadee0f"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("conflated", "conflat"),
        ("hopping", "hop"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("sing", "sing"),
        ("billion", "billion"),
        ("relational", "relat"),
        ("generalizations", "gener"),
        ("adoption", "adopt"),
        ("oscillators", "oscil"),
        ("michelle", "michel"),
        ("boyyed", "boyi"),
    ],
)
def test_published_examples(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_the_stems_of_a_large_vocabulary_stay_the_same() -> None:
    """Stems are in every stored index. If a version of PyStemmer returns others, `ANALYSIS` has to be increased."""
    vocabulary = resources.files("memory_core.embedding").joinpath("minilm", "vocab.txt").read_text("utf-8").split()
    words = [word for entry in vocabulary if (word := entry.removeprefix("##")).isalpha() and word.isascii()]
    assert len(words) > 20_000
    assert sha256(" ".join(map(stem, words)).encode()).hexdigest() == STEMS_OF_VOCABULARY


def test_threads_share_the_stemmer() -> None:
    words = [f"{start}{suffix}" for start in ("hop", "relat", "gener") for suffix in ("ing", "ed", "ational", "ness")]
    alone = [stem(word) for word in words] * 500
    with ThreadPoolExecutor(8) as threads:
        assert all(found == alone for found in threads.map(lambda _: [stem(word) for word in words * 500], range(16)))


@given(st.text(min_size=1).filter(lambda word: not word.isascii()))
def test_a_word_with_a_letter_outside_ascii_is_returned_as_it_is(word: str) -> None:
    assert stemmed(word) == word


@given(st.text(string.ascii_lowercase + string.digits + "'"))
def test_a_stem_is_never_longer_than_its_word_and_rarely_empty(word: str) -> None:
    assert len(stemmed(word)) <= len(word)
    assert stemmed(word) or word in {"", "s"}


@given(st.text(st.characters()))  # lone surrogates included
def test_no_text_raises(word: str) -> None:
    stemmed(word)


def test_words_with_letters_of_other_alphabets_keep_their_endings() -> None:
    assert analyse("\u0440\u0430\u0431\u043e\u0442\u0430 \u03c3\u03c0\u03af\u03c4\u03b9ing") == [
        "\u0440\u0430\u0431\u043e\u0442\u0430",
        "\u03c3\u03c0\u03b9\u03c4\u03b9ing",
    ]


def test_no_irregular_form_is_a_stop_word_and_no_form_leads_on_to_another() -> None:
    assert not BASE_FORMS.keys() & STOP_WORDS
    assert not BASE_FORMS.keys() & set(BASE_FORMS.values())
