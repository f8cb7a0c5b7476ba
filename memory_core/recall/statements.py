"""Compare statements: find repetitions and questions. Pure functions.

All functions compare analysed terms, so they do not depend on the embedder. In doubt two texts differ, and a text is a
statement: an extra line in a prompt costs less than a missing fact.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from memory_core.retrieval.analysis import analyse, asks, words
from memory_core.retrieval.equal_texts import equal_form

REQUEST_WORDS: Final = 20
"""Maximum length of a mere question. Longer ones also give reasons, which are worth remembering."""
REQUEST_CHARS: Final = 20 * REQUEST_WORDS
"""Twenty words are never longer; longer texts are not analysed."""
REPLY_WORDS: Final = 8
"""Maximum length of a text that may need the question before it to be understood: "Yes, on Friday!"."""

MERE_REPLY_WORDS: Final = 3
"""Maximum words of a reply that says nothing by itself."""

_SENTENCE: Final = re.compile(r"[^.!?\u2026\n\u3002\uff01\uff1f\u061f]+[.!?\u2026\u3002\uff01\uff1f\u061f]*")
_MARKS: Final = 3
"""A text longer than this many times the query cannot be the query with other punctuation and spaces."""
UNMARKED_WORDS: Final = 12
"""Maximum length of a sentence without a question mark that its first words can make a question."""
_AUXILIARY: Final = r"(?:is|are|was|were|am|do|does|did|can|could|should|will|would|has|have|had|may|must)"
_SUBJECT: Final = r"(?:i|we|my|our|ich|mein\w*|wir|unser\w*|yo|mi|mis|je|j|mon|ma|mes|nous|io|eu|meu|minha|ik|mijn)"
_WH: Final = (
    r"(?:wer|wo|wann|warum|wieso|wie|was|welche\w*|wohin|woher|wem|wen|qu\u00e9|cu\u00e1l\w*|d\u00f3nde|cu\u00e1ndo"
    r"|c\u00f3mo|qui\u00e9n\w*|quel\w*|o\u00f9|quand|comment|pourquoi|combien|quale|dove|perch\u00e9|qual|onde|welk\w*|waar"
    r"|\u043a\u0442\u043e|\u0447\u0442\u043e|\u0433\u0434\u0435|\u043a\u043e\u0433\u0434\u0430|\u043a\u0430\u043a\w*)"
)
_STATING: Final = re.compile(rf"\W*{_SUBJECT}\b", re.IGNORECASE)
_OPENING: Final = re.compile(
    rf"\W*(?:(?:please|bitte|and|so|und)\W+)*(?:(?:what|who|where|when|why|how)(?:\W+|['\u2019])(?:s|{_AUXILIARY})\b"
    rf"|(?:which|what|whose|how)\W+(?!{_SUBJECT}\b)(?:\w+\W+){{1,3}}{_AUXILIARY}\b"
    rf"|{_WH}\W+(?!(?:{_SUBJECT}|du|er|sie|es|man|tu|il|elle)\b)\w"
    rf"|{_AUXILIARY} (?:i|you|we|my|it|there)\b"
    r"|(?:tell|remind|show) (?:me|us)\b|(?:sag|zeig|erinnere?) (?:mir|mich|uns)\b|dime\b|dis[- ]moi\b"
    r"|est-ce|qu['\u2019]est)",
    re.IGNORECASE,
)
_ASKING_CHARACTERS: Final = re.compile(
    r"[\u4ec0\u5565]\u4e48|\u54ea|\u8c01|\u600e\u4e48|\u591a\u5c11|\u5417\W*$|\u3067\u3059\u304b\W*$|\u307e\u3059\u304b\W*$"
)


def terms_of(text: str) -> frozenset[str]:
    """The analysed terms of a text."""
    return frozenset(analyse(text))


def excerpt(text: str, wanted: frozenset[str], longest: int) -> str:
    """The part of a text that shares most terms with the query, in whole sentences if they fit; all of a short text.

    Args:
        wanted: The terms of the query.
        longest: Most characters of the part, ellipses included.
    """
    if len(text) <= longest:
        return text
    spans = [found.span() for found in _SENTENCE.finditer(text)] or [(0, len(text))]
    shared = [len(wanted & terms_of(text[start:stop][: 2 * longest])) for start, stop in spans]
    first = last = shared.index(max(shared))
    while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= longest - 2:
        last += 1
    while first and spans[last][1] - spans[first - 1][0] <= longest - 2:
        first -= 1
    start, stop = spans[first][0], min(spans[last][1], spans[first][0] + longest - 2)
    return f"{'…' if start else ''}{text[start:stop].strip()}{'…' if stop < len(text) else ''}"


def is_request(text: str) -> bool:
    """Whether a short text only asks, with or without a question mark."""
    if len(text) > REQUEST_CHARS or words(text) > REQUEST_WORDS:
        return False
    sentences = [sentence for sentence in _SENTENCE.findall(text) if any(map(str.isalnum, sentence))]
    return bool(sentences) and all(map(_is_asking, sentences))


def ends_asking(text: str) -> bool:
    """Whether the last sentence of a text is a question."""
    sentences = [sentence for sentence in _SENTENCE.findall(text[-REQUEST_CHARS:]) if any(map(str.isalnum, sentence))]
    return bool(sentences) and _is_asking(sentences[-1])


def is_short(text: str) -> bool:
    """Whether a text may need the question before it to be understood."""
    return len(text) <= REQUEST_CHARS and words(text) <= REPLY_WORDS


def asks_the_same(text: str, terms: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether a text only asks what the query asks, without a term that the query lacks."""
    return terms <= wanted and is_request(text)


def is_mere_reply(text: str) -> bool:
    """Whether a text says nothing without the question before it: "Yes.", "Nine of them"."""
    return len(text) <= REQUEST_CHARS and words(text) <= MERE_REPLY_WORDS


def is_the_same(text: str, query: str) -> bool:
    """Whether a text is the query but for how it is written."""
    return len(text) <= _MARKS * len(query) and equal_form(text) == equal_form(query)


def echoes(terms: frozenset[str], statement: frozenset[str], query: Collection[str]) -> bool:
    """Whether an answer only repeats a statement, in the terms of the statement and of the query."""
    said = terms.difference(query)
    return bool(said) and said <= statement


def _is_asking(sentence: str) -> bool:
    """Whether a sentence is a question: by its question mark or, if it is short, by its first words."""
    if _STATING.match(sentence):
        return False  # "I made it out of a drainpipe?"
    if asks(sentence) or _ASKING_CHARACTERS.search(sentence):
        return True
    return "," not in sentence and words(sentence) <= UNMARKED_WORDS and bool(_OPENING.match(sentence))
