"""A limit of the MCP sessions of each caller. The SDK has one for all callers together, which one of them can use up.

After the limit, a new session ends the one of the same caller that has been idle longest, as its client could (DELETE).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

try:
    from starlette.datastructures import Headers, MutableHeaders
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_SESSIONS: Final = 100
"""Sessions that a caller may have open."""
_SESSION: Final = "mcp-session-id"


class LimitedSessions:
    """An ASGI application in front of the SDK's. A caller is who sends the same bearer token, however its scheme
    is written."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: dict[str, OrderedDict[str, None]] = {}
        """For each caller the sessions, the one that was used last at the end."""
        self._in_use: Counter[str] = Counter()
        """Requests of each session that are in progress."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        caller, named = headers.get("authorization", "").partition(" ")[2], headers.get(_SESSION)
        if named is None:
            await self._beginning(caller, scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._ending(caller, named, scope, receive, send)
        else:
            await self._using(caller, named, scope, receive, send)

    async def _using(self, caller: str, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        known = self._open.get(caller, OrderedDict())
        if session in known:
            known.move_to_end(session)
        self._in_use[session] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_use[session] -= 1
            if not self._in_use[session]:
                del self._in_use[session]

    async def _ending(self, caller: str, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A request to end a session, which goes on and counts if that is refused."""

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                self._open.get(caller, OrderedDict()).pop(session, None)
            await send(message)

        await self._app(scope, receive, watched)

    async def _beginning(self, caller: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A request without a session, whose answer names the one that it has begun, if it has."""
        begun: str | None = None

        async def watched(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and message["status"] < 400:
                begun = Headers(raw=message["headers"]).get(_SESSION)
            await send(message)

        await self._app(scope, receive, watched)
        if begun is None:
            return
        own = self._open.setdefault(caller, OrderedDict())
        own[begun] = None
        if len(own) > MAX_SESSIONS:
            idle = next((each for each in own if each not in self._in_use), begun)
            del own[idle]
            await self._end(idle, scope)

    async def _end(self, session: str, scope: Scope) -> None:
        headers = MutableHeaders(raw=list(scope["headers"]))
        headers[_SESSION] = session
        headers["content-length"] = "0"
        await self._app({**scope, "method": "DELETE", "headers": headers.raw}, _nothing, _unheard)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_: Message) -> None:
    """Nobody has asked for the answer."""
