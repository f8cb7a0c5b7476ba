"""The index by which a read goes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_core import AllOf, AnyOf, Draft, FieldCondition, Link, Memory, Patch, Scope, Where, run_sync
from memory_core.requests import ListRequest
from memory_core.storage.sqlite.paging import page
from memory_core.storage.sqlite.where import conditions
from tests.storage.consistency import assert_consistent

SCOPES = [
    Scope("default", "ann", session="s"),
    Scope("default", "ann", collection="c"),
    Scope("default", "ann", agent="a"),
]


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: str(scope)[:60])
def test_a_record_that_is_named_is_looked_up_whatever_else_the_handle_fixes(scope: Scope, tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=None) as memory:
        handle = memory.bind(user="ann", session=scope.session, collection=scope.collection, agent=scope.agent)
        run_sync(handle.add_many, [f"text {n}" for n in range(200)])
    found = conditions(1, scope, Where(ids=("x",)), 0)
    with closing(sqlite3.connect(file)) as db:
        plan = db.execute(f"EXPLAIN QUERY PLAN SELECT key FROM record WHERE {found.sql}", found.parameters).fetchall()
    assert "record_id" in str(plan)


def test_records_with_a_link_are_looked_up_by_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    wanted = Where(links=(Link("derived_from", "x"),))
    with Memory(file, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add_many, [f"text {n}" for n in range(200)])
    found = conditions(1, Scope("default", "ann"), wanted, 0)
    with closing(sqlite3.connect(file)) as db:
        plan = db.execute(f"EXPLAIN QUERY PLAN SELECT key FROM record WHERE {found.sql}", found.parameters).fetchall()
    assert "link_target" in str(plan)


def plan_of(file: Path, where: Where) -> str:
    """The plan by which SQLite reads a page of what satisfies conditions."""
    said: list[str] = []
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.set_trace_callback(said.append)
        page(
            db, Scope("default", "ann"), ListRequest(where=where, order="oldest", limit=9, cursor=None, touch=False), 0
        )
        db.set_trace_callback(None)
        [read] = [each for each in said if "FROM record WHERE" in each]
        return str(db.execute(f"EXPLAIN QUERY PLAN {read}").fetchall())


def test_the_turns_beside_others_are_looked_up_however_many_the_owner_has(tmp_path: Path) -> None:
    file, at = tmp_path / "m.db", datetime(2026, 5, 4, tzinfo=UTC)
    said = [Draft(f"{n}", session=f"s{n // 9}", occurred_at=at + timedelta(minutes=n)) for n in range(90)]
    beside = [
        AllOf(
            (
                FieldCondition("session", "eq", f"s{n}"),
                FieldCondition("occurred_at", "between", (at + timedelta(minutes=9 * n), at + timedelta(minutes=90))),
            )
        )
        for n in (1, 5)
    ]
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, said)
        found = run_sync(ann.list, where=Where(matching=(AnyOf(beside),)), order="oldest")
    assert [record.text for record in found] == [str(n) for n in (*range(9, 18), *range(45, 54))]
    plan = plan_of(file, Where(matching=(AnyOf(beside),)))
    assert "COVERING INDEX record_session (owner=? AND session=? AND occurred_at>? AND occurred_at<?)" in plan
    assert "record_time" not in plan


def test_sessions_that_are_listed_are_looked_up(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add_many, [Draft(f"{n}", session=f"s{n // 9}") for n in range(90)])
    plan = plan_of(file, Where(matching=(FieldCondition("session", "in", ("s1", "s5")),)))
    assert "record_session (owner=? AND session=?)" in plan


def test_links_are_filed_with_each_change_of_a_record(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        one, two = run_sync(ann.add_many, ["one", "two"])
        assert one is not None
        assert two is not None
        links = [Link("derived_from", one.id), Link("confirmed_by", one.id), Link("read", two.id)]
        three = run_sync(ann.add, Draft("three", links=links))
        assert_consistent(file)
        run_sync(ann.update, three.id, Patch(text="three again", links=[Link("follows", two.id)]))
        assert_consistent(file)
        run_sync(ann.update, three.id, Patch(links=[Link("follows", one.id), Link("derived_from", two.id)]))
        assert_consistent(file)
        run_sync(ann.delete, one.id)
        assert_consistent(file)
        assert run_sync(memory.operator().check) == []
        run_sync(ann.delete, two.id)
    assert_consistent(file)
