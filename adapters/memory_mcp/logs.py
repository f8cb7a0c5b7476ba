"""The protocol's messages for logs: how long each call took, and what kind of error ended it; never a text or a name.

The protocol has deprecated them with its version 2026-07-28, for which a client asks with each request. A client of an
earlier version asks with `logging/setLevel`, once for its connection.
"""

from __future__ import annotations

import time
import weakref
from typing import Any, Final, get_args

from memory_core import MemoryCoreError, StorageError

try:
    from mcp.server.connection import allowed_log_levels
    from mcp.server.context import ServerRequestContext
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INVALID_PARAMS,
        CallToolResult,
        EmptyResult,
        GetPromptResult,
        InputRequiredResult,
        LoggingLevel,
        LoggingMessageNotification,
        LoggingMessageNotificationParams,
        SetLevelRequestParams,
    )
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
    from typing_extensions import override
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

LOGGER: Final = "memory"
UNASKED: Final[LoggingLevel] = "warning"
"""From which level on a client of an earlier version is told what it has not asked for."""
_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)
"""Least severe first."""


class LoggingServer(MCPServer[Any]):
    """A server whose clients can ask for messages about their calls, once `offer_logs` is called."""

    _level_of: dict[int, LoggingLevel]
    """By the identity of what a client of an earlier version said when it connected."""

    def offer_logs(self) -> None:
        """Take levels from clients of earlier versions of the protocol."""
        self._level_of = {}
        # The SDK has no other place for a method that a version of the protocol has removed; see its `MethodBinding`.
        self._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)

    @override
    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        begun = time.perf_counter()
        try:
            result = await super().call_tool(name, arguments, context)
        except ToolError as failure:
            await self._tell(context, *_about(name, failure))
            raise
        await self._tell(context, "debug", f"{name} took {1_000 * (time.perf_counter() - begun):.0f} ms")
        return result

    @override
    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        known = [prompt.name for prompt in await self.list_prompts()]
        if name not in known:  # the SDK would log a crash, and answer with an internal error
            raise MCPError(INVALID_PARAMS, f"there is no prompt {name!r:.80}; there is {', '.join(known)}")
        return await super().get_prompt(name, arguments, context)

    async def _set_level(self, context: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
        client = context.session.client_params
        if client is not None:  # the same object for as long as the client is connected
            if id(client) not in self._level_of:
                weakref.finalize(client, self._level_of.pop, id(client), None)
            self._level_of[id(client)] = params.level
        return EmptyResult()

    async def _tell(self, context: Context[Any, Any] | None, level: LoggingLevel, message: str) -> None:
        """Send a message, if the client wants it."""
        if context is None:  # a call by the program itself
            return
        request = context.request_context
        if level not in allowed_log_levels(request.protocol_version, request.meta):
            return
        if request.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            wanted = self._level_of.get(id(request.session.client_params), UNASKED)
            if _LEVELS.index(level) < _LEVELS.index(wanted):
                return
        told = LoggingMessageNotificationParams(level=level, logger=LOGGER, data=message)
        await request.session.send_notification(
            LoggingMessageNotification(params=told), related_request_id=request.request_id
        )


def _about(tool: str, failure: ToolError) -> tuple[LoggingLevel, str]:
    """Level and message for a call that failed. Its answer says what was wrong, and may quote the call."""
    cause = failure.__cause__
    if isinstance(failure, UnexpectedToolError) or isinstance(cause, StorageError):
        kind = type(cause).__name__ if isinstance(cause, MemoryCoreError) else "an internal error"
        return "error", f"{tool} failed: {kind}; the server's log says more"
    return "info", f"{tool} refused its arguments"
