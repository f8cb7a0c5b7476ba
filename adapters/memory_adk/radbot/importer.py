"""Import from a collection of RadBot: `text`, `user_id`, `timestamp`, `memory_type` and all other fields.

Vectors are not imported, because another embedder computed them; the texts get new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from memory_core import Draft, InvalidInputError, Memory, QdrantServer, utc_now
from memory_core.adapting import USER_QUERY, ForeignPoint, complete, foreign_points, on_core

COLLECTION: Final = "agent_memory"
"""RadBot's default collection."""
_KNOWN: Final = frozenset({"text", "user_id", "timestamp", "memory_type", "session_id", "tags"})


@dataclass(slots=True)
class Imported:
    """The result of an import."""

    records: int = 0
    """Number of points that are memories now, those of earlier imports included."""
    forgotten: int = 0
    """Number of points whose memories were deleted here; they are not imported again."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why points were not imported, by point id."""


async def import_radbot(
    memory: Memory, server: QdrantServer | None = None, *, collection: str = COLLECTION, app: str = "default"
) -> Imported:
    """Remember every point of a RadBot collection, each for its own user; the collection is not changed.

    A repeated import adds only new points, because the point's id is the record's source key. A `timestamp` without a
    time zone is treated as UTC. The role is known only for `user_query` points, which are the user's.

    Args:
        server: The server; settings it leaves out come from the environment, as for `QdrantStore`.
        app: The app of the owners; their user is the `user_id`.

    Raises:
        StorageError: The server cannot be reached, or has no such collection.
    """

    async def work() -> Imported:
        done = Imported()
        async for page in foreign_points(server, collection):
            await _remember(memory, app, collection, page, done)
        return done

    return await on_core(work)


async def _remember(memory: Memory, app: str, collection: str, page: list[ForeignPoint], done: Imported) -> None:
    by_user: dict[str, list[Draft]] = {}
    for point in page:
        try:
            user, draft = draft_of(f"radbot:{collection}:{point.id}", point.payload)
            complete(draft, memory.bind(app=app, user=user).scope, utc_now())
        except InvalidInputError as error:
            done.refused[point.id] = str(error)
        else:
            by_user.setdefault(user, []).append(draft)
    for user, drafts in by_user.items():
        stored = await memory.bind(app=app, user=user).add_many(drafts, embed="later")
        done.records += sum(record is not None for record in stored)
        done.forgotten += stored.count(None)


def draft_of(source_key: str, payload: Mapping[str, Any]) -> tuple[str, Draft]:
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
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
