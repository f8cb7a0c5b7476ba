"""The texts that coding clients write into a conversation themselves: one table, by client and version.

Invariant: of a transcript, only what a person typed or a model answered is a message. What a client writes in between
is known by its marks (fields of an entry) and its tags (in the text of the person's entries), never by how a text
begins. A tag counts where a client writes it, at the beginning of a line, and with its end; a person who asks what
`<system-reminder>` means is quoted in full. Needs nothing but the standard library, and little of that, because the
hook imports it before each prompt: a dataclass would take longer than all the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple, cast

JsonObject = Mapping[str, object]
Speaker = Literal["user", "assistant"]


class Client(NamedTuple):
    """A coding client, and how it writes what was said."""

    name: str
    versions: str
    """The versions whose transcripts or documents were looked at."""
    source: str
    """The address at which these are published."""
    speakers: Mapping[str, Speaker]
    """The speakers by the words of the client."""
    texts: frozenset[str]
    """The types of the parts of a message that are text."""
    marks: frozenset[str] = frozenset()
    """Fields of an entry that the client sets on what it writes itself."""
    tags: frozenset[str] = frozenset()
    """Tags in the person's entries: the client wrote itself what they enclose."""
    kept: frozenset[str] = frozenset()
    """Tags around what the person typed; only the tags are cut."""
    lines: re.Pattern[str] | None = None
    """Other text that the client writes, each time in the same words."""


CLAUDE_CODE: Final = Client(
    name="Claude Code",
    versions="1.0 to 2.1",
    source="https://code.claude.com/docs/en/hooks",
    speakers={"user": "user", "assistant": "assistant"},
    texts=frozenset({"text"}),
    marks=frozenset({"isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage"}),
    tags=frozenset(
        {
            "bash-input",
            "bash-stderr",
            "bash-stdout",
            "command-contents",
            "command-message",
            "command-name",
            "ide_diagnostics",
            "ide_opened_file",
            "ide_selection",
            "local-command-caveat",
            "local-command-stderr",
            "local-command-stdout",
            "new-diagnostics",
            "post-tool-use-hook",
            "session-start-hook",
            "system-reminder",
            "task-notification",
            "teammate-message",
            "user-prompt-submit-hook",
        }
    ),
    kept=frozenset({"command-args"}),
    lines=re.compile(r"^\[Request interrupted by user(?: for tool use)?\]$", re.MULTILINE),
)
CODEX: Final = Client(
    name="Codex CLI",
    versions="0.46 to 0.77",
    source="https://github.com/openai/codex/blob/main/codex-rs/protocol/src/models.rs",
    speakers={"user": "user", "assistant": "assistant"},
    texts=frozenset({"input_text", "output_text", "text"}),
    tags=frozenset(
        {
            "INSTRUCTIONS",
            "codex_internal_context",
            "environment_context",
            "skill",
            "subagent_notification",
            "turn_aborted",
            "user_instructions",
            "user_shell_command",
        }
    ),
    lines=re.compile(r"^# AGENTS\.md instructions for [^\n]*$", re.MULTILINE),
)
GEMINI_CLI: Final = Client(
    name="Gemini CLI",
    versions="0.20 to 0.26",
    source="https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/services/chatRecordingService.ts",
    speakers={"user": "user", "gemini": "assistant"},
    texts=frozenset({"text"}),
    tags=frozenset({"hook_context", "session_context"}),
    lines=re.compile(r"^--- Content from referenced files ---$.*?^--- End of content ---$", re.MULTILINE | re.DOTALL),
)
CURSOR: Final = Client(
    name="Cursor",
    versions="2026.07",
    source="https://github.com/k-k1/agent-fleet/tree/main/workspace/agent/internal/agents/cursor",
    speakers={"user": "user", "assistant": "assistant"},
    texts=frozenset({"text"}),
    tags=frozenset(
        {
            "agent_skills",
            "agent_transcripts",
            "attached_files",
            "git_status",
            "image_files",
            "manually_attached_skills",
            "mcp_file_system",
            "open_and_recently_viewed_files",
            "rules",
            "system_reminder",
            "timestamp",
            "user_info",
        }
    ),
    kept=frozenset({"user_query"}),
)
WINDSURF: Final = Client(
    name="Windsurf",
    versions="2026.05",
    source="https://docs.windsurf.com/windsurf/cascade/hooks",
    speakers={"user_input": "user", "planner_response": "assistant"},
    texts=frozenset(),
)
_WORDS_OF_STEP: Final = {"user_input": "user_response", "planner_response": "response"}
"""The field in which a step of Windsurf has its words."""
CLIENTS: Final = (CLAUDE_CODE, CODEX, GEMINI_CLI, CURSOR, WINDSURF)


