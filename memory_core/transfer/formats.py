"""The items that importers of other programs' memories yield, and that exporters to them receive.

An importer is registered as an entry point of the group `memory_core.importers`, under the name of its format. It is
called with the source, a path or an address, and the first line of its docstring says what that is. It only reads.

An exporter is registered in the group `memory_core.exporters`; the first line of its docstring says what it makes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_core.models import Draft
from memory_core.storage.shared.transfer import Carried


@dataclass(frozen=True, slots=True)
class Found:
    """A memory in the source."""

    place: str
    """The place in the source, for the report: "line 3", "event 7"."""
    draft: Draft
    """With a `source_key` that it also has in the next import, so that importing twice adds nothing. Different texts
    that a source has under the same key are told apart by a number."""
    user: str | None = None
    """The user that the source names; otherwise the user of the command."""
    app: str | None = None
    """The app that the source names; otherwise the app of the command."""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the source that are not in the draft's `data`, for options such as `--time-from`."""
    is_of_somebody: bool = False
    """It may be anybody's, because the source holds several people's memories and does not say whose each is: `import`
    asks for `--one-user` first."""
    people: Collection[str] = ()
    """Keys of `given` that may name the user, although the importer cannot tell: `import` makes no owner of several."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something in the source that cannot be imported."""

    place: str
    reason: str
    """The problem, as the rest of a sentence."""
    is_meant: bool = False
    """It is left out on purpose, which is reported and is no failure."""


Importer = Callable[[str], AsyncIterator[Found | Refused]]
"""Yields what is in a source, in the order in which it was said or written.

Raises `InvalidInputError` if the source is missing or has another format, and reads what it can of a damaged one.
"""

Exporter = Callable[[Path], AbstractContextManager[Callable[[Sequence[Carried]], object]]]
"""Makes a file or a folder at the path, which does not exist yet, and yields what writes the next memories to it.

The memories are active and not expired, with their earlier texts and vectors. Each call is in a thread, one at a time.
Raises `InvalidInputError` for a memory that the format cannot hold.
"""
