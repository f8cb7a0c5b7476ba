"""The transcript of a coding client, which keeps all branches in one file."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_core import BoundMemory
from memory_mcp import run_hook


class Hook:
    """A client that runs the hook after each turn; every run is a process."""

    def __init__(self, handles: Sequence[BoundMemory]) -> None:
        self._handles, self._entries = handles, list[dict[str, Any]]()
        self._tip: str | None = None
        self._tips: list[str | None] = []

    async def do(self, what: str, place: int, text: str, *, process: int) -> None:
        prompts = [entry for entry in self._line() if entry["type"] == "user"]
        if what in ("edit", "regenerate", "go_back") and prompts:
            chosen = prompts[place % len(prompts)]
            self._tip = chosen["parentUuid"]
            text = chosen["message"]["content"] if what == "regenerate" else text
        elif what == "resume" and self._tips:
            self._tip = self._tips[place % len(self._tips)]
        if what not in ("again", "at_once"):
            self._add("user", text)
            if what != "interrupt":
                self._add("assistant", f"answer {len(self._entries)}")
            self._tips.append(self._tip)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "transcript.jsonl"
            file.write_text("".join(json.dumps(entry) + "\n" for entry in self._entries))
            event = {"hook_event_name": "Stop", "session_id": "s", "transcript_path": str(file)}
            handles = self._handles if what == "at_once" else [self._handles[process]]
            await asyncio.gather(*(run_hook(handle, json.dumps(event)) for handle in handles))

    async def shown(self) -> list[str]:
        return [entry["message"]["content"] for entry in self._line()]

    def _add(self, role: str, text: str) -> None:
        name = f"e{len(self._entries)}"
        message = {"role": role, "content": text}
        self._entries.append({"type": role, "uuid": name, "parentUuid": self._tip, "message": message})
        self._tip = name

    def _line(self) -> list[dict[str, Any]]:
        by_name = {entry["uuid"]: entry for entry in self._entries}
        line, name = [], self._tip
        while name is not None:
            line.append(by_name[name])
            name = by_name[name]["parentUuid"]
        return line[::-1]
