"""Which texts say the same: equal but for case and marks, a typing error, the order of their parts, or synonyms.

Pure functions. In doubt two texts differ: a line too many costs less than a fact that is gone. So numbers, names, dates
and negations have to be equal, and a word may only stand for another one that `synonyms` lists.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Final

from memory_core.lifecycle.synonyms import synonym_classes

MAX_TYPO_TOKENS: Final = 60
"""Words of a text up to which typing errors are looked for; longer ones have to be equal word by word."""
LEAST_TYPO_CHARS: Final = 4
"""A shorter word with another letter is more often another word."""
LONG_UNKNOWN_CHARS: Final = 7
"""Of two words that nobody knows, from this length on one is a typing error of the other."""
COMMON: Final = 3
"""A word in so many texts of one person is no typing error, ..."""
OFTEN: Final = 100
"""... unless the other one is in so many times as many: nobody always writes "your" the same way."""
LEAST_MOVED: Final = 3
"""Words of two parts that have changed places."""
MAX_BUCKET: Final = 100
"""Different texts of the same words that are compared with each other."""

_TOKEN: Final = re.compile(
    r"[-+\u2212]?[$\u20ac\u00a3]?\d+(?:[.,:/-]\d+)*\w*|\w+|(?<=\w)['\u2019]\w+|[^\w\s.,;:!?\"'\u2018\u2019\u201c\u201d()\u2026\u2013\u2014-]"
)
_BEFORE_CODE: Final = ("`", ".", "/", "@", "#", "*", "\\", "$")
"""What stands right before a word that is no word of a language."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_FOCUS: Final = frozenset(
    {"no", "not", "never", "none", "only", "just", "even", "also", "almost", "nearly", "still", "too"}
)
"""Words that bear on the one behind them: that has to stay there."""
_AND: Final = frozenset({"and", "or", "und", "oder", "y", "et"})
_IS: Final = frozenset({"is", "are", "was", "were"})

_NO_COUNTS: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Statement:
    """A text as it is compared."""

    words: tuple[str, ...]
    """In order, without case, marks and articles."""
    means: tuple[str, ...]
    """For each word what stands for it and its synonyms."""
    is_name: tuple[bool, ...]
    """For each word whether it is written like a name or as code, or has a digit."""


def statement_of(text: str) -> Statement:
    """Take a text apart."""
    words: list[str] = []
    means: list[str] = []
    names: list[bool] = []
    end = 0
    for found in _TOKEN.finditer(unicodedata.normalize("NFKC", text)):
        token, between = found.group(), found.string[end : found.start()]
        starts = end == 0 or any(mark in between for mark in ".!?\n")
        end = found.end()
        word = token.casefold().replace("\u2019", "'")
        if word in _ARTICLES:
            continue
        is_quoted = between.endswith(_BEFORE_CODE) or "_" in token
        is_name = is_quoted or any(map(str.isdigit, token)) or (token[0].isupper() and word != "i" and not starts)
        words.append(word)
        means.append(word if is_name else synonym_classes().get(word, word))
        names.append(is_name)
    return Statement(tuple(words), tuple(means), tuple(names))


def say_the_same(one: Statement, other: Statement, counts: Mapping[str, int] = _NO_COUNTS) -> bool:
    """Whether two texts differ by a typing error, the order of their parts and synonyms at most.

    Args:
        counts: In how many texts of the same person a word is: a common one is no typing error.
    """
    means, others = one.means, _as_in(one, other, counts)
    return others is not None and (means == others or _is_reordered(means, others))


def groups_of_same(texts: Sequence[str], counts: Mapping[str, int] = _NO_COUNTS) -> list[list[int]]:
    """The places of texts that say the same, two or more each, in order."""
    statements = [statement_of(text) for text in texts]
    first: dict[tuple[str, ...], int] = {}
    parent = list(range(len(texts)))
    for place, statement in enumerate(statements):
        if statement.words:
            parent[place] = first.setdefault(statement.words, place)
    for one, other in _candidates({place: statements[place] for place in first.values()}):
        root, second = _root(parent, one), _root(parent, other)
        if root != second and say_the_same(statements[one], statements[other], counts):
            parent[max(root, second)] = min(root, second)
    groups: dict[int, list[int]] = defaultdict(list)
    for place in range(len(texts)):
        groups[_root(parent, place)].append(place)
    return [group for group in groups.values() if len(group) > 1]


