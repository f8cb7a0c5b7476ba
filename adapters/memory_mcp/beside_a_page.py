"""The MCP server as a part of `memory-core serve`, which finds it by an entry point: one port, the same tokens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from memory_core import BoundMemory
from memory_mcp.owners import access_of
from memory_mcp.server import http_app, memory_server

try:
    from mcp.server.auth.provider import AccessToken
    from starlette.types import ASGIApp
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error


class TokensOfThePage:
    """Verifies the tokens of the server that it is a part of; implements `TokenVerifier` of the MCP SDK."""

    def __init__(self, user_of: Callable[[str], str | None]) -> None:
        self._user_of = user_of

    async def verify_token(self, token: str) -> AccessToken | None:
        """Called by the SDK for each request; the token itself is not passed on."""
        return access_of(self._user_of(token))


@asynccontextmanager
async def served(
    memory: BoundMemory | Callable[[str], BoundMemory],
    *,
    user_of: Callable[[str], str | None],
    hosts: frozenset[str],
    writable: bool,
) -> AsyncGenerator[ASGIApp]:
    """Serve MCP at `/mcp` of another server; see `memory_core.app.serve.beside.Offer`."""
    server = memory_server(memory, tools=None if writable else "read", tokens=TokensOfThePage(user_of))
    named = [f"{host}{port}" for host in sorted(hosts) for port in ("", ":*")]
    app = http_app(server, hosts=named)
    async with app.router.lifespan_context(app):
        yield app
