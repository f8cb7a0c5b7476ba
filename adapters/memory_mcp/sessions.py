"""A limit of the MCP sessions of each caller, and of what each keeps in memory.

The SDK limits the sessions of all callers together, and one caller can use that limit up. Here each caller has a limit:
beyond it, a new session ends the caller's session that has been idle longest, as its client could (DELETE).

A session of mcp 2.3.0 keeps its latest message and answer until the next ones come, which can be 16 MB and more in each
of a hundred sessions. So a ping follows a long message or answer, and takes its place.
"""

from __future__ import annotations

import asyncio
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
MAX_MESSAGE_BYTES: Final = 65_536
"""The most bytes of a message and its answer together that a session may keep until the next ones come."""
_SESSION: Final = "mcp-session-id"
_PING: Final = b'{"jsonrpc": "2.0", "method": "ping", "id": "memory-core"}'


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
        sized = _Sized(receive, send)
        try:
            await self._app(scope, sized.receive, sized.send)
            await self._let_go(sized, session, scope)
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
        sized = _Sized(receive, send)

        async def watched(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and message["status"] < 400:
                begun = Headers(raw=message["headers"]).get(_SESSION)
            await sized.send(message)

        await self._app(scope, sized.receive, watched)
        if begun is None:
            return
        await self._let_go(sized, begun, scope)
        own = self._open.setdefault(caller, OrderedDict())
        own[begun] = None
        if len(own) > MAX_SESSIONS:
            idle = next((each for each in own if each not in self._in_use), begun)
            del own[idle]
            await self._end(idle, scope)

    async def _end(self, session: str, scope: Scope) -> None:
        await self._say("DELETE", b"", session, scope)

    async def _let_go(self, sized: _Sized, session: str, scope: Scope) -> None:
        """Let a session forget a long message and its answer."""
        if sized.bytes > MAX_MESSAGE_BYTES:
            await self._say("POST", _PING, session, scope)

    async def _say(self, method: str, body: bytes, session: str, scope: Scope) -> None:
        """Send a request that the client of another one could send."""
        headers = MutableHeaders(raw=list(scope["headers"]))
        headers[_SESSION] = session
        headers["content-length"] = str(len(body))

        sent = False

        async def receive() -> Message:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # nobody hangs up
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app({**scope, "method": method, "headers": headers.raw}, receive, _unheard)


class _Sized:
    """A request and its answer, and their length so far."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.bytes += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        self.bytes += len(message.get("body", b""))
        await self._send(message)


async def _unheard(_: Message) -> None:
    """Nobody has asked for the answer."""
