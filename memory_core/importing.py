"""What importers of other programs' memories yield and exporters to them receive, and how importers read files.

An importer is registered as an entry point of the group `memory_core.importers`, under the name of its format. It is
called with the source, a path or an address, and the first line of its docstring says what that is. It only reads.

An exporter is registered in the group `memory_core.exporters`; the first line of its docstring says what it makes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from memory_core.errors import InvalidInputError
from memory_core.models import Draft
from memory_core.storage.shared.transfer import Carried

MAX_LINE_BYTES: Final = 1 << 24
"""Longer than the largest record that a memory accepts."""


@dataclass(frozen=True, slots=True)
class Found:
    """A memory in the source."""

    place: str
    """Where it is in the source, for the report: "line 3", "event 7"."""
    draft: Draft
    """With a `source_key` that it also has in the next import, so that importing twice adds nothing."""
    user: str | None = None
    """The user that the source names; otherwise the user of the command."""
    app: str | None = None
    """The app that the source names; otherwise the app of the command."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something in the source that cannot be imported."""

    place: str
    reason: str
    """What is wrong with it, as the rest of a sentence."""


Importer = Callable[[str], AsyncIterator[Found | Refused]]
"""Yields what is in a source, in the order in which it was said or written.

Raises `InvalidInputError` if the source is missing or has another format, and reads what it can of a damaged one.
"""

Exporter = Callable[[Path], AbstractContextManager[Callable[[Sequence[Carried]], object]]]
"""Makes a file or a folder at the path, which does not exist yet, and yields what writes the next memories to it.

The memories are active and not expired, with their earlier texts and vectors. Each call is in a thread, one at a time.
Raises `InvalidInputError` for a memory that the format cannot hold.
"""


def file_at(source: str) -> Path:
    """The path of an existing file.

    Raises:
        InvalidInputError: There is no such file.
    """
    path = Path(source).expanduser()
    if not path.is_file():
        raise InvalidInputError(f"No such file: {source!r}")
    return path


def lines_of(source: str) -> Iterator[tuple[str, bytes]]:
    """The lines of a file, each with its place; a line that no memory could store is cut into pieces."""
    path = file_at(source)
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
            yield f"{path.name}, line {number}", line


def json_of(path: Path) -> Any:  # JSON
    """The JSON in a file.

    Raises:
        InvalidInputError: It is something else, or was cut.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{str(path)!r} is not JSON, or was cut: {error}") from error


@contextmanager
def database(path: Path, what: str) -> Generator[sqlite3.Connection]:
    """A read-only connection to a SQLite file of another program.

    Raises:
        InvalidInputError: It is no such file, or it is damaged; `what` says whose it should be.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            yield db
    except sqlite3.Error as error:
        raise InvalidInputError(f"{str(path)!r} is not {what}, or is damaged: {error}") from error


def time_of(value: object) -> datetime | None:
    """A time as others write it: seconds since 1970, or ISO 8601, in UTC if it has no offset; else `None`."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def word(value: object) -> str | None:
    """The value if it can be a name: a text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def fields_of(value: object) -> dict[str, Any]:
    """The value if it is a JSON object; otherwise an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """The value if it is a JSON list; otherwise an empty one."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []
