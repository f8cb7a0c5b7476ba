"""Every command, through a pipe and through a terminal."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import memory_core
from memory_core import Draft, Link, Memory, MemoryRecord, Patch
from memory_core.app.main import program
from tests.app.answers import shapes
from tests.app.conftest import SCHEMA, Run, insist_on_schema

ROOT = Path(__file__).parents[2]
COMMANDS = [str(info.name) for info in program().registered_commands]
PROGRAM = [sys.executable, "-m", "memory_core"]


@pytest.fixture
def words_only(tmp_path: Path) -> None:
    """Without the model, which takes a moment to load for each command."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "memory-core.toml").write_text('embedder = "none"\n')


def remember(run: Run, *texts: str) -> list[str]:
    """The ids of new memories."""
    return [run("add", text, "--json").value["id"] for text in texts]


def invocations(folder: Path, id: str, other: str) -> dict[str, list[str]]:  # noqa: A002
    """A call of every command on a memory with two records, in an order in which all of them work."""
    lines = json.dumps({"at": "2026-03-02T09:12:00+01:00", "session": "s", "author": "Nadia", "text": "The tide turns"})
    (folder / "talk.jsonl").write_text(f"{lines}\n")
    (folder / "questions.jsonl").write_text(f"{json.dumps({'question': 'Where is the key?', 'expect': id})}\n")
    return {
        "add": ["add", "Ann drinks green tea", "--kind", "preference", "--tag", "tea", "--importance", "0.7"],
        "search": ["search", "Where is the key?", "--explain"],
        "recall": ["recall", "Where is the key?", "--explain"],
        "why": ["why", "Where is the key?", "--expect", id],
        "list": ["list", "--limit", "1"],
        "show": ["show", id],
        "update": ["update", id, "--text", "The spare key is with Mrs Okafor, second floor"],
        "edit": ["edit", id],
        "supersede": ["supersede", other, "Ann lives in Rome"],
        "history": ["history", id],
        "stats": ["stats", "--all"],
        "eval": ["eval", "questions.jsonl"],
        "maintain": ["maintain", "--dry-run"],
        "export": ["export", "all.jsonl", "--overwrite"],
        "import": ["import", "all.jsonl"],
        "formats": ["formats"],
        "backup": ["backup", "copy.db", "--overwrite"],
        "restore": ["restore", "copy.db", "--file", "restored.db", "--overwrite", "--yes"],
        "copy": ["copy", "moved.db"],
        "reembed": ["reembed", "hashing"],
        "check": ["check"],
        "doctor": ["doctor"],
        "sql-view": ["sql-view"],
        "forget": ["forget", id, "--yes"],
        "erase": ["erase", "--yes"],
    }


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that appends a word."""
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nprintf " edited" >> "$1"\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))


@pytest.mark.usefixtures("words_only", "editor")
def test_a_text_is_corrected_in_an_editor(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (key,) = remember(run, "The spare key is with Mrs Okafor")
    assert run("edit", key, "--json").value["text"].split() == [
        "The",
        "spare",
        "key",
        "is",
        "with",
        "Mrs",
        "Okafor",
        "edited",
    ]
    assert len(run("history", key, "--json").value) == 2
    empty = tmp_path / "empty"
    empty.write_text('#!/bin/sh\n: > "$1"\n')
    empty.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(empty))
    assert "nothing was changed" in run("edit", key, code=2).err
    assert "default/ann has no memory 'nobody'" in run("edit", "nobody", code=2).err


@pytest.mark.usefixtures("words_only")
def test_conditions_of_the_library_bound_a_search_and_a_list(run: Run) -> None:
    run("add", "Old tea", "--at", "2020-01-01T00:00:00+00:00")
    run("add", "New tea", "--at", "2026-01-01T00:00:00+00:00")
    since = ["--where", '{"since": "2025-01-01T00:00:00+00:00"}']
    assert [each["record"]["text"] for each in run("search", "tea", "--json", *since).value] == ["New tea"]
    assert [each["text"] for each in run("list", "--json", *since).value["records"]] == ["New tea"]
    for wrong in ("[1]", "{", '{"sinse": 1}'):
        assert run("search", "tea", "--where", wrong, code=2).err.startswith("memory-core: ")


@pytest.mark.usefixtures("words_only")
def test_stats_have_sizes_with_units_and_times_to_the_minute(run: Run) -> None:
    run("add", "tea", "--at", "2026-01-01T00:00:12+00:00")
    said = run("stats").out
    assert "size of the file" in said
    assert re.search(r"size of texts +\d+ bytes", said)
    assert re.search(r"oldest +2026-01-01 00:00Z *$", said, re.MULTILINE)


@pytest.mark.usefixtures("words_only", "editor")
def test_an_id_may_be_shortened_as_lists_print_it(run: Run) -> None:
    key, home = remember(run, "The spare key is blue", "Ann lives in Oslo")
    shown = run("list").out
    assert key not in shown
    ending = key.rpartition("-")[2]
    assert ending in shown
    assert run("show", ending, "--json").value["id"] == key
    assert run("why", "key", "--expect", ending, "--json").value["expected"] == key
    assert run("edit", ending, "--json").value["id"] == key
    assert run("history", ending, "--json").value[0]["id"] == key
    assert run("update", ending, "--kind", "fact", "--json").value["id"] == key
    assert run("supersede", ending, "The spare key is red", "--json").value["links"][0]["id"] == key
    both = run("forget", key[:4], "--yes", code=2).err
    assert f"3 memories have {key[:4]!r} in their ids" in both
    assert run("forget", home.rpartition("-")[2], "--yes", "--json").value["deleted"] == [home]
    assert "default/ann has no memory 'nothing'" in run("show", "nothing", code=2).err


@pytest.mark.usefixtures("words_only")
def test_an_id_that_somebody_chose_is_never_meant_by_a_part_of_it(run: Run, tmp_path: Path) -> None:
    """A script that forgets user-1 for the second time must not forget user-12."""
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add(Draft("Ann lives in Oslo", id="user-12"))
    for part in ("user-1", "er-12"):
        for command in (["forget", part, "--yes"], ["update", part, "--text", "x"], ["supersede", part, "x"]):
            assert f"no memory {part!r}" in run(*command, code=2).err
    assert run("show", "user-12", "--json").value["text"] == "Ann lives in Oslo"


@pytest.mark.usefixtures("words_only")
def test_messages_as_chat_apis_take_them_are_a_conversation(run: Run, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "The key is blue"}, {"role": "assistant", "content": "Noted."}]
    wrong = [{"role": "robot", "content": "x"}, {"role": "user", "content": 7}]
    (tmp_path / "monday.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in [*said, *wrong]))
    assert (
        len(run("import", "monday.jsonl", "--format", "conversation", "--yes", "--json", code=1).value["refused"]) == 2
    )
    found = run("list", "--order", "oldest", "--json").value["records"]
    assert [(each["role"], each["text"], each["session"]) for each in found] == [
        ("user", "The key is blue", "monday"),
        ("assistant", "Noted.", "monday"),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("words_only", "editor")
def test_every_command_prints_a_table_and_json_as_the_schema_says(run: Run, tmp_path: Path) -> None:
    key, home = remember(run, "The spare key is with Mrs Okafor", "Ann lives in Oslo")
    calls = invocations(tmp_path, key, home)
    assert {*calls, "mcp", "serve"} == set(COMMANDS)  # these two go on until a signal comes
    for arguments in calls.values():
        for shown in ([], ["--json"]):
            if shown and arguments[0] in {"supersede", "forget"}:  # the first call has done it
                home = remember(run, f"{arguments[0]} {len(arguments)}")[0]
                arguments = [arguments[0], home, *arguments[2:]]  # noqa: PLW2901
            assert run(*arguments, *shown).out.strip()


@pytest.mark.slow
@pytest.mark.usefixtures("words_only", "editor")
def test_every_command_works_in_a_terminal_which_a_hostile_memory_does_not_drive(run: Run, tmp_path: Path) -> None:
    hostile = "The spare key is with \x1b[2J\x1b]0;owned\x07Mrs Okafor [red]\u202e"
    key, home = remember(run, hostile, "Ann lives in Oslo")
    calls = invocations(tmp_path, key, home)
    for name in ("search", "show", "list"):  # the rest of JSON is tested through a pipe
        calls[f"{name} --json"] = [*calls[name], "--json"]
    ordered = sorted(calls.values(), key=lambda call: (call[0] in {"forget", "erase"}, call[0] == "erase"))
    code, screen = in_terminal(ordered, tmp_path)
    assert code == 0, screen
    for harmful in ("Traceback", "\x1b[2J", "\x1b]0", "\x07", "\u202e"):
        assert harmful not in screen
    assert "Mrs Okafor [red]\\u202e" in screen
    for call, shown in zip(ordered, screen.split(SEPARATOR), strict=False):
        assert shown.strip(), call
        if "--json" in call:
            insist_on_schema(call[0], json.loads(shown))


@pytest.mark.usefixtures("words_only")
def test_the_name_of_an_owner_does_not_drive_a_terminal(run: Run, tmp_path: Path) -> None:
    name = "ann\x1b]0;owned\x07\x1b[2J\u202e"
    for user in (name, "other"):
        run("add", "tea", "--user", user)
    calls = [["stats", "--all"], *([command, "--user", name] for command in ("stats", "list", "recall", "copy"))]
    calls[3].append("tea")
    calls[4].append("moved.db")
    calls += [["search", "nothing", "--user", "nobody"], ["why", "tea", "--expect", "x", "--user", name]]
    calls += [["show", name, "--user", name], ["maintain", "--user", name], ["erase", "--user", name, "--yes"]]
    for call in calls:
        done = run(*call, code=None)
        assert "\x1b" not in done.out + done.err, call
        assert "\u202e" not in done.out + done.err, call
    assert "ann\\x1b" in run("stats", "--user", name).out


@pytest.mark.process
@pytest.mark.parametrize(("missing", "command", "extra"), [("rich", "--help", "cli"), ("typer", "serve", "serve")])
def test_without_its_extra_the_program_answers_with_one_sentence(missing: str, command: str, extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from memory_core.__main__ import run; run()"
    done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)
    said = f"memory-core: `memory-core` needs typer and rich: pip install 'memory-core[{extra}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_search_of_the_command_line_leaves_the_file_to_every_model(run: Run) -> None:
    run("add", "tea", "--words-only")
    for arguments in (["search", "tea"], ["recall", "tea"], ["list"], ["stats"], ["export", "all.jsonl"], ["doctor"]):
        run(*arguments, "--embedder", "hashing")
    assert run("search", "tea", "--json").value[0]["record"]["text"] == "tea"  # with the default model
    run("add", "coffee", "--embedder", "hashing")
    assert "made by hashing" in run("search", "tea", code=2).err


SEPARATOR = "\x1e"
IN_A_ROW = f"""
import json, sys
from memory_core.app.main import main
codes = []
for call in json.loads(sys.argv[1]):
    codes.append(main(call))
    print({SEPARATOR!r}, end="", flush=True)
