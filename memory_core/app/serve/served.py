"""The memory that a server serves, and the way in which a request reaches it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast
from urllib.parse import unquote

from memory_core.app.serve.callers import THE_OPERATOR, Caller, Signer, caller_with
from memory_core.handle import BoundMemory
from memory_core.memory import Memory
from memory_core.models import Scope
from memory_core.values.checks import shown
from memory_core.values.json_size import MAX_VALUES, has_many_values
from memory_core.web.local import is_local

MAX_ITEMS: Final = 20_000
"""Keys of objects and elements of arrays in the body of a request, outside of `data`: 1,000 messages, each with a call
of a tool, have 12,000. To name an error for each of these holds the interpreter for less than a tenth of a second."""
Grant = Literal["read", "write", "all"]
"""The rights of a caller to the memories of an owner; `all` includes erasing the owner."""

try:
    from fastapi.dependencies.models import Dependant
    from fastapi.routing import APIRoute
    from starlette.exceptions import HTTPException
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import Response
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error


@dataclass(frozen=True, slots=True)
class Space:
    """The memories of an owner that every user of the server's app reads."""

    owner: str
    """The user whose memories they are."""
    is_writable: bool
    """True if every user may add, change and delete them too."""


@dataclass(frozen=True, slots=True)
class Served:
    """A memory and the rules for reaching it."""

    memory: Memory
    owner: Scope
    """The owner of the operator's calls that name none; its app is the app of every user."""
    tokens: Mapping[bytes, Caller]
    signer: Signer
    hosts: frozenset[str]
    """Host names under which the server may be asked, besides those of loopback."""
    writable: bool
    hooked: tuple[int, int] | None = None
    """Device and inode of the file, if hooks may leave it to this server, which has the model that they would load."""

    spaces: Mapping[str, Space] = field(default_factory=dict[str, Space])
    """By label, what every user of the server's app reads besides their own memories."""

    def own(self, caller: Caller) -> BoundMemory:
        """The memory of a caller."""
        return self.memory.bind(app=self.owner.app, user=caller.user or self.owner.user)

    def named(self, caller: Caller, app: str, user: str) -> BoundMemory:
        """The memory of an owner that the caller names.

        Raises:
            HTTPException: The caller is not the operator, and it is neither their own memory nor a space.
        """
        if self._grant(caller, app, user) is None:
            raise HTTPException(404, "there is no such owner, or your token is not the operator's")
        return self.memory.bind(app=app, user=user)

    def reach(self, owner: BoundMemory) -> BoundMemory:
        """The memories that an agent of an owner reads: the owner's memories and the spaces. A space is read by
        itself."""
        spaces = self._spaces_of(owner)
        return owner.sharing(spaces, writable=[label for label in spaces if self.spaces[label].is_writable])

    def together(self, owner: BoundMemory) -> Sequence[BoundMemory]:
        """The owners whose memories `reach` reads together."""
        return owner, *self._spaces_of(owner).values()

    def _spaces_of(self, owner: BoundMemory) -> Mapping[str, BoundMemory]:
        scope = owner.scope
        if scope.app != self.owner.app or scope.user in self._owners():
            return {}
        return {label: self.memory.bind(app=scope.app, user=space.owner) for label, space in self.spaces.items()}

    def label_of(self, app: str, user: str | None) -> str | None:
        """The label of the space that an owner is, if it is one."""
        labels = (label for label, space in self.spaces.items() if space.owner == user and app == self.owner.app)
        return next(labels, None)

    def may(self, caller: Caller, owner: BoundMemory, wanted: Grant) -> bool:
        """True if a caller may do something with the memories of an owner."""
        granted = self._grant(caller, owner.scope.app, owner.scope.user)
        return granted is not None and _GRANTS.index(granted) >= _GRANTS.index(wanted)

    def insist_on(self, caller: Caller, owner: BoundMemory, wanted: Grant) -> None:
        """Refuse a change that the server or the owner of the memories does not allow.

        Raises:
            HTTPException: It is refused.
        """
        if not self.writable:
            raise HTTPException(403, "this server only reads; start it with --write to change memories")
        if not self.may(caller, owner, wanted):
            raise HTTPException(403, _NOT_YOURS[wanted])

    def _grant(self, caller: Caller, app: str, user: str | None) -> Grant | None:
        """The rights of a caller to the memories of an owner; `None` without any."""
        if caller == THE_OPERATOR or (app, user) == (self.owner.app, caller.user):
            return "all"
        label = self.label_of(app, user)
        return None if label is None else "write" if self.spaces[label].is_writable else "read"

    def _owners(self) -> set[str | None]:
        return {space.owner for space in self.spaces.values()}


