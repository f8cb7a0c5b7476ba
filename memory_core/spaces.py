"""Private and shared memories in one recall: what I know, and what we know.

A space is the memory of another owner, such as a team, a company or an app, that the application grants to a handle
under a label. Grants are arguments of the application's code: they are stored nowhere, and no tool takes one.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal, cast, get_args

from memory_core.capture.message_to_draft import Message
from memory_core.concurrency.loop import on_core
from memory_core.errors import InvalidInputError, RecordNotFoundError, ScopeError, UnsupportedError
from memory_core.handle import BoundMemory
from memory_core.models import (
    Draft,
    ErasureReceipt,
    Hit,
    Json,
    MemoryRecord,
    Mode,
    Order,
    Page,
    Patch,
    Scope,
    Version,
)
from memory_core.profile import DEFAULT_PROFILE_CHARS, Profile
from memory_core.protocols import Home, SearchingTogether, SearchRequest
from memory_core.recall import recalling
from memory_core.retrieval.hits import Hits, best_hits
from memory_core.values.checks import check_key, check_limit, check_one_of, check_query, shown
from memory_core.values.limits import MAX_LIMIT
from memory_core.where.checks import check_where
from memory_core.where.where import EVERYTHING, Where

Records = list[MemoryRecord]
Versions = list[Version]

PRIVATE: Final = "private"
"""The label of the handle's own memory."""
MAX_SPACES: Final = 16
"""Most spaces of a handle; a question that needs more owners wants one owner with collections."""


