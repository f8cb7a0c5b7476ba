"""Sharing: a handle never writes where it may only read, and never reads what was not granted to it."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

import pytest

from memory_core import (
    BoundMemory,
    ConflictError,
    Draft,
    DuplicateIdError,
    Hit,
    InvalidInputError,
    Link,
    Memory,
    MemoryRecord,
    Page,
    Patch,
    Profile,
    Recalled,
    RecallOptions,
    RecordNotFoundError,
    ScopeError,
    Stats,
    Version,
    Where,
    run_sync,
)
from memory_core.adapting import PINNED, STATES
from memory_core.testing.base import Contract, Ticks, add
from memory_core.testing.owners import any_vector
from memory_core.where.where import ANY_STATE

KEY: Final = "same key"
SAID: Final = ("user", "the kettle talk")
_REFUSED: Final = (ConflictError, DuplicateIdError, RecordNotFoundError, ScopeError)
"""The answer of an operation that does not reach a record."""

Call = Callable[[BoundMemory, MemoryRecord], object]

CALLS: Final[Mapping[str, tuple[Call, ...]]] = {
    "add": (
        lambda handle, _: run_sync(handle.add, "a kettle", space="team"),
        lambda handle, _: run_sync(handle.add, "a kettle", space="bob"),
        lambda handle, record: run_sync(handle.add, record.text, on_duplicate="merge"),
        lambda handle, record: run_sync(handle.add, record.text, on_duplicate="refuse"),
        lambda handle, record: run_sync(handle.add, Draft("newer", links=[Link("supersedes", record.id)])),
        lambda handle, record: run_sync(handle.add, Draft("a kettle", id=record.id, source_key=KEY)),
    ),
    "add_many": (
        lambda handle, record: run_sync(handle.add_many, [Draft("newer", links=[Link("supersedes", record.id)])]),
        lambda handle, record: run_sync(handle.add_many, [Draft("a kettle", source_key=record.source_key)]),
    ),
    "remember": (lambda handle, _: run_sync(handle.remember, [SAID, ("user", "and on")], session="talk"),),
    "recall": (lambda handle, _: run_sync(handle.recall, "kettle", RecallOptions(floor=False), explain=True),),
    "search": (
        lambda handle, _: run_sync(handle.search, "kettle", floor=False, where=ANY_STATE),
        lambda handle, _: run_sync(handle.search, "kettle", mode="lexical", floor=False, where=ANY_STATE),
        lambda handle, _: run_sync(handle.search, "kettle", mode="substring", where=ANY_STATE, limit=1_000),
    ),
    "search_by_vector": (
        lambda handle, _: run_sync(handle.search_by_vector, any_vector(handle.own) or [1.0], floor=False),
    ),
    "get": (lambda handle, record: run_sync(handle.get, record.id),),
    "update": (
        lambda handle, record: run_sync(handle.update, record.id, Patch(text="changed")),
        lambda handle, record: run_sync(handle.update, record.id, Patch(state="archived")),
    ),
    "supersede": (lambda handle, record: run_sync(handle.supersede, record.id, "changed"),),
    "history": (lambda handle, record: run_sync(handle.history, record.id),),
    "delete": (lambda handle, record: run_sync(handle.delete, record.id),),
    "delete_exactly": (lambda handle, record: run_sync(handle.delete_exactly, {record.id: record.version}),),
    "delete_where": (
        lambda handle, _: run_sync(handle.delete_where, ANY_STATE),
        lambda handle, record: run_sync(handle.delete_where, Where(ids=[record.id], states=STATES), forget=False),
    ),
    "put_many": (
        lambda handle, record: run_sync(
            handle.put_many, [Draft("put", source_key="other")], remove=[record.source_key or ""]
        ),
        lambda handle, record: run_sync(handle.put_many, [Draft("put", source_key=record.source_key)]),
    ),
    "collections": (lambda handle, _: run_sync(handle.collections, ANY_STATE),),
    "postpone": (lambda handle, record: run_sync(handle.postpone, {record.id: record.created_at}),),
    "sweep": (lambda handle, _: run_sync(handle.sweep),),
    "erase": (lambda handle, _: run_sync(handle.erase),),
    "stats": (lambda handle, _: run_sync(handle.stats),),
    "profile": (lambda handle, _: run_sync(handle.profile),),
    "list": (lambda handle, _: run_sync(handle.list, where=ANY_STATE, touch=True, limit=1_000),),
}
"""For each operation of a handle, calls that would reach a record if nothing kept them from it."""
READING: Final = frozenset({"search", "search_by_vector", "recall", "list", "get", "history"})
"""The operations that read spaces."""
CHANGING: Final = frozenset({"add", "update", "supersede", "delete"})
"""The operations that reach writable spaces."""


@dataclass(frozen=True)
class Owners:
    """Ann, who reads a part of her team's memory and writes to the wiki, and Bob, who shares nothing."""

    ann: BoundMemory
    team: BoundMemory
    wiki: BoundMemory
    bob: BoundMemory

    def sharing(self) -> BoundMemory:
        spaces = {"team": self.team.bind(collection="board"), "wiki": self.wiki}
        return self.ann.sharing(spaces, writable=["wiki"])

    def filled(self, clock: Ticks) -> dict[str, MemoryRecord]:
        """A record of each kind: readable, out of reach in the same memory, writable, and somebody else's."""
        places = {"board": self.team.bind(collection="board"), "hidden": self.team.bind(collection="drawer")}
        places |= {"wiki": self.wiki, "bob": self.bob}
        for name, handle in places.items():
            add(handle, Draft(f"the {name} kettle will be gone", expires_at=clock.now.replace(year=2025)))
            run_sync(handle.remember, [SAID], session="talk")
        drafts = {
            name: Draft(f"the {name} kettle is green", source_key=f"{KEY} {name}", tags=[PINNED]) for name in places
        }
        records = {name: add(handle, drafts[name])[0] for name, handle in places.items()}
        clock.advance(days=400)  # a write would free the room of what has expired
        return records


