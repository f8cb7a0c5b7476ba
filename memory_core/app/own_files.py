"""Memory files of this package, recognised without opening them as one."""

from __future__ import annotations

from pathlib import Path


def is_memory(path: Path) -> bool:
    """True if a file is a memory."""
    from memory_core.storage.sqlite.files import file_header  # noqa: PLC0415  (for files only)
    from memory_core.storage.sqlite.problems import file_problems_explained  # noqa: PLC0415  (for files only)
    from memory_core.storage.sqlite.schema import APPLICATION_ID  # noqa: PLC0415

    with file_problems_explained(f"the file {str(path)!r}"):
        found = file_header(path.resolve())
    return found is not None and found.application == APPLICATION_ID
