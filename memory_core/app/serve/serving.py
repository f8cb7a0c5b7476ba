"""Listen, serve until a signal comes, and end in an orderly way."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from memory_core.app.serve.local_socket import BACKLOG, local_socket
from memory_core.errors import InvalidInputError

try:
    import uvicorn
    from starlette.types import ASGIApp
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory-core serve` needs uvicorn: pip install 'memory-core[serve]'") from error

GRACE_SECONDS: Final = 5
"""How long requests in progress may take after a signal."""
KEEP_ALIVE_SECONDS: Final = 120
"""How long an idle connection stays open; agents pause for longer than uvicorn's default of 5 seconds."""


async def serve_until_signal(
    app: ASGIApp, sockets: Sequence[socket.socket], on_start: Callable[[], object]
) -> int | None:
    """Serve until SIGINT, SIGTERM or SIGHUP; returns its number, or `None` if the server ended by itself.

    Requests in progress are answered first, for some seconds at most.

    Args:
        on_start: Called once when requests are answered, and signals end the server in an orderly way.
    """
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server, received, loop = _Server(config, on_start), list[int](), asyncio.get_running_loop()

    def stop(number: int) -> None:
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


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Server(uvicorn.Server):
    """A server that leaves signals to this module: uvicorn would end the process before the memory is closed."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_start = on_start

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


class Listening(NamedTuple):
    """Where a server listens."""

    address: str
    """Of the page, as `host:port`."""
    sockets: Sequence[socket.socket]
    unheard: str | None
    """Why nobody is heard beside the file, if it is so."""


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
        tcp = stack.enter_context(_tcp(host, port))
        sockets, unheard = [tcp], None
        if path is not None:
            sockets.append(stack.enter_context(local_socket(path)))
        if beside is not None and beside != path:
            try:
                sockets.append(stack.enter_context(local_socket(beside)))
            except InvalidInputError as refused:
                unheard = str(refused)
        shown = f"[{host}]" if tcp.family == socket.AF_INET6 else host
        yield Listening(f"{shown}:{tcp.getsockname()[1]}", sockets, unheard)


@contextmanager
def _tcp(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; without it, each answer waits 40 ms for an ACK.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
            made.listen(BACKLOG)
        except OSError as cause:
            raise InvalidInputError(
                f"cannot listen on {host} port {port}: {cause.strerror}; choose another with --port"
            ) from cause
        yield made
