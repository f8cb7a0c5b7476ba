"""Google's Universal Sentence Encoder, multilingual, in 192 dimensions: sixteen languages in one space."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memory_core.embedding.model import Session, open_session
from memory_core.embedding.multilingual.tokens import Pieces
from memory_core.embedding.multilingual.vocabulary import Vocabulary
from memory_core.embedding.multilingual.weights import CHUNKS, Table, package_files, table
from memory_core.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS: Final = 192
MAX_PIECES: Final = 256
"""A text is truncated after this many, including the marks around it."""
NETWORK: Final = Path(__file__).with_name("model.onnx")
"""Made by `export.py`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """The loaded encoder. Several threads can use it at once; each call runs on the calling thread."""

    pieces: Pieces
    table: Table
    session: Session

    def embed(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a text.

        Each text is run by itself, for the reason in `SentenceModel.embed`.

        Raises:
            EmbeddingError: The network cannot be run.
        """
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        ids = self.pieces.encode(text, max_tokens=MAX_PIECES)
        feed = {"rows": self.table.rows(ids), "parts": np.array(ids) % CHUNKS}
        try:
            (made,) = self.session.run(["embedding"], feed)
        except Exception as error:  # onnxruntime's errors have no base class of their own
            raise EmbeddingError(f"{NETWORK} failed on a text of {len(ids)} pieces") from error
        vector = made[0]
        unit: NDArray[np.float32] = np.divide(vector, np.linalg.norm(vector), dtype=np.float32)
        return unit


def load() -> Encoder:
    """Read the encoder; its weights are those of a package (`weights.py`).

    Raises:
        EmbeddingError: A file is missing or is another one, or the package is not installed.
    """
    rows = table(package_files().weights)
    return Encoder(pieces=Pieces(Vocabulary()), table=rows, session=open_session(NETWORK))
