"""Writes of a conversation: one runs, one waits; each message is handed over once, and none is missing at the end."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import StoreUnavailableError, run_sync
from memory_core.conversation.write import Write
from memory_core.conversation.writes import Writes


@dataclass
class Disk:
    """The disk to which writes go: slowly, and not always."""

    pauses: list[int] = field(default_factory=list[int])
    """Turns of the loop that each write takes."""
    fails: list[bool] = field(default_factory=list[bool])
    stored: list[str] = field(default_factory=list[str])
    handed_over: int = 0
    running: int = 0

    async def write(self, messages: tuple[str, ...]) -> None:
        assert self.running == 0, "two writes of one conversation run at once"
        self.running += 1
        try:
            for _ in range(self.pauses.pop(0) if self.pauses else 0):
                await asyncio.sleep(0)
            if self.fails and self.fails.pop(0):
                raise StoreUnavailableError("out of reach")
            self.handed_over += len(messages)
            self.stored += [message for message in messages if message not in self.stored]
        finally:
            self.running -= 1


def said(disk: Disk, *messages: str, conversation: str = "monday", name: str = "monday") -> Write:
    return Write(conversation, name, (partial(disk.write, messages),))


@given(st.lists(st.integers(0, 5), max_size=20), st.lists(st.booleans(), max_size=10), st.integers(0, 30))
def test_every_message_is_stored_in_order_whatever_fails_and_however_slow(
    pauses: list[int], fails: list[bool], count: int
) -> None:
    disk = Disk(pauses, list(fails))
    writes = Writes()

    async def talk() -> None:
        for number in range(count):
            await writes.put(said(disk, str(number)))
            await asyncio.sleep(0)
        for _ in range(len(fails) + 1):
            assert await writes.close(60.0)

    asyncio.run(talk())
    assert disk.stored == [str(number) for number in range(count)]
    assert disk.handed_over == count or any(fails)  # what was done before a failure is done again


@pytest.mark.parametrize("count", [10, 1_000])
def test_a_turn_of_any_length_is_handed_over_once(count: int) -> None:
    disk = Disk([3] * count)
    writes = Writes()

    async def talk() -> None:
        for number in range(count):
            await writes.put(said(disk, str(number)))
        assert await writes.close(60.0)

    asyncio.run(talk())
    assert disk.handed_over == count


def test_a_close_waits_for_what_was_said_before_it_although_the_conversation_goes_on() -> None:
    disk, writes, is_over = Disk(), Writes(), threading.Event()

    def endless(message: str) -> Write:
        async def write() -> None:
            await disk.write((message,))
            if not is_over.is_set():
                await writes.put(endless(str(disk.handed_over)))

        return Write("monday", "monday", (write,))

    async def talk() -> None:
        await writes.put(endless("first"))
        await writes.put(endless("last"))
        assert await writes.close(10.0)
        assert "last" in disk.stored
        is_over.set()
        await writes.settle()

    asyncio.run(talk())


def test_a_close_tries_everything_again_that_has_failed() -> None:
    disks = [Disk(fails=[True]) for _ in range(5)]
    writes = Writes()

    async def talk() -> None:
        for number, disk in enumerate(disks):
            await writes.put(said(disk, "one", conversation=f"c{number}"))
        assert await writes.close(60.0)

    asyncio.run(talk())
    assert [disk.stored for disk in disks] == [["one"]] * 5


@pytest.mark.parametrize("fault", ["hangs", "is cancelled"])
def test_a_write_that_hangs_or_is_cancelled_by_the_store_is_done_by_the_next_one(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memory_core.conversation.limits.BACKGROUND_SECONDS", 0.05)
    is_broken = True

    disk, writes = Disk(), Writes()

    async def broken(message: str) -> None:
        if is_broken:
            if fault == "hangs":
                await asyncio.Event().wait()
            raise asyncio.CancelledError
        await disk.write((message,))

    async def talk() -> None:
        nonlocal is_broken
        await writes.put(Write("monday", "monday", (partial(broken, "one"),)))
        await writes.settle()
        is_broken = False
        monkeypatch.setattr("memory_core.conversation.limits.BACKGROUND_SECONDS", 60.0)
        await writes.put(Write("monday", "monday", (partial(broken, "two"),)))
        await writes.settle()

    asyncio.run(talk())
    assert disk.stored == ["one", "two"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("error", [StoreUnavailableError("out of reach"), ValueError("a defect")])
def test_the_name_of_a_conversation_does_not_begin_a_line_of_the_log(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise error

    async def talk() -> None:
        writes = Writes()
        await writes.put(Write("monday", "monday\nERROR all is lost\x1b[2J", (broken,)))
        await writes.settle()

    asyncio.run(talk())
    (record,) = caplog.records
    assert "a turn of session monday ERROR all is lost\\x1b[2J is not stored" in record.getMessage()


def test_a_write_that_hangs_delays_a_close_by_its_limit_and_no_other_conversation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    free = asyncio.Event()

    disk, other = Disk(), Disk()

    async def hang(message: str) -> None:
        await free.wait()
        await disk.write((message,))

    writes = Writes()

    async def talk() -> None:
        for message in ("one", "two"):
            await writes.put(Write("tuesday", "tuesday", (partial(hang, message),)))
        await writes.put(said(other, "three"))
        while not other.stored:  # noqa: ASYNC110  (the core loop stores it)
            await asyncio.sleep(0.005)
        with caplog.at_level(logging.WARNING):
            assert not await writes.close(0.05)
        assert other.stored == ["three"]

        async def let() -> None:
            free.set()

        await asyncio.to_thread(run_sync, let)
        assert await writes.close(60.0)

    asyncio.run(talk())
    assert disk.stored == ["one", "two"]


SLOW = """
import asyncio, sys
from pathlib import Path
from memory_core.conversation import limits
from memory_core.conversation.write import Write
from memory_core.conversation.writes import Writes

limits.EXIT_SECONDS = 60.0  # a busy machine may take longer than an exiting script should

async def slow():
    await asyncio.sleep(0.3)  # the main thread has ended by now
    await asyncio.to_thread(Path(sys.argv[1]).write_text, "stored")

asyncio.run(Writes().put(Write("monday", "monday", (slow,))))
"""


def test_a_write_that_needs_a_thread_is_finished_although_the_script_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    done = subprocess.run([sys.executable, "-c", SLOW, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_text() == "stored"
