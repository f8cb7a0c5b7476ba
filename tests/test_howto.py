"""The how-to pages, each run by the program that it is about; `test_docs.py` runs what needs no such program."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from memory_core import Memory, run_sync
from memory_core.embedding.multilingual.weights import cache
from tests.ports import free_port
from tests.test_docs import ROOT, blocks

HOWTO = ROOT / "docs" / "howto"
REQUESTS = 200


def code(page: str) -> list[str]:
    """The Python blocks of a how-to page."""
    return [block.code for block in blocks(HOWTO / f"{page}.md")]


def used() -> tuple[int, int]:
    """Threads and descriptors of this process."""
    gc.collect()
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def gunicorn(folder: Path, *options: str) -> Iterator[str]:
    """The application of the page, served from a folder; yields its URL."""
    (folder / "app.py").write_text(code("gunicorn")[0])
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--bind",
        f"127.0.0.1:{port}",
        "--no-control-socket",
        *options,
        "app:app",
    ]
    server = subprocess.Popen(
        command,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(cache().parent)},
    )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=300)
    assert "Traceback" not in said, said


@pytest.mark.process
def test_preloaded_workers_of_gunicorn_share_a_memory(tmp_path: Path) -> None:
    numbers = range(REQUESTS // 2)

    def answer(number: int, method: str) -> Any:
        user = {"X-User": f"user {number % 4}"}
        if method == "POST":
            answered = client.post(url, content=f"note {number}", headers=user)
        else:
            answered = client.get(url, params={"q": f"note {number}"}, headers=user)
        assert answered.status_code == 200
        return answered.json()

    with gunicorn(tmp_path, "--preload", "--workers", "2") as url, httpx.Client(timeout=300) as client:
        wait_for(client, url)
        with ThreadPoolExecutor(4) as pool:
            stored = list(pool.map(answer, numbers, ["POST"] * len(numbers)))
            found = list(pool.map(answer, numbers, ["GET"] * len(numbers)))
    assert [hits[0]["record"] for hits in found] == stored
    with Memory(tmp_path / "memory.db") as memory:
        stats = run_sync(memory.operator().stats)
        assert run_sync(memory.operator().check) == []
    assert [each.records for each in stats.values()] == [len(numbers) // 4] * 4


def wait_for(client: httpx.Client, url: str) -> None:
    """Return once the server answers anything."""
    for _ in range(6_000):
        try:
            client.get(url, params={"q": "x"}, headers={"X-User": "nobody"})
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("gunicorn does not answer")


@pytest.mark.slow
@pytest.mark.parametrize("reruns", [20, pytest.param(200, marks=pytest.mark.torture)])
def test_streamlit_reruns_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reruns: int) -> None:
    from streamlit.testing.v1 import AppTest

    monkeypatch.chdir(tmp_path)
    (script,) = code("streamlit")
    app = AppTest.from_string(script, default_timeout=300)
    app.run()
    app.text_input[0].input("ann").run()
    app.text_input[1].input("The spare key is with Mrs Okafor")
    app.button[0].click().run()
    app.text_input[2].input("Who has the spare key?").run()
    assert not app.exception
    assert app.dataframe[0].value["text"].tolist() == ["The spare key is with Mrs Okafor"]
    before = used()
    for _ in range(reruns):
        app.run()
    assert app.caption[0].value == "1 memories"
    deadline = time.monotonic() + 300
    while any(
        now > was for now, was in zip(used(), before, strict=True)
    ):  # what is dropped is closed in the background
        assert time.monotonic() < deadline, (used(), before)
        time.sleep(0.01)


def test_a_notebook_runs_the_page_and_shows_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython.core import interactiveshell

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell: Any = cast("Any", interactiveshell).InteractiveShell()
    shell.history_manager.enabled = False

    async def cells() -> list[Any]:
        return [
            await shell.run_cell_async(cell, store_history=False, transformed_cell=shell.transform_cell(cell))
            for cell in code("notebooks")
        ]

    done = asyncio.run(cells())
    for cell in done:
        cell.raise_error()
    shown, _ = shell.display_formatter.format(done[1].result)
    assert "window seat" in shown["text/html"]
    assert shown["text/html"].startswith("<table>")
    assert "parts" in shown["text/html"]


@pytest.mark.process
def test_pytest_runs_the_fixtures_and_tests_of_the_page(tmp_path: Path) -> None:
    fixtures, tests = code("pytest")
    (tmp_path / "conftest.py").write_text(fixtures)
    (tmp_path / "test_notes.py").write_text(tests)
    options = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
