"""Who an agent is, and where its memories live when only a directory, or nothing, says so."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = "SPADE_LLM_MEMORY_PATH"
DEFAULT_DIRECTORY: Final = "spade_llm/data/agent_memory"
"""spade_llm's own default, relative to the working directory."""

IN_MEMORY: Final = ":memory:"

MAX_NAME_CHARS: Final = 120
MAX_IDENTITY_CHARS: Final = 400


def identity(agent_id: str) -> str:
    """Who an agent is: the bare JID in lower case, whatever resource and case it is written in.

    An id that is no JID stays as it is. One that is too long for a key ends in a hash of it.
    """
    name = agent_id.partition("/")[0].lower() if "@" in agent_id else agent_id
    return _shortened(name, MAX_IDENTITY_CHARS)


def safe_name(agent_id: str) -> str:
    """spade_llm's file name for an id; a long one ends in a hash. Several ids may have the same name."""
    return _shortened(agent_id.replace("@", "_").replace("/", "_"), MAX_NAME_CHARS)


def distinct_name(agent_id: str) -> str:
    """A file name no other id has, for when the safe one is taken."""
    return f"{safe_name(agent_id)}_{_hash(agent_id)}"


def directory(given: str | os.PathLike[str] | None) -> str:
    """The directory that was given, else that of the environment, else the default; or `":memory:"`."""
    named = os.fspath(given) if given is not None else os.environ.get(ENVIRONMENT, "").strip()
    return named or DEFAULT_DIRECTORY


def base_file(agent_id: str, given: str | os.PathLike[str] | None) -> str:
    """The file of an agent's long-term memories; or `":memory:"`."""
    folder = directory(given)
    return folder if folder == IN_MEMORY else str(Path(folder, f"{safe_name(agent_id)}_base_memory.db").expanduser())


def _shortened(text: str, length: int) -> str:
    """At most `length` bytes; shortening twice changes nothing."""
    raw, ending = text.encode(), f"_{_hash(text)}"
    return text if len(raw) <= length else raw[: length - len(ending)].decode(errors="ignore") + ending


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
