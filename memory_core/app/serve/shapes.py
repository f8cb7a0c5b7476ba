"""The values that the templates draw: memories, hits and conditions as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core.app.serve.conditions import conditions_on, pairs_of, query_of
from memory_core.app.showing import REASONS
from memory_core.models import Hit, MemoryRecord
from memory_core.recall.values import Considered
from memory_core.where.where import Where

SHOWN_CHARS: Final = 400
"""Characters of a memory in a list; its own page shows all of them."""
MOST_CHIPS: Final = 50
"""Conditions, and kinds, above a list: each has a link with all the others."""
COLOURS: Final = 8
BAR: Final = 100.0
"""The width of the longest bar, in the unit of its drawing."""


PARTS: Final[Mapping[str, str]] = {
    "cosine": "meaning",
    "bm25": "words",
    "neighbor": "turns beside it",
    "session": "its conversation",
    "speaker": "the person named",
    "date": "the time named",
    "role": "who speaks",
    "length": "length",
    "later": "a later statement",
    "recency": "recency",
    "importance": "importance",
    "diversity": "repetition",
    "reranker": "reranker",
    "substring": "contains the words",
}
"""The name that people give each part of a score."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a score as a piece of a bar."""

    name: str
    called: str
    """The same in a word for people."""
    measured: str
    share: str
    start: float
    width: float
    colour: int


@dataclass(frozen=True, slots=True)
class Line:
    """A memory in a list."""

    record: MemoryRecord
    text: str
    is_cut: bool
    rank: int | None = None
    score: float | None = None
    parts: Sequence[Part] = ()
    said: str | None = None
    """The reason why it is in a block or not."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition, and the query that asks for it, or for everything but it."""

    name: str
    value: str
    query: str


def line_of(record: MemoryRecord) -> Line:
    """A memory that was listed."""
    text, is_cut = _cut(record.text)
    return Line(record, text, is_cut)


def hit_lines(hits: Sequence[Hit]) -> list[Line]:
    """Hits with their scores, drawn on one scale."""
    best = max((_drawn(hit) for hit in hits), default=0.0)
    return [_hit_line(hit, rank, best) for rank, hit in enumerate(hits, 1)]


def considered_lines(found: Sequence[Considered]) -> list[Line]:
    """The memories that a recall considered, each with the reason why it is in the block or not."""
    best = max((_drawn(each.hit) for each in found), default=0.0)
    return [considered_line(each, best) for each in found]


def considered_line(each: Considered, best: float | None = None) -> Line:
    """One of them; `best` is the longest bar beside it."""
    line = _hit_line(each.hit, each.rank, _drawn(each.hit) if best is None else best)
    return Line(
        line.record, line.text, line.is_cut, line.rank, line.score, line.parts, REASONS[each.reason], each.reason
    )


def _hit_line(hit: Hit, rank: int, best: float) -> Line:
    text, is_cut = _cut(hit.record.text if hit.passage is None else hit.passage.text)
    is_cut = is_cut or len(text) < len(hit.record.text)
    return Line(hit.record, text, is_cut, rank, hit.score, parts_of(hit, best))


def parts_of(hit: Hit, best: float) -> list[Part]:
    """The parts of a score, the largest first, as pieces of a bar; what lowers a score has no piece."""
    found: list[Part] = []
    start = 0.0
    for name, part in sorted((hit.components or {}).items(), key=lambda item: -item[1].weighted):
        width = BAR * max(part.weighted, 0.0) / best if best else 0.0
        piece = round(start, 2), round(width, 2), _colour(name)
        found.append(Part(name, PARTS.get(name, name), f"{part.raw:.3f}", f"{part.weighted:.3f}", *piece))
        start += width
    return found


def _drawn(hit: Hit) -> float:
    return sum(max(part.weighted, 0.0) for part in (hit.components or {}).values())


def _colour(name: str) -> int:
    """The same for the same name on every page."""
    return list(PARTS).index(name) % COLOURS if name in PARTS else COLOURS - 1


def legend_of(lines: Sequence[Line]) -> list[Part]:
    """Each part that the bars of these lines have, once, in the order of `PARTS`."""
    found = {part.name: part for line in lines for part in line.parts if part.width > 0}
    return [found[name] for name in (*PARTS, *(found.keys() - PARTS.keys())) if name in found]


def _cut(text: str) -> tuple[str, bool]:
    return (text, False) if len(text) <= SHOWN_CHARS else (text[:SHOWN_CHARS], True)


def chips_of(where: Where, others: Sequence[tuple[str, str]]) -> list[Chip]:
    """The first conditions of a read but for the kinds, each with the query without it; `others` are the other pairs of
    the query."""
    pairs = pairs_of(where)
    return [
        Chip(name.replace("_", " "), value, query_of([*others, *(pair for pair in pairs if pair != (name, value))]))
        for name, value in [pair for pair in pairs if pair[0] != "kinds"][:MOST_CHIPS]
    ]


@dataclass(frozen=True, slots=True)
class Facet:
    """A value to browse by."""

    value: str
    count: int | None
    query: str
    is_chosen: bool = False


def facets_of(name: str, values: Mapping[str, int | None], others: Sequence[tuple[str, str]]) -> list[Facet]:
    """The values of a condition in order; `others` are the pairs of the query, of which those of this name go."""
    kept = query_of([pair for pair in others if pair[0] != name])
    return [Facet(value, count, _also(kept, name, value)) for value, count in sorted(values.items())]


def kinds_of(counts: Mapping[str, int], chosen: Sequence[str], others: Sequence[tuple[str, str]]) -> list[Facet]:
    """The kinds of what a list could show, those that are chosen and the most frequent ones, each with a link that asks
    for it, or no longer does; `others` are the other pairs of the query."""
    picked, kept = frozenset(chosen), query_of(others)
    kinds = sorted({*counts, *picked}, key=lambda kind: (kind not in picked, -counts.get(kind, 0), kind))
    return [
        Facet(kind, counts.get(kind, 0), kept if kind in picked else _also(kept, "kinds", kind), kind in picked)
        for kind in sorted(kinds[:MOST_CHIPS])
    ]


def _also(query: str, name: str, value: str) -> str:
    """The query with one more pair."""
    return f"{query}&{query_of([(name, value)])[1:]}" if query else query_of([(name, value)])


def conditions_of(record: MemoryRecord) -> list[Chip]:
    """The fields of a record as links to the memories that have the same."""
    return [Chip(name.replace("_", " "), value, query_of([pair])) for name, value, pair in conditions_on(record)]
