"""The handle of one owner's memories, and its synchronous view: applications and adapters do everything through it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, NoReturn, ParamSpec, Self, TypeVar, get_args

from memory_core.concurrency.loop import off_loop, on_core
from memory_core.concurrency.sync import run_sync
from memory_core.conversation.messages.message_to_draft import Message, message_drafts, read_messages
from memory_core.conversation.messages.remember import DEFAULT_SESSION, reachable, remember_drafts
from memory_core.errors import ConflictError, EmbeddingError, ForgottenError, RecordNotFoundError, ScopeError
from memory_core.every_record import every_record
from memory_core.hints import no_attribute
from memory_core.history import history
from memory_core.models import (
    STATES,
    Deleted,
    Draft,
    ErasureReceipt,
    Hit,
    Json,
    Known,
    MemoryRecord,
    Mode,
    Order,
    Page,
    Patch,
    Scope,
    Stats,
    Version,
)
from memory_core.open_store import OpenStore
from memory_core.operation import OPERATIONS, operation
from memory_core.profile import DEFAULT_PROFILE_CHARS, Profile, read_profile
from memory_core.protocols import Store
from memory_core.recall import recalling
from memory_core.records.draft_to_record import (
    as_list,
    check_expiries,
    check_version,
    check_versions,
    complete_all,
    complete_items,
    is_long_batch,
    new_record,
    placed,
)
from memory_core.records.fields import check_data
from memory_core.records.superseding import correction, insist_on_heir, retired_within, superseding
from memory_core.records.undone import UNDONE, undone_by
from memory_core.requests import ListRequest, SearchRequest
from memory_core.retrieval.equal_statements import equal_to, kept_and_gone, merged
from memory_core.retrieval.hits import Hits, best_hits, within
from memory_core.short_page import short_page
from memory_core.spaces import NO_SPACES, PRIVATE, Spaces, granted, insist_on_other_owners, merged_page, with_user
from memory_core.storage import optional
from memory_core.values.checks import (
    check_count,
    check_key,
    check_limit,
    check_one_of,
    check_query,
    check_texts,
    check_unit,
    is_later,
    shown,
)
from memory_core.values.limits import MAX_LIMIT
from memory_core.values.query_text import asks_for_something
from memory_core.values.times import day_of, in_zone
from memory_core.values.zones import check_zone
from memory_core.where.checks import check_where
from memory_core.where.where import ANY_STATE, EVERYTHING, Where

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 0.5


class BoundMemory:
    """The memories of one owner, or of one agent, session or collection of that owner; with `sharing`, also those of
    other owners that are shared with it.

    All methods except `bind` are coroutines that can be awaited on any event loop. Synchronous code calls
    `handle.sync.search("tea")`.

    Isolation is enforced here: every operation passes on the handle's scope, and those of its spaces where it may
    reach them (`spaces.py`).
    """

    def __init__(self, memory: OpenStore, scope: Scope, zone: tzinfo | None = None) -> None:
        self._memory = memory
        self._scope = scope
        self._zone = zone
        self._spaces = NO_SPACES

    def __repr__(self) -> str:
        return f"BoundMemory({', '.join([str(self.scope), *self._spaces])})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @property
    def scope(self) -> Scope:
        """The scope the handle is bound to, without its spaces."""
        return self._scope

    @property
    def memory(self) -> OpenStore:
        """The part that the handle shares with its `Memory` and the other handles: the open store, which `close`
        closes."""
        return self._memory

    @property
    def zone(self) -> tzinfo:
        """The zone in which the person is: that of what is said now, and of times in UTC."""
        return self._memory.zone if self._zone is None else self._zone

    def now(self) -> datetime:
        """The present moment of the memory's clock, in the zone of the handle."""
        return in_zone(self._memory.clock(), self.zone)

    @property
    def own(self) -> BoundMemory:
        """The same handle without spaces: the owner's own memory."""
        return BoundMemory(self._memory, self._scope, self._zone) if self._spaces else self

    @property
    def spaces(self) -> Mapping[str, Literal["read", "write"]]:
        """The labels of the spaces that the handle reads, and what is granted."""
        return {label: "write" if space.is_writable else "read" for label, space in self._spaces.items()}

    @property
    def sync(self) -> SyncMemory:
        """The same operations for code without `await`: `handle.sync.search("tea")`."""
        return SyncMemory(self)

    if not TYPE_CHECKING:  # else every name would be an attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name, OPERATIONS)

    def bind(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        collection: str | None = None,
        zone: tzinfo | str | None = None,
    ) -> BoundMemory:
        """A narrower handle. A key that is bound already accepts only the same value.

        Only the owner's own memory is narrowed; spaces stay as they were granted. `zone` says where the person is, as
        for `Memory`, in place of what was said before.

        Raises:
            ScopeError: A key is bound to another value, or the user is the owner of a space.
            InvalidInputError: There is no such zone.
        """
        given = {"user": user, "agent": agent, "session": session, "collection": collection}
        narrower = {name: value for name, value in given.items() if value is not None}
        for name, value in narrower.items():
            if (bound := getattr(self.scope, name)) not in (None, value):
                raise ScopeError(
                    f"this memory belongs to {name} {bound!r}; it cannot be used for {name} {shown(value)}"
                )
        if not narrower and zone is None:
            return self
        scope = replace(self.scope, **narrower)
        insist_on_other_owners(scope, self._spaces)
        return self._reading(scope, self._spaces, self._zone if zone is None else check_zone(zone))

    def sharing(self, spaces: Mapping[str, BoundMemory], *, writable: Collection[str] = ()) -> BoundMemory:
        """A handle that reads these spaces beside its own memory, as one memory.

        `search`, `recall`, `list`, `get` and `history` read all of them; `space_of` says which one a record is from. A
        record ranks as if one owner had the records of all.
        `update`, `supersede` and `delete` reach the own memory and writable spaces, `add` a writable space by its
        label. Everything else reaches the own memory only. A handle that leaves its user open keeps the spaces when it
        is bound to one.

        Args:
            spaces: Handles of the same `Memory` by label, each of another owner, instead of those that are shared so
                far. Each shares its own memory; one that is bound to an agent, a session or a collection shares only
                that.
            writable: Labels of the spaces whose records may be added, changed and deleted.

        Raises:
            ScopeError: A space leaves its user open, is of another `Memory`, or two have the same owner.
            InvalidInputError: A label is empty, `private`, or unknown; or there are more than 16 spaces.
        """
        return self._reading(self._scope, granted(self, spaces, writable), self._zone)

    def _reading(self, scope: Scope, spaces: Spaces, zone: tzinfo | None) -> BoundMemory:
        handle = BoundMemory(self._memory, scope, zone)
        handle._spaces = spaces
        return handle

    def space_of(self, record: MemoryRecord) -> str:
        """The label of the space a record is from; `private` for the owner's own.

        Raises:
            ScopeError: The record is from none of them.
        """
        return self.label_of(record) or PRIVATE

    def label_of(self, record: MemoryRecord) -> str | None:
        """The label that a recalled line shows: `space_of`, but `None` for the owner's own memories."""
        owner = record.app, record.user
        if owner == (self._scope.app, self._scope.user):
            return None
        for label, space in self._spaces.items():
            if owner == (space.scope.app, space.scope.user):
                return label
        raise ScopeError(f"the memory {record.id!r} is from none of the spaces {', '.join([PRIVATE, *self._spaces])}")

    @operation
    async def add(
        self,
        entry: str | Draft,
        *,
        embed: Literal["now", "later"] = "now",
        on_duplicate: Literal["keep", "merge", "refuse"] = "keep",
        space: str = PRIVATE,
    ) -> MemoryRecord:
        """Store one record; returns when it is on disk.

        A draft with a `supersedes` link archives the record that it names, as `supersede` does.

        ```python
        note = await ann.add("Ann drinks jasmine tea")
        turn = Draft("I moved to Bergen", author="Ann", session="monday", source_key="message-7")
        assert await ann.add(turn) == await ann.add(turn)
        ```

        Args:
            entry: The text, or a `Draft` with everything known about it.
            embed: `"later"` returns before the vector is computed (the record is found by words at once).
            on_duplicate: For an entry whose text equals that of a memory of its kind (see `MaintainPolicy`): `"keep"`
                stores it beside that, `"merge"` merges both as `maintain` would, `"refuse"` stores nothing.
            space: The label of a writable space (see `sharing`); by default the owner's own memory.

        Returns:
            The stored record; for a known `source_key` the existing record, with text, author, data and tags updated;
            for a duplicate that is merged or refused the record that represents it.

        Raises:
            InvalidInputError: A field cannot be stored, or `expires_at` has passed; the message names it.
            ForgottenError: The `source_key` is forgotten: its record was deleted.
            DuplicateIdError: The owner already has a record with the draft's id.
            QuotaExceededError: The owner would exceed the quota; also raised by `add_many` and `put_many`.
            ScopeError: There is no writable space of this label.
        """
        if self._spaces or space != PRIVATE:
            return await self._writing(space).add(entry, embed=embed, on_duplicate=on_duplicate)
        check_one_of("on_duplicate", on_duplicate, ("keep", "merge", "refuse"))
        if on_duplicate != "keep":
            return await self._add_once(entry, embed, merges=on_duplicate == "merge")
        record = await off_loop(is_long_batch([entry]), new_record, entry, self._scope, self.now())
        if record.links:
            (record,) = retired_within([record])
        stored = await self._memory.add_one(self._scope, record, embed_later=is_later(embed))
        return _not_forgotten(stored, record)

    async def _add_once(self, entry: str | Draft, embed: Literal["now", "later"], *, merges: bool) -> MemoryRecord:
        """Add an entry unless a record with an equal text represents it; or merge it with that record."""
        equal = await equal_to(self, new_record(entry, self._scope, self.now()))
        if equal and not merges:
            return equal[0]
        added = await self.add(entry, embed=embed)
        if not equal or added.id == equal[0].id:  # the same source key
            return added
        notes = await every_record(whole_owner(self), Where(kinds=[UNDONE], states=STATES))
        kept, gone = kept_and_gone([equal[0], added], undone_by(notes))
        if not gone:
            return added
        with suppress(ConflictError, RecordNotFoundError):  # another caller was faster
            await self.update(kept.id, merged(kept, gone), expected_version=kept.version)
            await self.update(gone[0].id, Patch(state="compacted"), expected_version=gone[0].version)
        return await self.get(kept.id) or added

    @operation
    async def add_many(
        self,
        entries: Iterable[str | Draft],
        *,
        embed: Literal["now", "later"] = "now",
    ) -> list[MemoryRecord | None]:
        """Store many records in one transaction: all of them or, on an error, none. Returns one record per entry, in
        order, as `add` would; `None` for a forgotten source key. No space is reached.

        An error names the position of the entry, counted from 0.

        Args:
            embed: As for `add`.
        """
        drafts, now = as_list(entries), self.now()
        records = retired_within(await off_loop(is_long_batch(drafts), complete_all, drafts, self._scope, now))
        return await self._run(lambda store, scope: store.add(scope, records, embed_later=is_later(embed)))

    @operation
    async def remember(
        self,
        messages: Iterable[Message | tuple[str, str] | Mapping[str, object]],
        *,
        session: str | None = None,
        data: Mapping[str, Json] | None = None,
    ) -> list[MemoryRecord]:
        """Remember a conversation: store every message once, however often and in whatever parts it is passed.

        A message with an id is recognised by its id. Messages without ids are aligned with the last messages of the
        session: those that match them in order are known, those that follow are new. So a client may resend the whole
        conversation, its last messages, or a request, also from two processes at once. Times, if given, distinguish
        messages as well.

        Instructions to the model (`system`) and messages without text are left out. No space is reached.

        Each record has the kind `message`, the role, the author, the session, the time and, under `data["tool_calls"]`,
        the calls of the model. A known id of the same author with another text is an edit: the record gets the new
        text, and its history keeps the old one. A question that was asked before is stored again with its new answer. A
        handle that is bound to an agent or a collection has conversations of its own.

        ```python
        said = [("user", "I moved to Porto"), ("assistant", "How is it there?")]
        await ann.remember(said, session="monday")
        said += [{"role": "user", "content": "Warm!"}, Message("Lucky you.", role="assistant")]
        assert len(await ann.remember(said, session="monday")) == (await ann.stats()).records == 4
        ```

        Args:
            messages: In order, of one conversation: `Message` values, pairs such as `("user", "I like tea")`, or
                mappings with `role` and `content` as chat APIs pass them.
            session: The session of the conversation; by default the one the handle is bound to, otherwise one session
                for all calls.
            data: Added to every record.

        Returns:
            The record of every message, in order, known ones included; without messages that were left out, or deleted
            on purpose before.

        Raises:
            InvalidInputError: An item is not a message or cannot be stored; then nothing is stored.
        """
        drafts = message_drafts(
            read_messages(messages),
            session=session or self.scope.session or DEFAULT_SESSION,
            data=check_data({} if data is None else data),
        )
        return await remember_drafts(self.own, reachable(self.scope, drafts), now=self.now())

    recall = operation(recalling.recall)

    @operation
    async def search(  # noqa: PLR0913  (one optional keyword per setting)
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = EVERYTHING,
        mode: Mode = "hybrid",
        every_word: bool = False,
        floor: bool = True,
        context: bool = True,
        explain: bool = False,
        diversity: float = 0.0,
        candidates: int | None = None,
        recency: float = 0.0,
        importance: float = 0.0,
        apart: bool = False,
        most_bytes: int | None = None,
    ) -> Hits:
        """Find memories by meaning and words, best first; an empty list means that nothing is relevant.

        Args:
            query: A question or some words, up to `MAX_QUERY_CHARS`; a blank one finds nothing.
            limit: Maximum number of hits, 1 to 10,000.
            where: Conditions a hit must satisfy; they apply before the limit.
            mode: `hybrid` (words, meaning, conversation), `lexical` (words), `vector` or `substring` (newest first).
            every_word: Find only records with every word of the query, ranked by words. For `hybrid` and `lexical`.
            floor: Leave out records that are not relevant, all of them if none is; `False` returns the best anyway.
            context: Find a turn also by what was said just before and after it, not only by itself.
            explain: Fill `Hit.components`.
            diversity: From 0 to 1: how much a hit must differ from those before it (docs/retrieval.md); up to 100 hits.
            candidates: Number of best records from which `diversity` chooses; by default 4 times `limit`, at least 50.
            recency: Weight of a part that is 1 now and falls by 0.5 % with every hour (Park et al. 2023).
            importance: Weight of the record's `importance`.
            apart: Return an extracted fact and its turn as two hits; by default as one, the turn, at the better place.
            most_bytes: End when the hits have so many bytes together; the ids of the others are `Hits.rest`.
        """
        request = SearchRequest(
            text=check_query(query),
            limit=check_limit(limit),
            mode=_mode(mode, every_word=every_word),
            where=_checked(where),
            explain=explain,
            floor=floor,
            context=context,
            every_word=every_word,
            recency=check_unit("recency", recency),
            importance=check_unit("importance", importance),
            most_bytes=_bytes(most_bytes),
        )
        return await self._search(request, diversity, candidates, apart=apart)

    @operation
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
        """Find memories by the caller's vector, nearest first; otherwise like `search` in the mode `vector`.

        Args:
            vector: A query vector of the memory's embedding model; it is scaled to unit length.
            limit: See `search`, as for all other arguments.

        Raises:
            InvalidInputError: The vector has another dimension, is zero, or contains anything but finite numbers; or
                the memory has no embedder.
        """
        from memory_core.retrieval.unit_vectors import unit_vector  # noqa: PLC0415  (numpy)

        request = SearchRequest(
            text="",
            limit=check_limit(limit),
            mode="vector",
            where=_checked(where),
            explain=False,
            floor=floor,
            vector=unit_vector(vector),
        )
        return await self._search(request, diversity, candidates, apart=False)

    async def _search(self, request: SearchRequest, diversity: float, pool: int | None, *, apart: bool) -> Hits:
        self._owned()
        request = replace(request, today=day_of(self.now()))
        is_literal = request.mode == "substring"  # finds punctuation, too
        if request.vector is None and not (request.text.strip() if is_literal else asks_for_something(request.text)):
            return Hits()  # also without the floor
        apart = apart or request.every_word or request.mode == "substring"  # which a turn may not satisfy
        if not check_unit("diversity", diversity):
            return await self._hits(request, apart=apart)
        from memory_core.retrieval.diversity import candidates, diversified  # noqa: PLC0415  (analysis takes 20 ms)

        wider = replace(request, limit=candidates(request.limit) if pool is None else check_limit(pool))
        hits = await self._hits(wider, apart=apart)
        chosen = await asyncio.to_thread(diversified, hits, request.limit, diversity)  # some milliseconds
        return within(Hits(chosen, hits.rest), request)

    async def _hits(self, request: SearchRequest, *, apart: bool) -> Hits:
        def search(wider: SearchRequest) -> Coroutine[object, object, list[Hit]]:
            others = tuple(space.scope for space in self._spaces.values())
            return self._run(lambda store, scope: store.search((scope, *others), wider))

        def found(where: Where) -> Coroutine[object, object, Sequence[MemoryRecord]]:
            return self._found(where, request.most_bytes)

        return await best_hits(request, search, found, self._memory.reranking, apart=apart)

    async def _found(self, where: Where, most_bytes: int | None = None) -> Sequence[MemoryRecord]:
        if most_bytes is None:
            return (await self.list(where=where, limit=MAX_LIMIT)).records
        page = await short_page(self, where=where, order="newest", limit=MAX_LIMIT, cursor=None, most_bytes=most_bytes)
        return page.records

    @operation
    async def get(self, id: str) -> MemoryRecord | None:  # noqa: A002  (the record's own word)
        """The record with this id, in any state, or `None`; expired records are not returned.

        If several spaces have the id, it is that of the owner's own memory, else of the first of them.
        """
        if self._spaces:
            found = await self._found_in(id)
            return None if found is None else found[1]
        page = await self.list(where=replace(ANY_STATE, ids=(check_key("id", id),)), limit=1)
        return page.records[0] if page.records else None

    @operation
    async def update(self, id: str, patch: Patch, *, expected_version: int | None = None) -> MemoryRecord:  # noqa: A002
        """Change a record and return it; a new text increments `rev` and is searchable when this returns.

        A new kind also sets the tier, unless the patch names one. To get rid of an earlier text, delete the record: no
        read finds any of its texts after that. Only `erase` returns when no file has their bytes, which may stay in the
        write-ahead log until SQLite's next checkpoint.

        With `expected_version` several agents can read a record, compute, and write it back without lost updates: the
        comparison and the write are one transaction.

        ```python
        counter = await ann.add(Draft("how often Ann asked", data={"count": 0}))
        while True:
            read = await ann.get(counter.id)
            try:
                await ann.update(read.id, Patch(data={"count": read.data["count"] + 1}), expected_version=read.version)
                break
            except ConflictError:  # another agent was faster
                continue
        ```

        Args:
            expected_version: The record's `version` when it was read: nothing is written if it has changed since.

        Raises:
            RecordNotFoundError: The owner has no such record.
            ConflictError: The record does not have the expected version.
            InvalidInputError: A new value cannot be stored.
            ScopeError: The record is in a space that is shared for reading only.
        """
        if self._spaces:
            return await (await self._changing(id)).update(id, patch, expected_version=expected_version)
        known, expected = check_key("id", id), check_version(expected_version)
        patch = placed(patch, self.zone)
        return await self._run(lambda store, scope: store.update(scope, known, patch, expected_version=expected))

    @operation
    async def supersede(
        self,
        id: str,  # noqa: A002
        entry: str | Draft,
        *,
        expected_version: int | None = None,
    ) -> MemoryRecord:
        """Replace a record that is no longer true with a new one; returns the new record.

        In one transaction the new record gets a `supersedes` link and the old one is archived. The old record is valid
        until the new one becomes valid: at `Draft.valid_from`, or now. Reads find only the new record; with
        `Where(as_of=...)` they find what was true then, and `get` and `history` find both.

        ```python
        oslo = await ann.add(Draft("Ann lives in Oslo", kind="fact", occurred_at=datetime(2023, 1, 1, tzinfo=UTC)))
        moved = Draft("Ann lives in Bergen", kind="fact", valid_from=datetime(2025, 3, 1, tzinfo=UTC))
        await ann.supersede(oslo.id, moved)
        then = Where(as_of=datetime(2024, 6, 1, tzinfo=UTC))
        (hit,) = await ann.search("Where does Ann live?", where=then)
        assert hit.record.text == "Ann lives in Oslo"
        ```

        Args:
            id: Id of the old record.
            entry: A `Draft`, which says all of the new record; a bare text takes all other fields from the old one. Its
                author is who corrects, if the old record had one.
            expected_version: The old record's `version` when it was read: nothing is written if it has changed since.

        Raises:
            RecordNotFoundError: The owner has no such record.
            ConflictError: The record does not have the expected version.
            SupersededError: Another record has superseded it already.
            DuplicateIdError: The draft's `source_key` belongs to a record already.
            ScopeError: The record is in a space that is shared for reading only; else the new one is there too.
        """
        if self._spaces:
            return await (await self._changing(id)).supersede(id, entry, expected_version=expected_version)
        expected, old = check_version(expected_version), await self.get(id)
        if old is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        draft = superseding(old, entry, self._scope, self.now())
        if draft.source_key is not None:
            insist_on_heir(old, await self._found(replace(ANY_STATE, source_keys=(draft.source_key,))))
        if expected is None:
            return await self.add(draft)
        records = retired_within([new_record(draft, self._scope, self.now())])
        (added,) = await self._run(
            lambda store, scope: store.add(scope, records, embed_later=False, versions={id: expected})
        )
        return _not_forgotten(added, records[0])

    @operation
    async def history(self, id: str) -> list[Version]:  # noqa: A002
        """The history of a record, oldest version first: texts of its predecessors, its own, and of its successors.

        Each version is current until the next one. Up to 20 earlier texts of a record are kept.

        Raises:
            RecordNotFoundError: The owner has no such record.
        """
        if self._spaces:
            return await (await self._having(id)).history(id)
        if chain := await self._run(lambda store, scope: history(store, scope, check_key("id", id))):
            return chain
        raise RecordNotFoundError(f"there is no memory {id!r}")

    @operation
    async def delete(self, id: str, *, expected_version: int | None = None) -> Deleted:  # noqa: A002
        """Delete a record, and what was made of its words; returns how many that were. Adding its `source_key` again is
        refused from then on.

        Args:
            expected_version: The record's `version` when it was read: nothing is deleted if it has changed since.

        Raises:
            RecordNotFoundError: The owner has no such record.
            ConflictError: The record does not have the expected version.
            ScopeError: The record is in a space that is shared for reading only.
        """
        if self._spaces:
            return await (await self._changing(id)).delete(id, expected_version=expected_version)
        where, expected = replace(ANY_STATE, ids=(check_key("id", id),)), check_version(expected_version)
        versions = None if expected is None else {id: expected}
        try:
            deleted = await self._run(lambda store, scope: store.delete(scope, where, forget=True, versions=versions))
        except ConflictError:
            deleted = Deleted(0)
            if await self.get(id) is not None:
                raise
        if not deleted.records:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return deleted

    @operation
    async def delete_exactly(
        self, versions: Mapping[str, int], *, forget: bool = True, keeps_derived: bool = False
    ) -> Deleted:
        """Delete these records in the versions that somebody has seen: all of them or, if one has changed or is gone,
        none.

        A person may take any time to agree, and others may write meanwhile: only what the person has seen is deleted.
        No space is reached. A store without transactions (`has_atomic_batches` says so) compares all records first and
        then deletes one after the other, so a change at that moment leaves some of them deleted.

        Args:
            versions: The `version` of each record when it was seen, by id; at most 10,000.
            forget: As for `delete_where`.
            keeps_derived: Keep what was made of their words, as when records expire.

        Raises:
            ConflictError: A record has another version, or is gone; nothing was deleted.
            UnfinishedWriteError: Only without transactions: some are deleted; the error names which, and which not.
        """
        checked = check_versions(versions)
        where = check_where(replace(ANY_STATE, ids=tuple(checked)))
        return await self._run(
            lambda store, scope: store.delete(
                scope, where, forget=forget, versions=checked, keeps_derived=keeps_derived
            )
        )

    @operation
    async def delete_where(self, where: Where, *, forget: bool = True) -> Deleted:
        """Delete every record that satisfies `where`, and what was made of their words; returns how many. No space is
        reached.

        They are found first and then deleted, a thousand in a transaction, so that nobody waits long. A process that
        dies in between leaves the rest, and so does a caller who is cancelled: call it again. `delete_exactly` deletes
        all or none.

        ```python
        await ann.add_many([Draft("one", session="monday"), Draft("two", session="monday"), "three"])
        assert (await ann.delete_where(Where(session="monday"))).records == 2
        ```

        Args:
            where: Conditions a record must satisfy.
            forget: Refuse their source keys from now on, so that importing them again does not bring them back. With
                `False`, new records can use the same keys.
        """
        checked = _checked(where)
        return await self._run(lambda store, scope: store.delete(scope, checked, forget=forget))

    @operation
    async def put_many(
        self, entries: Iterable[Draft], *, remove: Collection[str] = (), embed: Literal["now", "later"] = "now"
    ) -> list[MemoryRecord]:
        """Use the memory as a key-value store: write under source keys, and delete, in one transaction. No space is
        reached.

        Returns the stored record of each entry, in order. A draft with a known `source_key` replaces that record; only
        `id`, `created_at` and the read counts stay, and a new text increments `rev`. A forgotten key can be put again.

        ```python
        await ann.put_many([Draft("dark", source_key="theme"), Draft("14 pt", source_key="font")])
        (theme,) = await ann.put_many([Draft("light", source_key="theme")], remove=["font"])
        assert (theme.text, theme.rev) == ("light", 2)
        ```

        Args:
            entries: Drafts, each with a `source_key`; if two have the same key, the later one wins.
            remove: Source keys whose records are deleted without forgetting the keys; unknown keys are ignored.
            embed: As for `add`; a store that cannot put before it embeds does so now.

        Raises:
            InvalidInputError: A draft has no source key or cannot be stored; or a key is both put and removed.
            SupersededError: A draft supersedes a record that another one has superseded already.
            DuplicateIdError: A source key belongs to a record this handle does not reach, or a new id is taken.
        """
        drafts = as_list(entries)
        given, gone = await off_loop(is_long_batch(drafts), complete_items, drafts, remove, self._scope, self.now())
        later = is_later(embed)
        return await self._run(
            lambda store, scope: store.put(scope, retired_within(given), remove=gone, embed_later=later)
        )

    @operation
    async def collections(self, where: Where = EVERYTHING) -> list[str]:
        """The distinct collections of the records that satisfy `where`, sorted by code points, without spaces.

        A collection is only the value of a field, so it need not be created; `Where(under="trips")` treats collections
        as paths.

        ```python
        await ann.add_many([Draft("Oslo", collection="trips/2025"), Draft("a flat", collection="homes"), "in none"])
        assert await ann.collections(Where(under="trips")) == ["trips/2025"]
        ```
        """
        checked = _checked(where)
        return await self._run(lambda store, scope: optional.collections(store, scope, checked))

    @operation
    async def postpone(self, expiries: Mapping[str, datetime | None]) -> None:
        """Change when records expire, by id, in one transaction; `None` means never.

        No other field changes, not even `updated_at`. Ids that are unknown, in a space or have already expired are
        ignored.

        ```python
        hour = timedelta(hours=1)
        ticket = await ann.add(Draft("the ticket is in the drawer", expires_at=datetime.now(UTC) + hour))
        await ann.postpone({ticket.id: None})
        ```
        """
        checked = check_expiries(expiries)
        await self._run(lambda store, scope: store.postpone(scope, checked))

    @operation
    async def sweep(self) -> int:
        """Delete expired records, a thousand in a transaction, and return how many. Reads never return them; this frees
        their room. No space is reached."""
        return await self._run(lambda store, scope: store.sweep(scope))

    @operation
    async def erase(self) -> ErasureReceipt:
        """Remove everything this handle can reach from every file, except spaces, which keep theirs.

        Texts, earlier texts, vectors and words are gone when this returns. The file and its write-ahead log are
        overwritten to their ends before they are shortened, so the blocks that they give back to the disk hold nothing
        of them; the file is written twice for that, and writers wait meanwhile. A file of up to 1 GiB is rewritten in
        memory, a larger one by way of a temporary file that holds live records only. The source key of an erased record
        stays forgotten, as a keyed hash without text or id. `ErasureReceipt.out_of_reach` says what this cannot reach.

        ```python
        await ann.add_many([Draft("one", session="monday"), "two"])
        receipt = await ann.bind(session="monday").erase()
        assert (receipt.records, receipt.sessions) == (1, 1)
        ```
        """
        return await self._run(lambda store, scope: store.erase(scope))

    @operation
    async def stats(self, where: Where = ANY_STATE) -> Stats:
        """Count the records that this handle can reach and that satisfy `where`, without spaces.

        ```python
        await ann.add_many([Draft("tea", kind="fact"), Draft("Oslo", kind="fact", collection="trips")])
        assert (await ann.stats(Where(under="trips"))).by_kind == {"fact": 1}
        ```
        """
        checked = _checked(where)
        return await self._run(lambda store, scope: optional.stats(store, scope, checked))

    @operation
    async def profile(self, *, max_chars: int = DEFAULT_PROFILE_CHARS, owner: str | None = None) -> Profile:
        """The memories that hold whatever is asked, as a block for every prompt: the pinned memories that this handle
        can reach, the most important ones that fit, none of a space. A wish holds in every conversation, so ask a
        handle without a session.

        A person pins by the tag `pinned`, a model by the tool `memory_pin` or as the manager of the memory. Of what a
        model pinned, only what the owner said is shown.

        Args:
            max_chars: Budget of the block in characters.
            owner: The name under which the owner speaks, if it is not the user that the handle is bound to.
        """
        user = self._scope.user if owner is None else check_key("owner", owner)
        return await read_profile(self.own, owner=user, max_chars=max_chars, now=self.now())

    @operation
    async def list(
        self,
        *,
        where: Where = EVERYTHING,
        order: Order = "newest",
        limit: int = 50,
        cursor: str | None = None,
        touch: bool = False,
    ) -> Page:
        """Return records without ranking, one page at a time.

        Writes that happen meanwhile do not shift the pages.

        ```python
        await ann.add_many([f"number {n}" for n in range(5)])
        page = await ann.list(order="oldest", limit=2)
        rest = await ann.list(order="oldest", limit=3, cursor=page.cursor)
        assert [record.text for record in rest] == ["number 2", "number 3", "number 4"]
        ```

        Args:
            where: Conditions a record must satisfy.
            order: By `occurred_at`, newest or oldest first; by importance, highest first; or by last access.
            limit: Maximum number of records per page, 1 to 10,000.
            cursor: `Page.cursor` of the previous page.
            touch: Count this as a read of the records returned, except those of spaces.
        """
        check_one_of("order", order, get_args(Order))
        if self._spaces:
            return await self._merged(where=where, order=order, limit=limit, cursor=cursor, touch=touch)
        request = ListRequest(where=_checked(where), order=order, limit=check_limit(limit), cursor=cursor, touch=touch)
        return await self._memory.list_page(self._owned(), request)

    async def _run(self, work: Callable[[Store, Scope], Coroutine[object, object, T]]) -> T:
        scope = self._owned()

        async def on_store() -> T:
            return await work(await self._memory.ready(), scope)

        return await on_core(on_store)

    def _owned(self) -> Scope:
        return with_user(self._scope)

    def _parts(self) -> dict[Scope, BoundMemory]:
        """The own memory, then each space, as handles of one owner."""
        scopes = self._owned(), *(space.scope for space in self._spaces.values())
        return {scope: BoundMemory(self._memory, scope, self._zone) for scope in scopes}

    async def _merged(self, *, where: Where, order: Order, limit: int, cursor: str | None, touch: bool) -> Page:
        page = await merged_page(
            self._parts(), where=_checked(where), order=order, limit=check_limit(limit), cursor=cursor
        )
        own = [record.id for record in page.records if self.label_of(record) is None]
        if touch and own:
            await self.own.list(where=replace(ANY_STATE, ids=own), limit=len(own), touch=True)
        return page

    async def _found_in(self, id: str) -> tuple[BoundMemory, MemoryRecord] | None:  # noqa: A002
        """The part that has the record, and the record."""
        for part in self._parts().values():
            record = await part.get(id)
            if record is not None:
                return part, record
        return None

    async def _having(self, id: str) -> BoundMemory:  # noqa: A002
        """The part that has the record."""
        found = await self._found_in(id)
        if found is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return found[0]

    async def _changing(self, id: str) -> BoundMemory:  # noqa: A002
        """The part that has the record, if it may be written to."""
        part = await self._having(id)
        for label, space in self._spaces.items():
            if space.scope == part.scope and not space.is_writable:
                raise ScopeError(f"the memory {id!r} is in the space {label!r}, which is shared for reading only")
        return part

    def _writing(self, label: str) -> BoundMemory:
        """The part that is written to under a label."""
        self._owned()
        space = self._spaces.get(label)
        if label == PRIVATE:
            return self.own
        if space is None or not space.is_writable:
            allowed = [PRIVATE, *(each for each, space in self._spaces.items() if space.is_writable)]
            raise ScopeError(f"the space {shown(label)} may not be written to; these may: {', '.join(allowed)}")
        return BoundMemory(self._memory, space.scope, self._zone)


