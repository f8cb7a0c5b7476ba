"""The program run in this process, with what it prints; a folder of its own, and no settings of the machine."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from memory_core.app.main import main
from tests.app.answers import FILE

SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine decides which memory is used."""
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "APP", "USER", "CONFIG"):
        monkeypatch.delenv(f"MEMORY_CORE_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LOGNAME", "ann")


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command; anything in its JSON is as the shipped schema says. `code=None` allows every exit code."""

    def command(*arguments: str, code: int | None = 0, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        ended = main(list(arguments))
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert code in {ended, None}, f"{arguments} ended with {ended}: {out}{err}"
        assert "Traceback" not in err
        if "--json" in arguments and out:
            insist_on_schema(arguments[0], json.loads(out))
        return Done(ended, out, err)

    return command


def insist_on_schema(command: str, value: object) -> None:
    wanted = {**SCHEMA, "$ref": f"#/commands/{command}"}
    jsonschema.Draft202012Validator(wanted, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(
        value
    )


def import_twice(run: Run, source: Path | str, format_: str, *options: str, refused: int = 0) -> list[dict[str, Any]]:
    """The records of all owners after a dry run and two imports, of which the second adds nothing."""
    arguments = ["import", str(source), "--yes", "--format", format_, "--embedder", "none", "--json", *options]
    code = 1 if refused else 0
    wanted = run(*arguments, "--dry-run", code=code).value
    first = run(*arguments, code=code).value
    assert len(first["refused"]) == refused, first
    assert (wanted["new"], wanted["read"]) == (first["new"], first["read"])
    assert first["known"] == 0
    second = run(*arguments, code=code).value
    assert (second["new"], second["known"], second["read"]) == (0, first["new"], first["read"])
    owners = run("stats", "--all", "--json").value
    found: list[dict[str, Any]] = []
    for each in owners:
        page = run("list", "--app", each["app"], "--user", each["user"], "--order", "oldest", "--json").value
        found += page["records"]
    assert len(found) == first["new"]
    return found


def damaged(path: Path, table: str, column: str) -> None:
    """Half a value in the first row of a table."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            f"UPDATE {table} SET {column} = substr({column}, 1, 9) WHERE rowid = (SELECT min(rowid) FROM {table})"
        )
