"""The formats of other programs, by entry points, and which of them a source is."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from memory_core.app.own_files import is_memory
from memory_core.app.sources.chatgpt import is_chatgpt
from memory_core.app.sources.claude import is_claude
from memory_core.errors import InvalidInputError
from memory_core.transfer.foreign_files import foreign_database
from memory_core.values.places import without_key

IMPORTERS: Final = "memory_core.importers"
EXPORTERS: Final = "memory_core.exporters"
LOSSLESS: Final = "jsonl"
"""The format of `export` that loses nothing, which is no entry point."""
_TABLES: Final[Mapping[str, frozenset[str]]] = {
    "chroma": frozenset({"embeddings", "embedding_metadata"}),
    "langgraph": frozenset({"store"}),
    "adk": frozenset({"sessions", "events"}),
    "spade-llm": frozenset({"agent_memories"}),
    "mem0": frozenset({"history"}),
}
"""Tables that a SQLite file of a format has."""


def names(group: str) -> list[str]:
    """The names of the formats of a group."""
    return sorted(point.name for point in entry_points(group=group))


def sources() -> list[str]:
    """The formats of `import`."""
    return names(IMPORTERS)


def targets() -> list[str]:
    """The formats of `export`."""
    return sorted({LOSSLESS, *names(EXPORTERS)})


def entry_of(group: str, name: str) -> Any:  # an Importer or an Exporter
    """The importer or exporter of a format.

    Raises:
        InvalidInputError: The entry is missing, or needs a package that is not installed.
    """
    found = next(iter(entry_points(group=group, name=name)), None)
    noun = group.rpartition(".")[2].removesuffix("s")
    if found is None:
        known = sources() if group == IMPORTERS else targets()
        raise InvalidInputError(f"there is no {noun} for {name!r}; the formats are {', '.join(known)}")
    try:
        return found.load()
    except ImportError as error:
        raise InvalidInputError(f"the {noun} for {name!r} cannot be loaded: {error}") from error


def format_of(source: str) -> str:
    """The format of a source, from what is there.

    Raises:
        InvalidInputError: It could be anything.
    """
    path = Path(source).expanduser()
    if not path.exists():
        raise InvalidInputError(f"there is no file or folder {without_key(source)!r}")
    found = next((name for name, fits in _SIGNS.items() if fits(path)), None)
    if found is None and path.is_file() and is_memory(path):
        raise InvalidInputError(
            f"{source!r} is a memory already; `memory-core copy TARGET --file {shlex.quote(source)}` copies it to an "
            "empty one, and what `export` makes of it can be imported into any"
        )
    if found is None:
        raise InvalidInputError(
            f"what {source!r} is cannot be seen; name it with --format: {', '.join(sources())}; turn other documents "
            'into text first, for example with a document loader (the page "PDF, HTML and other documents")'
        )
    return found


def _has_tables(name: str) -> Callable[[Path], bool]:
    def fits(path: Path) -> bool:
        path = path / "chroma.sqlite3" if path.is_dir() and name == "chroma" else path
        if not path.is_file():
            return False
        try:
            with foreign_database(path, f"a file of {name}") as db:
                found = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except (InvalidInputError, sqlite3.Error):
            return False
        return _TABLES[name] <= found

    return fits


def _is_mem0_folder(path: Path) -> bool:
    folder = path / "qdrant" if (path / "qdrant").is_dir() else path
    return (folder / "meta.json").is_file() and (folder / "collection").is_dir()


_SIGNS: Final[Mapping[str, Callable[[Path], bool]]] = {
    "chatgpt": is_chatgpt,
    "claude": is_claude,
    "mem0": lambda path: _is_mem0_folder(path) or _has_tables("mem0")(path),
    **{name: _has_tables(name) for name in _TABLES if name != "mem0"},
    LOSSLESS: lambda path: path.is_file() and path.suffix.lower() in {".jsonl", ".ndjson"},
    "document": lambda path: path.is_file() and path.suffix.lower() == ".txt",
    "markdown": lambda path: (path.is_dir() and any(path.rglob("*.md"))) or path.suffix.lower() in {".md", ".markdown"},
}
