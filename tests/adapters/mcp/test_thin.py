"""A hook that asks a running server says what it would say with the file, and opens the file if nobody answers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import ENVIRONMENT

from memory_core import Draft, Memory, Message
from memory_mcp import thin
from memory_mcp.options import parser

pytestmark = pytest.mark.process
FACTS = ["The spare key is with Mrs Okafor", "The router in the cellar has the password kolibri-9", "Ann likes oolong"]
HEAVY = ("numpy", "onnxruntime", "sqlite3", "aiosqlite", "memory_core", "asyncio", "mcp", "pydantic")
PROMPTS: list[dict[str, Any]] = [
    {"prompt": "Who has the spare key?"},
    {"prompt": "What do I need for it?", "session_id": "monday"},
    {"prompt": "thanks!"},
    {"prompt": ""},
    {"prompt": "Which tea does Ann like?", "session_id": " "},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        ann = memory.bind(app="demo", user="ann").sync
        ann.add_many([Draft(fact) for fact in FACTS])
        ann.add(Draft("Answer in German", tags=["pinned"]))
        ann.remember([Message("The router in the cellar needs a restart.")], session="monday")
        memory.bind(app="demo", user="ann", collection="boat").sync.add("The boat has a key of brass")
    return path


@pytest.fixture
def server(file: Path) -> Iterator[Path]:
    place = file.with_name("m.sock")
    command = [sys.executable, "-m", "memory_core", "serve", "--file", str(file), "--app", "demo", "--user", "ann"]
    with subprocess.Popen([*command, "--port", "0", "--socket", str(place)], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"http://" in process.stderr.readline()
        yield place
        process.terminate()


def hook(file: Path, event: dict[str, Any], *more: str) -> str:
    command = [sys.executable, "-m", "memory_mcp", "hook", "--db", str(file), "--app", "demo", "--user", "ann", *more]
    done = subprocess.run(command, input=json.dumps(event), capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return done.stdout


@pytest.mark.parametrize("collection", [(), ("--collection", "boat")])
def test_a_hook_says_the_same_through_the_server_and_from_the_file(
    file: Path, server: Path, collection: tuple[str, ...]
) -> None:
    for event in PROMPTS:
        alone = hook(file, event, *collection)
        given = parser().parse_args(
            ["hook", "--db", "gone.db", "--app", "demo", "--user", "ann", "--socket", str(server), *collection]
        )
        assert thin.recalled(given, json.dumps(event)) == alone, event
    assert "kolibri-9" in hook(file, PROMPTS[1]) or collection


def test_through_the_server_a_hook_loads_neither_a_store_nor_a_model(server: Path) -> None:
    program = (
        "import io, sys; from memory_mcp.__main__ import main; sys.stdin = io.StringIO(sys.argv[1]);"
        f"main(['hook', '--db', 'gone.db', '--app', 'demo', '--user', 'ann', '--socket', {str(server)!r}]);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, json.dumps(PROMPTS[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert "Mrs Okafor" in done.stdout
    assert done.stdout.endswith("[]\n")


def test_what_is_remembered_goes_into_the_file(file: Path, server: Path) -> None:
    said = {"messages": [{"role": "user", "content": "The ladder is in the shed"}], "session_id": "tuesday"}
    assert hook(file, said, "--socket", str(server)) == ""
    assert "in the shed" in hook(file, {"prompt": "Where is the ladder?"}, "--socket", str(server))


def nothing(_: socket.socket) -> None: ...


def hang(_: socket.socket) -> None:
    time.sleep(60)


def drip(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    with contextlib.suppress(OSError):
        for _ in range(100):
            client.sendall(b" ")
            time.sleep(0.1)


def answer(body: bytes, status: str = "200 OK") -> Callable[[socket.socket], None]:
    def say(client: socket.socket) -> None:
        client.recv(65_536)
        client.sendall(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)

    return say


FAULTS = {
    "closes": nothing,
    "hangs": hang,
    "drips": drip,
    "garbage": lambda client: client.sendall(b"\xff" * 5_000),
    "no JSON": answer(b"<html>"),
    "other JSON": answer(b'{"text": 7}'),
    "deep": answer(b"[" * 100_000),
    "long": answer(b'{"text": "' + b"x" * 2_000_000 + b'"}'),
    "refused": answer(b'{"text": "no"}', "403 Forbidden"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_does_not_answer_as_it_should_is_replaced_by_the_file(
    file: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thin, "SECONDS", 0.5)
    place = file.with_name("m.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()

        def serve() -> None:
            client, _ = listening.accept()
            with client, contextlib.suppress(OSError):
                FAULTS[fault](client)

        threading.Thread(target=serve, daemon=True).start()
        given = parser().parse_args(["hook", "--db", str(file), "--user", "ann", "--socket", str(place)])
        assert thin.recalled(given, json.dumps(PROMPTS[0])) is None


def test_a_socket_that_is_a_link_a_file_or_missing_is_not_used(file: Path, server: Path) -> None:
    link = file.with_name("link.sock")
    link.symlink_to(server)
    for place in (link, file, file.with_name("missing")):
        given = parser().parse_args(
            ["hook", "--db", str(file), "--app", "demo", "--user", "ann", "--socket", str(place)]
        )
        assert thin.recalled(given, json.dumps(PROMPTS[0])) is None
    assert "Mrs Okafor" in hook(file, PROMPTS[0], "--socket", str(link))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a socket of somebody else")
def test_a_socket_of_somebody_else_is_not_used(server: Path) -> None:
    os.chown(server, 12_345, 12_345)
    given = parser().parse_args(["hook", "--db", "gone.db", "--app", "demo", "--user", "ann", "--socket", str(server)])
    assert thin.recalled(given, json.dumps(PROMPTS[0])) is None


@pytest.mark.parametrize("event", ["", "[]", "7", '{"prompt": 7}', '{"session_id": "s"}', "[" * 100_000])
def test_an_event_that_is_none_is_left_to_the_whole_program(server: Path, event: str) -> None:
    given = parser().parse_args(["hook", "--db", "gone.db", "--user", "ann", "--socket", str(server)])
    assert thin.recalled(given, event) is None


def test_the_help_says_how_long_a_call_may_take() -> None:
    from memory_core.adapting import limits

    assert f"(default: {limits.SERVED_SECONDS:g})" in " ".join(parser().format_help().split())