class SharedMemory:
    """The memory of one owner together with spaces that are shared with it.

    `search`, `recall`, `list`, `get` and `history` read all of them, as one memory; `space_of` says which one a record
    is from. `add`, `remember` and `erase` reach the owner's own memory only; so do `update`, `supersede` and `delete`,
    unless a space is writable. It can be used wherever an `AgentMemory` can, as for tools and prompts.

    Args:
        own: The handle that is written to.
        spaces: Handles of the same `Memory` by label, each of another owner. A handle that is bound to an agent, a
            session or a collection shares only that.
        writable: Labels of the spaces whose records may be added, changed and deleted.

    Raises:
        ScopeError: A handle leaves its user open, is of another `Memory`, or two handles have the same owner.
        InvalidInputError: A label is empty, `private`, or unknown; or there are no spaces or too many.
    """

    def __init__(self, own: BoundMemory, spaces: Mapping[str, BoundMemory], *, writable: Collection[str] = ()) -> None:
        self._own = own
        self._spaces = {PRIVATE: own, **_checked(own, spaces)}
        if isinstance(writable, str) or not set(writable) <= set(spaces):
            raise InvalidInputError(f"writable must be some of the labels {', '.join(spaces)}, not {shown(writable)}")
        self._writable = frozenset((PRIVATE, *writable))
        self._labels = {(handle.scope.app, handle.scope.user): label for label, handle in self._spaces.items()}

    def __repr__(self) -> str:
        return f"SharedMemory({self._own.scope}, {', '.join(list(self._spaces)[1:])})"

    @property
    def own(self) -> BoundMemory:
        """The handle of the owner's own memory."""
        return self._own

    @property
    def memory(self) -> Home:
        """The `Memory` behind all handles."""
        return self._own.memory

    @property
    def spaces(self) -> Mapping[str, Literal["read", "write"]]:
        """The labels of the shared spaces, and what is granted."""
        labels = [label for label in self._spaces if label != PRIVATE]
        return MappingProxyType({label: "write" if label in self._writable else "read" for label in labels})

    def space_of(self, record: MemoryRecord) -> str:
        """The label of the space a record is from; `PRIVATE` for the owner's own.

        Raises:
            ScopeError: The record is from none of them.
        """
        label = self._labels.get((record.app, record.user))
        if label is None:
            raise ScopeError(f"the memory {record.id!r} is from none of the spaces {', '.join(self._spaces)}")
        return label

    def label_of(self, record: MemoryRecord) -> str | None:
        """The label that a recalled line shows: `space_of`, but `None` for the owner's own memories."""
        label = self.space_of(record)
        return None if label == PRIVATE else label

    async def add(
        self, entry: str | Draft, *, embed: Literal["now", "later"] = "now", space: str = PRIVATE
    ) -> MemoryRecord:
        """Store one record: see `BoundMemory.add`.

        Args:
            space: The label of a writable space; by default the owner's own memory.
        """
        return await self._writing(space).add(entry, embed=embed)

    async def remember(
        self,
        messages: Iterable[Message | tuple[str, str] | Mapping[str, object]],
        *,
        session: str | None = None,
        data: Mapping[str, Json] | None = None,
        embed: Literal["now", "later"] = "now",
    ) -> Records:
        """Remember a conversation in the owner's own memory: see `BoundMemory.remember`."""
        return await self._own.remember(messages, session=session, data=data, embed=embed)

    recall = recalling.recall

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
        apart: bool = False,
    ) -> Hits:
        """Find memories of all spaces, best first: see `BoundMemory.search`.

        A record has the rank that it would have if one owner had the records of all spaces.

        Raises:
            UnsupportedError: The store cannot rank several owners together; a SQLite file and Qdrant can.
        """
        check_one_of("mode", mode, get_args(Mode))
        request = SearchRequest(
            text=check_query(query),
            where=check_where(where),
            limit=check_limit(limit),
            every_word=every_word,
            mode="lexical" if every_word and mode == "hybrid" else mode,
            context=context,
            floor=floor,
            explain=explain,
        )
        scopes = tuple(_bound(handle) for handle in self._spaces.values())

        async def on_store(wider: SearchRequest) -> list[Hit]:
            store = await self.memory.ready()
            if not isinstance(store, SearchingTogether):
                raise UnsupportedError(
                    f"a {type(store).__name__} cannot rank several owners together; search each handle by itself"
                )
            return await store.search_together(scopes, wider)

        def search(wider: SearchRequest) -> Coroutine[object, object, list[Hit]]:
            return on_core(on_store, wider)

        if not request.text.strip():
            return Hits()
        apart = apart or mode == "substring"
        return Hits(await best_hits(request, search, self._records, self.memory.reranking, apart=apart))

    async def _records(self, where: Where) -> Sequence[MemoryRecord]:
        return (await self.list(where=where, limit=MAX_LIMIT)).records

    async def list(
        self, *, where: Where = EVERYTHING, order: Order = "newest", limit: int = 50, cursor: str | None = None
    ) -> Page:
        """Return records of all spaces without ranking, one page at a time: see `BoundMemory.list`."""
        check_one_of("order", order, get_args(Order))
        handles = list(self._spaces.values())
        return await merged_page(handles, where=where, order=order, limit=check_limit(limit), cursor=cursor)

    async def get(self, id: str) -> MemoryRecord | None:  # noqa: A002  (the record's own word)
        """The record with this id in any of the spaces, or `None`: see `BoundMemory.get`."""
        found = await self._found(id)
        return None if found is None else found[1]

    async def update(self, id: str, patch: Patch, *, expected_version: int | None = None) -> MemoryRecord:  # noqa: A002
        """Change a record: see `BoundMemory.update`.

        Raises:
            ScopeError: It is in a space that is shared for reading only.
        """
        return await (await self._changing(id)).update(id, patch, expected_version=expected_version)

    async def supersede(self, id: str, entry: str | Draft, *, expected_version: int | None = None) -> MemoryRecord:  # noqa: A002
        """Replace a record that is no longer true, in its space: see `BoundMemory.supersede`.

        Raises:
            ScopeError: It is in a space that is shared for reading only.
        """
        return await (await self._changing(id)).supersede(id, entry, expected_version=expected_version)

    async def delete(self, id: str, *, expected_version: int | None = None) -> None:  # noqa: A002
        """Delete a record: see `BoundMemory.delete`.

        Raises:
            ScopeError: It is in a space that is shared for reading only.
        """
        await (await self._changing(id)).delete(id, expected_version=expected_version)

    async def history(self, id: str) -> Versions:  # noqa: A002
        """The history of a record in its space: see `BoundMemory.history`."""
        found = await self._found(id)
        if found is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        return await found[0].history(id)

    async def profile(self, *, max_chars: int = DEFAULT_PROFILE_CHARS, owner: str | None = None) -> Profile:
        """What holds whatever is asked, from the owner's own memory: see `BoundMemory.profile`."""
        return await self._own.profile(max_chars=max_chars, owner=owner)

    async def count(self) -> int:
        """The number of records in all spaces."""
        return sum([(await handle.stats()).records for handle in self._spaces.values()])

    async def erase(self) -> ErasureReceipt:
        """Remove the owner's own memory from every file: see `BoundMemory.erase`. Shared spaces keep theirs."""
        return await self._own.erase()

    def _writing(self, label: str) -> BoundMemory:
        """The handle of a space that may be written to."""
        if label not in self._writable:
            allowed = ", ".join(label for label in self._spaces if label in self._writable)
            raise ScopeError(f"the space {shown(label)} may not be written to; these may: {allowed}")
        return self._spaces[label]

    async def _found(self, id: str) -> tuple[BoundMemory, MemoryRecord] | None:  # noqa: A002
        for handle in self._spaces.values():
            record = await handle.get(id)
            if record is not None:
                return handle, record
        return None

    async def _changing(self, id: str) -> BoundMemory:  # noqa: A002
        """The handle that has the record, if it may be written to."""
        found = await self._found(id)
        if found is None:
            raise RecordNotFoundError(f"there is no memory {id!r}")
        label = self.space_of(found[1])
        if label not in self._writable:
            raise ScopeError(f"the memory {id!r} is in the space {label!r}, which is shared for reading only")
        return found[0]


