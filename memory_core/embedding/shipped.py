"""Vectors of the texts that every process compares its queries with, shipped with the models that they belong to.

Embedding them takes about 0.4 s of CPU, which a hook or a command would spend at its first search. To make the files
again after these texts or the model have changed: `python -m tests.embedding.ship`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHIPPED: Final = 203
"""Number of texts; no other number of texts is looked up."""
_DIGEST_BYTES: Final = 32


def shipped_vectors(path: Path, texts: Sequence[str]) -> NDArray[np.float32] | None:
    """The unit vectors of these texts, shape `(len(texts), dimensions)`, if they are the shipped ones. Blocking.

    Args:
        path: A file with one unit vector a row as float16, and in a last row the digest of the texts, a byte a number.
    """
    import numpy as np  # noqa: PLC0415  (not at import)

    stored = np.load(path)
    if len(stored) != len(texts) + 1 or not np.array_equal(stored[-1, :_DIGEST_BYTES], _digest(texts)):
        return None
    vectors: NDArray[np.float32] = stored[:-1].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def to_ship(texts: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float16]:
    """The content of such a file for some texts and their vectors."""
    import numpy as np  # noqa: PLC0415  (not at import)

    last = np.zeros((1, vectors.shape[1]), np.float16)
    last[0, :_DIGEST_BYTES] = _digest(texts)
    return np.concatenate([vectors.astype(np.float16), last])


def _digest(texts: Sequence[str]) -> NDArray[np.float16]:
    import numpy as np  # noqa: PLC0415  (not at import)

    digest = blake2b("\0".join(texts).encode(), digest_size=_DIGEST_BYTES).digest()
    return np.frombuffer(digest, np.uint8).astype(np.float16)
