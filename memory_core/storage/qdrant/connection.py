"""The client: opened on the core loop, used through one method, with retries.

Every request of this store is idempotent: reads are by nature, inserts skip existing points, and changes name the token
of the state they replace. So a request whose response was lost is sent again, within the limits of `Patience`.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

import httpx
from grpc import StatusCode  # type: ignore[import-untyped]  # no stubs, as for the next import
from grpc.aio import AioRpcError  # type: ignore[import-untyped]
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from memory_core.errors import ClosedError, NewerStoreError, StorageError, StoreUnavailableError
from memory_core.storage.qdrant.client import AsyncQdrantClient
from memory_core.storage.qdrant.settings import DEFAULT_PORT, IN_MEMORY, Patience, Server

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

IDF_BY_OWNER: Final = (1, 20)
"""From this release on, a server is asked to weight terms by their frequency within an owner, not the collection."""
MAX_REQUESTS: Final = 32
"""Maximum number of parallel requests; others wait here instead of in the client's connection pool, which times out."""
_RECONNECT: Final = {"grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 2_000}
"""A gRPC channel that lost its server refuses requests during its back-off, by default longer than any `Patience`."""
_TRANSIENT: Final = frozenset(
    {
        *(408, 425, 429, 500, 502, 503, 504),
        *(StatusCode.ABORTED, StatusCode.CANCELLED, StatusCode.DEADLINE_EXCEEDED, StatusCode.INTERNAL),
        *(StatusCode.RESOURCE_EXHAUSTED, StatusCode.UNAVAILABLE),
    }
)
_REFUSED: Final = frozenset({401, 403, StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED})
_MISSING: Final = frozenset({404, StatusCode.NOT_FOUND})
_TOO_LARGE: Final = frozenset({413, StatusCode.OUT_OF_RANGE})
MAX_REASON_CHARS: Final = 200


class NotAppliedError(Exception):
    """The server accepted a write but did not apply it in time; it may still apply it."""


FAILURES: Final = (
    *(AioRpcError, ResourceExhaustedResponse, ResponseHandlingException, UnexpectedResponse, TimeoutError),
    NotAppliedError,
)
"""The exceptions for a failed request: those of qdrant_client, and that of a write which was not applied."""


class MissingPointError(StorageError):
    """The request named a point or a collection that does not exist."""


class TooLargeError(StorageError):
    """The request is larger than the server accepts."""


class UnansweredError(StoreUnavailableError):
    """The server did not answer; it may still do what was requested, for as long as a request can live."""


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
                pause = _pause_before_retry(error, attempt, patience)
                late = time.monotonic() - started + pause > patience.deadline_seconds
                if not _is_transient(error) or attempt == patience.attempts or late:
                    raise _translated(error, self.server.name, attempt) from error
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


def _pause_before_retry(error: Exception, attempt: int, patience: Patience) -> float:
    """Seconds to wait after this failed attempt, counted from 1; includes the pause the server asks for."""
    asked = float(error.retry_after_s) if isinstance(error, ResourceExhaustedResponse) else 0.0
    longest = min(patience.first_pause_seconds * 2 ** (attempt - 1), patience.longest_pause_seconds)
    return asked + random.uniform(0, longest)  # noqa: S311  (spreads retries out, guards nothing)


def _is_transient(error: Exception) -> bool:
    """True if the same request may succeed later."""
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    status, _ = _answer(error)
    return status is None or status in _TRANSIENT


def _translated(error: Exception, server: str, attempts: int) -> StorageError:
    """The error for the caller, in one sentence."""
    status, text = _answer(error)
    reason, tries = " ".join(text.split())[:MAX_REASON_CHARS], "" if attempts == 1 else f" after {attempts} attempts"
    if status in _REFUSED:
        return StoreUnavailableError(f"Qdrant at {server} refuses the API key; set QDRANT_API_KEY or pass api_key")
    if status in _MISSING:
        return MissingPointError(f"Qdrant at {server} does not have what a request named: {reason}")
    if status in _TOO_LARGE:
        return TooLargeError(f"Qdrant at {server} refused a request as too large: {reason}")
    if _is_transient(error):
        return UnansweredError(f"Qdrant at {server} does not answer{tries}: {reason}")
    return StorageError(f"Qdrant at {server} refused a request: {reason}")


def _answer(error: Exception) -> tuple[object, str]:
    """The status of an answer, of HTTP or gRPC (`None` if there was none), and what it says."""
    if isinstance(error, UnexpectedResponse):
        return error.status_code, f"{error.status_code} {error.reason_phrase} {error.content.decode(errors='replace')}"
    if isinstance(error, AioRpcError):
        return error.code(), f"{error.code().name} {error.details() or ''}"
    cause = error.source if isinstance(error, ResponseHandlingException) else error
    return None, f"{type(cause).__name__} {cause}"
