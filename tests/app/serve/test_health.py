"""The readiness of a server, and what it says of its work."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from memory_core import Memory, Scope
from memory_core.app.serve import health
from memory_core.app.serve.application import application
from memory_core.app.serve.callers import Signer, tokens_of
from memory_core.app.serve.served import Served
from memory_core.web.observed import Observed
from memory_core.web.requests import BUCKETS, Requests
from tests.app.serve.conftest import running
from tests.app.serve.test_api import HOST, TOKENS, as_user

SECRET = "Quillfeather"


@pytest.fixture(autouse=True)
def _asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", 0.0)


def served(memory: Memory, *, writable: bool) -> Served:
    return Served(memory, Scope("default", "ann"), tokens_of(TOKENS), Signer(b"secret"), frozenset(), writable=writable)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("Ann likes tea")
    return tmp_path / "m.db"


@pytest.fixture(params=[True, False], ids=["writes", "only reads"])
def client(path: Path, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    with Memory(path, embedder=None, read_only=not request.param) as memory:
        yield TestClient(application(served(memory, writable=request.param)), base_url=HOST)


def test_a_server_whose_file_was_moved_is_alive_and_not_ready(
    client: TestClient, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/v1/health").status_code == 200
    path.rename(path.with_name("elsewhere.db"))
    for _ in range(2):
        refused = client.get("/v1/health")
        assert refused.status_code == 503
        assert str(path.parent) not in refused.text  # anybody may ask
    assert client.get("/v1/live").status_code == 200
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == 1  # once, and not for each who asks
    path.with_name("elsewhere.db").rename(path)
    assert client.get("/v1/health").status_code == 200
    assert "memory_core_ready 1" in client.get("/metrics", headers=as_user("*")).text


def test_asking_whether_it_is_ready_changes_no_record(path: Path) -> None:
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(user="ann").sync
        before, versions = ann.list(), ann.stats()
        client = TestClient(application(served(memory, writable=True)), base_url=HOST)
        for _ in range(3):
            assert client.get("/v1/health").json() == {"status": "ok"}
        assert (ann.list(), ann.stats()) == (before, versions)
    with Memory(path, embedder=None) as memory:  # and the file is whole
        assert memory.bind(user="ann").sync.list() == before


def test_only_the_operator_sees_metrics(client: TestClient) -> None:
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=as_user("ann")).status_code == 403
    answer = client.get("/metrics", headers=as_user("*"))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


LINE = re.compile(r'^[a-z_]+(\{([a-z]+="[^"\\]*",?)+\})? [0-9.e+-]+$')


@pytest.mark.process
def test_requests_are_counted_and_logged_by_route_without_a_word_of_theirs(path: Path) -> None:
    with running(path, "--embedder", "none", "--write", "--access-log") as server:
        head = {"Authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.address, headers=head, timeout=300) as client:
            made = client.post("/v1/records", json={"text": SECRET}).json()["id"]
            for address in (f"/v1/records/{made}", f"/v1/owners/default/{SECRET}/records", f"/{SECRET}?q={SECRET}"):
                client.get(address)
            client.post("/v1/search", json={"query": SECRET})
            client.get(f"/v1/records?kinds={SECRET}", headers={"Authorization": f"Bearer {SECRET}"})
            client.post("/mcp", json={"method": SECRET})
            text = client.get("/metrics").text
        server.process.terminate()
        assert server.process.stderr is not None
        logged = server.process.stderr.read()
    assert SECRET not in text + logged
    assert made not in text + logged
    for line in text.splitlines():
        assert line.startswith("# TYPE ") or LINE.match(line), line
    for said in (
        'requests_total{method="POST",route="/v1/records",status="201"} 1',
        'requests_total{method="GET",route="/v1/records/{id}",status="200"} 1',
        'requests_total{method="GET",route="/v1/owners/{app}/{user}/records",status="200"} 1',
        'requests_total{method="GET",route="/v1/records",status="401"} 1',
        'requests_total{method="GET",route="other",status="404"} 1',
        'duration_seconds_count{route="/v1/search"} 1',
        "memory_core_http_requests_in_progress 1",
        "memory_core_vectors_pending 0",
    ):
        assert said in text
    assert 'route="/mcp"' in text or "/mcp is not served" in logged
    assert re.search(r"POST /v1/records 201 [0-9.]+ ms [0-9]+ bytes", logged)


def test_a_histogram_counts_each_answer_once_and_sums_up_its_buckets() -> None:
    requests, seconds = Requests(), [0.001, 0.005, 0.006, 3.0, 100.0]
    for each in seconds:
        requests.answered("BREW", "/tea", 200, each)
    lines = list(requests.lines())
    assert 'memory_core_http_requests_total{method="other",route="/tea",status="200"} 5' in lines
    counts = [int(line.rpartition(" ")[2]) for line in lines if "_bucket" in line]
    assert counts == [sum(each <= limit for each in seconds) for limit in (*BUCKETS, float("inf"))]


def spans() -> tuple[Any, Any]:
    """The exporter in which finished spans are, and a tracer that makes them; of the SDK, which may not be
    installed."""
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider.get_tracer("test")


async def test_a_span_of_a_request_lies_below_that_of_its_caller_and_has_no_text(path: Path) -> None:
    exporter, tracer = spans()
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with Memory(path, embedder=None) as memory:
        app = Observed(application(served(memory, writable=True)), Requests(), tracer=tracer)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
            await client.get(
                f"/v1/owners/default/ann/records/{SECRET}", headers={**as_user("*"), "traceparent": caller}
            )
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/owners/{app}/{user}/records/{id}"
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == caller.split("-")[1]
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": "/v1/owners/{app}/{user}/records/{id}",
        "http.response.status_code": 404,
    }
    assert SECRET not in span.to_json()
