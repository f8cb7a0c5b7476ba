"""An embedder without a model, for tests and examples that should start instantly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Final

from memory_core.embedding.checks import check_documents
from memory_core.errors import InvalidInputError
from memory_core.models import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD: Final = re.compile(r"\w+")
_GRAM_SIZES: Final = (3, 4, 5)


class HashingEmbedder:
    """Words and their character n-grams, hashed into a vector: texts with similar spelling have similar vectors.

    It knows nothing about meaning, needs no file, and computes the same vector in every process and version. The
    features are each word (in lower case) and its n-grams of 3, 4 and 5 letters, with the ends of the word marked. A
    feature adds its weight, the square root of its count, to one dimension with a sign; its hash gives both
    (Weinberger et al., "Feature hashing", ICML 2009).

    Args:
        dimensions: Length of the vectors, at least 2. Fewer dimensions mean more hash collisions.
    """

    def __init__(self, *, dimensions: int = 512) -> None:
        if dimensions < 2:
            raise InvalidInputError(f"dimensions must be at least 2, not {dimensions}")
        self._fingerprint = Fingerprint(name="hashing", revision="1", dimensions=dimensions)

    @property
    def fingerprint(self) -> Fingerprint:
        """Name `hashing`; vectors of different dimensions have different fingerprints."""
        return self._fingerprint

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the order given. A text without a letter or digit is hashed as a whole."""
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        check_documents(texts)
        rows = np.zeros((len(texts), self._fingerprint.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            self._fill(row, text)
        return rows

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same vector as for a document of that text."""
        vector: NDArray[np.float32] = (await self.embed_documents([text]))[0]
        return vector

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _fill(self, row: NDArray[np.float32], text: str) -> None:
        features = Counter(_features(text)) or Counter([f"={text}"])
        for feature, count in features.items():
            self._add(row, feature, count)
        length = float((row @ row) ** 0.5)
        if length == 0:  # the features have cancelled each other out (rare): hash the text as a whole
            self._add(row, f"={text}", 1)
            length = 1.0
        row /= length

    def _add(self, row: NDArray[np.float32], feature: str, count: int) -> None:
        digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        row[(number >> 1) % len(row)] += count**0.5 * (1 if number & 1 else -1)


def _features(text: str) -> Iterator[str]:
    """`tea` gives `<tea>`, `<te`, `tea`, `ea>`, `<tea`, `tea>`; the marks distinguish whole words from n-grams."""
    words = [f"<{word}>" for word in _WORD.findall(text.lower())]
    return chain(words, chain.from_iterable(map(_grams, words)))


def _grams(word: str) -> Iterator[str]:
    return (word[i : i + size] for size in _GRAM_SIZES for i in range(len(word) - size + 1))
