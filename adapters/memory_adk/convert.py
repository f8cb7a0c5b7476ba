"""Pure functions that convert ADK's events and memory entries to drafts, and records to memory entries.

The text of a record is the spoken text and the names of the files that a person attaches: no thoughts, function calls
or results, credentials, streaming fragments or bookkeeping events. This module decides so for all events, however they
arrive.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types
from pydantic_core import PydanticSerializationError, to_jsonable_python

from memory_adk.uploads import artifact_in, files_in
from memory_core import Draft, Hit, InvalidInputError, MemoryRecord, Role
from memory_core.adapting import MAX_TEXT_CHARS, named, with_files

MAX_LABEL_CHARS: Final = 500
"""Longest metadata value (as JSON) that is returned with a memory, because memories go into prompts."""

MAX_LABELS_CHARS: Final = 2_000
"""Longest metadata, keys included, that is returned with a memory."""

MESSAGE: Final = "message"
"""The kind of an event's record."""
EVENT_ID: Final = "event_id"
INVOCATION_ID: Final = "invocation_id"
SPACE: Final = "space"
"""The key of a shared space's label in the metadata of a memory."""

_NOT_METADATA: Final = frozenset(
    {
        "allowed_topics",
        "consolidate",
        "disable_consolidation",
        "disable_memory_revisions",
        "enable_consolidation",
        "expire_time",
        "force_flush",
        "generation_trigger_config",
        "http_options",
        "memory_id",
        "memory_type",
        "metadata",
        "metadata_merge_strategy",
        "revision_expire_time",
        "revision_labels",
        "revision_ttl",
        "stream_id",
        "tags",
        "topics",
        "ttl",
        "wait_for_completion",
    }
)
"""Keys of ADK's `custom_metadata` that are instructions to the service and do not describe a memory."""

_MARKS: Final = frozenset({EVENT_ID, INVOCATION_ID})
"""Keys of a record's data that only this adapter sets."""
_MOST_KEYS: Final = 10_000
"""Most keys of events that are remembered: a turn needs those of its whole session."""
_ROLE_OF_CONTENT: Final[Mapping[str, Role]] = {"user": "user", "model": "assistant"}


def keyed(events: Iterable[Event], session: str | None, before: Counter[str] | None = None) -> dict[str, Event]:
    """The events that say something, in order, each under its idempotency key.

    Chunks of an answer that a plugin makes final share one event id; the second of them is told apart from the first by
    its ordinal, and so on.

    Args:
        events: In order, of one session.
        session: The session.
        before: The number of events before these with each key; it is brought up to date.
    """
    counts = Counter[str]() if before is None else before
    found: dict[str, Event] = {}
    for event in events:
        if said(event):
            key = event_key(event, session)
            if event.id:
                counts[key] += 1
                key = key if counts[key] == 1 else f"{key}:{counts[key]}"
            found.setdefault(key, event)
    return found


def event_drafts(
    events: Mapping[str, Event], session: str | None, metadata: Mapping[str, object], now: datetime
) -> list[Draft]:
    """Return a draft for each event, in order; `metadata` applies to all of them.

    Args:
        events: By key; see `keyed`.
        session: Their session.
        metadata: ADK's `custom_metadata`.
        now: The time from which a `ttl` counts.
    """
    # ADK's Vertex service means the same by both.
    revision, shared = metadata.get("revision_ttl"), description(metadata)
    expires = expiry(metadata if revision is None else {**metadata, "ttl": revision}, now)
    place = session if session and session.strip() else None
    drafts: list[Draft] = []
    for key, event in events.items():
        author = event.author.strip() or None
        own = labels(event.custom_metadata) if event.custom_metadata else {}
        data = {**shared, **own, EVENT_ID: event.id}
        drafts.append(
            Draft(
                said(event),
                role=role_of(event),
                kind=MESSAGE,
                author=author,
                agent=None if author == "user" else author,
                session=place,
                occurred_at=moment(event.timestamp),
                expires_at=expires,
                source_key=key,
                data={**data, INVOCATION_ID: event.invocation_id} if event.invocation_id else data,
            )
        )
    return drafts


