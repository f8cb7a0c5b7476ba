"""Isolation: one owner never reaches another's records, and a narrow handle never reaches outside its part."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from memory_core import (
    BoundMemory,
    ConflictError,
    Draft,
    DuplicateIdError,
    InvalidInputError,
    Memory,
    MemoryRecord,
    Patch,
    RecallOptions,
    RecordNotFoundError,
    Where,
    run_sync,
)
from memory_core.adapting import PINNED
from memory_core.testing.base import Contract, add, texts
from memory_core.where.where import ANY_STATE

MINE: Final = "my secret tea"

OWNERS: Final[dict[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    "user": (("app", "ann"), ("app", "bob")),
    "app": (("app", "ann"), ("other", "ann")),
    "swapped": (("app", "ann"), ("ann", "app")),
    "shifted slash": (("a/b", "c"), ("a", "b/c")),
    "shifted colon": (("a:b", "c"), ("a", "b:c")),
    "shifted digit": (("1:a", "b"), ("1", ":ab")),
    "joined": (("ab", "c"), ("a", "bc")),
    "case": (("app", "ann"), ("app", "Ann")),
    "case of the app": (("app", "ann"), ("APP", "ann")),
    "trailing space": (("app", "ann"), ("app", "ann ")),
    "leading space": (("app", "ann"), ("app", " ann")),
    "composed": (("app", "andr\u00e9"), ("app", "andre\u0301")),
    "width": (("app", "ann"), ("app", "\uff41nn")),
    "zero width": (("app", "ann"), ("app", "ann\u200b")),
    "wildcards": (("app", "ann"), ("app", "%")),
    "glob": (("app", "ann"), ("app", "*")),
    "number": (("app", "1"), ("app", "1.0")),
    "plus": (("app", "1"), ("app", "+1")),
    "none": (("app", "None"), ("app", "null")),
    "long": (("app", "x" * 511 + "a"), ("app", "x" * 511 + "b")),
}
"""Pairs of owners that a careless comparison, join or encoding would confuse."""

PARTS: Final[dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    "agent": ({"agent": "planner"}, {"agent": "critic"}),
    "session": ({"session": "s1"}, {"session": "s2"}),
    "collection": ({"collection": "c"}, {"collection": "c/1"}),
    "session case": ({"session": "s"}, {"session": "S"}),
    "another key": ({"agent": "x"}, {"session": "x"}),
    "one more key": ({"session": "s1", "agent": "planner"}, {"session": "s1", "agent": "critic"}),
    "unbound": ({"session": "s1"}, {}),
}
"""The keys of a narrow handle, and the keys of a record outside it."""


def cannot_get(handle: BoundMemory, foreign: MemoryRecord) -> None:
    assert run_sync(handle.get, foreign.id) is None


def cannot_list(handle: BoundMemory, foreign: MemoryRecord) -> None:
    for where in (Where(), ANY_STATE, Where(ids=(foreign.id,))):
        for touch in (False, True):
            assert run_sync(handle.list, where=where, touch=touch).records == ()


def cannot_search(handle: BoundMemory, foreign: MemoryRecord) -> None:
    for mode in ("hybrid", "lexical", "substring"):
        for where in (Where(), ANY_STATE, Where(ids=(foreign.id,))):
            assert run_sync(handle.search, "secret", mode=mode, where=where, explain=True) == []


def cannot_search_by_vector(handle: BoundMemory, foreign: MemoryRecord) -> None:
    vector = any_vector(handle)
    if vector is None:
        return
    for where in (Where(), ANY_STATE, Where(ids=(foreign.id,))):
        assert run_sync(handle.search_by_vector, vector, where=where, floor=False) == []


def any_vector(handle: BoundMemory) -> list[float] | None:
    """A vector of the memory's dimensions, read from the error for another length; `None` without an embedder."""
    with pytest.raises(InvalidInputError) as refused:
        run_sync(handle.search_by_vector, [1.0])
    found = re.search(r"have (\d+) numbers", str(refused.value))
    return None if found is None else [1.0] * int(found[1])


def cannot_update(handle: BoundMemory, foreign: MemoryRecord) -> None:
    with pytest.raises(RecordNotFoundError):
        run_sync(handle.update, foreign.id, Patch(text="overwritten"))


def cannot_delete(handle: BoundMemory, foreign: MemoryRecord) -> None:
    with pytest.raises(RecordNotFoundError):
        run_sync(handle.delete, foreign.id)


def cannot_delete_exactly(handle: BoundMemory, foreign: MemoryRecord) -> None:
    with pytest.raises(ConflictError):
        run_sync(handle.delete_exactly, {foreign.id: foreign.version})


def cannot_delete_where(handle: BoundMemory, foreign: MemoryRecord) -> None:
    for where in (Where(), ANY_STATE, Where(ids=(foreign.id,)), Where(session="s1"), Where(data={"secret": True})):
        assert run_sync(handle.delete_where, where).records == 0


def cannot_erase(handle: BoundMemory, _foreign: MemoryRecord) -> None:
    receipt = run_sync(handle.erase)
    assert (receipt.records, receipt.sessions) == (0, 0)


def cannot_count(handle: BoundMemory, _foreign: MemoryRecord) -> None:
    stats = run_sync(handle.stats)
    assert (stats.records, stats.sessions, stats.vectors_pending, dict(stats.by_kind)) == (0, 0, 0, {})


def cannot_learn_by_adding(handle: BoundMemory, foreign: MemoryRecord) -> None:
    """Neither a known id nor a known source key reveals or overwrites a record."""
    try:
        stored = run_sync(handle.add, Draft("mine", id=foreign.id, source_key=foreign.source_key))
    except DuplicateIdError:
        return  # a narrow handle shares ids and source keys with the rest of its owner
    assert stored.text == "mine"
    run_sync(handle.delete, stored.id)


