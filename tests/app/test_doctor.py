"""`doctor` names what is wrong and repairs what can be repaired."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from memory_core import Draft, Memory, run_sync
from memory_core.storage.sqlite.unfinished_copies import SUFFIX
from memory_core.values.zones import machine_zone_name
from tests.app.conftest import Run

Break = Callable[[Path], object]


def sql(*statements: str) -> Break:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            for statement in statements:
                db.execute(statement)

    return change


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"Ann bought tea number {n}", session="s") for n in range(5)])
        run_sync(ann.add, "a long walk by the river. " * 200)
    return path


def leave_a_copy(path: Path) -> None:
    """As a killed backup does."""
    left = path.with_name(f".monday.db.x1y2{SUFFIX}")
    left.mkdir()
    (left / "monday.db").write_bytes(b"half of a memory")


REPAIRABLE: dict[str, tuple[Break, str]] = {
    "permissions": (lambda path: path.chmod(0o644), "other users can open"),
    "an unfinished copy": (leave_a_copy, "a backup or restore was killed"),
    "a vector of other bytes": (sql("UPDATE chunk SET vector = zeroblob(768) WHERE n = 0"), "the vector of chunk 0"),
    "a text without terms": (sql("DELETE FROM lexical WHERE rowid % 2 = 0"), "no search by words can find"),
    "terms of another text": (sql("UPDATE lexical SET words = words + 1"), "do not match its text"),
    "chunks that are gone": (sql("DELETE FROM chunk"), "texts without chunks"),
    "chunks of nothing": (sql("INSERT INTO chunk VALUES (99, 0, 0, 1, 0, NULL, NULL)"), "chunks without a record"),
    "wrong counts": (sql("UPDATE owner SET records = 99, bytes = 1"), "counted wrongly"),
    "a pending vector": (
        sql("UPDATE chunk SET vector = NULL, vector_digest = NULL"),
        "11 vectors of default/ann still to be computed",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPAIRABLE)
def test_what_can_be_repaired_is_found_and_repaired(run: Run, file: Path, name: str) -> None:
    damage, said = REPAIRABLE[name]
    damage(file)
    found = run("doctor", "--json", code=1).value["problems"]
    assert any(said in each["problem"] and not each["repaired"] for each in found), found
    repaired = run("doctor", "--repair", "--json").value["problems"]
    assert any(each["repaired"] for each in repaired)
    assert run("doctor").out.splitlines() == ["nothing is wrong", f"the zone of this machine: {machine_zone_name()}"]
    assert run("check").out == "nothing is wrong\n"
    assert len(run("list", "--json").value["records"]) == 6
    assert run("search", "Who bought tea number 3?", "--json").value[0]["record"]["text"] == "Ann bought tea number 3"


def test_a_damaged_record_is_left_alone_and_the_way_out_is_named(run: Run, file: Path) -> None:
    sql("UPDATE record SET text = 'Ann bought nothing' WHERE text LIKE '%number 3'")(file)
    for arguments in (["doctor"], ["doctor", "--repair"]):
        (problem,) = [
            each["problem"]
            for each in run(*arguments, "--json", code=1).value["problems"]
            if "not as it was written" in each["problem"]
        ]
    assert "only a backup has what is lost" in problem


def test_what_is_left_and_is_no_damage_sends_nobody_to_a_backup(run: Run, file: Path) -> None:
    sql("DROP INDEX record_time", "UPDATE owner SET next = 3")(file)
    problems = [each["problem"] for each in run("doctor", "--repair", "--json", code=1).value["problems"]]
    assert any("'record_time' is missing" in each for each in problems)
    assert any("beyond their owner's counter" in each for each in problems)
    assert not any(word in each for each in problems for word in ("backup", "damage"))
    assert {each["is_damage"] for each in run("check", "--json", code=1).value["problems"]} == {False}


class Space(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize("free", [1_000, 65 << 20])
def test_a_disk_that_is_full_soon_is_named(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    with file.open("ab") as grown:
        grown.truncate((free << 1) // 16_384 * 16_384 if free > 10_000 else file.stat().st_size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Space(1 << 40, 0, free))
    (found,) = run("doctor", "--json", code=1).value["problems"]
    assert "MiB left" in found["problem"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(b"my shopping list"), "is not a memory store"),
        (sql("PRAGMA application_id = 7"), "is not a memory store"),
        (sql("PRAGMA user_version = 99"), "written by a newer version"),
        (lambda path: path.write_bytes(path.read_bytes()[:20_000]), ""),
        (lambda path: path.with_name("again.db").hardlink_to(path), "hard links"),
    ],
    ids=["text", "foreign", "newer", "cut", "two names"],
)
def test_what_cannot_be_opened_is_one_sentence_and_not_touched(run: Run, file: Path, damage: Break, said: str) -> None:
    damage(file)
    before = file.read_bytes()
    problems = run("doctor", "--repair", "--json", code=1).value["problems"]
    assert any(said in each["problem"] and not each["repaired"] for each in problems), problems
    assert file.read_bytes() == before


def test_the_view_shows_times_and_owners_to_other_programs(run: Run, file: Path) -> None:
    run("add", "the first railway", "--at", "1825-09-27T10:00:00.000001+00:00")
    assert run("sql-view", "--json").value == {"view": "memories"}
    run("sql-view")  # again changes nothing
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        (row,) = db.execute("SELECT * FROM memories WHERE occurred_at < '1900'")
    assert (row["app"], row["user"], row["text"]) == ("default", "ann", "the first railway")
    assert row["occurred_at"] == "1825-09-27T10:00:00.000001Z"
    assert row["accessed_at"] is None
    assert run("check").out == "nothing is wrong\n"
