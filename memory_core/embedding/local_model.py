"""A model that an embedder has loaded into this process; synchronous, for a thread that may block."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Asked(NamedTuple):
    """What a model makes of a query."""

    vector: NDArray[np.float32]
    """Of unit length."""
    familiarity: float
    """How well the model knows its words, from 0 to 1."""
    english: float = 1.0
    """How far it is in English, from 0 to 1; of a model of several languages."""


class LocalModel(Protocol):
    """A loaded model. Several threads can use it at once; each call runs on the calling thread."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        ...

    def ask(self, query: str) -> Asked:
        """What it makes of a query."""
        ...
