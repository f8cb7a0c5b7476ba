"""Copy a memory from a file to Qdrant while it is in use, and check that nothing is lost.

Runs offline with qdrant_client's local mode; for a server, pass its URL to `QdrantStore` instead of ":memory:".
"""

from __future__ import annotations

import asyncio

from memory_core import Memory, Progress
from memory_core.embedding.multilingual import MultilingualEmbedder
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.transfer.copying import copy_memory

FACTS = ["Ann drinks jasmine tea", "Ann sails from Rostock to Riga", "Ann's boat is called Fram"]


def tell(progress: Progress) -> None:
    print(f"  {progress.part}: {progress.done} of {progress.total}")


async def main() -> None:
    async with Memory("notes.db") as file, Memory(QdrantStore(":memory:", embedder=MultilingualEmbedder())) as qdrant:
        ann = file.bind(user="ann")
        await ann.add_many(FACTS)
        print("first copy")
        await copy_memory(file, qdrant, progress=tell)

        await ann.add("Ann sold the boat in autumn")  # life goes on
        print("second copy, of what is new")
        report = await copy_memory(file, qdrant, progress=tell)
        print(f"{report.copied} copied; checksum {report.owners[0].checksum} on both sides, {report.behind} behind")

        for name, memory in (("file", file), ("qdrant", qdrant)):
            hits = await memory.bind(user="ann").search("What happened to her boat?", limit=1)
            print(f"{name}: {hits[0].record.text}")


if __name__ == "__main__":
    asyncio.run(main())
