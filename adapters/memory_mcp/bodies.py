"""The messages of clients over HTTP, which the SDK gets whole, in a form that it can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_core.adapting import MAX_VALUES, has_many_values
from memory_mcp.half_characters import without_halves

try:
    from starlette.responses import PlainTextResponse
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class WholeBodies:
    """An ASGI application in front of another one, which gets each message whole, without halves of characters.

    It reads no message with very many values: the other one gets an empty message in its place, and the client hears
    why. A client could fill the memory with 16 MB of empty lists, which take twenty times as much once they are read.
    Nothing of a request is read before the other one asks for it, which it does of callers whom it knows.

    If a client hangs up before its message is whole, the other one gets an empty message, too: the SDK would log a
    defect with a traceback, as often as a client likes.

    Args:
        most_bytes: The length of a message that the other one refuses.
    """

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        is_read, is_refused = False, False

        async def whole() -> Message:
            """The request with its body, or with as much of it as is refused for its length; afterwards what comes."""
            nonlocal is_read, is_refused
            body, message = bytearray(), await receive()
            if is_read:
                return message
            is_read = True
            while message["type"] == "http.request":
                body += message.get("body", b"")
                if len(body) > self._most_bytes or not message.get("more_body", False):
                    is_refused = has_many_values(bytes(body))
                    return {**message, "body": b"" if is_refused else without_halves(bytes(body))}
                message = await receive()
            return {"type": "http.request", "body": b"", "more_body": False}

        async def heard(message: Message) -> None:
            if not is_refused:
                await send(message)

        await self._app(scope, whole, heard)
        if is_refused:
            said = f"a message has at most {MAX_VALUES} values; send it in parts"
            await PlainTextResponse(said, 413)(scope, receive, send)
