"""How hits are ranked: words, meaning and the conversation around a turn, summed into one score.

    own(i)   = LEXICAL * bm25(i) / mean of the three best  +  DENSE * z(cosine(i)) / Z_SPREAD
    score(i) = own(i)
             + answer    * own(turn before)        if the turn before is a question
             + previous  * own(turn before)
             + next      * own(turn after)
             + two away  * own(two before) and own(two after)
             + SESSION   * best score of a turn of the same session
             - ASKING    if the text asks something: answers are wanted
             + SPEAKER   if the query names the author
             - ELSEWHERE if the query names people, and none of them spoke in the session
             + TIME      if the query asks when and the text names a time
             + DATE      * how well the record's date fits a date named in the query
             + LENGTH    * min(words, 30) / 30 for turns of a session
             + LIKENESS  * how much of what the best rows have in common the row has (`feedback.py`)

A turn's vector has seen the turn before it, so with vectors little has to flow on; see `Flow`.

The form and the first constants were found on three development conversations of LoCoMo and checked on its other seven
and on REALTALK, which neither saw; context is worth about 11 points of recall there, score fusion (rather than rank
fusion) about 12. What each rule is worth there stands in `docs/retrieval.md`. Records outside any session have
no neighbours, and those terms are zero for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memory_core.limits import MAX_QUERY_TERMS
from memory_core.models import Component, Profile
from memory_core.protocols import SearchRequest
from memory_core.retrieval.analysis import query_terms
from memory_core.retrieval.bm25 import bm25
from memory_core.retrieval.corpus import NOBODY, Corpus, Turns
from memory_core.retrieval.dates import date_fit
from memory_core.retrieval.dense import WORTH_GATHERING
from memory_core.retrieval.features import QUESTION, TIMED
from memory_core.retrieval.feedback import MIN_ROWS, POOL, likeness
from memory_core.retrieval.profiles import holding_all, preferences
from memory_core.retrieval.relevance import above_floor, matches
from memory_core.retrieval.scores import Scores
from memory_core.retrieval.timex import DateMention, asks_when, mentioned_dates
from memory_core.retrieval.top import best, leading

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEXICAL: Final = 0.5
DENSE: Final = 0.5
Z_SPREAD: Final = 5.0
SESSION: Final = 0.2
SPEAKER: Final = 0.2
ELSEWHERE: Final = 0.2
TIME: Final = 0.3
DATE: Final = 0.3
LENGTH: Final = 0.15
ASKING: Final = 0.2
LIKENESS: Final = 0.3
FULL_LENGTH_WORDS: Final = 30
PRIOR_ROWS: Final = 8
PRIOR_MEAN: Final = 0.1
PRIOR_SPREAD: Final = 0.12
"""What cosines of unrelated texts look like: steadies the z-score of an owner with a handful of records."""


@dataclass(frozen=True, slots=True)
class Flow:
    """How much of its own score a turn lends to the turns around it."""

    answer: float
    """To the next turn, if it asks something itself."""
    previous: float
    """To the next turn, whatever it is."""
    next: float
    """To the turn before."""
    two_before: float
    """To the turn after the next one."""
    two_after: float


WITH_VECTORS: Final = Flow(answer=0.4, previous=0.0, next=0.2, two_before=0.1, two_after=0.1)
"""A turn's vector has seen the turn before it, so that not much is left for the scores to carry."""
BY_WORDS: Final = Flow(answer=0.5, previous=0.2, next=0.2, two_before=0.2, two_after=0.1)

_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Query:
    """A query, analysed once for all owners it is put to."""

    text: str
    terms: Sequence[str]
    names: frozenset[str]
    """The query's words, lower-case: the names of authors among them are cut out for the dense arm."""
    asks_when: bool
    dates: Sequence[DateMention]


