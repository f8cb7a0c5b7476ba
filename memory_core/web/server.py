"""uvicorn, set up once for every program that serves over HTTP."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from memory_core.web.connection import Connection
from memory_core.web.fair_share import FairShare, token_of
from memory_core.web.listening import BACKLOG
from memory_core.web.observed import Observed, global_tracer
from memory_core.web.requests import Requests

try:
    import uvicorn
    from starlette.types import ASGIApp, Scope
    from typing_extensions import override
except ImportError as error:
    raise ImportError("a web server needs uvicorn: pip install 'memory-core[serve]' or 'memory-core[mcp]'") from error

GRACE_SECONDS: Final = 5
KEEP_ALIVE_SECONDS: Final = 120
"""The time for which an idle connection stays open. Agents often pause for longer than uvicorn's default of 5
seconds between two calls, and a call that is sent while the server closes the connection fails."""
MAX_CONNECTIONS: Final = 2_048
SHARES: Final = 4
"""One caller may have a quarter of all connections in use at once."""


class WebServer(uvicorn.Server):
    """Serves an application until `should_exit` is set.

    It leaves signals to the program: uvicorn would end the process before the memory is closed, and 0.54 has no option
    for that (https://github.com/Kludex/uvicorn/issues/1579).

    Args:
        app: Without a lifespan, which is the caller's.
        grace_seconds: The time that requests in progress may take after `should_exit` was set.
        on_start: Called once when requests are answered.
        caller_of: Returns the caller whose share a request takes; see `FairShare`.
        requests: Counts what is answered.
        traced: Make an OpenTelemetry span of each request.
    """

    def __init__(
        self,
        app: ASGIApp,
        grace_seconds: int = GRACE_SECONDS,
        on_start: Callable[[], object] = lambda: None,
        *,
        caller_of: Callable[[Scope], str | None] = token_of,
        requests: Requests | None = None,
        traced: bool = False,
    ) -> None:
        limit = connection_limit()
        super().__init__(
            uvicorn.Config(
                Observed(
                    FairShare(app, max(limit // SHARES, 1), caller_of),
                    requests or Requests(),
                    tracer=global_tracer() if traced else None,
                ),
                http=Connection,
                limit_concurrency=limit + BACKLOG,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=grace_seconds,
            )
        )
        self._on_start = on_start

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


def connection_limit() -> int:
    """Half of the descriptors that the system lets this process have; files, models and what is just accepted have the
    other half."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource  # noqa: PLC0415  (Windows has none)

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(min(soft // 2, MAX_CONNECTIONS), 1)
