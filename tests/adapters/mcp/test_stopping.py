"""The server as a process that is asked to end: by a signal, again and again, or by a client that closes the stream."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from calling import ENVIRONMENT, Caller, over_http
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from memory_core import Memory

pytestmark = pytest.mark.process

FACTS = 5
TRANSPORTS = ("stdio", "http")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 0, signal.SIGHUP: 0}
BESIDE = """
import pathlib, subprocess, sys
status = pathlib.Path(sys.argv[1])
server = subprocess.Popen(sys.argv[2:])
status.with_suffix(".pid").write_text(str(server.pid))
code = server.wait()
status.with_suffix(".part").write_text(str(code))
status.with_suffix(".part").replace(status)
"""
"""Starts a server on its own streams and writes its process id and its exit code to files, for clients that start
servers themselves."""


@dataclass(frozen=True)
class Server:
    """A server process and a connected client."""

    pid: int
    caller: Caller
    status: Path

    def signal(self, *numbers: int) -> None:
        for number in numbers:
            os.kill(self.pid, number)

    async def ended(self) -> int:
        """Its exit code, once it has ended."""
        await until(self.status.exists)
        return int(self.status.read_text())


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for another process."""
    while not is_so():  # noqa: ASYNC110  (it sets no event here)
        await asyncio.sleep(0.02)


def command(db: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "memory_mcp",
        "--file",
        str(db),
        "--app",
        "demo",
        "--user",
        "ann",
        "--tools",
        "all",
        *options,
    ]


@asynccontextmanager
async def started(transport: str, db: Path) -> AsyncGenerator[Server]:
    """A server with a client that stays connected, whatever becomes of the server."""
    status = db.with_name("status")
    beside = [sys.executable, "-c", BESIDE, str(status), *command(db)]
    if transport == "stdio":
        with db.with_name("said").open("w") as said:
            server = StdioServerParameters(command=beside[0], args=beside[1:], env=ENVIRONMENT)
            async with Client(stdio_client(server, errlog=said)) as client:
                yield Server(int(status.with_suffix(".pid").read_text()), Caller(client), status)
        return
    with db.with_name("said").open("w") as said:
        process = await asyncio.create_subprocess_exec(*beside, "--http", "0", stderr=said, env=ENVIRONMENT)
    await until(lambda: "/mcp\n" in said_by(db))
    url = said_by(db).removeprefix("memory-mcp: ").strip()
    try:
        async with over_http(url) as caller:
            yield Server(int(status.with_suffix(".pid").read_text()), caller, status)
    finally:
        await process.wait()


def files_of(db: Path) -> list[str]:
    return sorted(path.name for path in db.parent.glob(f"{db.name}*"))


def said_by(db: Path) -> str:
    return db.with_name("said").read_text()


async def facts_in_a_copy(db: Path) -> int:
    """The memories of Ann in a copy of the file alone, as a person would make it after the server has ended."""
    copy = db.with_name("copy.db")
    shutil.copy(db, copy)
    async with Memory(copy, embedder=None) as memory:
        return len((await memory.bind(app="demo", user="ann").list(limit=1_000)).records)


AGAIN = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT)
"""Signals that follow the first one; the lowest is delivered first."""


