"""Processes that write to one file are killed without warning: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory_core import FingerprintError, Memory, run_sync
from tests.storage.consistency import assert_consistent, owed
from tests.storage.embedders import WordEmbedder
from tests.storage.operating_process import EMBEDDERS

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).with_name("writing_process.py")
OPERATING = Path(__file__).with_name("operating_process.py")
WORKERS = 4
KILLS = 6
"""The number of times that each worker is killed, at random moments of its work."""
PATIENCE_SECONDS = 300


class Worker:
    """One writing process after the other."""

    def __init__(self, folder: Path, name: int, count: int) -> None:
        self._acknowledged = folder / f"acknowledged-{name}"
        self._output = folder / f"output-{name}"
        self._command = [
            *(sys.executable, str(SCRIPT), str(folder / "memory.db"), str(name), str(count)),
            str(self._acknowledged),
        ]
        # Kill it once it has acknowledged so many; the rest of the moment is left to chance.
        self._limits = sorted(random.randrange(count) for _ in range(KILLS))
        self.kills = 0
        self._process = self._start()

    @property
    def acknowledged(self) -> list[int]:
        text = self._acknowledged.read_text() if self._acknowledged.exists() else ""
        return [int(line) for line in text.split("\n")[:-1]]

    def watch(self) -> bool:
        """Kill or restart the process as the plan has it; False once it has finished its work."""
        code = self._process.poll()
        if code == -signal.SIGKILL:
            self._process = self._start()
        elif code is not None:
            assert code == 0, self._output.read_text()
            return False
        elif self._limits and len(self.acknowledged) > self._limits[0]:
            self._limits.pop(0)
            time.sleep(random.random() * 0.01)
            self._process.kill()
            self._process.wait()
            self.kills += 1
        return True

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("count", [50, pytest.param(1_000, marks=pytest.mark.torture)])
def test_killed_writers_lose_nothing_and_write_nothing_twice(tmp_path: Path, count: int) -> None:
    workers = [Worker(tmp_path, name, count) for name in range(WORKERS)]
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while [worker for worker in workers if worker.watch()]:
            assert time.monotonic() < deadline, "the workers do not get on"
            time.sleep(0.002)
    finally:
        for worker in workers:
            worker.stop()
    assert sum(worker.kills for worker in workers) > WORKERS
    for worker in workers:
        assert set(worker.acknowledged) == set(range(count))

    path = tmp_path / "memory.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        handle = memory.bind(app="crash", user="ann")
        records = run_sync(handle.list, limit=10_000).records
        expected = {f"worker {name} wrote number {number}" for name in range(WORKERS) for number in range(count)}
        assert sorted(record.text for record in records) == sorted(expected)
        last = run_sync(handle.search, f"number {count - 1}", mode="lexical", limit=WORKERS)
        assert {hit.record.text for hit in last} == {
            f"worker {name} wrote number {count - 1}" for name in range(WORKERS)
        }
        while run_sync(handle.stats).vectors_pending:
            time.sleep(0.01)
    assert owed(path) == 0
    assert_consistent(path, WordEmbedder())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.parametrize("kills", [30, pytest.param(1_000, marks=pytest.mark.torture)], ids=["short", "long"])
def test_every_operation_is_whole_or_not_at_all_whenever_its_process_is_killed(tmp_path: Path, kills: int) -> None:
    path, seed = tmp_path / "memory.db", random.randrange(1 << 30)
    command = [sys.executable, str(OPERATING), str(path), str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"seed {seed}"
    embedder = opened_embedder(path)
    with Memory(path, embedder=embedder) as memory:
        assert run_sync(memory.operator().check) == []
        handle = memory.bind(app="crash", user="ann")
        run_sync(handle.add, "the last one")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(stats.vectors_pending for stats in run_sync(memory.operator().stats).values()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert_consistent(path, embedder)


def opened_embedder(path: Path) -> WordEmbedder:
    """The embedder that made the vectors in the file."""
    for name, dimensions in EMBEDDERS:
        try:
            with Memory(path, embedder=WordEmbedder(name, dimensions)):
                return WordEmbedder(name, dimensions)
        except FingerprintError:
            continue
    raise AssertionError("neither embedder fits")
