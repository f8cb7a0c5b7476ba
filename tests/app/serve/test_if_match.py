"""`If-Match` among many clients at once: nothing goes whose change was answered first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from memory_core import Memory
from memory_core.app.serve.application import application
from tests.app.serve.test_api import HOST, as_user, served

ROUNDS = 12
AT_ONCE = 8
"""Records that are fought over at once."""
CHANGERS = 3
"""Clients that change each of them."""
FIRST = {"If-Match": '"1"'}


@pytest_asyncio.fixture
async def ann(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        transport = httpx.ASGITransport(application(served(memory)))
        async with httpx.AsyncClient(transport=transport, base_url=HOST, headers=as_user("ann")) as client:
            yield client


async def fought_over(
    ann: httpx.AsyncClient, way: str, headers: dict[str, str], looks: int
) -> tuple[str, Any, list[Any]]:
    """The place of a new record, the answer to its end, and the answers to its changes, which were asked for at once.

    Args:
        way: `delete` or `supersede`, of the version that was read.
        headers: Of the changes.
        looks: The number of times that the client that ends it looks at it before, so that some ends come late.
    """
    made = await ann.post("/v1/records", json={"text": "the tide turns at noon"})
    place = f"/v1/records/{made.json()['id']}"

    async def end() -> Any:
        for _ in range(looks):
            await ann.get(place)
        if way == "delete":
            return await ann.delete(place, headers=FIRST)
        return await ann.post(f"{place}/supersede", json={"text": "what is true now"}, headers=FIRST)

    patches = [ann.patch(place, json={"text": f"changed by {n}"}, headers=headers) for n in range(CHANGERS)]
    ended, *changed = await asyncio.gather(end(), *patches)
    return place, ended, changed


async def rounds(ann: httpx.AsyncClient, way: str, headers: dict[str, str]) -> list[tuple[str, Any, list[Any]]]:
    """The same of many records, some at once."""
    found: list[tuple[str, Any, list[Any]]] = []
    for number in range(ROUNDS):
        found += await asyncio.gather(*(fought_over(ann, way, headers, number % 4) for _ in range(AT_ONCE)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("way", ["delete", "supersede"])
async def test_of_all_that_name_one_version_one_is_done(ann: httpx.AsyncClient, way: str) -> None:
    for place, ended, changed in await rounds(ann, way, FIRST):
        answers = [ended, *changed]
        done = [answer for answer in answers if answer.is_success]
        assert len(done) == 1, [answer.status_code for answer in answers]
        refused = {404, 412} if way == "delete" and ended.is_success else {412}
        assert {answer.status_code for answer in answers if not answer.is_success} <= refused
        stored = await ann.get(place)
        if ended.is_success:
            assert stored.status_code == 404 if way == "delete" else stored.json()["state"] == "archived"
            assert stored.json().get("text", "the tide turns at noon") == "the tide turns at noon"
        else:
            assert stored.json() == done[0].json()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["delete", "supersede"])
async def test_what_is_ended_was_never_changed_before(ann: httpx.AsyncClient, way: str) -> None:
    """The changes name no version, so each of them comes before the end, which then is refused, or after it."""
    ends = Counter[int]()
    for place, ended, changed in await rounds(ann, way, {}):
        ends[ended.status_code] += 1
        if way == "delete":
            assert {answer.status_code for answer in changed} == ({404} if ended.is_success else {200})
            assert (await ann.get(place)).is_success is not ended.is_success
        else:
            states = {answer.json()["state"] for answer in changed}
            assert states == ({"archived"} if ended.is_success else {"active"})
    assert ends.keys() <= {200, 201, 412}
