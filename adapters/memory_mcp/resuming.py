"""Streams that a client wants to resume, which begin anew.

This server keeps no events, and numbers none. To a client that names one nevertheless, mcp 2.3.0 gives no answer at
all, which a web server reports as a defect; this file goes when it answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_LAST: Final = b"last-event-id"


class NothingToResume:
    """An ASGI application whose requests name no event that was the last."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] == "http":
            scope = {**scope, "headers": [each for each in scope["headers"] if each[0] != _LAST]}
        await self._app(scope, receive, send)
