"""The traces that are left in the files of what was erased: `python tests/benchmarks/erased.py`.

Each of 1,000 turns has a word of its own. A model draws a fact from each, summaries are made of them, and a summary of
these; then a third of the turns get another text. The sessions are erased in turn, and the words of each are looked for
in the bytes of all files.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory_core import BoundMemory, Draft, MaintainPolicy, Memory, Patch, maintain
from memory_core.lifecycle import ExtractiveSummarizer
from tests.lifecycle.scripted import Diligent

SESSIONS, TURNS = 10, 100


def word(session: int, turn: int, text: int = 0) -> str:
    """One that no other text has."""
    return f"zq{session:03}{turn:03}{text}x"


async def fill(ann: BoundMemory) -> None:
    """Turns, what is made of their words, and later texts of some."""
    start = datetime.now(UTC) - timedelta(days=60)
    for session in range(SESSIONS):
        at = start + timedelta(days=session)
        said = [f"I live in {word(session, turn)}." for turn in range(TURNS)]
        drafts = [
            Draft(text, kind="message", role="user", session=f"s{session}", occurred_at=at + timedelta(minutes=turn))
            for turn, text in enumerate(said)
        ]
        await ann.add_many(drafts)
    policy = MaintainPolicy(periods=("month",), contradictions="keep", alike="keep")
    await maintain(ann, policy, model=Diligent(), summarizer=ExtractiveSummarizer())
    for session in range(SESSIONS):
        page = await ann.bind(session=f"s{session}").list(order="oldest", limit=TURNS)
        turns = [record for record in page.records if record.kind == "message"]
        for turn, record in enumerate(turns[::3]):
            await ann.update(record.id, Patch(text=f"I live in {word(session, turn, 1)}."))


def copies(folder: Path, session: int) -> int:
    """The number of times that words of a session are in the files. The memory must be closed: reading an open file
    drops locks."""
    return sum(len(re.findall(rb"zq%03d\d{4}x" % session, path.read_bytes())) for path in folder.iterdir())


async def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "memory.db"
        async with Memory(path, embedder=None) as memory:
            await fill(memory.bind(user="ann"))
        before = [copies(path.parent, session) for session in range(SESSIONS)]
        left, derived = 0, 0
        for session in range(SESSIONS):
            async with Memory(path, embedder=None) as memory:
                receipt = await memory.bind(user="ann", session=f"s{session}").erase()
            derived += receipt.derived
            left += sum(copies(path.parent, each) for each in range(session + 1))
    print(f"{SESSIONS * TURNS} turns: {sum(before)} copies of their words before; {derived} derived records went")
    print(f"copies of erased words in the files, after each of {SESSIONS} erasures, added up: {left}")


if __name__ == "__main__":
    asyncio.run(main())
