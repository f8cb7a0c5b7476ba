"""The memory flags of an agent's constructor: what they mean, and what is refused."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core import BoundMemory, Memory
from memory_spade.paths import base_file, directory

StrPath = str | os.PathLike[str]
Flag = bool | Sequence[bool | StrPath | None]
"""`True`, `False`, `(True, directory)`; a directory of `None` means the default, `":memory:"` none at all."""

Source = Memory | BoundMemory | StrPath
"""Where memories live: an open or unopened memory, a handle on one, or the path of its file."""

TAKEN_OVER: Final = ("interaction_memory", "agent_base_memory")
"""Flags of spade_llm that are never handed on to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the two kinds of memory live; `None` where a kind is switched off or lives elsewhere."""

    notes_directory: str | None = None
    """Of the documented file of notes, or `":memory:"`."""
    interactions: Source | None = None
    base: Source | None = None


def read_flags(
    jid: str, *, interaction_memory: Flag, agent_base_memory: Flag, memory_path: StrPath | None, memory: Source | None
) -> Sources:
    """Turn the flags into places.

    A directory comes from the flag itself, else from `memory_path`, else from the environment variable
    SPADE_LLM_MEMORY_PATH, else it is `spade_llm/data/agent_memory`. `memory` alone switches both kinds on; beside one
    flag that is `True` it switches on that kind only.

    Raises:
        TypeError: A value is of no known form, or `memory` comes together with a directory.
    """
    interactions, interactions_path = _read_flag("interaction_memory", interaction_memory)
    base, base_path = _read_flag("agent_base_memory", agent_base_memory)
    path = _read_path("memory_path", memory_path)
    if memory is None:
        return Sources(
            notes_directory=directory(interactions_path or path) if interactions else None,
            base=base_file(jid, base_path or path) if base else None,
        )
    given = _read_source(memory)
    for name, other in (
        ("interaction_memory", interactions_path),
        ("agent_base_memory", base_path),
        ("memory_path", path),
    ):
        if other is not None:
            raise TypeError(f"memory= already says where memories live; take the path {other!r} out of {name}=")
    both = not interactions and not base
    return Sources(interactions=given if interactions or both else None, base=given if base or both else None)


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
    constructors = _constructors(behind)
    names = [parameter for init in constructors for parameter in _named(init)]
    for flag in TAKEN_OVER:
        if flag in _named(constructors[0])[: len(args)]:
            raise TypeError(f"pass {flag} to {name} by keyword, not by position")
    # A class of the application that takes **kwargs may know names we cannot; those of the frameworks swallow them.
    unknowable = any(
        _is_open(init) and not init.__module__.startswith(("spade.", "spade_llm.")) for init in constructors
    )
    for keyword in kwargs:
        meant = difflib.get_close_matches(keyword, [*own, *names], n=1, cutoff=0.8)
        if keyword not in names and (meant or not unknowable):
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            raise TypeError(f"{name} got an unknown keyword {keyword!r}{hint}")


def _constructors(classes: Sequence[type]) -> list[Callable[..., None]]:
    """The constructors that keyword arguments reach: up to the first one without `**kwargs`."""
    found: list[Callable[..., None]] = []
    for cls in classes:
        init: Callable[..., None] | None = vars(cls).get("__init__")
        if init is not None:
            found.append(init)
            if not _is_open(init):
                break
    return found


def _named(init: Callable[..., None]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, given in inspect.signature(init).parameters.items() if given.kind in kinds][1:]


def _is_open(init: Callable[..., None]) -> bool:
    return any(given.kind is given.VAR_KEYWORD for given in inspect.signature(init).parameters.values())


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


def _read_source(value: object) -> Source:
    if isinstance(value, Memory | BoundMemory):
        return value
    path = _read_path("memory", value)
    assert path is not None  # noqa: S101  (None was handled by the caller)
    return path
