"""Serve over a transport until the client leaves or the task is cancelled; then end in an orderly way."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

from memory_core.adapting import WebServer, address_of, listening_on, survive_errors
from memory_mcp.server import http_app
from memory_mcp.standard_input import stoppable_standard_input
from memory_mcp.stopping import GRACE_SECONDS

try:
    from mcp.server.mcpserver import MCPServer
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error


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
    survive_errors(asyncio.get_running_loop())
    app = http_app(server, hosts=hosts)
    with listening_on(host, port) as listening:
        async with app.router.lifespan_context(app):
            sys.stderr.write(f"memory-mcp: http://{address_of(listening)}/mcp\n")
            sys.stderr.flush()
            web = WebServer(app, GRACE_SECONDS)

            def stop() -> None:
                web.should_exit = True

            await _served(asyncio.create_task(web.serve(sockets=[listening])), stop)


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
