"""The file of an agent's long-term memories: a core store with the documented table as a view.

spade_llm's own database has the same name and is no store: it is refused, and the error says how to bring it in.
"""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from memory_core import Memory, NotAStoreError
from memory_spade.files.tables import is_stock, show_agent_memories


def agent_memories(path: Path, *, stock: Path | None = None) -> Memory:
    """The long-term memories of a SPADE agent in the file named in spade_llm's document.

    On first use, `prepare_agent_memories` creates the file.

    Args:
        path: The file.
        stock: Another name under which spade_llm may have left this agent's database.
    """
    memory = Memory(path)
    memory.bind().memory.prepare_first(partial(prepare_agent_memories, path, stock=stock))
    return memory


def prepare_agent_memories(path: Path, *, stock: Path | None = None) -> None:
    """Create a store file with the documented table at `path`, or the table in the store that is there. Blocking.

    Args:
        path: The file; created together with its directory if it is missing.
        stock: Another name under which spade_llm may have left this agent's database; looked at if `path` is missing.

    Raises:
        NotAStoreError: There is a database of spade_llm, or a file of another program. It was not touched.
    """
    from memory_core.formats import file_problems_explained, prepare_file  # noqa: PLC0415  (SQLite, for the few who need this)

    path = path.expanduser().absolute()
    with file_problems_explained(f"the memory file {str(path)!r}"):
        path.parent.mkdir(parents=True, exist_ok=True)  # `memory_path` names a directory for files to be made in
    source = path if stock is None or path.exists() else stock.expanduser().absolute()
    with file_problems_explained(f"the database {str(source)!r}"):
        is_theirs = _is_stock(source)
    if is_theirs:
        raise NotAStoreError(_how_to_bring_in(source, path))
    prepare_file(path)
    show_agent_memories(path)


def _is_stock(path: Path) -> bool:
    """True if the file is a database of spade_llm; opening the store reports what is wrong with other files."""
    from memory_core.formats import file_header  # noqa: PLC0415  (SQLite, for the few who need this)

    try:
        found = file_header(path) if path.is_file() and path.stat().st_size else None
    except (OSError, sqlite3.Error):
        return False
    if found is None or found.application != 0:
        return False
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        return is_stock(db)


def _how_to_bring_in(source: Path, path: Path) -> str:
    old = path.with_name(f"{path.name}.spade_llm") if source == path else source
    commands = [["mv", str(path), str(old)]] if source == path else []
    commands.append(["memory-core", "import", "--format", "spade-llm", str(old), "--file", str(path)])
    return (
        f"{str(source)!r} is a database of spade_llm; stop the processes that use it, and bring its memories in with "
        f"`{' && '.join(shlex.join(each) for each in commands)}`"
    )