_GRANTS: Final[tuple[Grant, ...]] = ("read", "write", "all")
_NOT_YOURS: Final[Mapping[Grant, str]] = {
    "read": "these memories are not shared with you",
    "write": "this space is shared with you for reading only",
    "all": "a space is erased by its owner or the operator only",
}


def served_by(request: HTTPConnection) -> Served:
    """The memory that the application of a request serves."""
    return cast("Served", request.app.state.served)


def path_name(request: Request, name: str) -> str:
    """A part of the path, decoded: owners and ids may contain slashes, so the path is matched undecoded."""
    return unquote(str(request.path_params[name]))


async def bearer(request: Request) -> Caller:
    """The caller of the API. It waits for nothing: FastAPI calls what is not async in a thread, and a request of
    somebody else has to get the interpreter twice more for that.

    Raises:
        HTTPException: The request has no token, or one that nobody has.
    """
    if is_local(request.scope):
        return THE_OPERATOR
    caller = caller_by_token(request, served_by(request))
    if caller is None:
        raise HTTPException(
            401,
            "send a token of this server: `Authorization: Bearer <token>`",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return caller


def caller_by_token(request: Request, served: Served) -> Caller | None:
    """The caller whose token a request has, if anybody's."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return caller_with(served.tokens, token.strip()) if scheme.lower() == "bearer" else None


class TokenFirst(APIRoute):
    """A route of the API that reads nothing of a request without a token: strangers must not fill the memory. What a
    user sends has few items, because each may be wrong, and naming millions of errors would hold up everybody. A
    parameter that the route does not know is refused like a field of a body: a misspelt condition must not be dropped.
    """

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler, known = super().get_route_handler(), self._parameters()

        async def handled(request: Request) -> Response:
            await bearer(request)
            if unknown := sorted(set(request.query_params) - known):
                there = f"the route takes {', '.join(sorted(known))}" if known else "the route takes none"
                raise HTTPException(422, f"there is no parameter {shown(unknown[0])} here; {there}")
            if not is_local(request.scope):  # the hook sends whole conversations
                if has_many_values(await request.body()):
                    raise HTTPException(422, f"a request has at most {MAX_VALUES} values; send it in parts")
                with suppress(ValueError, RecursionError):  # what is not JSON is refused by the handler
                    insist_on_few_items(await request.json())
            return await handler(request)

        return handled

    def _parameters(self) -> set[str]:
        """The names of the parameters in the query: those of the function, and those that only the schema names."""
        named: Sequence[Mapping[str, str]] = (self.openapi_extra or {}).get("parameters", ())
        return {*_declared(self.dependant), *(one["name"] for one in named)}


def _declared(of: Dependant) -> Iterator[str]:
    """The names of the parameters in the query that a function and what it depends on declare."""
    yield from (one.alias for one in of.query_params)
    for one in of.dependencies:
        yield from _declared(one)


def insist_on_few_items(body: object) -> None:
    """Refuse a body with very many items outside `data`, which may be any JSON.

    Raises:
        HTTPException: It has more than `MAX_ITEMS`.
    """
    waiting, count = [body], 0
    while waiting:
        given = waiting.pop()
        if isinstance(given, dict):  # what JSON is read into
            named = cast("dict[str, object]", given)
            waiting += [value for name, value in named.items() if name != "data"]
            count += len(named)
        elif isinstance(given, list):
            waiting += cast("list[object]", given)
            count += len(cast("list[object]", given))
        if count > MAX_ITEMS:
            raise HTTPException(422, f"a request has at most {MAX_ITEMS} items outside of data; send it in parts")
