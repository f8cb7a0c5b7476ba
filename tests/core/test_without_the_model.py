"""Memories are found by their words if the runtime of the default model is not installed, and the log says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import logging, sys
sys.modules["onnxruntime"] = None  # as on a system for which it has no package
logging.basicConfig(level="WARNING", format="%(name)s: %(message)s")
from memory_core import EmbeddingError, Memory
"""
DEFAULT = """
with Memory("memory.db") as memory:
    ann = memory.bind(user="ann").sync
    ann.add("Ann keeps bees")
    print([hit.record.text for hit in ann.search("bees")], ann.stats().vectors_pending)
"""
EXPLICIT = """
from memory_core.embedding.minilm import MiniLmEmbedder
with Memory("memory.db", embedder=MiniLmEmbedder()) as memory:
    ann = memory.bind(user="ann").sync
    ann.add("Ann keeps bees")
    try:
        ann.search("bees")
    except EmbeddingError as error:
        print(error)
"""


def ended(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)


@pytest.mark.process
def test_the_default_is_words_only_with_a_warning(tmp_path: Path) -> None:
    done = ended(DEFAULT, tmp_path)
    assert done.stdout == "['Ann keeps bees'] 0\n"
    assert done.stderr.count("onnxruntime is not installed, so memories are found by their words") == 1


@pytest.mark.process
def test_the_command_line_too(tmp_path: Path) -> None:
    program = (
        "from memory_core.app.main import main\nmain(['add', 'Ann keeps bees'])\nmain(['search', 'bees', '--json'])"
    )
    done = ended(program, tmp_path)
    assert '"text":"Ann keeps bees"' in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_a_model_that_is_asked_for_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    assert "needs onnxruntime, which is not installed: pip install onnxruntime" in ended(EXPLICIT, tmp_path).stdout


@pytest.mark.process
def test_a_file_with_vectors_is_searched_by_its_words(tmp_path: Path) -> None:
    filled = "from memory_core import Memory\nMemory('memory.db').bind(user='ann').sync.add('Tom keeps bees')"
    subprocess.run([sys.executable, "-c", filled], cwd=tmp_path, check=True)
    assert ended(DEFAULT, tmp_path).stdout.startswith("['Tom keeps bees', 'Ann keeps bees'] ")
