"""A share of the server for each caller: few of their requests are worked on at once, and a limited number waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

try:
    from starlette.datastructures import Headers
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("a web server needs uvicorn: pip install 'memory-core[serve]' or 'memory-core[mcp]'") from error

RETRY_SECONDS: Final = 1
AT_ONCE: Final = 4
"""Requests of one caller that are worked on at once, until their answers begin; a stream of events (MCP) begins before
its answer. Other callers wait behind so many of them and not behind all: docs/measured.md, "Many users at one
server"."""


class FairShare:
    """An application in front of another one, which passes on `AT_ONCE` requests of a caller and lets others wait; it
    answers 429 to a caller who has too many in progress.

    Requests of nobody are answered at once, and hold nothing but a connection, which has limits of its own.

    Args:
        most: Requests of a caller that may be in progress.
        caller_of: Called with each request; returns the name of its caller, or `None` for nobody.
    """

    def __init__(self, app: ASGIApp, most: int, caller_of: Callable[[Scope], str | None]) -> None:
        self._app = app
        self._most = most
        self._caller_of = caller_of
        self._running: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        caller = self._caller_of(scope) if scope["type"] == "http" else None
        if caller is None:
            await self._app(scope, receive, send)
            return
        if self._running[caller] >= self._most:
            said = f"you have {self._most} requests in progress, which is the most; wait for their answers"
            await PlainTextResponse(said, 429, {"retry-after": str(RETRY_SECONDS)})(scope, receive, send)
            return
        self._running[caller] += 1
        try:
            await self._in_turn(self._turns.setdefault(caller, asyncio.Semaphore(AT_ONCE)), scope, receive, send)
        finally:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller], self._turns[caller]

    async def _in_turn(self, turns: asyncio.Semaphore, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request in its turn, which ends when its answer begins: the rest goes at the client's pace. An
        application hears only then that the client has hung up: it could leave the request, and its work would go on
        (MCP)."""
        await turns.acquire()
        has_ended, is_whole, is_stream = asyncio.Event(), False, False

        def end_turn() -> None:
            if not has_ended.is_set():
                has_ended.set()
                turns.release()

        async def patient_receive() -> Message:
            nonlocal is_whole
            message = await receive()
            if message["type"] == "http.request":
                is_whole = not message.get("more_body", False)
            elif is_whole:
                await has_ended.wait()
            return message

        async def noting_send(message: Message) -> None:
            nonlocal is_stream
            if message["type"] == "http.response.start":
                is_stream = scope["method"] == "POST" and _is_stream(message)
            if not is_stream or _answers(message):
                end_turn()
            await send(message)

        try:
            await self._app(scope, patient_receive, noting_send)
        finally:
            end_turn()


def token_of(scope: Scope) -> str | None:
    """The token of a request, whoever has it and however its scheme is written."""
    given = Headers(scope=scope).get("authorization")
    return None if given is None else given.partition(" ")[2].strip() or given


def _is_stream(start: Message) -> bool:
    """True if an answer is a stream of events, which begins before the work does (MCP). What is streamed to a GET is
    whatever the server may say later: its client does not wait for any work."""
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/event-stream")


def _answers(message: Message) -> bool:
    """True if a part of a stream is an answer, or a question to the client; progress is neither, nor is a comment."""
    body: bytes = message.get("body", b"")
    return b"data:" in body and _PROGRESS not in body


_PROGRESS: Final = b'"notifications/progress"'
"""In a text, it makes an answer end its turn when it has been sent."""
