"""The owner of a call: the user the server is configured for, or the user of the call's bearer token.

No argument of a tool names an owner. What is shared with a user is the server's configuration too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, cast

from memory_core import BoundMemory, InvalidInputError, ScopeError, SharedMemory
from memory_core.adapting import call_in_thread, owned_by

try:
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Reach = BoundMemory | SharedMemory
"""What a caller reaches: the own memory, perhaps together with spaces that are shared with them."""
Served = Reach | Callable[[str], Reach]
"""What a server serves: one memory, or the one that the function makes for the user of a token."""
Owner = Callable[[], Awaitable[Reach]]
"""Called for each request; returns what the caller reaches."""

MIN_TOKEN_CHARS: Final = 20
"""Shortest accepted token; shorter ones could be guessed."""


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
        self._users: dict[bytes, str] = {}
        for user, token in tokens.items():
            if len(token) < MIN_TOKEN_CHARS:
                raise InvalidInputError(
                    f"the token of {user!r} has {len(token)} characters; create one of at least {MIN_TOKEN_CHARS} with "
                    "`python -c 'import secrets; print(secrets.token_urlsafe())'`"
                )
            other = self._users.setdefault(_digest(token), user)
            if other != user:
                raise InvalidInputError(f"{other!r} and {user!r} have the same token; give each user a different one")
        if not self._users:
            raise InvalidInputError("no tokens are given, so every call would be refused; list users and tokens")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> StaticTokens:
        """Read tokens from a file with a JSON object such as `{"ann": "…", "bob": "…"}`.

        Raises:
            InvalidInputError: The file cannot be read, is not such an object, or other users can read it.
        """
        file = Path(path)
        try:
            mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            why = cause.strerror if isinstance(cause, OSError) else "it is not text in UTF-8"
            raise InvalidInputError(f"the tokens in {str(file)!r} cannot be read: {why}") from cause
        if os.name == "posix" and mode & 0o077:
            raise InvalidInputError(f"other users of this machine can read {str(file)!r}; run `chmod 600` on it first")
        return cls(_tokens(text, str(file)))

    async def verify_token(self, token: str) -> AccessToken | None:
        """Called by the SDK for each request; the token itself is not passed on."""
        return access_of(self._users.get(_digest(token)))


def access_of(user: str | None) -> AccessToken | None:
    """What the SDK is told of a token's user, if the token has one."""
    return None if user is None else AccessToken(token="", client_id=user, subject=user, scopes=[])


def own(reach: Reach) -> BoundMemory:
    """The caller's own memory."""
    return reach.own if isinstance(reach, SharedMemory) else reach


def owner_of_calls(memory: Served, *, has_tokens: bool) -> Owner:
    """A function that returns what the current call reaches.

    Args:
        memory: Bound to a user, or leaves the user to the tokens; if both name a user, they must agree.
        has_tokens: Whether calls come with a verified token.

    Raises:
        ScopeError: No user is named; at each call, if the token names no user or a different one.
    """

    async def of_token() -> Reach:
        return await _reached(memory, _subject())

    async def of_server() -> Reach:
        return cast("Reach", memory)

    if has_tokens:
        return of_token
    if not isinstance(memory, BoundMemory | SharedMemory) or own(memory).scope.user is None:
        raise ScopeError(
            "the server has no owner: bind the handle to a user, as in memory.bind(user='ann'), or pass tokens"
        )
    return of_server


async def _reached(memory: Served, user: str) -> Reach:
    """What a user reaches, in memories that are theirs or shared with them. A function may block only its own call."""
    if isinstance(memory, BoundMemory | SharedMemory):
        reach = memory
    else:
        reach = await call_in_thread("asking for the memory of a user", lambda: memory(user))
    owner = owned_by(own(reach), user)
    return reach if isinstance(reach, SharedMemory) else owner


def _subject() -> str:
    token = get_access_token()
    if token is None or token.subject is None:
        raise ScopeError(
            "the call has no token that names a user; send one, since memories without an owner are refused"
        )
    return token.subject


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _tokens(text: str, file: str) -> dict[str, str]:
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):  # whose message might contain part of a token
        given = None
    if not isinstance(given, dict):
        raise InvalidInputError(f'{file!r} does not contain a JSON object such as {{"ann": "<token>"}}')
    pairs = cast("dict[str, object]", given)
    wrong = next((user for user, token in pairs.items() if not isinstance(token, str)), None)
    if wrong is not None:
        raise InvalidInputError(f"the token of {wrong!r} in {file!r} is not a string; put it in quotes")
    return cast("dict[str, str]", pairs)
