"""What the patterns extract from turns, and what they leave alone."""

from __future__ import annotations

import pytest

from memory_core.lifecycle import Extractor, LanguageModel, PatternExtractor
from memory_core.lifecycle.extraction import statements
from memory_core.testing import ExtractorContract

LASTING = """
I am a carpenter from Leeds|My brother Otto lives in Vienna|I'm allergic to penicillin
My name is Marisol Vega|my wife's name is Jane|I was born in Kyoto|I grew up on a farm in Kansas|I'm 43 years old
I have two daughters|I've got a dog named Rufus|I work as a nurse in a children's hospital
I live in Lisbon with my partner
We live near the harbour|I drive an old Volvo|I speak Spanish|I play the cello
I've been a teacher for 20 years|I have asthma
My birthday is on 4 May|my email is ann@example.org|Our cat Milo is deaf|I go swimming every Tuesday
My landlord is Mr Novak
On Sundays I visit my grandmother|I take vitamin D every morning|I keep my passport in the top drawer|My boss is Karen
My doctor says I should walk more|I studied physics at Delft|I moved to Rotterdam in 2019|I used to smoke a pipe
I'm moving to Porto|I broke my leg in 2020|I retire in 2030|My car is a Fiat|I need glasses to read|I'm left-handed
Hi, I'm Tessa.|Well, I'm a vegan.|I'm learning Finnish|I don't eat meat|I'm training for a triathlon
My doctor is Dr. Osei
"""
LIKED = """
Call me Fitz|You can call me Lou.|I prefer tea over coffee|I love hiking in the Alps|I can't stand cilantro
My favorite color is teal|I hate flying
Chess is my favourite game|I only drink decaf|I'm a big fan of Miles Davis
I'd rather fly in the morning|I love cooking now and then|I don't watch westerns
My kids love dinosaurs
"""
HAPPENED = """
I bought a parrot last week|We went camping in the mountains|I've booked a cabin for two weeks in July
I signed up for a pottery class yesterday|I have an exam on 12 June
"""
PASSING = """
I am tired|I'm a bit confused|I'm trying to fix the bug|I'm not sure about it|My question is how to start
my code is broken
I love it|I like that idea|I prefer the second option|Am I a carpenter?|If I am late, call me|Call me tomorrow
call me when you arrive|I'm going to the shop|I think I prefer tea|I would like a table|I'd love to|I'm Ok|I'm sorry
I have a question|She said I am clever|I love how you explain things|My phone is dead|I work on this every day
I hate when this happens|My boss is angry|I'd like to know more|I'm here|I'm a little worried
my favourite is the first one
I want to drive a car|I play it every day|I like your hat|I love that show!|I'd rather not|I'm getting an error
I have two options|I've been working on this since Monday|I'm thinking about moving to Porto
I'm a mix of happy and sad
Do you think I am a good cook?|You are a carpenter from Leeds|```\\nI am a carpenter\\n```
print("I am a carpenter")|My cousin Emil.
My sister and I moved to Rome|I grew up near some|I love visiting|I like most of his films|I used to play when I was six
He said: "I am a nurse and I like it."|I am a pretty big fan|I want to visit that for sure
I like many|I like football better
I don't watch too often|We live in a mad world|Novels which I love are long
"""


def split(block: str) -> list[str]:
    """The examples of a block; only a line break within an example is written `\\n`."""
    return [each for line in block.strip().splitlines() for each in line.replace("\\n", "\n").split("|")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [(text, kind) for kind, block in (("fact", LASTING), ("preference", LIKED)) for text in split(block)],
)
def test_a_lasting_statement_is_extracted_as_it_was_said(text: str, kind: str) -> None:
    found = list(statements(f"{text.rstrip('.')}. What do you think of that?"))
    assert len(found) == 1
    said = found[0][1].rstrip(".").casefold()
    assert text.rstrip(".").casefold().endswith(said)
    assert found[0][0] == kind


@pytest.mark.parametrize("text", split(HAPPENED))
def test_what_somebody_did_is_an_event(text: str) -> None:
    assert list(statements(text)) == [("event", text)]


@pytest.mark.parametrize("text", split(PASSING))
def test_what_passes_or_refers_to_something_else_is_left_alone(text: str) -> None:
    assert list(statements(text)) == []


def test_a_sentence_is_cut_where_another_statement_begins() -> None:
    said = "By the way, I'm a nurse and I live in Oslo, so the night shift suits me. Our cat Milo is deaf; he sleeps."
    assert [text for _, text in statements(said)] == ["I'm a nurse", "I live in Oslo", "Our cat Milo is deaf"]


def test_a_clause_said_twice_is_extracted_once() -> None:
    assert [text for _, text in statements("I'm a nurse. I'm a nurse!  i'm a nurse")] == ["I'm a nurse."]


def test_a_pasted_book_takes_no_time() -> None:
    assert list(statements("I " * 500_000)) == []


class TestPatterns(ExtractorContract):
    @pytest.fixture
    def extractor(self) -> Extractor:
        return PatternExtractor()


class TestModel(ExtractorContract):
    @pytest.fixture
    def extractor(self) -> Extractor:
        return LanguageModel(
            lambda prompt: "9 fact: Ann is allergic to peanuts\n99 fact: invented" if "peanuts" in prompt else "none"
        )
