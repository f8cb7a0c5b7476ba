"""Halves of characters in the JSON of a client, such as of an emoji that it has cut in two.

JavaScript writes them as `\\ud83d`, which is JSON, but no text. The SDK cannot read such a message: it refuses it over
HTTP, and ignores it over stdio, so that the client waits in vain. So does mcp 2.3.0 with pydantic 2.14; this file goes
when pydantic reads such texts (https://github.com/pydantic/jiter/issues/120).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.?)", re.DOTALL
)
"""A whole character in two halves, or half of one, or any other escape; or only its backslash, at the end of a part."""
_QUESTION_MARK: Final = rb"\u003f"
"""As long as what it replaces."""
_LONGEST: Final = 12
"""Bytes of an escape."""


class Mending:
    """Puts question marks in the place of halves of characters, in JSON that comes in parts."""

    def __init__(self) -> None:
        self._held = b""
        """The end of what came, which may be the beginning of an escape."""

    def part(self, data: bytes, *, is_last: bool) -> bytes:
        """The bytes that are certain after another part; after the last one, all of them."""
        data = self._held + data
        cut = len(data) if is_last else self._certain(data)
        self._held = data[cut:]
        return _ESCAPE.sub(_whole, data[:cut])

    def _certain(self, data: bytes) -> int:
        end = len(data) - _LONGEST
        if b"\\" not in data[max(end, 0) :]:
            return len(data)
        return next((found.start() for found in _ESCAPE.finditer(data) if found.start() > end), len(data))


class WholeCharacters:
    """An ASGI application whose requests have no halves of characters."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        mending = Mending()

        async def mended() -> Message:
            message = await receive()
            if message["type"] != "http.request":
                return message
            body = mending.part(message.get("body", b""), is_last=not message.get("more_body", False))
            return {**message, "body": body}

        await self._app(scope, mended, send)


def _whole(found: re.Match[bytes]) -> bytes:
    return found[0] if found[1] is None else _QUESTION_MARK
