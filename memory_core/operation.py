"""The way into every operation of a handle: wrong keywords get a hint, and an observer sees each call.

`@operation` marks a method where it is defined. What must know all operations takes them from `OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import wraps
from typing import Any, Final, Protocol, TypeVar, cast

from memory_core.hints import argument_check
from memory_core.models import Draft, Scope

Method = TypeVar("Method", bound=Callable[..., Coroutine[Any, Any, Any]])  # with parameters of its own
Observer = Callable[[str, Scope, Mapping[str, object]], AbstractContextManager[Callable[[object], None]]]
"""Called with the name of an operation, the scope of its handle and its keywords. The operation runs inside what it
returns, and passes its result to what that yields."""

OPERATIONS: Final[list[str]] = []
"""The names of all operations of a handle."""

_OF_DRAFT: Final = frozenset(each.name for each in fields(Draft)) - {"text", "id", "agent", "session", "collection"}
"""What a draft says about a text, and a handle does not."""

_observer: Observer | None = None


class _Handle(Protocol):
    @property
    def scope(self) -> Scope: ...


def operation(method: Method) -> Method:
    """Make a method an operation. Type checkers see it unchanged, and so does `inspect.signature`."""
    name, check = method.__name__, argument_check(method, of_draft=_OF_DRAFT)
    OPERATIONS.append(name)

    @wraps(method)
    async def call(handle: _Handle, /, *args: Any, **given: Any) -> Any:  # the method's own parameters
        try:
            work = method(handle, *args, **given)
        except TypeError:
            check(args, given)
            raise
        if _observer is None:
            return await work
        with _observer(name, handle.scope, given) as returned:
            result = await work
            returned(result)
            return result

    return cast("Method", call)  # it takes and returns what the method does


def is_observed() -> bool:
    """Whether there is an observer."""
    return _observer is not None


def observe_by(observer: Observer | None) -> None:
    """Make this the observer of every operation of every handle of this process; `None` ends that."""
    global _observer  # noqa: PLW0603  (one observer a process)
    _observer = observer
