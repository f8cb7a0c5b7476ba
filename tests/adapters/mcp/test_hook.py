"""Recalling before a prompt and remembering after a turn: the tools, and the hook for clients that have hooks."""

from __future__ import annotations

import asyncio
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from calling import ENVIRONMENT, in_process

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, Patch
from memory_core.adapting import MAX_TEXT_CHARS
from memory_core.values.frame import QUOTES
from memory_mcp import run_hook
from memory_mcp.__main__ import main
from memory_mcp.transcript import read_transcript

SAID: tuple[dict[str, Any], ...] = (
    {"type": "summary", "summary": "Keys"},
    {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "My spare key is with Mrs Okafor"}},
    {
        "type": "assistant",
        "uuid": "u2",
        "timestamp": "2026-01-31T12:00:00.000Z",
        "message": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Noted, with Mrs Okafor."}],
        },
    },
    {
        "type": "user",
        "uuid": "u3",
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "4711"}]},
    },
    {"type": "user", "uuid": "u4", "isMeta": True, "message": {"role": "user", "content": "<command>"}},
    {"type": "assistant", "uuid": "u5", "isSidechain": True, "message": {"role": "assistant", "content": "aside"}},
)


def transcript_in(folder: Path, *more: dict[str, Any]) -> Path:
    file = folder / "transcript.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (*SAID, *more)))
    return file


def stop(transcript: Path) -> str:
    return json.dumps({"hook_event_name": "Stop", "session_id": "s1", "transcript_path": str(transcript)})


async def texts(handle: BoundMemory) -> list[str]:
    return [record.text for record in (await handle.list(order="oldest")).records]


async def test_what_a_turn_said_is_remembered_once_and_recalled_before_the_next_prompt(
    ann: BoundMemory, tmp_path: Path
) -> None:
    assert await run_hook(ann, stop(transcript_in(tmp_path))) == ""
    said = ["My spare key is with Mrs Okafor", "Noted, with Mrs Okafor."]
    assert sorted(await texts(ann)) == sorted(said)
    more = {"type": "user", "uuid": "u6", "message": {"role": "user", "content": "It is a brass key"}}
    await run_hook(ann, stop(transcript_in(tmp_path, more)))
    assert sorted(await texts(ann)) == sorted([*said, "It is a brass key"])
    records = (await ann.list()).records
    assert {record.session for record in records} == {"s1"}
    assert {record.role for record in records} == {"user", "assistant"}
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s2", "transcript_path": "-", "prompt": "spare key?"}
    block = await run_hook(ann, json.dumps(prompt))
    assert "Mrs Okafor" in block
    assert QUOTES in block
    assert await run_hook(ann, json.dumps({"prompt": ""})) == ""


async def test_what_a_client_writes_into_a_transcript_itself_was_said_by_nobody(
    ann: BoundMemory, tmp_path: Path
) -> None:
    def entry(number: int, text: str, *, role: str = "user", **marks: bool) -> dict[str, Any]:
        return {"type": role, "uuid": f"c{number}", **marks, "message": {"role": role, "content": text}}

    compacted = "This session is being continued from a previous conversation. Summary: the user likes green paint."
    own = (
        entry(1, compacted, isCompactSummary=True, isVisibleInTranscriptOnly=True),
        entry(2, "<local-command-stdout>Compacted</local-command-stdout>"),
        entry(3, "<bash-stdout>notes.txt</bash-stdout><bash-stderr></bash-stderr>"),
        entry(4, "API Error: 529 overloaded", role="assistant", isApiErrorMessage=True),
    )
    await run_hook(ann, stop(transcript_in(tmp_path, *own)))
    assert sorted(await texts(ann)) == ["My spare key is with Mrs Okafor", "Noted, with Mrs Okafor."]


async def test_line_separators_within_a_message_do_not_break_a_transcript(ann: BoundMemory, tmp_path: Path) -> None:
    said = "My locker\u2028is number\x85 12"
    line = {"type": "user", "uuid": "u6", "message": {"role": "user", "content": said}}
    file = transcript_in(tmp_path)
    with file.open("a", encoding="utf-8") as more:
        more.write(json.dumps(line, ensure_ascii=False) + "\n")  # as JavaScript writes it
    await run_hook(ann, stop(file))
    assert said in await texts(ann)


