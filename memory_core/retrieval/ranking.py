"""Rank rows: cosine, keywords and the conversation around a turn, summed into one score.

The unit is the spread of the cosines of unrelated texts (`cosine_scale.py`): one of a thousand unrelated texts reaches
a score of 3 by chance.

    own(i)   = known * z(cosine(i))  +  WORDS * coverage(i)
    score(i) = own(i)
             + LENT    * lent(turn before) * unsaid(i)     if the turn before asks something
             + LENT    * lent(turn after)  * unsaid(i)
             + SESSION * best of the sums so far in the same session
             + HINT    if the query names the author
             + HINT    * how well the record's date fits a date named in the query
             + HINT    if the query asks when and a turn names a time
             + ROLE    if it is asked in the first person and a user spoke, or what the assistant said and it spoke
             + LENGTH  * min(words, 30) / 30 for turns

A vector represents its text alone. The context of a turn comes from the scores of its neighbors: `unsaid` falls from 1
to 0 with the length of a turn, so "Yes, on Friday!" is found by the question before it, and a page by its own text. A
turn lends its own score; if the query asks for the words of the other role, it lends only the part above ROLE, because
a general answer of an assistant says little about what the user said. Only turns of a session have neighbors
(`analysis.is_turn`); a fact has none.

The relevance floor decides which of these rows are hits, by two tests in the same unit:

- Does the owner know anything about the query? The best of n unrelated texts stands about sqrt(2 ln n) spreads above
  their mean by chance alone. The best record has to come close to that, and closer for each name in the query that no
  record mentions.
- Is a record relevant by itself or through its neighbors? The stronger the best record, the more evidence the others
  need: beside a literal match a chance similarity is not a hit; without a better record it may be.

`docs/retrieval.md` says what each rule contributes and how the constants were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Component
from memory_core.protocols import SearchRequest
from memory_core.retrieval.analysis import FROM_ASSISTANT, FROM_USER, TIMED
from memory_core.retrieval.arrays import best
from memory_core.retrieval.bm25 import DOUBT, Lexical, bm25
from memory_core.retrieval.cosine_scale import Unrelated
from memory_core.retrieval.dense import WORTH_GATHERING, chance
from memory_core.retrieval.owner_index import NO_CODE, OwnerIndex, Turns
from memory_core.retrieval.preferences import date_fit, recency, rows_with_all
from memory_core.retrieval.question import Query

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

WORDS: Final = 8.0
LENT: Final = 0.5
SESSION: Final = 0.3
HINT: Final = 2.0
ROLE: Final = 4.0
LENGTH: Final = 2.0
FULL_LENGTH_WORDS: Final = 30

PREFERENCE: Final = 10.0
"""What recency and importance add at most at a weight of 1, about the difference between a good hit and a fair one; 1
in searches by cosine alone."""

LEAST_KNOWN: Final = 0.02
"""Weight of the cosine if the embedder knows none of the query's words: enough to order texts that say the same."""

LEAST_EVIDENCE: Final = -1.0
"""Least evidence of a hit, in spreads, if the best record has none."""
SHARE_OF_BEST: Final = 0.1
"""Share of the best record's evidence beyond that which a hit needs in addition."""
FEWEST: Final = 10
"""Fewer records than this are judged as if they were this many."""
SLACK: Final = 1.25
"""How far the best record may stay below what chance gives, in spreads. At this value 99 % of the answerable questions
of every development corpus keep their evidence; the curve is in `docs/retrieval.md`."""
UNKNOWN_NAME: Final = 1.5
"""Additional evidence needed for each name that is in no record, in spreads."""
MOST_UNKNOWN: Final = 2
"""At most this many such names count."""


