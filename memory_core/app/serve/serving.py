"""Listen, serve until a signal comes, and end in an orderly way."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

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
_BACKLOG: Final = 2_048


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


@contextmanager
def listening(host: str, port: int, path: Path | None) -> Generator[tuple[str, list[socket.socket]]]:
    """Sockets that listen on an address and, if a path is given, on a local socket that only this user can open.

    Yields:
        The address as `host:port`, and the sockets.

    Raises:
        InvalidInputError: One of them cannot be listened on.
    """
    with ExitStack() as stack:
        tcp = stack.enter_context(_tcp(host, port))
        sockets = [tcp]
        if path is not None:
            sockets.append(stack.enter_context(_local(path)))
        shown = f"[{host}]" if tcp.family == socket.AF_INET6 else host
        yield f"{shown}:{tcp.getsockname()[1]}", sockets


@contextmanager
def _tcp(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; without it, each answer waits 40 ms for an ACK.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
            made.listen(_BACKLOG)
        except OSError as cause:
            raise InvalidInputError(
                f"cannot listen on {host} port {port}: {cause.strerror}; choose another with --port"
            ) from cause
        yield made


@contextmanager
def _local(path: Path) -> Generator[socket.socket]:
    """A local socket of mode 0600; one that a killed server has left is replaced."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        before = os.umask(0o177)  # the socket has its mode from the moment it exists
        try:
            _remove_dead(path)
            made.bind(str(path))
            made.listen(_BACKLOG)
        except OSError as cause:
            raise InvalidInputError(f"cannot listen on the local socket {str(path)!r}: {cause}") from cause
        finally:
            os.umask(before)
        try:
            yield made
        finally:
            with suppress(FileNotFoundError):
                path.unlink()


def _remove_dead(path: Path) -> None:
    """Remove a socket on which nobody listens.

    Raises:
        OSError: Somebody does, or it is another kind of file.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"there is a file at {str(path)!r}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            try:
                asked.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
                return
        raise OSError("another server listens there")
