"""The memory flags of an agent's constructor: what they mean, and what is refused."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core import BoundMemory, Memory
from memory_spade.memory import MemoryBackend
from memory_spade.memory.opening import Opening
from memory_spade.memory.paths import directory

StrPath = str | os.PathLike[str]
Flag = bool | Sequence[bool | StrPath | None]
"""`True`, `False`, `(True, directory)`; a directory of `None` means the default, `":memory:"` none at all."""

Source = Memory | BoundMemory | Opening
"""Where memories live: a memory or a handle of somebody else's, or something of the agent's own to open."""

TAKEN_OVER: Final = ("interaction_memory", "agent_base_memory")
"""Flags of spade_llm that are never handed on to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the two kinds of memory live; `None` where a kind is switched off or lives elsewhere."""

    notes_directory: str | None = None
    """Of the documented file of notes, or `":memory:"`."""
    interactions: Source | None = None
    base: Source | MemoryBackend | None = None


def read_flags(
    jid: str,
    *,
    interaction_memory: Flag,
    agent_base_memory: Flag | MemoryBackend,
    memory_path: StrPath | None,
    memory: Memory | BoundMemory | StrPath | None,
) -> Sources:
    """Turn the flags into places.

    A directory comes from the flag itself, else from `memory_path`, else from the environment variable
    SPADE_LLM_MEMORY_PATH, else it is `spade_llm/data/agent_memory`. `memory` alone switches both kinds on; beside one
    flag that is `True` it switches on that kind only.

    Raises:
        TypeError: A value is of no known form, or `memory` comes together with a directory.
    """
    backend = agent_base_memory if isinstance(agent_base_memory, MemoryBackend) else None
    notes, notes_path = _read_flag("interaction_memory", interaction_memory)
    base, base_path = _read_flag("agent_base_memory", False if backend else agent_base_memory)
    path = _read_path("memory_path", memory_path)
    if memory is None:
        return Sources(
            notes_directory=directory(notes_path or path) if notes else None,
            base=backend or (Opening.of_agent(jid, base_path or path) if base else None),
        )
    for name, other in zip((*TAKEN_OVER, "memory_path"), (notes_path, base_path, path), strict=True):
        if other is not None:
            raise TypeError(f"memory= already says where memories live; take the path {other!r} out of {name}=")
    given = memory if isinstance(memory, Memory | BoundMemory) else Opening.of_file(_read_path("memory", memory) or "")
    both = not notes and not base and not backend
    return Sources(interactions=given if notes or both else None, base=backend or (given if base or both else None))


def check_values(*, owner: object, inject_memories: object) -> None:
    """Raise TypeError unless the two can be what `MemoryMixin` says of them."""
    if owner not in ("agent", "peer") and not callable(owner):
        raise TypeError(f"owner must be 'agent', 'peer' or a function of the peer's bare JID, not {owner!r}")
    if isinstance(inject_memories, bool) or not isinstance(inject_memories, int) or inject_memories < 0:
        raise TypeError(f"inject_memories must be a whole number, 0 or more, not {inject_memories!r}")


def check_arguments(
    name: str, behind: Sequence[type], args: Sequence[object], kwargs: Mapping[str, object], own: Sequence[str]
) -> None:
    """Refuse what the constructors behind the mixin would swallow or misread.

    Args:
        name: Of the class being made.
        behind: The classes after the mixin, in method resolution order.
        args: Positional arguments meant for them.
        kwargs: Keyword arguments meant for them.
        own: The mixin's keywords, for suggestions.

    Raises:
        TypeError: An unknown keyword (with the one that was probably meant), or a memory flag by position.
    """
    taken = [inspect.signature(vars(cls)["__init__"]).parameters for cls in behind if "__init__" in vars(cls)]
    for flag in TAKEN_OVER:
        if flag in list(taken[0])[1 : len(args) + 1]:
            raise TypeError(f"pass {flag} to {name} by keyword, not by position")
    known = [*own, *(parameter for parameters in taken for parameter in parameters)]
    # A class of the application that takes **kwargs may know names we cannot; those of the frameworks swallow them.
    unknowable = any(
        not cls.__module__.startswith(("spade.", "spade_llm.")) and inspect.getfullargspec(vars(cls)["__init__"]).varkw
        for cls in behind
        if "__init__" in vars(cls)
    )
    for keyword in kwargs.keys() - set(known):
        meant = difflib.get_close_matches(keyword, known, n=1, cutoff=0.8)
        if meant or not unknowable:
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            raise TypeError(f"{name} got an unknown keyword {keyword!r}{hint}")


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
