"""Serve over a transport until the client leaves or the task is cancelled; then end in an orderly way."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from memory_core import InvalidInputError
from memory_mcp.server import http_app
from memory_mcp.standard_input import stoppable_standard_input
from memory_mcp.stopping import GRACE_SECONDS

try:
    import uvicorn
    from mcp.server.mcpserver import MCPServer
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

_KEEP_ALIVE_SECONDS: Final = 120
"""How long an idle connection stays open. Agents often pause for longer than uvicorn's default of 5 seconds between two
calls, and a call that is sent while the server closes the connection fails."""
_BACKLOG: Final = 2_048
"""Connections that may wait to be accepted; uvicorn's own default."""


async def serve_stdio(server: MCPServer) -> None:
    """Serve one client over standard input and output.

    Raises:
        CancelledError: The task was cancelled; the client was treated as if it had closed standard input.
    """
    with stoppable_standard_input() as stream:
        await _served(asyncio.create_task(server.run_stdio_async()), stream.end)


async def serve_http(server: MCPServer, host: str, port: int, *, hosts: Sequence[str]) -> None:
    """Serve any number of clients over HTTP, and write the address to standard error.

    Args:
        server: From `memory_server`.
        host: Address to listen on.
        port: Port to listen on; 0 for any that is free.
        hosts: See `http_app`.

    Raises:
        InvalidInputError: The server cannot listen there.
        CancelledError: The task was cancelled; calls in progress had some seconds to end.
    """
    with _listening(host, port) as listening:
        shown = f"[{host}]" if listening.family == socket.AF_INET6 else host
        sys.stderr.write(f"memory-mcp: http://{shown}:{listening.getsockname()[1]}/mcp\n")
        sys.stderr.flush()
        config = uvicorn.Config(
            http_app(server, hosts=hosts),
            log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        web = _WebServer(config)
        await _served(asyncio.create_task(web.serve(sockets=[listening])), web.stop)


async def _served(serving: asyncio.Task[None], stop: Callable[[], None]) -> None:
    """Wait for a server; if this is cancelled, stop the server first."""
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        stop()
        if (await asyncio.wait({serving}, timeout=2 * GRACE_SECONDS))[1]:
            serving.cancel()
            await asyncio.wait({serving}, timeout=GRACE_SECONDS)
        raise


class _WebServer(uvicorn.Server):
    """A web server that leaves signals to the program: uvicorn would end the process before the memory is closed.

    uvicorn 0.54 has no option for that (https://github.com/Kludex/uvicorn/issues/1579).
    """

    def stop(self) -> None:
        """End soon."""
        self.should_exit = True

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol; without it, each answer waits 40 ms for an ACK.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(_BACKLOG)
        except OSError as cause:
            raise InvalidInputError(f"cannot listen on {host} port {port}: {cause.strerror}; choose another") from cause
        yield listening
