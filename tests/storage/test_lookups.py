"""The index by which a read goes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Draft, Link, Memory, Patch, Scope, Where, run_sync
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
