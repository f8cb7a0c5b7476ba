"""`import`: what memories of other programs become, shown before anything is written, and the same after kills."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core import Memory, Where
from tests.app.conftest import Run
from tests.app.test_import_owners import write_chroma

PEOPLE = ("Ann", "Ben", "Cem", "Dora", "Ege", "Fay", "Gil", "Hana", "Ivo", "Jun")
START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def lines(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in found))
    return path


def diary(count: int) -> list[dict[str, Any]]:
    """Facts of ten people, with the fields of no program in particular."""
    return [
        {
            "id": f"m{number}",
            "text": f"{PEOPLE[number % 10]} keeps item {number} in drawer {number % 7}",
            "user_id": PEOPLE[number % 10].lower(),
            "thread_id": f"talk {number % 30}",
            "created_at": (START + timedelta(minutes=number)).isoformat(),
            "role": "user",
            "mood": "calm",
        }
        for number in range(count)
    ]


def stored(run: Run, file: str = "memory.db") -> dict[str, list[dict[str, Any]]]:
    """The records of each user, oldest first."""
    users = [each["user"] for each in run("stats", "--all", "--file", file, "--embedder", "none", "--json").value]
    found: dict[str, list[dict[str, Any]]] = {}
    for user in users:
        with Memory(file, embedder=None) as memory:
            page = memory.bind(user=user).sync.list(order="oldest", limit=1_000, where=Where())
            found[user] = [record.to_dict() for record in page.records]
    return found


def test_people_times_and_sessions_of_json_lines_are_kept_and_twice_adds_nothing(run: Run, tmp_path: Path) -> None:
    given = diary(500)
    lines(tmp_path / "theirs.jsonl", given)
    done = run("import", "theirs.jsonl", "--yes", "--embedder", "none", "--json").value
    assert (done["read"], done["new"], done["refused"], len(done["owners"])) == (500, 500, [], 10)
    found = stored(run)
    assert {user: len(records) for user, records in found.items()} == {name.lower(): 50 for name in PEOPLE}
    for user, records in found.items():
        theirs = [each for each in given if each["user_id"] == user]
        assert [each["text"] for each in records] == [each["text"] for each in theirs]
        assert [each["session"] for each in records] == [each["thread_id"] for each in theirs]
        assert [datetime.fromisoformat(each["occurred_at"]) for each in records] == [
            datetime.fromisoformat(each["created_at"]) for each in theirs
        ]
        assert {(each["role"], each["kind"]) for each in records} == {("user", "message")}
        assert all(each["data"] == {"mood": "calm"} for each in records)
    again = run("import", "theirs.jsonl", "--yes", "--embedder", "none", "--json").value
    assert (again["new"], again["known"]) == (0, 500)
    assert stored(run) == found


def test_nothing_is_written_before_somebody_has_agreed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines(tmp_path / "theirs.jsonl", diary(20))
    refused = run("import", "theirs.jsonl", "--embedder", "none", code=2)
    assert "nothing is imported yet" in refused.err
    assert all(f"default/{name.lower()} " in refused.err for name in PEOPLE)  # what would happen was shown
    shown = run("import", "theirs.jsonl", "--embedder", "none", "--dry-run").out
    assert all(f"default/{name.lower()} " in shown for name in PEOPLE)
    assert "Ann keeps item 0 in drawer 0" in shown
    assert "20 memories read, 20 would be new" in shown
    assert not Path("memory.db").exists()


def test_several_people_never_become_one_without_a_word(run: Run, tmp_path: Path) -> None:
    documents: list[Any] = [("Ann sails", {"user": "Ann"}), ("Ben rows", {"user": "Ben"})]
    write_chroma(tmp_path / "chroma.sqlite3", documents)
    refused = run("import", "chroma.sqlite3", "--yes", "--embedder", "none", code=2).err
    assert "the field 'user' names 2 people (Ann, Ben), who would all become default/ann" in refused
    assert "--user-from user" in refused
    assert not Path("memory.db").exists()
    run("import", "chroma.sqlite3", "--yes", "--embedder", "none", "--user-from", "user")
    assert {user: [each["text"] for each in found] for user, found in stored(run).items()} == {
        "Ann": ["Ann sails"],
        "Ben": ["Ben rows"],
    }
    run("import", "chroma.sqlite3", "--yes", "--embedder", "none", "--one-user", "--file", "one.db")
    assert list(stored(run, "one.db")) == ["ann"]


def test_the_command_may_say_which_field_is_what(run: Run, tmp_path: Path) -> None:
    given = {
        "text": "The tide turns",
        "customer": 7,
        "topic": "sea",
        "room": "blue",
        "when": 1767603600000,
        "who": "Ann",
    }
    lines(tmp_path / "theirs.jsonl", [given, {"text": "No customer"}])
    fields = ["--user-from", "customer", "--kind-from", "topic", "--session-from", "room", "--time-from", "when"]
    done = run(
        "import", "theirs.jsonl", "--yes", "--embedder", "none", "--json", *fields, "--author-from", "who", code=1
    ).value
    assert [each["place"] for each in done["refused"]] == ["theirs.jsonl, line 2"]
    assert "its metadata 'room' is None" in done["refused"][0]["reason"]
    ((user, (record,)),) = stored(run).items()
    assert (user, record["kind"], record["session"], record["author"]) == ("7", "sea", "blue", "Ann")
    assert datetime.fromisoformat(record["occurred_at"]) == datetime(2026, 1, 5, 9, tzinfo=UTC)


def test_a_folder_of_notes_becomes_a_memory_for_each_section(run: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "house").mkdir(parents=True)
    (notes / "house" / "keys.md").write_text(
        "---\ntitle: Keys\ndate: 2026-03-02\nauthor: Ann\ntags: [home, keys]\n---\nAll keys are blue.\n\n"
        "# Spare key\nWith Mrs Okafor.\n\n## Second\n\n```\n# no heading\n```\n# Empty\n"
    )
    (notes / "plain.md").write_text("Just a line.")
    (notes / "broken.md").write_bytes(b"\xff\xfe\x00")
    done = run("import", "notes", "--yes", "--embedder", "none", "--json", code=1).value
    assert [each["place"] for each in done["refused"]] == ["broken.md"]
    records = {each["text"]: each for each in stored(run)["ann"]}
    assert set(records) == {
        "keys\n\nAll keys are blue.",
        "keys\n\n# Spare key\nWith Mrs Okafor.",
        "keys > Spare key\n\n## Second\n\n```\n# no heading\n```",
        "Just a line.",
    }
    spare = records["keys\n\n# Spare key\nWith Mrs Okafor."]
    assert (spare["author"], spare["tags"], spare["kind"]) == ("Ann", ["home", "keys"], "note")
    assert spare["data"] == {"file": "house/keys.md", "headings": ["Spare key"], "title": "Keys"}
    assert spare["occurred_at"].startswith("2026-03-02T00:00")
    (notes / "house" / "keys.md").write_text("# Spare key\nWith Mr Finch now.\n")
    assert run("import", "notes", "--yes", "--embedder", "none", "--json", code=1).value["known"] == 2
    assert "# Spare key\nWith Mr Finch now." in {each["text"] for each in stored(run)["ann"]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"text": "x"', "not JSON"),
        (b"[1]", "not a JSON object but list"),
        (b'{"n": 1}', "it has no text under any of"),
        (b"[" * 100_000, "not JSON"),
        (b"\x00\xff", "not JSON"),
    ],
    ids=["cut", "list", "no text", "deep", "no UTF-8"],
)
def test_a_line_that_cannot_be_used_is_named_with_its_place(run: Run, tmp_path: Path, line: bytes, said: str) -> None:
    (tmp_path / "theirs.jsonl").write_bytes(line + b'\n{"text": "The tide turns"}\n')
    done = run("import", "theirs.jsonl", "--yes", "--embedder", "none", "--json", code=1).value
    assert done["new"] == 1
    assert done["refused"][0]["place"] == "theirs.jsonl, line 1"
    assert said in done["refused"][0]["reason"]


def test_items_of_langgraph_become_readable_texts_and_labels_may_name_owners(run: Run, tmp_path: Path) -> None:
    peer = pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    with peer.SqliteStore.from_conn_string(str(tmp_path / "graph.db")) as store:
        store.setup()
        store.put(("users", "ann"), "home", {"text": "Ann lives in Rome", "since": 2020})
        store.put(("users", "ben"), "pet", {"animal": "dog", "name": "Rex"})
    run("import", "graph.db", "--yes", "--embedder", "none", "--user-from", "namespace.1")
    found = {user: (records[0]["text"], records[0]["data"]["value"]) for user, records in stored(run).items()}
    assert found == {
        "ann": ("Ann lives in Rome\nsince: 2020", {"text": "Ann lives in Rome", "since": 2020}),
        "ben": ("animal: dog\nname: Rex", {"animal": "dog", "name": "Rex"}),
    }


def test_a_time_that_cannot_be_read_is_not_said_to_be_absent_and_another_field_may_have_it(
    run: Run, tmp_path: Path
) -> None:
    lines(tmp_path / "theirs.jsonl", [{"text": "Ann swims", "created_at": "last week", "when": "2026-03-02T09:12:00Z"}])
    command = ["import", "theirs.jsonl", "--embedder", "none", "--dry-run"]
    assert "1 of 1 memory: no time that can be read, so would be dated now (--time-from names its field)" in (
        run(*command).err
    )
    assert "no time" not in run(*command, "--time-from", "when").err


LANGMEM: Mapping[str, tuple[Mapping[str, object], str]] = {
    "tool": ({"content": "Ann keeps bees"}, "Ann keeps bees"),
    "tool with a schema": ({"content": {"category": "ui", "wish": "dark"}}, "category: ui\nwish: dark"),
    "manager": ({"kind": "Memory", "content": {"content": "Ann sails Marigold"}}, "Ann sails Marigold"),
    "manager with a schema": (
        {"kind": "Profile", "content": {"name": "Ann", "age": 60}},
        "kind: Profile\nname: Ann\nage: 60",
    ),
    "manager of texts": ({"kind": "Memory", "content": "Ann is in Rome"}, "Ann is in Rome"),
    "prompt": ({"data": "Answer in rhymes"}, "Answer in rhymes"),
    "empty": ({"kind": "Memory", "content": {}}, "content: {}"),
}
"""Items as LangMem writes them, and their texts."""


def test_items_of_langmem_say_what_they_contain(run: Run, tmp_path: Path) -> None:
    peer = pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    with peer.SqliteStore.from_conn_string(str(tmp_path / "graph.db")) as store:
        store.setup()
        for key, (value, _) in LANGMEM.items():
            store.put(("memories",), key, value)
    run("import", "graph.db", "--yes", "--embedder", "none")
    found = {each["data"]["key"]: (each["data"]["value"], each["text"]) for each in stored(run)["ann"]}
    assert found == LANGMEM


def test_what_langmem_writes_itself_is_readable(run: Run, tmp_path: Path) -> None:
    peer = pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    langmem: Any = pytest.importorskip("langmem", reason="langmem is not installed")
    with peer.SqliteStore.from_conn_string(str(tmp_path / "graph.db")) as store:
        store.setup()
        tool = langmem.create_manage_memory_tool(namespace=("memories",), store=store)
        tool.invoke({"content": "Ann keeps bees", "action": "create"})
    run("import", "graph.db", "--yes", "--embedder", "none")
    assert [each["text"] for each in stored(run)["ann"]] == ["Ann keeps bees"]


def test_what_a_source_is_can_be_seen_or_is_asked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\x01\x02")
    assert "name it with --format" in run("import", "data.bin", "--yes", code=2).err
    assert "there is no file or folder 'nowhere'" in run("import", "nowhere", "--yes", code=2).err
    run("add", "The tide turns", "--embedder", "none")
    said = run("import", "memory.db", "--file", "other.db", "--yes", code=2).err
    assert "`memory-core copy TARGET --file memory.db`" in said
    assert run("copy", "other.db", "--file", "memory.db", "--embedder", "none", "--json").value["copied"] == 1
    run("export", "all.jsonl", "--embedder", "none")
    assert run("import", "all.jsonl", "--file", "copy.db", "--embedder", "none", "--json").value["written"] == 1
    lines(tmp_path / "books.jsonl", [{"text": "Ann reads on the train", "format": "paperback"}])
    assert run("import", "books.jsonl", "--yes", "--embedder", "none", "--json").value["new"] == 1
