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

_HALF: Final = rb"u[dD][89a-fA-F][0-9a-fA-F]{2}"
_WHOLE: Final = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
"""A character in two halves, after its first backslash."""
_HALVES: Final = re.compile(rb"(?:\\(?:" + _WHOLE + rb"|[^u]|u(?!" + _HALF[1:] + rb"))[^\\]*+)++|\\(" + _HALF + rb")")
"""Half of a character, or all escapes and texts up to the next one at once: a call for each would take seconds of a
message of backslashes."""
_CERTAIN: Final = re.compile(rb"(?:[^\\]++|\\(?:" + _WHOLE + rb"|[^u]|u(?=.{10})))*+", re.DOTALL)
"""All but an escape at the end that may have only begun; a character in two halves has 12 bytes."""
_QUESTION_MARK: Final = rb"\u003f"
"""As long as what it replaces."""


class Mending:
    """Puts question marks in the place of halves of characters, in JSON that comes in parts."""

    def __init__(self) -> None:
        self._held = b""
        """The end of what came, which may be the beginning of an escape."""

    def part(self, data: bytes, *, is_last: bool) -> bytes:
        """The bytes that are certain after another part; after the last one, all of them."""
        data = self._held + data
        certain = None if is_last else _CERTAIN.match(data)
        cut = len(data) if certain is None else certain.end()
        self._held = data[cut:]
        return _HALVES.sub(escaped, data[:cut])


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


def escaped(found: re.Match[bytes]) -> bytes:
    """A question mark for half of a character; anything else as it is."""
    return found[0] if found[1] is None else _QUESTION_MARK
