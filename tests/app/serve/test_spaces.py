"""Spaces that everybody reads: shown by their labels, and changed only by those who may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from memory_core import Memory, Patch
from memory_core.app.serve.application import application, unguarded
from memory_core.app.serve.callers import Caller
from memory_core.app.serve.served import Served, Space
from tests.app.conftest import Run
from tests.app.serve.conftest import running
from tests.app.serve.test_access import SECRET, asked, routes
from tests.app.serve.test_api import HOST, as_user, served
from tests.app.serve.test_serving import made

TEAM = {"team": Space("team-red", is_writable=False), "house": Space("the-house", is_writable=True)}


@pytest.fixture
def what(tmp_path: Path) -> Iterator[Served]:
    """Ann, a team that everybody reads, and a house that everybody may change."""
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        for user, text in (
            ("ann", f"The spare key is with Mrs {SECRET}"),
            ("team-red", "The key of the release is signed"),
            ("the-house", "The key of the cellar hangs in the hall"),
            ("tom", "Tom has lost the key of the bees"),
        ):
            memory.bind(user=user).sync.add(text)
        yield replace(served(memory), spaces=TEAM)


def client_of(what: Served, user: str) -> TestClient:
    client = TestClient(application(what), base_url=HOST, headers=as_user(user), follow_redirects=False)
    client.cookies.set("memory_core_8765", what.signer.cookie(Caller(user), 2e9))
    return client


def test_the_page_searches_all_of_them_together_and_names_each(what: Served) -> None:
    page = client_of(what, "tom").get("/o/default/tom", params={"q": "key"}).text
    assert SECRET not in page
    for text in ("key of the bees", "key of the release", "key of the cellar"):
        assert text in page
    assert '<span class="space"><bdi>team</bdi></span>' in page
    assert "/o/default/team-red/records/" in page
    block = client_of(what, "tom").get("/o/default/tom/block", params={"q": "key of the release"}).text
    assert "key of the release" in block
    listed = client_of(what, "tom").get("/o/default/tom").text
    assert "key of the cellar" in listed


def test_a_space_by_itself_has_its_own_memories_only(what: Served) -> None:
    page = client_of(what, "tom").get("/o/default/team-red").text
    assert "key of the release" in page
    assert "key of the bees" not in page
    assert "read-only" in page
    assert "Add a memory" not in page
    assert "Add a memory" in client_of(what, "tom").get("/o/default/the-house").text


def test_the_block_of_the_api_reads_the_spaces_too(what: Served) -> None:
    client = client_of(what, "tom")
    assert "key of the release" in client.post("/v1/recall", json={"query": "key of the release"}).json()["text"]
    assert client.get("/v1/stats").json()["records"] == 1
    assert client.get("/v1/owners/default/team-red/stats").json()["records"] == 1


def texts(what: Served, user: str) -> list[str]:
    return [record.text for record in what.memory.bind(user=user).sync.list()]


def test_no_route_changes_a_space_that_is_only_read_nor_anybody_else(what: Served) -> None:
    client = client_of(what, "tom")
    before = {user: texts(what, user) for user in ("ann", "team-red")}
    for method, path in routes(unguarded(what)):
        for user in ("ann", "team-red"):
            answer = asked(client, method, path.replace("{user}", user))
            if "{user}" in path and (user == "ann" or method != "GET"):
                is_read = user == "team-red" and path.rpartition("/")[2] in {"search", "recall"}
                assert is_read or answer.status_code in {403, 404}, (method, path, user, answer.status_code)
            assert f"with Mrs {SECRET}" not in answer.text or "{user}" not in path
        assert {user: texts(what, user) for user in ("ann", "team-red")} == before, (method, path)


def test_a_writable_space_is_changed_by_all_and_erased_by_none_of_them(what: Served) -> None:
    client = client_of(what, "tom")
    address = "/v1/owners/default/the-house"
    assert client.post(f"{address}/records", json={"text": "The fuse box is in the cellar"}).status_code == 201
    answer = client.post(f"{address}/erase")
    assert answer.status_code == 403
    assert "its owner or the operator" in answer.json()["detail"]
    csrf = what.signer.form_token(what.signer.cookie(Caller("tom"), 2e9))
    form = {"csrf": csrf, "name": "the-house"}
    assert client.post("/o/default/the-house/erase", data=form).status_code == 403
    assert len(texts(what, "the-house")) == 2
    operator = TestClient(application(what), base_url=HOST, headers=as_user("*"))
    assert operator.post(f"{address}/erase").status_code == 200
    assert texts(what, "the-house") == []


def test_a_server_that_only_reads_lets_nobody_change_a_space(what: Served) -> None:
    client = client_of(replace(what, writable=False), "tom")
    assert client.post("/v1/owners/default/the-house/records", json={"text": "no"}).status_code == 403


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["team"], "LABEL=USER"),
        (["=team-red"], "LABEL=USER"),
        (["team="], "LABEL=USER"),
        (["team=a", "team=b"], "repeats"),
        (["team=a", "house=a"], "repeats"),
        (["private=a"], "'private'"),
        ([f"s{number}=u{number}" for number in range(17)], "at most 16 spaces"),
    ],
)
def test_what_cannot_be_shared_is_refused(run: Run, tmp_path: Path, given: list[str], said: str) -> None:
    options = [part for each in given for part in ("--share", each)]
    assert said in run("serve", "--file", str(made(tmp_path)), "--embedder", "none", *options, code=2).err


@pytest.mark.process
def test_a_space_without_memories_is_named_when_the_server_starts(tmp_path: Path) -> None:
    path = made(tmp_path)
    with Memory(path, embedder=None) as memory:
        memory.bind(user="team-red").sync.add("The release is on Friday")
    with running(path, "--embedder", "none", "--share", "team=team-red", "--share", "house=the-huose") as server:
        assert server.process.stderr is not None
        said = server.process.stderr.readline()
    assert said == "memory-core: the space 'house' is empty: the user 'the-huose' has no memories\n"


def test_every_page_is_drawn_with_a_memory_on_it(what: Served) -> None:
    client = client_of(what, "tom")
    for user in ("tom", "the-house"):
        record = what.memory.bind(user=user).sync.list().records[0]
        what.memory.bind(user=user).sync.update(record.id, Patch(tags=["pinned"]))
        pages = [path for method, path in routes(unguarded(what)) if method == "GET" and path.startswith("/o/")]
        assert len(pages) > 8
        for path in pages:
            address = path.replace("{app}", "default").replace("{user}", user).replace("{id}", record.id)
            answer = client.get(address, params={"q": "key", "words": "key", "id": record.id})
            assert answer.status_code == 200, path
        assert record.text in client.get(f"/o/default/{user}/profile").text
