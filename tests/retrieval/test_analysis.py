"""The terms of texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_core.retrieval.analysis import analyse, asks, query_terms, words
from memory_core.retrieval.english import BASE_FORMS, STOP_WORDS, stem
from memory_core.retrieval.folding import _FOLDED

pytestmark = pytest.mark.uncovered

ENGLISH = st.text(st.characters(max_codepoint=127))
WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=64)


def test_words_are_lower_case_stems_in_order_and_repeated() -> None:
    assert analyse("Painting sunrises: she PAINTED a sunrise!") == ["paint", "sunris", "paint", "sunris"]


def test_stop_words_are_no_terms() -> None:
    assert analyse("What did you do with it, and when?") == []


def test_stop_words_leave_out_the_month_of_may() -> None:
    assert "may" not in STOP_WORDS
    assert analyse("7 May 2023") == ["7", "mai", "2023"]


def test_an_emoji_is_a_word_whatever_its_tone_and_its_neighbours() -> None:
    assert analyse("\U0001f98a is our mascot\U0001f98a") == ["\U0001f98a", "mascot", "\U0001f98a"]
    assert analyse("\U0001f44d\U0001f3fd\u2764\ufe0f") == ["\U0001f44d", "\u2764"]
    assert analyse("\U0001f468\u200d\U0001f373") == ["\U0001f468", "\U0001f373"]
    assert analyse("\U0001f1e9\U0001f1ea") == ["\U0001f1e9", "\U0001f1ea"]
    assert analyse("tea \u2022 milk \u2192 cup \u00a9") == ["tea", "milk", "cup"]


def test_underscores_and_punctuation_separate_words() -> None:
    assert analyse("user_name=anna-maria;x2") == ["user", "name", "anna", "maria", "x2"]


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u2018", "\u02bc", "\uff07"])
def test_an_apostrophe_of_any_shape_ends_a_word(apostrophe: str) -> None:
    assert analyse(f"Melanie{apostrophe}s kids don{apostrophe}t swim") == ["melani", "kid", "swim"]


@pytest.mark.parametrize("apostrophe", ["'", "\u2019"])
def test_a_contraction_of_will_not_is_no_form_of_win(apostrophe: str) -> None:
    assert analyse(f"I won{apostrophe}t go") == ["go"]
    assert analyse("She won") == ["win"]


@pytest.mark.parametrize(
    ("forms"),
    [
        "go goes going went gone",
        "buy buys buying bought",
        "take takes taking took taken",
        "write writes writing wrote written",
        "leave leaves leaving left",
        "die dies died dying",
        "child children",
        "woman women",
    ],
)
def test_all_forms_of_an_irregular_word_are_one_term(forms: str) -> None:
    assert len(set(analyse(forms))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Stra\u00dfe", "STRASSE"),
        ("na\u00efve caf\u00e9", "naive cafe"),
        ("\u0141\u00f3d\u017a", "lodz"),
        ("\uff26\uff55\uff4c\uff4c \ufb01ne", "full fine"),
        ("\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3", "\u1f48\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2"),
        ("\u0451\u043b\u043a\u0430", "\u0415\u043b\u043a\u0430"),
        ("\u0643\u064e\u062a\u064e\u0628\u064e", "\u0643\u0640\u0640\u062a\u0628"),
        ("\u0663\u0661", "31"),
        ("\uff76\uff9e", "\u30ac"),
        ("zero\u200dwidth", "zerowidth"),
    ],
    ids=["sharp s", "accents", "strokes", "width", "sigma", "cyrillic", "harakat", "digits", "half-width", "joiner"],
)
def test_spellings_that_readers_take_as_equal_have_equal_terms(one: str, other: str) -> None:
    assert analyse(one) == analyse(other) != []


def test_japanese_voicing_marks_make_another_letter() -> None:
    assert analyse("\u30ab\u30ad") != analyse("\u30ac\u30ae")
    assert analyse(unicodedata.normalize("NFD", "\u30ac\u30ae")) == ["\u30ac\u30ae"]


def test_indic_vowel_signs_do_not_split_a_word() -> None:
    assert analyse("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e") == [
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "\u092d\u093e\u0937\u093e",
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("\u6771\u4eac\u90fd", ["\u6771\u4eac", "\u4eac\u90fd"]),
        ("\u732b", ["\u732b"]),
        ("\u30bf\u30ef\u30fc", ["\u30bf\u30ef", "\u30ef\u30fc"]),
        ("\u3089\u30fc\u3081\u3093", ["\u3089\u30fc", "\u30fc\u3081", "\u3081\u3093"]),
        ("\u0e23\u0e31\u0e01", ["\u0e23\u0e31", "\u0e31\u0e01"]),
        ("\uce5c\uad6c\uac00", ["\uce5c\uad6c", "\uad6c\uac00"]),
        ("\u4eba\u3005", ["\u4eba\u3005"]),
    ],
    ids=["han", "one character", "katakana", "hiragana", "thai", "hangul", "repetition mark"],
)
def test_scripts_without_word_spaces_become_pairs(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_scripts_are_split_where_they_meet() -> None:
    assert analyse("Python\u3067\u6771\u4eac\u30bf\u30ef\u30fc3") == [
        "python",
        "\u3067",
        "\u6771\u4eac",
        "\u30bf\u30ef",
        "\u30ef\u30fc",
        "3",
    ]


def test_a_word_of_any_length_has_terms_of_at_most_64_characters() -> None:
    assert analyse("9" * 130) == ["9" * 64, "9" * 64, "99"]
    assert {len(term) for term in analyse("\u00f6" * 130)} == {64, 2}


@given(st.text())
def test_composed_and_decomposed_text_have_equal_terms(text: str) -> None:
    terms = analyse(text)
    assert terms == analyse(unicodedata.normalize("NFC", text)) == analyse(unicodedata.normalize("NFD", text))


@given(ENGLISH)
def test_plain_text_has_the_same_terms_next_to_a_foreign_word(text: str) -> None:
    assert [*analyse(text), "\u0438"] == analyse(f"{text} \u0438")


@given(st.text())
def test_terms_are_short_never_empty_and_hold_no_space(text: str) -> None:
    for term in analyse(text):
        assert 1 <= len(term) <= 64
        assert term == "".join(term.split())


@given(st.lists(WORDS))
def test_upper_and_lower_case_have_equal_terms(tokens: list[str]) -> None:
    assert analyse(" ".join(tokens).upper()) == analyse(" ".join(tokens))


@given(WORDS)
def test_a_regular_word_is_its_porter_stem(word: str) -> None:
    assume(word not in STOP_WORDS and word not in BASE_FORMS)
    assert analyse(word) == [stem(word)]


def test_hostile_text_is_analysed_in_one_pass() -> None:
    for text in ("a" * 100_000, " " * 100_000, "a " * 50_000, "\u0301" * 100_000, "\u732b" * 100_000, "'" * 100_000):
        assert len(analyse(text)) <= len(text)


def test_query_terms_are_distinct_and_in_order() -> None:
    assert query_terms("Which books did the bookworm book, and which book first?") == ["book", "bookworm", "first"]


def test_a_query_of_nothing_but_stop_words_has_no_terms() -> None:
    assert query_terms("to be or not to be") == []


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("two words", 2), ("caf\u00e9 au lait", 3), ("\u6771\u4eac\u30bf\u30ef\u30fc\u3078", 4)],
)
def test_words_counts_words_or_pairs_of_characters(text: str, count: int) -> None:
    assert words(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "How are you?",
        'She asked "why?"',
        "(really?)  \n",
        "What?!",
        "Do you sail? I do.",
        "Which one? [shares a photo of two boats]",
        "\u5143\u6c17\u3067\u3059\u304b\uff1f\u300d",
        "\u0643\u064a\u0641 \u062d\u0627\u0644\u0643\u061f",
        "\u00ab vraiment ?\u00a0\u00bb",
    ],
)
def test_a_text_with_a_question_mark_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize("text", ["", "!", "https://host/find?q=tea", "Tell me", '"'])
def test_other_texts_do_not_ask(text: str) -> None:
    assert not asks(text)


def test_the_fold_table_keeps_its_bound() -> None:
    analyse("".join(map(chr, range(0x80, 0x30000))))
    assert len(_FOLDED) <= 65_536
    assert analyse("\U0002f800") == analyse("\u4e3d")
