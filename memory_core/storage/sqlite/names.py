"""Which words turned out to be names of an owner's participants: a guess that saves a search one round."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from memory_core.models import Scope

MAX_OWNERS: Final = 4_096


class KnownNames:
    """Remembers, for the owners searched lately, which query words were names."""

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[str, str | None], frozenset[str]] = OrderedDict()

    def guess(self, scope: Scope, words: frozenset[str]) -> frozenset[str]:
        """The words that were names when they were last asked about."""
        return words & self._names.get((scope.app, scope.user), frozenset())

    def correct(self, scope: Scope, words: frozenset[str], names: frozenset[str]) -> None:
        """Of these words exactly these are names."""
        key = (scope.app, scope.user)
        self._names[key] = (self._names.get(key, frozenset()) - words) | names
        self._names.move_to_end(key)
        if len(self._names) > MAX_OWNERS:
            self._names.popitem(last=False)
