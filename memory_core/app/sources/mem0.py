"""mem0's local files: its Qdrant folder, or its history database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memory_core.errors import InvalidInputError
from memory_core.importing import Found, Refused, database, file_at, time_of, word
from memory_core.models import Draft, Role

COLLECTION: Final = "mem0"
"""mem0's default collection; others are found as well."""
_PAGE: Final = 256
_ROLES: Final[Mapping[object, Role]] = {"user": "user", "assistant": "assistant"}
_OURS: Final = frozenset({"data", "user_id", "agent_id", "run_id", "role", "actor_id", "created_at", "text_lemmatized"})
_LATEST: Final = (
    "SELECT memory_id, new_memory, event, created_at, is_deleted, actor_id, role FROM history ORDER BY rowid"
)


async def mem0(source: str) -> AsyncIterator[Found | Refused]:
    """mem0's local Qdrant folder, with users, or its history.db, without."""
    for place, memory_id, payload in _found(source):
        said = word(payload.get("data"))
        if said is None:
            yield Refused(place, "it has no text")
        else:
            yield Found(place, _draft(memory_id, said, payload), user=word(payload.get("user_id")))


def _found(source: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    folder = Path(source).expanduser()
    return _points(folder) if folder.is_dir() else _history(file_at(source))


def _draft(memory_id: str, said: str, payload: Mapping[str, Any]) -> Draft:
    return Draft(
        said,
        kind="fact",
        author=word(payload.get("actor_id")),
        role=_ROLES.get(payload.get("role")),
        agent=word(payload.get("agent_id")),
        session=word(payload.get("run_id")),
        occurred_at=time_of(payload.get("created_at")),
        data={name: value for name, value in payload.items() if name not in _OURS},
        source_key=f"mem0:{memory_id}",
    )


def _points(folder: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    try:
        from qdrant_client import QdrantClient  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise InvalidInputError("reading mem0's folder needs qdrant: pip install 'memory-core[qdrant]'") from error
    if not (folder / "meta.json").is_file():
        raise InvalidInputError(f"{str(folder)!r} is not a local Qdrant folder of mem0: it has no meta.json")
    client = None
    try:
        client = QdrantClient(path=str(folder))
        names = [each.name for each in client.get_collections().collections if not each.name.endswith("_entities")]
        for name in names:
            following: Any = None
            while True:
                page, following = client.scroll(name, limit=_PAGE, offset=following, with_payload=True)
                for point in page:
                    yield f"{name}, point {point.id}", str(point.id), point.payload or {}
                if following is None:
                    break
    except InvalidInputError:
        raise
    except Exception as error:  # the client raises whatever unpickling a damaged folder raises
        raise InvalidInputError(f"{str(folder)!r} cannot be read as mem0's folder, or is in use: {error}") from error
    finally:
        if client is not None:
            client.close()


def _history(path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The latest text of each memory that was not deleted; times are those of its first event."""
    latest: dict[str, dict[str, Any]] = {}
    with database(path, "mem0's history database") as db:
        for row in db.execute(_LATEST):
            known = latest.get(row["memory_id"], {"created_at": row["created_at"]})
            gone = row["event"] == "DELETE" or row["is_deleted"]
            latest[row["memory_id"]] = {**known, "data": None if gone else row["new_memory"], "gone": gone} | {
                name: row[name] for name in ("actor_id", "role")
            }
    for memory_id, payload in latest.items():
        if not payload.pop("gone"):
            yield f"memory {memory_id}", memory_id, payload
