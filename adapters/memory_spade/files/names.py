"""Who an agent of SPADE is, and how spade_llm names its files and writes its times."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final

BASE_COLLECTION: Final = "agent_base_memory"
"""The collection of an agent's long-term memories in its own partition."""

MAX_NAME_BYTES: Final = 120
MAX_IDENTITY_BYTES: Final = 400


def identity(agent_id: str) -> str:
    """Who an agent is: the bare JID in lower case, whatever resource and case it is written in.

    An id that is no JID stays as it is. One that is too long for a key ends in a hash of it.
    """
    name = agent_id.partition("/")[0].lower() if "@" in agent_id else agent_id
    return _shortened(name, MAX_IDENTITY_BYTES)


def safe_name(agent_id: str) -> str:
    """spade_llm's file name for an id; a long one ends in a hash. Several ids may have the same name."""
    return _shortened(agent_id.replace("@", "_").replace("/", "_"), MAX_NAME_BYTES)


def distinct_name(agent_id: str) -> str:
    """A file name no other id has, for when the safe one is taken."""
    return f"{safe_name(agent_id)}_{_hash(agent_id)}"


def timestamp(moment: datetime | None) -> str | None:
    """As the document writes times: `2025-01-10T10:30:00.000Z`."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shortened(text: str, length: int) -> str:
    """At most `length` bytes; shortening twice changes nothing."""
    raw, ending = text.encode(), f"_{_hash(text)}"
    return text if len(raw) <= length else raw[: length - len(ending)].decode(errors="ignore") + ending


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
