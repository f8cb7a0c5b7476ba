"""Where memories live when only a directory, or nothing, says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from memory_spade import files

ENVIRONMENT: Final = "SPADE_LLM_MEMORY_PATH"
DEFAULT_DIRECTORY: Final = "spade_llm/data/agent_memory"
"""spade_llm's own default, relative to the working directory."""

IN_MEMORY: Final = ":memory:"


def directory(given: str | os.PathLike[str] | None) -> str:
    """The directory that was given, else that of the environment, else the default; or `":memory:"`."""
    named = os.fspath(given) if given is not None else os.environ.get(ENVIRONMENT, "").strip()
    return named or DEFAULT_DIRECTORY


def base_file(folder: str, agent_id: str) -> Path:
    """The file of long-term memories that a name of an agent leads to."""
    return Path(folder, f"{files.safe_name(agent_id)}_base_memory.db").expanduser()
