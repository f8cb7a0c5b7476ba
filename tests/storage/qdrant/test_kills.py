"""Writers that are killed at any moment: nothing acknowledged is lost, nothing deleted comes back, no half truths."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from memory_core import Memory, run_sync
from memory_core.storage.qdrant.owners import LIFE
from memory_core.testing import Ticks
from memory_core.testing.base import everything
from memory_core.values.times import utc_now
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.emptied import drop
from tests.storage.qdrant.killed_writer import OWNERS, Truth, opened, run
from tests.storage.qdrant.loopback import Loopback

pytestmark = pytest.mark.process

KILLS = 3
MANY_KILLS = 200


def new_name() -> str:
    return f"kills-{uuid.uuid4().hex[:8]}"


def last_lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def read(memory: Memory) -> Truth:
    return {owner: {record.id: record.text for record in everything(memory.bind(user=owner))} for owner in OWNERS}


def after(truth: Truth, lines: list[dict[str, Any]]) -> tuple[Truth, dict[str, Any] | None]:
    """The truth that was acknowledged, and the operation that was under way."""
    left = {owner: dict(held) for owner, held in truth.items()}
    for line in lines:
        if "done" in line:
            apply(left, line)
    return left, lines[-1] if lines and "begin" in lines[-1] else None


def apply(truth: Truth, line: dict[str, Any]) -> None:
    held = truth.setdefault(line["owner"], {})
    for given, text in line["change"].items():
        held.pop(given, None)
        if text is not None:
            held[given] = text


def assert_allowed(found: Truth, acknowledged: Truth, under_way: dict[str, Any] | None, late: Truth) -> None:
    """Everything acknowledged is there and nothing else; what was under way happened or did not, record by record.

    Args:
        late: The writes that earlier writers had under way, which may still arrive.
    """
    for owner in OWNERS:
        ours, theirs = dict(acknowledged.get(owner, {})), dict(found[owner])
        ours.update({given: text for given, text in late.get(owner, {}).items() if theirs.get(given) == text})
        if under_way is not None and under_way["owner"] == owner:
            change: dict[str, str | None] = under_way["change"]
            if under_way["begin"] == "supersede":
                old, new = change
                assert (old in theirs) != (new in theirs), (under_way, theirs.get(old), theirs.get(new))
            if under_way["begin"] == "erase" and change:
                assert theirs in (ours, {}), "an erasure is seen as a whole"
            for given, text in change.items():
                assert theirs.pop(given, None) in (ours.pop(given, None), text), under_way
        assert theirs == ours


def kill_writers(url: str, collection: str, kills: int, log: Path) -> None:
    truth, dice = {owner: dict[str, str]() for owner in OWNERS}, random.Random(1)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.storage.qdrant.killed_writer"])
    begun, late = set[str](), dict[str, dict[str, str]]()
    with opened(url, collection) as memory:
        for kill in range(1, kills + 1):
            log.unlink(missing_ok=True)
            process = processes.Process(target=run, args=(url, collection, str(log), kill, truth))
            process.start()
            wanted, deadline = dice.randrange(2, 30), time.monotonic() + 60
            while process.is_alive() and len(last_lines(log)) < wanted and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(dice.random() * 0.02)
            process.kill()
            process.join()
            lines = last_lines(log)
            assert lines, "the writer never began"
            if "failed" in lines[-1]:  # the server did not answer in time, so nobody knows
                lines.pop()
            acknowledged, under_way = after(truth, lines)
            time.sleep(0.05)  # what was on its way to the server arrives
            found = read(memory)
            for line in lines:
                if line.get("done") == "erase":
                    late.pop(line["owner"], None)  # what arrives later than an erasure must not come back
            assert_allowed(found, acknowledged, under_way, late)
            if under_way is not None and under_way["begin"] in ("add", "batch"):
                late.setdefault(under_way["owner"], {}).update(under_way["change"])
            truth = found
            begun |= {line["begin"] for line in lines if "begin" in line}
        run_sync(memory.bind(user="carla").add, "somebody else")
        assert run_sync(memory.bind(user="carla").search, "somebody else")
    assert_it_stays_so(url, collection, truth, late)
    if kills >= MANY_KILLS:
        assert begun == {"add", "batch", "update", "delete", "supersede", "erase"}


def assert_it_stays_so(url: str, collection: str, truth: Truth, late: Truth) -> None:
    """After the life of every request, and the repairs, the same is there."""
    clock = Ticks()
    clock.now = utc_now() + 2 * LIFE
    with opened(url, collection, clock=clock) as memory:
        run_sync(memory.operator().vacuum)
        assert run_sync(memory.operator().check) == []
        assert_allowed(read(memory), truth, None, late)


def test_killed_writers_leave_nothing_lost_and_nothing_half_true(
    real_engine: EdgeEngine, real_loopback: Loopback, tmp_path: Path
) -> None:
    kill_writers(real_loopback.url, new_name(), KILLS, tmp_path / "log")


@pytest.mark.torture
def test_many_killed_writers(real_engine: EdgeEngine, real_loopback: Loopback, tmp_path: Path) -> None:
    kill_writers(real_loopback.url, new_name(), MANY_KILLS, tmp_path / "log")


@pytest.mark.skipif("QDRANT_URL" not in os.environ, reason="needs a Qdrant server; set QDRANT_URL to its address")
@pytest.mark.timeout(3_600)  # any number of kills, on any server
def test_killed_writers_on_a_server(tmp_path: Path) -> None:
    url, collection = os.environ["QDRANT_URL"], new_name()
    kill_writers(url, collection, int(os.environ.get("MEMORY_CORE_KILLS", str(KILLS))), tmp_path / "log")
    drop(url, collection)
