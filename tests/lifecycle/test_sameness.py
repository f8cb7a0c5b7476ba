"""Which texts say the same, and which later ones correct earlier ones: pure functions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from memory_core.lifecycle.corrections import corrections
from memory_core.lifecycle.sameness import groups_of_same, say_the_same, statement_of
from tests.corpora.loading import CORPORA, owners
from tests.lifecycle.planting import HARD, contradictions, sentences, with_other_order, with_typo

ENGLISH = [name for name in CORPORA if name != "languages"]


def written_by_people() -> list[str]:
    return sentences(record.text for name in ENGLISH for owner in owners(name) for record in owner.records)


SAME = [
    ("I drink tea.", "i drink tea"),
    ("I bought a red car on Monday", "On Monday, I bought a red car"),
    ("My favourite tea is jasmine", "Jasmine is my favourite tea"),
    ("Ann likes tea and coffee", "Ann likes coffee and tea"),
    ("She works in the kitchen", "She works in the kitchn"),
    ("The recieve path is slow", "The receive path is slow"),
    ("The house is big", "The house is large"),
    ("She purchased a film", "She bought a movie"),
    ("I do not drink coffee on Mondays", "On Mondays I do not drink coffee"),
    ("It\u2019s Ann\u2019s boat", "It's Ann's boat"),
]
NOT_THE_SAME = [
    ("Tom lent Ann a drill", "Ann lent Tom a drill"),
    ("We flew from Oslo to Bergen", "We flew from Bergen to Oslo"),
    ("I told Tom Ann is ill", "I told Ann Tom is ill"),
    ("The horse is big", "The house is big"),
    ("Ann's room is 12", "Ann's room is 13"),
    ("It is worth 3.5", "It is worth 35"),
    ("Meet me at 5", "Meet me at -5"),
    ("I do like it", "I do not like it"),
    ("Only Ann likes tea", "Ann likes only tea"),
    ("I write C++", "I write C#"),
    ("The dog bit the man", "The man bit the dog"),
    ("Anna sails", "Anne sails"),
    ("We leave in March", "We leave in May"),
    ("I sold the boat", "I bought the boat"),
    ("Ann called Okafor", "Ann called Okafur"),
    ("Call me before noon", "Call me after noon"),
]
CORRECTED = [
    ("I live in Oslo", "I moved to Bergen last week"),
    ("My favourite tea is jasmine", "My favorite tea is now mint"),
    ("I drink coffee", "I no longer drink coffee"),
    ("Ann smokes a pipe", "Ann stopped smoking a pipe"),
    ("I eat meat", "I don't eat meat anymore"),
    ("Ann is vegetarian", "Ann is no longer vegetarian"),
    ("My phone number is 555 1234", "My new phone number is 555 9999"),
    ("The meeting is on Thursday", "The meeting was moved to Friday"),
    ("I work at Acme", "I joined Globex"),
    ("Tom drives a Volvo", "Tom drives a Saab now"),
    ("I'm 34 years old", "I am 35"),
    ("The deadline is May 3", "The deadline is June 1"),
    ("Ann's boss is Tom", "Ann's boss is Eva"),
    ("My email is a@b.c", "My email address is x@y.z"),
]
NOT_CORRECTED = [
    ("My friend is Tom", "My friend is Ann"),
    ("My boss is Tom", "My boss is angry"),
    ("I live in Oslo", "Ann lives in Bergen"),
    ("The meeting is on Friday", "The meeting is at 5 pm"),
    ("I like tea", "I like coffee"),
    ("I live in Oslo", "I live in Oslo, Norway"),
    ("I live in Oslo", "I live in a small flat"),
    ("I work at Acme", "I work from home"),
    ("Ann drinks coffee", "Tom no longer drinks coffee"),
    ("My work email is a@b.c", "My home email is d@e.f"),
    ("He lives in Oslo", "He lives in Bergen"),
    ("Do I live in Oslo?", "I live in Bergen"),
    ("I live in Oslo", "Should I say that I live in Bergen?"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_case_marks_slips_order_and_synonyms_make_no_difference(one: str, other: str) -> None:
    assert groups_of_same([one, other]) == [[0, 1]]
    assert say_the_same(statement_of(other), statement_of(one))


@pytest.mark.parametrize(("one", "other"), NOT_THE_SAME)
def test_numbers_names_dates_roles_and_negations_make_one(one: str, other: str) -> None:
    assert groups_of_same([one, other]) == []
    assert not say_the_same(statement_of(other), statement_of(one))


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_a_later_value_corrects_an_earlier_one_and_not_the_other_way_round(old: str, new: str) -> None:
    assert corrections([old, "The kettle is in the galley", new]) == [(0, 2)]
    assert corrections([old]) == []


@pytest.mark.parametrize(("old", "new"), NOT_CORRECTED)
def test_what_may_both_be_true_is_not_corrected(old: str, new: str) -> None:
    assert corrections([old, new]) == []


def test_a_value_that_changes_twice_is_corrected_twice() -> None:
    assert corrections(["I live in Oslo", "I moved to Bergen", "I moved to Porto"]) == [(0, 1), (1, 2)]


def test_a_word_that_somebody_often_writes_is_no_slip() -> None:
    texts = ["The kombuch is ready", "The kombucha is ready"]
    assert groups_of_same(texts) == [[0, 1]]
    assert groups_of_same(texts, {"kombuch": 9, "kombucha": 9}) == []


@given(some.lists(some.text(max_size=40), max_size=12))
def test_whatever_is_compared_a_text_is_in_one_group_at_most(texts: list[str]) -> None:
    places = [place for group in groups_of_same(texts) for place in group]
    assert len(places) == len(set(places))
    corrections(texts)


@given(some.text(max_size=400))
def test_a_text_says_the_same_as_itself(text: str) -> None:
    if statement_of(text).words:
        assert groups_of_same([text, text.upper().lower(), text])[0][0] == 0


def test_in_sentences_that_people_wrote_what_is_planted_is_found_and_nothing_else() -> None:
    chance = random.Random(17)
    written = written_by_people()[:1_500]
    same = [
        (sentence, changed)
        for place, sentence in enumerate(written)
        if place % 3 == 0 and (changed := (with_typo, with_other_order)[place % 2](sentence, chance))
    ]
    hard = [other for sentence in written for change in HARD if (other := change(sentence, chance))]
    texts = [*written, *(changed for _, changed in same), *hard]
    group_of = {texts[place]: number for number, group in enumerate(groups_of_same(texts)) for place in group}
    found = sum(group_of.get(one, -1) == group_of.get(other, -2) for one, other in same)
    assert found >= 0.9 * len(same) > 100
    hard_merged = [other for other in hard if other in group_of]
    assert hard_merged == []


def test_planted_contradictions_are_found_among_sentences_that_people_wrote() -> None:
    chance = random.Random(5)
    written = written_by_people()
    pairs = contradictions(300, chance)
    texts = [*(old for old, _ in pairs), *written, *(new for _, new in pairs)]
    planted = {(place, len(texts) - len(pairs) + place) for place in range(len(pairs))}
    found = set(corrections(texts))
    assert len(found & planted) >= 0.9 * len(planted)
    assert len(found & planted) >= 0.99 * len(found)
