"""The table of fields agrees with the values, the columns and the view that follow it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from memory_core import Draft, Memory, MemoryRecord, Patch
from memory_core.records.fields import CHECKS, FIELDS, OFFSET
from memory_core.storage.sqlite.views import VIEW, add_view

NAMES = [field.name for field in FIELDS]


def test_a_record_has_the_fields_of_the_table_in_its_order_and_its_owner() -> None:
    assert [each.name for each in fields(MemoryRecord)] == [*NAMES, "app", "user"]


def test_a_patch_changes_the_fields_that_can_change() -> None:
    assert {each.name for each in fields(Patch)} == {field.name for field in FIELDS if field.can_change and field.check}


def test_each_field_of_a_draft_is_checked() -> None:
    assert {each.name for each in fields(Draft)} - {"passages"} == CHECKS.keys() - {"state", "left"}


async def test_the_table_and_the_view_of_a_file_have_a_column_for_each_field(tmp_path: Path) -> None:

    path = tmp_path / "ann.db"
    async with Memory(path, embedder=None) as memory:
        await memory.bind(app="a", user="ann").add("tea")
    add_view(path)
    with closing(sqlite3.connect(path)) as db:
        columns = [name for _, name, *_ in db.execute("PRAGMA table_info(record)")]
        seen = [name for _, name, *_ in db.execute(f"PRAGMA table_info({VIEW})")]
    assert set(columns) == {"key", "owner", "digest", OFFSET, *NAMES}
    assert seen == ["app", "user", *NAMES, OFFSET]
