"""A client that openapi-python-client makes of the description of the API works, against a server."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.app.serve.conftest import running

GENERATOR = Path(sys.prefix) / "client-generator"
"""The folder in which `.ci/client-generator` has installed it."""
PROGRAM = Path(__file__).with_name("generated_client.py")

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(not (GENERATOR / ".done").exists(), reason="`make install` could not install the generator"),
]


def test_a_generated_client_adds_searches_and_deletes(tmp_path: Path) -> None:
    python = GENERATOR / "bin" / "python"
    with running(tmp_path / "m.db", "--write") as server:
        headers = {"Authorization": f"Bearer {server.key}"}
        request = urllib.request.Request(f"{server.address}/v1/openapi.json", headers=headers)
        with urllib.request.urlopen(request) as answer:
            (tmp_path / "openapi.json").write_bytes(answer.read())
        options = ["--path", "openapi.json", "--meta", "none", "--output-path", "generated"]
        subprocess.run([python, "-m", "openapi_python_client", "generate", *options], cwd=tmp_path, check=True)
        subprocess.run([python, PROGRAM, tmp_path, server.address, server.key], check=True)
