"""A connection of the web server, which waits for its client for a limited time.

uvicorn waits for the head and the body of a request, and for a client that does not read, as long as the client likes
(0.54). So strangers without a token could take all descriptors of the process.

A connection *waits* if the next step is its client's: to send a request or the rest of one, or to read an answer. What
waits ends after its deadline, or when a new connection finds no room and this one has waited longest.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import Final

from memory_core.web.listening import BACKLOG
from memory_core.web.local import LOCAL

try:
    from typing_extensions import override
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise ImportError("a web server needs uvicorn: pip install 'memory-core[serve]' or 'memory-core[mcp]'") from error

HEAD_SECONDS: Final = 10.0
"""The time that a client may take from the first byte of a request (of the first request: from the connection) to
the end of its head."""
BODY_SECONDS: Final = 60.0
"""The time that it may take for the body."""
READ_SECONDS: Final = 60.0
"""The time for which it may leave an answer unread that no longer fits into the buffers."""


class Connection(H11Protocol):
    """uvicorn's connection with deadlines. It makes room for new ones before `limit_concurrency` are open, as many
    before as are accepted at once, because uvicorn answers 503 to everybody then."""

    _awaited: object = None
    """The event that the deadline is for: the head of the next request, the rest of this one, or the client's
    reading."""
    _deadline: asyncio.TimerHandle | None = None
    _begins = itertools.count()
    """A number for each time that any connection begins to wait. Two that come at once may have one time."""
    _since = 0
    is_ended = False
    """True if it will be gone at the loop's next turn."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if _is_of_local_socket(transport):
            self.app_state = {**self.app_state, LOCAL: True}
        self._watch()
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency - BACKLOG:
            self._make_room()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()  # waits for the next request for as long as a connection is kept alive
        if self.transport.is_closing():
            self._watch_for(self.flow, READ_SECONDS)
        elif not self._is_at_rest:
            self._watch()
        elif not self.flow.write_paused:
            self._stop_watching()
            self._since = next(self._begins)

    @override
    def timeout_keep_alive_handler(self) -> None:
        self.end()  # uvicorn would wait until the client has read what is buffered

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_for(self.flow, READ_SECONDS)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()
        if not self._is_at_rest:
            self._watch()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    @property
    def waits_since(self) -> int | None:
        """The place in the order in which connections began to wait; `None` if the server has something to do."""
        return self._since if self._deadline is not None or self._is_at_rest else None

    @property
    def _is_at_rest(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _watch(self) -> None:
        """Set or end the deadline for what is to come."""
        if self.flow.write_paused:
            return
        if self._is_at_rest:
            self._watch_for(Connection, HEAD_SECONDS)
        elif self.cycle.more_body:
            self._watch_for(self.cycle, BODY_SECONDS)
        else:
            self._stop_watching()

    def _watch_for(self, awaited: object, seconds: float) -> None:
        if self._awaited is awaited:
            return  # more of the same does not move the deadline
        self._stop_watching()
        self._awaited, self._since = awaited, next(self._begins)
        self._deadline = self.loop.call_later(seconds, self.end)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._awaited = None

    def end(self) -> None:
        """End it, whatever its client has not read yet."""
        self.is_ended = True
        self.transport.abort()

    def _make_room(self) -> None:
        """End the connection that has waited longest; this one, if the server has something to do on all others."""
        oldest, since = self, next(self._begins)
        for other in self.connections:
            if isinstance(other, Connection) and not other.is_ended:
                waits = other.waits_since
                if waits is not None and waits < since:
                    oldest, since = other, waits
        oldest.end()


def _is_of_local_socket(transport: asyncio.Transport) -> bool:
    """True if the server accepted a connection on a local socket, of which `local_socket` makes all that it has."""
    accepted = transport.get_extra_info("socket")
    return accepted is not None and accepted.family == getattr(socket, "AF_UNIX", None)
