"""What one text says beside another: repetitions, questions, and values of the same thing. Pure functions.

All of it compares analysed terms, so it holds for any embedder. In doubt two texts differ and a text states something:
a line too many in a prompt costs less than a fact that is missing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from memory_core.retrieval.analysis import analyse, asks, words
from memory_core.retrieval.diversity import similarity

REQUEST_WORDS: Final = 20
"""Longest text that can be a mere question: longer ones say why they ask, and that is worth remembering."""
REQUEST_CHARS: Final = 20 * REQUEST_WORDS
"""No twenty words are longer; spares a look at what is."""
REPLY_WORDS: Final = 8
"""Longest text that may need the question before it to be understood: "Yes, on Friday!"."""
SHARE_OF_LONGER: Final = 0.75
"""A text whose terms all stand in another one repeats it only if it has at least this share of the other's terms."""
SAME_QUESTION: Final = 0.5
"""From this similarity of terms on, two questions ask the same."""
SAME_THING: Final = 0.5
"""From this similarity of terms on, two statements of one speaker are about the same thing."""

_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")
_SENTENCE: Final = re.compile(r"[^.!?\u2026\n\u3002\uff01\uff1f\u061f]+[.!?\u2026\u3002\uff01\uff1f\u061f]*")
_NEGATION: Final = re.compile(
    r"\b(?:not?|never|none|nor|cannot|nicht|kein\w*|nie|niemals|nunca|jam[aá]s|ne|pas|non|mai|não|niet|geen)\b|n['\u2019]t\b"
    r"|[\u4e0d\u6ca1\u7121]|\u306a\u3044|\b\u043d\u0435\u0442?\b",
    re.IGNORECASE,
)
_MARKS: Final = 3
"""A text of so many times the query's length is not the query with other marks and spaces."""
UNMARKED_WORDS: Final = 12
"""Longest sentence without a question mark that is taken for a question by how it begins."""
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


def normalised(text: str) -> str:
    """The words of a text without regard to case, width, punctuation and spaces."""
    return _BETWEEN_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def excerpt(text: str, wanted: frozenset[str], longest: int) -> str:
    """The part of a text that shares most with the query, in whole sentences where they fit; all of a short text.

    Args:
        wanted: The terms of the query.
        longest: Most characters of the part, marks of what is left out included.
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


def stated(text: str, wanted: frozenset[str]) -> str:
    """A text without the requests in it that share nothing with the query, if something is left; dots stand for them.

    "I drive a Yaris. How often should the oil be changed?" is shown as "I drive a Yaris. …".

    Args:
        wanted: The terms of the query.
    """
    sentences = [sentence for sentence in _SENTENCE.findall(text) if any(map(str.isalnum, sentence))]
    kept = [each for each in sentences if not _is_asking(each) or wanted & terms_of(each)]
    if len(kept) == len(sentences) or not any(not _is_asking(each) for each in kept):
        return text
    return f"{' '.join(each.strip() for each in kept)} …"


def is_request(text: str) -> bool:
    """Whether a short text does nothing but ask, with a question mark or without one."""
    if len(text) > REQUEST_CHARS or words(text) > REQUEST_WORDS:
        return False
    sentences = [sentence for sentence in _SENTENCE.findall(text) if any(map(str.isalnum, sentence))]
    return bool(sentences) and all(map(_is_asking, sentences))


def ends_asking(text: str) -> bool:
    """Whether the last thing a text says is a question."""
    sentences = [sentence for sentence in _SENTENCE.findall(text[-REQUEST_CHARS:]) if any(map(str.isalnum, sentence))]
    return bool(sentences) and _is_asking(sentences[-1])


def is_short(text: str) -> bool:
    """Whether a text may need the question before it to be understood."""
    return len(text) <= REQUEST_CHARS and words(text) <= REPLY_WORDS


def repeats(text: str, terms: frozenset[str], other: str, others: frozenset[str]) -> bool:
    """Whether a text says nothing that the other one does not say.

    Args:
        terms: Of the text.
        others: The terms of the other one.
    """
    return (
        bool(terms)
        and terms <= others
        and len(terms) >= SHARE_OF_LONGER * len(others)
        and bool(_NEGATION.search(text)) == bool(_NEGATION.search(other))
    )


def asks_the_same(text: str, terms: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether a text only asks what the query asks."""
    return is_request(text) and (terms <= wanted or similarity(terms, wanted) >= SAME_QUESTION)


def is_the_same(text: str, query: str) -> bool:
    """Whether a text is the query, but for case, marks and spaces."""
    return len(text) <= _MARKS * len(query) and normalised(text) == normalised(query)


def echoes(terms: frozenset[str], statement: frozenset[str], query: Collection[str]) -> bool:
    """Whether an answer of these terms only repeats a statement, in the words of the statement and of the query."""
    said = terms.difference(query)
    return bool(said) and said <= statement


def is_about_the_same(terms: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two statements may give two values of one thing: "I moved to Oslo" and "I moved to Bergen"."""
    return not (terms <= others or others <= terms) and similarity(terms, others) >= SAME_THING


def _is_asking(sentence: str) -> bool:
    """Whether a sentence asks: by its question mark, or, if it is short, by how it begins."""
    if _STATING.match(sentence):
        return False  # "I made it out of a drainpipe?"
    if asks(sentence) or _ASKING_CHARACTERS.search(sentence):
        return True
    return "," not in sentence and words(sentence) <= UNMARKED_WORDS and bool(_OPENING.match(sentence))
