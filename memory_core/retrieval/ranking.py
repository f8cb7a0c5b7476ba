"""Rank rows: cosine, keywords and the conversation around a turn, summed into one score.

The unit is the spread of the cosines of unrelated texts (`cosine_scale.py`): one of a thousand unrelated texts reaches
a score of 3.7 by chance (`dense.chance`).

    own(i)     = known * z(cosine(i))  +  WORDS * coverage(i)
    sum(i)     = own(i)
               + LENT    * lent(turn before) * unsaid(i)   if somebody else asks something there
               + LENT    * lent(turn after)  * unsaid(i)   if somebody else says it
               + SESSION * what the best of these sums of the same session has beyond half of chance
    evident(i) = sum(i) / chance, from 0 to 1
    score(i)   = sum(i)
               + evident(i) * ( HINT   if the query names the author
                              + HINT   * how well the record's date fits a date named in the query
                              + ROLE   if it is asked in the first person and the assistant did not say it, or what the
                                       assistant said and it did
                              + LENGTH * min(words, 30) / 30 for turns )

The latest of like statements comes first if the query is about the present (`present.py`).

Priors are shares of evidence: they add nothing to a record that shares nothing with the query, and everything to one
that stands out. A vector represents its text alone. The context of a turn comes from the scores of its neighbors:
`unsaid` falls from 1 to 0 with the length of a turn, so "Yes, on Friday!" is found by the question before it, and a
page by its own text. A turn lends what its own score has beyond half of chance; if the query asks for the words of the
other role, beyond ROLE, because a general answer of an assistant says little about what the user said. Turns of one
author lend each other nothing. Only turns have neighbors (`kinds.is_message`); a fact has none.

The relevance floor (`floor.py`) decides which of these rows are hits. `docs/retrieval.md` says what each number
contributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Component, Relevance
from memory_core.requests import SearchRequest
from memory_core.retrieval.arrays import Floats, ManyRows, Rows, best
from memory_core.retrieval.bm25 import DOUBT, FAINT, bm25, words_in
from memory_core.retrieval.cosine_scale import Leaned, Unrelated
from memory_core.retrieval.date_fit import date_fit
from memory_core.retrieval.dense import chance
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER, OTHER_LANGUAGE
from memory_core.retrieval.floor import FEWEST, Evidence, is_answered, relevant, stands_out
from memory_core.retrieval.owner_index import NO_CODE, OwnerIndex, Turns
from memory_core.retrieval.present import COMPARED, exchanged
from memory_core.retrieval.question import Query
from memory_core.retrieval.recency import recency
from memory_core.retrieval.relevance import relevances
from memory_core.retrieval.scores import Scores

WORDS: Final = 8.0
LENT: Final = 0.5
SESSION: Final = 0.3
HINT: Final = 2.0
ROLE: Final = 4.0
LENGTH: Final = 1.5
FULL_LENGTH_WORDS: Final = 30

PREFERENCE: Final = 10.0
"""The most that recency and importance add at a weight of 1, about the difference between a good hit and a fair one;
1 in searches by cosine alone."""

LEAST_KNOWN: Final = 0.1
"""Weight of the cosine if the embedder knows none of the query's words: even so, related texts are nearer by far than
chance."""


@dataclass(frozen=True, slots=True)
class Cosines:
    """The nearness of each row to a query, and its meaning."""

    values: Floats
    """The cosine of each row, NaN where it is not known: a vector is pending, or the row cannot be returned in a search
    by vectors alone. If other rows count too, a text of several pieces has a handicap; see `dense.chance`."""
    unrelated: Unrelated
    known: float = 1.0
    """The share of the query's words that the embedder knows, from 0 to 1."""
    small_talk: float = -1.0
    """The cosine of the query with the nearest phrase of small talk."""
    leaned: Leaned | None = None
    """The comparison of texts in English, if it leans."""
    others: Leaned | None = None
    """That of texts in other languages, if it is another one; their cosines are on the scale of the first."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows, best first."""

    rows: Rows
    scores: Floats
    components: Sequence[Mapping[str, Component]] | None
    relevances: Sequence[Relevance] | None = None
    """`None` in a search by vectors alone."""


