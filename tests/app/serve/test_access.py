"""Nobody gets anything who should not: every route, tried by everybody."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.routing import Mount

from memory_core import Draft, Memory
from memory_core.app.serve.application import application, unguarded
from memory_core.app.serve.callers import THE_OPERATOR, Caller, Signer, tokens_in
from memory_core.errors import InvalidInputError
from memory_core.web.observed import Observed
from memory_core.web.requests import Requests
from tests.app.serve.test_api import HOST, TOKENS, as_user, served
from tests.app.serve.test_health import spans

SECRET = "Quillfeather"
OPEN = {("GET", "/v1/health"), ("GET", "/v1/live"), ("GET", "/sign-in"), ("POST", "/sign-in")}
"""The routes that answer without a token, and say nothing about a memory."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Memory]:
    """A memory with one secret of Ann's."""
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add(
            Draft(f"The spare key is with Mrs {SECRET}", id=SECRET, session=SECRET, collection=SECRET, kind="fact")
        )
        yield memory


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route."""
    found: set[tuple[str, str]] = set()
    for route in app.routes:
        if isinstance(route, Mount):  # the page's own files, which are the same for everybody
            assert route.path == "/static"
            continue
        contexts: Any = route
        found |= {(method, each.path) for each in contexts.effective_candidates() for method in each.methods}
    assert len(found) > 50
    return sorted(found)


def asked(client: TestClient, method: str, path: str, **headers: str) -> Any:
    """Ask for Ann's secret with everything that a route can take."""
    address = re.sub(r"\{app\}", "default", re.sub(r"\{user\}", "ann", path)).replace("{id}", SECRET)
    query = {"q": "spare key", "words": SECRET, "id": SECRET, "where": "{}"}  # the API refuses what it does not know
    body: dict[str, Any] = {"query": "spare key", "messages": [{"text": SECRET}], "text": SECRET, "name": "ann"}
    is_page = not path.startswith("/v1")
    if not is_page:
        query = {"where": "{}"} if path.endswith("/records") else {}
    content = urlencode({**body, "version": "1", "csrf": "", "rev": "1"}) if is_page else json.dumps(_body(path, body))
    kind = "application/x-www-form-urlencoded" if is_page else "application/json"
    return client.request(
        method,
        address,
        params=query if method == "GET" else None,
        content=None if method == "GET" else content,
        headers={"content-type": kind, **headers},
        follow_redirects=False,
    )


def _body(path: str, body: dict[str, Any]) -> dict[str, Any]:
    wanted = {"remember": ("messages",), "recall": ("query",), "search": ("query",)}
    names = wanted.get(path.rpartition("/")[2], ("text",))
    return {name: body[name] for name in names}


def unharmed(memory: Memory) -> bool:
    (record,) = memory.bind(user="ann").sync.list().records
    return (record.id, record.version) == (SECRET, 1)


def test_no_span_of_any_route_has_what_stands_in_its_path_or_query(file: Memory) -> None:
    exporter, tracer = spans()
    what = served(file)
    app = Observed(application(what), Requests(), tracer=tracer)
    client = TestClient(app, base_url=HOST, headers=as_user("*"))
    wanted = routes(unguarded(what))
    for method, path in [*wanted, ("GET", "/static/{file}"), ("POST", "/{nowhere}"), ("GET", "/v1/{nowhere}")]:
        address = re.sub(r"\{[^}]*\}", SECRET, path)
        client.request(method, f"{address}?q={SECRET}", follow_redirects=False)
    made = exporter.get_finished_spans()
    assert {span.name for span in made} >= {f"{method} {path}" for method, path in wanted}
    assert not [span.name for span in made if SECRET in span.to_json()]


