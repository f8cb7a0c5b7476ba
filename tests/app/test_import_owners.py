"""The owner of an imported memory: each user that the source names is an owner, unless the command says otherwise."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from tests.app.conftest import Run

Metadata = dict[str, str | int | bool | float]
DOCUMENTS: Sequence[tuple[str, Metadata]] = (
    ("Ann's cat is called Momo", {"user_id": "ann", "team": "red"}),
    ("Bob is looking for a new job", {"user_id": "bob", "team": "red"}),
    ("Number seven sails", {"user_id": 7, "team": "blue", "user": "Tom"}),
    ("The tide turns at noon", {"team": "blue"}),
)


@pytest.fixture
def chroma(tmp_path: Path) -> Path:
    return write_chroma(tmp_path / "chroma.sqlite3", DOCUMENTS)


def write_chroma(path: Path, documents: Sequence[tuple[str, Metadata]]) -> Path:
    """The tables of Chroma that the importer reads."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            "CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT);"
            "CREATE TABLE segments (id TEXT, collection TEXT, scope TEXT);"
            "CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT);"
            "CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, "
            "float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));"
            "INSERT INTO collections VALUES('c', 'memories'); INSERT INTO segments VALUES('s', 'c', 'METADATA');"
        )
        for number, (text, metadata) in enumerate(documents, 1):
            db.execute("INSERT INTO embeddings VALUES (?, 's', ?)", (number, f"m{number}"))
            for key, value in {"chroma:document": text, **metadata}.items():
                column = {str: "string_value", int: "int_value", float: "float_value", bool: "bool_value"}[type(value)]
                db.execute(f"INSERT INTO embedding_metadata (id, key, {column}) VALUES (?, ?, ?)", (number, key, value))
    return path


def texts(run: Run) -> dict[str, list[str]]:
    """The texts of each user."""
    users = [each["user"] for each in run("stats", "--all", "--embedder", "none", "--json").value]
    return {user: [each["text"] for each in listed(run, user)] for user in users}


def listed(run: Run, user: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(
        "list", "--user", user, "--order", "oldest", "--json", "--embedder", "none"
    ).value["records"]
    return found


def importing(*more: str) -> list[str]:
    return ["import", "chroma.sqlite3", "--yes", "--format", "chroma", "--embedder", "none", "--user", "shared", *more]


@pytest.mark.usefixtures("chroma")
def test_each_user_id_of_chroma_is_an_owner_and_the_report_names_them(run: Run) -> None:
    done = run(*importing())
    assert "owners: default/7, default/ann, default/bob" in done.err
    assert texts(run) == {
        user: [text] for user, (text, _) in zip(("ann", "bob", "7", "shared"), DOCUMENTS, strict=True)
    }
    assert listed(run, "7")[0]["data"]["user"] == "Tom"  # the person it is about
    assert run(*importing("--json")).value["known"] == 4


@pytest.mark.usefixtures("chroma")
def test_another_metadata_key_may_name_the_user(run: Run) -> None:
    run(*importing("--user-from", "team"))
    assert {user: len(found) for user, found in texts(run).items()} == {"red": 2, "blue": 2}


def test_fields_of_mem0_that_a_memory_has_as_its_own_may_name_the_user(run: Run, tmp_path: Path) -> None:
    client = QdrantClient(path=str(tmp_path / "qdrant"))
    client.create_collection("mem0", models.VectorParams(size=1, distance=models.Distance.DOT))
    payloads = [{"data": "The gate is open", "agent_id": "helper"}, {"data": "Ann sails", "user_id": "ann"}]
    client.upsert("mem0", [models.PointStruct(id=n, vector=[1.0], payload=it) for n, it in enumerate(payloads, 1)])
    client.close()
    command = ["import", "qdrant", "--yes", "--embedder", "none", "--user-from", "agent_id", "--json"]
    done = run(*command, code=1).value
    assert [each["place"] for each in done["refused"]] == ["mem0, point 2"]
    assert texts(run) == {"helper": ["The gate is open"]}


def test_the_author_of_a_line_of_a_conversation_may_be_its_user(run: Run, tmp_path: Path) -> None:
    line = {"at": "2026-03-02T09:12:00+01:00", "session": "s", "text": "Roger."}
    lines = [json.dumps({**line, "author": author}) for author in ("Ann", "Ben")]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines))
    run("import", "talk.jsonl", "--format", "conversation", "--yes", "--embedder", "none", "--user-from", "author")
    assert texts(run) == {"Ann": ["Roger."], "Ben": ["Roger."]}


@pytest.mark.usefixtures("chroma")
def test_what_has_no_such_metadata_is_refused_by_name(run: Run) -> None:
    done = run(*importing("--user-from", "user", "--json"), code=1).value
    assert (done["new"], len(done["refused"])) == (1, 3)
    assert done["refused"][0]["place"] == "memories, m1"
    assert "its metadata 'user' is None, not the name of a user" in done["refused"][0]["reason"]
    assert texts(run) == {"Tom": ["Number seven sails"]}


@pytest.mark.usefixtures("chroma")
def test_everything_may_become_one_users_and_keeps_whose_it_was(run: Run) -> None:
    done = run(*importing("--one-user"))
    assert "names their owners" not in done.err
    assert texts(run) == {"shared": [text for text, _ in DOCUMENTS]}
    assert [each["data"].get("user_id") for each in listed(run, "shared")] == ["ann", "bob", 7, None]


def test_what_cannot_be_the_name_of_a_user_is_refused(run: Run, tmp_path: Path) -> None:
    names: list[Any] = [True, 1.5, " ", "a\0b", "x" * 5_000]
    write_chroma(tmp_path / "chroma.sqlite3", [("text", {"user_id": name}) for name in names])
    done = run(*importing("--json"), code=1).value
    assert (done["read"], len(done["refused"])) == (0, len(names))


@pytest.mark.usefixtures("chroma")
def test_options_that_contradict_each_other_are_refused(run: Run) -> None:
    assert "give only one of them" in run(*importing("--user-from", "team", "--one-user"), code=2).err
