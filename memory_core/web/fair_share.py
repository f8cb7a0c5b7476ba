"""A limit of the requests that one caller has in progress."""

from __future__ import annotations

from collections import Counter
from typing import Final

try:
    from starlette.datastructures import Headers
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Receive, Scope, Send
except ImportError as error:
    raise ImportError("a web server needs uvicorn: pip install 'memory-core[serve]' or 'memory-core[mcp]'") from error

RETRY_SECONDS: Final = 1


class FairShare:
    """An application in front of another one, which answers 429 to a caller who has too many requests in progress.

    A caller is who sends the same token or the same cookie. Callers without any are answered at once, and hold nothing
    but a connection, which has limits of its own.

    Args:
        most: Requests of a caller that may be in progress.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        caller = headers.get("authorization") or headers.get("cookie")
        if caller is None:
            await self._app(scope, receive, send)
            return
        if self._running[caller] >= self._most:
            said = f"you have {self._most} requests in progress, which is the most; wait for their answers"
            await PlainTextResponse(said, 429, {"retry-after": str(RETRY_SECONDS)})(scope, receive, send)
            return
        self._running[caller] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller]
