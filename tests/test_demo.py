"""The demo with a conversation of one's own: what it says of bad lines, and that a second time adds nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import typer

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[1] / "examples"
CONVERSATION = EXAMPLES / "data" / "conversation.jsonl"

Demo = Callable[..., subprocess.CompletedProcess[str]]


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "one_memory.py"), *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Demo:
    """The demo in this process, in a folder of its own and a narrow terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    program = typer.main.get_command(_typer_of(import_module("one_memory").main))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = program.main(args=[str(each) for each in arguments], standalone_mode=False)
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return run


def _typer_of(main: Callable[..., None]) -> typer.Typer:
    made = typer.Typer()
    made.command()(main)
    return made


def test_a_conversation_is_remembered_once_and_answers_questions(tmp_path: Path) -> None:
    arguments = ("--input", str(CONVERSATION), "--questions", str(EXAMPLES / "data" / "questions.txt"))
    first = demo(tmp_path, *arguments)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "18 memories read, 18 of them new" in first.stdout
    expected = {
        "What must Tom not eat?": "Peanuts are the bad ones",
        "Where are the spare fuses?": "In the tin box under the chart table",
        "When were the insurance papers sent?": "I sent the insurance papers to the harbour office",
        "Which berth do we have?": "berth 14 on the east pier",
    }
    questions = [*expected, "Why does the old bracket not work?"]
    for question, answer in expected.items():
        _, _, hits = first.stdout.partition(question)
        others = [hits.find(other) for other in questions if other in hits]
        assert answer in hits[: min(others, default=None)], question
    second = demo(tmp_path, *arguments)
    assert second.returncode == 0
    assert "18 memories read, 0 of them new" in second.stdout


def test_bad_lines_are_named_and_the_rest_is_remembered(here: Demo, tmp_path: Path) -> None:
    good = {"at": "2026-03-02T09:12:00+01:00", "session": "s", "author": "Nadia", "text": "The tide turns at noon"}
    lines = [
        json.dumps(good),
        "{not json",
        json.dumps({**good, "at": "yesterday"}),
        json.dumps({**good, "at": "2026-03-02T09:12:00"}),
        json.dumps({key: value for key, value in good.items() if key != "author"}),
        '["a", "list"]',
        "",
        json.dumps({**good, "text": "The ferry leaves at one"}),
        '"half a surrogate \\ud800"',
        json.dumps({**good, "text": "half \ud800"}),
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(lines) + "\n")
    done = here("--input", str(path))
    assert done.returncode == 1
    assert "2 memories read, 2 of them new" in done.stdout
    for number, reason in {
        2: "not JSON",
        3: "bad time 'yesterday'",
        4: "has no offset from UTC",
        5: "'author' is missing",
        6: "not a JSON object but list",
        9: "not a JSON object but str",
        10: "a lone surrogate",
    }.items():
        assert f"line {number}: " in done.stderr
        assert reason in done.stderr.split(f"line {number}: ")[1].splitlines()[0]
    assert "7 of 9 memories could not be used" in done.stderr


def test_of_many_bad_lines_the_first_are_named(here: Demo, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("[" * 100_000 + "\n" + "{not json\n" * 499)
    done = here("--input", str(path))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].endswith("line 1: not JSON that can be read: it has too many levels")
    assert lines[10] == "… and 490 more"
    assert lines[11:] == ["500 of 500 memories could not be used"]


def test_questions_that_are_no_text_are_one_sentence(here: Demo, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_bytes(bytes(range(256)))
    done = here("--input", str(CONVERSATION), "--questions", str(path))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "it is not text in UTF-8" in line
    assert not done.stdout  # nothing has begun


@pytest.mark.parametrize("content", [b"my shopping list", b"SQLite format 3\0" + bytes(84)], ids=["text", "cut"])
def test_a_store_file_that_is_something_else_is_one_sentence(here: Demo, tmp_path: Path, content: bytes) -> None:
    store = tmp_path / "notes.db"
    store.write_bytes(content)
    done = here("--input", str(CONVERSATION), "--store", str(store))
    assert done.returncode == 2
    assert "is not a memory store" in done.stderr
    assert "Traceback" not in done.stderr
    assert store.read_bytes() == content


def test_a_missing_conversation_is_one_sentence(here: Demo, tmp_path: Path) -> None:
    done = here("--input", str(tmp_path / "nowhere.jsonl"))
    assert done.returncode == 2
    assert "No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_commands_that_the_demo_prints_at_its_end_work(
    here: Demo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here("--input", str(CONVERSATION), "--store", "ann's.db")
    import_module("demo.transcript").commands(Path("ann's.db"), app="demo", user="ann")
    said = capsys.readouterr().out
    *lines, serve = [line for line in said.splitlines() if "--app demo" in line]
    assert len(lines) == 4
    script = "\n".join(["set -e", *lines]).replace("  memory-core ", f"  {sys.executable} -m memory_core ")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "berth 14" in done.stdout
    serve = serve.replace("  memory-core ", f"  {sys.executable} -m memory_core ")
    with subprocess.Popen(
        ["bash", "-c", f"exec {serve.strip()} --port 0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as page:
        assert page.stderr is not None
        assert "http://127.0.0.1:" in page.stderr.readline()
        page.terminate()
        assert page.wait(300) == 0
