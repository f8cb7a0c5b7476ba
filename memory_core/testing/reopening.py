"""The contract of durable stores: writes are there when the store is opened again."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import pytest

from memory_core import BoundMemory, ClosedError, Draft, ForgottenError, Patch, Where, run_sync
from memory_core.models import MemoryRecord
from memory_core.testing.base import Contract, MakeMemory, Ticks, add, texts
from memory_core.where.where import ANY_STATE


class ReopeningContract(Contract):
    """Subclass it together with `StoreContract` for a durable store that several processes can open.

    Here all calls of `make_memory` in one test open the same store, which is empty at first.
    """

    def test_opening_returns_the_memory_and_may_be_repeated(self, make_memory: MakeMemory, clock: Ticks) -> None:
        memory = make_memory(clock)
        assert run_sync(memory.open) is memory
        assert run_sync(memory.open) is memory
        run_sync(memory.close)
        with pytest.raises(ClosedError, match="make a new Memory"):
            run_sync(memory.open)

    def test_writes_are_there_after_reopening(self, make_memory: MakeMemory, clock: Ticks) -> None:
        with make_memory(clock) as memory:
            ann = memory.bind(user="ann")
            tea, old, gone = add(ann, Draft("green tea", data={"cups": 2}), "Oslo", Draft("a secret", source_key="s"))
            clock.advance(hours=1)
            run_sync(ann.update, tea.id, Patch(text="jasmine tea"))
            run_sync(ann.supersede, old.id, "Bergen")
            run_sync(ann.delete, gone.id)
            run_sync(ann.update, run_sync(ann.add, "left behind").id, Patch(left=True))
            run_sync(ann.put_many, [Draft("an item", source_key="k", session="s1")])
            run_sync(memory.bind(user="bob").add, "what Bob said")
            before = _observed(ann, tea.id, old.id)
        with make_memory(clock) as memory:
            ann = memory.bind(user="ann")
            assert _observed(ann, tea.id, old.id) == before
            assert [hit.record.id for hit in run_sync(ann.search, "jasmine")] == [tea.id]
            assert [owner.user for owner in run_sync(memory.operator().owners)] == ["ann", "bob"]
            with pytest.raises(ForgottenError):
                run_sync(ann.add, Draft("a secret", source_key="s"))
            (again,) = run_sync(ann.put_many, [Draft("an item", source_key="k", session="s1")])
            assert again.rev == 1

    def test_a_write_of_one_memory_is_found_by_another_at_once(self, make_memory: MakeMemory, clock: Ticks) -> None:
        with make_memory(clock) as one, make_memory(clock) as two:
            mine, theirs = one.bind(user="ann"), two.bind(user="ann")
            for n in range(3):
                (record,) = add(mine, f"tea {n}")
                assert run_sync(theirs.get, record.id) == record
                assert f"tea {n}" in texts(run_sync(theirs.search, "tea"))
                run_sync(theirs.update, record.id, Patch(text=f"coffee {n}"))
                assert f"coffee {n}" in texts(run_sync(mine.search, "coffee"))
                assert texts(run_sync(mine.search, "tea")) == []
            run_sync(theirs.delete_where, Where())
            assert run_sync(mine.search, "coffee") == []
            assert run_sync(mine.stats).records == 0

    def test_what_one_memory_leaves_and_resumes_another_no_longer_finds_and_finds_again(
        self, make_memory: MakeMemory, clock: Ticks
    ) -> None:
        with make_memory(clock) as one, make_memory(clock) as two:
            mine, theirs = one.bind(user="ann"), two.bind(user="ann")
            record, _ = add(mine, "green tea", "black tea")
            for left in (True, False, True):
                run_sync(mine.update, record.id, Patch(left=left))
                found = ["black tea"] if left else ["black tea", "green tea"]
                for mode in ("hybrid", "lexical", "substring"):
                    assert sorted(texts(run_sync(theirs.search, "tea", mode=mode))) == found
                assert sorted(texts(run_sync(theirs.list).records)) == found


def _observed(handle: BoundMemory, *ids: str) -> tuple[object, ...]:
    everything: tuple[MemoryRecord, ...] = run_sync(handle.list, where=ANY_STATE, order="oldest").records
    return everything, run_sync(handle.stats), [run_sync(handle.history, id) for id in ids]  # noqa: A001