def cannot_learn_by_adding_many(handle: BoundMemory, foreign: MemoryRecord) -> None:
    drafts = [Draft("mine", id=foreign.id), Draft("mine too", source_key=f"also {foreign.source_key}")]
    try:
        stored = run_sync(handle.add_many, drafts)
    except DuplicateIdError:
        return
    assert texts(record for record in stored if record) == ["mine", "mine too"]
    assert run_sync(handle.delete_where, ANY_STATE).records == 2


def cannot_put(handle: BoundMemory, foreign: MemoryRecord) -> None:
    assert run_sync(handle.put_many, [], remove=(foreign.source_key or "",)) == []
    try:
        (stored,) = run_sync(handle.put_many, [Draft("mine", source_key=foreign.source_key)])
    except DuplicateIdError:
        return
    assert stored.text == "mine"
    run_sync(handle.delete, stored.id)


def cannot_list_collections(handle: BoundMemory, _foreign: MemoryRecord) -> None:
    assert run_sync(handle.collections, ANY_STATE) == []


def cannot_postpone(handle: BoundMemory, foreign: MemoryRecord) -> None:
    run_sync(handle.postpone, {foreign.id: foreign.created_at})


def cannot_sweep(handle: BoundMemory, _foreign: MemoryRecord) -> None:
    assert run_sync(handle.sweep) == 0


def cannot_supersede(stranger: BoundMemory, record: MemoryRecord) -> None:
    with pytest.raises(RecordNotFoundError):
        run_sync(stranger.supersede, record.id, "changed")


def cannot_read_history(stranger: BoundMemory, record: MemoryRecord) -> None:
    with pytest.raises(RecordNotFoundError):
        run_sync(stranger.history, record.id)


def cannot_remember(handle: BoundMemory, foreign: MemoryRecord) -> None:
    (mine,) = run_sync(handle.remember, [("user", foreign.text)])
    assert mine.id != foreign.id
    run_sync(handle.delete, mine.id)


def cannot_recall(handle: BoundMemory, foreign: MemoryRecord) -> None:
    recalled = run_sync(handle.recall, "secret", RecallOptions(floor=False))
    assert not recalled.records
    assert foreign.text not in recalled.text


def cannot_read_profile(handle: BoundMemory, foreign: MemoryRecord) -> None:
    profile = run_sync(handle.profile)
    assert not profile.records
    assert foreign.text not in profile.text


ATTEMPTS: Final[dict[str, Callable[[BoundMemory, MemoryRecord], None]]] = {
    "add": cannot_learn_by_adding,
    "add_many": cannot_learn_by_adding_many,
    "search": cannot_search,
    "search_by_vector": cannot_search_by_vector,
    "get": cannot_get,
    "update": cannot_update,
    "delete": cannot_delete,
    "delete_exactly": cannot_delete_exactly,
    "delete_where": cannot_delete_where,
    "erase": cannot_erase,
    "stats": cannot_count,
    "list": cannot_list,
    "put_many": cannot_put,
    "collections": cannot_list_collections,
    "postpone": cannot_postpone,
    "sweep": cannot_sweep,
    "supersede": cannot_supersede,
    "history": cannot_read_history,
    "remember": cannot_remember,
    "recall": cannot_recall,
    "profile": cannot_read_profile,
}
"""For each operation of a handle, a check that it does not reach a record outside it."""


class OwnerContract(Contract):
    """Isolation, generated over every operation."""

    @pytest.mark.parametrize("pair", OWNERS.values(), ids=OWNERS.keys())
    def test_two_owners_never_meet(self, memory: Memory, pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
        one, other = (memory.bind(app=app, user=user) for app, user in pair)
        for mine, theirs in ((one, other), (other, one)):
            _attempt_everything(mine, theirs)
            assert run_sync(mine.erase).records == 2

    @pytest.mark.parametrize("pair", PARTS.values(), ids=PARTS.keys())
    def test_a_narrow_handle_never_reaches_outside(
        self, ann: BoundMemory, pair: tuple[dict[str, str], dict[str, str]]
    ) -> None:
        narrow, elsewhere = pair
        _attempt_everything(ann.bind(**elsewhere), ann.bind(**narrow))

    def test_a_wide_handle_sees_what_its_narrow_ones_write(self, ann: BoundMemory) -> None:
        for name in ("agent", "session", "collection"):
            (record,) = add(ann.bind(**{name: "x"}), f"written through {name}")
            assert getattr(record, name) == "x"
            assert run_sync(ann.get, record.id) == record
        assert run_sync(ann.stats).records == 3


def _attempt_everything(mine: BoundMemory, theirs: BoundMemory) -> None:
    """Write through `mine`, try each operation through `theirs`, and find `mine` untouched."""
    before = add(
        mine,
        Draft(
            MINE,
            source_key=f"{mine}"[-100:],
            data={"secret": True},
            tags=(PINNED,),
            session=mine.scope.session or "private",
        ),
        Draft("another secret", source_key=f"also {mine}"[-101:]),
    )
    run_sync(mine.search, "secret")  # fills the caches of the store
    for name, attempt in ATTEMPTS.items():
        attempt(theirs, before[0])
        seen = list(run_sync(mine.list, order="oldest").records)
        assert seen == before, name
        assert run_sync(mine.get, before[0].id) == before[0]
        assert len(run_sync(mine.search, "secret", mode="lexical")) == 2
        assert run_sync(mine.stats).records == 2