async def test_messages_of_any_other_client_are_remembered(ann: BoundMemory) -> None:
    messages = [{"role": "user", "content": "I row"}, {"role": "assistant", "content": "How often?"}]
    for _ in range(2):
        await run_hook(ann, json.dumps({"session_id": "s", "messages": messages}))
    assert sorted(await texts(ann)) == ["How often?", "I row"]


@pytest.mark.parametrize(
    "event", ["", "{", "[]", "5", "{}", '{"prompt": 5}', '{"transcript_path": "missing"}', '{"messages": [5]}']
)
async def test_what_is_no_event_is_refused_with_a_sentence(event: str, ann: BoundMemory) -> None:
    with pytest.raises(InvalidInputError):
        await run_hook(ann, event)


@pytest.mark.parametrize("event", [{}, {"prompt": 3}, {"transcript_path": ["a.jsonl"]}])
async def test_an_event_with_a_value_of_another_kind_is_told_which_kinds_there_are(
    event: dict[str, object], ann: BoundMemory
) -> None:
    kinds = "a text as 'prompt', an array of 'messages', or the path of a transcript as 'transcript_path'"
    with pytest.raises(InvalidInputError, match=kinds):
        await run_hook(ann, json.dumps(event))


def test_the_command_answers_an_event_and_never_stops_the_clients_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["hook", "--file", str(tmp_path / "hook.db"), "--user", "ann"]
    monkeypatch.setattr("sys.stdin", io.StringIO(stop(transcript_in(tmp_path))))
    main(command)
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"prompt": "Where is the spare key?"})))
    main(command)
    assert "Mrs Okafor" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("nonsense"))
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 1
    assert "JSON object" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(command[:3])
    assert "--user" in capsys.readouterr().err


