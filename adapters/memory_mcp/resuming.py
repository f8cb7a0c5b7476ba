"""Requests to resume a stream of events: the client gets a new stream.

This server stores no events, so none can be sent again. If a client names the last event it received, mcp 2.3.0 sends
no answer at all, which a web server reports as a defect. This file can go when the SDK answers such a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_LAST: Final = b"last-event-id"


class NothingToResume:
    """An ASGI application in front of another one, which hears of no last event."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] == "http":
            scope = {**scope, "headers": [each for each in scope["headers"] if each[0] != _LAST]}
        await self._app(scope, receive, send)
