"""Reading the files of other programs, with limits: lines, JSON, archives and SQLite databases."""

from __future__ import annotations

import json
import lzma
import sqlite3
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, cast

from memory_core.errors import InvalidInputError
from memory_core.values.places import without_key

MAX_LINE_BYTES: Final = 1 << 24
"""Longer than the largest record that a memory accepts."""
MAX_FILE_BYTES: Final = 1 << 30
"""The largest file, or file in an archive, that is read as a whole."""
MAX_RATIO: Final = 200
"""Texts shrink to a tenth in an archive; what expands more than this was made to fill the memory of a machine."""
MAX_VALUE_BYTES: Final = 1 << 26
"""The largest value that is read from a foreign database: its rows may contain vectors beside the text."""
LEAST_STEPS: Final = 200_000_000
STEPS_A_BYTE: Final = 20
"""Steps of SQLite's virtual machine that reading a foreign database may take: a constant, and more for a large file.
Real databases take less than one for each byte; the constant alone is a few seconds."""
_STEPS_AT_ONCE: Final = 1_000_000


def file_at(source: str) -> Path:
    """The path of an existing file.

    Raises:
        InvalidInputError: There is no such file.
    """
    path = Path(source).expanduser()
    if not path.is_file():
        raise InvalidInputError(f"No such file: {without_key(source)!r}")
    return path


def lines_of(source: str) -> Iterator[tuple[str, bytes]]:
    """The lines of a file, each with its place; a line that no memory could store is cut into pieces."""
    path = file_at(source)
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
            yield f"{path.name}, line {number}", line


def object_in(line: bytes) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        InvalidInputError: It is something else, as the rest of a sentence.
    """
    try:
        found: object = json.loads(line, object_pairs_hook=_each_once)
    except RecursionError as error:
        raise InvalidInputError("not JSON that can be read: it has too many levels") from error
    except ValueError as error:
        raise InvalidInputError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"not a JSON object but {type(found).__name__}")
    return cast("dict[str, Any]", found)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object.

    Raises:
        ValueError: A field has two values, and nobody can tell which one counts.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the field {twice!r:.80} is there twice")
    return found


def bytes_of(path: Path) -> bytes:
    """The content of a file.

    Raises:
        InvalidInputError: It is too large to be read as a whole.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidInputError(f"{str(path)!r} has more than {MAX_FILE_BYTES >> 30} GiB; import it in parts")
    return path.read_bytes()


def json_of(path: Path) -> Any:  # JSON
    """The JSON in a file.

    Raises:
        InvalidInputError: It is something else, was cut, is too large, or has an object with a field twice.
    """
    return _json(bytes_of(path), repr(str(path)))


def names_in_zip(path: Path) -> list[str]:
    """The names of the files in a .zip, in order.

    Raises:
        InvalidInputError: The archive is damaged.
    """
    with _opened_zip(path, repr(str(path))) as archive:
        return sorted(archive.namelist())


def beginning_in_zip(path: Path, name: str, size: int) -> bytes:
    """The first bytes of a file of a .zip.

    Raises:
        InvalidInputError: The archive is damaged, encrypted or compressed in an unknown way.
    """
    with _opened_zip(path, f"{name!r} in {str(path)!r}") as archive, archive.open(name) as file:
        return file.read(size)


def json_in_zip(path: Path, name: str) -> Any:  # JSON
    """The JSON in a file of a .zip.

    Raises:
        InvalidInputError: The archive is damaged, encrypted or compressed in an unknown way, has no such file, or one
            that expands beyond the limits.
    """
    what = f"{name!r} in {str(path)!r}"
    with _opened_zip(path, what) as archive:
        try:
            entry = archive.getinfo(name)
        except KeyError as error:
            raise InvalidInputError(f"there is no {what}") from error
        if entry.file_size > max(MAX_RATIO * entry.compress_size, MAX_LINE_BYTES):
            raise InvalidInputError(f"{what} expands to {entry.file_size} bytes, which no real export does")
        if entry.file_size > MAX_FILE_BYTES:
            raise InvalidInputError(f"{what} has more than {MAX_FILE_BYTES >> 30} GiB; import it in parts")
        content = archive.read(entry)
    return _json(content, what)


_ZIP_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
"""The errors that `zipfile` raises for an archive that was cut or changed."""


@contextmanager
def _opened_zip(path: Path, what: str) -> Generator[zipfile.ZipFile]:
    """An archive; an error of reading it is one of this package, and says how to go on."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InvalidInputError:
        raise
    except _ZIP_DAMAGE as error:
        said = f"{what} cannot be read: {error}; it is damaged or was cut, so download or copy it again"
        raise InvalidInputError(said) from error
    except (RuntimeError, NotImplementedError, OSError, ValueError) as error:  # a password, or an unknown method
        raise InvalidInputError(f"{what} cannot be read: {error}; unpack it, and import the file") from error


def _json(content: bytes, what: str) -> Any:
    try:
        text = content.decode("utf-8-sig")  # programs on Windows write a byte order mark
        return json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} is not JSON, or was cut: {error}") from error


@contextmanager
def foreign_database(path: Path, what: str) -> Generator[sqlite3.Connection]:
    """A read-only connection to the tables of a SQLite file of another program, with limits.

    Views are refused, because no program whose files are imported has any, and a view may never come to an end.

    Raises:
        InvalidInputError: It cannot be read as such a file, or reading it takes more work than its size explains;
            `what` says whose it should be.
    """
    left = LEAST_STEPS + STEPS_A_BYTE * (path.stat().st_size if path.exists() else 0)

    def is_too_much() -> bool:
        nonlocal left
        left -= _STEPS_AT_ONCE
        return left < 0

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            db.set_authorizer(_no_view)
            db.set_progress_handler(is_too_much, _STEPS_AT_ONCE)
            yield db
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for names that SQLite quotes in its own errors
        if left < 0:
            said = f"reading {str(path)!r} takes more work than a file of its size explains; it is not {what}"
            raise InvalidInputError(said) from error
        raise InvalidInputError(f"{str(path)!r} is not {what}: {error}") from error


def _no_view(_action: int, _first: str | None, _second: str | None, _file: str | None, view: str | None) -> int:
    return sqlite3.SQLITE_OK if view is None else sqlite3.SQLITE_DENY