def test_each_project_has_a_memory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hook(event: dict[str, object], *options: str) -> str:
        stdin = io.TextIOWrapper(io.BytesIO(json.dumps(event).encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["hook", "--file", str(tmp_path / "m.db"), "--user", "ann", *options]) == 0
        return capsys.readouterr().out

    for project, port in (("projects/website", 8080), ("projects/shop", 9090)):
        said = [{"role": "user", "content": f"The staging server listens on port {port}"}]
        hook({"session_id": project, "messages": said}, "--collection", project)
    asked = "On which port does the staging server listen?"
    website = hook({"session_id": "later", "prompt": asked}, "--collection", "projects/website")
    assert "8080" in website
    assert "9090" not in website
    for session, everything in (("all", []), ("any", ["--collection", "*"])):
        shown = hook({"session_id": session, "prompt": asked}, *everything)
        assert {"8080", "9090"} <= set(re.findall(r"\d{4}", shown))


async def test_the_tools_remember_a_conversation_once_and_recall_from_all_of_them(
    ann: BoundMemory, memory: Memory
) -> None:
    said = [
        {"role": "user", "content": "My spare key is with Mrs Okafor", "name": "Ann"},
        {"role": "assistant", "content": "Noted.", "timestamp": "2026-01-31T12:00:00Z"},
    ]
    async with in_process(ann) as call:
        first = await call.ok("memory_remember", messages=said, session="monday")
        assert first["count"] == 2
        assert (await call.ok("memory_remember", messages=said, session="monday"))["ids"] == first["ids"]
        assert (await ann.stats()).records == 2
        recalled = await call.ok("memory_recall", query="Who has the spare key?")
        assert "Mrs Okafor" in recalled["block"]
        assert first["ids"][0] in recalled["ids"]
        assert recalled["block"] == await call.text("memory_recall", query="Who has the spare key?")
        assert len((await call.ok("memory_recall", query="spare key", maxChars=200))["block"]) <= 200
        assert "messages.0.role" in await call.refused("memory_remember", messages=[{"role": "me", "content": "x"}])
    async with in_process(memory.bind(app="demo", user="bob")) as bob:
        assert await bob.ok("memory_recall", query="spare key") == {"block": "", "ids": []}
        assert await bob.text("memory_recall", query="spare key") == "Nothing is remembered about this."


def line(number: int, text: str, role: str = "user", **more: object) -> bytes:
    return json.dumps(
        {"type": role, "uuid": f"n{number}", **more, "message": {"role": role, "content": text}}, ensure_ascii=False
    ).encode()


def written(folder: Path, *lines: bytes) -> Path:
    file = folder / "transcript.jsonl"
    file.write_bytes(b"".join(one + b"\n" for one in lines))
    return file


async def test_the_running_conversation_is_not_recalled_into_its_own_prompt(ann: BoundMemory) -> None:
    for session, place in (("s1", "Lisbon"), ("s2", "Porto")):
        said = [{"role": "user", "content": f"My sister Clara lives in {place}"}]
        await run_hook(ann, json.dumps({"session_id": session, "messages": said}))
    fact = await ann.add("My sister Clara lives with a dog")
    asked = {"hook_event_name": "UserPromptSubmit", "prompt": "Where does my sister Clara live?"}
    blocks = {name: await run_hook(ann, json.dumps({**asked, "session_id": name})) for name in ("s1", "s2", "s3")}
    assert [("Lisbon" in block, "Porto" in block) for block in blocks.values()] == [
        (False, True),
        (True, False),
        (True, True),
    ]
    assert all(fact.text in block for block in blocks.values())
    without_session = await run_hook(ann, json.dumps(asked))
    assert "Lisbon" in without_session
    assert "Porto" in without_session


async def test_a_session_of_the_same_name_in_a_shared_space_is_recalled(ann: BoundMemory, memory: Memory) -> None:
    team = memory.bind(app="demo", user="team")
    for handle, key in ((ann, "brass"), (team, "steel")):
        await handle.remember([("user", f"The {key} key opens the boathouse")], session="s1")
    asked = {"session_id": "s1", "prompt": "Which key opens the boathouse?"}
    block = await run_hook(ann.sharing({"team": team}), json.dumps(asked))
    assert ("steel" in block, "brass" in block) == (True, False)


async def test_a_broken_line_costs_only_its_own_message(
    ann: BoundMemory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As left by a client that died while it wrote, or that is writing just now."""
    half = b'{"type":"user","uuid":"n9","message":{"role":"user","content":"half a thou'
    file = written(tmp_path, line(1, "I row"), half, b"[]", line(2, "I swim"), b"\xff\xfe", half + line(3, "I run"))
    file.write_bytes(file.read_bytes() + half)
    await run_hook(ann, stop(file))
    assert await texts(ann) == ["I row", "I swim", "I run"]
    (warning,) = caplog.messages
    assert warning.startswith("lines of the transcript that are not JSON objects were skipped: 5")
    assert "thou" not in warning
    file.write_bytes(file.read_bytes() + b'ght"}}\n')
    await run_hook(ann, stop(file))
    assert await texts(ann) == ["I row", "I swim", "I run", "half a thought"]


async def test_a_message_that_cannot_be_stored_as_it_is_does_not_stop_the_others(
    ann: BoundMemory, tmp_path: Path
) -> None:
    odd = json.dumps({"type": "user", "uuid": "n3", "message": {"role": "user", "content": "half an emoji \ud83d"}})
    file = written(
        tmp_path,
        line(1, "I row", timestamp="0001-01-01T00:00:00+14:00"),
        line(2, "x" * (MAX_TEXT_CHARS + 5)),
        odd.encode(),
        line(4, "I swim", uuid="u" * 1_000),
        line(5, "zero\0byte", timestamp="yesterday"),
    )
    for _ in range(2):
        await run_hook(ann, stop(file))
    said = await texts(ann)
    assert sorted(said)[:3] == ["I row", "I swim", "half an emoji ?"]
    assert [len(text) for text in said if text.startswith("x")] == [MAX_TEXT_CHARS]
    assert len(said) == 5


async def test_a_file_that_is_no_transcript_is_refused(ann: BoundMemory, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no line"):
        await run_hook(ann, stop(written(tmp_path, b"This is a letter.", b"Kind regards")))
    assert await run_hook(ann, stop(written(tmp_path))) == ""


@pytest.mark.parametrize("has_ids", [True, False])
async def test_a_turn_of_any_length_is_remembered_from_its_beginning(
    ann: BoundMemory, tmp_path: Path, *, has_ids: bool
) -> None:
    said = [("user", "The staging vault is called Heron")]
    said += [("assistant", f"Step {number}: I edit file {number}") for number in range(700)]
    lines = [line(number, text, role) for number, (role, text) in enumerate(said)]
    if not has_ids:
        lines = [one.replace(b'"uuid"', b'"other"') for one in lines]
    for _ in range(2):
        await run_hook(ann, stop(written(tmp_path, *lines)))
    found = (await ann.list(order="oldest", limit=1_000)).records
    assert [record.text for record in found] == [text for _, text in said]
    later = await run_hook(ann, json.dumps({"session_id": "s2", "prompt": "What is the staging vault called?"}))
    assert "Heron" in later


@pytest.mark.process
async def test_a_hook_that_is_stopped_in_a_long_conversation_keeps_what_it_has_done(
    tmp_path: Path,
) -> None:
    """The client stops it after a minute, and a first conversation may take longer than that."""
    db, file = tmp_path / "hook.db", written(tmp_path, *(line(n, f"Step {n}: I edit file {n}") for n in range(3_000)))
    command = [sys.executable, "-m", "memory_mcp", "hook", "--file", str(db), "--user", "ann"]
    hook = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, env=ENVIRONMENT)
    assert hook.stdin is not None
    hook.stdin.write(stop(file).encode())
    hook.stdin.close()
    kept = 0
    while not kept:
        kept = await count_in(db)
    hook.terminate()
    assert await hook.wait() == 0
    assert kept <= await count_in(db) < 3_000


async def count_in(db: Path) -> int:
    async with Memory(db, embedder=None) as memory:
        return (await memory.bind(user="ann").stats()).records


@pytest.mark.process
def test_a_hook_imports_no_server(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "memory_mcp", "hook", "--file", str(tmp_path / "hook.db")]
    event = json.dumps({"prompt": "Who has the key?"})
    done = subprocess.run(
        [*command, "--user", "ann"], input=event, capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    imported = {row.rpartition("|")[2].strip().partition(".")[0] for row in done.stderr.splitlines()}
    assert {"memory_core", "numpy"} <= imported
    assert not imported & {"mcp", "mcp_types", "uvicorn", "starlette", "pydantic", "anyio", "httpx2"}


@pytest.mark.process
def test_a_hook_reads_and_writes_utf_8_whatever_the_locale_is(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memory_mcp", "hook", "--file", str(tmp_path / "hook.db"), "--user", "ann"]
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "latin-1"}
    said = {"session_id": "s1", "messages": [{"role": "user", "content": "Clara lives in Łódź 🚣"}]}
    for event in (said, {"session_id": "s2", "prompt": "Where does Clara live?"}):
        sent = json.dumps(event, ensure_ascii=False).encode()
        done = subprocess.run(command, input=sent, capture_output=True, check=True, env=environment)
    assert "Łódź 🚣" in done.stdout.decode()


def linked(name: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    return {"type": role, "uuid": name, "parentUuid": parent, "message": {"role": role, "content": text}}


async def remembered(handle: BoundMemory, folder: Path, *entries: dict[str, Any]) -> list[str]:
    file = folder / "branches.jsonl"
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    await run_hook(handle, stop(file))
    return sorted(await texts(handle))


async def test_what_followed_a_prompt_that_the_user_went_back_before_is_taken_back(
    ann: BoundMemory, tmp_path: Path
) -> None:
    first = [linked("u1", None, "The cat is called Pepper"), linked("a1", "u1", "Noted.", "assistant")]
    second = [linked("u2", "a1", "The code is 1234"), linked("a2", "u2", "A code.", "assistant")]
    await remembered(ann, tmp_path, *first, *second)
    other = [linked("u3", "a1", "The dog is called Salt"), linked("a3", "u3", "A dog.", "assistant")]
    told = ["A dog.", "Noted.", "The cat is called Pepper", "The dog is called Salt"]
    assert await remembered(ann, tmp_path, *first, *second, *other) == told
    resumed = linked("u4", "a2", "And the alarm?")
    told = ["A code.", "And the alarm?", "Noted.", "The cat is called Pepper", "The code is 1234"]
    assert await remembered(ann, tmp_path, *first, *second, *other, resumed) == told


async def test_an_answer_beside_the_branch_of_the_last_prompt_is_not_left(ann: BoundMemory, tmp_path: Path) -> None:
    asked = linked("u1", None, "Read two files")
    calls = [
        linked("a1", "u1", "I read the first.", "assistant"),
        linked("a2", "u1", "I read the second.", "assistant"),
    ]
    result = linked("a3", "a2", "Both are empty.", "assistant")
    told = ["Both are empty.", "I read the first.", "I read the second.", "Read two files"]
    assert await remembered(ann, tmp_path, asked, *calls, result) == told


async def test_an_entry_with_another_text_is_edited(ann: BoundMemory, tmp_path: Path) -> None:
    await remembered(ann, tmp_path, linked("u1", None, "The cat is called Pepper"))
    assert await remembered(ann, tmp_path, linked("u1", None, "The cat is called Ginger")) == [
        "The cat is called Ginger"
    ]


@pytest.mark.slow
def test_a_long_branch_that_was_left_is_read_in_time_proportional_to_its_length(tmp_path: Path) -> None:
    length = 40_000
    entries = [linked("0", None, "first")]
    entries += [linked(str(n), str(n - 1), f"text {n}", ("assistant", "user")[n % 2]) for n in range(1, length)]
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("\n".join(map(json.dumps, [*entries, linked("other", "0", "second")])))
    read = read_transcript(transcript)
    assert ([message.id for message in read.visible], len(read.left)) == (["0", "other"], length - 1)


def asking(prompt: str, session: str = "one") -> str:
    return json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": prompt})


def damage_what_tells_nothing(beside: Path) -> None:
    """Cut the file that keeps what was shown, which only its user may read, and which has no texts."""
    assert beside.stat().st_mode & 0o077 == 0
    assert "Egret" not in beside.read_text()
    beside.write_text("[")


async def test_a_memory_is_shown_once_a_session_until_it_changes_or_the_client_compacts(tmp_path: Path) -> None:
    async def shown(event: str) -> str:
        async with Memory(db, embedder=None) as memory:
            return await run_hook(memory.bind(user="ann"), event)

    db = tmp_path / "m.db"
    async with Memory(db, embedder=None) as memory:
        ann = memory.bind(user="ann")
        fact = await ann.add("Deployments go through the staging cluster Heron first")
        await ann.add(Draft("Always answer in British English", tags=("pinned",)))
    begins = json.dumps({"hook_event_name": "SessionStart", "session_id": "one", "source": "startup"})
    assert "British" in await shown(begins)
    first = await shown(asking("Which staging cluster do deployments go through?"))
    assert "Heron" in first
    assert "British" not in first
    assert await shown(asking("Which staging cluster, for deployments?")) == ""
    other = await shown(asking("Which staging cluster do deployments go through?", "two"))
    assert "Heron" in other
    assert "British" in other
    async with Memory(db, embedder=None) as memory:
        changed = Patch(text="Deployments go through the staging cluster Egret first")
        await memory.bind(user="ann").update(fact.id, changed)
    assert "Egret" in await shown(asking("Which staging cluster do deployments go through?"))
    assert "British" in await shown(json.dumps({**json.loads(begins), "source": "compact"}))
    assert "Egret" in await shown(asking("Which staging cluster do deployments go through?"))
    damage_what_tells_nothing(Path(f"{db}-shown"))
    assert "Egret" in await shown(asking("Which staging cluster do deployments go through?"))


async def test_what_a_client_says_in_the_place_of_a_prompt_recalls_nothing(ann: BoundMemory) -> None:
    await ann.add("The task of the harbour is completed")
    notified = "<task-notification>\n<summary>The task of the harbour is completed</summary>\n</task-notification>"
    assert await run_hook(ann, asking(notified)) == ""
