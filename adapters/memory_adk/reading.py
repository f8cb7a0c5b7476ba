"""The documents that a person attaches, read in the background and stored in parts."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
    from google.genai import types
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_adk.convert import EVENT_ID, INVOCATION_ID, event_key, expiry_of_events, moment, role_of
from memory_adk.policy import CapturePolicy
from memory_adk.service import MemoryService
from memory_adk.uploads import artifact_in, name_in, renamed
from memory_core import BoundMemory, Draft, InvalidInputError, Json, Where
from memory_core.adapting import STATES, clean_name, read_apart, reason_for_log, suffix_for

logger = logging.getLogger(__name__)

DOCUMENT: Final = "document"
"""The kind of the records, as of documents that `memory-core ingest` has read."""
MAX_READ: Final = 20
"""Documents of one message that are read."""
_IN_PLACE: Final = ("image/", "audio/", "video/")
"""Media types of files without a text, about which there is nothing to log."""
_NOT_SEEN: Final = "it is an artifact already: put MemoryPlugin before SaveFilesAsArtifactsPlugin"


@dataclass(frozen=True, slots=True)
class Upload:
    """A document that is to be read."""

    event: Event
    """The message that it was attached to."""
    number: int
    """Its place among the files of the message."""
    name: str
    content: bytes
    suffix: str

    @property
    def key(self) -> tuple[str, int]:
        """It tells it from the others of the session."""
        return self.event.id, self.number


@dataclass(frozen=True, slots=True)
class Reading:
    """Documents of a session that are to be read and stored."""

    service: MemoryService
    session: tuple[str, str, str]
    """App, user and session."""
    uploads: tuple[Upload, ...]
    policy: CapturePolicy
    captured: Callable[[], Awaitable[object]]
    """Waits until the messages captured so far are stored."""

    @property
    def conversation(self) -> tuple[int, tuple[str, str, str]]:
        """The session, in the service that stores it."""
        return id(self.service), self.session

    @property
    def name(self) -> str:
        """The id of the session."""
        return self.session[-1]

    def after(self, earlier: Reading) -> Reading:
        """Both readings in one, in the order of the session."""
        uploads = {upload.key: upload for upload in (*earlier.uploads, *self.uploads)}
        return replace(self, uploads=tuple(uploads.values()))

    async def run(self) -> None:
        """Read the documents one by one, and store their parts.

        Those of a message that is forgotten, erased or taken back meanwhile are not stored.
        """
        app, user, _ = self.session
        handle = self.service.handle(app, user)
        expires = expiry_of_events(self.policy.metadata, handle.memory.clock())
        for upload in self.uploads:
            try:
                drafts = await self._drafts(upload)
            except InvalidInputError as error:
                _log_unread(upload.event, str(error))
            except Exception as error:  # noqa: BLE001  (the application's `redact` may raise anything)
                _log_unread(upload.event, reason_for_log(error))
            else:
                await self._store(handle, upload.event, [replace(draft, expires_at=expires) for draft in drafts])

    async def _store(self, handle: BoundMemory, event: Event, drafts: Sequence[Draft]) -> None:
        await self.captured()
        if not await self._is_kept(handle, event):
            return
        await self.service.store(handle, drafts)
        if not await self._is_kept(handle, event):  # what comes later takes the parts away as well
            parts = Where(kinds=(DOCUMENT,), session=self.name, data={EVENT_ID: event.id}, states=STATES)
            await handle.delete_where(parts)

    async def _is_kept(self, handle: BoundMemory, event: Event) -> bool:
        """Whether the message is remembered."""
        return bool((await handle.list(where=Where(source_keys=[event_key(event, self.name)]), limit=1)).records)

    async def _drafts(self, upload: Upload) -> list[Draft]:
        event, redact = upload.event, self.policy.redact
        message = event_key(event, self.name)
        drafts: list[Draft] = []
        for label, number, start, text in await read_apart(upload.content, upload.suffix):
            place = f"{message}\0{upload.number}\0{label}\0{number}\0{start}\0{text}"
            data: dict[str, Json] = {"file": upload.name, label: number, "start": start, "stop": start + len(text)}
            data |= {EVENT_ID: event.id} | ({INVOCATION_ID: event.invocation_id} if event.invocation_id else {})
            drafts.append(
                Draft(
                    text if redact is None else redact(text),
                    kind=DOCUMENT,
                    author=upload.name,
                    session=self.name,
                    occurred_at=moment(event.timestamp),
                    source_key=f"upload:{hashlib.sha256(place.encode()).hexdigest()}",
                    data=data,
                )
            )
        return [draft for draft in drafts if draft.text.strip()]


def uploads_of(event: Event, sent: Sequence[types.Part], policy: CapturePolicy) -> Iterator[Upload]:
    """The documents that a person attached to a message; it is logged which of them cannot be read.

    Args:
        event: The message, as the policy left it.
        sent: The files of the message that another plugin has replaced by artifacts.
        policy: Says how they are named.
    """
    if role_of(event) != "user" or event.content is None:
        return
    parts = event.content.parts or []
    attached = [part for part in parts if part.inline_data is not None]
    if not attached:
        attached = [part if policy.redact is None else renamed(part, policy.redact) for part in sent]
    if not attached and any(artifact_in(part) is not None for part in parts):
        _log_unread(event, _NOT_SEEN)
    for number, part in enumerate(attached[:MAX_READ]):
        blob = part.inline_data
        if blob is None or not blob.data:
            continue
        kind, name = blob.mime_type or "", clean_name(name_in(part))
        if (suffix := suffix_for(name, kind)) is not None:
            yield Upload(event, number, name or DOCUMENT, blob.data, suffix)
        elif not kind.startswith(_IN_PLACE):
            _log_unread(event, "it is neither a PDF nor a text")


def _log_unread(event: Event, reason: str) -> None:
    logger.warning("a file of event %s is named and not read: %s", event.id, reason)