@pytest.mark.parametrize(
    ("transport", "numbers"),
    [("stdio", AGAIN), ("stdio", (signal.SIGHUP,)), ("http", AGAIN), ("http", (signal.SIGTERM,))],
)
async def test_a_signal_closes_the_memory_so_that_the_file_alone_has_everything_and_others_do_not_interrupt_it(
    transport: str, numbers: tuple[signal.Signals, ...], tmp_path: Path
) -> None:
    db = tmp_path / "memory.db"
    async with started(transport, db) as server:
        for fact in range(FACTS):
            await server.caller.store(f"fact {fact}")
        server.signal(*numbers)
        assert await server.ended() == CODES[numbers[0]]
        assert files_of(db) == ["memory.db"]
        assert await facts_in_a_copy(db) == FACTS
    assert "Traceback" not in said_by(db)
    assert ("interrupted" in said_by(db)) == (numbers[0] == signal.SIGINT)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_signal_during_a_call_leaves_all_of_its_memories_or_none(transport: str, tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    text = "Ann rows, runs and swims on every other day of the week. " * 20
    batch = [{"content": f"{text} {n}", "metadata": {"type": "fact"}} for n in range(100)]
    async with started(transport, db) as server:
        await server.caller.store("fact 0")
        began = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            began.set()

        async def store() -> None:
            await server.caller.client.call_tool(
                "memory_store_many", {"memories": batch}, progress_callback=on_progress
            )

        storing = asyncio.create_task(store())
        await began.wait()
        server.signal(signal.SIGTERM)
        assert await server.ended() == 0
        assert await facts_in_a_copy(db) in {1, 101}
        storing.cancel()
        await asyncio.wait({storing})  # how a client learns of the end is its transport's affair


async def test_a_hang_up_that_the_server_shall_ignore_does_not_end_it(tmp_path: Path) -> None:
    """`nohup memory-mcp … &`"""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a process inherits
    try:
        async with started("http", tmp_path / "memory.db") as server:
            server.signal(signal.SIGHUP)
            await server.caller.store("fact 0")
            server.signal(signal.SIGTERM)
            assert await server.ended() == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def hello(db: Path, program: Sequence[str] = (), **environment: str) -> subprocess.Popen[bytes]:
    """A server over stdio that has answered a first request."""
    process = subprocess.Popen(
        [*program, "--app", "demo", "--user", "ann"] if program else command(db),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, **environment},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    process.stdin.write(request(1, "initialize", **said))
    process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    return process


def request(number: int, method: str, **parameters: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}).encode() + b"\n"


def storing(number: int, content: str) -> bytes:
    return request(
        number, "tools/call", name="memory_store", arguments={"content": content, "metadata": {"type": "fact"}}
    )


async def test_the_server_that_the_command_line_starts_ends_in_the_same_way(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with hello(db, [sys.executable, "-m", "memory_core", "mcp"], MEMORY_CORE_FILE=str(db)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(storing(2, "fact 0"))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 2
        process.send_signal(signal.SIGINT)
        assert process.wait() == CODES[signal.SIGINT]
        said = process.stderr.read().decode()
    assert files_of(db) == ["memory.db"]
    assert said == "memory-mcp: interrupted; the memory is closed\n"


async def test_a_line_in_parts_is_one_request_and_the_end_of_the_stream_is_the_end_of_the_server(
    tmp_path: Path,
) -> None:
    db = tmp_path / "memory.db"
    with hello(db) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = json.loads(storing(2, "Ann lives in Łódź " + "and rows " * 2_000))
        sent = json.dumps(line, ensure_ascii=False).encode() + b"\n" + request(3, "tools/list")
        cut = sent.index("Ł".encode()) + 1
        for part in (sent[:cut], sent[cut:]):
            process.stdin.write(part)
            process.stdin.flush()
        answers = {json.loads(process.stdout.readline())["id"] for _ in range(2)}
        assert answers == {2, 3}
        process.stdin.close()
        assert process.wait() == 0
    assert await facts_in_a_copy(db) == 1


async def test_a_client_that_no_longer_reads_cannot_keep_a_stopped_server_alive(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with hello(db) as process:
        assert process.stdin is not None
        process.stdin.write(storing(2, "fact 0"))
        process.stdin.write(
            b"".join(request(number, "tools/list") for number in range(3, 40))
        )  # more than a pipe holds
        process.stdin.flush()
        await until(lambda: stored(db))
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)
        assert process.returncode == 0
        assert await facts_in_a_copy(db) == 1


def stored(db: Path) -> bool:
    with Memory(db, embedder=None, read_only=True) as memory:
        return bool(memory.bind(app="demo", user="ann").sync.list().records)


def test_ctrl_c_while_the_program_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    done = subprocess.run(
        command(tmp_path / "m.db", "--http", "0"),
        env={**ENVIRONMENT, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_a_hook_that_waits_for_its_event(tmp_path: Path) -> None:
    arguments = command(tmp_path / "m.db")
    arguments.insert(3, "hook")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        killer = threading.Timer(1.0, process.send_signal, [signal.SIGINT])
        killer.start()
        assert process.wait() == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read().decode()
