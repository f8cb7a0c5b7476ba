"""The client: opened on the core loop, used through one method, with retries."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

from memory_core.errors import ClosedError, NewerStoreError, StorageError, StoreUnavailableError
from memory_core.storage.qdrant.client import AsyncQdrantClient
from memory_core.storage.qdrant.retry import FAILURES, MissingPointError, is_transient, pause_before_retry, translated
from memory_core.storage.qdrant.settings import DEFAULT_PORT, IN_MEMORY, Patience, Server

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

IDF_BY_OWNER: Final = (1, 20)
"""From this release on, a server is asked to weight terms by their frequency within an owner, not the collection."""
MAX_REQUESTS: Final = 32
"""Maximum number of parallel requests; others wait here instead of in the client's connection pool, which times out."""
_RECONNECT: Final = {"grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 2_000}
"""A gRPC channel that lost its server refuses requests during its back-off, by default longer than any `Patience`."""


class Request(Protocol[T_co]):
    """One request, created again for every attempt."""

    def __call__(self, client: AsyncQdrantClient, /) -> Coroutine[Any, Any, T_co]: ...


class Connection:
    """One client of one server. Lives on the core loop; qdrant_client's local mode, which blocks, in a thread."""

    def __init__(self, server: Server, patience: Patience) -> None:
        self.server = server
        self.version = IDF_BY_OWNER
        self._patience = patience
        self._client: AsyncQdrantClient | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._room = asyncio.Semaphore(MAX_REQUESTS)

    async def open(self) -> None:
        """Create the client and make sure that a server answers; raises as `call`, also if it is not Qdrant 1."""
        server = self.server
        if server.is_local:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="memory-core qdrant")
            self._client = await self._in_thread(lambda: _local_client(str(server.path)))
            return
        self._client = new_client(server)
        self.version = _version((await self.call(lambda client: client.info())).version, server.name)

    async def call(self, request: Request[T]) -> T:
        """Send an idempotent request until it succeeds, with exponential back-off and full jitter between attempts.

        Raises:
            StoreUnavailableError: The server did not answer, or refused the key.
            StorageError: The server refused the request.
            ClosedError: The store was closed.
        """
        patience, started = self._patience, time.monotonic()
        for attempt in range(1, patience.attempts + 1):
            try:
                return await self._send(request)
            except FAILURES as error:
                pause = pause_before_retry(error, attempt, patience)
                late = time.monotonic() - started + pause > patience.deadline_seconds
                if not is_transient(error) or attempt == patience.attempts or late:
                    raise translated(error, self.server.name, attempt) from error
                await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _send(self, request: Request[T]) -> T:
        client = self._client
        if client is None:
            raise ClosedError("this memory was closed; make a new Memory to open it again")
        async with self._room:
            if self._thread is None:
                return await request(client)
            done: T = await self._in_thread(lambda: _finished(request(client)))
            return done

    async def close(self) -> None:
        """Release sockets and threads; may be called twice."""
        client, self._client = self._client, None
        if client is None:
            return
        if self._thread is None:
            await client.close()
        else:
            await self._in_thread(lambda: _finished(client.close()))
            self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Any) -> Any:  # typed by `call` and `open`, whose lambdas it runs
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def new_client(server: Server) -> AsyncQdrantClient:
    """The client of a server. A URL without a port means 6333, also with TLS, as for qdrant_client."""
    tls: dict[str, Any] = {}  # an argument of httpx, which the client passes on
    if server.ca_file is not None:
        tls["verify"] = ssl.create_default_context(cafile=server.ca_file)
    return AsyncQdrantClient(
        url=server.url,
        host=server.host,
        port=server.port or DEFAULT_PORT,
        api_key=server.api_key,
        prefer_grpc=server.prefer_grpc,
        grpc_port=server.grpc_port,
        timeout=server.timeout_seconds,
        grpc_options=dict(_RECONNECT),
        check_compatibility=False,  # it would warn from a separate thread; `Meta.claim` checks the server
        **tls,
    )


def _local_client(path: str) -> AsyncQdrantClient:
    try:
        return AsyncQdrantClient(location=IN_MEMORY) if path == IN_MEMORY else AsyncQdrantClient(path=path)
    except RuntimeError as error:
        raise StoreUnavailableError(f"the folder {path!r} is in use: {error}") from error


def _finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, like those of qdrant_client's local mode."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    except KeyError as error:
        raise MissingPointError(f"there is no point {error}") from error
    raise AssertionError("qdrant_client's local mode waited for something")


def _version(text: str, server: str) -> tuple[int, int]:
    try:
        major, minor = (int(part) for part in text.split(".")[:2])
    except ValueError as error:
        raise StorageError(f"{server} answers as version {text!r}, which is not a version of Qdrant") from error
    if major != 1:
        raise NewerStoreError(f"{server} runs Qdrant {text}; this version of memory-core supports Qdrant 1")
    return major, minor