def said(event: Event) -> str:
    """The words of an event: its text parts without thoughts, or its finished transcription; and the names of the
    files that a person attached to it. What one node of a workflow hands to the next one was said before, by a node."""
    if event.partial or event.actions.compaction or event.actions.rewind_before_invocation_id or _is_handed(event):
        return ""
    parts = (event.content.parts or []) if event.content else []
    if role_of(event) != "user" or not (files := list(files_in(parts))):
        return spoken(event)[:MAX_TEXT_CHARS]
    without = types.Content(parts=[part for part in parts if artifact_in(part) is None])
    words = spoken(event.model_copy(update={"content": without}))
    return with_files(words, files, MAX_TEXT_CHARS)


def _is_handed(event: Event) -> bool:
    """True if an event is the input of a node of a workflow. Only there, ADK gives the author `user` a path."""
    return event.author == "user" and bool(event.node_info.path) and not event.invocation_id


def spoken(event: Event) -> str:
    """The text parts of an event, or its finished transcription."""
    if text := content_text(event.content):
        return text
    heard = (event.input_transcription, event.output_transcription)
    return " ".join(item.text.strip() for item in heard if item and item.finished and item.text)


def role_of(event: Event) -> Role | None:
    """The role of an event by its author: `user`, or an agent, which is also the author of its tools' results. An event
    without an author has the role of its content."""
    author = event.author.strip()
    if author == "user":
        return "user"
    if event.get_function_responses():
        return "tool"
    return "assistant" if author else _ROLE_OF_CONTENT.get((event.content.role or "") if event.content else "")


def content_text(content: types.Content | None) -> str:
    """The text parts of a content without thoughts; lone surrogates become `?`."""
    parts = (content.parts or []) if content else []
    text = "\n".join([part.text.strip() for part in parts if part.text and not part.thought])
    return text.encode("utf-8", "replace").decode().strip()


def event_key(event: Event, session: str | None) -> str:
    """The idempotency key of an event: its session and author, and its id or, without an id, its time and text.

    ADK's own ids are random UUIDs, so an event with one is the same event with and without its session. Ids chosen by
    callers, such as `"1"`, are unique for one author within a session at best.
    """
    if event.id:
        return _key_of_id(session or "", event.author, event.id)
    return _hashed(session or "", event.author, repr(event.timestamp), said(event))


@lru_cache(_MOST_KEYS)
def _key_of_id(session: str, author: str, identity: str) -> str:
    return _hashed("" if _is_uuid(identity) else session, author, identity)


def _hashed(*parts: str) -> str:
    return "adk:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _is_uuid(identity: str) -> bool:
    try:
        return str(uuid.UUID(identity)) == identity
    except ValueError:
        return False


def memory_entry(hit: Hit, text: str, space: str | None) -> MemoryEntry:
    """Convert a hit to ADK's memory entry with the text to show.

    `custom_metadata` is the record's data with its tags, its session, the id of its event, its kind unless that is the
    usual one, and the label of the shared space it is from. The author says that, too, since `preload_memory` shows
    nothing else.
    """
    record = hit.record
    facts: dict[str, Any] = {
        "kind": None if record.kind in (MESSAGE, "fact") else record.kind,
        "tags": list(record.tags) or None,
        "session_id": record.session,
        EVENT_ID: record.data.get(EVENT_ID),
        SPACE: space,
    }
    own = {name: value for name, value in _described(record).items() if name not in {*facts, *_MARKS}}
    author = record.author
    if space is not None:
        author = f"{author} ({named(space)})" if author else named(space)
    return MemoryEntry(
        id=record.id,
        author=author,
        timestamp=record.occurred_at.isoformat(),
        content=types.Content(role="model" if record.role == "assistant" else "user", parts=[types.Part(text=text)]),
        custom_metadata={
            **_small(own),
            **{name: value for name, value in facts.items() if value is not None},
        },
    )


