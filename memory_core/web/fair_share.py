"""A share of the server for each caller: few of their requests are worked on at once, few of their answers wait to be
read, and a limited number of requests waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

try:
    from starlette.datastructures import Headers
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("a web server needs uvicorn: pip install 'memory-core[serve]' or 'memory-core[mcp]'") from error

RETRY_SECONDS: Final = 1
MOST_ANSWERS: Final = 16
"""Requests of one caller that are worked on or whose answers are not sent yet, streams of events apart: an answer has
some megabytes, which stay in memory while its client does not read."""
_PIECE: Final = 65_536
"""Bytes of an answer that are handed on at once. The server waits for the client before each piece, not within one."""
AT_ONCE: Final = 4
"""Requests of one caller that are worked on at once, until their answers begin; a stream of events (MCP) begins before
its answer. Other callers wait behind so many of them and not behind all: docs/measured.md, "Many users at one
server"."""


HUNG_UP_SECONDS: Final = 60.0
"""The time for which a request keeps its turn after its client has hung up. Longer than a call may take by default, and
not for ever: of two requests that have the same id, the MCP SDK answers one."""


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
        self._places: dict[str, _Places] = {}

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
            await self._in_turn(self._places.setdefault(caller, _Places()), scope, receive, send)
        finally:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller], self._places[caller]

    async def _in_turn(self, places: _Places, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Place(places.answers)
        await answer.take()
        try:
            await self._worked_on(places.turns, answer, scope, receive, send)
        finally:
            answer.leave()

    async def _worked_on(
        self, turns: asyncio.Semaphore, answer: _Place, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request in its turn, which ends when its answer begins: the rest goes at the client's pace. An
        application hears only then that the client has hung up: it could leave the request, and its work would go on
        (MCP)."""
        turn = _Place(turns)
        await turn.take()
        is_whole, is_stream = False, False

        async def patient_receive() -> Message:
            nonlocal is_whole
            message = await receive()
            if message["type"] == "http.request":
                is_whole = not message.get("more_body", False)
            elif is_whole:
                with suppress(TimeoutError):
                    async with asyncio.timeout(HUNG_UP_SECONDS):
                        await turn.is_left.wait()
            return message

        async def noting_send(message: Message) -> None:
            nonlocal is_stream
            if message["type"] == "http.response.start":
                is_stream = scope["method"] == "POST" and _is_stream(message)
                if _is_stream(message):
                    answer.leave()
            if not is_stream or _answers(message):
                turn.leave()
            for piece in _pieces(message):
                await send(piece)

        try:
            await self._app(scope, patient_receive, noting_send)
        finally:
            turn.leave()


class _Places:
    """The places of one caller."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.answers = asyncio.Semaphore(MOST_ANSWERS)


class _Place:
    """A place that is taken once and left once."""

    def __init__(self, of: asyncio.Semaphore) -> None:
        self._of = of
        self.is_left = asyncio.Event()

    async def take(self) -> None:
        await self._of.acquire()

    def leave(self) -> None:
        if not self.is_left.is_set():
            self.is_left.set()
            self._of.release()


def _pieces(message: Message) -> Iterator[Message]:
    """A message, or several with a part of its body each."""
    body: bytes = message.get("body", b"")
    if len(body) <= _PIECE:
        yield message
        return
    for start in range(0, len(body), _PIECE):
        is_last = start + _PIECE >= len(body)
        more = not is_last or message.get("more_body", False)
        yield {**message, "body": body[start : start + _PIECE], "more_body": more}


def token_of(scope: Scope) -> str | None:
    """The token of a request, known or not; the scheme before it does not count."""
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
