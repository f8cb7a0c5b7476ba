"""The default embedder: two models side by side, one for English and one for sixteen languages.

A vector is `[MiniLM | USE] / √2`: the 384 numbers of all-MiniLM-L6-v2 and 192 of Google's Universal Sentence Encoder,
multilingual, each at unit length. So a cosine is the mean of the cosines of the two models, and identical texts have 1.
Invariant: a ranking compares a question in English with a text in English by the first half alone, as if there were no
second one, and any other two texts by the second (`leaning`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memory_core.concurrency.threads import mark_own_thread
from memory_core.embedding import minilm
from memory_core.embedding.local import LocalEmbedder
from memory_core.embedding.local_model import Asked
from memory_core.embedding.model import SentenceModel
from memory_core.embedding.multilingual import encoder
from memory_core.embedding.multilingual.english import how_english
from memory_core.embedding.shipped import SHIPPED, shipped_vectors
from memory_core.embedding.wordpiece import WordPiece
from memory_core.models import Fingerprint
from memory_core.supplied import Weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHIPPED_FILE: Final = Path(__file__).with_name("shipped.npy")
"""The second half of the shipped vectors; the first half is MiniLM's."""
ANY: Final = 0.03
"""The weight with which a comparison leans to MiniLM if not both texts are in English: it knows names, numbers and
loan words."""


@dataclass(frozen=True, slots=True)
class TwoModels:
    """The loaded models, as one `LocalModel`."""

    english: SentenceModel
    languages: encoder.Encoder
    vocabulary: WordPiece

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """See `LocalModel.embed`."""
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        seconds = np.stack([self.languages.embed(text) for text in texts])
        return side_by_side(self.english.embed(texts), seconds)

    def ask(self, query: str) -> Asked:
        """See `LocalModel.ask`."""
        known = self.languages.pieces.known(query, max_tokens=encoder.MAX_PIECES)
        return Asked(self.embed([query])[0], known, how_english(query, self.vocabulary.is_word))


class MultilingualEmbedder(LocalEmbedder):
    """The default: sixteen languages, 576 dimensions, 256 tokens; needs no network and no download.

    Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish,
    Thai and Turkish; related languages, such as Swedish, in part. A text in one language finds texts in another.

    A query takes about 2 ms, and two turns of a conversation (70 tokens) 5 ms of one core.
    """

    def __init__(self) -> None:
        # Increment the revision whenever an `export.py` makes another model: old and new vectors must not be mixed.
        dimensions = minilm.DIMENSIONS + encoder.DIMENSIONS
        super().__init__(Fingerprint(name="MiniLM+USE", revision="1", dimensions=dimensions))

    def load(self) -> TwoModels:
        """See `LocalEmbedder.load`; half of the work is done in another thread."""
        with ThreadPoolExecutor(1, "memory-core-load", mark_own_thread) as other:
            languages = other.submit(encoder.load)
            english = minilm.MiniLmEmbedder().load()
            assert isinstance(english.tokenizer, WordPiece)  # noqa: S101  (it has a vocab.txt)
            return TwoModels(english, languages.result(), english.tokenizer)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `LocalEmbedder.embed_documents`; the texts whose vectors are shipped are not computed."""
        if len(texts) == SHIPPED and (found := await asyncio.to_thread(_shipped, texts)) is not None:
            return found
        return await self.computed(texts)

    async def computed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """`embed_documents` by the models, whatever is shipped."""
        return await super().embed_documents(texts)

    async def leaning(self, text: str) -> Weights:
        """See `Leaning.leaning`.

        Raises:
            EmbeddingError: As for `embed_query`.
        """
        import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

        of_first = np.array([ANY + (1 - ANY) * (await self.asked(text)).english, ANY])
        shares = np.stack([of_first, 1 - of_first], axis=1).astype(np.float32)
        return Weights(*np.sqrt(shares).repeat([minilm.DIMENSIONS, encoder.DIMENSIONS], axis=1))


def side_by_side(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit rows of two models as unit rows of both."""
    import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

    rows: NDArray[np.float32] = np.hstack([first, second]) * np.float32(0.5**0.5)
    return rows


def _shipped(texts: Sequence[str]) -> NDArray[np.float32] | None:
    first, second = shipped_vectors(minilm.SHIPPED_FILE, texts), shipped_vectors(SHIPPED_FILE, texts)
    return None if first is None or second is None else side_by_side(first, second)
