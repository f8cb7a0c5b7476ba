"""The sentence that a record's page says after a change, and the change that undoes it.

The address names the change and the version of the record that it made. So the page of a record that has changed since
says nothing, and an undo never takes back another change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from memory_core.app.serve.record_page import Shown


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made."""

    sentence: str
    undo: str | None = None
    """The form that undoes it: the last part of its address."""
    fields: Mapping[str, object] = field(default_factory=dict[str, object])
    """The fields that the form sends besides."""


@dataclass(frozen=True, slots=True)
class _Kind:
    sentence: str
    has_happened: Callable[[Shown], bool]
    undo: str | None = None


def _is(state: str) -> Callable[[Shown], bool]:
    return lambda shown: shown.record.state == state


_KINDS: Final[Mapping[str, _Kind]] = {
    "added": _Kind("It is remembered.", _is("active")),
    "unchanged": _Kind("Nothing was changed: the text is the same.", lambda _: True),
    "corrected": _Kind("It is corrected.", lambda shown: shown.record.rev > 1, "revert"),
    "reverted": _Kind("The earlier text is back.", lambda shown: shown.record.rev > 1, "revert"),
    "superseded": _Kind(
        "It replaces the other memory, which is archived.", lambda shown: shown.supersedes, "undo-supersede"
    ),
    "archived": _Kind("It is archived: no search and no prompt finds it.", _is("archived"), "restore"),
    "restored": _Kind("It is active again.", _is("active")),
    "pinned": _Kind(
        "It is pinned: every prompt gets it, and maintenance keeps it.", lambda shown: shown.is_pinned, "unpin"
    ),
    "unpinned": _Kind("It is no longer pinned.", lambda shown: not shown.is_pinned, "pin"),
}


def done_of(named: str, version: str, shown: Shown) -> Done | None:
    """The change that was made to a record as the address of its page says; `None` if that is not so, or no longer.

    Args:
        named: One of the changes above.
        version: Of the record after it.
        shown: The record as it is.
    """
    kind, record = _KINDS.get(named), shown.record
    if kind is None or version != str(record.version) or not kind.has_happened(shown):
        return None
    fields = {"rev": record.rev - 1} if kind.undo == "revert" else {}
    return Done(kind.sentence, kind.undo, fields)
