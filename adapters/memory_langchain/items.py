"""Items of a LangGraph store as records of the memory: their drafts, and reading them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, cast

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from memory_core import (
    AllOf,
    AnyOf,
    BoundMemory,
    DataCondition,
    Draft,
    FieldCondition,
    Hit,
    InvalidInputError,
    MemoryRecord,
    NoneOf,
    Where,
    data_conditions,
)
from memory_core.adapting import MAX_TEXT_CHARS, Mode, cut_query
from memory_langchain.namespaces import from_path, matches, to_path

ITEM_KIND: Final = "langgraph_item"
"""Kind of the records that are items of a store."""
MAX_REACH: Final = 10_000
"""Largest `offset + limit` of a ranked search. Searches without a query have no limit."""
_MOST_PASSAGES: Final = 1_000
"""Texts of an item that have a vector each; the last of them contains all further ones."""

Condition = DataCondition | FieldCondition | AnyOf | AllOf | NoneOf

items: Final = partial(Where, kinds=(ITEM_KIND,), states=("active", "compacted", "archived"))
"""A condition that only items meet."""


def draft_of(address: str, op: PutOp, fields: Sequence[str], now: datetime) -> Draft:
    """The record that a put writes; each text that its paths lead to has a vector of its own."""
    if not isinstance(op.value, Mapping):
        raise InvalidInputError(f"the value of {op.key!r} must be a mapping, not {op.value!r:.80}")
    value = dict(op.value)
    data: dict[str, Any] = {"key": op.key, "value": value}
    if op.ttl is not None:
        data["ttl"] = op.ttl
    return Draft(
        passages=_texts(op.key, value, fields if op.index is None else () if op.index is False else paths_of(op.index)),
        kind=ITEM_KIND,
        data=data,
        collection=to_path(op.namespace),
        source_key=address,
        expires_at=None if op.ttl is None else expiry(op.ttl, now),
    )


class Reading:
    """The reads of one batch, and the records whose expiry they extend."""

    def __init__(
        self, memory: BoundMemory, mode: Mode, score_of_cosine: Callable[[float], float], now: datetime
    ) -> None:
        self._memory = memory
        self._mode: Mode = mode
        self._score_of_cosine = score_of_cosine
        self._now = now
        self._known: dict[str | None, MemoryRecord] = {}
        self.refreshed: dict[str, datetime | None] = {}

    async def results(self, ops: Sequence[Op]) -> list[Result]:
        """The results of the operations; `None` for writes."""
        gets = sorted({address_of(op.namespace, op.key) for op in ops if isinstance(op, GetOp)})
        if gets:
            page = await self._memory.list(where=items(source_keys=gets), limit=len(gets))
            self._known = {record.source_key: record for record in page.records}
        return [await self._result(op) for op in ops]

    async def _result(self, op: Op) -> Result:
        match op:
            case GetOp():
                record = self._known.get(address_of(op.namespace, op.key))
                return None if record is None else Item(**self._read(record, refresh=op.refresh_ttl))
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._namespaces(op)
            case PutOp():
                return None
            case _:
                raise InvalidInputError(f"a store executes GetOp, PutOp, SearchOp and ListNamespacesOp, not {op!r:.80}")

    async def _namespaces(self, op: ListNamespacesOp) -> Result:
        _check_page(op)
        _check_count("max_depth", op.max_depth or 0)
        every = map(from_path, await self._memory.collections(items()))
        matching = [one for one in every if all(matches(one, condition) for condition in op.match_conditions or ())]
        found = sorted({one[: op.max_depth] for one in matching})
        return cast("Result", found[op.offset : op.offset + op.limit])

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        _check_page(op)
        query = _query_of(op.query)
        under = to_path(op.namespace_prefix) if op.namespace_prefix else None
        where = items(under=under, matching=tuple(map(_through_periods, data_conditions(op.filter, ("value",)))))
        if not op.limit:
            return []
        if query.strip():
            found = [(hit.record, self._score(hit)) for hit in await self._ranked(query, where, op)]
        else:
            found = [(record, None) for record in await self._listed(where, op)]
        return [SearchItem(**self._read(record, refresh=op.refresh_ttl), score=score) for record, score in found]

    async def _ranked(self, query: str, where: Where, op: SearchOp) -> list[Hit]:
        last = op.offset + op.limit
        if last > MAX_REACH:
            raise InvalidInputError(f"offset + limit of a search with a query must be at most {MAX_REACH}, not {last}")
        hits = await self._memory.search(cut_query(query), limit=last, where=where, mode=self._mode, floor=False)
        return hits[op.offset :]

    def _score(self, hit: Hit) -> float | None:
        """The score of the distance, or that of another mode; `None` for an item without a vector to compare."""
        if self._mode != "vector":
            return hit.score
        return None if hit.similarity is None else self._score_of_cosine(hit.score)

    async def _listed(self, where: Where, op: SearchOp) -> list[MemoryRecord]:
        """Items ordered by their last put, newest first."""
        found, last, cursor = list[MemoryRecord](), op.offset + op.limit, None
        while len(found) < last:
            page = await self._memory.list(where=where, limit=min(last - len(found), MAX_REACH), cursor=cursor)
            found += page.records
            cursor = page.cursor
            if cursor is None:
                break
        return found[op.offset :]

    def _read(self, record: MemoryRecord, *, refresh: bool) -> dict[str, Any]:
        """The arguments of an item; its expiry is extended."""
        ttl = record.data.get("ttl")
        if refresh and isinstance(ttl, int | float):
            self.refreshed[record.id] = expiry(ttl, self._now)
        return {
            "namespace": from_path(record.collection) if record.collection else (),
            "key": record.data["key"],
            "value": record.data["value"],
            "created_at": record.created_at,
            "updated_at": record.updated_at,
        }


def _through_periods(condition: Condition) -> Condition:
    """The condition on the key as it is or, where there is no such key, on the path that its periods write."""
    if isinstance(condition, AnyOf | AllOf | NoneOf):
        return type(condition)([_through_periods(one) for one in condition.conditions])
    if not isinstance(condition, DataCondition) or not any("." in str(step) for step in condition.path):
        return condition
    path = tuple(part for step in condition.path for part in (step.split(".") if isinstance(step, str) else [step]))
    literal = DataCondition(condition.path, "exists", True)  # noqa: FBT003  (the value of the condition)
    return AnyOf([AllOf([literal, condition]), AllOf([NoneOf([literal]), replace(condition, path=path)])])


def paths_of(fields: object) -> tuple[str, ...]:
    """The given paths of fields, checked."""
    paths = cast("Sequence[object]", fields)
    if not isinstance(fields, list | tuple) or not all(isinstance(path, str) and path for path in paths):
        raise InvalidInputError(f"fields is a list of paths such as ['text', 'facts[*].name', '$'], not {fields!r:.80}")
    return cast("tuple[str, ...]", tuple(paths))


def _texts(key: str, value: dict[str, Any], paths: Iterable[str]) -> list[str]:
    try:
        texts = [text for path in paths for text in get_text_at_path(value, path) if text.strip()]
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInputError(f"the value of {key!r} is not JSON: {cause}") from cause
    if len(texts) > _MOST_PASSAGES:
        texts = [*texts[: _MOST_PASSAGES - 1], "\n".join(texts[_MOST_PASSAGES - 1 :])]
    return list(_beginnings(texts))


def _beginnings(texts: Iterable[str]) -> Iterator[str]:
    """As much of the texts as a record's text may have; all of it is in the value of the item."""
    room = MAX_TEXT_CHARS
    for text in texts:
        if room > 0:
            yield text[:room]
        room -= len(text) + 1  # with what separates passages


def address_of(namespace: Iterable[str], key: str) -> str:
    """The source key of an item: unique per namespace and key, of fixed length."""
    name = "\0".join([*namespace, key])  # labels contain no NUL, so the key is everything after the last label's NUL
    return f"item:{len(tuple(namespace))}:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def expiry(minutes: object, now: datetime) -> datetime:
    """The moment so many minutes from now."""
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0 or math.isinf(minutes):
        raise InvalidInputError(f"ttl must be a positive number of minutes or None, not {minutes!r}")
    try:
        return now + timedelta(minutes=minutes)
    except OverflowError as cause:
        raise InvalidInputError(f"ttl {minutes!r} minutes from now is beyond the year 9999; use None") from cause


def _query_of(given: object) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    raise InvalidInputError(f"query must be a string or None, not {given!r:.80}")


def _check_page(op: SearchOp | ListNamespacesOp) -> None:
    _check_count("limit", op.limit)
    _check_count("offset", op.offset)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInputError(f"{name} must be a whole number from 0, not {value!r:.80}")