class SharingContract(Contract):
    """A contract: the memories that a handle with spaces reaches, over every operation."""

    @pytest.fixture
    def owners(self, memory: Memory, ann: BoundMemory) -> Owners:
        return Owners(ann, *(memory.bind(app="contract", user=user) for user in ("team", "wiki", "bob")))

    @pytest.mark.parametrize("name", CALLS)
    def test_an_operation_reaches_what_is_granted_and_nothing_else(
        self, owners: Owners, clock: Ticks, name: str
    ) -> None:
        records = owners.filled(clock)
        closed = {"team": owners.team, "bob": owners.bob} | ({} if name in CHANGING else {"wiki": owners.wiki})
        secret = {"hidden", "bob"} | (set[str]() if name in READING | CHANGING else {"board", "wiki"})
        before = {owner: all_of(handle) for owner, handle in closed.items()}
        for call in CALLS[name]:
            for about in records.values():
                try:
                    said = _said(call(owners.sharing(), about))
                except _REFUSED as error:
                    said = str(error)
                except InvalidInputError as error:  # a vector of another dimension, or none
                    if name != "search_by_vector":
                        raise
                    said = str(error)
                if name == "add":  # what it has stored is what it was given
                    said = said.replace(about.text, "")
                for place in secret:
                    assert f"the {place} kettle" not in said, f"{name} told of {place}"
        assert {owner: all_of(handle) for owner, handle in closed.items()} == before
        assert [run_sync(handle.sweep) for handle in (owners.team, owners.bob)] == [2, 1]


def all_of(handle: BoundMemory) -> list[MemoryRecord]:
    """Every record with every field, oldest first."""
    return list(run_sync(handle.list, where=ANY_STATE, order="oldest", limit=1_000).records)


def _said(result: object) -> str:
    """All texts in what an operation returns."""
    match result:
        case None | int() | str():
            return str(result)
        case Page():
            return _said(list(result.records))
        case Hit():
            return _said(result.record)
        case MemoryRecord() | Version():
            return result.text
        case Recalled():
            hits = [each.hit for each in result.considered]
            return " ".join([result.text, _said(list(result.records)), _said(hits)])
        case Profile():
            return " ".join([result.text, _said(list(result.records))])
        case Stats():
            assert result.records == 0, "stats counts the own memory"
            return ""
        case list():
            return " ".join(map(_said, cast("list[object]", result)))
        case _:
            return repr(result)
