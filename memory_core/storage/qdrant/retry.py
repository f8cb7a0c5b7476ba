"""Retries: of temporary failures only, and only within the limits of `Patience`.

Every request of this store is idempotent. Reads are by nature; inserts skip existing points; changes name the token of
the state they replace. So a request whose response was lost is simply sent again.
"""

from __future__ import annotations

import random
from typing import Final

import httpx
from grpc import StatusCode  # type: ignore[import-untyped]  # no stubs, as for the next import
from grpc.aio import AioRpcError  # type: ignore[import-untyped]
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from memory_core.errors import StorageError, StoreUnavailableError
from memory_core.storage.qdrant.settings import Patience

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


def pause_before_retry(error: Exception, attempt: int, patience: Patience) -> float:
    """Seconds to wait after this failed attempt, counted from 1; includes the pause the server asks for."""
    asked = float(error.retry_after_s) if isinstance(error, ResourceExhaustedResponse) else 0.0
    longest = min(patience.first_pause_seconds * 2 ** (attempt - 1), patience.longest_pause_seconds)
    return asked + random.uniform(0, longest)  # noqa: S311  (spreads retries out, guards nothing)


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    return not isinstance(error, UnexpectedResponse | AioRpcError) or _status(error) in _TRANSIENT


def translated(error: Exception, server: str, attempts: int) -> StorageError:
    """The error for the caller, in one sentence."""
    status, tries = _status(error), "" if attempts == 1 else f" after {attempts} attempts"
    if status in _REFUSED:
        return StoreUnavailableError(f"Qdrant at {server} refuses the API key; set QDRANT_API_KEY or pass api_key")
    if status in _MISSING:
        return MissingPointError(f"Qdrant at {server} does not have what a request named: {_reason(error)}")
    if status in _TOO_LARGE:
        return TooLargeError(f"Qdrant at {server} refused a request as too large: {_reason(error)}")
    if is_transient(error):
        return UnansweredError(f"Qdrant at {server} does not answer{tries}: {_reason(error)}")
    return StorageError(f"Qdrant at {server} refused a request: {_reason(error)}")


def _status(error: Exception) -> object:
    """The status of an answer, of HTTP or gRPC; `None` if there was none."""
    if isinstance(error, UnexpectedResponse):
        return error.status_code
    return error.code() if isinstance(error, AioRpcError) else None


def _reason(error: Exception) -> str:
    text = f"{type(error).__name__} {error}"
    if isinstance(error, UnexpectedResponse):
        text = f"{error.status_code} {error.reason_phrase} {error.content.decode(errors='replace')}"
    elif isinstance(error, AioRpcError):
        text = f"{error.code().name} {error.details() or ''}"
    elif isinstance(error, ResponseHandlingException):
        text = f"{type(error.source).__name__} {error.source}"
    return " ".join(text.split())[:MAX_REASON_CHARS]
