"""A recall from very long texts keeps nobody waiting."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType

from memory_core import PULLED, Memory
from memory_core.recall.choosing import choose


def runs_in(frame: FrameType | None) -> bool:
    """True if a thread with this frame chooses lines."""
    while frame is not None:
        if frame.f_code is choose.__code__:
            return True
        frame = frame.f_back
    return False


async def test_others_are_served_while_lines_are_chosen_from_long_texts(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        for number in range(5):
            await ann.add("harbour crane " * (60_000 + number))  # nothing that the question does not say, to the end
        recalling, is_beside = asyncio.create_task(ann.recall("harbour crane", PULLED, explain=True)), False
        while not recalling.done():
            frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]  (Python's own, of all threads)
            is_beside = is_beside or any(map(runs_in, frames.values()))
            await asyncio.sleep(0)
        assert (await recalling).considered
    assert is_beside
