"""What makes a class a module of a Xaibo agent: its constructor, its configuration, and whose memories it reaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, get_type_hints

from memory_core import BoundMemory, InvalidInputError, Memory, ScopeError

Constructor = TypeVar("Constructor", bound=Callable[..., None])
Config = Mapping[str, Any]
"""A module's part of an agent's YAML."""

SCOPE: Final = ("user", "agent", "collection")
"""Options that narrow a handle."""
OWNER: Final = ("app", *SCOPE)
"""Options that say whose memories a module reaches, and which of them."""


def injects(*names: str) -> Callable[[Constructor], Constructor]:
    """A decorator for `__init__`: leave the annotations of these parameters only, as classes.

    Xaibo 0.3 takes every annotation of a constructor but that of `config` for something to inject, also that of what
    it returns, and cannot read postponed ones.
    """

    def narrowed(constructor: Constructor) -> Constructor:
        hints = get_type_hints(constructor)
        constructor.__annotations__ = {name: hints[name] for name in names}
        return constructor

    return narrowed


def options(config: Config | None, module: str, allowed: Sequence[str]) -> dict[str, Any]:
    """What a configuration says.

    Raises:
        InvalidInputError: It has an option that the module does not know; a misspelt one would do nothing.
    """
    given = dict(config or {})
    for name in given:
        if name not in allowed:
            raise InvalidInputError(f"{module} has no option {name!r} in its config; it may have {', '.join(allowed)}")
    return given


def bound(memory: BoundMemory | None, place: Memory | None, given: Config) -> BoundMemory:
    """The handle of a module: what it was given, or the memory at the place that its configuration names.

    Raises:
        InvalidInputError: Both are given, or neither.
        ScopeError: Nothing says whose memories they are, or two things do and differ.
    """
    scope: dict[str, str | None] = {name: given.get(name) for name in SCOPE}
    if memory is not None:
        if place is not None or "app" in given:
            raise InvalidInputError("a module is given a handle or a path and an app, not both; leave one out")
        handle = memory
    elif place is not None:
        handle = place.bind(app=given.get("app", "default"))
    else:
        raise InvalidInputError("nothing says where the memories are: add `path: memory.db` to the module's config")
    handle = handle.bind(**scope)
    if handle.scope.user is None:
        raise ScopeError("nothing says whose memories they are: add `user: ann` to the module's config")
    return handle
