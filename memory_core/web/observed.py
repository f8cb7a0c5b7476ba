"""See every request that is answered: counted, and if that is asked for, logged and traced.

Neither a count nor a line nor a span has a text, a name, an id or a token: a request is known by its route.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, MutableMapping
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from memory_core.web.requests import METHODS, OTHER, Requests

try:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("a web server needs uvicorn: pip install 'memory-core[serve]' or 'memory-core[mcp]'") from error

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

logger = logging.getLogger("memory_core.access")

HUNG_UP: Final = 499
"""The status of what was not answered, because its client had hung up (as nginx counts it)."""
_ROUTE: Final = "memory_core.route"
_SERVER_ERROR: Final = 500


class _Seen:
    """The facts that become known of a request while it is answered."""

    def __init__(self) -> None:
        self.route = OTHER
        self.status = HUNG_UP
        self.sent = 0


def name_route(scope: Scope, route: str) -> None:
    """Say which route answers a request: the template of its path."""
    seen = scope.get(_ROUTE)
    if isinstance(seen, _Seen):
        seen.route = route


class Observed:
    """An application in front of another one, which counts what the other one answers.

    Args:
        tracer: Makes a span of each request.
    """

    def __init__(self, app: ASGIApp, requests: Requests, *, tracer: Tracer | None = None) -> None:
        self._app = app
        self._requests = requests
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen, began = _Seen(), perf_counter()

        async def noting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            seen.sent += len(message.get("body", b""))
            await send(message)

        self._requests.in_progress += 1
        try:
            with nullcontext() if self._tracer is None else _span(self._tracer, scope, seen):
                await self._app({**scope, _ROUTE: seen}, receive, noting_send)
        finally:
            self._requests.in_progress -= 1
            method, seconds = _method(scope), perf_counter() - began
            self._requests.answered(method, seen.route, seen.status, seconds)
            logger.info("%s %s %d %.1f ms %d bytes", method, seen.route, seen.status, 1_000 * seconds, seen.sent)


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else OTHER


def global_tracer() -> Tracer:
    """The tracer of OpenTelemetry's global provider.

    Raises:
        ImportError: OpenTelemetry's API is missing.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ImportError("spans of requests need OpenTelemetry: pip install 'memory-core[otel]'") from error
    return trace.get_tracer("memory_core")


@contextmanager
def _span(tracer: Tracer, scope: Scope, seen: _Seen) -> Generator[None]:
    """A span of a request, below that of its caller; its name is known at the end."""
    from opentelemetry.propagate import extract  # noqa: PLC0415  (an extra)
    from opentelemetry.trace import SpanKind  # noqa: PLC0415

    with tracer.start_as_current_span(
        _method(scope),
        context=extract(_headers(scope["headers"])),
        kind=SpanKind.SERVER,
        record_exception=False,  # its message may quote a memory
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        finally:
            _end(span, _method(scope), seen)


def _end(span: Span, method: str, seen: _Seen) -> None:
    from opentelemetry.trace import StatusCode  # noqa: PLC0415  (an extra)

    span.update_name(f"{method} {seen.route}")
    span.set_attributes(
        {"http.request.method": method, "http.route": seen.route, "http.response.status_code": seen.status}
    )
    if seen.status >= _SERVER_ERROR:
        span.set_attribute("error.type", str(seen.status))
        span.set_status(StatusCode.ERROR)


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> MutableMapping[str, Any]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
