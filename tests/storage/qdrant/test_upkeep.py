"""A bank and maintenance on a Qdrant server: the same as in a file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from memory_core import (
    Draft,
    MaintainPolicy,
    MemoryBank,
    MemoryEntry,
    MemoryQuery,
    maintain,
    run_sync,
    undo_maintenance,
)
from memory_core.lifecycle import Maintenance
from tests.storage.qdrant.conftest import Open

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def fact(text: str, day: int) -> Draft:
    return Draft(text, kind="fact", occurred_at=MAY + timedelta(days=day))


def test_a_bank_compresses_on_a_server_and_goes_on_with_another_connection(connect: Open) -> None:
    for start in (0, 7):
        bank = MemoryBank(memory=connect().bind(user="ann"), task="t")
        for number in range(start, start + 7):
            bank.add_entry(MemoryEntry(id=f"e{number}", command=f"command{number}", step_number=number))
    sources = [summary.source_entries for summary in bank.get_summaries()]
    assert sources == [["e0", "e1", "e2"], ["e3", "e4", "e5"], ["e6", "e7", "e8"]]
    assert [entry.id for entry in bank.get_all_memories()] == [f"e{number}" for number in range(14)]
    assert bank.get_relevant_memories(MemoryQuery(keywords=["command4"]))[0].id == "e4"
    assert bank.get_stats()["compressed_count"] == 9


def test_maintenance_merges_corrects_and_takes_back_on_a_server(connect: Open) -> None:
    ann, policy = connect().bind(user="ann"), MaintainPolicy(contradictions="supersede")
    oslo = run_sync(ann.add, fact("I live in Oslo", 0))
    for day, text in enumerate(("The kettle is big", "the kettle is big."), 1):
        run_sync(ann.add, fact(text, day))
    run_sync(ann.add, replace(fact("I moved to Bergen", 3), data={"corrects": oslo.id}))
    done = run_sync(maintain, ann, policy)
    left = run_sync(ann.list, order="oldest").records
    assert [record.text for record in left] == ["The kettle is big", "I moved to Bergen"]
    assert [version.text for version in run_sync(ann.history, left[1].id)] == ["I live in Oslo", "I moved to Bergen"]
    assert run_sync(maintain, ann, policy) == Maintenance()
    assert run_sync(undo_maintenance, ann, done) == ()
    assert len(run_sync(ann.list).records) == 4
    assert run_sync(maintain, ann, policy) == Maintenance()
    again = run_sync(ann.add, fact("I live in OSLO", 9), on_duplicate="refuse")
    assert again.text == "I live in Oslo"
