"""One path given to agents, services, stores and plain memories of a process, while other processes come and go."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from frameworks import opened

from memory_core import Memory
from memory_langchain import MemoryStore
from memory_spade.testing.xmpp import XmppServer

Write = Callable[[str], Awaitable[object]]

OTHERS = 4
OTHER = """
import sys, time
from memory_core import Memory, run_sync
path, name, until = sys.argv[1], sys.argv[2], float(sys.argv[3])
life = 0
while not life or time.time() < until:
    with Memory(path, embedder=None) as memory:
        ann = memory.bind(app="others", user="ann")
        for number in range(3):
            text = f"{name} wrote number {number} in life {life}"
            run_sync(ann.add, text)
            print(text, flush=True)
    life += 1
"""
READ = """
import sys
from memory_core import Memory, run_sync
with Memory(sys.argv[1], embedder=None) as memory:
    operator = memory.operator()
    assert run_sync(operator.check) == []
    for owner in run_sync(operator.owners):
        cursor = None
        while True:
            page = run_sync(operator.handle(owner).list, limit=10_000, cursor=cursor)
            for record in page.records:
                print(record.text)
            cursor = page.cursor
            if cursor is None:
                break
"""


def other_process(path: Path, name: str, until: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", OTHER, path, name, str(until)], stdout=subprocess.PIPE)


def everything_in(path: Path) -> str:
    return subprocess.run([sys.executable, "-c", READ, path], check=True, capture_output=True, text=True).stdout


class LockWatch(threading.Thread):
    """Looks all the time whether this process has a lock on a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._wanted = f":{path.stat().st_ino} "
        self._until = threading.Event()
        self.looks = 0
        self.vanished = 0

    def run(self) -> None:
        while not self._until.wait(0.002):
            self.looks += 1
            # The list may change while it is read, so it counts only if the lock is missing again and again.
            self.vanished += not any(self._has_lock() for _ in range(5))

    def end(self) -> None:
        self._until.set()
        self.join()

    def _has_lock(self) -> bool:
        me = f" {os.getpid()} "
        return any(self._wanted in line and me in line for line in Path("/proc/locks").read_text().splitlines())


async def keep_writing(write: Write, name: str, until: float, acknowledged: list[str]) -> None:
    for number in itertools.count():
        if number and time.time() > until:
            return
        text = f"{name} wrote number {number}"
        await write(text)
        acknowledged.append(text)


async def come_and_go(path: Path, name: str, until: float, acknowledged: list[str]) -> None:
    """A plain memory that is closed, or just dropped, and made again all the time."""
    for number in itertools.count():
        if number and time.time() > until:
            return
        memory = Memory(path, embedder=None)
        for part in "ab":
            text = f"{name} wrote number {number}{part}"
            await memory.bind(user="ann").add(text)
            acknowledged.append(text)
        if number % 3:
            await memory.close()


def written_by(store: MemoryStore) -> Write:
    async def write(text: str) -> None:
        await store.aput(("notes",), text, {"text": text})

    return write


@pytest.mark.process
@pytest.mark.xmpp
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="looks at locks as Linux lists them")
@pytest.mark.parametrize("seconds", [1.5, pytest.param(60.0, marks=pytest.mark.torture)], ids=["short", "long"])
async def test_nothing_is_lost_however_many_open_the_file(
    tmp_path: Path, server: XmppServer, container: None, seconds: float
) -> None:
    path, link = tmp_path / "memory.db", tmp_path / "link.db"
    link.symlink_to(path)
    first = await Memory(link, embedder=None).open()
    watch = LockWatch(path)
    watch.start()
    acknowledged: list[str] = []
    async with AsyncExitStack() as stack:
        names = zip(("agent 1", "agent 2", "adk", "store"), itertools.cycle((path, link)), strict=False)
        handles = {name: Memory(place, embedder=None).bind(app="apps", user=name) for name, place in names}
        frameworks = {"agent 1": "spade", "agent 2": "spade", "adk": "adk"}
        writes = {
            name: (await stack.enter_async_context(opened(framework, handles[name], server))).write
            for name, framework in frameworks.items()
        }
        writes["store"] = written_by(MemoryStore(handles["store"]))
        until = time.time() + seconds
        others = [other_process(path, f"other {n}", until) for n in range(OTHERS)]
        plain = [come_and_go((path, link)[n % 2], f"plain {n}", until, acknowledged) for n in range(10)]
        await asyncio.gather(*(keep_writing(w, n, until, acknowledged) for n, w in writes.items()), *plain)
        for other in others:
            said, _ = await asyncio.to_thread(other.communicate)
            assert other.returncode == 0
            acknowledged += said.decode().splitlines()
        for handle in handles.values():
            await handle.memory.close()
    await first.bind(user="ann").add("the last")
    watch.end()
    await first.close()
    assert watch.looks > 10
    assert watch.vanished == 0
    found = await asyncio.to_thread(everything_in, link)
    stored = set(re.findall(r"[a-z]+(?: [0-9]+)? wrote number [0-9]+(?:a|b| in life [0-9]+)?", found))
    assert [text for text in acknowledged if text not in stored] == []
    assert len(acknowledged) == len(set(acknowledged))
    with contextlib.suppress(FileNotFoundError):
        os.stat(f"{path}-turn")  # noqa: PTH116
        pytest.fail("the side file outlived the last process")
