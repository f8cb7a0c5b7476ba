"""Work that waits, of which each owner gets one piece a turn: nobody waits for all that another owner sent before."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Turns(Generic[K, T]):
    """A queue of each owner's, from which pieces are taken in turn; those of one owner stay in order."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[K, deque[T]] = OrderedDict()
        """By owner; the owner whose turn it is comes first."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, owner: K, piece: T) -> None:
        """Let a piece wait for the owner's turn."""
        self._waiting.setdefault(owner, deque()).append(piece)
        self._size += 1

    def take(self, most: int) -> list[T]:
        """The next pieces, at most so many."""
        taken: list[T] = []
        while self._waiting and len(taken) < most:
            owner, pieces = self._waiting.popitem(last=False)
            taken.append(pieces.popleft())
            if pieces:
                self._waiting[owner] = pieces
        self._size -= len(taken)
        return taken
