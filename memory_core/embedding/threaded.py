"""Embed with a synchronous library on one dedicated thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from memory_core.embedding.checks import unit_rows
from memory_core.embedding.local import LocalEmbedder
from memory_core.embedding.local_model import Asked, LocalModel
from memory_core.errors import EmbeddingError
from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


T = TypeVar("T")


class Model(Protocol):
    """A loaded model, used by one thread only. Its exceptions become an `EmbeddingError`."""

    def documents(self, texts: list[str]) -> Sequence[NDArray[np.float32]]:
        """One vector per text, of any length."""
        ...

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query."""
        ...


class ThreadedEmbedder(LocalEmbedder):
    """A model that is loaded and run on one thread, which starts with the first text.

    After `close` the next call loads the model again. `FastEmbedEmbedder` and `SentenceTransformerEmbedder` derive from
    it.

    Args:
        fingerprint: The fingerprint to store with the vectors.
        load: Loads the model; called on the thread.
    """

    def __init__(self, fingerprint: Fingerprint, load: Callable[[], Model]) -> None:
        super().__init__(fingerprint, is_single=True)
        self._load = load

    def load(self) -> LocalModel:
        """See `LocalEmbedder.load`."""
        return _Checked(_called(self.fingerprint, self._load), self.fingerprint)


@dataclass(frozen=True, slots=True)
class _Checked:
    """A model whose vectors are checked, and made unit vectors, as one `LocalModel`."""

    model: Model
    fingerprint: Fingerprint

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """See `LocalModel.embed`."""
        return self._units(lambda: self.model.documents(list(map(_clean, texts))), len(texts))

    def ask(self, query: str) -> Asked:
        """See `LocalModel.ask`; such a model is chosen for the languages that it knows."""
        return Asked(self._units(lambda: [self.model.query(_clean(query))], 1)[0], familiarity=1.0)

    def _units(self, embed: Callable[[], Sequence[NDArray[np.float32]]], count: int) -> NDArray[np.float32]:
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        rows = _called(self.fingerprint, lambda: np.asarray(embed(), np.float64))
        name, dimensions = self.fingerprint.name, self.fingerprint.dimensions
        if rows.shape != (count, dimensions):
            raise EmbeddingError(
                f"{name} returned an array of shape {rows.shape} for {count} texts, but its fingerprint has "
                f"{dimensions} dimensions; give dimensions={rows.shape[-1] if rows.ndim else 0}"
            )
        return unit_rows(name, rows)


def _called(fingerprint: Fingerprint, call: Callable[[], T]) -> T:
    """The result of a call of a library."""
    try:
        return call()
    except Exception as error:  # the libraries' exceptions have no common base class
        raise EmbeddingError(f"{fingerprint.name} cannot be used: {type(error).__name__}: {error}") from error


def _clean(text: str) -> str:
    """The text without lone surrogates, which tokenizers written in Rust do not accept."""
    return text.encode("utf-8", "replace").decode()
