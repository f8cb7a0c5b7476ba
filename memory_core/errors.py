"""Everything that can go wrong, as one tree.

```
MemoryCoreError
├── InvalidInputError (ValueError)   a value cannot be stored or asked for; the message names it
│   └── ScopeError                   an owner is missing, empty, or not the one the handle is bound to
├── RecordNotFoundError (LookupError)  no such id for this owner
├── ForgottenError                   the source key was deleted on purpose; add it under another key
├── DuplicateIdError                 the owner already has a record of this id
├── SupersededError                  another record has superseded this one already; supersede that one
├── ConflictError                    the record has changed since it was read; read it again
├── QuotaExceededError               the owner has used up what the memory grants each owner
├── UnsupportedError                 the store is one that cannot do this
├── StorageError
│   ├── NotAStoreError               the file is something else
│   ├── NewerStoreError              the file was written by a newer version of this library
│   ├── StoreUnavailableError        cannot be opened, read or written right now
│   ├── DamagedStoreError            what was read is not what was written; restore a backup
│   ├── ReadOnlyError                a write to a memory that was opened for reading
│   └── ClosedError                  the memory was closed, or opened before a fork
├── EmbeddingError                   the embedder failed; nothing was lost
│   └── FingerprintError             the vectors on disk were made by another embedder
└── WrongThreadError (RuntimeError)  a blocking call on the loop that has to do the work
```

A failed search raises one of these. It is never an empty result.
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
    "NewerStoreError",
    "NotAStoreError",
    "QuotaExceededError",
    "ReadOnlyError",
    "RecordNotFoundError",
    "ScopeError",
    "StorageError",
    "StoreUnavailableError",
    "SupersededError",
    "UnsupportedError",
    "WrongThreadError",
    "reason_for_log",
]


class MemoryCoreError(Exception):
    """Base of every error this library raises on purpose."""


class InvalidInputError(MemoryCoreError, ValueError):
    """A value cannot be stored or asked for; the message names the value and what is allowed."""


class ScopeError(InvalidInputError):
    """An owner is missing, empty, or differs from the one the handle is bound to."""


class RecordNotFoundError(MemoryCoreError, LookupError):
    """The owner has no record of that id (another owner's record counts as none)."""


class ForgottenError(MemoryCoreError):
    """The source key was deleted on purpose, so adding it again is refused."""


class DuplicateIdError(MemoryCoreError):
    """The owner already has a record of this id."""


class SupersededError(MemoryCoreError):
    """Another record has taken this one's place already; supersede that one."""


class ConflictError(MemoryCoreError):
    """The record is of another version than the caller expects: somebody changed it meanwhile. Nothing was written."""


class QuotaExceededError(MemoryCoreError):
    """The owner would hold more than the memory's `Quota` allows; the message tells how full it is."""


class UnsupportedError(MemoryCoreError):
    """The store does not have what was asked for; the message names what it lacks."""


class StorageError(MemoryCoreError):
    """The store could not do its work; what was acknowledged before is safe."""


class NotAStoreError(StorageError):
    """The file exists and is not a memory store; it was not touched."""


class NewerStoreError(StorageError):
    """The file was written by a newer version of this library; it was not touched."""


class StoreUnavailableError(StorageError):
    """The store cannot be opened, read or written right now."""


class DamagedStoreError(StorageError):
    """What was read is not what was written; `Operator.check` lists the damage, and a backup repairs it."""


class ReadOnlyError(StorageError):
    """The memory was opened with `read_only=True` and changes nothing."""


class ClosedError(StorageError):
    """The memory was closed, or was opened by a parent process before a fork."""


class EmbeddingError(MemoryCoreError):
    """The embedder failed. Texts are stored all the same and their vectors are owed."""


class FingerprintError(EmbeddingError):
    """The vectors in the store were made by another embedder, and the two cannot be compared."""


class WrongThreadError(MemoryCoreError, RuntimeError):
    """A blocking call was made on the very event loop that has to do the work; `await` instead."""


def reason_for_log(error: BaseException) -> str:
    """What a line of a log may say about an error: its class, a code, where it was raised, and the same of its cause.

    Never its message, which may quote what is remembered or asked, or whose it is.
    """
    code = _code(error)
    said = f"{type(error).__name__} {code}" if code else type(error).__name__
    if not isinstance(error, MemoryCoreError) and (frames := extract_tb(error.__traceback__)):
        said += f" at {frames[-1].filename}:{frames[-1].lineno}"
    return f"{said}, caused by {reason_for_log(error.__cause__)}" if error.__cause__ is not None else said


def _code(error: BaseException) -> str | None:
    """What SQLite, the system or a server calls the failure."""
    name = getattr(error, "sqlite_errorname", None)
    status = getattr(getattr(error, "response", error), "status_code", None)
    if isinstance(name, str):
        return name
    if isinstance(error, OSError) and error.errno is not None:
        return errno.errorcode.get(error.errno, str(error.errno))
    return str(status) if isinstance(status, int) else None