def test_no_route_gives_or_takes_anything_without_a_token(file: Memory) -> None:
    what = served(file)
    client = TestClient(application(what), base_url=HOST)
    for method, path in routes(unguarded(what)):
        answer = asked(client, method, path)
        assert SECRET not in answer.text, (method, path)
        is_refused = answer.status_code in {401, 403} or answer.headers.get("location", "").startswith("/sign-in")
        assert is_refused or (method, path) in OPEN, (method, path, answer.status_code)
        wrong = asked(
            client, method, path, authorization="Bearer not-a-token-of-anybody", cookie="memory_core_8765=x.y"
        )
        assert SECRET not in wrong.text
        assert unharmed(file), (method, path)


def test_without_a_token_nothing_is_read_of_what_a_request_brings(file: Memory) -> None:
    what = served(file)
    app = application(what)

    async def status(method: str, path: str) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            raise AssertionError(f"{method} {path} reads its body")

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"16000000")]
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        await app({**scope, "headers": headers, "scheme": "http", "server": ("127.0.0.1", 80)}, receive, send)
        return int(sent[0]["status"])

    for method, path in routes(unguarded(what)):
        if method != "GET" and (method, path) not in OPEN:
            assert asyncio.run(status(method, path.format(app="default", user="ann", id=SECRET))) in {401, 403}


def test_of_a_form_to_sign_in_little_is_read(file: Memory) -> None:
    app, read, sent = application(served(file)), list[int](), list[Any]()

    async def receive() -> Any:
        read.append(8_000)
        return {"type": "http.request", "body": b"token=" + b"x" * 7_994, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/sign-in", "raw_path": b"/sign-in", "query_string": b""}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")]

    async def sign_in() -> None:
        await app({**scope, "headers": headers, "scheme": "http", "server": ("127.0.0.1", 80)}, receive, send)

    asyncio.run(sign_in())
    assert sent[0]["status"] == 413
    assert len(read) == 2


def test_a_body_of_very_many_items_is_refused_at_once(file: Memory) -> None:
    client = TestClient(application(served(file)), base_url=HOST, headers=as_user("ann"))
    for wrong in ([0] * 90_000, dict.fromkeys(map(str, range(90_000)), 0)):
        answer = client.post("/v1/search", json={"query": "tea", "where": {"ids": wrong}})
        assert (answer.status_code, "at most 20000 items" in answer.json()["detail"]) == (422, True)
    numbers = list(range(90_000))
    added = client.post("/v1/records", json={"text": "tea", "data": {"numbers": numbers}})
    assert (added.status_code, added.json()["data"]) == (201, {"numbers": numbers})


def test_a_body_of_very_many_values_is_refused_before_it_is_read(file: Memory) -> None:
    client = TestClient(application(served(file)), base_url=HOST, headers=as_user("ann"))
    for wrong in ("[]", "{}", '"k"', '"\\"k\\"": 0', "0"):
        body = f'{{"text": "tea", "data": {{"a": [{",".join([wrong] * 200_000)}]}}}}'  # of the fourth, not even JSON
        answer = client.post("/v1/records", content=body)
        assert (answer.status_code, "at most 100000 values" in answer.json()["detail"]) == (422, True)
    hidden = f'{{"text": "\\"", "data": {{"a": [{",".join(["[]"] * 200_000)}]}}, "author": "\\""}}'
    for encoded in (hidden.encode(), hidden.encode("utf-16")):
        answer = client.post("/v1/records", content=encoded)
        assert (answer.status_code, "at most 100000 values" in answer.json()["detail"]) == (422, True)
    text = 'a, "b", [c], {d}: \\" ' * 40_000
    added = client.post("/v1/records", json={"text": text})
    assert (added.status_code, added.json()["text"]) == (201, text)


@pytest.mark.slow
def test_no_route_answers_a_page_of_another_origin_or_under_another_name(file: Memory) -> None:
    what = served(file)
    client = TestClient(application(what), base_url=HOST, headers=as_user("ann"))
    client.cookies.set("memory_core_8765", what.signer.cookie(Caller("ann"), 2e9))
    foreign = [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://["},
    ]
    foreign += [{"host": "evil.example"}, {"host": ""}, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}]
    for method, path in routes(unguarded(what)):
        for headers in foreign:
            answer = asked(client, method, path, **headers)
            assert answer.status_code in {403, 421}, (method, path, headers)
            assert SECRET not in answer.text
        assert unharmed(file), (method, path)


