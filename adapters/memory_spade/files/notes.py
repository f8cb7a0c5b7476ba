"""Notes by conversation in spade_llm's JSON file, safe against crashes and concurrent processes.

Every operation locks a separate file and reads the notes; a change writes all of them to a temporary file, which then
takes the name of the file. So a change is acknowledged when it is on disk, and a file is never half written.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memory_core import StoreUnavailableError
from memory_spade.files.names import distinct_name, identity, safe_name, timestamp

logger = logging.getLogger(__name__)

NOT_NOTES: Final = "it does not have the shape of a file of notes"

Interactions = dict[str, list[dict[str, str]]]
"""The notes of every conversation, oldest first; a note has `content` and `timestamp`."""


class NotesFile:
    """The notes of one agent. No file is read or created before the first use.

    Args:
        folder: Directory of the file; missing directories are created, files get mode 0600.
        agent_id: The agent. If its file name is already used by another agent whose id has the same name, a longer
            name is used. Notes that spade_llm kept under the same id in another case, or with a resource, are adopted.
    """

    def __init__(self, folder: Path, agent_id: str) -> None:
        self._agent = identity(agent_id)
        self._folder = folder
        self._path, self._own_path, self._stock_path = (
            folder / f"{name}_interactions.json"
            for name in (safe_name(self._agent), distinct_name(self._agent), safe_name(agent_id))
        )

    def get(self, conversation_id: str, last: int | None = None) -> list[str]:
        """Return the notes of a conversation, oldest first; with `last` (at least 1), only this many of the newest."""
        with self._locked() as (_, interactions):
            return [note["content"] for note in interactions.get(conversation_id, [])[-(last or 0) :]]

    def conversations(self) -> list[str]:
        """Return the conversations that have notes, in the order of their first note."""
        with self._locked() as (_, interactions):
            return list(interactions)

    def add(self, conversation_id: str, information: str, now: datetime) -> None:
        """Append a note; return when it is on disk."""
        with self._locked() as (path, interactions):
            note = {"content": information, "timestamp": timestamp(now) or ""}
            interactions.setdefault(conversation_id, []).append(note)
            self._write(path, interactions)

    def clear(self, conversation_id: str) -> bool:
        """Delete the notes of a conversation; return whether it had any."""
        with self._locked() as (path, interactions):
            if interactions.pop(conversation_id, None) is None:
                return False
            self._write(path, interactions)
            return True

    @contextmanager
    def _locked(self) -> Generator[tuple[Path, Interactions]]:
        """Lock the files of all agents whose ids have the same name; give the agent's own and what is in it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield self._read()
            finally:
                os.close(lock)
        except OSError as error:
            raise StoreUnavailableError(f"the notes in {str(self._path)!r} cannot be used: {error}") from error

    def _read(self) -> tuple[Path, Interactions]:
        """The file that changes go to, and the notes as they are now."""
        for path in (self._path, self._own_path):
            if not path.exists():
                return path, self._of_spade_llm()
            try:
                owner, interactions = _parsed(path.read_bytes())
            except ValueError as error:
                _set_aside(path, str(error))
                return path, {}
            if owner in (None, self._agent):
                return path, interactions
        _set_aside(self._own_path, "it names another agent")
        return self._own_path, {}

    def _of_spade_llm(self) -> Interactions:
        """The notes under the name that spade_llm gives the id; that file is never changed."""
        try:
            owner, interactions = _parsed(self._stock_path.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return interactions if owner == self._agent else {}

    def _write(self, path: Path, interactions: Interactions) -> None:
        """Replace a file; on failure it is unchanged."""
        content = {"agent_id": self._agent, "interactions": interactions}
        temporary = path.with_suffix(".tmp")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(json.dumps(content, ensure_ascii=False).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)


def _parsed(content: bytes) -> tuple[str | None, Interactions]:
    """The identity of the agent that a file names, and its notes; raises a ValueError if it has another shape."""
    found: Any = json.loads(content.decode())
    try:
        owner, interactions = found.get("agent_id"), found["interactions"]
        fits = all(
            isinstance(notes, list) and all(isinstance(note["content"], str) for note in notes)
            for notes in interactions.values()
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(NOT_NOTES) from error
    if not fits:
        raise ValueError(NOT_NOTES)
    return identity(owner) if isinstance(owner, str) else None, interactions


def _set_aside(path: Path, reason: str) -> None:
    """Keep an unreadable file under another name, and continue without it."""
    aside = path.with_name(f"{path.name}.set-aside-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    path.rename(aside)
    logger.warning("the notes in %s cannot be read (%s); the file is kept as %s", path, reason, aside.name)


def _sync_directory(path: Path) -> None:
    """Return when the names in a directory are on disk, without which a rename may not survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
