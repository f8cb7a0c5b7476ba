"""mem0's local files: its Qdrant folder, or its history database, in and out."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from memory_core.embedding import onnx_telemetry
from memory_core.errors import InvalidInputError
from memory_core.local_time import local_day
from memory_core.models import Draft, Role
from memory_core.storage.shared.transfer import Carried
from memory_core.transfer.foreign_files import file_at, foreign_database
from memory_core.transfer.foreign_values import TIMES, first_time, name_of, text_of
from memory_core.transfer.formats import Found, Refused
from memory_core.values.checks import shown

COLLECTION: Final = "mem0"
"""mem0's default collection; others are found as well."""
_PAGE: Final = 256
_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant"}
_OURS: Final = frozenset(
    {"data", "user_id", "agent_id", "run_id", "role", "actor_id", "created_at", "updated_at", "hash", "text_lemmatized"}
)
_HISTORY: Final = (
    "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
    "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
)
_EVENT: Final = "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LATEST: Final = (
    "SELECT memory_id, new_memory, event, created_at, updated_at, is_deleted, actor_id, role FROM history "
    "ORDER BY rowid"
)


async def mem0(source: str) -> AsyncIterator[Found | Refused]:
    """mem0's local Qdrant folder, with users, or its history.db, without."""
    is_history = _folder(source) is None
    for place, memory_id, payload in _found(source):
        said = text_of(payload.get("data"))
        if said is None:
            yield Refused(place, "it has no text")
        else:
            owner = payload.get("user_id")
            if owner is not None and name_of(owner) is None:
                yield Refused(place, f"its user_id is {shown(owner)}, not the name of a user")
            else:
                draft = _draft(memory_id, said, payload)
                nobody = "user_id" not in payload and is_history
                yield Found(place, draft, user=name_of(owner), given=payload, is_of_somebody=nobody)


