"""A server on this machine that speaks the protocols of OpenAI and Gemini, strictly, and fails when told to."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.embedding.hashing import HashingEmbedder

KEY = "sk-secret-5c1f"
MOST_TEXTS = 100


@dataclass(frozen=True)
class Fault:
    """The answer in place of vectors."""

    status: int = 200
    body: bytes = b'{"error": {"message": "no"}}'
    headers: dict[str, str] = field(default_factory=dict)


HANG = Fault(status=0)
"""No answer at all, until the server stops."""
DROP = Fault(status=-1)
"""The connection is cut."""


class RefusedError(Exception):
    """A request that is not as the protocol has it."""


@dataclass
class EmbeddingServer:
    """The requests so far, and the faults that come next."""

    port: int = 0
    key: str | None = KEY
    base64: bool = True
    faults: list[Fault] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> object:
        if headers.get("content-type") != "application/json":
            raise RefusedError("not JSON")
        if path == "/v1/embeddings":
            return self._openai(headers, body)
        if path == "/v1/models/gemini-embedding-001:batchEmbedContents":
            return self._gemini(headers, body)
        raise RefusedError(f"no such path: {path}")

    def _openai(self, headers: dict[str, str], body: dict[str, Any]) -> object:
        self._check_key(headers.get("authorization"), "Bearer ")
        if unknown := body.keys() - {"model", "input", "encoding_format", "dimensions"}:
            raise RefusedError(f"unknown: {unknown}")
        rows = embedded(body["input"], body.get("dimensions", 1536))
        as_text = self.base64 and body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": number, "embedding": _encoded(row) if as_text else row.tolist()}
            for number, row in enumerate(rows)
        ]
        return {"object": "list", "model": body["model"], "data": data[::-1]}  # the index counts, not the order

    def _gemini(self, headers: dict[str, str], body: dict[str, Any]) -> object:
        self._check_key(headers.get("x-goog-api-key"), "")
        texts = []
        for request in body["requests"]:
            if request.keys() != {"model", "taskType", "outputDimensionality", "content"}:
                raise RefusedError(f"unknown: {request.keys()}")
            if request["taskType"] not in {"RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"}:
                raise RefusedError("unknown task type")
            texts += [part["text"] for part in request["content"]["parts"]]
        rows = embedded(texts, body["requests"][0]["outputDimensionality"])
        return {"embeddings": [{"values": row.tolist()} for row in rows]}

    def _check_key(self, value: str | None, prefix: str) -> None:
        if value != (None if self.key is None else prefix + self.key):
            raise PermissionError(f"bad key: {value}")


def embedded(texts: list[str], dimensions: int) -> NDArray[np.float32]:
    """Vectors that are not of unit length, for texts that both providers take."""
    if not 0 < len(texts) <= MOST_TEXTS:
        raise RefusedError(f"{len(texts)} texts")
    if any(not text.strip() or len(text) > 8_000 for text in texts):
        raise RefusedError("a text is empty or too long")
    rows: NDArray[np.float32] = 3 * asyncio.run(HashingEmbedder(dimensions=dimensions).embed_documents(texts))
    return rows


def _encoded(row: NDArray[np.float32]) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, served: EmbeddingServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.served = served

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that went away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer goes out in two writes
    server: _Http

    def do_POST(self) -> None:
        served = self.server.served
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        served.bodies.append(body)
        served.headers.append(headers)
        served.asked.set()
        fault = served.faults.pop(0) if served.faults else None
        if fault is HANG:
            served.stopping.wait()
        if fault is HANG or fault is DROP:
            self.close_connection = True
        elif fault is not None:
            self._send(fault.status, fault.body, fault.headers)
        else:
            self._serve(headers, body)

    def _serve(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        try:
            self._send(200, json.dumps(self.server.served.answer(self.path, headers, body)).encode(), {})
        except (PermissionError, RefusedError) as error:
            status = 401 if isinstance(error, PermissionError) else 400
            self._send(status, json.dumps({"error": {"message": str(error)}}).encode(), {})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Nothing to say."""


@contextmanager
def running(server: EmbeddingServer) -> Generator[EmbeddingServer]:
    """Serve on a free port until the block ends."""
    with _Http(server) as http:
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            http.shutdown()
            thread.join()
