"""Make the vectors that are shipped with the default models: `python -m tests.embedding.ship`."""

from __future__ import annotations

import asyncio

import numpy as np

from memory_core.embedding import minilm, multilingual
from memory_core.embedding.multilingual import MultilingualEmbedder
from memory_core.embedding.shipped import to_ship
from memory_core.storage.shared.reference import reference_texts


async def ship() -> None:
    """Embed the texts, and write the file of each model."""
    embedder = MultilingualEmbedder()
    texts = reference_texts()
    rows = await embedder.computed(texts) * np.float32(2**0.5)
    np.save(minilm.SHIPPED_FILE, to_ship(texts, rows[:, : minilm.DIMENSIONS]))
    np.save(multilingual.SHIPPED_FILE, to_ship(texts, rows[:, minilm.DIMENSIONS :]))
    await embedder.close()


if __name__ == "__main__":
    asyncio.run(ship())
