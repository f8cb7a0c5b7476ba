"""Write the file of this version's format: `python -m tests.storage.formats 0.1`. That of a released version stays."""

from __future__ import annotations

import asyncio
import gzip
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from memory_core import Draft, Link, Memory, Patch
from memory_core.testing import Ticks


async def write(file: Path) -> None:
    """Write a memory with something of everything that a record may have."""
    clock = Ticks()
    async with Memory(file, clock=clock) as memory:
        ann = memory.bind(app="demo", user="ann")
        key = await ann.add(
            Draft(
                "The spare key is with Mrs Okafor",
                tags=["house", "pinned"],
                importance=0.9,
                confidence=0.8,
                emotion="calm",
                data={"floor": 2, "names": ["Okafor", None]},
                collection="home/keys",
                agent="helper",
                author="ann",
                source_key="key-1",
            )
        )
        await ann.update(key.id, Patch(text="The spare key is with Mrs Okafor, second floor"))
        oslo = await ann.add(Draft("Ann lives in Oslo", valid_from=clock.now))
        clock.advance(days=1)
        await ann.supersede(oslo.id, Draft("Ann lives in Bergen", links=[Link("derived_from", key.id)]))
        await ann.remember([("user", "Where did I park?"), ("assistant", "In front of the bakery.")], session="monday")
        (left,) = await ann.remember([("user", "Where did I pakr?")], session="sunday")
        await ann.update(left.id, Patch(left=True))
        await ann.add(Draft("Das Fahrrad steht im Keller", expires_at=clock.now + timedelta(days=100 * 365)))
        gone = await ann.add(Draft("Forget me", source_key="gone"))
        await ann.delete(gone.id)
        await memory.bind(app="demo", user="bob").add("Bob's own")


def main(version: str) -> None:
    """Write the compressed file of a version."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "memory.db"
        asyncio.run(write(file))
        (Path(__file__).parent / f"{version}.db.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
