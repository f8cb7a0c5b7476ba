"""Identities of SPADE agents, and spade_llm's formats for file names and times."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final

BASE_COLLECTION: Final = "agent_base_memory"
"""Collection of an agent's long-term memories in its own partition."""

MAX_NAME_BYTES: Final = 120
MAX_IDENTITY_BYTES: Final = 400


def identity(agent_id: str) -> str:
    """The identity of an agent: its bare JID in lower case, without the resource.

    An id that is not a JID is returned unchanged. An id that is too long for a key is shortened and ends in a hash.
    """
    name = agent_id.partition("/")[0].lower() if "@" in agent_id else agent_id
    return _shortened(name, MAX_IDENTITY_BYTES)


def safe_name(agent_id: str) -> str:
    """spade_llm's file name for an id; long names end in a hash. Several ids may have the same name."""
    return _shortened(agent_id.replace("@", "_").replace("/", "_"), MAX_NAME_BYTES)


def distinct_name(agent_id: str) -> str:
    """A file name that is unique to the id, used if its safe name is taken."""
    return f"{safe_name(agent_id)}_{_hash(agent_id)}"


def timestamp(moment: datetime | None) -> str | None:
    """A time in the document's format: `2025-01-10T10:30:00.000Z`."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shortened(text: str, length: int) -> str:
    """Shorten to at most `length` bytes; idempotent."""
    raw, ending = text.encode(), f"_{_hash(text)}"
    return text if len(raw) <= length else raw[: length - len(ending)].decode(errors="ignore") + ending


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
