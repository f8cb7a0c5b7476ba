"""Spans, metrics and logs of operations, with OpenTelemetry's own SDK; never a text."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import db_attributes, gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import db_metrics
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import StatusCode

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, Patch, RecordNotFoundError, Where
from memory_core.operation import OPERATIONS
from memory_core.telemetry import observe

SECRET = "The spare key is with Mrs Okafor"


@pytest.fixture
def ann() -> Iterator[BoundMemory]:
    with Memory(":memory:", embedder=None) as memory:
        yield memory.bind(app="demo", user="ann@example.org", session="monday")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = observe(tracer_provider=provider, meter_provider=MeterProvider(), logs=True)
    yield exporter
    stop()
    provider.shutdown()


async def test_every_operation_is_a_span_with_the_names_of_the_conventions(
    ann: BoundMemory, spans: InMemorySpanExporter
) -> None:
    await ann.add(SECRET)
    assert len(await ann.search("Where is the key?", limit=3)) == 1
    added, searched = spans.get_finished_spans()
    assert (added.name, searched.name) == ("add memory_core", "search memory_core")
    assert dict(searched.attributes or {}) == {
        db_attributes.DB_SYSTEM_NAME: "memory_core",
        db_attributes.DB_OPERATION_NAME: "search",
        db_attributes.DB_NAMESPACE: "demo",
        db_attributes.DB_RESPONSE_RETURNED_ROWS: 1,
        gen_ai_attributes.GEN_AI_CONVERSATION_ID: "monday",
        gen_ai_attributes.GEN_AI_OPERATION_NAME: gen_ai_attributes.GenAiOperationNameValues.RETRIEVAL.value,
        gen_ai_attributes.GEN_AI_REQUEST_TOP_K: 3,
    }


async def test_each_operation_is_observed(ann: BoundMemory, spans: InMemorySpanExporter) -> None:
    record = await ann.add(Draft("Ann drinks tea", source_key="k"), embed="later")
    await ann.add_many([])
    await ann.put_many([Draft("Ann drinks jasmine tea", source_key="k")])
    await ann.remember([("user", "I sail")])
    await ann.recall("What does she drink?")
    await ann.get(record.id)
    await ann.postpone({record.id: None})
    await ann.history((await ann.supersede(record.id, "Ann drinks coffee")).id)
    await ann.delete(record.id)
    for rest in (ann.collections, ann.sweep, ann.stats, ann.profile):
        await rest()
    await ann.delete_where(Where(kinds=["message"]))
    await ann.delete_exactly({})
    with pytest.raises(InvalidInputError):
        await ann.search_by_vector([])
    with pytest.raises(RecordNotFoundError):
        await ann.update("nothing", Patch(text="gone"))
    await ann.erase()
    seen = {(span.attributes or {})[db_attributes.DB_OPERATION_NAME] for span in spans.get_finished_spans()}
    assert seen == set(OPERATIONS)


async def test_an_error_is_named_by_its_type_alone(
    ann: BoundMemory, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RecordNotFoundError):
        await ann.update(SECRET, Patch(text="gone"))
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})[error_attributes.ERROR_TYPE] == "RecordNotFoundError"
    assert not span.events
    (logged,) = [each for each in caplog.records if each.name == "memory_core.operations"]
    assert logged.levelno == logging.WARNING


async def test_no_text_and_no_user_is_told(
    ann: BoundMemory, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    record = await ann.add(SECRET)
    await ann.recall("Where is the spare key of Mrs Okafor?")
    await ann.update(record.id, Patch(text="The spare key is at home"))
    await ann.list()
    with pytest.raises(InvalidInputError):
        await ann.search(SECRET, mode="Okafor")  # type: ignore[arg-type]
    await ann.remember([{"role": "user", "content": SECRET}])
    await ann.erase()
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    told += json.dumps([{**vars(each), "exc_info": None} for each in caplog.records], default=str)
    assert len(spans.get_finished_spans()) >= 7
    for private in ("key", "Okafor", "ann@example"):
        assert private not in told.replace("source_key", "").replace("key_value", "")


def test_code_without_await_is_observed_and_metrics_count(ann: BoundMemory) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    stop = observe(tracer_provider=TracerProvider(), meter_provider=provider)
    ann.sync.add(SECRET)
    ann.sync.search("key")
    stop()
    ann.sync.search("key")
    data = reader.get_metrics_data()
    assert data is not None
    found = {each.name: each for each in data.resource_metrics[0].scope_metrics[0].metrics}
    assert set(found) == {
        db_metrics.DB_CLIENT_OPERATION_DURATION,
        db_metrics.DB_CLIENT_RESPONSE_RETURNED_ROWS,
    }
    points: Any = found[db_metrics.DB_CLIENT_OPERATION_DURATION].data.data_points  # of a histogram
    counted = {point.attributes["db.operation.name"]: point.count for point in points}
    assert counted == {"add": 1, "search": 1}
    provider.shutdown()


def test_observing_replaces_no_method_of_a_handle(ann: BoundMemory) -> None:
    before = {name: getattr(BoundMemory, name) for name in OPERATIONS}
    stop = observe(tracer_provider=TracerProvider(), meter_provider=MeterProvider())
    assert {name: getattr(BoundMemory, name) for name in OPERATIONS} == before
    assert not {*OPERATIONS} & {*vars(ann)}
    stop()


@pytest.mark.usefixtures("spans")
def test_observing_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="observed already"):
        observe()


@pytest.mark.process
def test_nothing_of_opentelemetry_is_imported_unless_asked_for() -> None:
    code = "import sys, memory_core, memory_core.telemetry; print(any('opentelemetry' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_opentelemetry_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"memory-core\[otel\]"):
        observe()
