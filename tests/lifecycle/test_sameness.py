"""The texts that are equal or look alike: pure functions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from memory_core.lifecycle.sameness import LONGEST, alike
from memory_core.retrieval.equal_texts import equal_form
from tests.corpora.loading import CORPORA, owners
from tests.lifecycle.planting import HARD, sentences, with_other_order, with_typo

ENGLISH = [name for name in CORPORA if name != "languages"]


def written_by_people() -> list[str]:
    return sentences(record.text for name in ENGLISH for owner in owners(name) for record in owner.records)


EQUAL = [
    ("I drink tea.", "i drink tea"),
    ("Ann drinks JASMINE tea!", "ann drinks jasmine tea"),
    ("ANN LIVES IN OSLO", "Ann lives in Oslo."),
    ("It\u2019s Ann\u2019s boat", "It's Ann's boat"),
    ("Ann says \u201cno\u201d", 'Ann says "no"'),
    ("  I drink\u00a0 tea \n", "I drink tea"),
    ("\uff21\uff4e\uff4e is \uff13\uff15", "Ann is 35"),
    ("\uff76\uff9e", "\u30ac"),  # half-width katakana
    ("cafe\u0301", "caf\u00e9"),  # one encoding and the other
    ("It is \u22125 degrees", "It is -5 degrees"),
    ("I use C++.", "I use C++"),
    (
        "\u6771\u4eac\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059\u3002",
        "\u6771\u4eac\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059",
    ),
]
DIFFERENT = [
    ("It is -5 degrees", "It is 5 degrees"),
    ("I write C++", "I write C"),
    ("I write C#", "I write C"),
    ("I use .NET", "I use NET"),
    ("It weighs 10.5 kg", "It weighs 105 kg"),
    ("At 3:30", "At 330"),
    ("Room no. 5", "Room no 5"),
    ("10%", "10"),
    ("$5", "\u20ac5"),
    ("The answer is 5!", "The answer is 5"),
    ("No, sugar please", "No sugar please"),
    ("I live in Oslo?", "I live in Oslo"),
    ("Really?!", "Really!"),
    (".", "!"),
    ("10\u2075 cells", "105 cells"),
    ("2\u00bd cups", "21/2 cups"),
    ("\u00a1Feliz a\u00f1o!", "\u00a1Feliz ano!"),
    ("caf\u00e9", "cafe"),
    ("in Ma\u00dfen", "in Massen"),
    ("my password is hunter2", "my password is Hunter2"),
    ("Node.js", "node.js"),
    ("5 mW", "5 MW"),
    ("10 Mb", "10 MB"),
    ("They told us", "They told US"),
    ("I work in it", "I work in IT"),
    ("Buy milk\nchocolate", "Buy milk chocolate"),
    ("if a:\n  b\nc", "if a:\n  b\n  c"),
    ("ice cream", "icecream"),
    ("my sister is called marisa", "my sister is called marina"),
    ("I have typical migraines", "I have atypical migraines"),
    ("Ich habe keine Katze", "Ich habe eine Katze"),
    ("She bought a car", "She purchased a car"),
    ("I drink tea on Mondays", "On Mondays I drink tea"),
]
ALIKE = [
    ("I bought a red car on Monday", "On Monday, I bought a red car"),
    ("Ann likes tea and coffee", "Ann likes coffee and tea"),
    ("She works in the kitchen", "She works in the kitchn"),
    ("The recieve path is slow", "The receive path is slow"),
    ("I'm allergic to sulfites", "I'm allergic to sulfates"),
]
NOT_ALIKE = [
    ("The house is big", "The house is large"),
    ("My room is 12", "My room is 13"),
    ("It is worth 3.5", "It is worth 35"),
    ("Meet me at 5", "Meet me at -5"),
    ("I do like it", "I do not like it"),
    ("I write C++", "I write C#"),
    ("We met Anna", "We met Anne"),
    ("We leave in March", "We leave in May"),
    ("I sold the boat", "I bought the boat"),
    ("The cat sat", "The hat sat"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_texts_that_differ_in_how_they_are_written_are_equal(one: str, other: str) -> None:
    assert equal_form(one) == equal_form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_may_mean_something_else_are_not_equal(one: str, other: str) -> None:
    assert equal_form(one) != equal_form(other)


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_another_order_or_another_letter_looks_alike(one: str, other: str) -> None:
    assert alike([one, "The kettle is in the galley", other]) == [(0, 2)]


@pytest.mark.parametrize(("one", "other"), NOT_ALIKE)
def test_another_number_name_or_word_does_not_look_alike(one: str, other: str) -> None:
    assert alike([one, other]) == []


def test_a_very_long_text_is_not_compared() -> None:
    words = ("harbour " * LONGEST)[: LONGEST - 5]
    assert alike([f"boat {words}", f"{words} boat"]) == [(0, 1)]
    assert alike([f"boats {words}", f"{words} boats"]) == []


@given(some.text(max_size=400))
def test_the_form_of_a_form_is_that_form(text: str) -> None:
    assert equal_form(equal_form(text)) == equal_form(text)


@given(some.text(max_size=60), some.sampled_from(["", ".", " ", "\n", "  \t"]))
def test_a_text_equals_itself_with_spaces_around_it(text: str, space: str) -> None:
    assert equal_form(space.strip(".") + text + space.strip(".")) == equal_form(text)


@given(some.lists(some.text(max_size=40), max_size=12))
def test_whatever_is_compared_two_different_texts_make_a_pair(texts: list[str]) -> None:
    assert all(0 <= one < other < len(texts) for one, other in alike(texts))


def test_of_sentences_that_people_wrote_only_those_that_were_repeated_are_equal() -> None:
    chance = random.Random(17)
    written = written_by_people()[:1_500]
    changes = (with_typo, with_other_order, *HARD)
    changed = [other for sentence in written for change in changes if (other := change(sentence, chance))]
    forms = {equal_form(sentence) for sentence in written}
    assert len(forms) == len(written)
    assert len(changed) > len(written)
    assert [other for other in changed if equal_form(other) in forms] == []
    assert all(equal_form(sentence.removesuffix(".").replace(" ", "  ")) in forms for sentence in written)
