"""The program run in this process, in a folder of its own with a memory in which somebody else has something."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_core import Draft, Memory, run_sync
from memory_core.app.main import main

Run = Callable[..., int]
"""Runs a command, and returns its exit code."""
WHOLE = "whole.db"
APP, USER = "private 4711", "eve"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, without the settings of the machine."""
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "APP", "USER", "CONFIG"):
        monkeypatch.delenv(f"MEMORY_CORE_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with Memory(WHOLE, embedder=None) as memory:
        run_sync(memory.bind(app=APP, user=USER).add, Draft("Eve's own", id="eve", data={"x": 1}))
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command: it can print whatever it has to say, and never reports a defect of its own."""

    def command(*arguments: str) -> int:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            code = main(arguments)
        out.flush()
        err.seek(0)
        said = err.read()
        assert code in {0, 1, 2}, said
        assert "Traceback" not in said
        return code

    return command


def begin() -> None:
    """Begin with Eve's memory, whatever was imported before."""
    shutil.copy(WHOLE, "memory.db")


def insist_on_what_was_there() -> None:
    """Eve's memory is as it was, and nobody gave her another one."""
    with Memory("memory.db", embedder=None) as memory:
        records = run_sync(memory.bind(app=APP, user=USER).list).records
    assert [(record.id, record.text, record.data) for record in records] == [("eve", "Eve's own", {"x": 1})]
