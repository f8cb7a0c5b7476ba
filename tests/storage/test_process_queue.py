"""Writers of several processes take turns, and a queue that does not work stops nobody."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_core import Memory, run_sync
from memory_core.storage.sqlite import process_queue
from memory_core.storage.sqlite.process_queue import WriterQueue

HOLDER = """
import sys
from pathlib import Path
from memory_core.storage.sqlite.process_queue import WriterQueue
queue = WriterQueue(Path(sys.argv[1]))
print("asks", flush=True)
with queue.turn():
    open(sys.argv[2], "a").write("child\\n")
    print("has it", flush=True)
    input()
"""


@contextmanager
def other_process(side_file: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for its turn and keeps it until it gets a line, or the end of the block."""
    command = [sys.executable, "-c", HOLDER, str(side_file), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "asks\n"
        try:
            yield child
        finally:
            child.kill()


def has_it(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "has it\n"


@pytest.fixture
def side_file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db-turn"


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="looks at locks as Linux lists them")
def test_a_writer_that_comes_back_lines_up_behind_one_that_waits(side_file: Path, tmp_path: Path) -> None:
    queue, log = WriterQueue(side_file), tmp_path / "log"
    with queue.turn(), other_process(side_file, log) as child:
        while f" {child.pid} " not in Path("/proc/locks").read_text():  # it is the next one
            assert child.poll() is None
            time.sleep(0.001)
        releasing = threading.Timer(0.2, child.communicate, ["\n"])
        releasing.start()
        queue._pass_on()
        with queue.turn(), log.open("a") as lines:
            lines.write("parent\n")
        releasing.join()
    assert log.read_text() == "child\nparent\n"
    queue.close(is_last=True)
    assert not side_file.exists()


@pytest.mark.process
def test_a_process_that_is_killed_passes_its_turn_on(side_file: Path, tmp_path: Path) -> None:
    queue = WriterQueue(side_file)
    with other_process(side_file, tmp_path / "log") as child:
        has_it(child)
        killing = threading.Timer(0.1, child.kill)
        killing.start()
        assert queue._take()
        killing.join()
    queue.close(is_last=False)


@pytest.mark.process
def test_a_process_that_is_stopped_keeps_nobody_waiting_for_ever(
    side_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_queue, "PATIENCE_SECONDS", 0.05)
    queue = WriterQueue(side_file)
    with other_process(side_file, tmp_path / "log") as child:
        has_it(child)
        child.send_signal(signal.SIGSTOP)
        for _ in range(3):
            assert not queue._take()
            with queue.turn():
                pass
        monkeypatch.setattr(process_queue, "PATIENCE_SECONDS", 300)
        killing = threading.Timer(60, child.kill)  # a wait would end with a turn
        killing.start()
        assert not queue._take()
        killing.cancel()
    assert queue._take()
    queue._pass_on()
    queue.close(is_last=True)


def test_a_side_file_that_cannot_be_made_or_has_gone_stops_nobody(side_file: Path, tmp_path: Path) -> None:
    nowhere = WriterQueue(tmp_path / "no such folder" / "memory.db-turn")
    with nowhere.turn():
        pass
    nowhere.close(is_last=True)
    queue = WriterQueue(side_file)
    for _ in range(2):
        with queue.turn():
            assert side_file.stat().st_mode & 0o777 == 0o600
        side_file.unlink()
    (tmp_path / "target").touch()
    side_file.symlink_to(tmp_path / "target")  # somebody's trap
    assert not queue._take()
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        run_sync(memory.bind(user="ann").add, "tea")
        assert len(run_sync(memory.bind(user="ann").list).records) == 1


WRITING = """
import asyncio, sys
from memory_core import Memory
async def main():
    async with Memory(sys.argv[1], embedder=None) as memory:
        ann = memory.bind(user="ann")
        async def write(writer):
            for number in range(10):
                await ann.add(f"{sys.argv[2]}.{writer} wrote number {number}")
        await asyncio.gather(*(write(writer) for writer in range(4)))
asyncio.run(main())
"""


@pytest.mark.process
def test_writers_of_many_processes_all_get_done(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    writing = [subprocess.Popen([sys.executable, "-c", WRITING, path, str(n)]) for n in range(3)]
    assert [process.wait(300) for process in writing] == [0] * 3
    assert [file.name for file in tmp_path.iterdir()] == ["memory.db"]
    with Memory(path, embedder=None) as memory:
        texts = {record.text for record in run_sync(memory.bind(user="ann").list, limit=1_000).records}
        assert texts == {f"{p}.{w} wrote number {n}" for p in range(3) for w in range(4) for n in range(10)}
        assert run_sync(memory.operator().check) == []
