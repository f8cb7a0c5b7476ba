"""Of the transcripts of coding clients, every word that somebody said is stored, and no word that nobody said.

Each fixture has entries in the form that the client's source or documents publish (`memory_mcp/clients.py` names them),
and beside each entry what a person typed or a model answered in it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import BoundMemory, Where
from memory_core.values.frame import QUOTES, framed
from memory_mcp import run_hook
from memory_mcp.clients import CLIENTS, said_by_person
from memory_mcp.event import prompt_of
from memory_mcp.transcript import read_transcript

Entries = Sequence[tuple[Mapping[str, Any], str | None]]
REMINDER: Final = "<system-reminder>\nThe TodoWrite tool hasn't been used recently.\n</system-reminder>"
MEMORIES: Final = framed(QUOTES, ['- "The server is heron"'])


def claude(number: int, content: object, said: str | None = None, role: str = "user", **more: object) -> Any:
    parent = f"c{number - 1}" if number else None
    message = {"role": role, "content": content}
    return {"type": role, "uuid": f"c{number}", "parentUuid": parent, "message": message, **more}, said


def texts(*parts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": part} for part in parts]


COMMAND: Final = "<command-message>{0} is running…</command-message>\n<command-name>/{0}</command-name>"
CLAUDE_CODE: Final[Entries] = [
    ({"type": "summary", "summary": "Deployments", "leafUuid": "c3"}, None),
    ({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}, None),
    claude(0, "<local-command-caveat>Caveat: the messages below were generated</local-command-caveat>", isMeta=True),
    claude(
        1,
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>",
    ),
    claude(2, "<local-command-stdout>Set model to opus</local-command-stdout>"),
    claude(3, "How do we deploy?", "How do we deploy?"),
    claude(4, texts("Through heron."), "Through heron.", "assistant"),
    claude(5, texts(REMINDER)),
    claude(6, texts("<ide_opened_file>The user opened a.py in the IDE.</ide_opened_file>", "Fix it"), "Fix it"),
    claude(
        7,
        "<ide_selection>The user selected lines 1 to 2 of a.py:\nx = 1</ide_selection>\nWhy <b>x</b>?",
        "Why <b>x</b>?",
    ),
    claude(8, "<bash-input>ls -la</bash-input>"),
    claude(9, "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>"),
    claude(10, texts("[Request interrupted by user]")),
    claude(11, texts("[Request interrupted by user for tool use]")),
    claude(12, [{"type": "tool_result", "tool_use_id": "t", "content": "4711"}]),
    claude(13, "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>"),
    claude(
        14, f"{COMMAND.format('review')}\n<command-args>the parser, for speed</command-args>", "the parser, for speed"
    ),
    claude(15, "What does <system-reminder> mean?", "What does <system-reminder> mean?"),
    claude(16, f"And then?\n\n{REMINDER}", "And then?"),
    claude(17, f"<user-prompt-submit-hook>{MEMORIES}</user-prompt-submit-hook>"),
    claude(18, f"{MEMORIES}\nWhere is it?", "Where is it?"),
    claude(19, "Look for the parser", role="user", isSidechain=True),
    claude(20, texts("Found it."), role="assistant", isSidechain=True),
    (
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "c18"},
        None,
    ),
    claude(21, "This session is being continued from a previous conversation.", isCompactSummary=True),
    claude(22, [{"type": "thinking", "thinking": "hm"}, *texts("It is there.")], "It is there.", "assistant"),
    claude(23, "API Error: 529", role="assistant", isApiErrorMessage=True),
    claude(
        24,
        texts("The tag `<system-reminder>` is the client's."),
        "The tag `<system-reminder>` is the client's.",
        "assistant",
    ),
]


def codex(role: str, *parts: str, said: str | None = None) -> Any:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": part} for part in parts]
    payload = {"type": "message", "role": role, "content": content}
    return {"timestamp": "2025-12-08T00:39:54.852Z", "type": "response_item", "payload": payload}, said


CODEX: Final[Entries] = [
    ({"type": "session_meta", "payload": {"id": "s", "cli_version": "0.77.0", "instructions": "Be brief"}}, None),
    ({"type": "turn_context", "payload": {"model": "gpt"}}, None),
    codex("developer", "<permissions instructions>Ask first</permissions instructions>"),
    codex("user", "# AGENTS.md instructions for /srv/boat\n\n<INSTRUCTIONS>\nRun the tests\n</INSTRUCTIONS>"),
    codex("user", "<environment_context>\n  <cwd>/srv/boat</cwd>\n</environment_context>"),
    codex("user", "The canary region is Oslo", said="The canary region is Oslo"),
    ({"type": "event_msg", "payload": {"type": "user_message", "message": "The canary region is Oslo"}}, None),
    ({"type": "response_item", "payload": {"type": "reasoning", "summary": []}}, None),
    ({"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}}, None),
    ({"type": "response_item", "payload": {"type": "function_call_output", "output": "4711"}}, None),
    codex("assistant", "Noted.", said="Noted."),
    codex("user", "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>"),
    codex("user", "<user_shell_command>\n<command>ls</command>\n</user_shell_command>"),
    ({"type": "compacted", "payload": {"message": "The user works on a boat."}}, None),
    codex("user", f"{MEMORIES}\n\nAnd the other one?", said="And the other one?"),
]
CODEX_BEFORE: Final[Entries] = [
    ({"id": "s", "timestamp": "2025-07-01T10:00:00Z", "instructions": None}, None),
    ({"record_type": "state"}, None),
    ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}, "Hello"),
    ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}, "Hi"),
]


def gemini(number: int, kind: str, content: object, said: str | None = None) -> Any:
    return {"id": f"g{number}", "timestamp": "2025-12-03T06:35:37.302Z", "type": kind, "content": content}, said


REFERENCED: Final = "--- Content from referenced files ---\nContent from @a.py:\nx = 1\n--- End of content ---"
GEMINI_CLI: Final[Entries] = [
    gemini(0, "info", "Gemini CLI update available!"),
    gemini(1, "user", "Explain @a.py", "Explain @a.py"),
    gemini(2, "gemini", "It sets x.", "It sets x."),
    gemini(3, "user", [{"text": "Explain @b.py"}, {"text": REFERENCED}], "Explain @b.py"),
    gemini(4, "gemini", [{"text": "Let me see", "thought": True}, {"text": "It sets y."}], "It sets y."),
    gemini(5, "user", [{"text": "Why?"}, {"text": f"<hook_context>{MEMORIES}</hook_context>"}], "Why?"),
    gemini(6, "error", "Request cancelled."),
    gemini(7, "user", [{"functionResponse": {"name": "shell", "response": {"output": "4711"}}}]),
]


def cursor(role: str, *parts: str, said: str | None = None) -> Any:
    return {"role": role, "message": {"content": texts(*parts)}}, said


CURSOR: Final[Entries] = [
    cursor("user", "<user_info>\nOS Version: linux\n</user_info>\n<git_status>\nclean\n</git_status>"),
    cursor(
        "user",
        "<timestamp>Monday, Mar 2, 2026</timestamp>\n<user_query>\nThe canary region is Oslo\n</user_query>",
        said="The canary region is Oslo",
    ),
    cursor("assistant", "Noted.", said="Noted."),
    (
        {
            "role": "assistant",
            "message": {"content": [{"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]},
        },
        None,
    ),
    cursor(
        "user",
        "<open_and_recently_viewed_files>\n- a.py\n</open_and_recently_viewed_files><user_query>Fix it</user_query>",
        said="Fix it",
    ),
    cursor("user", "<user_query>\nWhat does <rules> mean?\n</user_query>", said="What does <rules> mean?"),
    cursor("user", f"<system_reminder>{MEMORIES}</system_reminder>"),
    cursor("user", "<manually_attached_skills>\nSkill Name: demo\n</manually_attached_skills>"),
    ({"type": "turn_ended", "status": "success"}, None),
]


def windsurf(kind: str, said: str | None = None, **step: object) -> Any:
    return {"status": "done", "type": kind, kind: step}, said


WINDSURF: Final[Entries] = [
    windsurf(
        "user_input",
        "The canary region is Oslo",
        user_response="The canary region is Oslo",
        rules_applied={"always_on": ["style.md"]},
    ),
    windsurf("planner_response", "I look for it.", response="I look for it."),
    windsurf("view_file", path="a.py", content="x = 1"),
    windsurf("run_command", command="ls", output="4711"),
    windsurf("code_action", path="a.py", new_content="x = 2"),
    windsurf("mcp_tool", tool="memory_search", response="heron"),
    windsurf("user_input", "And the other one?", user_response=f"{MEMORIES}\nAnd the other one?"),
    windsurf("planner_response", response=""),
]
FIXTURES: Final[Mapping[str, Entries]] = {
    "Claude Code": CLAUDE_CODE,
    "Codex CLI": CODEX,
    "Codex CLI before 0.32": CODEX_BEFORE,
    "Gemini CLI": GEMINI_CLI,
    "Gemini CLI, lines": GEMINI_CLI,
    "Cursor": CURSOR,
    "Windsurf": WINDSURF,
}


def written(folder: Path, client: str, entries: Entries) -> Path:
    file = folder / "transcript"
    given = [entry for entry, _ in entries]
    lines = "".join(json.dumps(entry) + "\n" for entry in given)
    whole = json.dumps({"sessionId": "s", "projectHash": "p", "messages": given}, indent=2)
    file.write_text(whole if client == "Gemini CLI" else lines, encoding="utf-8")
    return file


def event_after_turn(client: str, transcript: Path, session: str = "s") -> str:
    """The event that the client writes to its hook after a turn."""
    if client == "Windsurf":
        info = {"transcript_path": str(transcript)}
        event = {
            "agent_action_name": "post_cascade_response_with_transcript",
            "trajectory_id": session,
            "tool_info": info,
        }
    elif client == "Cursor":
        event = {"hook_event_name": "stop", "conversation_id": session, "transcript_path": str(transcript)}
    else:
        event = {"hook_event_name": "Stop", "session_id": session, "transcript_path": str(transcript)}
    return json.dumps(event)


async def test_words_stored_that_nobody_said_are_0_and_words_said_that_are_not_stored_are_0(
    ann: BoundMemory, tmp_path: Path
) -> None:
    stored, said = Counter[str](), Counter[str]()
    for client, entries in FIXTURES.items():
        await run_hook(ann, event_after_turn(client, written(tmp_path, client, entries), session=client))
        page = await ann.list(where=Where(session=client), limit=1_000)
        stored.update(word for record in page.records for word in record.text.split())
        said.update(word for _, text in entries if text is not None for word in text.split())
    assert (stored - said).total() == 0
    assert (said - stored).total() == 0
    assert stored.total() > 0


@pytest.mark.parametrize("client", FIXTURES)
async def test_every_word_that_was_said_is_stored_and_no_other(ann: BoundMemory, tmp_path: Path, client: str) -> None:
    entries = FIXTURES[client]
    for _ in range(2):
        await run_hook(ann, event_after_turn(client, written(tmp_path, client, entries)))
    stored = sorted(record.text for record in (await ann.list(limit=100)).records)
    assert stored == sorted(said for _, said in entries if said is not None)


@pytest.mark.parametrize("client", ["Claude Code", "Codex CLI", "Gemini CLI", "Cursor", "Windsurf"])
async def test_a_message_was_said_at_the_time_of_its_entry_with_its_offset(
    ann: BoundMemory, tmp_path: Path, client: str
) -> None:
    said_at = "2026-03-10T20:30:00-07:00"
    entries = [({**entry, "timestamp": said_at}, said) for entry, said in FIXTURES[client]]
    await run_hook(ann, event_after_turn(client, written(tmp_path, client, entries)))
    records = (await ann.list(limit=100)).records
    assert {record.occurred_at.isoformat() for record in records} == {said_at}


async def test_a_transcript_in_which_nobody_known_speaks_says_so(
    ann: BoundMemory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = [({"kind": "turn", "by": "me", "words": "The canary region is Oslo"}, None)] * 3
    with caplog.at_level(logging.WARNING):
        await run_hook(ann, json.dumps({"transcript_path": str(written(tmp_path, "?", unknown))}))
    assert "0 of 3 entries" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        read_transcript(written(tmp_path, "Claude Code", CLAUDE_CODE[:4]))
    assert not caplog.records


def test_what_a_client_writes_into_a_prompt_is_cut() -> None:
    assert prompt_of({"prompt": f"{REMINDER} Where is it? "}) == "Where is it?"
    assert prompt_of({"prompt": " Where is it? "}) == "Where is it?"


TAGS: Final = sorted({tag for client in CLIENTS for tag in client.tags})
LINES: Final = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), min_size=1).map("\n".join)


@given(words=LINES, inside=st.text(st.characters(exclude_characters="<")), tag=st.sampled_from(TAGS))
def test_what_stands_beside_a_tag_of_a_client_is_kept(words: str, inside: str, tag: str) -> None:
    kept = said_by_person(words)
    written_by_client = f"<{tag}>{inside}</{tag}>"
    assert said_by_person(f"{written_by_client}\n{words}") == kept
    assert said_by_person(f"{words}\n{written_by_client}") == kept
    assert said_by_person(f"{written_by_client}{written_by_client}") == ""
    assert said_by_person(f"What is <{tag}> here?") == f"What is <{tag}> here?"
    assert said_by_person(f"Is it {written_by_client}?") == f"Is it {written_by_client}?"
