"""The owner of a call: the user the server is configured for, or the user of the call's bearer token.

No argument of a tool names an owner. What is shared with a user is the server's configuration too.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

from memory_core import BoundMemory, ScopeError
from memory_core.adapting import call_in_thread, digest_of, names_by_token, owned_by, tokens_in_file

try:
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Served = BoundMemory | Callable[[str], BoundMemory]
"""The memory that a server serves, or the function that makes one for the user of a token."""
OwnerOfCall = Callable[[], Awaitable[BoundMemory]]
"""Called for each request; returns the memory of the caller."""


class StaticTokens:
    """Bearer tokens from a configuration, each belonging to one user.

    ```python
    StaticTokens({"ann": os.environ["ANNS_TOKEN"]})
    ```

    Only hashes of the tokens are kept. The class implements `TokenVerifier` of the MCP SDK, and any other verifier can
    take its place: the `subject` of an accepted token is the user.

    Args:
        tokens: The token of each user.

    Raises:
        InvalidInputError: There are no tokens, a token is shorter than 20 characters, or two users share one.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._users = names_by_token(tokens)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> StaticTokens:
        """Read tokens from a file with a JSON object such as `{"ann": "…", "bob": "…"}`.

        Raises:
            InvalidInputError: The file cannot be read, is not such an object, or other users can read it.
        """
        return cls(cast("Mapping[str, str]", tokens_in_file(Path(path))))  # `names_by_token` checks that

    async def verify_token(self, token: str) -> AccessToken | None:
        """Called by the SDK for each request; the token itself is not passed on."""
        return access_of(self._users.get(digest_of(token)))


def access_of(user: str | None) -> AccessToken | None:
    """The user of a token as the SDK is told it, if the token has one."""
    return None if user is None else AccessToken(token="", client_id=user, subject=user, scopes=[])


def owner_of_calls(memory: Served, *, has_tokens: bool) -> OwnerOfCall:
    """A function that returns the memory of the current call.

    Args:
        memory: Bound to a user, or leaves the user to the tokens; if both name a user, they must agree.
        has_tokens: True if calls come with a verified token.

    Raises:
        ScopeError: No user is named; at each call, if the token names no user or a different one.
    """

    async def of_token() -> BoundMemory:
        return await _reached(memory, _subject())

    async def of_server() -> BoundMemory:
        return cast("BoundMemory", memory)

    if has_tokens:
        return of_token
    if not isinstance(memory, BoundMemory) or memory.scope.user is None:
        raise ScopeError(
            "the server has no owner: bind the handle to a user, as in memory.bind(user='ann'), or pass tokens"
        )
    return of_server


async def _reached(memory: Served, user: str) -> BoundMemory:
    """The memory of a user. A function may block only its own call."""
    if isinstance(memory, BoundMemory):
        return owned_by(memory, user)
    return owned_by(await call_in_thread("asking for the memory of a user", lambda: memory(user)), user)


def _subject() -> str:
    token = get_access_token()
    if token is None or token.subject is None:
        raise ScopeError(
            "the call has no token that names a user; send one, since memories without an owner are refused"
        )
    return token.subject
