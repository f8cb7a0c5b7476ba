"""Make the vectors that are shipped with the default model: `python -m tests.embedding.ship`."""

from __future__ import annotations

import asyncio

import numpy as np

from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.embedding.minilm.shipped import FILE, to_ship
from memory_core.storage.shared.reference import reference_texts


async def ship() -> None:
    """Embed the texts, and write the file."""
    embedder = MiniLmEmbedder()
    texts = reference_texts()
    np.save(FILE, to_ship(texts, await embedder.computed(texts)))
    await embedder.close()


if __name__ == "__main__":
    asyncio.run(ship())
