"""The page, the API and MCP on a Qdrant server: that of `QDRANT_URL`, or the engine of one over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.adapters.mcp.calling import over_http
from tests.app.serve.conftest import Running, running
from tests.app.serve.test_serving import bearer
from tests.storage.qdrant.addresses import empty_collection

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("memory")
    with (
        empty_collection() as store,
        running(folder, "--file", store, "--write", "--share", "team=team-red") as started,  # the last file counts
    ):
        yield started


@pytest.fixture(autouse=True)
def empty(server: Running) -> None:
    """Let each test begin with nothing."""
    with httpx.Client(base_url=server.address, headers=bearer(server), timeout=300) as operator:
        for user in ("ann", "team-red"):
            assert operator.post(f"/v1/owners/default/{user}/erase").status_code == 200


def test_a_memory_is_stored_found_changed_and_erased(server: Running) -> None:
    with httpx.Client(base_url=server.address, headers=bearer(server), timeout=300) as api:
        made = api.post("/v1/records", json={"text": "The spare key is with Mrs Okafor", "kind": "fact"})
        assert made.status_code == 201, made.text
        assert api.get("/v1/health").status_code == 200  # by a write
        place = made.headers["location"]
        (hit,) = api.post("/v1/search", json={"query": "who has the spare key", "explain": True}).json()["hits"]
        assert hit["record"]["id"] == made.json()["id"]
        assert "Okafor" in api.post("/v1/recall", json={"query": "Where is the spare key?"}).json()["text"]
        changed = api.patch(place, json={"text": "The spare key is with Mr Lund"}, headers={"If-Match": '"1"'})
        assert changed.json()["version"] == 2
        assert api.patch(place, json={"text": "no"}, headers={"If-Match": '"1"'}).status_code == 412
        assert [each["text"] for each in api.get(f"{place}/history").json()] == [
            "The spare key is with Mrs Okafor",
            "The spare key is with Mr Lund",
        ]
        replaced = api.post(f"{place}/supersede", json={"text": "Nobody has a spare key"})
        assert replaced.status_code == 201, replaced.text
        assert "Mr Lund" in api.get("/v1/export").text
        assert api.post("/v1/erase").status_code == 200
        assert api.get("/v1/stats").json()["records"] == 0


def test_the_page_shows_what_is_stored_with_its_spaces(server: Running) -> None:
    with httpx.Client(base_url=server.address, timeout=300, follow_redirects=True) as browser:
        operator = bearer(server)
        for user, text in (("ann", "The spare key is with Mrs Okafor"), ("team-red", "The key of the release")):
            added = browser.post(f"/v1/owners/default/{user}/records", json={"text": text}, headers=operator)
            assert added.status_code == 201, added.text
        assert "Okafor" in browser.get(server.link).text
        page = browser.get("/o/default/ann", params={"q": "spare key"}).text
        assert "Okafor" in page
        assert '<span class="space"><bdi>team</bdi></span>' in page
        for place in (
            "/block?q=spare+key",
            "/stats",
            "/facets",
            "/profile",
            "/proposals",
            "/missing?q=key&words=Okafor",
        ):
            assert browser.get(f"/o/default/ann{place}").status_code == 200, place


async def test_an_mcp_client_shares_them(server: Running) -> None:
    async with over_http(f"{server.address}/mcp", server.key) as ann:
        await ann.ok("memory_store", content="The spare key is with Mrs Okafor")
        assert await ann.found("who has the spare key") == ["The spare key is with Mrs Okafor"]
