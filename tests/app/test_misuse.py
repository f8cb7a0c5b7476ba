"""The mistakes of people and scripts at the command line: unset variables, mixed-up names, odd terminals."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer

from memory_core.app.main import ENTRY_POINTS, program
from tests.app.conftest import Run

pytestmark = pytest.mark.uncovered

PROGRAM = f"{sys.executable} -m memory_core"
BOUND = "setpriv --bounding-set=-dac_override,-dac_read_search" if os.getuid() == 0 else ""
"""Permissions apply to root, too."""


@pytest.fixture(autouse=True)
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the model, which takes a moment to load for each command."""
    monkeypatch.setenv("MEMORY_CORE_EMBEDDER", "none")


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run commands in bash; `memory-core` is the program."""
    script = f'memory-core() {{ {PROGRAM} "$@"; }}; {script}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("option", ["--file", "--app", "--user", "--embedder"])
def test_an_unset_variable_of_a_script_does_not_lead_to_another_memory(run: Run, option: str) -> None:
    run("add", "The spare key is with Mrs Okafor")
    refused = run("erase", "--yes", option, "", code=2)
    assert refused.err == f"memory-core: {option} must not be empty; leave it out for the default\n"
    assert run("stats", "--json").value["records"] == 1


SECRET = "A-SECRET-KEY"
NO_FILE = [f"qdrnt+https://{SECRET}@host/memories", f"s3://bucket/x.db?key={SECRET}", f"qdrant:{SECRET}@host"]
"""Addresses of no kind that is known."""
SERVER = f"qdrant+https://{SECRET}@127.0.0.1:1/memories"
COMMANDS: dict[str, list[str]] = {
    name: ["memory.db" for each in command.params if each.param_type_name == "argument" and each.required]
    for name, command in typer.main.get_command(program()).commands.items()  # type: ignore[attr-defined]
    if name not in {"formats", *(point.name for point in entry_points(group=ENTRY_POINTS))}
}
"""The commands that work on a memory, each with as many arguments as it needs."""


def refused_and_nothing_made(run: Run, folder: Path, *call: str) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    refused = run(*call, code=None)
    assert refused.code == 2, call
    assert SECRET not in refused.out + refused.err, call
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before, call
    assert not [path for path in folder.iterdir() if path.name.startswith(("q", "s3"))], call


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_an_address_of_no_known_kind_and_does_not_show_its_key(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    run("add", "The spare key is with Mrs Okafor")
    for address in NO_FILE:
        refused_and_nothing_made(run, tmp_path, command, *COMMANDS[command], "--file", address)
    monkeypatch.setenv("MEMORY_CORE_FILE", NO_FILE[0])
    refused_and_nothing_made(run, tmp_path, command, *COMMANDS[command])


@pytest.mark.parametrize("command", ["restore", "sql-view"])
def test_what_makes_or_changes_a_file_refuses_a_server(run: Run, tmp_path: Path, command: str) -> None:
    run("add", "The spare key is with Mrs Okafor")
    refused_and_nothing_made(run, tmp_path, command, *COMMANDS[command], "--file", SERVER)


@pytest.mark.parametrize("address", [*NO_FILE, SERVER])
@pytest.mark.parametrize(
    "call",
    [
        ["backup", "ADDRESS"],
        ["backup", "ADDRESS", "--overwrite"],
        ["export", "ADDRESS"],
        ["export", "ADDRESS", "--format", "langgraph"],
        ["eval", "ADDRESS", "--make", "1"],
        ["eval", "ADDRESS"],
        ["copy", "ADDRESS"],
        ["restore", "ADDRESS", "--file", "new.db"],
        ["import", "ADDRESS"],
        *(
            ["import", "ADDRESS", "--format", each]
            for each in ("markdown", "chroma", "mem0", "chatgpt", "adk", "langgraph")
        ),
        ["maintain", "--undo", "ADDRESS"],
        ["serve", "--tokens", "ADDRESS"],
        ["serve", "--socket", "ADDRESS"],
    ],
)
def test_an_address_in_place_of_a_file_is_refused_and_its_key_is_not_shown(
    run: Run, tmp_path: Path, call: list[str], address: str
) -> None:
    run("add", "The spare key is with Mrs Okafor")
    if call[0] == "copy" and address == SERVER:
        pytest.skip("that is what it is for")
    refused_and_nothing_made(run, tmp_path, *(address if part == "ADDRESS" else part for part in call))


def test_every_file_with_texts_is_for_its_owner_only(run: Run, tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        run("add", "The safe opens with 2580")
        run("backup", "backup.db")
        run("restore", "backup.db", "--file", "restored.db")
        run("export", "export.jsonl")
        run("eval", "questions.jsonl", "--make", "1")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_file()}
    assert len(modes) >= 5
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize("name", ["memory.db", "other.db", "link.db"])
def test_an_export_never_replaces_a_memory(run: Run, tmp_path: Path, name: str) -> None:
    run("add", "The spare key is with Mrs Okafor")
    run("backup", "other.db")
    (tmp_path / "link.db").symlink_to("other.db")
    refused = run("export", name, "--overwrite", code=2)
    assert "which an export would destroy" in refused.err
    assert run("stats", "--file", name, "--json").value["records"] == 1


@pytest.mark.parametrize("format_", ["jsonl", "mem0"])
def test_an_export_of_a_mistyped_owner_makes_no_empty_file(run: Run, tmp_path: Path, format_: str) -> None:
    run("add", "The spare key is with Mrs Okafor", "--user", "tom")
    refused = run("export", "out", "--format", format_, "--only-owner", "--user", "tm", code=2)
    assert "default/tm has no memories in memory.db; it has those of default/tom" in refused.err
    assert not (tmp_path / "out").exists()


def test_a_server_has_a_cache_of_its_own(run: Run) -> None:
    refused = run("serve", "--write", "--file", "qdrant://127.0.0.1:1/memories", "--cache-mb", "64", code=2)
    assert "cache_bytes and read_only are for memories in a file, not for a QdrantStore" in refused.err


def test_a_memory_is_not_restored_from_itself(run: Run) -> None:
    run("add", "The spare key is with Mrs Okafor")
    refused = run("restore", "memory.db", "--overwrite", "--yes", code=2)
    assert "is the backup itself" in refused.err
    assert run("stats", "--json").value["records"] == 1


@pytest.mark.parametrize("time", ["0001-01-01", "9999-12-31T23:59:59", "2026-13-01"])
def test_a_time_outside_the_calendar_is_one_sentence(run: Run, time: str) -> None:
    """Without an offset it is local time, which may have no time in UTC."""
    done = run("add", "tea", "--at", time, code=None)
    assert done.code in {0, 2}, done.err
    assert "defect" not in done.err


@pytest.mark.process
def test_a_terminal_that_lacks_a_character_prints_its_escape() -> None:
    """Such as a cron job, or a container without a locale."""
    done = shell(
        "export PYTHONIOENCODING=ascii; memory-core add 'Ann drinks \u8336' && memory-core search Ann --explain"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Ann drinks \\u8336") == 2


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("memory-core add tea >&-", 0),
        ("memory-core add tea 2>&-", 0),
        ("memory-core add tea >&- 2>&- <&-", 0),
        ("memory-core add - <&-", 2),
        ("memory-core erase <&-", 2),
        ("memory-core list --limit 0 2>&-", 2),
    ],
)
def test_a_closed_stream_is_an_empty_one(run: Run, script: str, code: int) -> None:
    run("add", "coffee")
    done = shell(script)
    assert done.returncode == code, done.stderr
    assert "defect" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.process
@pytest.mark.skipif(bool(BOUND) and shutil.which("setpriv") is None, reason="root needs setpriv for this")
@pytest.mark.parametrize(
    ("name", "reading", "writing"),
    [
        (".", ("search key", "check", "export -"), ("add tea", "erase --yes", "import all.jsonl")),
        ("memory.db", ("search key",), ("add tea",)),
    ],
)
def test_a_memory_that_may_only_be_read_is_read(
    run: Run, tmp_path: Path, name: str, reading: tuple[str, ...], writing: tuple[str, ...]
) -> None:
    """In a folder or as a file without permission to write, such as an archive or a volume of a container."""
    run("add", "The spare key is with Mrs Okafor")
    run("export", "all.jsonl")
    (tmp_path / name).chmod(0o555 if name == "." else 0o444)
    only_reading = f"{BOUND} {PROGRAM}"
    try:
        for command in reading:
            done = shell(f"{only_reading} {command}")
            assert (done.returncode, done.stdout != "") == (0, True), done.stderr
        for command in writing:
            done = shell(f"{only_reading} {command}")
            assert done.returncode == 2, done.stdout
            assert "may not write the memory file or its folder" in done.stderr
    finally:
        (tmp_path / name).chmod(0o755)
    assert run("stats", "--json").value["records"] == 1
