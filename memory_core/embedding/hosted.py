"""Embed with a model behind HTTP: batches, retries, timeouts and error messages.

Uses plain httpx instead of the providers' packages: both protocols are a single POST, so one implementation serves
both, with one connection pool on the core loop and 1 MB to install.
"""

from __future__ import annotations

try:
    import httpx
except ImportError as error:
    raise ImportError(
        "hosted embedders need httpx: pip install 'memory-core[openai]' (or 'memory-core[gemini]')"
    ) from error

import asyncio
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from memory_core.concurrency.loop import on_core
from memory_core.embedding.checks import check_documents, unit_rows
from memory_core.errors import EmbeddingError, InvalidInputError
from memory_core.models import Fingerprint
from memory_core.values.header_values import check_header
from memory_core.values.places import without_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REQUESTS_AT_ONCE: Final = 4

RETRIED: Final = frozenset({408, 409, 429, 500, 502, 503, 504})
"""Temporary statuses, which the providers' own clients retry too."""

_REFUSED_KEY: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404

_BLANK: Final = "."
"""Replaces a text without a visible character, which the providers refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of requests and retries.

    Args:
        timeout_seconds: For one request, from the first byte sent to the last byte read.
        attempts: Maximum number of attempts per request, when the connection, the rate limit or the server fails.
        first_pause_seconds: Pause before the second attempt, doubled for each later one and reduced by a random share
            of up to a quarter. A `Retry-After` of the server replaces it.
        longest_pause_seconds: If the server asks for a longer pause, the request fails.
        batch_texts: Maximum number of texts in one request.
        batch_characters: Maximum number of characters in one request; a text is never split for it.
        text_characters: A text is truncated after this many. A token is a character or more in nearly every script, so
            the default fits models that take 8,192 tokens.
    """

    timeout_seconds: float = 30.0
    attempts: int = 5
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 60.0
    batch_texts: int = 64
    batch_characters: int = 100_000
    text_characters: int = 8_000

    def __post_init__(self) -> None:
        for name in ("timeout_seconds", "attempts", "batch_texts", "batch_characters", "text_characters"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} must be more than 0, not {getattr(self, name)!r}")
        if self.first_pause_seconds < 0 or self.longest_pause_seconds < 0:
            raise InvalidInputError("first_pause_seconds and longest_pause_seconds must not be negative")


class Dialect(Protocol):
    """The differences between the providers' protocols."""

    @property
    def url(self) -> str:
        """The URL of the POST; it contains no key."""
        ...

    def credentials(self) -> dict[str, str]:
        """The header with the key, or nothing; raises `EmbeddingError` if a required key is missing."""
        ...

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        """The JSON body of the POST."""
        ...

    def vectors(self, answer: Any) -> Sequence[Sequence[float]]:
        """The vectors of an answer, in the order of the texts; may raise `LookupError`, `TypeError`, `ValueError`."""
        ...


