"""The memory flags of an agent's constructor: meaning and validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from memory_core import BoundMemory, Memory
from memory_spade.memory.agent_base_memory import AgentBaseMemory
from memory_spade.memory.backends.base import MemoryBackend
from memory_spade.memory.interaction_memory import AgentInteractionMemory
from memory_spade.memory.place import Place, StrPath, in_directory

Flag = bool | Sequence[bool | StrPath | None]
"""`True`, `False` or `(True, directory)`; the directory `None` means the default, `":memory:"` no files."""

Places = tuple[AgentInteractionMemory | Place | None, AgentBaseMemory | Place | None]
"""The places of notes and long-term memories: a file of notes or a backend of the application's, else one
place for both; `None` if they are off."""

TAKEN_OVER: Final = ("interaction_memory", "agent_base_memory")
"""Flags of spade_llm that are handled here and never passed on to it."""


def read_flags(
    jid: str,
    *,
    interaction_memory: Flag,
    agent_base_memory: Flag | MemoryBackend,
    memory_path: StrPath | None,
    memory: Memory | BoundMemory | StrPath | None,
) -> Places:
    """Convert the flags to places.

    The directory is that of the flag, else `memory_path`, else that of the environment variable SPADE_LLM_MEMORY_PATH,
    else `spade_llm/data/agent_memory`. `memory` alone switches both kinds on; together with one flag that is `True`, it
    switches on only that kind.

    Raises:
        TypeError: A value has an unknown form, or both `memory` and a directory are given.
    """
    theirs = agent_base_memory if isinstance(agent_base_memory, MemoryBackend) else None
    notes, notes_path = _read_flag("interaction_memory", interaction_memory)
    base, base_path = _read_flag("agent_base_memory", False if theirs else agent_base_memory)
    path = _read_path("memory_path", memory_path)
    backend = AgentBaseMemory(jid, backend=theirs) if theirs else None
    if memory is None:
        in_file = in_directory(jid, base_path or path) if base else None
        return AgentInteractionMemory(jid, notes_path or path) if notes else None, backend or in_file
    for name, other in zip((*TAKEN_OVER, "memory_path"), (notes_path, base_path, path), strict=True):
        if other is not None:
            raise TypeError(f"memory= already says where memories live; take the path {other!r} out of {name}=")
    shared = _shared(memory)
    both = not notes and not base and not backend
    return shared if notes or both else None, backend or (shared if base or both else None)


def _shared(memory: Memory | BoundMemory | StrPath) -> Place:
    if isinstance(memory, Memory | BoundMemory):
        return Place(memory if isinstance(memory, BoundMemory) else memory.bind())
    file = _read_path("memory", memory) or ""
    return Place(lambda: Memory(file))


def _read_flag(name: str, value: object) -> tuple[bool, str | None]:
    if isinstance(value, bool):
        return value, None
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], bool):
        return value[0], _read_path(name, value[1])
    raise TypeError(f"{name} must be True, False or (True, directory), not {value!r}")


def _read_path(name: str, value: object) -> str | None:
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path.strip():
        raise TypeError(f"the path of {name} must be a non-empty string or a Path, not {value!r}")
    return path
