"""The policy that says what a plugin captures: which messages, in which words, and for how long."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from google.adk.events.event import Event
from google.genai import types

from memory_adk.convert import spoken
from memory_adk.uploads import renamed
from memory_core import InvalidInputError
from memory_core.adapting import reason_for_log

logger = logging.getLogger(__name__)


def _everything(event: Event) -> bool:  # noqa: ARG001  (called with each event)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePolicy:
    """The choice of what a `MemoryPlugin` stores.

    An error in `keep` or `redact` is logged; that message is then not stored, since it might be one that must not be.
    """

    keep: Callable[[Event], bool] = _everything
    """True for an event whose message is stored."""
    redact: Callable[[str], str] | None = None
    """Replaces the text of a message, the names of the files that are attached to it, and the texts of its event's
    `custom_metadata`, before anything is stored; a message whose text becomes empty is not stored."""
    ttl: timedelta | None = None
    """The time for which a message is kept."""
    authors: Collection[str] | None = None
    """The authors whose messages are stored: `user` and names of agents; `None` for everybody's."""

    def __post_init__(self) -> None:
        if isinstance(self.authors, str):
            raise InvalidInputError(f"authors must be a collection of names such as ['user'], not {self.authors!r}")
        if self.ttl is not None and self.ttl <= timedelta(0):
            raise InvalidInputError(f"ttl must be longer than zero, not {self.ttl!r}")

    @property
    def metadata(self) -> dict[str, object]:
        """The `custom_metadata` for ADK's methods."""
        return {} if self.ttl is None else {"ttl": self.ttl}

    def apply(self, event: Event) -> Event | None:
        """An event that says something as it is stored; `None` if it is not stored."""
        if self.authors is not None and event.author not in self.authors:
            return None
        try:
            if not self.keep(event):
                return None
            if self.redact is None:
                return event
            redacted = _redacted(event, self.redact)
            # Nothing is stored if nothing is left of its words, whatever was attached to them.
            return redacted if spoken(redacted) or not spoken(event) else None
        except Exception as error:  # noqa: BLE001  (the application's functions may raise anything)
            logger.error("a message is not stored because of its capture policy: %s", reason_for_log(error))  # noqa: TRY400
            return None


def _redacted(event: Event, redact: Callable[[str], str]) -> Event:
    """A copy of an event with other texts."""

    def transcription(one: types.Transcription | None) -> types.Transcription | None:
        return one.model_copy(update={"text": redact(one.text)}) if one and one.text else one

    content, labels = event.content, event.custom_metadata
    if content is not None:
        parts = [_part(part, redact) for part in content.parts or []]
        content = content.model_copy(update={"parts": parts})
    if labels is not None:
        labels = {name: redact(value) if isinstance(value, str) else value for name, value in labels.items()}
    return event.model_copy(
        update={
            "content": content,
            "custom_metadata": labels,
            "input_transcription": transcription(event.input_transcription),
            "output_transcription": transcription(event.output_transcription),
        }
    )


def _part(part: types.Part, redact: Callable[[str], str]) -> types.Part:
    if part.text and not part.thought:
        return part.model_copy(update={"text": redact(part.text)})
    return renamed(part, redact)
