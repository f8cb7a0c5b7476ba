"""The numbers that docs/serve.md promises are those of the server."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from memory_core import Memory
from memory_core.app.serve.application import application
from memory_core.app.serve.guard import MAX_BODY_BYTES
from memory_core.app.serve.served import MAX_ITEMS
from memory_core.storage.sqlite.readers import MOST_CONNECTIONS
from memory_core.values.json_size import MAX_VALUES
from memory_core.values.limits import CACHE_BYTES, PAGE_BYTES
from memory_core.web.connection import BODY_SECONDS, HEAD_SECONDS, READ_SECONDS
from memory_core.web.fair_share import AT_ONCE, MOST_ANSWERS
from memory_core.web.process import END_SECONDS
from memory_core.web.server import GRACE_SECONDS, KEEP_ALIVE_SECONDS, MAX_CONNECTIONS, SHARES
from tests.app.serve.conftest import running
from tests.app.serve.test_api import HOST, TOKENS, as_user, served

pytestmark = pytest.mark.uncovered

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "serve.md").read_text().split())
SHARE = {4: "a quarter"}


@pytest.mark.parametrize(
    "promise",
    [
        f"requests in progress are answered for {GRACE_SECONDS} seconds",
        f"What still runs {END_SECONDS} seconds after the server took the signal is ended",
        f"about {PAGE_BYTES // 1_000_000} MB a page",
        f"A request has at most {MAX_BODY_BYTES // 1_000_000} MB, and {MAX_ITEMS:,} items outside of `data`",
        f"and {MAX_VALUES:,} values in all",
        f"at most {MOST_CONNECTIONS} connections for reading",
        f"of what it has searched lately, {CACHE_BYTES // 1_024**2} MB by default",
        f"while the caller has {SHARE[SHARES]} of all connections in use",
        f"At most {AT_ONCE} requests of one caller, by tokens and browsers together",
        f"and {MOST_ANSWERS} until they are sent",
        f"at most {MOST_ANSWERS} are worked on or wait to be read",
        f"An answer has about {PAGE_BYTES // 1_000_000} MB of memories",
        f"half of the descriptors that the system lets it have, at most {MAX_CONNECTIONS:,}",
        f"longer than {HEAD_SECONDS:.0f} seconds for the head of a request, {BODY_SECONDS:.0f} for the body, or leaves",
        f"leaves an answer unread for {READ_SECONDS:.0f}",
    ],
)
def test_the_page_says_what_the_server_does(promise: str) -> None:
    assert promise in PAGE


def test_an_idle_connection_has_two_minutes() -> None:
    assert KEEP_ALIVE_SECONDS == 2 * 60
    assert "after two minutes without a request" in PAGE


@pytest.mark.parametrize("address", ["/", "/sign-in", "/v1/live", "/v1/records", "/static/memory.css", "/nothing"])
def test_browsers_are_told_to_run_no_script_but_those_of_the_server(tmp_path: Path, address: str) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        answer = TestClient(application(served(memory)), base_url=HOST, headers=as_user("ann")).get(address)
    rules = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'"} <= set(rules)


@pytest.mark.process
def test_a_server_answers_under_the_names_that_it_is_told(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("tea")
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(TOKENS))
    tokens.chmod(0o600)
    with running(tmp_path / "m.db", "--tokens", str(tokens), "--allow-host", "memory.example") as server:

        def status_of(host: str, path: str) -> int:
            headers = {**as_user("ann"), "Host": host}
            return httpx.get(f"{server.address}{path}", headers=headers, timeout=300).status_code

        assert [status_of(host, "/v1/stats") for host in ("memory.example", "evil.example")] == [200, 421]
