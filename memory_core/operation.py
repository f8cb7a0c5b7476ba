"""The way into every operation of a handle, where an observer sees each call.

Every operation of every handle, the synchronous view and the adapters included, goes through the one function that
`@operation` makes where the method is defined, and which asks for an observer at each call. So `observe_by` sets one
variable: it replaces no method, and handles that exist already are observed too. What must know all operations takes
them from `OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Final, Protocol, TypeVar, cast

from memory_core.models import Scope

Method = TypeVar("Method", bound=Callable[..., Coroutine[Any, Any, Any]])  # with parameters of its own
Observer = Callable[[str, Scope, Mapping[str, object]], AbstractContextManager[Callable[[object], None]]]
"""Called with the name of an operation, the scope of its handle and its keywords. The operation runs inside what it
returns, and passes its result to what that yields."""

OPERATIONS: Final[list[str]] = []
"""The names of all operations of a handle."""

_observer: Observer | None = None


class _Handle(Protocol):
    @property
    def scope(self) -> Scope: ...


def operation(method: Method) -> Method:
    """Make a method an operation. Type checkers see it unchanged, and so does `inspect.signature`."""
    name = method.__name__
    OPERATIONS.append(name)

    @wraps(method)
    async def call(handle: _Handle, /, *args: Any, **given: Any) -> Any:  # the method's own parameters
        work = method(handle, *args, **given)  # a wrong argument is an error before anything is observed
        if _observer is None:
            return await work
        with _observer(name, handle.scope, given) as returned:
            result = await work
            returned(result)
            return result

    return cast("Method", call)  # it takes and returns what the method does


def is_observed() -> bool:
    """True if there is an observer."""
    return _observer is not None


def observe_by(observer: Observer | None) -> None:
    """Make this the observer of every operation of every handle of this process; `None` ends that."""
    global _observer  # noqa: PLW0603  (one observer a process)
    _observer = observer
