"""Errors as `application/problem+json` (RFC 9457), with the sentences of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import ClassVar, Final

from memory_core.errors import (
    ConflictError,
    DuplicateIdError,
    EmbeddingError,
    ForgottenError,
    InvalidInputError,
    MemoryCoreError,
    QuotaExceededError,
    ReadOnlyError,
    RecordNotFoundError,
    StoreUnavailableError,
    SupersededError,
    UnsupportedError,
)

try:
    from pydantic import BaseModel
    from starlette.responses import JSONResponse
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

_STATUS: Final[Sequence[tuple[type[MemoryCoreError], int]]] = (
    (InvalidInputError, 422),
    (RecordNotFoundError, 404),
    (ForgottenError, 410),
    (DuplicateIdError, 409),
    (SupersededError, 409),
    (ConflictError, 412),
    (QuotaExceededError, 403),
    (ReadOnlyError, 403),
    (UnsupportedError, 501),
    (StoreUnavailableError, 503),
    (EmbeddingError, 503),
)


class Problem(BaseModel):
    """The answer that says what was wrong, and the way out."""

    REF: ClassVar = {"$ref": "#/components/schemas/Problem"}
    """In a description of the API."""

    type: str
    """`about:blank`: the title is that of the status."""
    title: str
    status: int
    detail: str


def status_of(error: MemoryCoreError) -> int:
    """The status of an answer that says so."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer with a problem."""
    said = Problem(type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=_utf8(detail))
    return JSONResponse(said.model_dump(), status, headers, media_type="application/problem+json")


def sentence(said: str) -> str:
    """An error of the library as a page shows it: with a capital letter and a full stop."""
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "?", "!")) else ".")


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
