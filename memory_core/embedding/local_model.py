"""A model that an embedder has loaded into this process; synchronous, for a thread that may block."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Asked(NamedTuple):
    """The answer of a model to a query."""

    vector: NDArray[np.float32]
    """Of unit length."""
    familiarity: float
    """The familiarity of the model with its words, from 0 to 1."""
    english: float = 1.0
    """The degree to which it is in English, from 0 to 1; of a model of several languages."""


class LocalModel(Protocol):
    """A loaded model. Several threads can use it at once; each call runs on the calling thread."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        ...

    def ask(self, query: str) -> Asked:
        """The answer to a query."""
        ...
