"""The language of a question, by its function words."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Memory
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.bm25 import FAINT, bm25
from memory_core.retrieval.function_words import faint_words, languages_of
from memory_core.retrieval.languages import every
from memory_core.retrieval.other_languages import is_in_another_language
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.term_hashes import pack


def test_every_language_with_a_file_is_known() -> None:
    names = {path.stem for path in Path(every.__file__).parent.glob("[a-z]*.py")} - {"every", "language", "times"}
    assert {getattr(every, name.upper()) for name in names} == {*every.LANGUAGES}


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
def test_no_word_of_the_subject_is_faint(question: str) -> None:
    assert not faint_words(["zeit", "war", "4471", "schlussel"], languages_of(question))


@pytest.mark.parametrize(
    "text",
    [
        "ten to seven, tuesday to saturday",
        "one to ten",
        "a bicycle, one school, no car",
        "sensor read 04:30: house C -0.4 C, house A 15.1 C",
        "Wife Le\u00efla is an anaesthetist at La Timone, on call every fourth weekend",
    ],
)
def test_a_word_of_english_tells_no_other_language(text: str) -> None:
    assert not is_in_another_language(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [("Am 9. Dezember um drei", "de"), ("La hipoteca, quedan doce", "es"), ("Deux chats, trois chiens", "fr")],
)
def test_number_words_tell_a_language(text: str, code: str) -> None:
    assert [language.code for language in languages_of(text)] == [code]
    assert is_in_another_language(text)


def test_words_of_no_subject_are_faint() -> None:
    question = "Quand est-ce que la chaudière est à nettoyer, tu penses, le 3 ?"
    assert faint_words(analyse(question), languages_of(question)) >= {"quand", "est", "ce", "que", "la", "tu", "le"}
    assert not faint_words(analyse(question), languages_of(question)) & {"chaudier", "nettoy", "nettoyer", "3"}


class Knowing(HashingEmbedder):
    """It says how well it knows a question."""

    def __init__(self, known: float) -> None:
        super().__init__(dimensions=64)
        self._known = known

    async def familiarity(self, text: str) -> float:
        """See `Familiar.familiarity`."""
        return self._known


def test_words_of_no_subject_count_the_more_the_less_the_embedder_knows_a_question() -> None:
    async def weight(known: float) -> float:
        async with Memory(":memory:", embedder=Knowing(known)) as memory:
            ann = memory.bind(user="ann")
            await ann.add_many(["Ce que tu penses est bien", "Piscine vide", "Voisin du troisième"])
            hits = await ann.search("Est-ce que tu vas chez le voisin ?", floor=False, explain=True)
            (parts,) = (hit.components for hit in hits if hit.record.text.startswith("Ce que"))
            return (parts or {})["bm25"].raw

    weights = [asyncio.run(weight(known)) for known in (1.0, 0.5, 0.0)]
    assert weights == sorted(weights)
    assert weights[0] == pytest.approx(weights[2] * 0.01 / 0.901, rel=1e-3)


@given(
    st.lists(st.lists(st.sampled_from(("ruche", "piscine", "qui", "dois")), min_size=1), min_size=1),
    st.lists(st.sampled_from(("ruche", "piscine", "voisin", "qui", "dois", "pour")), min_size=1, unique=True),
    st.sets(st.sampled_from(("qui", "dois", "pour"))),
)
def test_a_faint_word_counts_as_a_share_of_any_other(texts: list[list[str]], terms: list[str], faint: set[str]) -> None:
    index = OwnerIndex(None)
    entries = [Entry(n, pack(row), 0, len(row), None, None, n, None, active=True) for n, row in enumerate(texts)]
    index.extend(entries, [])
    subject, others = ([term for term in terms if (term in faint) is wanted] for wanted in (False, True))
    apart = bm25(index, subject).scores + FAINT * bm25(index, others).scores
    assert bm25(index, terms, faint).scores.tolist() == pytest.approx(apart.tolist(), rel=1e-4, abs=1e-6)
