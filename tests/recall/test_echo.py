"""A fact that is asked again and again must not be buried under the questions."""

from __future__ import annotations

from typing import Final

import pytest

from memory_core import Memory

FACT: Final = "My favourite tea is jasmine, from the shop on Mill Road"
ANSWER: Final = "You like jasmine tea from the shop on Mill Road."
OTHERS: Final = (
    "I live in Oslo, near the harbour",
    "My dog is called Rex",
    "I drive an old Volvo",
    "I work as an engineer at a power company",
    "My sister Mia lives in Ghent",
    "Our landlord is Mr Finch",
    "The boiler code is 4711",
    "I play the cello in an orchestra",
    "In June I sail along the coast",
    "My dentist is Dr Berg",
    "I only take oat milk in my coffee",
    "I read crime novels before I sleep",
    "My car needs a service in May",
    "My favourite colour is teal",
    "I want to learn Italian next year",
    "On Sundays I run ten kilometres",
    "My bank is the one on the corner",
    "I am allergic to walnuts",
    "My train leaves at 17:42",
    "I keep a spare key in the shed",
)
SAME: Final = ("Which tea is my favourite?",) * 30
PARAPHRASES: Final = (
    "Which tea do I like?",
    "What tea do I like best?",
    "What is my favourite tea?",
    "What kind of tea do I prefer?",
    "Do you know which tea I like?",
    "Can you tell me my favourite tea?",
    "Which tea did I say I like?",
    "Remind me which tea I like",
    "Which tea should I buy for myself?",
    "So which tea is it that I like?",
)
UNMARKED: Final = tuple(question.rstrip("?").lower() for question in PARAPHRASES)
LANGUAGES: Final = (
    "Which tea is my favourite?",
    "Welchen Tee mag ich am liebsten?",
    "\u00bfCu\u00e1l es mi t\u00e9 favorito?",
    "welcher tee ist mein lieblingstee",
    "\u00bfQu\u00e9 t\u00e9 me gusta m\u00e1s?",
    "which tea do i like",
)
WAYS: Final = {
    "the same words": SAME,
    "paraphrases": PARAPHRASES * 3,
    "without a question mark": UNMARKED * 3,
    "three languages": LANGUAGES * 5,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_fact_is_in_the_block_however_often_it_was_asked(way: str) -> None:
    async with Memory(":memory:") as memory:
        ann = memory.bind(app="chat", user="ann")
        for n, text in enumerate([*OTHERS[:10], FACT, *OTHERS[10:]]):
            await ann.remember([("user", text), ("assistant", "Noted.")], session=f"fact {n}")
        for n, question in enumerate(WAYS[way]):
            recalled = await ann.recall(question, max_chars=1_000, floor=False)
            assert FACT in recalled.text, f"asking {n}: {question!r}\n{recalled}"
            texts = [record.text for record in recalled.records]
            assert len(set(texts)) == len(texts)
            assert question not in texts
            await ann.remember([("user", question), ("assistant", ANSWER)], session=f"asking {n}")
