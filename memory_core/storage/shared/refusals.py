"""Compute pending vectors although the embedder refuses some of the texts.

A service may refuse one text for ever, for its content or its length, and with it every request that contains it. Such
a text is set aside, so that the texts of others do not wait for it. An outage is something else: then a harmless text
fails, too, no text is to blame, and the caller waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from memory_core.errors import EmbeddingError, reason_for_log
from memory_core.storage.shared.embedding_batches import embed
from memory_core.supplied import Embedder
from memory_core.values.ids import new_id

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 60.0
LONGEST_PAUSE_SECONDS: Final = 600.0
"""Pauses between two tries of a refused text double from the first to this one: each try costs several requests."""

K = TypeVar("K", bound=Hashable)


class Refusals(Generic[K]):
    """An embedder, and what it refused lately, by the store's keys; nothing of this is stored."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._until: dict[K, float] = {}
        self._pauses: dict[K, float] = {}
        """The latest pause of everything that was refused and not embedded since."""

    def set_aside(self) -> list[K]:
        """The keys that are not to be tried now."""
        now = asyncio.get_running_loop().time()
        self._until = {key: until for key, until in self._until.items() if until > now}
        return list(self._until)

    def next_try(self) -> float | None:
        """The time at which the first key that was set aside is due, by the clock of the loop; `None` without such
        keys."""
        return min(self._until.values(), default=None)

    async def embed(self, texts: Mapping[K, Sequence[str]]) -> dict[K, list[bytes]]:
        """The vectors of the texts of each key; a key is left out and set aside if one of its texts is refused.

        Raises:
            EmbeddingError: The embedder fails for a harmless text, too.
        """
        flat = [text for some in texts.values() for text in some]
        results = iter(await _embed_possible(self.embedder, flat) if flat else ())
        vectors: dict[K, list[bytes]] = {}
        refused: dict[K, EmbeddingError] = {}
        for key, some in texts.items():
            made = [next(results) for _ in some]
            if errors := [result for result in made if isinstance(result, EmbeddingError)]:
                refused[key] = errors[0]
            else:
                vectors[key] = [result for result in made if isinstance(result, bytes)]
                self._pauses.pop(key, None)
        self._set_aside(refused)
        return vectors

    def _set_aside(self, refused: Mapping[K, EmbeddingError]) -> None:
        if new := [error for key, error in refused.items() if key not in self._pauses]:
            logger.warning("vectors stay pending, %d texts were refused: %s", len(new), reason_for_log(new[0]))
        for key in refused:
            pause = min(2 * self._pauses.get(key, FIRST_PAUSE_SECONDS / 2), LONGEST_PAUSE_SECONDS)
            self._pauses[key], self._until[key] = pause, asyncio.get_running_loop().time() + pause


async def _embed_possible(embedder: Embedder, texts: Sequence[str]) -> list[bytes | EmbeddingError]:
    """The vector of each text, or why it is refused; halves what fails, and raises as `Refusals.embed` does."""
    try:
        return [*await embed(embedder, texts)]
    except EmbeddingError:
        await embed(embedder, [f"The cat slept on the warm laptop. {new_id()}"])  # new, so that no cache answers
    if len(texts) > 1:
        half = len(texts) // 2
        return [*await _embed_possible(embedder, texts[:half]), *await _embed_possible(embedder, texts[half:])]
    try:  # once more: it may have failed in the last moment of an outage
        return [*await embed(embedder, texts)]
    except EmbeddingError as error:
        return [error]
