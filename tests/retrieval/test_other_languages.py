"""A stored text counts as one in another language only if it is sure."""

from __future__ import annotations

import pytest

from memory_core.retrieval.other_languages import READ, is_in_another_language
from tests.corpora.loading import CORPORA, owners

# ruff: noqa: RUF001  (other languages)


@pytest.mark.parametrize(
    "text",
    [
        "Das Ersatzrad liegt im Keller",
        "El gato duerme en el sofá",
        "会議は火曜日の十時からです",
        "Ключ лежит под ковриком",
        "Toplantı salı günü",
        "Встреча в Zoom",
    ],
)
def test_a_text_in_another_language_is_one(text: str) -> None:
    assert is_in_another_language(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "🦊",
        "INC-4711 is closed",
        "ran the tests, all green",
        "José was at the café with Zoë",
        'she said "c\'est la vie" and left the room',
        "The word 会議 means meeting",
    ],
)
def test_an_english_text_with_names_and_quotations_is_not(text: str) -> None:
    assert not is_in_another_language(text)


def test_the_beginning_of_a_text_tells() -> None:
    english, german = "the keys are under the mat. ", "der Schlüssel ist unter der Matte. "
    assert not is_in_another_language(english * READ + german * READ)
    assert is_in_another_language(german * READ + english * READ)


def test_few_texts_of_english_corpora_are_taken_for_others() -> None:
    english = [record.text for name in CORPORA if name != "languages" for one in owners(name) for record in one.records]
    assert sum(map(is_in_another_language, english)) < 0.01 * len(english)
    others = [record.text for one in owners("languages") for record in one.records]
    assert sum(map(is_in_another_language, others)) > 0.95 * len(others)
