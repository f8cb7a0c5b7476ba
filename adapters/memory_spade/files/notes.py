"""Notes by conversation in spade_llm's JSON file, safe against crashes and concurrent processes.

A small file is rewritten with every change. A large file has a journal next to it with one line per change, which is
merged into the file when it reaches a quarter of the file's size, so that adding a note does not rewrite ten thousand
others. A change is acknowledged when it is on disk. Every operation locks a separate lock file and first reads the
changes of other processes.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeGuard, cast

from memory_core import StoreUnavailableError
from memory_spade.files.durable import sync_directory
from memory_spade.files.names import distinct_name, identity, safe_name, timestamp

logger = logging.getLogger(__name__)

SMALL_BYTES: Final = 64 * 1024
"""Up to this size the file is rewritten with every change."""

Note = dict[str, str]
"""`content` and `timestamp`."""

Interactions = dict[str, list[Note]]


@dataclass(slots=True)
class _State:
    """The known state of the file and its journal."""

    interactions: Interactions = field(default_factory=dict[str, list[Note]])
    folded: str | None = None
    """The journal whose lines are already merged into the file."""
    file: tuple[int, int, int] | None = None
    """Inode, size and modification time of the file when it was read."""
    journal: str | None = None
    """The current journal, or `None`."""
    journal_bytes: int = 0


class NotesFile:
    """The notes of one agent. No file is read or created before the first use.

    Args:
        folder: Directory of the file; missing directories are created, files get mode 0600.
        agent_id: The agent. If its file name is already used by another agent whose id has the same name, a longer
            name is used. Notes that spade_llm kept under the same id in another case, or with a resource, are adopted.
    """

    def __init__(self, folder: Path, agent_id: str) -> None:
        self._folder = folder
        self._stock_path = folder / f"{safe_name(agent_id)}_interactions.json"
        agent = self._agent = identity(agent_id)
        self._thread_lock = threading.Lock()
        self._use(safe_name(agent))

    def _use(self, name: str) -> None:
        self._path = self._folder / f"{name}_interactions.json"
        self._journal_path = self._path.with_suffix(".journal")
        self._lock_path = self._path.with_suffix(".lock")
        self._state = _State()

    def get(self, conversation_id: str, last: int | None = None) -> list[str]:
        """Return the notes of a conversation, oldest first; with `last` (at least 1), only this many of the newest."""
        with self._locked():
            return [note["content"] for note in self._state.interactions.get(conversation_id, [])[-(last or 0) :]]

    def conversations(self) -> list[str]:
        """Return the conversations that have notes, in the order of their first note."""
        with self._locked():
            return list(self._state.interactions)

    def add(self, conversation_id: str, information: str, now: datetime) -> None:
        """Append a note; return when it is on disk."""
        note = {"content": information, "timestamp": timestamp(now) or ""}
        with self._locked():
            self._write({"conversation": conversation_id, "note": note})

    def clear(self, conversation_id: str) -> bool:
        """Delete the notes of a conversation; return whether it had any."""
        with self._locked():
            if conversation_id not in self._state.interactions:
                return False
            self._write({"conversation": conversation_id, "note": None})
            return True

    @contextmanager
    def _locked(self) -> Generator[None]:
        try:
            with self._thread_lock, self._current():
                yield
        except OSError as error:
            raise StoreUnavailableError(f"the notes in {str(self._path)!r} cannot be used: {error}") from error

    @contextmanager
    def _current(self) -> Generator[None]:
        """Lock the agent's file and bring its state up to date."""
        lock = self._lock()
        try:
            ours = self._refresh()
            if ours:
                yield
        finally:
            os.close(lock)
        if not ours:
            self._use(distinct_name(self._agent))
            with self._current():
                yield

    def _lock(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not self._path.exists() and _agent_of(self._stock_path) == self._agent:
            os.link(self._stock_path, self._path)  # never modified: the first change replaces this name
        return lock

    def _write(self, change: Mapping[str, object]) -> None:
        line = json.dumps(change, ensure_ascii=False).encode() + b"\n"
        size = self._state.file[1] if self._state.file is not None else 0
        if size <= SMALL_BYTES or self._state.journal_bytes + len(line) > size // 4:
            changed = {name: list(notes) for name, notes in self._state.interactions.items()}
            _apply(changed, line)
            self._replace(changed)
        else:
            self._append(line)
            _apply(self._state.interactions, line)

    def _append(self, line: bytes) -> None:
        """Add a line to the journal, which is created if necessary; undo this on failure."""
        descriptor = os.open(self._journal_path, os.O_RDWR | os.O_CREAT, 0o600)
        journal, start = self._state.journal, self._state.journal_bytes
        if journal is None:
            journal, start = uuid.uuid4().hex, 0
            line = json.dumps({"journal": journal}).encode() + b"\n" + line
        try:
            os.ftruncate(descriptor, start)  # the rest is an unacknowledged partial line, or already merged
            os.lseek(descriptor, start, os.SEEK_SET)
            _write_all(descriptor, line)
            os.fsync(descriptor)
            if start == 0:
                sync_directory(self._path.parent)
        except OSError:
            os.ftruncate(descriptor, start)
            raise
        finally:
            os.close(descriptor)
        self._state.journal, self._state.journal_bytes = journal, start + len(line)

    def _replace(self, interactions: Interactions) -> None:
        """Replace the file; on failure the old file is unchanged."""
        content: dict[str, object] = {"agent_id": self._agent, "interactions": interactions}
        folded = self._state.journal or self._state.folded
        if folded is not None:
            content["folded_journal"] = folded
        temporary = self._path.with_suffix(".tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                _write_all(descriptor, json.dumps(content, ensure_ascii=False).encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(self._path.parent)
        self._journal_path.unlink(missing_ok=True)  # if this fails, `folded_journal` marks the journal as merged
        self._state = _State(interactions, folded, _signature(self._path))

    def _refresh(self) -> bool:
        """Read the changes of other processes since the last call; `False` if the file belongs to another agent."""
        if _signature(self._path) != self._state.file:
            state = self._load()
            if state is None:
                return False
            self._state = state
        try:
            for line in self._journal_lines():
                _apply(self._state.interactions, line)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._set_aside(self._journal_path, f"a line of it is not a change of notes: {error}")
            self._state.journal, self._state.journal_bytes = None, 0
            self._replace(self._state.interactions)
        return True

    def _journal_lines(self) -> list[bytes]:
        """The lines of the journal that were not read yet."""
        try:
            with self._journal_path.open("rb") as file:
                head = file.readline()
                journal = _journal_of(head)
                if journal is None or journal == self._state.folded:
                    self._state.journal, self._state.journal_bytes = None, 0
                    return []
                if journal != self._state.journal:
                    self._state.journal, self._state.journal_bytes = journal, len(head)
                file.seek(self._state.journal_bytes)
                lines = [line for line in file if line.endswith(b"\n")]
        except FileNotFoundError:
            self._state.journal, self._state.journal_bytes = None, 0
            return []
        self._state.journal_bytes += sum(map(len, lines))
        return lines

    def _load(self) -> _State | None:
        """Read the file without the journal; `None` if it belongs to another agent."""
        signature = _signature(self._path)
        if signature is None:
            return _State()
        try:
            content: object = json.loads(self._path.read_bytes().decode())
        except ValueError as error:
            self._set_aside(self._path, str(error))
            return _State()
        found = cast("dict[str, object]", content) if isinstance(content, dict) else {}
        interactions = found.get("interactions")
        if not _are_interactions(interactions):
            self._set_aside(self._path, "it does not have the shape of a file of notes")
            return _State()
        owner, folded = found.get("agent_id"), found.get("folded_journal")
        if isinstance(owner, str) and identity(owner) != self._agent:
            if self._path.name.startswith(distinct_name(self._agent)):
                self._set_aside(self._path, "it names another agent")
                return _State()
            return None
        return _State(interactions, folded if isinstance(folded, str) else None, signature)

    def _set_aside(self, path: Path, reason: str) -> None:
        """Keep an unreadable file under another name, and continue without it."""
        aside = path.with_name(f"{path.name}.set-aside-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        path.rename(aside)
        logger.warning("the notes in %s cannot be read (%s); the file is kept as %s", path, reason, aside.name)


def _apply(interactions: Interactions, line: bytes) -> None:
    change = json.loads(line)
    if "journal" in change:
        return
    if change["note"] is None:
        interactions.pop(change["conversation"], None)
    else:
        interactions.setdefault(change["conversation"], []).append(change["note"])


def _agent_of(path: Path) -> str | None:
    try:
        agent: object = json.loads(path.read_bytes())["agent_id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return identity(agent) if isinstance(agent, str) else None


def _are_interactions(value: object) -> TypeGuard[Interactions]:
    if not isinstance(value, dict):
        return False
    lists = list(cast("dict[str, object]", value).values())
    notes = [note for some in lists if isinstance(some, list) for note in cast("list[object]", some)]
    return all(isinstance(some, list) for some in lists) and all(
        isinstance(note, dict) and isinstance(cast("Note", note).get("content"), str) for note in notes
    )


def _journal_of(line: bytes) -> str | None:
    try:
        journal = json.loads(line)["journal"]
    except (ValueError, KeyError, TypeError):
        return None
    return journal if isinstance(journal, str) and line.endswith(b"\n") else None


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
