"""A process is killed while a model manages the memory: the next run ends where an undisturbed one does."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Where, run_sync
from memory_core.lifecycle import Maintenance, maintain
from memory_core.models import STATES
from tests.lifecycle.killed_process import POLICY
from tests.lifecycle.scripted import Answers, Diligent

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 1, 9, tzinfo=UTC)
HOMES = ("Oslo", "Bergen", "Porto", "Graz", "Lyon", "Cork")
SESSIONS = 12
KILLS = 20


def fill(file: Path) -> None:
    """Conversations in which a home changes again and again, and something new is said as well."""
    drafts = [
        Draft(text, kind="message", role="user", session=f"s{day}", id=f"{day}.{n}", occurred_at=at)
        for day in range(SESSIONS)
        for at in [START + timedelta(days=day)]
        for n, text in enumerate(
            (f"I moved to {HOMES[day % len(HOMES)]}.", f"I collect stamps of year {day}.", "Okay.")
        )
    ]
    with Memory(file, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add_many, drafts)
        run_sync(memory.bind(user="bob").add, Draft("I live in Ghent.", kind="fact", id="ghent"))


def state(ann: BoundMemory) -> dict[str, object]:
    """The state of everything with a text."""
    records: tuple[MemoryRecord, ...] = run_sync(ann.list, where=Where(states=STATES), limit=10_000).records
    return {
        record.id: (record.text, record.state, record.valid_to, sorted(map(str, record.links)))
        for record in records
        if record.text
    }


@pytest.mark.process
@pytest.mark.torture
@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_run_loses_nothing_does_nothing_twice_and_touches_nobody_else(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    whole, file = tmp_path / "whole.db", tmp_path / "killed.db"
    fill(whole)
    shutil.copy(whole, file)
    with Memory(whole, embedder=None) as memory:
        run_sync(maintain, memory.bind(user="ann"), POLICY, model=Diligent())
        expected = state(memory.bind(user="ann"))
    command = [sys.executable, "-m", "tests.lifecycle.killed_process", str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    last = Path(f"{file}.asked.{1 + chance.randrange(SESSIONS)}")
    while not last.exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(chance.random() * 0.05)  # anywhere in a step, or in the corrections after the last call
    process.kill()
    process.communicate()
    with Memory(file, embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(maintain, ann, POLICY, model=Diligent())
        assert state(ann) == expected
        assert run_sync(maintain, ann, POLICY, model=Answers()) == Maintenance()
        assert [record.text for record in run_sync(memory.bind(user="bob").list).records] == ["I live in Ghent."]
        assert run_sync(memory.operator().check) == []
