"""The memory as LangGraph's long-term store."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Self, cast

from memory_core import (
    BoundMemory,
    Draft,
    Hit,
    InvalidInputError,
    MemoryRecord,
    ScopeError,
    Where,
    data_conditions,
    run_sync,
)
from memory_core.adapting import cut_query
from memory_langchain.recall import SearchMode

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`MemoryStore` needs langgraph: pip install 'memory-core[langgraph]'") from error

from memory_langchain.namespaces import Namespace, check_namespaces, from_path, matching, to_path
from memory_langchain.scope import of_one_owner

ITEM_KIND: Final = "langgraph_item"
"""Kind of the records that are items of a store."""

MAX_REACH: Final = 10_000
"""Largest `offset + limit` of a ranked search. Searches without a query have no limit."""

_items: Final = partial(Where, kinds=(ITEM_KIND,), states=("active", "compacted", "archived"))
"""A condition that only items meet."""


class MemoryStore(BaseStore):
    """A `BaseStore` whose items are records of one owner: shared, durable, and searched by the memory.

    ```python
    store = MemoryStore(memory.bind(app="support", user="everyone"), fields=["text"])
    store.put(("users", "ann"), "tea", {"text": "Ann drinks jasmine tea"})
    graph = builder.compile(store=store)
    ```

    It can be used from any thread and any event loop. A batch reads first and then writes, in one transaction.

    Args:
        memory: A handle that is bound to a user; namespaces of the store are collections of that owner.
        fields: Default paths of the searched fields, in LangGraph's syntax; `put(index=...)` overrides them, and `"$"`
            is the whole value as JSON. The memory's embedder computes the vectors: there is no `dims` and no `embed`.
        ttl: LangGraph's TTL configuration. Expired items are never returned (`omit_expired` is always on). Every
            write deletes them, so no periodic sweeper runs; `sweep_ttl` deletes them at once.
        mode: The ranking of queries: `vector` (the score is the cosine, from 0 to 1), `hybrid` or `lexical` (the score
            is comparable within one search). A memory without an embedder supports only `lexical`.

    Raises:
        ScopeError: The handle is not bound to a user, or is bound to a collection.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: BoundMemory,
        *,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        mode: SearchMode = "vector",
    ) -> None:
        self._memory = _checked(memory)
        self._fields = _paths(fields)
        self._mode: SearchMode = mode
        self.ttl_config = ttl

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute the operations, reads before writes. If there are two puts for one key, the later one wins.

        Raises:
            InvalidNamespaceError: A namespace cannot be stored.
            InvalidInputError: A value is not JSON, or a filter or a number is invalid; nothing was written.
        """
        return run_sync(self.abatch, ops)

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        listed = list(ops)
        for op in listed:
            check_namespaces(op)
        now = self._memory.memory.clock()
        drafts, gone = self._writes([op for op in listed if isinstance(op, PutOp)], now)
        reading = _Reading(self._memory, self._mode, now)
        await reading.look_up([op for op in listed if isinstance(op, GetOp)])
        results = [await reading.result(op) for op in listed]
        if reading.refreshed:
            await self._memory.postpone(reading.refreshed)
        if drafts or gone:
            await self._memory.put_many(drafts, remove=gone)
        return results

    def sweep_ttl(self) -> int:
        """Delete expired items now; return their number."""
        return run_sync(self._memory.sweep)

    async def asweep_ttl(self) -> int:
        """As `sweep_ttl`."""
        return await self._memory.sweep()

    def _writes(self, ops: Iterable[PutOp], now: datetime) -> tuple[list[Draft], list[str]]:
        """The drafts to put and the addresses to remove."""
        latest = {item_address(op.namespace, op.key): op for op in ops}
        drafts = [self._draft(address, op, now) for address, op in latest.items() if op.value is not None]
        return drafts, [address for address, op in latest.items() if op.value is None]

    def _draft(self, address: str, op: PutOp, now: datetime) -> Draft:
        if not isinstance(op.value, Mapping):
            raise InvalidInputError(f"the value of {op.key!r} must be a mapping, not {op.value!r:.80}")
        value = dict(op.value)
        data: dict[str, Any] = {"key": op.key, "value": value}
        if op.ttl is not None:
            data["ttl"] = op.ttl
        paths = self._fields if op.index is None else () if op.index is False else _paths(op.index)
        return Draft(
            searched_text(op.key, value, paths),
            kind=ITEM_KIND,
            data=data,
            collection=to_path(op.namespace),
            source_key=address,
            expires_at=None if op.ttl is None else _expiry(op.ttl, now),
        )


class _Reading:
    """The reads of one batch, and the records whose expiry they extend."""

    def __init__(self, memory: BoundMemory, mode: SearchMode, now: datetime) -> None:
        self._memory = memory
        self._mode: SearchMode = mode
        self._now = now
        self._known: dict[str, MemoryRecord] = {}
        self.refreshed: dict[str, datetime | None] = {}

    async def look_up(self, ops: Sequence[GetOp]) -> None:
        """Read the items for all gets of the batch at once."""
        addresses = sorted({item_address(op.namespace, op.key) for op in ops})
        for start in range(0, len(addresses), MAX_REACH):
            some = addresses[start : start + MAX_REACH]
            page = await self._memory.list(where=_items(source_keys=tuple(some)), limit=len(some))
            self._known.update({record.source_key or "": record for record in page.records})

    async def result(self, op: Op) -> Result:
        """The result of an operation; `None` for writes."""
        match op:
            case GetOp():
                return self._item(op)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return cast("Result", await self._namespaces(op))
            case PutOp():
                return None
        raise InvalidInputError(f"a store executes GetOp, PutOp, SearchOp and ListNamespacesOp, not {op!r:.80}")

    def _item(self, op: GetOp) -> Item | None:
        record = self._known.get(item_address(op.namespace, op.key))
        if record is None:
            return None
        self._refresh(record, wanted=op.refresh_ttl)
        return Item(**_fields(record))

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        _check_page(op.limit, op.offset)
        _check_query(op.query)
        under = to_path(op.namespace_prefix) if op.namespace_prefix else None
        where = _items(under=under, matching=tuple(data_conditions(op.filter, ("value",))))
        if not op.limit:
            return []
        if op.query and op.query.strip():
            found = [(hit.record, self._score(hit)) for hit in await self._ranked(op.query, where, op)]
        else:
            found = [(record, None) for record in await self._listed(where, op)]
        for record, _ in found:
            self._refresh(record, wanted=op.refresh_ttl)
        return [SearchItem(**_fields(record), score=score) for record, score in found]

    async def _ranked(self, query: str, where: Where, op: SearchOp) -> list[Hit]:
        last = op.offset + op.limit
        if last > MAX_REACH:
            raise InvalidInputError(f"offset + limit of a search with a query must be at most {MAX_REACH}, not {last}")
        hits = await self._memory.search(cut_query(query), limit=last, where=where, mode=self._mode, floor=False)
        return hits[op.offset :]

    def _score(self, hit: Hit) -> float | None:
        return hit.similarity if self._mode == "vector" else hit.score

    async def _listed(self, where: Where, op: SearchOp) -> list[MemoryRecord]:
        """Items ordered by their last put, newest first."""
        skip, found, cursor = op.offset, list[MemoryRecord](), None
        while len(found) < op.limit:
            limit = min(skip + op.limit - len(found), MAX_REACH)
            page = await self._memory.list(where=where, limit=limit, cursor=cursor)
            found += page.records[skip:]
            skip = max(skip - len(page.records), 0)
            cursor = page.cursor
            if cursor is None:
                break
        return found

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        _check_page(op.limit, op.offset)
        _check_count("max_depth", 0 if op.max_depth is None else op.max_depth)
        found = matching(map(from_path, await self._memory.collections(_items())), op.match_conditions or ())
        if op.max_depth is not None:
            found = list({namespace[: op.max_depth] for namespace in found})
        return sorted(found)[op.offset : op.offset + op.limit]

    def _refresh(self, record: MemoryRecord, *, wanted: bool) -> None:
        ttl = record.data.get("ttl")
        if wanted and isinstance(ttl, int | float):
            self.refreshed[record.id] = _expiry(ttl, self._now)


def _checked(memory: object) -> BoundMemory:
    handle = of_one_owner(
        memory,
        "MemoryStore(memory.bind(app='support', user='everyone')); its namespaces say which user an item is about",
    )
    if handle.scope.collection is not None:
        raise ScopeError(f"a store manages collections itself; pass a handle without {handle.scope.collection!r}")
    return handle


def _paths(fields: object) -> tuple[str, ...]:
    if isinstance(fields, str | Mapping) or not isinstance(fields, Iterable):
        raise InvalidInputError(f"fields must be a list of paths such as ['text', 'facts[*].name'], not {fields!r:.80}")
    paths = tuple(cast("Iterable[object]", fields))
    if not all(isinstance(path, str) and path for path in paths):
        raise InvalidInputError(f"each field must be a path such as 'text' or '$', not {fields!r:.80}")
    return cast("tuple[str, ...]", paths)


def searched_text(key: str, value: dict[str, Any], paths: Iterable[str] = ("$",)) -> str:
    """The text of an item that searches read: what is at these paths of its value."""
    try:
        return "\n".join(text for path in paths for text in get_text_at_path(value, path))
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInputError(f"the value of {key!r} is not JSON: {cause}") from cause


def item_address(namespace: Iterable[str], key: str) -> str:
    """The source key of an item: unique per namespace and key, of fixed length."""
    name = "\0".join([*namespace, key])  # labels contain no NUL, so the key is everything after the last label's NUL
    return f"item:{len(tuple(namespace))}:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _expiry(minutes: object, now: datetime) -> datetime:
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0 or math.isinf(minutes):
        raise InvalidInputError(f"ttl must be a positive number of minutes or None, not {minutes!r}")
    try:
        return now + timedelta(minutes=minutes)
    except OverflowError as cause:
        raise InvalidInputError(f"ttl {minutes!r} minutes from now is beyond the year 9999; use None") from cause


def _check_query(query: object) -> None:
    if query is not None and not isinstance(query, str):
        raise InvalidInputError(f"query must be a string or None, not {query!r:.80}")


def _check_page(limit: object, offset: object) -> None:
    _check_count("limit", limit)
    _check_count("offset", offset)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInputError(f"{name} must be a whole number from 0, not {value!r:.80}")


def _fields(record: MemoryRecord) -> dict[str, Any]:
    """The arguments of an item."""
    return {
        "namespace": from_path(record.collection or ""),
        "key": record.data["key"],
        "value": record.data["value"],
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
