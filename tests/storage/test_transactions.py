"""A read of one state of the file, whatever interrupts it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from memory_core.storage.sqlite.transactions import snapshot


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_read_that_is_interrupted_as_it_begins_leaves_no_transaction(steps: int) -> None:
    answers = iter([True])  # the first time only
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.set_progress_handler(lambda: next(answers, False), steps)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"), snapshot(db):
            pass
        assert not db.in_transaction
        with snapshot(db):
            assert db.execute("SELECT 1").fetchone() == (1,)
