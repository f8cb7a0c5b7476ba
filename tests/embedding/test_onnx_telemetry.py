"""onnxruntime's telemetry is off wherever this package imports onnxruntime, and it is said if that came too late."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.embedding.multilingual.weights import cache

pytestmark = pytest.mark.process

USE = """
import logging
from memory_core import Memory
logging.basicConfig()
for number in range(2):
    with Memory(f"{number}.db") as memory:
        memory.bind(user="ann").sync.add("Ann rows on Sundays")
"""
DOORS = {
    "the default embedder": USE,
    "qdrant_client, which imports fastembed": "import memory_core.storage.qdrant.store",
    "mem0's importer": "from memory_core.app.sources import mem0; mem0._client()",
    "fastembed": """
from memory_core.embedding import fastembed
try:
    fastembed._Loaded("no such model", None, None, None)
except ValueError:
    pass
""",
}
TOO_LATE = "onnxruntime was imported before memory_core turned its telemetry off"


def ended(tmp_path: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program without a home; the table of the default embedder is where it is on this machine."""
    folders = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(cache().parent)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **folders, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("door", DOORS)
def test_no_import_of_ours_leaves_anything_at_home(door: str, tmp_path: Path) -> None:
    if door != "the default embedder":
        pytest.importorskip("fastembed", reason="without fastembed nothing but the embedder imports onnxruntime")
    says = "import os, sys; print('onnxruntime' in sys.modules, os.environ['ORT_DISABLE_TELEMETRY'])"
    done = ended(tmp_path, f"{DOORS[door]}\n{says}")
    assert done.stdout == "True 1\n"
    assert not (tmp_path / "home").exists()
    assert TOO_LATE not in done.stderr


def test_it_is_said_once_if_the_program_imported_onnxruntime_first(tmp_path: Path) -> None:
    assert ended(tmp_path, f"import onnxruntime\n{USE}").stderr.count(TOO_LATE) == 1


def test_what_the_application_chose_stays(tmp_path: Path) -> None:
    says = "import os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    done = ended(tmp_path, f"import onnxruntime\n{USE}\n{says}", ORT_DISABLE_TELEMETRY="0")
    assert (done.stdout, TOO_LATE in done.stderr) == ("0\n", False)


def test_doctor_says_that_its_process_reports(tmp_path: Path) -> None:
    with_onnxruntime = """
import sys
import onnxruntime
from memory_core.__main__ import run
sys.argv = ["memory-core", "doctor", "--file", "0.db"]
try:
    run()
except SystemExit as end:
    print("code", end.code)
"""
    ended(tmp_path, USE)
    done = ended(tmp_path, with_onnxruntime, COLUMNS="500")
    assert TOO_LATE in done.stdout
    assert "code 1" in done.stdout
