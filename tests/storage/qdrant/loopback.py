"""Qdrant servers on the loopback interface, for real clients: HTTP/1.1 and gRPC over one engine, with faults."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import threading
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter, ValidationError
from qdrant_client import models

from tests.storage.qdrant.engine import LATE_SECONDS, VERSION, Call, Decide, Engine, Fault, no_faults
from tests.storage.qdrant.services import make_server

HOST = f"127.0.0.{2 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"
"""Not 127.0.0.1, for which the client opens a connection for each request.

Each worker has its own address, so that nobody takes the ports of a server that is down for a moment."""

_WORTH_PACKING = 1_000
_TURNS_TO_SERVE = 5
"""Of the loop, from a connection that is accepted to the task that serves it."""

_COLLECTION = "/collections/([^/]+)"
_ROUTES: list[tuple[str, str, str, Any]] = [
    ("GET", f"{_COLLECTION}/exists", "exists", None),
    ("PUT", _COLLECTION, "create", models.CreateCollection),
    ("GET", _COLLECTION, "info", None),
    ("PUT", f"{_COLLECTION}/shards", "shard_key", models.CreateShardingKey),
    ("GET", f"{_COLLECTION}/shards", "shard_keys", None),
    ("PUT", f"{_COLLECTION}/index", "index", models.CreateFieldIndex),
    ("PUT", f"{_COLLECTION}/vectors/([^/]+)", "vector_name", models.VectorNameConfig),
    ("POST", f"{_COLLECTION}/points", "retrieve", models.PointRequest),
    ("POST", f"{_COLLECTION}/points/scroll", "scroll", models.ScrollRequest),
    ("POST", f"{_COLLECTION}/points/query/batch", "query", models.QueryRequestBatch),
    ("POST", f"{_COLLECTION}/facet", "facet", models.FacetRequest),
    ("POST", f"{_COLLECTION}/points/batch", "write", models.UpdateOperations),
]


class _CutError(Exception):
    """The connection ends here."""


class Loopback:
    """Both servers over one engine, in a thread with a loop of its own. A context manager."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.http_port = 0
        self.grpc_port = 0
        self._http: asyncio.Server | None = None
        self._grpc: Any = None
        self._was_down = False
        self.sent_bytes = 0
        """Of all answers over HTTP, packed."""
        self.targets: list[str] = []
        """Path and query of each request over HTTP, as long as the engine keeps calls."""

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.http_port}"

    def restore(self) -> None:
        """Empty it and end its faults; listen on new ports if it has been down.

        A process shares what gRPC knows of an address: after a refused connection, its next clients wait, too.
        """
        self.on_loop(self.engine.reset)
        if self._was_down:
            self.stop()
            self.http_port = self.grpc_port = 0
            self.start()
            self._was_down = False

    def start(self) -> None:
        """Listen, on the ports of the last time."""
        self._run(self._start())

    def stop(self) -> None:
        """Cut all connections and stop listening; the data stays."""
        self._was_down = True
        self._run(self._stop())

    def fail(self, decide: Decide = no_faults) -> None:
        """Decide on faults from now on; without an argument there are none."""

        def work() -> None:
            self.engine.decide = decide

        self.on_loop(work)

    def on_loop(self, work: Callable[[], object]) -> None:
        """Run something between two requests."""

        async def run() -> None:
            work()

        self._run(run())

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    async def _start(self) -> None:
        self._connections: set[asyncio.Task[None]] = set()
        self._http = await asyncio.start_server(self._serve, HOST, self.http_port)
        self.http_port = self._http.sockets[0].getsockname()[1]
        self._grpc = make_server(self.engine)
        self.grpc_port = self._grpc.add_insecure_port(f"{HOST}:{self.grpc_port}")
        await self._grpc.start()

    async def _stop(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            for listening in http.sockets:  # asyncio forgets a connection that is half accepted when a server closes
                self._loop.remove_reader(listening.fileno())
            for _ in range(_TURNS_TO_SERVE):
                await asyncio.sleep(0)
            http.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._grpc.stop(None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while self._http is not None:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, target, _ = first.split(" ")
                if self.engine.keep_calls:
                    self.targets.append(target)
                status, answer, more = await self._answer(method, urlsplit(target).path, body)
                if "gzip" in headers.get("accept-encoding", "") and len(answer) > _WORTH_PACKING:  # as servers do
                    answer, more = gzip.compress(answer, 1), f"{more}Content-Encoding: gzip\r\n"
                self.sent_bytes += len(answer)
                writer.write(
                    f"HTTP/1.1 {status} {_REASONS.get(status, 'Answer')}\r\nContent-Type: application/json\r\n{more}"
                    f"Content-Length: {len(answer)}\r\n\r\n".encode()
                    + answer
                )
                await writer.drain()
        except (_CutError, asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes, str]:
        if path == "/":
            return 200, json.dumps({"title": "qdrant - vector search engine", "version": VERSION}).encode(), ""
        try:
            name, collection, parsed = _route(method, path, body)
        except ValidationError as error:
            return 422, _error(f"Format error in JSON body: {error}"), ""
        call, fault = self.engine.note(name, collection, parsed)
        if fault is Fault.UNAVAILABLE:
            return 503, _error("the shard is recovering"), ""
        if fault is Fault.BUSY:
            return 429, _error("too many requests"), "Retry-After: 0\r\n"
        if fault is Fault.RESET:
            raise _CutError
        status, answer = self._do(call, fault)
        if fault is Fault.LATE:
            await asyncio.sleep(LATE_SECONDS)
        return status, answer, ""

    def _do(self, call: Call, fault: Fault | None) -> tuple[int, bytes]:
        if fault is Fault.HALF and call.is_write:
            self.engine.run_half(call)
            raise _CutError
        try:
            result = self.engine.run(call)
        except ValueError as error:
            return 400, _error(f"Wrong input: {error}")
        except KeyError as error:
            return 404, _error(f"Not found: {error}")
        except Exception as error:  # noqa: BLE001  (a fault of this server has to be seen as one)
            return 418, _error(repr(error))
        if fault in (Fault.LOST, Fault.HALF):
            raise _CutError
        return 200, json.dumps({"result": _jsonable(result), "status": "ok", "time": 0.0}).encode()


_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 503: "Service Unavailable"}


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _route(method: str, path: str, body: bytes) -> tuple[str, str, Any]:
    for wanted, pattern, name, model in _ROUTES:
        found = re.fullmatch(pattern, path) if wanted == method else None
        if found is not None:
            parsed = None if model is None else _adapter(model).validate_json(body)
            parts = [unquote(part) for part in found.groups()]
            return name, parts[0], parsed if len(parts) == 1 else (parts[1], parsed)
    raise AssertionError(f"the store sent {method} {path}, which this server does not know")


def _jsonable(result: Any) -> Any:
    if isinstance(result, list):
        return [_jsonable(item) for item in result]
    return result.model_dump(mode="json") if hasattr(result, "model_dump") else result


def _error(text: str) -> bytes:
    return json.dumps({"status": {"error": text[:500]}, "time": 0.0}).encode()