def _checked(own: BoundMemory, spaces: Mapping[str, BoundMemory]) -> dict[str, BoundMemory]:
    if not 1 <= len(spaces) <= MAX_SPACES:
        raise InvalidInputError(f"a shared memory has 1 to {MAX_SPACES} spaces, not {len(spaces)}")
    owners = {own.scope.app: {own.scope.user}}
    for label, handle in spaces.items():
        if check_key("a label of a space", label) == PRIVATE:
            raise InvalidInputError(f"{PRIVATE!r} is the label of the handle's own memory; name the space otherwise")
        if handle.memory is not own.memory:
            raise ScopeError(f"the space {label!r} is of another Memory than the handle; bind it on the same one")
        users = owners.setdefault(_bound(handle).app, set())
        if handle.scope.user in users:
            raise ScopeError(f"the space {label!r} has the owner of another space; read it through one handle")
        users.add(handle.scope.user)
    return dict(spaces)


def _bound(handle: BoundMemory) -> Scope:
    if handle.scope.user is None:
        raise ScopeError(f"{handle.scope} leaves the user open; bind one first: handle.bind(user=...)")
    return handle.scope


_MAX_CURSOR_CHARS: Final = 8_192
"""Longer than any valid cursor."""
_PLACES: Final[Mapping[Order, tuple[Callable[[MemoryRecord], datetime | float], bool]]] = {
    "newest": (lambda record: record.occurred_at, True),
    "oldest": (lambda record: record.occurred_at, False),
    "importance": (lambda record: record.importance, True),
    "accessed": (lambda record: record.accessed_at or record.created_at, True),
}
"""The value that an order sorts by, and whether the greatest comes first."""

_Start = str | None
"""Where the listing of a handle continues: at a cursor, or at its beginning (`None`)."""
_NOWHERE: Final = ""
"""The handle has no more records."""


async def merged_page(
    handles: Sequence[BoundMemory], *, where: Where, order: Order, limit: int, cursor: str | None
) -> Page:
    """One page of the records of all handles in one order; equals come in the order of the handles.

    Args:
        handles: Of different owners, the same ones for every page.
        limit: Maximum number of records, 1 to 10,000.
        cursor: `Page.cursor` of the previous page.

    Raises:
        InvalidInputError: The cursor is not of such a page.
    """

    async def part(handle: BoundMemory, start: _Start, size: int) -> Page:
        if start == _NOWHERE:
            return Page((), None)
        return await handle.list(where=where, order=order, limit=size, cursor=start)

    starts = [None] * len(handles) if cursor is None else _read(cursor, len(handles))
    pages = await asyncio.gather(*(part(handle, start, limit) for handle, start in zip(handles, starts, strict=True)))
    place, descends = _PLACES[order]
    every = [(record, number) for number, page in enumerate(pages) for record in page.records]
    shown = sorted(every, key=lambda one: place(one[0]), reverse=descends)[:limit]

    async def after(number: int) -> _Start:
        """Where the handle's listing continues after the records that are shown."""
        page, start = pages[number], starts[number]
        taken = sum(of == number for _, of in shown)
        if not taken and page.records:
            return start
        if taken < len(page.records):  # the cursor after a part of the page comes from reading that part
            page = await part(handles[number], start, taken)
        return page.cursor or _NOWHERE

    following = [await after(number) for number in range(len(handles))]
    is_last = not any(start != _NOWHERE for start in following)
    return Page(tuple(record for record, _ in shown), None if is_last else _written(following))


def _written(starts: Sequence[_Start]) -> str:
    return base64.urlsafe_b64encode(json.dumps(starts).encode()).decode()


def _read(cursor: object, count: int) -> list[_Start]:
    found: object = None
    if isinstance(cursor, str) and len(cursor) <= _MAX_CURSOR_CHARS:
        with suppress(ValueError, RecursionError):  # not a cursor
            found = json.loads(base64.urlsafe_b64decode(cursor))
    given = cast("list[object]", found) if isinstance(found, list) else []
    starts = [start for start in given if start is None or isinstance(start, str)]
    if len(given) != count or len(starts) != count:
        raise InvalidInputError(
            f"cursor {cursor!r:.80} is not from a page of these spaces; pass the `cursor` of the page before"
        )
    return starts