def _found(source: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    folder = _folder(source)
    return _history(file_at(source)) if folder is None else _points(folder)


def _folder(source: str) -> Path | None:
    """The Qdrant folder; `None` for the history, which does not say whose each memory is."""
    folder = Path(source).expanduser()
    folder = folder / "qdrant" if (folder / "qdrant").is_dir() else folder
    return folder if folder.is_dir() else None


def _draft(memory_id: str, said: str, payload: Mapping[str, Any]) -> Draft:
    time = first_time(payload, ("created_at", *TIMES))
    return Draft(
        said,
        kind="fact",
        author=text_of(payload.get("actor_id")),
        role=_ROLES.get(text_of(payload.get("role")) or ""),
        agent=text_of(payload.get("agent_id")),
        session=text_of(payload.get("run_id")),
        occurred_at=None if time is None else time[1],
        data={name: value for name, value in payload.items() if name not in _OURS},
        source_key=f"mem0:{memory_id}",
    )


def _client() -> tuple[Any, Any]:
    try:
        onnx_telemetry.turn_off()  # with fastembed installed, qdrant_client imports onnxruntime
        from qdrant_client import QdrantClient, models  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise InvalidInputError("mem0's folder needs qdrant: pip install 'memory-core[qdrant]'") from error
    return QdrantClient, models


def _points(folder: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    client_class, _ = _client()
    if not (folder / "meta.json").is_file():
        raise InvalidInputError(f"{str(folder)!r} is not a local Qdrant folder of mem0: it has no meta.json")
    for storage in sorted(folder.glob("collection/*/storage.sqlite")):
        with foreign_database(
            storage, "a collection of mem0's folder"
        ) as db:  # the client would make an empty one of a cut one
            db.execute("SELECT count(*) FROM points")
    client = None
    try:
        client = client_class(path=str(folder))
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


@contextmanager
def export_mem0(path: Path) -> Generator[Callable[[Sequence[Carried]], object]]:
    """A folder for mem0: its local Qdrant folder `qdrant` with the vectors, and its `history.db`."""
    client_class, models = _client()
    path.mkdir()
    client = client_class(path=str(path / "qdrant"))
    try:
        with closing(sqlite3.connect(path / "history.db", check_same_thread=False)) as history:
            history.execute(_HISTORY)

            def write(batch: Sequence[Carried]) -> None:
                points = [models.PointStruct(id=_id(it), vector=_vector(it), payload=_payload(it)) for it in batch]
                if points and not client.collection_exists(COLLECTION):
                    size = models.VectorParams(size=len(points[0].vector), distance=models.Distance.COSINE)
                    words = models.SparseVectorParams(modifier=models.Modifier.IDF)
                    client.create_collection(COLLECTION, vectors_config=size, sparse_vectors_config={"bm25": words})
                if points:
                    client.upsert(COLLECTION, points)
                history.executemany(_EVENT, chain(*map(_events, batch)))
                history.commit()

            yield write
    finally:
        client.close()


def _id(item: Carried) -> str:
    """mem0's ids are UUIDs, and so are ours, unless an application has made them."""
    try:
        return str(UUID(item.record.id))
    except ValueError:
        return str(uuid5(NAMESPACE_OID, f"{item.record.app}/{item.record.user}/{item.record.id}"))


def _vector(item: Carried) -> list[float]:
    """The mean of the vectors of its pieces: mem0 has one for each memory."""
    import numpy as np  # noqa: PLC0415  (with vectors only)

    if not item.vectors:
        raise InvalidInputError(
            f"mem0 needs a vector of each memory, and {item.record.id!r} has none; `memory-core doctor --repair` "
            "computes pending ones, `memory-core reembed` all of them"
        )
    mean = np.mean([np.frombuffer(vector, np.float16).astype(np.float32) for vector in item.vectors], axis=0)
    found: list[float] = mean.tolist()
    return found


def _payload(item: Carried) -> dict[str, Any]:
    record = item.record
    own = {
        "data": record.text,
        "hash": hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest(),  # as mem0 does
        "created_at": record.occurred_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        "user_id": record.user,
        "agent_id": record.agent,
        "run_id": record.session,
        "actor_id": record.author,
        "role": record.role,
        "expiration_date": None if record.expires_at is None else local_day(record, record.expires_at).isoformat(),
    }
    more = {"kind": record.kind, "tags": list(record.tags), "importance": record.importance, "app": record.app}
    return {**more, **record.data, **{name: value for name, value in own.items() if value is not None}}


def _events(item: Carried) -> Iterator[tuple[object, ...]]:
    """The events of a memory, as rows of mem0's history."""
    record, id_ = item.record, _id(item)
    texts = [text for _, text, _ in item.revisions] + [record.text]
    ends = [until for _, _, until in item.revisions]
    for number, (text, since) in enumerate(zip(texts, [record.created_at, *ends], strict=True)):
        before, event = (texts[number - 1], "UPDATE") if number else (None, "ADD")
        key = str(uuid5(NAMESPACE_OID, f"{id_} {number}"))
        created, updated = record.created_at.isoformat(), since.isoformat() if number else None
        yield key, id_, before, text, event, created, updated, 0, record.author, record.role


def _history(path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The latest text of each memory that was not deleted, with the time of the event that wrote it.

    mem0 repeats `created_at` of the memory in each event; an UPDATE has its own time in `updated_at`, and may leave the
    text as it was.
    """
    latest: dict[str, dict[str, Any]] = {}
    with foreign_database(path, "mem0's history database") as db:
        for row in db.execute(_LATEST):
            known = latest.get(row["memory_id"], {"created_at": row["created_at"], "data": row["new_memory"]})
            if row["new_memory"] != known["data"]:
                known["created_at"] = row["updated_at"] or row["created_at"] or known["created_at"]
            gone = row["event"] == "DELETE" or row["is_deleted"] == 1
            latest[row["memory_id"]] = {**known, "data": None if gone else row["new_memory"], "gone": gone} | {
                name: row[name] for name in ("actor_id", "role")
            }
    for memory_id, payload in latest.items():
        if not payload.pop("gone"):
            yield f"memory {memory_id}", memory_id, payload
