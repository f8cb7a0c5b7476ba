"""`langgraph dev`, started as a process on the loopback interface, with our store and our middleware."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memory_core import Memory
from memory_langchain import MemoryChatMessageHistory, MemoryStore
from tests.ports import free_port

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("langgraph_cli") is None or find_spec("langgraph_api") is None,
        reason="`langgraph dev` is not installed: pip install 'langgraph-cli[inmem]'",
    ),
]

HERE = Path(__file__).parent
STARTUP_SECONDS = 300
GRAPHS = {name: f"./app.py:{name}" for name in ("graph", "blocking", "agent", "personal")}
ASKED = {"messages": [{"role": "user", "content": "Which tea?"}]}


class Server:
    """A client of the server: just enough HTTP."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def call(self, method: str, path: str, body: object = None, *, user: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "X-User": user}
        request = urllib.request.Request(self._base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=300) as response:
            return json.loads(response.read() or b"null")

    def run(self, graph: str, given: object, *, user: str = "", **configurable: str) -> Any:
        body = {"assistant_id": graph, "input": given, "config": {"configurable": configurable}}
        return self.call("POST", "/runs/wait", body, user=user)


@contextlib.contextmanager
def serving(folder: Path, store: str, *options: str, signing_in: bool = False, **environment: str) -> Iterator[Server]:
    """The server until the block ends; what it logged is shown when a test fails."""
    for name in ("app.py", "signing_in.py"):
        (folder / name).write_text((HERE / name).read_text())
    config: dict[str, Any] = {"dependencies": ["."], "graphs": GRAPHS, "store": {"path": f"./app.py:{store}"}}
    if signing_in:
        config["auth"] = {"path": "./signing_in.py:auth"}
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "langgraph_cli",
        "dev",
        "--no-browser",
        "--no-reload",
        "--port",
        str(port),
        *options,
    ]
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "MEMORY_FILE": str(folder / "memory.db")}
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | quiet | environment, stdout=sys.stderr, stderr=sys.stderr
    )
    try:
        server = Server(port)
        wait_for(server, process)
        yield server
    finally:
        process.terminate()
        process.wait(300)


def wait_for(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError):
            server.call("GET", "/ok")
            return
        time.sleep(0.1)
    pytest.fail("the server did not start")


def check(server: Server) -> None:
    """The store serves graphs and the server's own routes, the middleware its agent, and both outlive the server."""
    assert server.run("graph", {"text": "jasmine tea"})["found"] == ["jasmine tea", "jasmine tea"]
    assert server.run("graph", {"text": "oolong tea"})["found"][0] == "oolong tea"
    found = server.call("POST", "/store/items/search", {"namespace_prefix": ["users"], "query": "jasmine"})
    assert [item["value"] for item in found["items"]] == [{"text": "jasmine tea"}, {"text": "oolong tea"}]
    server.call("PUT", "/store/items", {"namespace": ["users", "bob"], "key": "k", "value": {"text": "milk"}})
    assert server.run("agent", ASKED, user_id="ann", session_id="monday")["messages"][-1]["content"] == "green"
    assert server.run("personal", ASKED, session_id="mine")["messages"][-1]["content"] == "green"
    assert "ScopeError" in str(server.run("agent", ASKED, session_id="monday"))


def check_kept(folder: Path) -> None:
    with Memory(folder / "memory.db", embedder=None) as memory:
        store = MemoryStore(memory.bind(app="dev", user="everyone"), mode="lexical")
        assert sorted(item.key for item in store.search(())) == ["jasmine tea", "k", "oolong tea"]
        history = MemoryChatMessageHistory(memory.bind(app="dev", user="ann"), "monday")
        assert [message.text for message in history.messages] == ["Which tea?", "green"]
        history = MemoryChatMessageHistory(memory.bind(app="dev", user="me"), "mine")
        assert [message.text for message in history.messages] == ["Which tea?", "green"]


def test_on_one_shared_loop_nothing_of_ours_blocks_it(tmp_path: Path) -> None:
    with serving(tmp_path, "store") as server:
        check(server)
        assert "Blocking" in str(server.run("blocking", {}))  # the server is watching
    check_kept(tmp_path)


def test_with_a_loop_for_each_run_they_share_one_file(tmp_path: Path) -> None:
    with serving(tmp_path, "make_store", "--allow-blocking", BG_JOB_ISOLATED_LOOPS="true") as server:
        check(server)
        assert server.run("blocking", {}) == {"found": []}
    check_kept(tmp_path)


def test_where_clients_sign_in_nobody_without_a_name_reaches_a_memory(tmp_path: Path) -> None:
    with serving(tmp_path, "store", signing_in=True) as server:
        assert server.run("agent", ASKED, user="ann", session_id="monday")["messages"][-1]["content"] == "green"
        for graph, named in (("agent", {}), ("personal", {}), ("agent", {"user_id": "ann"})):
            assert "identity of the authenticated user" in str(server.run(graph, ASKED, session_id="monday", **named))
        assert "ScopeError" in str(server.run("agent", ASKED, user="bob", user_id="ann", session_id="monday"))
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        history = MemoryChatMessageHistory(memory.bind(app="dev", user="ann"), "monday")
        assert [message.text for message in history.messages] == ["Which tea?", "green"]
