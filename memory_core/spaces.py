"""Spaces: the memories of other owners that a handle reads beside its own, and writes to where that is granted.

Every read goes to the handle's own memory and to each space, each under its own scope. A change by id goes to the one
that has the record, if it may be written to. Everything else stays in the own memory. `handle.py` keeps this rule, and
nothing outside of it looks at a scope. Grants are arguments of the application's code: they are stored nowhere, and no
tool takes one.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, Protocol, cast

from memory_core.errors import InvalidInputError, ScopeError
from memory_core.every_record import Lists
from memory_core.models import MemoryRecord, Order, Page, Scope
from memory_core.open_store import OpenStore
from memory_core.values.checks import check_key, shown
from memory_core.where.where import Where

PRIVATE: Final = "private"
"""The label of the handle's own memory."""
MAX_SPACES: Final = 16
"""Most spaces of a handle; a question that needs more owners wants one owner with collections."""


@dataclass(frozen=True, slots=True)
class Space:
    """The part of another owner's memory that is granted."""

    scope: Scope
    """The owner, and the agent, session or collection to which the grant is limited."""
    is_writable: bool


Spaces = Mapping[str, Space]
"""Spaces by their labels, in the order in which they were granted."""
NO_SPACES: Final[Spaces] = MappingProxyType({})


class Granted(Protocol):
    """A handle whose own memory is a space."""

    @property
    def memory(self) -> OpenStore: ...

    @property
    def scope(self) -> Scope: ...


def granted(own: Granted, handles: Mapping[str, Granted], writable: Collection[str]) -> Spaces:
    """The spaces of these handles, checked.

    Raises:
        ScopeError: A handle leaves its user open, is of another `Memory`, or two have the same owner.
        InvalidInputError: A label is empty, `private`, or unknown; or there are too many spaces.
    """
    if isinstance(writable, str) or not set(writable) <= set(handles):
        raise InvalidInputError(f"writable must be some of the labels {', '.join(handles)}, not {shown(writable)}")
    if len(handles) > MAX_SPACES:
        raise InvalidInputError(f"a handle has at most {MAX_SPACES} spaces, not {len(handles)}")
    for label, handle in handles.items():
        if check_key("a label of a space", label) == PRIVATE:
            raise InvalidInputError(f"{PRIVATE!r} is the label of the handle's own memory; name the space otherwise")
        if handle.memory is not own.memory:
            raise ScopeError(f"the space {label!r} is of another Memory than the handle; bind it on the same one")
    spaces = {label: Space(with_user(handle.scope), label in writable) for label, handle in handles.items()}
    insist_on_other_owners(own.scope, spaces)
    return MappingProxyType(spaces)


def insist_on_other_owners(own: Scope, spaces: Spaces) -> None:
    """Refuse two parts of one owner: nothing would say which of them a record is from.

    Raises:
        ScopeError: There are two.
    """
    owners = {(own.app, own.user)}
    for label, space in spaces.items():
        owner = space.scope.app, space.scope.user
        if owner in owners:
            raise ScopeError(f"the space {label!r} has the owner of another space; read it through one handle")
        owners.add(owner)


def with_user(scope: Scope) -> Scope:
    """The scope, if it names a user.

    Raises:
        ScopeError: It leaves the user open.
    """
    if scope.user is None:
        raise ScopeError(f"{scope} leaves the user open; bind one first: handle.bind(user=...)")
    return scope


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
"""The place where the listing of a handle continues: at a cursor, or at its beginning (`None`)."""
_NOWHERE: Final = ""
"""The handle has no more records."""


async def merged_page(
    parts: Mapping[Scope, Lists], *, where: Where, order: Order, limit: int, cursor: str | None
) -> Page:
    """One page of the records of all parts of a handle in one order; equals come in the order of the parts.

    Args:
        parts: By scope, the same ones for every page.
        limit: Maximum number of records, 1 to 10,000.
        cursor: `Page.cursor` of the previous page.

    Raises:
        InvalidInputError: The cursor is not of such a page.
    """

    handles, made_for = list(parts.values()), _digest(parts)

    async def part(handle: Lists, start: _Start, size: int) -> Page:
        if start == _NOWHERE:
            return Page((), None)
        return await handle.list(where=where, order=order, limit=size, cursor=start)

    starts = [None] * len(handles) if cursor is None else _read(cursor, made_for, len(handles))
    pages = await asyncio.gather(*(part(handle, start, limit) for handle, start in zip(handles, starts, strict=True)))
    place, descends = _PLACES[order]
    every = [(record, number) for number, page in enumerate(pages) for record in page.records]
    chosen = sorted(every, key=lambda one: place(one[0]), reverse=descends)[:limit]

    async def after(number: int) -> _Start:
        """The place where the handle's listing continues after the records that are shown."""
        page, start = pages[number], starts[number]
        taken = sum(of == number for _, of in chosen)
        if not taken and page.records:
            return start
        if taken < len(page.records):  # the cursor after a part of the page comes from reading that part
            page = await part(handles[number], start, taken)
        return page.cursor or _NOWHERE

    following = [await after(number) for number in range(len(handles))]
    is_last = not any(start != _NOWHERE for start in following)
    return Page(tuple(record for record, _ in chosen), None if is_last else _written(made_for, following))


def _digest(scopes: Iterable[Scope]) -> str:
    """The key that tells the parts of one handle from those of another, in a cursor."""
    return hashlib.sha256(json.dumps([astuple(scope) for scope in scopes]).encode()).hexdigest()[:16]


def _written(made_for: str, starts: Sequence[_Start]) -> str:
    return base64.urlsafe_b64encode(json.dumps([made_for, *starts]).encode()).decode()


def _read(cursor: object, made_for: str, count: int) -> list[_Start]:
    found: object = None
    if isinstance(cursor, str) and len(cursor) <= _MAX_CURSOR_CHARS:
        with suppress(ValueError, RecursionError):  # not a cursor
            found = json.loads(base64.urlsafe_b64decode(cursor))
    given = cast("list[object]", found) if isinstance(found, list) else []
    starts = [start for start in given[1:] if start is None or isinstance(start, str)]
    if given[:1] != [made_for] or len(given) != count + 1 or len(starts) != count:
        raise InvalidInputError(
            f"cursor {cursor!r:.80} is not from a page of these spaces; pass the `cursor` of the page before"
        )
    return starts
