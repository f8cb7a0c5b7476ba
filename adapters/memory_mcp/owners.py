"""Whose memory a call reaches: what the server was configured with, or whose token the call came with.

No argument of a tool names an owner.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from memory_core import BoundMemory, InvalidInputError, ScopeError

try:
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Owner = Callable[[], BoundMemory]
"""Called for each request: the handle of whoever sent it."""

MIN_TOKEN_CHARS: Final = 20
"""Shortest token that is accepted, so that none can be guessed."""


class StaticTokens:
    """Bearer tokens from a configuration, each of which stands for one user.

    ```python
    StaticTokens({"ann": os.environ["ANNS_TOKEN"]})
    ```

    Only hashes of the tokens are kept. It is a `TokenVerifier` of the MCP SDK, and any other one can take its place:
    the owner is the `subject` of the token that it accepts.

    Args:
        tokens: The token of each user.

    Raises:
        InvalidInputError: There is none, one is shorter than 20 characters, or two users have the same.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._users: dict[bytes, str] = {}
        for user, token in tokens.items():
            if len(token) < MIN_TOKEN_CHARS:
                raise InvalidInputError(
                    f"the token of {user!r} has {len(token)} characters; make one of at least {MIN_TOKEN_CHARS} with "
                    "`python -c 'import secrets; print(secrets.token_urlsafe())'`"
                )
            other = self._users.setdefault(_digest(token), user)
            if other != user:
                raise InvalidInputError(f"{other!r} and {user!r} have the same token; give each a token of their own")
        if not self._users:
            raise InvalidInputError("no token is given, so nobody could call; name users and their tokens")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> StaticTokens:
        """Read tokens from a file with a JSON object such as `{"ann": "…", "bob": "…"}`.

        Raises:
            InvalidInputError: The file cannot be read, says something else, or others on this machine may read it.
        """
        file = Path(path)
        try:
            mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
        except OSError as cause:
            raise InvalidInputError(f"the tokens in {str(file)!r} cannot be read: {cause.strerror}") from cause
        if os.name == "posix" and mode & 0o077:
            raise InvalidInputError(f"others on this machine may read {str(file)!r}; say `chmod 600` to it first")
        return cls(_tokens(text, str(file)))

    async def verify_token(self, token: str) -> AccessToken | None:
        """What the SDK asks for each request; the token itself is not passed on."""
        user = self._users.get(_digest(token))
        return None if user is None else AccessToken(token="", client_id=user, subject=user, scopes=[])


def owner_of_calls(memory: BoundMemory, *, has_tokens: bool) -> Owner:
    """The handle for each call.

    Args:
        memory: Fixes the user, or leaves it to the tokens; where both name one, they must agree.
        has_tokens: Calls come with a token that was verified.

    Raises:
        ScopeError: Nothing says who the user is; at each call, if the token says nothing or somebody else.
    """
    if has_tokens:
        return lambda: memory.bind(user=_subject())
    if memory.scope.user is None:
        raise ScopeError(
            "nothing says whose memories are served: bind the handle to a user, memory.bind(user='ann'), or give tokens"
        )
    return lambda: memory


def _subject() -> str:
    token = get_access_token()
    if token is None or token.subject is None:
        raise ScopeError("the call came with no token that names a user; memories without an owner are never shared")
    return token.subject


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _tokens(text: str, file: str) -> dict[str, str]:
    try:
        given: object = json.loads(text)
    except ValueError:  # its message might show a part of a token
        given = None
    if not isinstance(given, dict):
        raise InvalidInputError(f'{file!r} does not hold a JSON object such as {{"ann": "<token>"}}')
    pairs = cast("dict[str, object]", given)
    wrong = next((user for user, token in pairs.items() if not isinstance(token, str)), None)
    if wrong is not None:
        raise InvalidInputError(f"the token of {wrong!r} in {file!r} is no text")
    return cast("dict[str, str]", pairs)
