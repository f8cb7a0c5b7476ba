"""Files of other programs, damaged or made to do harm: each importer reads what it can, and names the rest.

Databases are kept as SQL, and changed in their cells or in their bytes.
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memory_adk.radbot import importing as radbot
from memory_core import InvalidInputError
from memory_core.app.formats import IMPORTERS, entry_of, sources
from memory_core.app.import_look import look_at
from memory_core.app.mapping import Keys, Ownership
from memory_core.app.settings import Settings
from memory_core.app.showing import as_json
from memory_core.app.sources.markdown import markdown
from memory_core.formats import ForeignPoint, Found, Refused
from memory_core.records.draft_to_record import check_draft
from tests.fuzz.conftest import Run, begin, insist_on_what_was_there
from tests.fuzz.mutating import (
    CORPUS,
    HOSTILE,
    changed_bytes,
    changed_json,
    changed_lines,
    each,
    insist_on_sentence,
    kept,
    mutants,
)

SUBJECT = "foreign_files"
FORMATS = [name for name in sources() if name != "radbot"]  # which reads a server
NAMES = {"chatgpt": "conversations", "claude": "conversations", "spade-llm": "bot_interactions"}
"""Names of files that an importer looks at."""
WRONG_CELLS = (
    7,
    -(2**63),
    2**63 - 1,
    1e308,
    float("inf"),
    b"\xff\xfe",
    b"",
    "x\0y",
    "9" * 5_000,
    '{"a": [1]}',
    "[" * 3_000,
)


@cache
def as_database(sql: bytes) -> bytes:
    """The bytes of a database."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(sql.decode())
        return db.serialize()


def changed_cells(choice: random.Random, content: bytes) -> bytes:
    """A database with one to three cells of another type or text."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(content)
        try:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'")]
            for _ in range(choice.randint(1, 3)):
                _change_cell(choice, db, choice.choice(tables))
            db.commit()
        except (sqlite3.Error, UnicodeDecodeError):
            return changed_bytes(choice, content)  # it was damaged before
        return db.serialize()


def _change_cell(choice: random.Random, db: sqlite3.Connection, table: str) -> None:
    column = choice.choice([row[1] for row in db.execute(f'PRAGMA table_info ("{table}")')])
    rows = db.execute(f'SELECT rowid, CAST("{column}" AS BLOB) FROM "{table}"').fetchall()
    if not rows:
        return
    rowid, before = choice.choice(rows)
    wrong: Any = choice.choice([*WRONG_CELLS, *(one for one in HOSTILE if isinstance(one, str | float) or one is None)])
    if isinstance(before, bytes) and before[:1] in b"{[" and before and choice.random() < 0.7:
        wrong = changed_json(choice, before)
    if isinstance(wrong, bytes | str) and choice.random() < 0.8:  # as text, whatever its bytes are
        raw = wrong if isinstance(wrong, bytes) else wrong.encode("utf-8", "surrogatepass")
        value = f"CAST(X'{raw.hex()}' AS TEXT)"
        parameters: tuple[Any, ...] = (rowid,)
    else:
        value, parameters = "?", (wrong if not isinstance(wrong, str) else wrong.encode("utf-8", "replace"), rowid)
    try:
        db.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {value} WHERE rowid = ?', parameters)
    except sqlite3.IntegrityError:
        return


def changed(choice: random.Random, content: bytes) -> bytes:
    """A file of any format, changed where it matters."""
    if content.startswith(b"SQLite format 3\0"):
        return changed_cells(choice, content) if choice.random() < 0.85 else changed_bytes(choice, content)
    if content.startswith(b"PK\3\4") and choice.random() < 0.3:
        return _archive(changed_json(choice, json.dumps([{"mapping": {}, "id": None}]).encode()))
    if content[:1] in b"{[" and b"\n{" in content:
        return changed_lines(choice, content)
    return changed_json(choice, content) if choice.random() < 0.7 else changed_bytes(choice, content)


def _archive(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", content)
    return out.getvalue()


def seeds(format_: str) -> dict[str, list[tuple[str, bytes]]]:
    """The inputs of a format by suffix, databases as their bytes."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for name, content in kept(f"{SUBJECT}/{format_}"):
        suffix = Path(name).suffix
        whole = as_database(content) if suffix == ".sql" else content
        found.setdefault(".db" if suffix == ".sql" else suffix, []).append((name, whole))
    return found


OWN = Settings(file="memory.db", app="default", user="ann", embedder="none", named_user=True)
FIELDS = ("user_id", "user", "x", "timestamp", "at", "date", "namespace.1", "key", "value", "type", "n", "topic")