class HostedEmbedder:
    """An embedder behind a URL. Use `OpenAiEmbedder` or `GeminiEmbedder`, or pass your own `Dialect`.

    Requests run on the core loop, regardless of the calling loop, at most four at a time. After `close` the next call
    connects again.
    """

    def __init__(self, fingerprint: Fingerprint, dialect: Dialect, limits: Limits) -> None:
        url = dialect.url
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise InvalidInputError(f"{without_key(url)!r} is not a URL: {error}") from error
        if parsed.userinfo:
            raise InvalidInputError(f"the URL of {parsed.host!r} contains a user or password; give api_key instead")
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise InvalidInputError(f"{without_key(url)!r} must begin with https:// or http://")
        self._fingerprint = fingerprint
        self._dialect = dialect
        self._limits = limits
        self._wire: _Wire | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """Known without asking the server."""
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given, shape `(len(texts), dimensions)`.

        Raises:
            EmbeddingError: The server refused the request, failed or could not be reached, after all attempts.
        """
        check_documents(texts)
        return await on_core(self._embed, texts, query=False)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a query, shape `(dimensions,)`; raises as `embed_documents` does."""
        rows: NDArray[np.float32] = await on_core(self._embed, [text], query=True)
        vector: NDArray[np.float32] = rows[0]
        return vector

    async def close(self) -> None:
        """Close the connections; running requests fail."""
        await on_core(self._close)

    async def _close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None and wire.loop is asyncio.get_running_loop():
            await wire.client.aclose()

    async def _embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        limits = self._limits
        jobs = batches(
            [_clean(text, limits.text_characters) for text in texts],
            most=limits.batch_texts,
            characters=limits.batch_characters,
        )
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._batch(job, query=query)) for job in jobs]
        except ExceptionGroup as failures:
            raise failures.exceptions[0]  # noqa: B904  (the first one is enough; it keeps its cause)
        nothing = np.zeros((0, self._fingerprint.dimensions), np.float32)
        return np.concatenate([nothing, *(task.result() for task in tasks)])

    async def _batch(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        body = json.dumps(self._dialect.body(texts, query=query)).encode()
        content = await self._post(body)
        try:
            vectors = self._dialect.vectors(json.loads(content))
        except (LookupError, TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._who} did not return vectors: {_excerpt(content)}") from error
        return self._units(vectors, len(texts))

    def _units(self, vectors: Sequence[Sequence[float]], count: int) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415

        dimensions = self._fingerprint.dimensions
        if len(vectors) != count:
            raise EmbeddingError(f"{self._who} returned {len(vectors)} vectors for {count} texts")
        other = next((len(vector) for vector in vectors if len(vector) != dimensions), dimensions)
        if other != dimensions:
            raise EmbeddingError(
                f"{self._who} returned a vector of {other} numbers, not {dimensions}; give dimensions={other}, or the "
                "name of another model"
            )
        try:
            rows = np.array(vectors, np.float64).reshape(count, dimensions)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"{self._who} returned vectors that do not consist of numbers") from error
        return unit_rows(self._who, rows)

    async def _post(self, body: bytes) -> bytes:
        """The body of a successful response."""
        limits, pause = self._limits, self._limits.first_pause_seconds
        attempt = 1
        while True:
            failure, retried, asked = await self._attempt(body)
            if isinstance(failure, bytes):
                return failure
            wait = pause * random.uniform(0.75, 1.0) if asked is None else asked  # noqa: S311  (no secret)
            if not retried or attempt >= limits.attempts or wait > limits.longest_pause_seconds:
                raise failure
            await asyncio.sleep(wait)
            attempt += 1
            pause *= 2

    async def _attempt(self, body: bytes) -> tuple[bytes | EmbeddingError, bool, float | None]:
        """The response or the error, whether to retry, and the pause the server asked for."""
        wire, credentials = self._connected(), self._dialect.credentials()
        for name, value in credentials.items():
            check_header(f"the key in the header {name}", value, EmbeddingError)
        headers = {"Content-Type": "application/json"} | credentials
        try:
            async with wire.places, asyncio.timeout(self._limits.timeout_seconds):
                response = await wire.client.post(self._dialect.url, content=body, headers=headers)
        except TimeoutError as error:
            message = f"{self._who} did not answer within {self._limits.timeout_seconds} s"
            return _caused(message, error), True, None
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: closed meanwhile
            message = (
                f"{self._who} cannot be reached ({type(error).__name__}: {error}); is it running, is the URL right?"
            )
            return _caused(message, error), self._wire is wire, None
        if response.is_success:
            return response.content, False, None
        asked = pause_asked(response.headers.get("retry-after"), datetime.now(UTC))
        said = _without_key(_message(response.content), credentials)
        refused = httpx.HTTPStatusError("refused", request=response.request, response=response)
        refusal = _caused(self._refusal(response.status_code, said, asked), refused)
        return refusal, response.status_code in RETRIED, asked

    def _refusal(self, status: int, said: str, asked: float | None) -> str:
        if status in _REFUSED_KEY:  # what servers say here may quote the key
            return f"{self._who} refused the key (status {status}); check api_key and its permissions"
        later = "" if asked is None else f"; it asks to wait {asked:g} s"
        if status == _NOT_FOUND:
            later = "; check base_url and the name of the model"
        return f"{self._who} answered status {status}: {said}{later}"

    def _connected(self) -> _Wire:
        loop = asyncio.get_running_loop()
        if self._wire is None or self._wire.loop is not loop:  # a forked child has another core loop
            self._wire = _Wire(loop, httpx.AsyncClient(timeout=None), asyncio.Semaphore(REQUESTS_AT_ONCE))  # noqa: S113
        return self._wire

    @property
    def _who(self) -> str:
        return f"{self._fingerprint.name} at {self._dialect.url}"


@dataclass(frozen=True, slots=True)
class _Wire:
    """The client and semaphore of one event loop. The timeout applies to each request as a whole, not in the client."""

    loop: asyncio.AbstractEventLoop
    client: httpx.AsyncClient
    places: asyncio.Semaphore


def batches(texts: Sequence[str], *, most: int, characters: int) -> list[list[str]]:
    """The texts in order, split into lists of at most `most` texts and `characters` characters (or one longer text)."""
    made: list[list[str]] = []
    room = 0
    for text in texts:
        if not made or len(made[-1]) == most or len(text) > room:
            made.append([])
            room = characters
        made[-1].append(text)
        room -= len(text)
    return made


def pause_asked(header: str | None, now: datetime) -> float | None:
    """Seconds of a `Retry-After` header (RFC 9110, 10.2.3: a number of seconds or a date), or `None`."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _clean(text: str, characters: int) -> str:
    """The text in a form any server accepts: without lone surrogates, not too long, not blank."""
    cut = text[:characters].encode("utf-8", "replace").decode()
    return cut if cut.strip() else _BLANK


def _message(content: bytes) -> str:
    """The server's error message, in the form both providers use, or the start of its response."""
    try:
        return str(json.loads(content)["error"]["message"])[:300]
    except (LookupError, TypeError, ValueError):
        return _excerpt(content)


def _without_key(said: str, credentials: dict[str, str]) -> str:
    """The message without the key, which servers may quote."""
    for value in credentials.values():
        said = said.replace(value.removeprefix("Bearer "), "***")
    return said


def _excerpt(content: bytes) -> str:
    return repr(content[:100].decode("utf-8", "replace"))


def _caused(message: str, cause: BaseException) -> EmbeddingError:
    error = EmbeddingError(message)
    error.__cause__ = cause
    return error