def rank(
    owner_index: OwnerIndex,
    query: Query,
    cosines: Cosines | None,
    request: SearchRequest,
    *,
    now: int,
    allowed: NDArray[np.integer[Any]] | None,
    importances: Floats | None = None,
) -> Ranking:
    """The best rows of an owner index.

    Statistics and context come from all live rows; `allowed` and expiry limit only the rows that are returned.

    Args:
        cosines: `None` to rank without them.
        now: Microseconds since 1970 UTC.
        allowed: Rows that satisfy the caller's conditions, ascending; `None` for all active ones.
        importances: The importance of each row, if the request gives it a weight.
    """
    scores, rows = Scores(len(owner_index), explain=request.explain), candidates(owner_index, allowed, now)
    if request.mode == "vector":
        rows = _nearest(cosines, rows, scores, floor=request.floor)
        _add_preferences(request, owner_index.occurred.values, importances, now, scores)
        rows = rows[_best(owner_index, scores.total[rows], rows, request.limit)]
        return Ranking(rows, scores.total[rows], scores.explained(rows))
    evidence = _add_evidence(owner_index, query, cosines, scores)
    _add_wishes(owner_index, query, evidence.evident, scores)
    _add_preferences(request, owner_index.occurred.values, importances, now, scores)
    size = len(rows)
    if request.every_word:
        has_all = words_in(owner_index, query.written)[rows] == len(query.written)
        rows = rows[has_all] if query.written else rows[:0]
    elif request.floor:
        rows = relevant(query, evidence, rows, in_context=request.context)
    if query.asks_now and cosines is not None:
        _exchange(owner_index, cosines, rows, scores)
    rows = rows[_best(owner_index, scores.total[rows], rows, request.limit)]
    small_talk = 0.0 if cosines is None else cosines.unrelated.spreads(cosines.small_talk)
    found = relevances(owner_index, query, evidence, small_talk, rows, size=size)
    return Ranking(rows, scores.total[rows], scores.explained(rows), found)


def _nearest(cosines: Cosines | None, rows: Rows, scores: Scores, *, floor: bool) -> Rows:
    """Add the cosines of a search by vectors alone; returns which of the rows are hits."""
    lowest = np.full(len(scores.total), -1, np.float32)
    near = lowest if cosines is None else np.fmax(cosines.values, lowest)
    scores.add("cosine", near, 1.0)
    if cosines is None or not floor:
        return rows
    z = (near[rows] - np.float32(cosines.unrelated.mean)) / np.float32(cosines.unrelated.spread)
    return rows[stands_out(z)] if is_answered(float(z.max(initial=-np.inf)), len(rows)) else rows[:0]


def _best(owner_index: OwnerIndex, scores: Floats, rows: Rows, limit: int) -> Rows:
    """The places of the best scores of these rows; of equals the older record comes first."""
    return best(scores, owner_index.occurred.values[rows], owner_index.keys.values[rows], limit)


def candidates(owner_index: OwnerIndex, allowed: NDArray[np.integer[Any]] | None, now: int) -> Rows:
    """The rows that may be returned, ascending."""
    present = owner_index.present(now)
    rows: ManyRows = (
        np.flatnonzero(present & owner_index.active.values) if allowed is None else allowed[present[allowed]]
    )
    return rows.astype(np.int64, copy=False)


def _add_evidence(owner_index: OwnerIndex, query: Query, cosines: Cosines | None, scores: Scores) -> Evidence:
    """Add the evidence of each row, of its neighbors and of its session."""
    z: Floats | None = None
    known = by_chance = 0.0
    if cosines is not None:
        known, by_chance = max(cosines.known, LEAST_KNOWN), chance(max(owner_index.living, FEWEST))
        z = (cosines.values - np.float32(cosines.unrelated.mean)) / np.float32(cosines.unrelated.spread)
        pending = math.isnan(float(np.add.reduce(z)))
        scores.add_weighted("cosine", cosines.values, (np.nan_to_num(z, nan=0.0) if pending else z) * np.float32(known))
    # Where the cosines say little, any word that is shared says more.
    share_of_faint = FAINT if cosines is None else 1 - known * (1 - FAINT)
    lexical = bm25(owner_index, query.terms, query.faint, share_of_faint)
    from_words = lexical.coverage(known * DOUBT) * np.float32(WORDS)
    scores.add_weighted("bm25", lexical.scores, from_words)
    own = scores.total.copy()
    turns = owner_index.turns() if owner_index.session_count else None
    if turns is not None:
        _add_neighbors(turns, turns.of(_lent(owner_index, query, own, by_chance / 2)), scores)
    in_context = scores.total.copy()
    if turns is not None:
        _add_sessions(turns, by_chance / 2, scores)
    evident = _evident(scores.total, by_chance)
    named = _add_named(owner_index, query, evident, scores)
    if named is not None:
        own += np.float32(HINT) * named
    return Evidence(own, in_context, from_words, evident, lexical, z, known)


