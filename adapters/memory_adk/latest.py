"""The knowledge that a process has of sessions, turns and users: of so many at most, the latest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST: Final = 10_000
"""Most entries: nothing tells of the end of a session, nor of a turn that was cancelled."""


class Latest(OrderedDict[K, V]):
    """A dict of the entries that were noted last. What it has dropped is asked of the session or of the store again."""

    def note(self, key: K, value: V, most: int | None = None) -> V:
        """Keep a value as the latest one, and return it."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > (most or MOST):
            self.popitem(last=False)
        return value