def _not_forgotten(stored: MemoryRecord | None, record: MemoryRecord) -> MemoryRecord:
    if stored is None:
        raise ForgottenError(f"source key {record.source_key!r} was deleted; add it under another key")
    return stored


def _mode(mode: Mode, *, every_word: bool) -> Mode:
    check_one_of("mode", mode, get_args(Mode))
    return "lexical" if every_word and mode == "hybrid" else mode


def _bytes(most_bytes: object) -> int | None:
    return None if most_bytes is None else check_count("most_bytes", most_bytes, 1, sys.maxsize)


def _checked(where: Where) -> Where:
    return where if where is EVERYTHING else check_where(where)  # most reads have no conditions


def owned_by(handle: BoundMemory, user: object) -> BoundMemory:
    """The handle for the user that a framework names on this call.

    An open handle takes that user; a bound handle accepts only its own user, so a shared handle never mixes two users.

    Raises:
        ScopeError: The framework named no user (missing, empty, not a string), or another user.
    """
    return handle.bind(user=check_key("user", user, ScopeError))


def whole_owner(handle: BoundMemory) -> BoundMemory:
    """The handle of all records of the same owner."""
    return BoundMemory(handle.memory, replace(handle.scope, agent=None, session=None, collection=None), handle.zone)


async def known(handle: BoundMemory, keys: Sequence[str] | None = None) -> list[Known]:
    """The stored messages of a conversation, without reading whole records: 5,000 messages in some milliseconds.

    Args:
        handle: Bound to the session of the conversation.
        keys: Only these source keys, at most 10,000; by default all records that have one.

    Returns:
        Records in every state, also those that were left, by `occurred_at` and, where that is equal, in order of
        arrival; expired records are not among them.
    """
    some, scope = None if keys is None else check_texts("keys", keys), with_user(handle.scope)

    async def on_store() -> list[Known]:
        return await optional.known(await handle.memory.ready(), scope, some)

    return await on_core(on_store)


