"""Helpers that make a class a Xaibo module: constructor injection, configuration options and the owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_type_hints

from memory_core import BoundMemory, InvalidInputError, Memory, ScopeError

Constructor = TypeVar("Constructor", bound=Callable[..., None])
Config = Mapping[str, Any]
"""The `config` of a module in an agent's YAML."""

SCOPE: Final = ("user", "agent", "collection", "zone")
"""Options that narrow a handle, and say where the person is."""
OWNER: Final = ("app", *SCOPE)
"""Options that select the owner of a module's memories and narrow them."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The place where the conversation of an agent is kept."""

    handle: BoundMemory
    """Of its owner; what is recalled comes from its spaces too."""
    session: str


def injects(*names: str) -> Callable[[Constructor], Constructor]:
    """A decorator for `__init__` that keeps only the annotations of these parameters, resolved to classes.

    Xaibo 0.3 treats every annotation of a constructor except that of `config` as a dependency to inject, including
    the return annotation, and cannot resolve postponed annotations.
    """

    def narrowed(constructor: Constructor) -> Constructor:
        hints = get_type_hints(constructor)
        constructor.__annotations__ = {name: hints[name] for name in names}
        return constructor

    return narrowed


def options(config: Config | None, module: str, allowed: Sequence[str]) -> dict[str, Any]:
    """Return the options of a configuration.

    Raises:
        InvalidInputError: The configuration has an unknown option; a misspelt one would otherwise be ignored.
    """
    given = dict(config or {})
    for name in given:
        if name not in allowed:
            raise InvalidInputError(f"{module} has no config option {name!r}; its options are {', '.join(allowed)}")
    return given


def bound(memory: BoundMemory | None, place: Memory | None, given: Config) -> BoundMemory:
    """Return the handle of a module: the given one, or one on the memory that the configuration names.

    Raises:
        InvalidInputError: Both are given, or neither.
        ScopeError: No user is named, or the handle and the configuration name different ones.
    """
    scope: dict[str, str | None] = {name: given.get(name) for name in SCOPE}
    if memory is not None:
        if place is not None or "app" in given:
            raise InvalidInputError("a module takes a handle or a path and an app, not both; leave one out")
        handle = memory
    elif place is not None:
        handle = place.bind(app=given.get("app", "default"))
    else:
        raise InvalidInputError("the memory has no path: add `path: memory.db` to the module's config")
    handle = handle.bind(**scope)
    if handle.scope.user is None:
        raise ScopeError("the memory has no user: add `user: ann` to the module's config")
    return handle


def conversation_of(memory: object) -> Conversation:
    """The place where the conversation of the agent with this memory is kept; Xaibo passes modules behind a proxy.

    Raises:
        InvalidInputError: The memory is not a `CoreMemory`.
        ScopeError: The memory names no session.
    """
    found = getattr(memory, "conversation", None)
    if not isinstance(found, Conversation):
        raise InvalidInputError("the messages of an agent are kept in its CoreMemory; add memory_xaibo.CoreMemory")
    return found