@cache
def known_words() -> frozenset[str]:
    """Words that the vocabulary of the default embedder has as a whole."""
    from memory_core.embedding import minilm  # noqa: PLC0415  (loads numpy)

    vocabulary = Path(minilm.__file__).with_name("vocab.txt").read_text(encoding="utf-8")
    return frozenset(word for word in vocabulary.split("\n") if word.isalpha())


def _candidates(statements: Mapping[int, Statement]) -> Iterator[tuple[int, int]]:
    """Pairs of the same words in whatever order, all or all but one of them."""
    buckets: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, statement in statements.items():
        buckets[tuple(sorted(statement.means))].append(place)
        if len(statement.words) > MAX_TYPO_TOKENS:
            continue
        slips = {mean for mean, word in zip(statement.means, statement.words, strict=True) if _may_slip(word)}
        for mean in slips:
            rest = list(statement.means)
            rest.remove(mean)
            buckets["*", *sorted(rest)].append(place)
    for places in buckets.values():
        yield from combinations(places[:MAX_BUCKET], 2)


def _as_in(one: Statement, other: Statement, counts: Mapping[str, int]) -> tuple[str, ...] | None:
    """What `other` says with the words of `one`; `None` if that is something else."""
    if len(one.means) != len(other.means):
        return None
    if sorted(one.means) == sorted(other.means):
        return other.means
    mine, yours = _only_in(one.means, other.means), _only_in(other.means, one.means)
    if len(mine) != 1 or len(yours) != 1:
        return None
    at, there = one.means.index(mine[0]), other.means.index(yours[0])
    word, written = one.words[at], other.words[there]
    if one.is_name[at] or other.is_name[there] or not _is_typo(word, written, counts):
        return None
    return (*other.means[:there], mine[0], *other.means[there + 1 :])


def _only_in(words: Iterable[str], others: Iterable[str]) -> list[str]:
    left = list(words)
    for word in others:
        if word in left:
            left.remove(word)
    return left


def _is_typo(word: str, other: str, counts: Mapping[str, int]) -> bool:
    """Whether exactly one of two words is known and the other one is a slip of the keys away from it."""
    if not (_may_slip(word) and _may_slip(other) and _is_one_slip(word, other)):
        return False
    if max(len(word), len(other)) < LEAST_TYPO_CHARS:
        return False
    often = max(COMMON, counts.get(word, 0) // OFTEN, counts.get(other, 0) // OFTEN)
    knows = [each in known_words() or counts.get(each, 0) >= often for each in (word, other)]
    return knows[0] != knows[1] or (not any(knows) and min(len(word), len(other)) >= LONG_UNKNOWN_CHARS)


def _may_slip(word: str) -> bool:
    return len(word) >= LEAST_TYPO_CHARS - 1 and word.isalpha()


def _is_one_slip(word: str, other: str) -> bool:
    """Whether a letter more, less or other, or two neighbours exchanged, make one word the other."""
    if len(word) > len(other):
        word, other = other, word
    start = 0
    while start < len(word) and word[start] == other[start]:
        start += 1
    left, right = word[start:], other[start:]
    if len(word) < len(other):
        return left == right[1:]
    swapped = left[1:2] + left[:1] + left[2:]
    return left[1:] == right[1:] or swapped == right


def _is_reordered(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one part was moved: "on Fridays Ann sails", "Ann sails on Fridays"; or both sides of "and" or "is"."""
    if _focused(words) != _focused(others):
        return False
    start, stop = 0, len(words)
    while words[start] == others[start]:
        start += 1
    while words[stop - 1] == others[stop - 1]:
        stop -= 1
    part, moved = tuple(words[start:stop]), tuple(others[start:stop])
    # Two words alone may be roles: "I told Tom Ann is ill", "I told Ann Tom is ill".
    if len(part) >= LEAST_MOVED and any(part[at:] + part[:at] == moved for at in range(1, len(part))):
        return True
    pivots = _AND | (_IS if len(part) == len(words) else frozenset[str]())
    return any((*part[at + 1 :], word, *part[:at]) == moved for at, word in enumerate(part) if word in pivots)


def _focused(words: Sequence[str]) -> list[tuple[str, str]]:
    """What the words that bear on another one bear on."""
    pairs = pairwise((*words, ""))
    return sorted(pair for pair in pairs if pair[0] in _FOCUS)


def _root(parent: list[int], place: int) -> int:
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place
