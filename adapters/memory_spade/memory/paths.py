"""Default paths of memory files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from memory_core.adapting import check_path
from memory_spade import files

ENVIRONMENT: Final = "SPADE_LLM_MEMORY_PATH"
DEFAULT_DIRECTORY: Final = "spade_llm/data/agent_memory"
"""spade_llm's own default, relative to the working directory."""

IN_MEMORY: Final = ":memory:"


def directory(given: str | os.PathLike[str] | None) -> str:
    """The given directory, else that of the environment, else the default; or `":memory:"`.

    Raises:
        InvalidInputError: It is the address of a server.
    """
    named = os.fspath(given) if given is not None else os.environ.get(ENVIRONMENT, "").strip()
    check_path("the directory of an agent's memories", named)
    return named or DEFAULT_DIRECTORY


def base_file(folder: str, agent_id: str) -> Path:
    """The file of long-term memories for an agent's name."""
    return Path(folder, f"{files.safe_name(agent_id)}_base_memory.db").expanduser()
