"""Our Porter stemmer against PyStemmer's, which is compiled from the published definition."""

from __future__ import annotations

import string
from importlib import resources

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from memory_core.retrieval.stemmer import stem

SNOWBALL = Stemmer.Stemmer("porter")
SUFFIXES = [
    "tional", "enci", "anci", "abli", "entli", "izer", "ization", "ational", "ation", "ator", "alli", "alism", "aliti",
    "fulness", "ousli", "ousness", "iveness", "iviti", "biliti", "eli", "alize", "icate", "iciti", "ical", "ative",
    "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate",
    "iti", "ous", "ive", "ize", "sion", "tion", "ion", "s", "es", "sses", "ies", "eed", "ed", "ing", "at", "bl", "iz",
    "ll", "lle", "e", "y", "yy",
]  # fmt: skip
WORDS = st.text(string.ascii_lowercase + string.digits + "'")
SUFFIXED = st.tuples(
    st.text("aeiouybdlnrstwx", max_size=5),
    st.lists(st.sampled_from(SUFFIXES), max_size=3).map("".join),
).map("".join)


def vocabulary() -> list[str]:
    file = resources.files("memory_core.embedding").joinpath("minilm", "vocab.txt")
    if not file.is_file():
        pytest.skip("the vocabulary of the default embedder is not in the package yet")
    entries = file.read_text("utf-8").split()
    return [word for entry in entries if (word := entry.removeprefix("##")).isalpha() and word.isascii()]


def test_every_word_of_the_embedder_vocabulary_has_the_published_stem() -> None:
    words = vocabulary()
    assert len(words) > 20_000
    assert {word: stem(word) for word in words} == dict(zip(words, SNOWBALL.stemWords(words), strict=True))


@given(WORDS | SUFFIXED)
def test_any_lower_case_word_has_the_published_stem(word: str) -> None:
    assert stem(word) == SNOWBALL.stemWord(word)


@given(WORDS | SUFFIXED)
def test_a_stem_is_never_longer_than_its_word_and_rarely_empty(word: str) -> None:
    assert len(stem(word)) <= len(word)
    assert stem(word) or word in {"", "s"}


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


@given(st.text(min_size=1).filter(lambda word: not word.isascii()))
def test_a_word_with_a_letter_outside_ascii_is_returned_as_it_is(word: str) -> None:
    assert stem(word) == word


@given(st.text())
def test_no_text_raises(word: str) -> None:
    stem(word)
