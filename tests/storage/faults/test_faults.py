"""Disks that fail, lie or lose power, and SQLite without memory: the short form of `make torture`'s table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.faults.preloaded import compiled, compiler, environment

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler, on Linux"),
]

SHORT = ["add", "delete_where", "erase", "import", "backup", "restore over another"]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("faults"))


def run(library: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"tests.storage.faults.{module}", *arguments]
    return subprocess.run(command, env=environment(library), cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_fault_loses_nothing_and_leaves_nothing_by_half(library: Path) -> None:
    done = run(library, "matrix", "--most", "1", "--crashes", "60", "--operations", *SHORT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = done.stdout.splitlines()
    assert [row.split("|")[1].strip() for row in rows[2 : 2 + len(SHORT)]] == SHORT
    assert rows[-1].startswith("losses of power: 60")


def test_what_an_erasure_gives_back_to_the_disk_holds_nothing_of_it(library: Path) -> None:
    done = run(library, "freed")
    assert done.returncode == 0, done.stderr
    without, erased = map(int, done.stdout.split())
    assert without > 1_000, "a log that is merely deleted holds the texts"
    assert erased == 0