def _evident(sums: Floats, by_chance: float) -> Floats:
    """The degree to which the evidence of each row reaches the level of chance, from 0 to 1.

    Without cosines each matching word counts in full.
    """
    share: Floats = sums / np.float32(by_chance) if by_chance else (sums > 0).astype(np.float32)
    return share.clip(0, 1)


def _lent(owner_index: OwnerIndex, query: Query, own: Floats, beyond: float) -> Floats:
    """The score that each row lends to its neighbors: what it has beyond a level, beyond ROLE if of the other role."""
    level: float | Floats = beyond
    if query.about_user or query.about_assistant:
        other = _flagged(owner_index, FROM_ASSISTANT if query.about_user else FROM_USER)
        level = np.float32(beyond) + np.float32(max(ROLE - beyond, 0.0)) * other
    lent: Floats = own - level
    return np.maximum(lent, np.float32(0), out=lent)


def _add_neighbors(turns: Turns, lent: Floats, scores: Scores) -> None:
    """Add to short turns a share of the score of the question before them and of the turn after them."""
    taken: Floats = np.zeros(len(lent), np.float32)
    taken[1:] = lent[:-1] * turns.from_before
    taken[:-1] += lent[1:] * turns.from_after
    scores.add("neighbor", turns.spread(taken, len(scores.total)), LENT)


def _add_sessions(turns: Turns, beyond: float, scores: Scores) -> None:
    sums = turns.of(scores.total)
    best_turns = np.maximum.reduceat(sums, turns.starts) if len(turns.starts) else sums
    best_turns = np.maximum(best_turns - np.float32(beyond), np.float32(0))
    scores.add("session", turns.spread(best_turns.repeat(turns.counts), len(scores.total)), SESSION)


def _add_named(owner_index: OwnerIndex, query: Query, evident: Floats, scores: Scores) -> Floats | None:
    """Add how well each row fits the people and dates that the query names; returns that part."""
    named: Floats | None = None
    codes = [code for some in owner_index.authors_named(query.names).values() for code in some]
    if codes:
        authors = owner_index.authors.values
        is_theirs = authors == codes[0]
        for code in codes[1:]:
            is_theirs |= authors == code  # of a few codes faster than `np.isin`
        said: Floats = is_theirs * evident
        scores.add("speaker", said, HINT)
        named = said
    if query.dates:
        fit: Floats = date_fit(owner_index.local_times(), query.dates) * evident
        scores.add("date", fit, HINT)
        named = fit if named is None else named + fit
    return named


def _add_wishes(owner_index: OwnerIndex, query: Query, evident: Floats, scores: Scores) -> None:
    """Add the components that depend on the kind of a record, as shares of its evidence."""
    if query.about_user or query.about_assistant:
        by_assistant = _flagged(owner_index, FROM_ASSISTANT)
        scores.add("role", (1 - by_assistant if query.about_user else by_assistant) * evident, ROLE)
    if owner_index.session_count:
        scores.add("length", _fullness(owner_index) * evident, LENGTH)


def _exchange(owner_index: OwnerIndex, cosines: Cosines, rows: Rows, scores: Scores) -> None:
    """Let the latest of the statements like the best of these rows come before the others."""
    best_first = rows[_best(owner_index, scores.total[rows], rows, COMPARED)]
    is_other = len(rows) > 0 and owner_index.flags.values[best_first[0]] & OTHER_LANGUAGE > 0
    leaned = cosines.others if is_other and cosines.others is not None else cosines.leaned
    unrelated = cosines.unrelated if leaned is None else leaned.unrelated
    moved, by = exchanged(owner_index, unrelated, best_first, scores.total[best_first], leaned)
    if len(moved):
        later: Floats = np.zeros(len(owner_index), np.float32)
        later[moved] = by
        scores.add("later", later, 1.0)


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


def _fullness(owner_index: OwnerIndex) -> Floats:
    """The length component: short turns such as "Wow!" rarely answer a question. Other records count at any length."""
    fullness: Floats = np.minimum(owner_index.words.values / np.float32(FULL_LENGTH_WORDS), np.float32(1))
    fullness[owner_index.sessions.values == NO_CODE] = 1
    return fullness
