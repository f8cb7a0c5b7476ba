"""One fact among twenty others, and ways to ask for it thirty times; what a block or a tool then has to show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory_core.recall.neighbors import is_short
from memory_core.retrieval.equal_texts import equal_form
from tests.recall.blocks import bodies

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
FOREIGN: Final = frozenset(LANGUAGES[1:5])
"""The embedder knows English only, so these find the fact by chance, or what was answered before."""
WAYS: Final = {
    "the same words": SAME,
    "paraphrases": PARAPHRASES * 3,
    "without a question mark": UNMARKED * 3,
    "three languages": LANGUAGES * 5,
}
_EVERY: Final = 3
"""One of so many questions is asked of a framework; `test_echo.py` asks the memory itself all thirty."""
ASKED: Final = (*SAME[:6], *PARAPHRASES, *UNMARKED, *PARAPHRASES[:4])[::_EVERY]
"""Questions in the language of the fact, which adapters answer by their defaults."""

_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


def facts() -> Iterator[str]:
    """The facts that are said first, a session each."""
    yield from (*OTHERS[:10], FACT, *OTHERS[10:])


def assert_shown(texts: list[str], question: str) -> None:
    """The fact is among the texts, no text is there twice, and none is the question, as recall tells texts apart."""
    assert any(FACT in text for text in texts), f"{question!r} got {texts}"
    forms = [equal_form(text) for text in texts if not is_short(text)]  # "Noted." may follow several questions
    assert len(set(forms)) == len(forms), texts
    assert equal_form(question) not in forms, texts


def assert_recalled(prompt: str, question: str) -> None:
    """The one block of a prompt shows what it should; see `assert_shown`."""
    (block,) = bodies(prompt)
    lines = [line for line in block.splitlines() if line.startswith("- ")]
    assert_shown([text for line in lines for text in _QUOTED.findall(line)], question)
