"""Import RadBot's collections through `memory-core import --format radbot`.

Every field of a point is kept. Vectors are not imported, because another embedder computed them; the texts get new
ones. The id of a point is the record's source key, so a repeated import adds only new points.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from memory_core import Draft, InvalidInputError, QdrantServer
from memory_core.adapting import USER_QUERY, on_core, without_key, zoned
from memory_core.formats import ForeignPoint, Found, Refused, foreign_points

COLLECTION: Final = "agent_memory"
"""RadBot's default collection."""
_KNOWN: Final = frozenset({"text", "user_id", "timestamp", "memory_type", "session_id", "tags"})


async def radbot(source: str) -> AsyncIterator[Found | Refused]:
    """RadBot's Qdrant collection: http://host:6333 or http://host:6333/collection."""
    server, collection = _server(source)
    pages = foreign_points(server, collection)

    async def following() -> list[ForeignPoint] | None:
        return await anext(pages, None)

    try:
        while (page := await on_core(following)) is not None:
            for point in page:
                try:
                    user, draft = draft_of(f"radbot:{collection}:{point.id}", point.payload)
                    yield Found(f"point {point.id}", draft, user=user)
                except InvalidInputError as error:
                    yield Refused(f"point {point.id}", str(error))
    finally:
        await on_core(_closed, pages)


async def _closed(pages: AsyncIterator[list[ForeignPoint]]) -> None:
    """Close the connection also if not all pages were read."""
    if isinstance(pages, AsyncGenerator):
        await pages.aclose()


def _server(source: str) -> tuple[QdrantServer, str]:
    parts = urlsplit(source)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InvalidInputError(
            f"{without_key(source)!r} is not the address of a Qdrant server, such as http://localhost:6333"
        )
    url = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    return QdrantServer(url=url), parts.path.strip("/") or COLLECTION


def draft_of(source_key: str, payload: Mapping[str, Any]) -> tuple[str, Draft]:
    """The user and the draft of a point's payload.

    Raises:
        InvalidInputError: It has no text, no user, or its timestamp cannot be read.
    """
    text, user = payload.get("text"), payload.get("user_id")
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("it has no text")
    if not isinstance(user, str) or not user.strip():
        raise InvalidInputError("it has no user_id")
    session, kind = payload.get("session_id"), str(payload.get("memory_type") or "note")
    tags: list[Any] = payload["tags"] if isinstance(payload.get("tags"), list) else []
    draft = Draft(
        text,
        role="user" if kind == USER_QUERY else None,
        kind=kind,
        occurred_at=_moment(payload.get("timestamp")),
        tags=[tag for tag in tags if isinstance(tag, str)],
        session=session if isinstance(session, str) and session.strip() else None,
        data={name: value for name, value in payload.items() if name not in _KNOWN},
        source_key=source_key,
    )
    return user, draft


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        wanted = "an ISO time" if isinstance(value, str) else "a time in seconds since 1970"
        raise InvalidInputError(f"its timestamp {value!r:.80} is not {wanted}") from error
    return zoned(moment)