@dataclass(frozen=True, slots=True)
class Vector:
    """The vector of a query."""

    values: Floats
    """Of unit length."""
    unrelated: Unrelated
    known: float = 1.0
    """The share of the query's words that the embedder knows, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows, best first."""

    rows: Rows
    scores: Floats
    cosines: Floats | None
    """Cosines of the same rows; NaN where a vector is pending."""
    components: Sequence[Mapping[str, Component]] | None


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The evidence for each row, before components that depend on its kind only."""

    own: Floats
    """Evidence of the row alone, with the person and the date that the query names."""
    in_context: Floats
    """Evidence of the row and its neighbors."""
    lexical: Lexical
    z: Floats | None
    """Spreads above the mean of unrelated texts; NaN where a vector is pending."""


def rank(
    owner_index: OwnerIndex,
    query: Query,
    vector: Vector | None,
    request: SearchRequest,
    *,
    now: int,
    allowed: NDArray[np.integer[Any]] | None,
    importances: Floats | None = None,
) -> Ranking:
    """The best rows of an owner index.

    Statistics and context come from all live rows; `allowed` and expiry limit only the rows that are returned.

    Args:
        vector: `None` to rank without cosines.
        now: Microseconds since 1970 UTC.
        allowed: Rows that satisfy the caller's conditions, ascending; `None` for all active ones.
        importances: The importance of each row, if the request gives it a weight.
    """
    if request.mode == "vector":
        return _nearest(owner_index, vector, request, now=now, allowed=allowed, importances=importances)
    scores = Scores(len(owner_index), explain=request.explain)
    evidence = _add_evidence(owner_index, query, vector, scores)
    _add_wishes(owner_index, query, scores)
    _add_preferences(request, owner_index.occurred.values, importances, now, scores)
    rows = _candidates(owner_index, allowed, now)
    if request.every_word:
        rows = rows[rows_with_all(owner_index, query.terms)[rows]]
    elif request.floor:
        rows = _relevant(query, vector, evidence, rows, evidence.in_context if request.context else evidence.own)
    rows = rows[best(scores.total[rows], owner_index.keys.values[rows], request.limit)]
    cosines = owner_index.dense.cosines_of(vector.values, rows) if owner_index.dense and vector is not None else None
    return Ranking(rows, scores.total[rows], cosines, scores.explained(rows))


def _nearest(
    owner_index: OwnerIndex,
    vector: Vector | None,
    request: SearchRequest,
    *,
    now: int,
    allowed: NDArray[np.integer[Any]] | None,
    importances: Floats | None,
) -> Ranking:
    """`rank` for a search by vectors alone: no score depends on other rows, so only the allowed rows are read."""
    rows = _candidates(owner_index, allowed, now)
    if owner_index.dense is None or vector is None:
        cosines = np.full(len(rows), np.nan, np.float32)
    elif len(rows) * WORTH_GATHERING < len(owner_index):
        cosines = owner_index.dense.cosines_of(vector.values, rows)
    else:
        cosines = owner_index.dense.cosines(
            vector.values, len(owner_index), nearest=len(owner_index) - len(rows) + request.limit
        )[rows]
    near = np.fmax(cosines, np.float32(-1))
    scores = Scores(len(rows), explain=request.explain)
    scores.add("cosine", near, 1.0)
    important = None if importances is None else importances[rows]
    _add_preferences(request, owner_index.occurred.values[rows], important, now, scores)
    chosen: Rows = np.arange(len(rows))
    if request.floor and vector is not None:
        z = (near - np.float32(vector.unrelated.mean)) / np.float32(vector.unrelated.spread)
        is_known = is_answered(float(z.max(initial=-np.inf)), len(rows))
        chosen = stands_out(z).nonzero()[0] if is_known else chosen[:0]
    chosen = chosen[best(scores.total[chosen], owner_index.keys.values[rows[chosen]], request.limit)]
    return Ranking(rows[chosen], scores.total[chosen], cosines[chosen], scores.explained(chosen))


def _candidates(owner_index: OwnerIndex, allowed: NDArray[np.integer[Any]] | None, now: int) -> Rows:
    """The rows that may be returned, ascending."""
    if allowed is None:
        current = owner_index.current(now)
        return np.arange(len(owner_index)) if current is None else current.nonzero()[0]
    present = owner_index.present(now)
    return (allowed if present is None else allowed[present[allowed]]).astype(np.int64)


def _add_evidence(owner_index: OwnerIndex, query: Query, vector: Vector | None, scores: Scores) -> _Evidence:
    """Add the evidence of each row and of its neighbors."""
    lexical = bm25(owner_index, query.terms)
    z: Floats | None = None
    known = 0.0
    if owner_index.dense is not None and vector is not None:
        known = max(vector.known, LEAST_KNOWN)
        cosines = owner_index.dense.cosines(vector.values, len(owner_index), vector.unrelated.spread)
        z = (cosines - np.float32(vector.unrelated.mean)) / np.float32(vector.unrelated.spread)
        pending = math.isnan(float(np.add.reduce(z)))
        scores.add_weighted("cosine", cosines, (np.nan_to_num(z, nan=0.0) if pending else z) * np.float32(known))
    from_words = lexical.coverage(known * DOUBT)
    scores.add_weighted("bm25", lexical.scores, from_words * np.float32(WORDS))
    own = scores.total.copy()
    turns = owner_index.turns() if owner_index.session_count else None
    if turns is not None:
        lent = _lent(owner_index, query, own)
        with scores.ordered(turns.order):
            _add_neighbors(turns, lent if turns.order is None else lent[turns.order], scores)
    in_context = scores.total.copy()
    if turns is not None:
        with scores.ordered(turns.order):
            _add_sessions(turns, scores)
    named = _add_named(owner_index, query, scores)
    if named is not None:
        own += np.float32(HINT) * named
    return _Evidence(own, in_context, lexical, z)


def _lent(owner_index: OwnerIndex, query: Query, own: Floats) -> Floats:
    """The score that each row lends to its neighbors."""
    lent = own.copy()
    if query.about_user or query.about_assistant:
        lent -= np.float32(ROLE) * _flagged(owner_index, FROM_ASSISTANT if query.about_user else FROM_USER)
    return np.maximum(lent, np.float32(0), out=lent)


def _add_neighbors(turns: Turns, lent: Floats, scores: Scores) -> None:
    """Add to short turns a share of the score of the question before them and of the turn after them."""
    taken: Floats = np.zeros(len(lent), np.float32)
    taken[1:] = lent[:-1] * turns.from_before
    taken[:-1] += lent[1:] * turns.from_after
    scores.add("neighbor", taken, LENT)


def _add_sessions(turns: Turns, scores: Scores) -> None:
    best_turns = np.maximum.reduceat(scores.total, turns.starts) if len(turns.starts) else scores.total
    scores.add("session", best_turns.repeat(turns.counts), SESSION)


def _add_named(owner_index: OwnerIndex, query: Query, scores: Scores) -> Floats | None:
    """Add how well each row fits the people and dates that the query names; returns that part."""
    named: Floats | None = None
    codes = [code for some in owner_index.authors_named(query.names).values() for code in some]
    if codes:
        said: Floats = np.isin(owner_index.authors.values, codes).astype(np.float32)
        scores.add("speaker", said, HINT)
        named = said
    if query.dates:
        fit = date_fit(owner_index.occurred.values, query.dates)
        scores.add("date", fit, HINT)
        named = fit if named is None else named + fit
    return named


def _add_wishes(owner_index: OwnerIndex, query: Query, scores: Scores) -> None:
    """Add the components that depend on the kind of a record, not on its content."""
    if query.asks_when and owner_index.session_count:
        scores.add("time", owner_index.derived("timed", _timed_turns), HINT)
    if query.about_user or query.about_assistant:
        scores.add("role", _flagged(owner_index, FROM_USER if query.about_user else FROM_ASSISTANT), ROLE)
    if owner_index.session_count:
        scores.add("length", owner_index.derived("fullness", _fullness), LENGTH)


def _add_preferences(
    request: SearchRequest, occurred: Rows, importances: Floats | None, now: int, scores: Scores
) -> None:
    """Add the components that the request gives a weight."""
    most = 1.0 if request.mode == "vector" else PREFERENCE
    if request.recency:
        scores.add("recency", recency(occurred, now), most * request.recency)
    if request.importance and importances is not None:
        scores.add("importance", importances, most * request.importance)


def _flagged(owner_index: OwnerIndex, flag: int) -> Floats:
    flagged: Floats = ((owner_index.flags.values & flag) > 0).astype(np.float32)
    return flagged


def _timed_turns(owner_index: OwnerIndex) -> Floats:
    """Turns that name a time. Most facts and documents do, so for them it does not help."""
    timed = _flagged(owner_index, TIMED)
    timed[owner_index.sessions.values == NO_CODE] = 0
    return timed


def _fullness(owner_index: OwnerIndex) -> Floats:
    """The length component: short turns such as "Wow!" rarely answer a question. Other records count at any length."""
    fullness: Floats = np.minimum(owner_index.words.values / np.float32(FULL_LENGTH_WORDS), np.float32(1))
    fullness[owner_index.sessions.values == NO_CODE] = 1
    return fullness


def _relevant(query: Query, vector: Vector | None, evidence: _Evidence, rows: Rows, matched: Floats) -> Rows:
    """The rows that are relevant by the evidence `matched`."""
    z = evidence.z
    if z is None or vector is None:
        return rows[matched[rows] > 0]
    relevant = rows[stands_out(matched[rows])]
    pending = np.isnan(z[relevant])
    if (pending & (evidence.lexical.scores[relevant] > 0)).any():
        return relevant  # a text whose vector is pending is judged by its words
    unknown = len(query.proper.intersection(evidence.lexical.missing)) if vector.known >= 1 else 0
    strongest = float(evidence.own[rows].max(initial=-np.inf))
    return relevant if is_answered(strongest, len(rows), unknown, max(vector.known, LEAST_KNOWN)) else relevant[:0]


def is_answered(best: float, size: int, unknown_names: int = 0, known: float = 1.0) -> bool:
    """Whether the evidence of the best record is stronger than chance.

    Args:
        best: Its evidence, in spreads.
        size: How many records were compared.
        unknown_names: How many names in the query are in no record.
        known: How far the embedder knows the query's language; the less it does, the less the chance level counts.
    """
    if not size:
        return False
    return best > 0 and best >= known * (
        chance(max(size, FEWEST)) - SLACK + UNKNOWN_NAME * min(unknown_names, MOST_UNKNOWN)
    )


def stands_out(evidence: Floats) -> Mask:
    """The records that are hits, if the query is answered."""
    best = float(evidence.max(initial=0.0))
    found: Mask = evidence > LEAST_EVIDENCE + SHARE_OF_BEST * best
    return found


class Scores:
    """The sum of each row's components under construction, with the components if they are to be explained."""

    def __init__(self, size: int, *, explain: bool) -> None:
        self.total: Floats = np.zeros(size, np.float32)
        self._size = size
        self._order: Rows | None = None
        self._parts: dict[str, tuple[Floats, Floats]] | None = {} if explain else None

    @contextmanager
    def ordered(self, rows: Rows | None) -> Generator[None]:
        """Inside the block, `total` and all added values are for these rows, in this order; `None` changes nothing."""
        if rows is None:
            yield
            return
        whole, self.total, self._order = self.total, self.total[rows], rows
        yield
        whole[rows] = self.total
        self.total, self._order = whole, None

    def add(self, name: str, raw: Floats, weight: float) -> None:
        """Add `weight * raw` under `name`."""
        self.add_weighted(name, raw, np.float32(weight) * raw)

    def add_weighted(self, name: str, raw: Floats, weighted: Floats) -> None:
        """Add `weighted`; explanations show it beside the raw value it came from."""
        self.total += weighted
        if self._parts is not None:
            self._parts[name] = (raw, weighted) if self._order is None else self._spread(self._order, raw, weighted)

    def explained(self, rows: Rows) -> list[Mapping[str, Component]] | None:
        """The nonzero components of each row."""
        if self._parts is None:
            return None
        return [
            {
                name: Component(float(raw[row]), float(weighted[row]))
                for name, (raw, weighted) in self._parts.items()
                if weighted[row]
            }
            for row in rows
        ]

    def _spread(self, rows: Rows, raw: Floats, weighted: Floats) -> tuple[Floats, Floats]:
        raw_of_all, weighted_of_all = np.zeros(self._size, np.float32), np.zeros(self._size, np.float32)
        raw_of_all[rows], weighted_of_all[rows] = raw, weighted
        return raw_of_all, weighted_of_all
