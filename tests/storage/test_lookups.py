"""Which index a read goes by."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Memory, Scope, Where, run_sync
from memory_core.storage.sqlite.where import conditions

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