sys.exit(max(codes))
"""


def in_terminal(calls: list[list[str]], folder: Path, answer: str = "") -> tuple[int, str]:
    """Run commands in a terminal of their own; returns the highest exit code and all that was printed."""
    return on_screen([sys.executable, "-c", IN_A_ROW, json.dumps(calls)], folder, ("", answer))


def _wait_until_it_reads(process: int) -> None:
    """Return when a process sleeps: Python drops an interrupt that arrives on its last steps to reading a line."""
    while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "R":
        time.sleep(0.01)


def on_screen(command: list[str], folder: Path, *answers: tuple[str, str | Callable[[], str]]) -> tuple[int, str]:
    """Run a program in a terminal of its own; once the first text of an answer is printed, its second one is typed, or
    what a function returns that does something else before."""
    left = list(answers)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(COLUMNS="100", TERM="xterm-256color")
        os.execv(command[0], command)
    screen = b""
    while True:
        if left and left[0][0].encode() in screen:
            _wait_until_it_reads(child)
            typed = left.pop(0)[1]
            os.write(terminal, (typed if isinstance(typed, str) else typed()).encode())
        try:
            chunk = os.read(terminal, 65_536)
        except OSError as error:
            if error.errno != errno.EIO:  # Linux: the other side is closed
                raise
            break
        if not chunk:
            break
        screen += chunk
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), screen.decode()


@pytest.mark.usefixtures("words_only")
def test_what_cannot_be_undone_is_asked_first(run: Run, tmp_path: Path) -> None:
    (id_,) = remember(run, "Ann lives in Oslo")
    for arguments in (["erase"], ["forget", id_]):
        refused = run(*arguments, code=2)
        assert refused.err == "memory-core: this cannot be undone, and nobody is there to ask; confirm it with --yes\n"
        assert run(*arguments, "--dry-run", "--json").value["dry_run"]
        assert run("stats", "--json").value["records"] == 1
    code, screen = in_terminal([["erase"], ["forget", id_], ["erase"]], tmp_path, "n\nn\ny\n")
    first, second, last, _ = screen.split(SEPARATOR)
    assert code == 2
    assert "nothing was changed" in first
    assert "nothing was changed" in second
    assert "1 memory of default/ann erased" in last
    assert run("stats", "--json").value["records"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("words_only")
def test_a_deletion_shows_what_goes_and_deletes_exactly_that_or_nothing(run: Run, tmp_path: Path) -> None:
    ids = remember(run, *(f"the tide of day {number}\nat noon" for number in range(7)))
    stays = remember(run, "nobody saw this")
    forget = [*PROGRAM, "forget", *ids]

    def change(arguments: list[str]) -> Callable[[], str]:
        def typed() -> str:
            run(*arguments)
            return "y\n"

        return typed

    def there() -> set[str]:
        return {record["id"] for record in run("list", "--json").value["records"]}

    for arguments in (["update", ids[0], "--text", "changed while a person thinks"], ["forget", ids[1], "--yes"]):
        code, screen = on_screen(forget, tmp_path, ("Delete 7 memories of default/ann for good?", change(arguments)))
        assert code == 2
        assert "nothing was deleted" in screen
        asked = [line for line in screen.splitlines() if line.startswith("- ")]
        assert [line.partition(" at")[0] for line in asked] == [
            *(f"- the tide of day {n}" for n in (6, 5, 4, 3, 2)),
            "- and 2 more",
        ]
        assert there() == {*ids, *stays} - ({ids[1]} if arguments[0] == "forget" else set())
    left = [ids[0], *ids[2:]]
    code, _ = on_screen([*PROGRAM, "forget", *left], tmp_path, ("Delete 6 memories of default/ann for good?", "y\n"))
    assert code == 0
    assert there() == {*stays}


def test_a_search_explains_its_scores(run: Run) -> None:
    remember(run, "The spare key is with Mrs Okafor", "Ann drinks jasmine tea")
    shown = run("search", "Where is the spare key?", "--explain").out
    assert "█" in shown
    assert "bm25" in shown
    (hit,) = run("search", "Where is the spare key?", "--explain", "--json").value
    assert sum(part["weighted"] for part in hit["components"].values()) == pytest.approx(hit["score"])


def test_why_says_where_a_memory_was_lost(run: Run) -> None:
    key, tea, gone = remember(run, "The spare key is with Mrs Okafor", "Ann drinks jasmine tea", "The key is at home")
    run("supersede", gone, "The key is with the neighbours now")
    question = "Where is the spare key?"
    assert run("why", question, "--expect", key).out.startswith("In the block.")
    assert "not more relevant than an unrelated memory" in run("why", question, "--expect", tea, code=1).out
    assert "no longer true" in run("why", question, "--expect", gone, code=1).out
    small = run("why", question, "--expect", key, "--max-chars", "10", "--json", code=1).value
    assert small["considered"][0]["reason"] == "budget"
    assert run("why", question).out.count("\n") >= 3
    assert run("why", question, "--expect", "nope", code=2).err == (
        "memory-core: default/ann has no memory 'nope', or it has expired\n"
    )


def test_maintenance_can_be_undone_from_its_json(run: Run, tmp_path: Path) -> None:
    remember(run, "Ann drinks jasmine tea", "Ann drinks jasmine tea.")
    assert len(run("maintain", "--dry-run", "--json").value["steps"]) == 1
    done = run("maintain", "--json")
    assert len(run("list", "--json").value["records"]) == 1
    (tmp_path / "done.json").write_text(done.out)
    run("maintain", "--undo", "done.json")
    assert len(run("list", "--json").value["records"]) == 2


def test_the_owner_comes_from_options_or_the_environment_or_a_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", "of the login")
    run("add", "of the option", "--user", "tom", "--app", "demo")
    (tmp_path / "config").mkdir()
    config = tmp_path / "config" / "memory-core.toml"
    config.write_text('user = "tom"\napp = "demo"\nembedder = "none"\n')
    assert run("list", "--json").value["records"][0]["text"] == "of the option"
    monkeypatch.setenv("MEMORY_CORE_USER", "ann")
    monkeypatch.setenv("MEMORY_CORE_APP", "default")
    assert run("list", "--json").value["records"][0]["text"] == "of the login"
    assert run("list", "--user", "tom", "--app", "demo", "--json").value["records"][0]["text"] == "of the option"
    monkeypatch.setenv("MEMORY_CORE_FILE", "elsewhere.db")
    assert "there is no memory file 'elsewhere.db'" in run("list", code=2).err
    config.write_text("users = 3\n")
    assert "sets users to 3; it can set file, app, user, embedder, each to a text" in run("list", code=2).err
    monkeypatch.setenv("MEMORY_CORE_CONFIG", "nowhere.toml")
    assert "there is no such file" in run("list", code=2).err


def test_an_owner_without_memories_is_told_who_has_some(run: Run) -> None:
    run("add", "tea", "--user", "tom")
    assert "it has those of default/tom" in run("search", "tea").err


@pytest.mark.usefixtures("words_only")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "No such command 'nope'"),
        (["search"], "Missing argument 'QUESTION'; see memory-core search --help"),
        (["delete", "x"], "No such command 'delete'; `memory-core forget` deletes a memory; see memory-core --help"),
        (["remove", "x"], "No such command 'remove'; `memory-core forget` deletes a memory; see memory-core --help"),
        (["add", "two", "words"], "put a text of several words in quotes"),
        (["list", "memory.db"], "name a memory file with --file"),
        (["search", "tea", "--limit", "none"], "Invalid value for '--limit'"),
        (["list", "--file", "typo.db"], "there is no memory file 'typo.db'; `memory-core add` creates it"),
        (["list", "--file", "."], "'.' is not a file; give the path of a memory file"),
        (["list", "--file", "nowhere/typo.db"], "there is no folder 'nowhere', so no memory file 'nowhere/typo.db'"),
        (["show", "x", "--file", "talk.txt"], "is not a memory store"),
        (["add", "tea", "--at", "yesterday"], "--at must be a time"),
        (["add", "tea", "--data", "[1]"], "--data must be a JSON object"),
        (["add", "tea", "--importance", "7"], "importance must be a number from 0 to 1"),
        (["add", " "], "nothing to remember"),
        (
            ["import", "memory.db", "--file", "new.db"],
            "'memory.db' is a memory already; `memory-core copy",
        ),
        (["import", "talk.txt", "--yes", "--format", "nope"], "there is no importer for 'nope'; the formats are adk"),
        (["import", "nowhere.jsonl"], "there is no file or folder 'nowhere.jsonl'"),
        (["import", "chroma"], "there is no file or folder 'chroma'"),
        (["backup", "memory.db"], "there is 'memory.db' already; give another name, or --overwrite"),
        (["restore", "typo.db"], "there is no memory file 'typo.db'; name a file that `memory-core backup` has made"),
        (["restore", "memory.db"], "there is 'memory.db' already; give another name, or --overwrite"),
        (
            ["reembed", "nope"],
            "there is no embedder 'nope' (No module named 'nope'); give one of multilingual, english",
        ),
        (["reembed", "json:dumps"], "there is no embedder 'json:dumps'"),
        (["reembed", "json:__name__"], "there is no embedder 'json:__name__'"),
        (["reembed", "none"], "'none' makes no vectors"),
        (
            ["export", "x", "--format", "nope"],
            "there is no exporter for 'nope'; the formats are jsonl, mem0",
        ),
        (["export", "talk.txt", "--format", "mem0"], "there is 'talk.txt' already"),
        (["export", "x", "--format", "mem0"], "mem0 needs a vector of each memory"),
        (["maintain", "--undo", "talk.txt"], "is not what `maintain --json` printed"),
        (["add", "tea", "--user", " "], "user must not be empty"),
    ],
)
def test_every_error_is_one_sentence(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    run("add", "something")
    (tmp_path / "talk.txt").write_text("hello\n")
    failed = run(*arguments, code=2)
    assert failed.out == ""
    (line,) = failed.err.splitlines()
    assert line.startswith("memory-core: ")
    assert said in line
    assert not (tmp_path / "typo.db").exists()


def test_a_defect_is_one_sentence_without_the_text_of_a_memory(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    monkeypatch.setattr("memory_core.values.printable.plain", broken)
    monkeypatch.setattr("memory_core.app.showing.complain", lambda text: sys.stderr.write(f"{text}\n"))
    failed = run("add", "a secret", code=70)
    assert "a defect of memory-core" in failed.err
    assert "secret" not in failed.err


@pytest.mark.process
def test_text_comes_from_a_pipe_and_goes_to_one(tmp_path: Path) -> None:
    """A pipe that closes early ends the program quietly."""
    add = subprocess.run(
        [*PROGRAM, "add", "-"], input="The tide turns at noon", text=True, check=True, capture_output=True
    )
    assert "The tide turns at noon" in add.stdout
    code = f"{sys.executable} -m memory_core export - | head -c 10"
    cut = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert cut.stdout == '{"format":'
    assert "Traceback" not in cut.stderr


INTERRUPTED = "memory-core: interrupted; nothing is half-written, and the same command continues"


@pytest.mark.process
def test_an_interrupted_import_is_one_sentence_and_continues(run: Run, tmp_path: Path) -> None:
    """Ctrl-C in a terminal while the program waits for more lines, and in a pipe after some of them."""
    remember(run, "The spare key is with Mrs Okafor", "Ann lives in Oslo")
    checksum = run("export", "all.jsonl", "--json").value["checksum"]
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    code, screen = on_screen([*PROGRAM, "import", "-", "--file", "b.db"], tmp_path, ("importing", "\x03"))
    assert (code, INTERRUPTED in screen, "Traceback" in screen) == (130, True, False)
    command = [*PROGRAM, "import", "-", "--file", "c.db"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=False) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(lines[:2]))
        process.stdin.flush()
        while not (tmp_path / "c.db").exists():
            time.sleep(0.01)
        _wait_until_it_reads(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read().decode() == f"{INTERRUPTED}\n"
    for file in ("b.db", "c.db"):
        run("import", "all.jsonl", "--file", file)
        assert run("check", "--file", file).code == 0
        assert run("export", f"{file}.jsonl", "--file", file, "--json").value["checksum"] == checksum


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["SIGTERM", "SIGHUP"])
def test_a_command_that_is_told_to_end_closes_the_memory_first(
    run: Run, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """As by `timeout`, systemd, or a terminal that is closed: the file alone has everything."""
    remember(run, *(f"fact {n}" for n in range(5)))
    run("export", "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    command = [*PROGRAM, "import", "-", "--file", "c.db"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(lines[:2]))
        process.stdin.flush()
        while not (tmp_path / "c.db-wal").exists():
            time.sleep(0.01)
        _wait_until_it_reads(process.pid)
        process.send_signal(number)
        assert process.wait() == code
        assert process.stderr.read().decode() == f"{INTERRUPTED}\n"
    assert [path.name for path in tmp_path.glob("c.db*")] == ["c.db"]


@pytest.mark.process
def test_a_command_in_the_background_ends_too_when_it_is_told_to(tmp_path: Path) -> None:
    """`memory-core import - &`: a shell lets what it starts in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a process inherits
    try:
        process = subprocess.Popen([*PROGRAM, "import", "-", "--file", "c.db"], stdin=subprocess.PIPE, cwd=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        while not (tmp_path / "c.db-wal").exists():
            time.sleep(0.01)
        _wait_until_it_reads(process.pid)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143


@pytest.mark.usefixtures("words_only")
def test_ctrl_c_at_a_question_ends_the_command(run: Run, tmp_path: Path) -> None:
    remember(run, "Ann lives in Oslo")
    code, screen = on_screen([*PROGRAM, "erase"], tmp_path, ("[y/N]", "\x03"))
    assert (code, "Traceback" in screen) == (130, False)
    assert INTERRUPTED in screen
    assert run("stats", "--json").value["records"] == 1


@pytest.mark.process
def test_an_interrupt_while_the_program_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([*PROGRAM, "list"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{INTERRUPTED}\n")


def test_another_embedder_is_named_for_one_command_or_for_all(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(run, "The spare key is with Mrs Okafor")
    (tmp_path / "mine.py").write_text(
        "from memory_core.embedding.hashing import HashingEmbedder as Mine\none = Mine()\n"
    )
    done = run("reembed", "mine:one", "--json")
    assert done.value["embedder"]["name"] == "hashing"
    assert "name it from now on: --embedder mine:one, or MEMORY_CORE_EMBEDDER=mine:one" in done.err
    refused = run("search", "Where is the key?", code=2).err
    assert "name that model with --embedder, or compute them again with `memory-core reembed`" in refused
    assert "Okafor" in run("search", "Where is the key?", "--embedder", "hashing").out
    monkeypatch.setenv("MEMORY_CORE_EMBEDDER", "mine:Mine")
    assert "Okafor" in run("search", "Where is the key?").out
    run("reembed", "english")
    assert "Okafor" in run("search", "Where is the key?", "--embedder", "english").out


@pytest.fixture
def completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The completion script for a shell, and `memory-core` on its path."""
    program_ = tmp_path / "memory-core"
    program_.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from memory_core.__main__ import run; run()" "$@"\n')
    program_.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def script(shell: str) -> Path:
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        environment = {**os.environ, "_MEMORY_CORE_COMPLETE": f"source_{shell}"}
        made = subprocess.run([program_], env=environment, capture_output=True, text=True, check=False)
        (tmp_path / f"complete.{shell}").write_text(made.stdout)
        return tmp_path / f"complete.{shell}"

    return script


@pytest.mark.process
def test_bash_completes_commands_options_and_formats(completed: Callable[[str], Path]) -> None:
    ask = f"""
        source {completed("bash")}
        function=$(complete -p memory-core | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        COMP_WORDS=(memory-core se); COMP_CWORD=1; $function memory-core; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(memory-core search --exp); COMP_CWORD=2; $function memory-core; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(memory-core import x --format ch); COMP_CWORD=4; $function memory-core; echo "${{COMPREPLY[@]}}"
    """
    said = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["search serve", "--explain", "chatgpt chroma"]


@pytest.mark.process
def test_fish_completes_options_and_formats(completed: Callable[[str], Path]) -> None:
    lines = ["memory-core search --exp", "memory-core export x --format m"]
    ask = "; ".join([f"source {completed('fish')}", *(f"complete -C '{line}'" for line in lines)])
    said = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, check=True)
    assert [line.partition("\t")[0] for line in said.stdout.splitlines() if line] == ["--explain", "mem0"]


@pytest.mark.process
def test_zsh_completes_a_command_in_a_terminal(completed: Callable[[str], Path], tmp_path: Path) -> None:
    begin = f"autoload -U compinit; compinit -u -D; source {completed('zsh')}; echo re''ady\n"
    completed_and_echoed = "memory-core sea\t\x01echo \nexit\n"
    _, screen = on_screen(["/usr/bin/env", "zsh", "-f", "-i"], tmp_path, ("", begin), ("ready", completed_and_echoed))
    assert "\nmemory-core search" in screen.replace("\r", "")


def test_a_new_user_finds_a_memory_with_nothing_but_the_help(run: Run) -> None:
    """The steps of the first page are tried as they stand there."""
    page = run("--help").out
    assert run().out == page
    assert run("--version").out == f"memory-core {memory_core.__version__}\n"
    titles = re.findall(r"(?m)^([A-Z][a-z ]+):$", page)
    assert titles == ["Options", "Write", "Read", "Serve", "Bring in and take out", "Keep the file well", "Adapters"]
    assert "..." not in page.partition("Write:")[2]
    joined = " ".join(page.split())
    add = joined.partition('memory-core add "')[2].partition('"')[0]
    question = joined.partition('memory-core search "')[2].partition('"')[0]
    assert run("add", add).code == 0
    assert add in run("search", question).out
    for name in COMMANDS:
        if name != "mcp":
            assert "Show this message" in run(name, "--help").out


def test_the_schema_names_every_command_that_prints_json() -> None:
    assert {*SCHEMA["commands"], "mcp", "serve"} == set(COMMANDS)


def test_the_schema_has_the_shapes_of_the_classes() -> None:
    assert SCHEMA["$defs"] == shapes(), "write them again: python -m tests.repository.frozen"


def test_the_command_of_an_adapter_gets_the_memory_and_its_owner(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_CORE_USER", "ann")
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Where is the key?"})
    run("add", "The spare key is with Mrs Okafor")
    assert "Mrs Okafor" in run("mcp", "hook", stdin=event).out


def test_the_page_on_the_command_line_shows_what_the_commands_print(run: Run) -> None:
    """Every line below a command is part of what it prints."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"(?s)```console\n(.*?)```", page) for line in block.splitlines()]
    questions = re.search(r"(?s)```json\n(.*?)```", page.partition("## Evaluate searches on your own questions")[2])
    assert questions is not None
    Path("questions.jsonl").write_text(questions[1])
    printed = ""
    for line in lines:
        if line.startswith("$ memory-core "):
            printed = run(*shlex.split(line)[2:]).out
        else:
            assert line.strip() in printed
    assert set(re.findall(r"^\$ memory-core (\S+)", "\n".join(lines), re.MULTILINE)) <= set(COMMANDS)
    assert all(f"`{name}" in page or f" {name}" in page for name in COMMANDS)


@pytest.mark.usefixtures("words_only")
def test_what_goes_with_a_memory_is_counted_before_and_after_and_why_names_its_source(run: Run, tmp_path: Path) -> None:
    def stored() -> tuple[MemoryRecord, MemoryRecord]:
        with Memory(tmp_path / "memory.db", embedder=None) as memory:
            ann = memory.bind(user="ann").sync
            code = ann.add("The door code is 2231")
            fact = ann.add(Draft("Ann's code is 2231", kind="fact", links=[Link("derived_from", code.id, code.rev)]))
            ann.add(Draft("Codes: 2231", kind="summary", links=[Link("summarizes", fact.id, fact.rev)]))
            return code, fact

    code, fact = stored()
    assert run("why", "Which code?", "--expect", fact.id, "--json", code=None).value["sources"] == [code.id]
    assert "Made from:" in run("why", "Which code?", "--expect", fact.id, code=None).out
    assert run("forget", code.id, "--dry-run", "--json").value == {"deleted": [code.id], "derived": 2, "dry_run": True}
    _, screen = on_screen(
        [*PROGRAM, "forget", fact.id],
        tmp_path,
        ("Delete 1 memory and 1 made from it of default/ann for good?", lambda: "n\n"),
    )
    assert "The door code is 2231" in screen
    assert "1 memory and 2 made from it deleted" in run("forget", code.id, "--yes").out
    assert run("stats", "--json").value["records"] == 0
    code, _ = stored()
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        memory.bind(user="ann").sync.update(code.id, Patch(tags=["old"]))
    assert run("forget", code.id, "--yes", "--json").value["derived"] == 2
