"""Hosted embedders over real HTTP: the protocols of OpenAI and Gemini, and every way they fail."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Embedder, EmbeddingError, InvalidInputError, Memory
from memory_core.embedding.gemini import GeminiEmbedder
from memory_core.embedding.hosted import HostedEmbedder, Limits, batches, pause_asked
from memory_core.embedding.openai import OpenAiEmbedder
from memory_core.testing.embedder import EmbedderContract
from tests.embedding.hosted_server import DROP, HANG, KEY, EmbeddingServer, Fault, running

Make = Callable[..., HostedEmbedder]

QUICK = Limits(first_pause_seconds=0.001, attempts=3)
BUSY = Fault(429, b'{"error": {"message": "slow down"}}', {"Retry-After": "0"})
BROKEN = Fault(500, b"<html>oops</html>")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with running(EmbeddingServer()) as server:
        yield server


@pytest.fixture(params=[OpenAiEmbedder, GeminiEmbedder])
def make(request: pytest.FixtureRequest, server: EmbeddingServer) -> Make:
    def make(**settings: object) -> HostedEmbedder:
        made: HostedEmbedder = request.param(**{"api_key": KEY, "base_url": server.url, "limits": QUICK} | settings)
        return made

    return make


def texts_asked(server: EmbeddingServer) -> list[list[str]]:
    """The texts of each request."""
    return [
        body["input"] if "input" in body else [request["content"]["parts"][0]["text"] for request in body["requests"]]
        for body in server.bodies
    ]


class TestOpenAi(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self, server: EmbeddingServer) -> Callable[[], Embedder]:
        return lambda: OpenAiEmbedder(api_key=KEY, base_url=server.url, limits=QUICK)


class TestServerWithoutBase64(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self, server: EmbeddingServer) -> Callable[[], Embedder]:
        server.base64 = False
        return lambda: OpenAiEmbedder("text-embedding-3-large", dimensions=256, api_key=KEY, base_url=server.url)


class TestGemini(EmbedderContract):
    tolerance: ClassVar[float] = 1e-6

    @pytest.fixture
    def make_embedder(self, server: EmbeddingServer) -> Callable[[], Embedder]:
        return lambda: GeminiEmbedder(api_key=KEY, base_url=server.url)


async def test_texts_are_sent_in_batches_and_rows_come_back_in_order(make: Make, server: EmbeddingServer) -> None:
    embedder = make(limits=Limits(batch_texts=7, batch_characters=60))
    texts = [f"text number {number} {'x' * (number % 20)}" for number in range(50)]
    rows = await embedder.embed_documents(texts)
    single = [await embedder.embed_query(text) for text in texts]
    await embedder.close()
    asked = texts_asked(server)[:-50]
    assert sorted(chain.from_iterable(asked)) == sorted(texts)
    assert max(map(len, asked)) <= 7
    assert max(sum(map(len, batch)) for batch in asked) <= 60
    np.testing.assert_allclose(rows, np.stack(single), atol=1e-6)


async def test_a_request_that_meets_a_limit_or_a_failing_server_is_repeated(
    make: Make, server: EmbeddingServer
) -> None:
    embedder = make()
    server.faults = [BUSY, BROKEN]
    assert (await embedder.embed_documents(["tea"])).shape == (1, embedder.fingerprint.dimensions)
    server.faults = [DROP]
    await embedder.embed_query("tea")
    await embedder.close()
    assert len(server.bodies) == 5


async def test_the_pause_that_the_server_asks_for_takes_the_place_of_ours(make: Make, server: EmbeddingServer) -> None:
    embedder = make(limits=Limits(first_pause_seconds=10_000, longest_pause_seconds=10_000))
    server.faults = [BUSY]
    await embedder.embed_query("tea")
    await embedder.close()
    assert len(server.bodies) == 2


async def test_nobody_waits_for_longer_than_the_limit(make: Make, server: EmbeddingServer) -> None:
    embedder = make()
    server.faults = [Fault(429, headers={"Retry-After": "3600"})]
    with pytest.raises(EmbeddingError, match="status 429: no; it asks to wait 3600 s"):
        await embedder.embed_query("tea")
    await embedder.close()
    assert len(server.bodies) == 1


async def test_it_gives_up_after_so_many_attempts(make: Make, server: EmbeddingServer) -> None:
    embedder = make()
    server.faults = [BROKEN] * 10
    with pytest.raises(EmbeddingError, match="answered status 500: '<html>oops</html>'"):
        await embedder.embed_documents(["tea"])
    await embedder.close()
    assert len(server.bodies) == QUICK.attempts


async def test_a_server_that_does_not_answer_is_not_waited_for(make: Make, server: EmbeddingServer) -> None:
    embedder = make(limits=Limits(timeout_seconds=0.25, attempts=2, first_pause_seconds=0))
    server.faults = [HANG, HANG]
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.25 s"):
        await embedder.embed_query("tea")
    await embedder.close()
    assert len(server.bodies) == 2


async def test_a_server_that_is_not_there_is_named(make: Make) -> None:
    embedder = make(base_url="http://127.0.0.1:9")
    with pytest.raises(EmbeddingError, match=r"at http://127\.0\.0\.1:9/.* cannot be reached .* is it running"):
        await embedder.embed_query("tea")
    await embedder.close()


async def test_a_wrong_key_is_refused_at_once_and_not_quoted(make: Make, server: EmbeddingServer) -> None:
    embedder = make(api_key="sk-wrong-77aa")
    with pytest.raises(EmbeddingError, match=r"refused the key \(status 401\); check api_key") as caught:
        await embedder.embed_query("tea")
    await embedder.close()
    assert "77aa" not in str(caught.value)
    assert len(server.bodies) == 1


async def test_the_key_is_in_no_log_no_error_and_no_repr(
    make: Make, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = make()
    server.faults = [Fault(400, json.dumps({"error": {"message": f"strange: Bearer {KEY}"}}).encode())]
    with pytest.raises(EmbeddingError, match=r"status 400: strange: Bearer \*\*\*") as caught:
        await embedder.embed_query("tea")
    await embedder.embed_query("tea")
    await embedder.close()
    assert KEY not in caplog.text + str(caught.value) + repr(embedder) + repr(embedder.fingerprint)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b"null",
        b'{"data": null, "embeddings": null}',
        b'{"data": [{"index": 0}], "embeddings": [{}]}',
        b'{"data": [{"index": 1, "embedding": [1]}], "embeddings": [1]}',
        b'{"data": [{"index": 0, "embedding": "%%%"}], "embeddings": [{"values": 5}]}',
    ],
)
async def test_an_answer_of_another_shape_is_an_error(make: Make, server: EmbeddingServer, body: bytes) -> None:
    embedder = make()
    server.faults = [Fault(200, body)]
    with pytest.raises(EmbeddingError, match="did not return vectors"):
        await embedder.embed_query("tea")
    await embedder.close()


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0] * 3], "returned a vector of 3 numbers, not 1536; give dimensions=3"),
        ([[1.0] * 1536] * 2, "returned 2 vectors for 1 texts"),
        ([], "returned 0 vectors for 1 texts"),
        ([[0.0] * 1536], "without a direction"),
        ([[float("nan")] * 1536], "without a direction"),
        ([["x"] * 1536], "do not consist of numbers"),
        ([[]], "returned a vector of 0 numbers"),
    ],
)
async def test_vectors_that_are_none_are_an_error(
    make: Make, server: EmbeddingServer, vectors: list[list[object]], message: str
) -> None:
    embedder = make(dimensions=1536)
    data = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    answer = {"data": data, "embeddings": [{"values": vector} for vector in vectors]}
    server.faults = [Fault(200, json.dumps(answer).encode())]
    with pytest.raises(EmbeddingError, match=message):
        await embedder.embed_query("tea")
    await embedder.close()


async def test_one_failing_batch_fails_the_call(make: Make, server: EmbeddingServer) -> None:
    embedder = make(limits=Limits(batch_texts=1, attempts=1))
    server.faults = [BROKEN]
    with pytest.raises(EmbeddingError, match="status 500"):
        await embedder.embed_documents([f"text {number}" for number in range(20)])
    assert (await embedder.embed_documents(["tea"])).shape == (1, embedder.fingerprint.dimensions)
    await embedder.close()


async def test_a_model_that_is_not_there_is_named(make: Make, server: EmbeddingServer) -> None:
    embedder = make()
    server.faults = [Fault(404, b'{"error": {"message": "model not found, try pulling it"}}')]
    with pytest.raises(EmbeddingError, match="try pulling it; check base_url and the name of the model"):
        await embedder.embed_query("tea")
    await embedder.close()


async def test_gemini_is_told_what_a_text_is_for(server: EmbeddingServer) -> None:
    embedder = GeminiEmbedder(dimensions=256, api_key=KEY, base_url=server.url)
    await embedder.embed_documents(["tea"])
    await embedder.embed_query("tea?")
    await embedder.close()
    kinds = [body["requests"][0]["taskType"] for body in server.bodies]
    assert kinds == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]
    assert {body["requests"][0]["outputDimensionality"] for body in server.bodies} == {256}


async def test_prefixes_are_sent_and_change_the_fingerprint(server: EmbeddingServer) -> None:
    embedder = OpenAiEmbedder(api_key=KEY, base_url=server.url, query_prefix="query: ", document_prefix="passage: ")
    await embedder.embed_documents(["tea"])
    await embedder.embed_query("tea")
    await embedder.close()
    assert texts_asked(server) == [["passage: tea"], ["query: tea"]]
    assert embedder.fingerprint != OpenAiEmbedder(api_key=KEY).fingerprint


async def test_only_models_that_know_the_question_are_asked_for_fewer_dimensions(server: EmbeddingServer) -> None:
    for model, dimensions in [("text-embedding-3-small", 64), ("text-embedding-3-small", 1536), ("my-model", 1536)]:
        embedder = OpenAiEmbedder(model, dimensions=dimensions, api_key=KEY, base_url=server.url)
        await embedder.embed_query("tea")
        await embedder.close()
    assert [body.get("dimensions") for body in server.bodies] == [64, None, None]


@pytest.mark.parametrize("kind", [OpenAiEmbedder, GeminiEmbedder])
async def test_a_key_of_the_environment_is_for_the_provider_only(
    kind: Callable[..., HostedEmbedder], server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    server.key = None
    embedder = kind(base_url=server.url)
    await embedder.embed_query("tea")
    await embedder.close()
    assert not {"authorization", "x-goog-api-key"} & server.headers[0].keys()
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(EmbeddingError, match=r"needs a key: give api_key, or set (OPENAI|GEMINI)_API_KEY"):
        await kind().embed_query("tea")


async def test_requests_under_way_fail_when_it_is_closed(make: Make, server: EmbeddingServer) -> None:
    embedder = make()
    server.faults = [HANG]
    task = asyncio.create_task(embedder.embed_query("tea"))
    await asyncio.to_thread(server.asked.wait)
    await embedder.close()
    server.stopping.set()
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        await task
    await embedder.embed_query("tea")
    await embedder.close()


async def test_a_memory_works_with_it_and_keeps_texts_when_it_fails(make: Make, server: EmbeddingServer) -> None:
    async with Memory(":memory:", embedder=make(limits=Limits(attempts=1))) as memory:
        handle = memory.bind(user="ann")
        await handle.add("Ann drinks jasmine tea")
        server.faults = [BROKEN]
        await handle.add("The train leaves at noon")
        hits = await handle.search("jasmine")
        assert hits[0].record.text == "Ann drinks jasmine tea"
        assert hits[0].similarity is not None
        assert (await handle.search("train", mode="lexical"))[0].record.text == "The train leaves at noon"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "my-model"}, "the dimensions of 'my-model' are not known"),
        ({"dimensions": 4000}, "dimensions is 4000"),
        ({"dimensions": -1}, "dimensions must be at least 1, not -1"),
        ({"base_url": "localhost:11434"}, "must begin with https:// or http://"),
        ({"base_url": "ftp://here"}, "must begin with https:// or http://"),
        ({"base_url": "http://[::1"}, "not a URL"),
        ({"base_url": "https://ann:pw@here/v1"}, "contains a user or password; give api_key instead"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        OpenAiEmbedder(**settings)  # type: ignore[arg-type]
    assert "pw" not in str(caught.value)


def test_limits_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="attempts must be more than 0, not 0"):
        Limits(attempts=0)
    with pytest.raises(InvalidInputError, match="timeout_seconds must be more than 0, not -1"):
        Limits(timeout_seconds=-1)
    with pytest.raises(InvalidInputError, match="must not be negative"):
        Limits(first_pause_seconds=-1)
    with pytest.raises(InvalidInputError, match="batch_texts must be at most 100 for Gemini"):
        GeminiEmbedder(limits=Limits(batch_texts=101))
    with pytest.raises(InvalidInputError, match="dimensions must be from 128 to 3072 for Gemini, not 4096"):
        GeminiEmbedder(dimensions=4096)


async def test_one_text_in_place_of_a_list_is_refused(make: Make) -> None:
    with pytest.raises(InvalidInputError, match=r"a list of texts, not one text: \['tea'\]"):
        await make().embed_documents("tea")


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(1, 5), st.integers(1, 50))
def test_batches_keep_order_and_limits(texts: list[str], most: int, characters: int) -> None:
    made = batches(texts, most=most, characters=characters)
    assert list(chain.from_iterable(made)) == texts
    for batch in made:
        assert 0 < len(batch) <= most
        assert len(batch) == 1 or sum(map(len, batch)) <= characters


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Wed, 01 Jan 2025 00:00:30 GMT", 30.0),
        ("Tue, 31 Dec 2024 23:00:00 GMT", 0.0),
        ("Wed, 01 Jan 2025 00:00:30", 30.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert pause_asked(header, datetime(2025, 1, 1, tzinfo=UTC)) == seconds
