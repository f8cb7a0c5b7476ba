"""Archives and databases of others have limits: whatever they contain, the answer is one sentence, and soon."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from memory_core.transfer import foreign_files
from memory_core.values.progress import Progress
from tests.app.conftest import Run
from tests.app.test_import_owners import Metadata, write_chroma

NAME = "conversations.json"


def conversation(role: object) -> dict[str, Any]:
    message = {"id": "m", "author": {"role": role}, "content": {"parts": ["hello there"]}}
    return {"conversation_id": str(role), "current_node": "n", "mapping": {"n": {"parent": None, "message": message}}}


def archive(path: Path, content: bytes, name: str = NAME) -> bytearray:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr(name, content)
    return bytearray(path.read_bytes())


def damaged(raw: bytearray) -> None:
    start = raw.find(NAME.encode()) + len(NAME)
    raw[start + 10] ^= 255
    raw[start + 15] ^= 255


def encrypted(raw: bytearray) -> None:
    raw[6] |= 1
    raw[raw.rfind(b"PK\x01\x02") + 8] |= 1


def unknown_method(raw: bytearray) -> None:
    central = raw.rfind(b"PK\x01\x02")
    raw[8:10] = raw[central + 10 : central + 12] = struct.pack("<H", 99)


def cut(raw: bytearray) -> None:
    del raw[len(raw) // 2 :]


UNPACK = "unpack it, and import the file"
AGAIN = "it is damaged or was cut, so download or copy it again"


@pytest.mark.parametrize(
    ("change", "remedy"), [(damaged, AGAIN), (encrypted, UNPACK), (unknown_method, UNPACK), (cut, AGAIN)]
)
def test_an_archive_that_cannot_be_read_is_one_sentence(
    run: Run, tmp_path: Path, change: Callable[[bytearray], None], remedy: str
) -> None:
    raw = archive(tmp_path / "export.ZIP", json.dumps([conversation("user")] * 9).encode())
    change(raw)
    (tmp_path / "export.ZIP").write_bytes(raw)
    for options in (["--format", "chatgpt"], []):  # whose it is cannot be seen
        said = run("import", "export.ZIP", "--yes", "--embedder", "none", *options, code=2).err
        assert "cannot be read: " in said
        assert remedy in said
        assert "--format" not in said


@pytest.mark.parametrize("name", ["conversations (1).json", "mine.JSON"])
def test_an_export_is_seen_under_any_name_and_with_a_message_without_an_author(
    run: Run, tmp_path: Path, name: str
) -> None:
    nobody = conversation("nobody")
    del nobody["mapping"]["n"]["message"]["author"]
    (tmp_path / name).write_text(json.dumps([nobody, conversation("user")]))
    done = run("import", name, "--yes", "--embedder", "none", "--json", code=1)
    assert (done.value["new"], len(done.value["refused"])) == (1, 1)


def test_a_field_that_is_there_twice_is_refused_by_name_and_nothing_else_is(run: Run, tmp_path: Path) -> None:
    """Nobody can tell which value counts."""
    lines = '{"text": "Ann drinks tea", "id": "1"}\n{"text": "Bob sails", "text": "Bob rows", "id": "2"}\n'
    (tmp_path / "notes.jsonl").write_text(lines)
    said = run("import", "notes.jsonl", "--yes", "--format", "jsonl", "--embedder", "none", code=1)
    assert "line 2" in said.out + said.err
    assert "the field 'text' is there twice" in said.out + said.err
    assert "Ann drinks tea" in run("list", "--embedder", "none").out
    twice = json.dumps([conversation("user")]).replace('"id": "m"', '"id": "m", "id": "n"')
    (tmp_path / NAME).write_text(twice)
    assert "the field 'id' is there twice" in run("import", NAME, "--yes", "--format", "chatgpt", code=2).err


def test_an_archive_without_the_file_or_with_a_bomb_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(tmp_path / "export.zip", b"[]", "other.json")
    failed = run("import", "export.zip", "--yes", "--format", "chatgpt", "--embedder", "none", code=2)
    assert "there is no 'conversations.json' in 'export.zip'" in failed.err
    archive(tmp_path / "export.zip", b" " * (2 * foreign_files.MAX_LINE_BYTES))
    failed = run("import", "export.zip", "--yes", "--format", "chatgpt", "--embedder", "none", code=2)
    assert "expands to 33554432 bytes, which no real export does" in failed.err
    archive(tmp_path / "export.zip", json.dumps([conversation("user")]).encode())
    monkeypatch.setattr(foreign_files, "MAX_FILE_BYTES", 100)
    for source in ("export.zip", "notes.txt"):
        (tmp_path / "notes.txt").write_text("x" * 101)
        format_ = "chatgpt" if source == "export.zip" else "document"
        assert (
            "import it in parts"
            in run("import", source, "--yes", "--format", format_, "--embedder", "none", code=2).err
        )


def test_a_role_that_is_no_text_costs_its_own_message_only(run: Run, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps([conversation(["x"]), conversation({}), conversation("user")]))
    done = run("import", NAME, "--yes", "--format", "chatgpt", "--embedder", "none", "--json", code=1)
    assert (done.value["new"], len(done.value["refused"])) == (1, 2)


ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    "SELECT x AS id, 's' AS segment_id, x AS embedding_id FROM n"
)


def test_a_view_in_place_of_a_table_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    path = write_chroma(tmp_path / "chroma.sqlite3", [("tea", {})])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE embeddings")
        db.execute(f"CREATE VIEW embeddings AS {ENDLESS}")
    said = run("import", str(path), "--yes", "--format", "chroma", "--embedder", "none", code=2).err
    assert "is not a database of Chroma" in said


def test_a_database_that_multiplies_its_rows_ends_with_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_files, "LEAST_STEPS", 2_000_000)
    path = write_chroma(tmp_path / "chroma.sqlite3", [(f"tea {number}", {}) for number in range(300)])
    with closing(sqlite3.connect(path)) as db, db:
        for _ in range(12):
            db.execute("INSERT INTO segments SELECT * FROM segments")
    said = run("import", str(path), "--yes", "--format", "chroma", "--embedder", "none", "--dry-run", code=2).err
    assert "takes more work than a file of its size explains; it is not a database of Chroma" in said


def test_real_databases_stay_far_below_the_limit(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_files, "LEAST_STEPS", 0)
    monkeypatch.setattr(foreign_files, "_STEPS_AT_ONCE", 1_000)
    documents: list[tuple[str, Metadata]] = [
        (f"tea number {number}", {"type": "fact", "user_id": "ann", "x": number}) for number in range(2_000)
    ]
    path = write_chroma(tmp_path / "chroma.sqlite3", documents)
    done = run("import", str(path), "--yes", "--format", "chroma", "--embedder", "none", "--dry-run", "--json").value
    assert done["read"] == 2_000


ODD: Sequence[Any] = (None, 7, b"\xff\xfe", "x\0y", "9" * 5_000, '{"a": [1]}')


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd", [ODD, *(pytest.param((each,), marks=pytest.mark.torture) for each in ODD)], ids=lambda odd: repr(odd)[:40]
)
def test_a_value_of_another_kind_in_any_column_is_never_a_defect(run: Run, tmp_path: Path, odd: Sequence[Any]) -> None:
    """Several values take turns, from column to column."""
    turns = cycle(odd)
    with zipfile.ZipFile(Path(__file__).parent / "data" / "peers.zip") as files:
        files.extractall(tmp_path / "peers")
    for source, format_ in (("chroma/chroma.sqlite3", "chroma"), ("mem0/history.db", "mem0")):
        whole, copy = tmp_path / "peers" / source, tmp_path / "copy.db"
        for table, column in columns(whole):
            shutil.copy(whole, copy)
            with closing(sqlite3.connect(copy)) as db:
                try:
                    db.execute(f'UPDATE "{table}" SET "{column}" = ?', (next(turns),))
                    db.commit()
                except sqlite3.Error:  # a constraint of the table
                    continue
            done = run("import", str(copy), "--yes", "--format", format_, "--embedder", "none", "--dry-run", code=None)
            assert done.code in {0, 1, 2}, f"{table}.{column}: {done.err}"


def columns(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'")]
        return [(table, row[1]) for table in tables for row in db.execute(f'PRAGMA table_info ("{table}")')]


def test_a_bar_says_how_much_of_what_is_known_is_done(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Progress] = []
    monkeypatch.setattr("memory_core.app.command.Invocation.progress", lambda _invocation, _title: Bar(told))
    line = {"at": "2026-03-02T09:12:00+01:00", "session": "s", "author": "Ann"}
    lines = [json.dumps({**line, "text": f"line {number}"}) for number in range(600)]
    (tmp_path / "talk.jsonl").write_text("\n\n".join(lines))
    (tmp_path / "tide.txt").write_text("The tide turns at noon. " * 3_000)

    def reports(*arguments: str, stdin: str = "") -> list[tuple[int, int]]:
        told.clear()
        run(*arguments, "--embedder", "none", stdin=stdin)
        assert told[-1].done == told[-1].total
        return [(each.done, each.total) for each in told[:-1]]

    assert reports("import", "talk.jsonl", "--format", "conversation", "--yes") == [
        (done, 600) for done in range(1, 601)
    ]
    parts = reports("import", "tide.txt", "--yes")
    assert {total for _, total in parts} == {len(parts)}
    run("export", "all.jsonl", "--embedder", "none")
    exported = (tmp_path / "all.jsonl").read_text()
    assert reports("import", "all.jsonl", "--file", "b.db")[0] == (512, 600 + len(parts))
    assert reports("import", "-", "--file", "c.db", stdin=exported)[0][0] == 512


class Bar:
    """Keeps what a bar is told."""

    def __init__(self, told: list[Progress]) -> None:
        self._told = told

    def __enter__(self) -> Callable[[Progress], None]:
        return self._told.append

    def __exit__(self, *_: object) -> None:
        pass
