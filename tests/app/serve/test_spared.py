"""The objects that a server has loaded take no part in the searches for garbage that stop everybody."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.serve.test_strangers import made

pytestmark = pytest.mark.process
IN_PROCESS = """
import gc, os, signal, sys, threading, time

def look():
    until = time.monotonic() + 120
    while not gc.get_freeze_count() and time.monotonic() < until:
        time.sleep(0.05)
    print(gc.get_freeze_count(), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=look, daemon=True).start()
"""
"""Says how many objects are left out, and ends the server."""


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("from memory_core.__main__ import run as main", ["serve", "--write", "--port", "0"]),
        ("from memory_mcp.__main__ import main", ["--http", "0"]),
    ],
    ids=["memory-core serve", "memory-mcp"],
)
def test_what_is_loaded_is_left_out(tmp_path: Path, program: str, options: list[str]) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"ann": "a" * 24}))
    tokens.chmod(0o600)
    code = f"{IN_PROCESS}\n{program}\nmain()"
    command = [sys.executable, "-c", code, *options, "--file", str(made(tmp_path)), "--tokens", str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert int(done.stdout) > 10_000, done.stderr