def look(folder: Path, format_: str, suffix: str, content: bytes) -> None:
    """Look at what a file would become, as the program shows it, once with fields that the command names."""
    source = folder / f"{NAMES.get(format_, 'source')}{suffix}"
    source.write_bytes(content)
    choice = random.Random(content)
    named = Keys(*(choice.choice((None, None, *FIELDS)) for _ in range(5)))
    importer = entry_of(IMPORTERS, format_)
    for keys in (Keys(), named):
        try:
            seen = asyncio.run(look_at(importer(str(source)), Ownership(OWN, keys)))
            Console(file=io.StringIO()).print(seen.table())
            assert json.loads(as_json(seen.to_dict())) is not None
            seen.insist_on_one_person(Ownership(OWN).default)
        except InvalidInputError as error:
            insist_on_sentence(error)


def check(folder: Path, run: Run, format_: str, suffix: str, content: bytes) -> None:
    """A look by the program, and a move."""
    source = folder / f"{NAMES.get(format_, 'source')}{suffix}"
    source.write_bytes(content)
    begin()
    arguments = ("import", str(source), "--format", format_, "--embedder", "none", "--user", "ann")
    looked = run(*arguments, "--dry-run")
    assert run(*arguments, "--yes", "--json") == looked
    insist_on_what_was_there()


@pytest.mark.parametrize("format_", FORMATS)
def test_the_kept_files(folder: Path, run: Run, format_: str) -> None:
    for suffix, found in seeds(format_).items():
        contents = (content for _, content in found)
        each(f"{SUBJECT}/{format_}", contents, suffix, partial(check, folder, run, format_, suffix))


@pytest.mark.parametrize("count", [8, pytest.param(1_000, marks=pytest.mark.torture)])
@pytest.mark.parametrize("format_", FORMATS)
def test_changed_files(folder: Path, format_: str, count: int) -> None:
    for suffix, found in seeds(format_).items():
        made = mutants(found, count, changed)
        each(f"{SUBJECT}/{format_}", made, suffix, partial(look, folder, format_, suffix))


@pytest.mark.parametrize("count", [1, pytest.param(100, marks=pytest.mark.torture)])
@pytest.mark.parametrize("format_", FORMATS)
def test_changed_files_through_the_program(folder: Path, run: Run, format_: str, count: int) -> None:
    for suffix, found in seeds(format_).items():
        made = mutants(found, count, changed, seed=11)
        each(f"{SUBJECT}/{format_}", made, suffix, partial(check, folder, run, format_, suffix))


def test_every_importer_of_files_has_a_corpus() -> None:
    assert {path.name for path in (CORPUS / SUBJECT).iterdir()} == {*sources()}


def check_point(content: bytes) -> None:
    """A point of RadBot's collection: a draft that can be stored, or a reason."""
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError):
        return
    if not isinstance(payload, dict):
        return
    try:
        _, draft = radbot.draft_of("radbot:x:1", payload)
        check_draft(draft)
    except InvalidInputError as error:
        insist_on_sentence(error)


@pytest.mark.parametrize("count", [100, pytest.param(100_000, marks=pytest.mark.torture)])
def test_points_of_radbot(count: int) -> None:
    found = kept(f"{SUBJECT}/radbot")
    each(f"{SUBJECT}/radbot", (content for _, content in found), ".json", check_point)
    each(f"{SUBJECT}/radbot", mutants(found, count, changed_json), ".json", check_point)


async def test_a_bad_point_of_radbot_costs_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    payloads: list[dict[str, Any]] = [
        {"text": "tea", "user_id": "ann"},
        {"text": "milk", "user_id": "ann", "session_id": "s" * 600},
        {"text": "rum", "user_id": "ann", "timestamp": 1e300},
        {"text": "gin", "user_id": "ann", "tags": [f"tag {number}" for number in range(300)]},
    ]

    async def pages(*_: object) -> AsyncIterator[list[ForeignPoint]]:
        yield [ForeignPoint(str(number), payload) for number, payload in enumerate(payloads)]

    monkeypatch.setattr(radbot, "foreign_points", pages)
    found = [item async for item in radbot.radbot("http://127.0.0.1:6333")]
    assert [item.place for item in found if isinstance(item, Refused)] == ["point 2"]
    for item in found:
        if isinstance(item, Found) and item.place != "point 0":
            with pytest.raises(InvalidInputError):
                check_draft(item.draft)


LONG_CHARS = 400_000
"""So many of them took an importer minutes or hours, where each of them made it read the rest again."""


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["#", " ", " #", "- a\n", "a: b\n", "`", "```\n", "["])
async def test_long_notes_take_no_longer_for_being_odd(tmp_path: Path, unit: str) -> None:
    for start in ("# x", "---\na: [", "---\na:\n"):
        (tmp_path / "notes.md").write_text(start + unit * (LONG_CHARS // len(unit)) + "x\n---\ny")
        assert [item async for item in markdown(str(tmp_path / "notes.md"))]