def correcting(handle: BoundMemory, old: MemoryRecord, text: str) -> Draft:
    """The draft of a text that corrects a record; change it by `dataclasses.replace`, and pass it to `supersede`."""
    return correction(old, text, handle.scope, handle.now())


async def settled(handle: BoundMemory, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  (the error says how many are left)
    """Return once no record in the scope of a handle waits for a vector.

    Records added with `embed="later"`, or while the embedder failed, are found by their words at once and by meaning
    once this has returned.

    Args:
        handle: Its scope says whose records to wait for.
        timeout: Seconds to wait at most; by default there is no limit, and an embedder that keeps failing is retried.

    Raises:
        EmbeddingError: Vectors are still pending after that time. They are computed later, and nothing is lost.
    """

    async def on_store() -> int:
        return await optional.pending(await handle.memory.ready(), with_user(handle.scope))

    end = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_PAUSE_SECONDS
    while pending := await on_core(on_store):
        if end is not None and time.monotonic() >= end:
            raise EmbeddingError(
                f"vectors still pending after {timeout:g} s: {pending}; they are computed later, and until then their "
                "records are found by their words only"
            )
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def scrubbed(memory: OpenStore) -> bool:
    """Make deleted records unreadable in the files of a memory, as `erase` does; returns whether nothing remains.

    A file is rewritten with its live records, during which writers wait, and its write-ahead log is emptied. It is
    incomplete while another process reads an older state of the file, or on a full disk; the next call completes it. A
    store on a server cannot tell.
    """

    async def on_store() -> bool:
        return await optional.scrub(await memory.ready())

    return await on_core(on_store)


def _blocking(
    method: Callable[Concatenate[BoundMemory, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemory, P], T]:
    """The same method as a blocking call."""

    @wraps(method)
    def call(view: SyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[P, Coroutine[Any, Any, T]] = getattr(view.handle, method.__name__)  # of a subclass, perhaps
        return run_sync(bound, *args, **kwargs)

    return call


class SyncMemory:
    """The synchronous view of a handle: for scripts, Flask, Django, Streamlit and notebooks.

    Each method has the parameters of the handle's method of the same name, blocks until it is done, and returns or
    raises the same.

    On a running event loop, as in a notebook, the methods work too, but block that loop meanwhile: in a coroutine,
    write `await handle.search(...)` instead. On the core loop they raise `WrongThreadError`.
    """

    def __init__(self, handle: BoundMemory) -> None:
        self.handle = handle

    def __repr__(self) -> str:
        return f"{self.handle!r}.sync"

    if not TYPE_CHECKING:  # else every name would be an attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name, OPERATIONS)

    add = _blocking(BoundMemory.add)
    add_many = _blocking(BoundMemory.add_many)
    remember = _blocking(BoundMemory.remember)
    recall = _blocking(BoundMemory.recall)
    search = _blocking(BoundMemory.search)
    search_by_vector = _blocking(BoundMemory.search_by_vector)
    get = _blocking(BoundMemory.get)
    update = _blocking(BoundMemory.update)
    supersede = _blocking(BoundMemory.supersede)
    history = _blocking(BoundMemory.history)
    delete = _blocking(BoundMemory.delete)
    delete_exactly = _blocking(BoundMemory.delete_exactly)
    delete_where = _blocking(BoundMemory.delete_where)
    put_many = _blocking(BoundMemory.put_many)
    collections = _blocking(BoundMemory.collections)
    postpone = _blocking(BoundMemory.postpone)
    sweep = _blocking(BoundMemory.sweep)
    erase = _blocking(BoundMemory.erase)
    stats = _blocking(BoundMemory.stats)
    profile = _blocking(BoundMemory.profile)
    list = _blocking(BoundMemory.list)