def _described(record: MemoryRecord) -> Mapping[str, Any]:
    """The data that describes a memory: objects in that of another framework's message are for that framework."""
    if record.kind != MESSAGE or EVENT_ID in record.data:
        return record.data
    return {name: value for name, value in record.data.items() if not isinstance(value, Mapping)}


def shortened(text: str, room: int) -> str:
    """Return `text`, cut to `room` characters with an ellipsis at the end if it is longer."""
    return text if len(text) <= room else text[: max(room - 1, 0)].rstrip() + "…"


def description(metadata: Mapping[str, object]) -> dict[str, Any]:  # JSON
    """Return the part of ADK's `custom_metadata` that describes a memory and is returned with it.

    Raises:
        InvalidInputError: A value is not JSON and cannot become JSON.
    """
    nested = metadata.get("metadata")
    plain = {name: value for name, value in metadata.items() if name not in _NOT_METADATA}
    if isinstance(nested, Mapping):
        plain |= nested
    try:
        return _jsonable(_without_marks(plain))
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidInputError(f"custom_metadata must be JSON: {error}") from error


def labels(metadata: Mapping[str, object]) -> dict[str, Any]:  # JSON
    """The part of an event's own `custom_metadata` to keep: small values under keys that are not marked as internal.
    Models and ADK's A2A client also write whole requests and responses there."""
    plain: dict[str, Any] = {}
    for name, value in metadata.items():
        with contextlib.suppress(PydanticSerializationError, ValueError):  # non-JSON values must not lose the turn
            plain |= _jsonable({name: value}, unknown_as_text=True)
    public = {name: value for name, value in _small(plain).items() if ":" not in name and not name.startswith("_")}
    return _without_marks(public)


def _without_marks(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without anything that poses as a mark."""
    return {name: value for name, value in metadata.items() if name not in _MARKS}


def _jsonable(values: Mapping[str, object], *, unknown_as_text: bool = False) -> dict[str, Any]:
    """`values` as JSON that can be encoded as UTF-8: lone surrogates become `?`, and NaN becomes null."""
    plain = to_jsonable_python(dict(values), inf_nan_mode="null", serialize_unknown=unknown_as_text)
    made: dict[str, Any] = json.loads(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
    return made


def _small(data: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are short enough for a prompt, up to the total limit."""
    small: dict[str, Any] = {}
    room = MAX_LABELS_CHARS
    for name, value in data.items():
        length = len(json.dumps(value))
        if length <= MAX_LABEL_CHARS and len(name) + length <= room:
            small[name] = value
            room -= len(name) + length
    return small


def expiry(metadata: Mapping[str, object], now: datetime) -> datetime | None:
    """The expiry of a memory: `expire_time` (RFC 3339), or now plus `ttl`, which is in seconds, like `"3600s"`, or a
    timedelta; `None` if the memory does not expire.

    Raises:
        InvalidInputError: The value has another form.
    """
    if (at := metadata.get("expire_time")) is not None:
        return at if isinstance(at, datetime) else parse_time("expire_time", at)
    ttl = metadata.get("ttl")
    if ttl is None:
        return None
    try:
        return now + (ttl if isinstance(ttl, timedelta) else timedelta(seconds=float(str(ttl).removesuffix("s"))))
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f'ttl must be in seconds, such as 3600 or "3600s", not {ttl!r}') from error


def moment(timestamp: float) -> datetime | None:
    """Convert an event's time (seconds since 1970) to UTC; `None` if it is not a valid time."""
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def parse_time(name: str, value: object) -> datetime:
    """Parse an ISO 8601 time; without an offset it is local time, as in ADK's own services."""
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{name} must be an RFC 3339 time such as 2026-01-31T12:00:00Z, not {value!r}"
        ) from error
