"""True if the server lives, whether it is ready, and what it has done: for supervisors, proxies and dashboards."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Annotated, Final

from memory_core.app.serve.bodies import Health
from memory_core.app.serve.callers import THE_OPERATOR, Caller
from memory_core.app.serve.problems import Problem
from memory_core.app.serve.served import TokenFirst, bearer
from memory_core.errors import MemoryCoreError, reason_for_log
from memory_core.memory import Memory
from memory_core.web.requests import Requests, metric

try:
    from fastapi import APIRouter, Depends, HTTPException, Request
    from fastapi.responses import PlainTextResponse
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

KEPT_SECONDS: Final = 2.0
"""The time for which an answer is used again: anybody may ask, and a probe of a memory that is written waits for the
disk."""
PATIENCE_SECONDS: Final = 10.0

logger = logging.getLogger(__name__)


class Monitor:
    """The knowledge of a memory and its server. It is used on the server's loop only.

    A memory is ready if a write, or a read on a server that only reads, succeeds: one is made, which changes no record.
    """

    def __init__(self, memory: Memory, requests: Requests) -> None:
        self.requests = requests
        self._memory = memory
        self._asking: asyncio.Task[None] | None = None
        self._until = 0.0
        self.is_ready = True
        self.vectors_pending: int | None = None

    async def look(self) -> None:
        """Bring `is_ready` up to date; callers that ask meanwhile wait for the same answer."""
        if self._asking is None and time.monotonic() >= self._until:
            self._asking = asyncio.create_task(self._ask(), name="memory-core probe")
        if self._asking is not None:
            await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        was_ready = self.is_ready
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                self.vectors_pending = await self._memory.operator().probe()
            self.is_ready = True
        except (MemoryCoreError, TimeoutError) as error:
            self.is_ready = False
            if was_ready:
                logger.error("this server is not ready: %s", reason_for_log(error))  # noqa: TRY400  (one line)
        finally:
            self._asking, self._until = None, time.monotonic() + KEPT_SECONDS

    def text(self) -> str:
        """All of it in Prometheus' form."""
        lines = [*metric("memory_core_ready", "gauge", {"": int(self.is_ready)}), *self.requests.lines()]
        if self.vectors_pending is not None:
            lines += metric("memory_core_vectors_pending", "gauge", {"": self.vectors_pending})
        return "".join(f"{line}\n" for line in lines)


def monitor_of(request: Request) -> Monitor:
    """The monitor of the server that answers a request."""
    found: Monitor = request.app.state.monitor
    return found


health = APIRouter(prefix="/v1", tags=["health"])
"""The routes that need no token."""
metrics = APIRouter(route_class=TokenFirst, include_in_schema=False)

_NOT_READY: Final = "a write, or a read if the server only reads, would fail now; `memory-core doctor` says more"


@health.get(
    "/health",
    responses={
        503: {"description": "It is not ready.", "content": {"application/problem+json": {"schema": Problem.REF}}}
    },
)
async def is_ready(request: Request) -> Health:
    """True if the server is ready: a write would succeed, or a read on a server that only reads. Needs no token."""
    monitor = monitor_of(request)
    await monitor.look()
    if not monitor.is_ready:
        raise HTTPException(503, _NOT_READY)
    return Health()


@health.get("/live")
async def is_alive() -> Health:
    """That the server answers, whatever its memory does. Needs no token."""
    return Health()


@metrics.get("/metrics")
async def measured(request: Request, caller: Annotated[Caller, Depends(bearer)]) -> PlainTextResponse:
    """The counts of what the server has done, for Prometheus; they need the operator's token."""
    if caller != THE_OPERATOR:
        raise HTTPException(403, "only the operator's token may see metrics")
    monitor = monitor_of(request)
    await monitor.look()
    return PlainTextResponse(monitor.text(), media_type="text/plain; version=0.0.4")
