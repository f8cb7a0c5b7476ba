"""A limit of what the server keeps in memory for a client that is not connected.

The SDK keeps the whole request that opened a session, as long as the session is open, and the whole request behind each
question to a user, as long as nobody answers it.
"""

from __future__ import annotations

from typing import Any, Final

import anyio

try:
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS, INVALID_REQUEST
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

MAX_KEPT_BYTES: Final = 65_536
"""The most bytes of a request that is kept. The longest filter has some 45,000 bytes with every character escaped."""
MAX_QUESTIONS: Final = 16
"""Questions of a caller that wait for an answer; after that, a new one ends the one that has waited longest."""
_ASKS: Final = "memory_forget"
"""The tool that asks."""


class FewKept:
    """Middleware of the SDK's server. A caller is the user of a token; without tokens there is one."""

    def __init__(self) -> None:
        self._asking: dict[str | None, list[anyio.CancelScope]] = {}
        """For each caller the calls that may wait for their user, the first one at the beginning."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a message.

        Raises:
            MCPError: It is too long to be kept, or newer questions have ended it.
        """
        asks = ctx.method == "tools/call" and ctx.params is not None and ctx.params.get("name") == _ASKS
        if not asks and ctx.method != "initialize":
            return await call_next(ctx)
        if ctx.request is not None and len(await ctx.request.body()) > MAX_KEPT_BYTES:
            raise MCPError(INVALID_PARAMS, f"this message may have {MAX_KEPT_BYTES} bytes at most; shorten it")
        return await (self._asked(ctx, call_next) if asks else call_next(ctx))

    async def _asked(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        token = get_access_token()
        caller = None if token is None else token.subject
        own = self._asking.setdefault(caller, [])
        if len(own) >= MAX_QUESTIONS:
            own.pop(0).cancel()
        with anyio.CancelScope() as scope:
            own.append(scope)
            try:
                return await call_next(ctx)
            finally:
                if scope in own:
                    own.remove(scope)
                if not own:
                    self._asking.pop(caller, None)
        raise MCPError(INVALID_REQUEST, f"{MAX_QUESTIONS} newer questions wait for an answer; this one was ended")
