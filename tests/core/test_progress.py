"""The progress that long operations report, and the bar that shows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memory_core import Draft, Memory, Progress, run_sync
from memory_core.embedding.hashing import HashingEmbedder

MANY = 600
"""More than two batches of vectors."""


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
