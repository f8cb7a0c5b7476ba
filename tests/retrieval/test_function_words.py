"""Which language a question is in, by its function words."""

from __future__ import annotations

import pytest

from memory_core.retrieval.function_words import languages_of, without_function_words


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("Where is the key of the boat house?", "en"),
        ("Wo ist der Schlüssel zum Bootshaus?", "de"),
        ("Où est la clé du hangar à bateaux ?", "fr"),
        ("¿Dónde está la llave del cobertizo?", "es"),
        ("Dov'è la chiave della rimessa?", "it"),
        ("Onde é que está a chave do barracão?", "pt"),
        ("Waar is de sleutel van het botenhuis?", "nl"),
        ("Gdzie jest klucz do hangaru?", "pl"),
        ("Где у нас ключ от сарая?", "ru"),  # noqa: RUF001
        ("Bu evin anahtarı nerede?", "tr"),  # noqa: RUF001
    ],
)
def test_a_question_tells_its_language(question: str, code: str) -> None:
    assert [language.code for language in languages_of(question)] == [code]


@pytest.mark.parametrize("question", ["", "Schlüssel Bootshaus", "error 4471", "Did the man read Die Zeit in the war?"])
def test_what_does_not_tell_a_language_is_left_as_it_is(question: str) -> None:
    assert without_function_words(["zeit", "war"], question) == ["zeit", "war"]


def test_function_words_leave_the_terms_of_a_question_unless_nothing_else_is_left() -> None:
    question = "Quand est-ce que la chaudière est à revoir ?"
    assert without_function_words(["quand", "est", "chaudier", "revoir"], question) == ["chaudier", "revoir"]
    assert without_function_words(["quand", "est"], question) == ["quand", "est"]