@pytest.mark.slow
def test_no_route_gives_another_user_anything(file: Memory) -> None:
    what = served(file)
    client = TestClient(application(what), base_url=HOST, headers=as_user("tom"))
    client.cookies.set("memory_core_8765", what.signer.cookie(Caller("tom"), 2e9))
    for method, path in routes(unguarded(what)):
        answer = asked(client, method, path)
        if "{user}" in path:
            assert answer.status_code in {403, 404}, (method, path)
        if answer.request.method == "GET" or "{user}" in path:
            assert f"with Mrs {SECRET}" not in answer.text, (method, path)
        assert unharmed(file), (method, path)


def test_no_form_is_accepted_that_this_page_did_not_make(file: Memory) -> None:
    what = served(file)
    client = TestClient(application(what), base_url=HOST)
    client.cookies.set("memory_core_8765", what.signer.cookie(Caller("ann"), 2e9))
    forms = [(method, path) for method, path in routes(unguarded(what)) if method == "POST" and path.startswith("/o/")]
    assert len(forms) > 5
    for method, path in forms:
        assert asked(client, method, path).status_code == 403, path
        assert unharmed(file), path


def test_a_link_on_a_page_signs_nobody_in(file: Memory) -> None:
    client = TestClient(application(served(file)), base_url=HOST, follow_redirects=False)
    link = f"/sign-in?key={TOKENS['tom']}"
    for site in ("cross-site", "same-site", "same-origin"):  # also after a sign-in, and as a way back
        led = client.get(link, headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"})
        assert (led.status_code, "set-cookie" in led.headers) == (200, False)
        assert TOKENS["tom"] not in led.text
    typed = client.get(link, headers={"sec-fetch-site": "none", "sec-fetch-mode": "navigate"})
    assert (typed.status_code, "set-cookie" in typed.headers) == (303, True)


def test_a_cookie_expires_and_cannot_be_made(file: Memory) -> None:
    signer = Signer(b"secret")
    cookie = signer.cookie(THE_OPERATOR, 1_000.0)
    assert signer.caller(cookie, 1_001.0) == THE_OPERATOR
    assert signer.caller(cookie, 1_000.0 + 13 * 3_600) is None
    assert Signer(b"other").caller(cookie, 1_001.0) is None
    said, _, signature = cookie.partition(".")
    for wrong in (
        "",
        ".",
        said,
        f"{said}.",
        f".{signature}",
        f"{said}.{signature[:-1]}",
        "é.é",
        f"{said}x.{signature}",
    ):
        assert signer.caller(wrong, 1_001.0) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ann": "short"}', "at least 20"),
        ('{"ann": "the-same-long-token-for", "tom": "the-same-long-token-for"}', "same token"),
        ("[]", "JSON object"),
        ("{}", "no tokens are given"),
        ('{"ann": 5}', "at least 20"),
    ],
)
def test_unusable_tokens_are_refused_without_showing_them(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InvalidInputError, match=said) as refused:
        tokens_in(path)
    assert "the-same-long" not in str(refused.value)
    path.chmod(0o644)
    with pytest.raises(InvalidInputError, match="chmod 600"):
        tokens_in(path)


def test_a_sign_in_leads_nowhere_else(file: Memory) -> None:
    client = TestClient(application(served(file)), base_url=HOST)
    for then in ("https://evil.example", "//evil.example", "/\\evil.example", "/a\r\nx: y", "javascript:alert(1)"):
        answer = client.post("/sign-in", data={"token": TOKENS["ann"], "then": then}, follow_redirects=False)
        assert answer.headers["location"] == "/"
