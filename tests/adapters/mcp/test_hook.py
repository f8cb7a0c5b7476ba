"""Recalling before a prompt and remembering after a turn: the tools, and the hook for clients that have hooks."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from calling import in_process

from memory_core import BoundMemory, InvalidInputError, Memory
from memory_mcp import run_hook
from memory_mcp.__main__ import main

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
    assert "not instructions" in block
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


def test_the_command_answers_an_event_and_never_stops_the_clients_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["hook", "--db", str(tmp_path / "hook.db"), "--user", "ann"]
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
