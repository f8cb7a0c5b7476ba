"""The memory of a server: what it has loaded takes no part in the searches for garbage that stop everybody, and what it
has freed goes back."""

from __future__ import annotations

import json
import platform
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the GNU C library has these settings")
def test_large_answers_go_back_to_the_system() -> None:
    code = """
import sys
from memory_core.web.process import prepare_to_serve
if sys.argv[1] == "prepared":
    prepare_to_serve()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
once = b"x" * 30_000_000
del once
before = resident()
blocks, between = [], []
for _ in range(40):
    blocks.append(b"x" * 2_000_000)
    between.append(b"x" * 50_000)  # so that the blocks leave holes
del blocks
print(resident() - before)
"""
    kept = {
        how: int(subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout)
        for how in ("prepared", "as it is")
    }
    assert kept["prepared"] < 4_000_000
    assert kept["as it is"] > 40_000_000  # else this test shows nothing