class Spoken(NamedTuple):
    """An entry of a transcript in which a person or a model speaks, or their client in their place."""

    client: Client
    role: Speaker
    text: str
    """Their words; empty if the client wrote all of them."""


def spoken_in(entry: JsonObject) -> Spoken | None:
    """The speaker and the words of an entry; `None` if nobody does, or if no client of the table writes such
    entries."""
    found = _content(entry)
    if found is None:
        return None
    client, who, content = found
    role = client.speakers.get(who) if isinstance(who, str) else None
    if role is None:
        return None
    if any(entry.get(mark) for mark in client.marks):
        return Spoken(client, role, "")
    parts = _parts(content, client)
    if role == "user":
        parts = [said_by_person(part, client) for part in parts]
    return Spoken(client, role, "\n".join(filter(None, parts)))


def _content(entry: JsonObject) -> tuple[Client, object, object] | None:
    """The client that writes such entries, the word for who speaks, and the content."""
    kind, message, payload = entry.get("type"), entry.get("message"), entry.get("payload")
    if kind in CLAUDE_CODE.speakers and isinstance(message, Mapping):
        return CLAUDE_CODE, kind, cast("JsonObject", message).get("content")
    if kind == "response_item" and isinstance(payload, Mapping):
        kind, entry = "message" if (inner := cast("JsonObject", payload)).get("type") == "message" else None, inner
    if kind == "message" and "role" in entry:  # an item as it is, before version 0.32
        return CODEX, entry.get("role"), entry.get("content")
    if kind in GEMINI_CLI.speakers and "content" in entry:
        return GEMINI_CLI, kind, entry.get("content")
    if kind is None and isinstance(message, Mapping):
        return CURSOR, entry.get("role"), cast("JsonObject", message).get("content")
    if isinstance(kind, str) and isinstance(step := entry.get(kind), Mapping):
        return WINDSURF, kind, cast("JsonObject", step).get(_WORDS_OF_STEP.get(kind, ""))
    return None


def _parts(content: object, client: Client) -> list[str]:
    """The texts of a message, without tool calls, tool results and thoughts."""
    if isinstance(content, str):
        return [content.strip()]
    blocks = cast("Sequence[object]", content) if isinstance(content, list) else [content]
    parts = [cast("JsonObject", block) for block in blocks if isinstance(block, Mapping)]
    spoken = (part for part in parts if part.get("type", "text") in client.texts and not part.get("thought"))
    return [text.strip() for part in spoken if isinstance(text := part.get("text"), str)]


def said_by_person(text: str, client: Client | None = None) -> str:
    """A text without what a client has written into it.

    Args:
        text: Of an entry of the person, or a prompt.
        client: The one that wrote the entry; for a prompt, whose client is not known, each of the table.
    """
    for each in CLIENTS if client is None else (client,):
        text = _without_tags(text, each)
        text = each.lines.sub("", text) if each.lines is not None else text
    return text.strip()


def _without_tags(text: str, client: Client) -> str:
    """A text without what the client encloses in its tags, and without the tags that it sets around what was typed."""
    if "<" not in text:
        return text
    parts: list[str] = []
    place = 0
    for mark in _beginnings(client.tags | client.kept).finditer(text):
        tag = mark["tag"]
        end = f"</{tag}>"
        stop = text.find(end, mark.end()) if mark.start() >= place and text.rfind(end) > mark.start() else -1
        if stop >= 0:
            parts += [text[place : mark.start()], text[mark.end() : stop] if tag in client.kept else ""]
            place = stop + len(end)
    return "".join([*parts, text[place:]])


@cache
def _beginnings(tags: frozenset[str]) -> re.Pattern[str]:
    """The beginnings of these tags: at the beginning of a line, or after another tag."""
    names = "|".join(sorted(map(re.escape, tags)))
    return re.compile(rf"(?:^|(?<=>))[ \t]*<(?P<tag>{names})(?:\s[^<>]*)?>", re.MULTILINE)
