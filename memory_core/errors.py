"""The exceptions of this library, as one tree.

```
MemoryCoreError
├── InvalidInputError (ValueError)   a value cannot be stored or searched for; the message names it
│   └── ScopeError                   an owner is missing, empty, or not the one the handle is bound to
├── RecordNotFoundError (LookupError)  no such id for this owner
├── ForgottenError                   the source key is forgotten: its record was deleted; use another key
├── DuplicateIdError                 the owner already has a record with this id
├── SupersededError                  another record has superseded this one already; supersede that one
├── ConflictError                    the record has changed since it was read; read it again
├── QuotaExceededError               the owner would exceed the memory's quota per owner
├── UnsupportedError                 the store does not support this operation
├── StorageError
│   ├── NotAStoreError               the file is not a memory
│   ├── NewerStoreError              the file was written by a newer version of this library
│   ├── StoreUnavailableError        cannot be opened, read or written right now
│   │   └── UnfinishedWriteError     a write ended in the middle; it names what is stored
│   ├── DamagedStoreError            the data read is not the data written; restore a backup
│   ├── ReadOnlyError                a write to a memory that was opened read-only
│   └── ClosedError                  the memory was closed, or opened before a fork
├── ModelError                       a language model that the caller passed did not answer as it was asked to
│   ├── ModelTimeoutError (TimeoutError)  it did not answer in time
│   └── UnreadableAnswerError        its answer does not have the form that it was asked for
├── EmbeddingError                   the embedder failed; nothing was lost
│   └── FingerprintError             the vectors on disk were made by another embedder
└── WrongThreadError (RuntimeError)  a blocking call on the loop that has to do the work
```

A failed search raises one of these; it never returns an empty result.
"""

from __future__ import annotations

import errno
from traceback import extract_tb

__all__ = [
    "ClosedError",
    "ConflictError",
    "DamagedStoreError",
    "DuplicateIdError",
    "EmbeddingError",
    "FingerprintError",
    "ForgottenError",
    "InvalidInputError",
    "MemoryCoreError",
    "ModelError",
    "ModelTimeoutError",
    "NewerStoreError",
    "NotAStoreError",
    "QuotaExceededError",
    "ReadOnlyError",
    "RecordNotFoundError",
    "ScopeError",
    "StorageError",
    "StoreUnavailableError",
    "SupersededError",
    "UnfinishedWriteError",
    "UnreadableAnswerError",
    "UnsupportedError",
    "WrongThreadError",
    "reason_for_log",
]


class MemoryCoreError(Exception):
    """Base class of all errors that this library raises."""


class InvalidInputError(MemoryCoreError, ValueError):
    """A value cannot be stored or searched for; the message names the value and what is allowed."""


class ScopeError(InvalidInputError):
    """An owner is missing, empty, or differs from the one the handle is bound to."""


class RecordNotFoundError(MemoryCoreError, LookupError):
    """The owner has no record with that id (records of other owners do not count)."""


class ForgottenError(MemoryCoreError):
    """The source key is forgotten: its record was deleted, so adding it again is refused."""


class DuplicateIdError(MemoryCoreError):
    """The owner already has a record with this id."""


class SupersededError(MemoryCoreError):
    """Another record has superseded this one already; supersede that one."""


class ConflictError(MemoryCoreError):
    """The record has another version than the caller expects: it was changed meanwhile. Nothing was written: a store
    without transactions that has written a part raises `UnfinishedWriteError`."""


class QuotaExceededError(MemoryCoreError):
    """The owner would exceed the memory's `Quota`; the message says how full it is."""


class UnsupportedError(MemoryCoreError):
    """The store does not support this operation; the message names what it lacks."""


class StorageError(MemoryCoreError):
    """The store failed; acknowledged writes are safe."""


class NotAStoreError(StorageError):
    """The file exists and is not a memory store, or is one of a development version; it was not touched."""


class NewerStoreError(StorageError):
    """The file was written by a newer version of this library; it was not touched."""


class StoreUnavailableError(StorageError):
    """The store cannot be opened, read or written right now."""


class UnfinishedWriteError(StoreUnavailableError):
    """A store without transactions ended in the middle of a write: it failed, it did not answer, or somebody else was
    faster with a part of what `delete_exactly` deletes. Otherwise repeating the call is safe: a record with the same id
    or source key is stored once.

    Args:
        message: The event, and the way out.
        stored: The ids of the records that are written (or deleted, if the call deletes).
        missing: The ids of those that this call has not written (or deleted).
        unknown: The ids of those whose request was not answered: they may still be written, within minutes.
    """

    def __init__(
        self, message: str, *, stored: tuple[str, ...], missing: tuple[str, ...], unknown: tuple[str, ...]
    ) -> None:
        super().__init__(message)
        self.stored = stored
        self.missing = missing
        self.unknown = unknown


class DamagedStoreError(StorageError):
    """The data read is not the data written; `Operator.check` lists the damage, and restoring a backup repairs it."""


class ReadOnlyError(StorageError):
    """A write to a memory that was opened with `read_only=True`."""


class ClosedError(StorageError):
    """The memory was closed, or was opened by a parent process before a fork."""


class ModelError(MemoryCoreError):
    """A language model that the caller passed did not answer as it was asked to."""


class ModelTimeoutError(ModelError, TimeoutError):
    """A language model did not answer in time."""


class UnreadableAnswerError(ModelError):
    """The answer of a language model does not have the form that it was asked for. `maintain` leaves unread what the
    model was shown, and shows it again in the next run."""


class EmbeddingError(MemoryCoreError):
    """The embedder failed. Texts are stored nevertheless; their vectors are pending."""


class FingerprintError(EmbeddingError):
    """The vectors in the store were made by another embedder, whose vectors cannot be compared with these."""


class WrongThreadError(MemoryCoreError, RuntimeError):
    """A blocking call was made on the event loop that has to do the work; use `await` instead."""


def reason_for_log(error: BaseException) -> str:
    """The description of an error for logs: its class, a code, where it was raised, and the same for its cause.

    Its message is left out, because it may quote a memory, a query or an owner.
    """
    code = _code(error)
    said = f"{type(error).__name__} {code}" if code else type(error).__name__
    if not isinstance(error, MemoryCoreError) and (frames := extract_tb(error.__traceback__)):
        said += f" at {frames[-1].filename}:{frames[-1].lineno}"
    return f"{said}, caused by {reason_for_log(error.__cause__)}" if error.__cause__ is not None else said


def _code(error: BaseException) -> str | None:
    """The error code of SQLite, the system or a server."""
    name = getattr(error, "sqlite_errorname", None)
    status = getattr(getattr(error, "response", error), "status_code", None)
    if isinstance(name, str):
        return name
    if isinstance(error, OSError) and error.errno is not None:
        return errno.errorcode.get(error.errno, str(error.errno))
    return str(status) if isinstance(status, int) else None
