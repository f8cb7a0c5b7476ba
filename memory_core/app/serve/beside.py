"""Applications of other packages on the same port, such as the MCP server, found by their entry points."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import entry_points
from typing import Final, NamedTuple, Protocol

from memory_core.app.serve.callers import caller_with
from memory_core.app.serve.served import Served
from memory_core.handle import BoundMemory
from memory_core.web.observed import name_route
from memory_core.web.requests import OTHER

try:
    from starlette.types import ASGIApp, Receive, Scope, Send
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

GROUP: Final = "memory_core.served"
"""An entry point of this group is an `Offer`, and is served at `/` and its name."""


class Offer(Protocol):
    """Serves memories in another way, for as long as its context is open."""

    def __call__(
        self,
        memory: BoundMemory | Callable[[str], BoundMemory],
        *,
        user_of: Callable[[str], str | None],
        hosts: frozenset[str],
        writable: bool,
    ) -> AbstractAsyncContextManager[ASGIApp]:
        """Open an application.

        Args:
            memory: Leaves the user open, or is a function from the user to what they reach.
            user_of: The user of a bearer token, if there is one.
            hosts: Names of the server besides those of loopback, without a port.
            writable: True if anything may be changed.
        """
        ...


class Others(NamedTuple):
    """The parts that are served beside the page."""

    apps: Mapping[str, ASGIApp]
    """By path."""
    missing: Sequence[str]
    """The sentences that say what is not served, and why."""


@asynccontextmanager
async def served_beside(served: Served) -> AsyncGenerator[Others]:
    """Open what is installed of the group."""

    def user_of(token: str) -> str | None:
        caller = caller_with(served.tokens, token)
        return None if caller is None else served.own(caller).scope.user

    def reach_of(user: str) -> BoundMemory:
        return served.reach(served.memory.bind(app=served.owner.app, user=user))

    memory = reach_of if served.spaces else served.memory.bind(app=served.owner.app)
    apps: dict[str, ASGIApp] = {}
    missing: list[str] = []
    async with AsyncExitStack() as stack:
        for point in entry_points(group=GROUP):
            path = f"/{point.name}"
            try:
                offer: Offer = point.load()
            except ImportError as error:  # usually, its extra is not installed
                missing.append(f"{path} is not served: {error}")
                continue
            opened = offer(memory, user_of=user_of, hosts=served.hosts, writable=served.writable)
            apps[path] = await stack.enter_async_context(opened)
        yield Others(apps, missing)


API: Final = "/v1"
OF_OWNER: Final = "/v1/owners/{app}/{user}"
"""Before the paths of the API, for the memories that the operator names."""


def _route_of(scope: Scope) -> str:
    """The template of the path that was asked for. What FastAPI leaves of it is without the prefix of its router."""
    own: str = getattr(scope.get("route"), "path", OTHER)
    if own == OTHER or own.startswith(("/o/", API)) or not scope["path"].startswith(API):
        return own
    return (OF_OWNER if "app" in scope["path_params"] else API) + own


class Beside:
    """An application with others at their own paths."""

    def __init__(self, app: ASGIApp, others: Mapping[str, ASGIApp]) -> None:
        self._app = app
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the application of its path."""
        path = scope.get("path", "")
        if (other := self._others.get(path)) is not None:
            name_route(scope, path)
            await other(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            name_route(scope, _route_of(scope))
