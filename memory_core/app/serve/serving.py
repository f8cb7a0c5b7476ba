"""Listen, serve until a signal comes, and end in an orderly way."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from memory_core.app.serve.local_socket import local_socket
from memory_core.errors import InvalidInputError
from memory_core.web.listening import address_of, listening_on
from memory_core.web.process import end_in_time, survive_errors
from memory_core.web.requests import Requests
from memory_core.web.server import WebServer

try:
    from starlette.types import ASGIApp, Scope
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def serve_until_signal(
    app: ASGIApp,
    sockets: Sequence[socket.socket],
    on_start: Callable[[], object],
    *,
    caller_of: Callable[[Scope], str | None],
    requests: Requests | None = None,
    traced: bool = False,
) -> int | None:
    """Serve until SIGINT, SIGTERM or SIGHUP; returns its number, or `None` if the server ended by itself.

    Requests in progress are answered first, for some seconds at most, and soon after the process has to end.

    Args:
        on_start: Called once when requests are answered, and signals end the server in an orderly way.
        caller_of: Returns the caller whose share a request takes.
        requests: Counts what is answered.
        traced: Make an OpenTelemetry span of each request.
    """
    server = WebServer(app, on_start=on_start, caller_of=caller_of, requests=requests, traced=traced)
    received, loop = list[int](), asyncio.get_running_loop()
    survive_errors(loop)

    def stop(number: int) -> None:
        if not received:
            end_in_time()
        received.append(number)
        server.should_exit = True

    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        await server.serve(sockets=list(sockets))
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return received[0] if received else None


class Listening(NamedTuple):
    """The places where a server listens."""

    address: str
    """Of the page, as `host:port`."""
    sockets: Sequence[socket.socket]
    unheard: str | None
    """The reason why nobody is heard beside the file, if that is so."""


@contextmanager
def listening(host: str, port: int, *, path: Path | None, beside: Path | None) -> Generator[Listening]:
    """Sockets that listen on an address and on local sockets that only this user can open.

    Args:
        host: The address.
        port: 0 for any that is free.
        path: Of a local socket that was asked for.
        beside: Of the local socket for hooks, which do without it where it cannot be.

    Raises:
        InvalidInputError: It is not possible to listen on what was asked for.
    """
    with ExitStack() as stack:
        tcp = stack.enter_context(listening_on(host, port))
        sockets, unheard = [tcp], None
        if path is not None:
            sockets.append(stack.enter_context(local_socket(path)))
        if beside is not None and beside != path:
            try:
                sockets.append(stack.enter_context(local_socket(beside)))
            except InvalidInputError as refused:
                unheard = str(refused)
        yield Listening(address_of(tcp), sockets, unheard)
