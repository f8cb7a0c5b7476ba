"""The requests of a hook over the local socket, in this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_core import Draft, Memory
from memory_core.app.serve.application import application
from memory_core.web.local import LOCAL
from tests.app.serve.test_api import HOST, as_user, served

ABOUT: dict[str, Any] = {"protocol": 1, "file": [1, 2], "collection": None, "session": "monday", "until": 2e9}


def over_socket(app: ASGIApp) -> ASGIApp:
    """The application as our server calls it for a connection to its local socket."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "server": ("m.db-socket", None), "state": {LOCAL: True}}, receive, send)

    return called


@contextmanager
def hooked(path: Path, *, writable: bool = True) -> Generator[tuple[TestClient, Memory]]:
    with Memory(path, embedder=None) as memory:
        app = application(replace(served(memory, writable=writable), hooked=(1, 2)))
        yield TestClient(over_socket(app), base_url=f"{HOST}/v1/owners/default/ann/hook/"), memory


def test_a_turn_is_remembered_once_and_what_the_conversation_has_left_is_taken_back(tmp_path: Path) -> None:
    said = [{"text": f"I like tea number {number}", "id": f"m{number}"} for number in range(3)]
    names = [{"text": "", "id": message["id"], "role": "user"} for message in said]
    with hooked(tmp_path / "m.db") as (client, memory):
        ann = memory.bind(user="ann").sync

        def texts() -> list[str]:
            return sorted(record.text for record in ann.list())

        for _ in range(2):
            answer = client.post("turn", json={"about": ABOUT, "messages": said})
            assert answer.json() == {"text": ""}
        assert texts() == [message["text"] for message in said]
        client.post("turn", json={"about": ABOUT, "shown": names[:2], "left": names[2:]})
        assert texts() == [message["text"] for message in said[:2]]
        client.post("turn", json={"about": ABOUT, "shown": names, "left": []})
        assert texts() == [message["text"] for message in said]


def test_a_prompt_is_for_an_owner_and_a_collection_and_leaves_out_its_own_conversation(tmp_path: Path) -> None:
    key = "The spare key is with Mrs Okafor"
    with hooked(tmp_path / "m.db", writable=False) as (client, memory):
        memory.bind(user="ann").sync.add(Draft(key, role="user", session="monday", collection="home"))

        def shown(**about: object) -> str:
            body = {"about": {**ABOUT, **about}, "prompt": "Who has the spare key?"}
            text: str = client.post("prompt", json=body).json()["text"]
            return text

        assert key in shown(session="tuesday")
        assert key in shown(session=None, collection="home")
        assert shown(session="monday") == shown(session="tuesday", collection="work") == ""


@pytest.mark.parametrize(
    ("about", "status"),
    [({"protocol": 2}, 422), ({"file": [1, 3]}, 409), ({"until": 0}, 409), ({"collection": " "}, 422), ({"x": 1}, 422)],
)
def test_a_hook_that_would_do_something_else_is_refused(tmp_path: Path, about: dict[str, object], status: int) -> None:
    with hooked(tmp_path / "m.db") as (client, memory):
        for action, given in (("prompt", {"prompt": "Who?"}), ("turn", {"messages": [{"text": "I row"}]})):
            assert client.post(action, json={"about": {**ABOUT, **about}, **given}).status_code == status
        assert memory.bind(user="ann").sync.stats().records == 0


def test_a_server_that_only_reads_remembers_nothing(tmp_path: Path) -> None:
    with hooked(tmp_path / "m.db", writable=False) as (client, memory):
        body = {"about": ABOUT, "messages": [{"text": "I row"}]}
        assert client.post("turn", json=body).status_code == 403
        assert memory.bind(user="ann").sync.stats().records == 0


@pytest.mark.parametrize("action", ["prompt", "turn"])
def test_hooks_are_answered_over_the_local_socket_only(tmp_path: Path, action: str) -> None:
    body = {"about": ABOUT, **({"prompt": "spare key"} if action == "prompt" else {})}
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        app = application(replace(served(memory), hooked=(1, 2)))
        client = TestClient(app, base_url=HOST, headers=as_user("*"))
        assert client.post(f"/v1/owners/default/ann/hook/{action}", json=body).status_code == 403


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "127.0.0.1"}, as_user("tom")])
def test_the_local_socket_of_another_server_makes_nobody_the_operator(tmp_path: Path, headers: dict[str, str]) -> None:
    place = tmp_path / "proxied.sock"
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("The spare key is with Mrs Okafor")
        app = application(replace(served(memory), hooked=(1, 2)))
        transport = httpx.HTTPTransport(uds=str(place))
        client = httpx.Client(transport=transport, base_url=HOST, headers=headers, timeout=300)
        with behind_a_proxy(app, place), client:
            hook = "/v1/owners/default/ann/hook/prompt"
            known = bool(headers.get("Authorization"))
            assert client.get("/v1/owners").status_code == (403 if known else 401)
            assert client.get("/v1/owners/default/ann/records").status_code == (404 if known else 401)
            assert client.post(hook, json={"about": ABOUT, "prompt": "key"}).status_code == (403 if known else 401)
            assert client.get("/v1/live", headers={"Host": "elsewhere"}).status_code == 421


@contextmanager
def behind_a_proxy(app: ASGIApp, place: Path) -> Generator[None]:
    """uvicorn itself on a local socket, as proxies speak to it; a request there has no port either."""
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join()
