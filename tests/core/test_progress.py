"""What long operations report, and the bar that shows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import Draft, Memory, Progress, run_sync
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.storage.shared.embedding_batches import TEXTS_AT_ONCE
from tests.storage.qdrant.loopback import Loopback

MANY = 2 * TEXTS_AT_ONCE + 10
LONG = "A sentence of some words about tea. " * 100


@pytest.fixture(params=["file", "server"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    if request.param == "file":
        with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as opened:
            yield opened
    else:
        with (
            Loopback() as loopback,
            Memory(QdrantStore(Server(url=loopback.url), embedder=HashingEmbedder())) as opened,
        ):
            yield opened


def test_adding_many_reports_batch_by_batch_and_at_the_end(memory: Memory) -> None:
    seen: list[Progress] = []
    run_sync(memory.bind(user="ann").add_many, [f"note {n}" for n in range(MANY)], progress=seen.append)
    assert [each.done for each in seen] == [0, TEXTS_AT_ONCE, 2 * TEXTS_AT_ONCE, MANY, MANY]
    assert {(each.total, each.part) for each in seen} == {(MANY, "")}


def test_a_record_counts_once_all_its_pieces_have_vectors(memory: Memory) -> None:
    seen: list[Progress] = []
    run_sync(memory.bind(user="ann").add_many, ["tea", LONG, "coffee"], progress=seen.append)
    assert [(each.done, each.total) for each in seen] == [(0, 3), (3, 3), (3, 3)]


def test_vectors_that_come_later_are_not_waited_for(memory: Memory) -> None:
    seen: list[Progress] = []
    run_sync(memory.bind(user="ann").add_many, ["tea", "coffee"], embed="later", progress=seen.append)
    assert [(each.done, each.total) for each in seen] == [(0, 2), (2, 2)]


def test_what_a_callback_raises_ends_the_operation_and_nothing_is_stored(memory: Memory) -> None:
    def stop(progress: Progress) -> None:
        if progress.done:
            raise KeyError("enough")

    ann = memory.bind(user="ann")
    with pytest.raises(KeyError, match="enough"):
        run_sync(ann.add_many, [f"note {n}" for n in range(MANY)], progress=stop)
    assert run_sync(ann.stats).records == 0


def test_reembedding_reports_the_vectors_it_computes(tmp_path: Path) -> None:
    seen: list[Progress] = []
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(f"note {n}") for n in range(MANY)])
        made = run_sync(memory.reembed, HashingEmbedder(), progress=seen.append)
    assert made == MANY
    done = [each.done for each in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, MANY)
    assert len(set(done)) > 2
    assert {each.total for each in seen} == {MANY}


@pytest.mark.process
def test_the_bar_shows_what_is_reported() -> None:
    code = """
from memory_core import Progress, progress_bar
with progress_bar("adding [b]") as progress:
    progress(Progress(1, 4, "owner 1 of 2"))
    progress(Progress(4, 4, "owner 2 of 2"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "adding [b], owner 2 of 2" in done.stderr
    assert "100%" in done.stderr
    assert done.stdout == ""


def test_without_rich_the_bar_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_core import progress_bar

    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match=r"pip install 'memory-core\[cli\]'"), progress_bar("adding"):
        pass
