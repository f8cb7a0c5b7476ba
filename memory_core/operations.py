"""What a handle does with the records of one owner; `conversation.py` has what it does with messages and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal, TypeVar, get_args

from memory_core.checks import check_key, check_limit, check_one_of, check_query, check_unit, is_later
from memory_core.conversation import Conversing
from memory_core.drafts import as_list, check_expiries, check_version, complete, complete_all, complete_items, is_long
from memory_core.errors import ForgottenError, RecordNotFoundError, ScopeError
from memory_core.history import history
from memory_core.hits import Hits
from memory_core.loop import off_loop, on_core
from memory_core.models import (
    STATES,
    Draft,
    ErasureReceipt,
    MemoryRecord,
    Mode,
    Order,
    Page,
    Patch,
    Scope,
    Stats,
    Version,
)
from memory_core.progress import ProgressCallback, whole
from memory_core.protocols import Home, ListRequest, SearchRequest, Store
from memory_core.storage import optional
from memory_core.superseding import retired_within, superseding
from memory_core.where.checks import check_where
from memory_core.where.value import Where

T = TypeVar("T")
Records = list[MemoryRecord]
Texts = list[str]
EVERYTHING: Final = Where()
_ANY_STATE: Final = Where(states=STATES)


class Operations(Conversing):
    """The operations of a handle. Isolation lives here: every one of them carries the handle's scope."""

    def __init__(self, memory: Home, scope: Scope) -> None:
        self._memory = memory
        self._scope = scope

    @property
    def scope(self) -> Scope:
        """What the handle is bound to."""
        return self._scope

    @property
    def memory(self) -> Home:
        """The `Memory` behind the handle, for closing it."""
        return self._memory

    async def add(self, entry: str | Draft, *, embed: Literal["now", "later"] = "now") -> MemoryRecord:
        """Remember one thing; returns when it is on disk.

        Args:
            entry: The text, or a `Draft` with everything known about it.
            embed: `"later"` returns before the vector is computed (words find the record at once).

        Returns:
            The stored record; for a known `source_key` the one already there, its text, author, data and tags
            brought up to date.

        Raises:
            InvalidInputError: A field cannot be stored; the message names it.
            ForgottenError: The `source_key` was deleted on purpose.
            DuplicateIdError: The owner already has a record of the draft's id.
            QuotaExceededError: The owner would hold more than the memory allows; for `add_many` and `put_many`, too.
        """
        record = await off_loop(is_long([entry]), complete, entry, self._scope, self._memory.clock())
        stored = await self._memory.add_one(self._scope, record, embed_later=is_later(embed))
        if stored is None:
            raise ForgottenError(f"source key {record.source_key!r} was deleted; add it under another key")
        return stored

    async def add_many(
        self,
        entries: Iterable[str | Draft],
        *,
        embed: Literal["now", "later"] = "now",
        progress: ProgressCallback | None = None,
    ) -> list[MemoryRecord | None]:
        """Remember many things in one transaction: all of them or, on an error, none.

        Returns one record per entry, in order, as `add` would; `None` where the source key was deleted on purpose.

        Args:
            embed: As for `add`.
            progress: Called with the records whose vectors are computed so far, and at the end when all are on disk.
        """
        drafts, now = as_list(entries), self._memory.clock()
        records = retired_within(await off_loop(is_long(drafts), complete_all, drafts, self._scope, now))

        async def add(store: Store, scope: Scope) -> list[MemoryRecord | None]:
            with whole(progress, len(records)):
                return await store.add(scope, records, embed_later=is_later(embed), progress=progress)

        return await self._run(add)

    async def search(  # noqa: PLR0913  (a keyword for each wish a caller may have, none of them needed)
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = EVERYTHING,
        mode: Mode = "hybrid",
        every_word: bool = False,
        floor: bool = True,
        explain: bool = False,
        diversity: float = 0.0,
        candidates: int | None = None,
        recency: float = 0.0,
        importance: float = 0.0,
    ) -> Hits:
        """Find memories by meaning and words, best first; nothing relevant means an empty list.

        Args:
            query: A question or some words, up to `MAX_QUERY_CHARS`; a blank one finds nothing.
            limit: At most this many hits, 1 to 10,000.
            where: Conditions a hit must satisfy; they apply before the limit.
            mode: `hybrid` (words, meaning and conversation context), `lexical` (without vectors), `vector` (cosine
                alone) or `substring` (contains the query, ignoring case; newest first).
            every_word: Find only records that have every word of the query, ranked by words: for codes, names and
                quotations. For `hybrid` and `lexical`.
            floor: Leave out what is not relevant: all of it, if nothing stands out from what as many unrelated records
                would show. `False` returns the best `limit` records however far away they are.
            explain: Fill `Hit.components`.
            diversity: From 0 to 1: how much a hit has to differ from those before it (maximal marginal relevance); at
                0.5 a word-for-word repetition is worth nothing. For up to 100 hits; scores are relative to the best.
            candidates: From how many of the best `diversity` chooses; by default from 4 times `limit`, at least 50.
            recency: Weight of a part that is 1 now and falls by a factor of 0.995 with every hour since `occurred_at`
                (Park et al. 2023).
            importance: Weight of the record's `importance`.
        """
        check_one_of("mode", mode, get_args(Mode))
        request = SearchRequest(
            text=check_query(query),
            limit=check_limit(limit),
            mode="lexical" if every_word and mode == "hybrid" else mode,
            where=check_where(where),
            explain=explain,
            floor=floor,
            every_word=every_word,
            recency=check_unit("recency", recency),
            importance=check_unit("importance", importance),
        )
        return await self._search(request, diversity, candidates)

    async def search_by_vector(
        self,
        vector: Sequence[float],
        *,
        limit: int = 10,
        where: Where = EVERYTHING,
        floor: bool = True,
        diversity: float = 0.0,
        candidates: int | None = None,
    ) -> Hits:
        """Find memories by a vector of the caller's own, nearest first; otherwise as `search` in the mode `vector`.

        Args:
            vector: From the model of the memory's embedder, for queries; its length is made 1.
            limit: See `search`, as for all that follows.

        Raises:
            InvalidInputError: It has another dimension, is zero, or holds something else than finite numbers; or the
                memory has no embedder.
        """
        from memory_core.retrieval.dense import unit_vector  # noqa: PLC0415  (numpy)

        request = SearchRequest(
            text="",
            limit=check_limit(limit),
            mode="vector",
            where=check_where(where),
            explain=False,
            floor=floor,
            vector=unit_vector(vector),
        )
        return await self._search(request, diversity, candidates)

    async def _search(self, request: SearchRequest, diversity: float, pool: int | None) -> Hits:
        self._owned()
        if request.vector is None and not request.text.strip():
            return Hits()  # also without the floor
        if not check_unit("diversity", diversity):
            return Hits(await self._run(lambda store, scope: store.search(scope, request)))
        from memory_core.retrieval.diversity import candidates, diversified  # noqa: PLC0415  (analysis takes 20 ms)

        wider = replace(request, limit=candidates(request.limit) if pool is None else check_limit(pool))
        hits = await self._run(lambda store, scope: store.search(scope, wider))
        return Hits(await asyncio.to_thread(diversified, hits, request.limit, diversity))  # some milliseconds

    async def get(self, id: str) -> MemoryRecord | None:  # noqa: A002  (the record's own word)
        """The record of this id in any state, or `None`; expired records are gone."""
        page = await self.list(where=replace(_ANY_STATE, ids=(check_key("id", id),)), limit=1)
        return page.records[0] if page.records else None

    async def update(self, id: str, patch: Patch, *, expected_version: int | None = None) -> MemoryRecord:  # noqa: A002
        """Change a record and return it; a new text makes a new `rev` and is searchable when this returns.

        Args:
            expected_version: The record's `version` when it was read: nothing is written if it has changed since.

        Raises:
            RecordNotFoundError: The owner has no such record.
            ConflictError: The record is not of the expected version.
            InvalidInputError: A new value cannot be stored.
        """
        known, expected = check_key("id", id), check_version(expected_version)
        return await self._run(lambda store, scope: store.update(scope, known, patch, expected_version=expected))

    async def supersede(self, id: str, entry: str | Draft) -> MemoryRecord:  # noqa: A002
        """Put a new record in the place of one that is no longer true; returns the new one.

        In one transaction the new record gets a `supersedes` link and the old one is archived, valid until the new one
        is: from `Draft.valid_from`, or from now on. Reads find the new one only; with `Where(as_of=...)` they find what
        was true then, and `get` and `history` find both.

        Args:
            id: Of the old record.
            entry: A `Draft`; a bare text takes kind, author, tags, importance and collection over from the old one.

        Raises:
            RecordNotFoundError: The owner has no such record.
            SupersededError: Another record has taken its place already.
        """
        old = await self.get(id)
        if old is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return await self.add(superseding(old, entry, self._memory.clock()))

    async def history(self, id: str) -> list[Version]:  # noqa: A002
        """What the memory said about it, oldest first: the texts of the records before it, its own, of those after it.

        Each version holds until the next one. Up to 20 earlier texts of a record are kept.

        Raises:
            RecordNotFoundError: The owner has no such record.
        """
        check_key("id", id)
        chain = await self._run(lambda store, scope: history(store, scope, id))
        if not chain:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return chain

    async def delete(self, id: str) -> None:  # noqa: A002
        """Delete a record or raise `RecordNotFoundError`. Adding its `source_key` again is refused from then on."""
        if not await self.delete_where(replace(_ANY_STATE, ids=(check_key("id", id),))):
            raise RecordNotFoundError(f"there is no memory {id!r}")

    async def delete_where(self, where: Where, *, forget: bool = True) -> int:
        """Delete every record that satisfies `where`; returns how many.

        Args:
            where: Conditions a record must satisfy.
            forget: Refuse their source keys from now on, so that no re-ingestion brings them back. `False` makes room
                for others under the same keys.
        """
        checked = check_where(where)
        return await self._run(lambda store, scope: store.delete(scope, checked, forget=forget))

    async def put_many(self, entries: Iterable[Draft], *, remove: Collection[str] = ()) -> Records:
        """Use the memory as a key-value store: write under source keys, and delete, in one transaction.

        A draft whose `source_key` is known replaces that record entirely; only `id`, `created_at` and the counts of
        reads stay, and `rev` is one more if the text differs. What was deleted on purpose can be put again.

        Args:
            entries: Drafts, each with a `source_key`; of two with the same one the later counts.
            remove: Source keys whose records go, without being forgotten on purpose; unknown ones are fine.

        Returns:
            The stored record of each entry, in order.

        Raises:
            InvalidInputError: A draft has no source key or cannot be stored; or a key is both put and removed.
            SupersededError: A draft supersedes a record that another one has superseded already.
            DuplicateIdError: A source key belongs to a record this handle does not reach, or a new id is taken.
        """
        drafts = as_list(entries)
        given, gone = await off_loop(is_long(drafts), complete_items, drafts, remove, self._scope, self._memory.clock())
        return await self._run(
            lambda store, scope: optional.key_value(store).put(scope, retired_within(given), remove=gone)
        )

    async def collections(self, where: Where = EVERYTHING) -> Texts:
        """The distinct collections of the records that satisfy `where`, sorted by code points."""
        checked = check_where(where)
        return await self._run(lambda store, scope: optional.collections(store, scope, checked))

    async def postpone(self, expiries: Mapping[str, datetime | None]) -> None:
        """Let records expire at another moment, or never (`None`); given by id, in one transaction.

        Nothing else changes, `updated_at` included. Ids that are unknown or have expired already are left alone.
        """
        checked = check_expiries(expiries)
        await self._run(lambda store, scope: optional.key_value(store).postpone(scope, checked))

    async def sweep(self) -> int:
        """Delete what has expired and return how many that were. No read returns it anyway; this frees the space."""
        return await self._run(lambda store, scope: optional.key_value(store).sweep(scope))

    async def erase(self) -> ErasureReceipt:
        """Remove everything this handle can reach, so that no file holds any of it."""
        return await self._run(lambda store, scope: store.erase(scope))

    async def stats(self) -> Stats:
        """Count what this handle can reach."""
        return await self._run(optional.stats)

    async def list(
        self,
        *,
        where: Where = EVERYTHING,
        order: Order = "newest",
        limit: int = 50,
        cursor: str | None = None,
        touch: bool = False,
    ) -> Page:
        """Records without ranking, a page at a time.

        Args:
            where: Conditions a record must satisfy.
            order: By `occurred_at`, newest or oldest first; by importance, highest first; or by last access.
            limit: At most this many a page, 1 to 10,000.
            cursor: `Page.cursor` of the page before.
            touch: Count this as a read of the records returned.
        """
        check_one_of("order", order, get_args(Order))
        request = ListRequest(
            where=check_where(where), order=order, limit=check_limit(limit), cursor=cursor, touch=touch
        )
        return await self._memory.list_page(self._owned(), request)

    async def _run(self, work: Callable[[Store, Scope], Coroutine[object, object, T]]) -> T:
        scope = self._owned()

        async def on_store() -> T:
            return await work(await self._memory.ready(), scope)

        return await on_core(on_store)

    def _owned(self) -> Scope:
        if self._scope.user is None:
            raise ScopeError(f"{self._scope} leaves the user open; bind one first: handle.bind(user=...)")
        return self._scope
