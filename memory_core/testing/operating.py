"""The operator: operations on all owners of a store."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from datetime import timedelta

import pytest

from memory_core import Draft, InvalidInputError, Memory, Patch, Scope, Where, run_sync
from memory_core.testing.base import Contract, Ticks, add, everything, optional, texts

PEOPLE = [("a", "b"), ("a", "b:c"), ("a:b", "c"), ("お茶", "アン"), ("contract", "ann"), ("contract", "12:x")]


class OperatorContract(Contract):
    """All owners at once."""

    @optional
    def test_the_operator_sees_every_owner_and_what_each_has(self, memory: Memory) -> None:
        operator = memory.operator()
        assert run_sync(operator.owners) == []
        assert run_sync(operator.stats) == {}
        for count, (app, user) in enumerate(PEOPLE, 1):
            add(memory.bind(app=app, user=user), *(f"tea {n}" for n in range(count)))
        owners = run_sync(operator.owners)
        assert owners == sorted(
            (Scope(app, user) for app, user in PEOPLE), key=lambda owner: (owner.app, owner.user or "")
        )
        stats = run_sync(operator.stats)
        assert {(owner.app, owner.user): counts.records for owner, counts in stats.items()} == {
            person: count for count, person in enumerate(PEOPLE, 1)
        }
        run_sync(operator.handle(Scope(*PEOPLE[0])).erase)
        assert Scope(*PEOPLE[0]) not in run_sync(operator.owners)

    @optional
    def test_the_operator_searches_all_owners(self, memory: Memory) -> None:
        add(memory.bind(user="ann"), "green tea", "the bus is late")
        add(memory.bind(user="bob"), "green tea in the morning", "nothing of it")
        add(memory.bind(app="other", user="ann"), Draft("green tea at noon", kind="fact"))
        operator = memory.operator()
        for mode in ("lexical", "substring"):
            hits = run_sync(operator.search, "green tea", mode=mode)
            assert sorted(texts(hits)) == ["green tea", "green tea at noon", "green tea in the morning"]
            assert {(hit.record.app, hit.record.user) for hit in hits} == {
                ("default", "ann"),
                ("default", "bob"),
                ("other", "ann"),
            }
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            assert len(run_sync(operator.search, "green tea", mode=mode, limit=2)) == 2
            only = run_sync(operator.search, "green tea", mode=mode, where=Where(kinds=["fact"]))
            assert texts(only) == ["green tea at noon"]
        with pytest.raises(InvalidInputError, match="limit"):
            run_sync(operator.search, "green tea", limit=0)

    @optional
    def test_check_and_vacuum_of_a_store_in_use_lose_nothing(self, memory: Memory, clock: Ticks) -> None:
        ann = memory.bind(user="ann")
        operator = memory.operator()
        assert run_sync(operator.check) == []
        records = add(ann, *(Draft(f"tea number {n}", session="s", source_key=str(n)) for n in range(12)))
        for record in records[:4]:
            run_sync(ann.update, record.id, Patch(text="changed " * 9))
        for record in records[4:8]:
            run_sync(ann.delete, record.id)
        run_sync(ann.supersede, records[8].id, "something else")
        add(ann, Draft("soon gone", expires_at=clock.now + timedelta(seconds=1)))
        clock.advance(seconds=1)
        before = everything(ann), run_sync(ann.search, "tea", mode="lexical")
        assert run_sync(operator.check) == []
        run_sync(operator.vacuum)
        assert run_sync(operator.check) == []
        assert (everything(ann), run_sync(ann.search, "tea", mode="lexical")) == before
