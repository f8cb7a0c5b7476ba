"""Every example runs by itself: no arguments, no network, nothing in the home directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
NOWHERE = "http://127.0.0.1:9"  # the discard port: an HTTP client that heeds a proxy cannot leave this machine


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_ends_well(example: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    folder.mkdir()
    offline = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "localhost,127.0.0.1"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmp_path), **offline}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", str(example)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.strip()
