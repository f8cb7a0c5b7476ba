"""A memory that comes in whole is kept as it is, with what was made of a record that is not there; that is counted."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from memory_core import Draft, Link, Memory, run_sync
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import Ticks
from memory_core.transfer.copying import copy_memory
from memory_core.transfer.jsonl import export_jsonl, import_jsonl
from tests.app.conftest import Run


def filled(path: Path, clock: Ticks) -> Memory:
    """Two facts: the source of one has expired."""
    memory = Memory(path, embedder=None, clock=clock)
    ann = memory.bind(user="ann")
    until = clock.now + timedelta(days=1)
    brief, lasting = run_sync(ann.add_many, [Draft("the code is 2231", expires_at=until), Draft("I drink tea")])
    assert brief is not None
    assert lasting is not None
    run_sync(ann.add, Draft("Ann's code is 2231", links=[Link("derived_from", brief.id, brief.rev)]))
    run_sync(ann.add, Draft("Ann drinks tea", links=[Link("derived_from", lasting.id, lasting.rev)]))
    clock.advance(days=2)
    run_sync(ann.sweep)
    return memory


@pytest.mark.parametrize("target", ["sqlite", "qdrant"])
def test_an_import_and_a_migration_count_what_has_no_source(tmp_path: Path, target: str) -> None:
    clock, lines = Ticks(), list[bytes]()

    def opened(name: str) -> Memory:
        if target == "qdrant":
            return Memory(QdrantStore(":memory:", embedder=None, clock=clock), clock=clock)
        return Memory(tmp_path / name, embedder=None, clock=clock)

    with (
        filled(tmp_path / "memory.db", clock) as memory,
        opened("moved.db") as moved,
        opened("imported.db") as imported,
    ):
        run_sync(export_jsonl, memory, lines.append)
        for _ in range(2):
            report = run_sync(copy_memory, memory, moved)
            assert (report.records, report.sourceless) == (3, 1)
            assert run_sync(import_jsonl, imported, lines).sourceless == 1
        for copy in (moved, imported):
            assert {record.text for record in run_sync(copy.bind(user="ann").list).records} == {
                "I drink tea",
                "Ann's code is 2231",
                "Ann drinks tea",
            }


def test_the_command_line_says_how_many(run: Run, tmp_path: Path) -> None:
    filled(tmp_path / "backup.db", Ticks()).__exit__(None, None, None)
    restored = run("restore", "backup.db", "--file", "restored.db", "--json").value
    assert (Path(restored["file"]).name, restored["sourceless"]) == ("restored.db", 1)
    said = run("restore", "backup.db", "--file", "again.db").out
    assert "1 made from memories that are not here" in " ".join(said.split())
    moved = run("copy", "moved.db", "--file", "backup.db", "--embedder", "none", "--json").value
    assert moved["sourceless"] == 1
    assert json.dumps(moved)
    assert "1 made from memories that are not here" in " ".join(
        run("copy", "moved.db", "--file", "backup.db").out.split()
    )
