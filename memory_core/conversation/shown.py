"""The memories that the hook of a coding client has shown in a session, so that it shows a memory once until that
changes.

A client keeps what its hook prints in the conversation, so the same lines would pile up with every prompt. Each call of
a hook may be another process, and a server may answer some of them, so this stands beside the memory file. It contains
no texts and no names: only hashes of sessions, and of records in the state in which they were shown. A client that
compacts its conversation loses them; then `forget` is called, and they are shown again. A file that cannot be read or
written costs a repetition, never a prompt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, cast
from weakref import WeakKeyDictionary

from memory_core.models import MemoryRecord
from memory_core.open_store import OpenStore

_MOST_SESSIONS: Final = 100
_MOST_SHOWN: Final = 1_000
"""Most sessions, and records of each, that are kept; the oldest are shown again."""
_SUFFIX: Final = "-shown"

_Sessions = dict[str, list[str]]
_without_file: WeakKeyDictionary[OpenStore, _Sessions] = WeakKeyDictionary()
"""Of memories that are not in a file."""


def key_of_record(record: MemoryRecord) -> str:
    """A record in its present state: another text is shown again."""
    return _hash(record.app, record.user, record.id, str(record.rev))


def key_of_text(text: str) -> str:
    """A block that is shown as a whole."""
    return _hash(text)


def shown_in(memory: OpenStore, session: str) -> frozenset[str]:
    """The keys of what was shown in a session."""
    return frozenset(_read(memory).get(_hash(session), ()))


def note(memory: OpenStore, session: str, keys: Iterable[str]) -> None:
    """Keep what is shown in a session."""
    sessions, name = _read(memory), _hash(session)
    known = dict.fromkeys([*sessions.pop(name, []), *keys])
    sessions[name] = list(known)[-_MOST_SHOWN:]
    _write(memory, dict(list(sessions.items())[-_MOST_SESSIONS:]))


def forget(memory: OpenStore, session: str) -> None:
    """The client has compacted the conversation, and no longer shows what was shown."""
    sessions = _read(memory)
    if sessions.pop(_hash(session), None) is not None:
        _write(memory, sessions)


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:24]


def _file(memory: OpenStore) -> Path | None:
    path = None if memory.path is None else Path(memory.path).expanduser()
    return Path(f"{path.resolve()}{_SUFFIX}") if path is not None and path.is_file() else None


def _read(memory: OpenStore) -> _Sessions:
    file = _file(memory)
    if file is None:
        return dict(_without_file.get(memory, {}))
    try:
        found: object = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: [str(key) for key in cast("list[object]", keys)]
        for name, keys in cast("dict[str, object]", found).items()
        if isinstance(keys, list)
    }


def _write(memory: OpenStore, sessions: _Sessions) -> None:
    file = _file(memory)
    if file is None:
        _without_file[memory] = sessions
        return
    made = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as out:
            json.dump(sessions, out)
        made.replace(file)