def parse(text: str) -> Query:
    """Analyse a query."""
    names = frozenset(match.lower() for match in _WORD.findall(text))
    terms = query_terms(text)
    if len(terms) > MAX_QUERY_TERMS:
        terms = terms[: MAX_QUERY_TERMS // 2] + terms[-MAX_QUERY_TERMS // 2 :]
    return Query(text, terms, names, asks_when(text), mentioned_dates(text))


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows, best first."""

    rows: Rows
    scores: Floats
    cosines: Floats | None
    """Of the same rows; NaN where a vector is owed."""
    components: Sequence[Mapping[str, Component]] | None


def rank(
    corpus: Corpus,
    query: Query,
    vector: Floats | None,
    request: SearchRequest,
    *,
    now: int,
    allowed: NDArray[np.integer[Any]] | None,
    importances: Floats | None = None,
) -> Ranking:
    """The best rows of a corpus.

    Statistics and context come from all living rows; what may be returned is bounded by `allowed` and by expiry.

    Args:
        vector: The query's unit vector; `None` leaves the dense arm out.
        now: Microseconds since 1970 UTC.
        allowed: Rows that satisfy the caller's conditions, ascending; `None` for all active ones.
        importances: Of each row, where the request gives importance a weight.
    """
    if request.mode == "vector" and allowed is not None and len(allowed) * WORTH_GATHERING < len(corpus):
        return _nearest(corpus, vector, request, allowed, importances, now)
    cosines = corpus.dense.cosines(vector, len(corpus)) if corpus.dense and vector is not None else None
    scores = Scores(len(corpus), explain=request.explain)
    if request.mode == "vector":
        near = np.full(len(corpus), -1, np.float32) if cosines is None else np.fmax(cosines, np.float32(-1))
        scores.add_weighted("dense", near, near)
        relevant = above_floor(near)
    else:
        relevant = _score_in_context(corpus, query, cosines, scores, request.profile)
    present = corpus.present(now)
    if request.mode != "vector" and request.profile != "exact":
        among = relevant if present is None else relevant & present
        _add_likeness(corpus, query, among, max(request.limit, POOL), scores)
    for name, values, weight in preferences(corpus, request, importances, now):
        scores.add(name, values, weight)
    wanted = relevant if request.floor else None
    if allowed is None:
        rows = best(scores.total, _both(corpus.current(now), wanted), request.limit)
    else:
        let_through = _both(_at(present, allowed), _at(wanted, allowed))
        rows = allowed[best(scores.total[allowed], let_through, request.limit)].astype(np.int64)
    return Ranking(rows, scores.total[rows], None if cosines is None else cosines[rows], scores.explained(rows))


def _nearest(
    corpus: Corpus,
    vector: Floats | None,
    request: SearchRequest,
    allowed: NDArray[np.integer[Any]],
    importances: Floats | None,
    now: int,
) -> Ranking:
    """As `rank` for a vector search of few rows: no row's score depends on another's, so the rest is not looked at."""
    rows = allowed[corpus.alive.values[allowed] & (corpus.expires.values[allowed] > now)].astype(np.int64)
    cosines = corpus.dense.cosines_of(vector, rows) if corpus.dense and vector is not None else None
    scores = Scores(len(rows), explain=request.explain)
    near = np.full(len(rows), -1, np.float32) if cosines is None else np.fmax(cosines, np.float32(-1))
    scores.add("dense", near, 1.0)
    for name, values, weight in preferences(corpus, request, importances, now):
        scores.add(name, values[rows], weight)
    chosen = best(scores.total, above_floor(near) if request.floor else None, request.limit)
    found = None if cosines is None else cosines[chosen]
    return Ranking(rows[chosen], scores.total[chosen], found, scores.explained(chosen))


def _score_in_context(corpus: Corpus, query: Query, cosines: Floats | None, scores: Scores, profile: Profile) -> Mask:
    """Fill `scores` by the formula above and say which rows are relevant at all."""
    lexical = bm25(corpus, query.terms)
    alive = corpus.alive.values if corpus.dead else None
    scores.add_weighted("lexical", lexical.scores, lexical.scores * np.float32(LEXICAL / _strong(lexical.scores)))
    if cosines is not None:
        scores.add_weighted("dense", cosines, _z(cosines, alive, DENSE / Z_SPREAD))
    own, said = scores.total.copy(), _said_by_named(corpus, query)
    matched = relevant = matches(lexical, cosines, alive)
    if profile == "exact":
        relevant = matched & holding_all(corpus, query.terms)
    elif corpus.session_count and profile == "conversation":
        turns = corpus.turns()
        flow = BY_WORDS if cosines is None else WITH_VECTORS
        with scores.ordered(turns.order):
            _add_neighbours(turns, own if turns.order is None else own[turns.order], flow, scores)
            _add_sessions(turns, scores)
        relevant = _and_neighbours(turns, matched)
        _add_absence(corpus, said, scores)
    _add_hints(corpus, query, said, scores)
    if profile == "conversation":
        if corpus.session_count:
            scores.add("length", corpus.derived("fullness", _fullness), LENGTH)
        scores.add("asks", corpus.derived("asking", _asking), -ASKING)
    return relevant


def _add_neighbours(turns: Turns, own: Floats, flow: Flow, scores: Scores) -> None:
    """Let the turns' own scores flow between the turns of a session."""
    scores.add_to("previous question", slice(1, None), own[:-1] * turns.answer, flow.answer)
    if flow.previous:
        scores.add_to("previous turn", slice(1, None), own[:-1] * turns.next, flow.previous)
    scores.add_to("next turn", slice(0, -1), own[1:] * turns.next, flow.next)
    nearby: Floats = np.zeros(len(own), np.float32)
    nearby[2:] = own[:-2] * turns.two_later * np.float32(flow.two_before)
    nearby[:-2] += own[2:] * turns.two_later * np.float32(flow.two_after)
    scores.add_weighted("nearby turns", nearby, nearby)


def _and_neighbours(turns: Turns, matched: Mask) -> Mask:
    """A neighbour of a match is relevant too."""
    if np.count_nonzero(matched) == len(matched):
        return matched
    found = matched if turns.order is None else matched[turns.order]
    near = found.copy()
    near[1:] |= found[:-1] & turns.is_followed
    near[:-1] |= found[1:] & turns.is_followed
    near[2:] |= found[:-2] & turns.is_followed_by_two
    near[:-2] |= found[2:] & turns.is_followed_by_two
    if turns.order is None:
        return near
    relevant = matched.copy()
    relevant[turns.order] = near
    return relevant


def _add_sessions(turns: Turns, scores: Scores) -> None:
    best_turns = np.maximum.reduceat(scores.total, turns.starts) if len(turns.starts) else scores.total
    scores.add("session", best_turns.repeat(turns.counts), SESSION)


def _add_absence(corpus: Corpus, said: Mask | None, scores: Scores) -> None:
    """Who holds the conversations of many people asks about those of the people that the query names."""
    if said is not None:
        absent = np.ones(corpus.session_count + 1, np.float32)  # the last place is for rows without a session
        absent[corpus.sessions.values[said]] = 0
        absent[-1] = 0
        scores.add("elsewhere", absent.take(corpus.sessions.values), -ELSEWHERE)


def _said_by_named(corpus: Corpus, query: Query) -> Mask | None:
    """The rows of authors that the query names; `None` if it names nobody."""
    named = [code for codes in corpus.named(query.names).values() for code in codes]
    return np.isin(corpus.authors.values, named) if named else None


def _add_hints(corpus: Corpus, query: Query, said: Mask | None, scores: Scores) -> None:
    if said is not None:
        scores.add("speaker", said.astype(np.float32), SPEAKER)
    if query.asks_when:
        scores.add("time expression", ((corpus.flags.values & TIMED) > 0).astype(np.float32), TIME)
    if query.dates:
        scores.add("date", date_fit(corpus.occurred.values, query.dates), DATE)


def _add_likeness(corpus: Corpus, query: Query, among: Mask, pool: int, scores: Scores) -> None:
    """Favour rows that share what is telling of the best rows."""
    if corpus.living >= MIN_ROWS:
        rows, shared = likeness(corpus, scores.total, among, query.terms, pool)
        scores.add_at("like the best", rows, shared / _strong(shared), LIKENESS)


def _fullness(corpus: Corpus) -> Floats:
    """How much a turn says; "Wow!" is not what anybody asks for. A record by itself was worth writing at any length."""
    fullness: Floats = np.minimum(corpus.words.values / np.float32(FULL_LENGTH_WORDS), np.float32(1))
    fullness[corpus.sessions.values == NOBODY] = 1
    return fullness


def _asking(corpus: Corpus) -> Floats:
    asking: Floats = ((corpus.flags.values & QUESTION) > 0).astype(np.float32)
    return asking


def without_names(query: str, names: Collection[str]) -> str:
    """The query without the participants' names (lower-case), for the dense arm only.

    Every turn of a speaker is close to the speaker's name, so a name hides what the question is about (worth eleven
    points of recall of that arm).
    """
    if not names:
        return query
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    rest = re.sub(rf"\b(?:{pattern})\b(?:['\u2019]s\b)?", "", query, flags=re.IGNORECASE)
    return " ".join(rest.split()).strip(" ?") or query


def _strong(scores: Floats) -> np.float32:
    """The mean of the three best: divided by it, a strong match is about 1 whatever the query. 1 if all are 0."""
    of = scores[leading(scores, 3)]
    if len(of) > 3:
        of.partition(len(of) - 3)
        of = of[-3:]
    total: np.float32 = np.add.reduce(of)
    return total / np.float32(3) + np.float32(1e-9) if total else np.float32(1)


def _z(cosines: Floats, alive: Mask | None, weight: float) -> Floats:
    """`weight` for each standard deviation above the owner's average; 0 where a vector is owed."""
    known = cosines if alive is None else cosines[alive]
    total = float(np.add.reduce(known))
    is_whole = not math.isnan(total)
    if not is_whole:
        known = known[~np.isnan(known)]
        total = float(known.sum())
    share = len(known) / (len(known) + PRIOR_ROWS)
    own_mean = total / len(known) if len(known) else 0.0
    deviations = known - np.float32(own_mean)
    own_spread = math.sqrt(float(np.add.reduce(deviations * deviations)) / max(len(known), 1))
    mean = share * own_mean + (1 - share) * PRIOR_MEAN
    spread = share * own_spread + (1 - share) * PRIOR_SPREAD
    z: Floats = (cosines - np.float32(mean)) * np.float32(weight / (spread + 1e-9))
    return z if is_whole and alive is None else np.nan_to_num(z, copy=False, nan=0.0)


def _both(first: Mask | None, second: Mask | None) -> Mask | None:
    return first if second is None else second if first is None else first & second


def _at(mask: Mask | None, rows: NDArray[np.integer[Any]]) -> Mask | None:
    return None if mask is None else mask[rows]
