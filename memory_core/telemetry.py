"""Spans, metrics and structured logs of all operations, for an application that asks for them with `observe`.

```python
from memory_core.telemetry import observe

stop = observe()  # with the providers that the application has set up for OpenTelemetry
stop()
```

Names are those of OpenTelemetry's semantic conventions for databases and generative AI. No text of a memory, of a
question or of an error is ever part of them, and neither are users' names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sized
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

from memory_core.errors import InvalidInputError
from memory_core.models import Page, Scope
from memory_core.operation import is_observed, observe_by
from memory_core.recall.values import Recalled

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

RETRIEVALS: Final = frozenset({"recall", "search", "search_by_vector"})
NAME: Final = "memory_core"

logger = logging.getLogger("memory_core.operations")

Attributes = dict[str, str | int]


def observe(
    *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None, logs: bool = False
) -> Callable[[], None]:
    """Make a span and metrics of every operation of every handle of this process; returns what ends it.

    Args:
        tracer_provider: The receiver of spans; OpenTelemetry's global provider by default.
        meter_provider: The same for metrics.
        logs: Also log each operation on `memory_core.operations`: a failed one as a warning, others at `INFO`, with the
            attributes of the span as `record.memory_core`.

    Raises:
        ImportError: OpenTelemetry's API is missing; the extra `otel` installs it.
        InvalidInputError: Operations are observed already.
    """
    try:
        from opentelemetry import metrics, trace  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ImportError("`observe` needs OpenTelemetry: pip install 'memory-core[otel]'") from error
    if is_observed():
        raise InvalidInputError("operations are observed already; call what `observe` returned first")
    meter = metrics.get_meter(NAME, meter_provider=meter_provider)
    observer = partial(
        _watched,
        trace.get_tracer(NAME, tracer_provider=tracer_provider),
        meter.create_histogram("db.client.operation.duration", "s", "How long operations take."),
        meter.create_histogram("db.client.response.returned_rows", "{row}", "How many memories they return."),
        logs=logs,
    )
    observe_by(observer)
    return partial(observe_by, None)


@contextmanager
def _watched(
    tracer: Tracer,
    duration: Histogram,
    rows: Histogram,
    name: str,
    scope: Scope,
    given: Mapping[str, object],
    *,
    logs: bool,
) -> Generator[Callable[[object], None]]:
    known, began = _attributes(name, scope, given.get("limit")), perf_counter()
    labels: Attributes = {"db.system.name": NAME, "db.operation.name": name}

    def returned(result: object) -> None:
        known["db.response.returned_rows"] = _count(result)
        rows.record(_count(result), labels)

    with tracer.start_as_current_span(
        f"{name} {NAME}",
        attributes=known,
        record_exception=False,  # its message may quote a memory
        set_status_on_exception=False,
    ) as span:
        try:
            yield returned
        except BaseException as error:  # cancelled ones are counted as well, and all are raised again
            known["error.type"] = labels["error.type"] = type(error).__name__
            raise
        finally:
            seconds = perf_counter() - began
            duration.record(seconds, labels)
            _end(span, known)
            if logs:
                _log(name, known, seconds)


def _end(span: Span, known: Attributes) -> None:
    from opentelemetry.trace import StatusCode  # noqa: PLC0415  (an extra)

    span.set_attributes(known)
    if "error.type" in known:
        span.set_status(StatusCode.ERROR)


def _log(name: str, known: Mapping[str, str | int], seconds: float) -> None:
    values = {**known, "duration_ms": round(1_000 * seconds, 3)}
    level = logging.WARNING if "error.type" in known else logging.INFO
    logger.log(level, "%s took %.1f ms", name, 1_000 * seconds, extra={NAME: values})


def _attributes(name: str, scope: Scope, limit: object) -> Attributes:
    found: dict[str, object] = {
        "db.system.name": NAME,
        "db.operation.name": name,
        "db.namespace": scope.app,
        "db.collection.name": scope.collection,
        "gen_ai.agent.id": scope.agent,
        "gen_ai.conversation.id": scope.session,
        "gen_ai.operation.name": "retrieval" if name in RETRIEVALS else None,
        "gen_ai.request.top_k": limit if name in RETRIEVALS else None,
    }
    return {key: value for key, value in found.items() if isinstance(value, str | int)}


def _count(result: object) -> int:
    """The number of memories that an operation returned, wrote or deleted."""
    if isinstance(result, Page | Recalled):
        return len(result.records)
    if isinstance(result, int):
        return result
    return len(result) if isinstance(result, Sized) else int(result is not None)
