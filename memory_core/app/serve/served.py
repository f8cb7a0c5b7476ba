"""What a server serves, and how a request reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

from memory_core.app.serve.callers import THE_OPERATOR, Caller, Signer, caller_with
from memory_core.handle import BoundMemory
from memory_core.memory import Memory
from memory_core.models import Scope

try:
    from starlette.exceptions import HTTPException
    from starlette.requests import HTTPConnection, Request
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error


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

    def own(self, caller: Caller) -> BoundMemory:
        """The memory of a caller."""
        return self.memory.bind(app=self.owner.app, user=caller.user or self.owner.user)

    def named(self, caller: Caller, app: str, user: str) -> BoundMemory:
        """The memory of an owner that the caller names.

        Raises:
            HTTPException: The caller is not the operator, and it is not their own memory.
        """
        if caller != THE_OPERATOR and (app, user) != (self.owner.app, caller.user):
            raise HTTPException(404, "there is no such owner, or your token is not the operator's")
        return self.memory.bind(app=app, user=user)

    def insist_on_writable(self) -> None:
        """Refuse a change to a memory that is only read.

        Raises:
            HTTPException: It is.
        """
        if not self.writable:
            raise HTTPException(403, "this server only reads; start it with --write to change memories")


def served_by(request: HTTPConnection) -> Served:
    """What the application of a request serves."""
    return cast("Served", request.app.state.served)


def path_name(request: Request, name: str) -> str:
    """A part of the path, decoded: owners and ids may contain slashes, so the path is matched undecoded."""
    return unquote(str(request.path_params[name]))


def bearer(request: Request) -> Caller:
    """The caller of the API.

    Raises:
        HTTPException: The request has no token, or one that nobody has.
    """
    if is_local(request):
        return THE_OPERATOR
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    caller = caller_with(served_by(request).tokens, token.strip()) if scheme.lower() == "bearer" else None
    if caller is None:
        raise HTTPException(
            401,
            "send a token of this server: `Authorization: Bearer <token>`",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return caller


def is_local(request: HTTPConnection) -> bool:
    """Whether it came through the local socket, which only the user who started the server can open."""
    server = request.scope.get("server")
    return server is not None and server[1] is None
