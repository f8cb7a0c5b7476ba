"""Damage is found and said."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import Draft, Memory, Where, run_sync

DAMAGES = {
    "DELETE FROM lexical WHERE key = (SELECT min(key) FROM record)": (
        "there are 1 records that no search by words can find"
    ),
    "INSERT INTO chunk VALUES (5, 0, 0, 1, 0, NULL, NULL)": "there are 1 chunks without a record",
    "UPDATE record SET owner = 7 WHERE key = (SELECT min(key) FROM record)": "there are 1 records without an owner",
    "INSERT INTO revision VALUES (5, 1, 'old', 0, 0)": "there are 1 earlier texts without a record",
}


@pytest.mark.parametrize(("statement", "finding"), DAMAGES.items(), ids=DAMAGES.values())
def test_a_store_that_is_not_whole_says_what_is_wrong(tmp_path: Path, statement: str, finding: str) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add_many, ["green tea", "black tea"])
        assert run_sync(memory.operator().check) == []
        with closing(sqlite3.connect(path)) as db:
            db.execute(statement)
            db.commit()
        found = run_sync(memory.operator().check)
        assert any(each.problem.startswith(finding) for each in found), found


def test_tidying_gives_space_back(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"{n} " + "a long text about tea " * 200, session="s") for n in range(200)])
        run_sync(memory.operator().vacuum)
        full = path.stat().st_size
        run_sync(ann.bind(session="s").delete_where, Where(), forget=False)
        run_sync(memory.operator().vacuum)
        assert path.stat().st_size < full / 4
        assert run_sync(memory.operator().owners) == []
