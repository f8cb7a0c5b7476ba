"""Sharing: a handle never writes where it may only read, and never reads what was not granted to it."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import copy
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
from memory_core.testing.owners import ATTEMPTS, any_vector

ANY_STATE: Final = Where(states=STATES)
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

    def test_every_operation_is_called(self) -> None:
        assert CALLS.keys() == ATTEMPTS.keys()
        assert CALLS.keys() >= READING | CHANGING

    @pytest.mark.parametrize("name", CALLS)
    def test_an_operation_reaches_what_is_granted_and_nothing_else(
        self, owners: Owners, clock: Ticks, name: str
    ) -> None:
        records = owners.filled(clock)
        closed = {"team": owners.team, "bob": owners.bob} | ({} if name in CHANGING else {"wiki": owners.wiki})
        secret = {"hidden", "bob"} | (set[str]() if name in READING | CHANGING else {"board", "wiki"})
        before = {owner: _all_of(handle) for owner, handle in closed.items()}
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
        assert {owner: _all_of(handle) for owner, handle in closed.items()} == before
        assert [run_sync(handle.sweep) for handle in (owners.team, owners.bob)] == [2, 1]

    @pytest.mark.parametrize("name", ["update", "supersede", "delete", "history"])
    def test_a_change_by_id_goes_where_the_record_is_if_that_may_be_written_to(
        self, owners: Owners, clock: Ticks, name: str
    ) -> None:
        records, both = owners.filled(clock), owners.sharing()
        (call, *_) = CALLS[name]
        for place in ("hidden", "bob"):
            with pytest.raises(RecordNotFoundError):
                call(both, records[place])
        if name != "history":
            with pytest.raises(ScopeError, match="'team', which is shared for reading only"):
                call(both, records["board"])
        else:
            call(both, records["board"])
        before = _all_of(owners.wiki)
        call(both, records["wiki"])
        assert (_all_of(owners.wiki) == before) is (name == "history")
        assert _all_of(owners.ann) == []

    def test_reads_are_counted_for_the_owner_alone(self, owners: Owners, clock: Ticks) -> None:
        owners.filled(clock)
        (own,) = add(owners.ann, "my kettle")
        page = run_sync(owners.sharing().list, touch=True)
        assert len(page.records) == 5  # the talks and the kettles of board and wiki, and one's own
        counts = {record.id: record.access_count for record in run_sync(owners.sharing().list).records}
        assert {id_ for id_, count in counts.items() if count} == {own.id}

    def test_an_id_of_several_owners_is_that_of_the_own_memory_first(self, owners: Owners) -> None:
        both = owners.sharing()
        for handle in (owners.bob, owners.wiki, owners.ann):
            add(handle, Draft(f"of {handle.scope.user}", id="one id"))
        for user in ("ann", "wiki"):
            record = run_sync(both.get, "one id")
            assert record is not None
            assert record.user == user
            run_sync(both.delete, "one id")
        assert run_sync(both.get, "one id") is None
        assert run_sync(owners.bob.get, "one id") is not None

    def test_a_conversation_is_remembered_whatever_a_space_has_remembered(self, owners: Owners, clock: Ticks) -> None:
        owners.filled(clock)
        remembered = run_sync(owners.sharing().remember, [SAID, ("user", "and on")], session="talk")
        assert [record.user for record in remembered] == ["ann", "ann"]
        assert _all_of(owners.ann) == remembered

    def test_a_cursor_belongs_to_its_spaces(self, owners: Owners) -> None:
        for handle in (owners.ann, owners.team, owners.wiki, owners.bob):
            add(handle, *(f"note {n}" for n in range(3)))
        one = owners.ann.sharing({"other": owners.wiki})
        cursor = run_sync(one.list, limit=2).cursor
        assert len(run_sync(one.list, limit=9, cursor=cursor).records) == 4
        for other in (
            owners.ann.sharing({"other": owners.bob}),
            owners.wiki.sharing({"other": owners.ann}),
            owners.ann,
        ):
            with pytest.raises(InvalidInputError, match="cursor"):
                run_sync(other.list, limit=2, cursor=cursor)
        with pytest.raises(InvalidInputError, match="cursor"):
            run_sync(one.list, cursor=run_sync(owners.ann.list, limit=1).cursor)

    def test_spaces_stay_when_a_handle_is_narrowed_or_copied(self, memory: Memory, owners: Owners) -> None:
        (shared,) = add(owners.wiki, "the wiki kettle")
        (elsewhere,) = add(owners.ann, Draft("my kettle", session="monday"))
        open_handle = memory.bind(app="contract").sharing({"wiki": owners.wiki}, writable=["wiki"])
        with pytest.raises(ScopeError, match="user open"):
            run_sync(open_handle.get, shared.id)
        with pytest.raises(ScopeError, match="user open"):
            run_sync(open_handle.list)
        with pytest.raises(ScopeError, match="user open"):
            run_sync(open_handle.add, "x", space="wiki")
        with pytest.raises(ScopeError, match="has the owner of another space"):
            open_handle.bind(user="wiki")
        bound = copy.deepcopy(open_handle.bind(user="ann", session="friday"))
        assert bound.spaces == {"wiki": "write"}
        assert run_sync(bound.get, shared.id) == shared
        assert run_sync(bound.get, elsewhere.id) is None
        assert run_sync(bound.own.get, shared.id) is None
        assert bound.own.spaces == bound.sharing({}).spaces == {}

    def test_the_spaces_of_a_space_are_not_shared(self, owners: Owners) -> None:
        (secret,) = add(owners.bob, "the bob kettle")
        through = owners.ann.sharing({"team": owners.team.sharing({"bob": owners.bob})})
        assert run_sync(through.get, secret.id) is None
        assert run_sync(through.list).records == ()

    def test_as_of_and_links_reach_no_further(self, owners: Owners, clock: Ticks) -> None:
        both = owners.sharing()
        (secret,) = add(owners.bob, "the bob kettle was red")
        then = clock.now
        clock.advance(days=1)
        run_sync(owners.bob.supersede, secret.id, "the bob kettle is blue")
        add(owners.wiki, Draft("the wiki kettle follows", links=[Link("follows", secret.id)]))
        mine = run_sync(both.add, Draft("my kettle", links=[Link("supersedes", secret.id), Link("follows", secret.id)]))
        page = run_sync(both.list, where=Where(as_of=then, states=STATES))
        assert page.records == ()
        assert [version.text for version in run_sync(both.history, mine.id)] == ["my kettle"]
        block = run_sync(both.recall, "kettle", RecallOptions(floor=False, links=("follows", "supersedes")))
        assert "bob" not in block.text


def _all_of(handle: BoundMemory) -> list[MemoryRecord]:
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
