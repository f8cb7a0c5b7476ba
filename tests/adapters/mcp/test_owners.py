"""The owner whose memory a call reaches: never an argument's choice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from calling import TOKENS, http_beside, in_process, over_http, token_file
from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError

from memory_core import BoundMemory, InvalidInputError, Memory, ScopeError
from memory_mcp import StaticTokens, memory_server


@pytest.fixture
async def served(memory: Memory) -> AsyncIterator[str]:
    """The address of a server whose callers are told apart by their tokens."""
    async with http_beside(memory.bind(app="demo"), StaticTokens(TOKENS)) as url:
        yield url


async def test_each_token_reaches_the_memories_of_its_user(memory: Memory, served: str) -> None:
    async with AsyncExitStack() as stack:
        ann, bob = [await stack.enter_async_context(over_http(served, TOKENS[user])) for user in ("ann", "bob")]
        stored = await asyncio.gather(*(who.store(f"note {n}") for n in range(10) for who in (ann, bob)))
        anns, bobs = stored[::2], stored[1::2]
        for caller, own, foreign in ((ann, anns, bobs), (bob, bobs, anns)):
            listed = (await caller.ok("memory_list", collection="*", limit=50))["memories"]
            assert {memory["id"] for memory in listed} == set(own)
            assert "there is no memory" in await caller.refused("memory_delete", id=foreign[0])
            assert "there is no memory" in await caller.refused("memory_update", id=foreign[0], content="mine")
            assert "there is no memory" in await caller.refused("memory_history", id=foreign[0])
            with pytest.raises(MCPError, match="there is no memory"):
                await caller.client.read_resource(f"memory://memories/{foreign[0]}")
    record = await memory.bind(app="demo", user="ann").get(anns[0])
    assert record is not None
    assert record.user == "ann"


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer", "Basic YW5uOmFubg==", "anns-token-for-the-tests"])
async def test_a_call_without_a_known_token_is_turned_away(header: str | None, served: str) -> None:
    async with httpx2.AsyncClient(timeout=300) as http:
        headers = {} if header is None else {"Authorization": header}
        answer = await http.post(served, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
        assert answer.status_code == 401
        assert "www-authenticate" in answer.headers


async def test_a_session_of_one_user_cannot_be_used_with_the_token_of_another(served: str) -> None:
    """A session id that leaks, from a log for example, is worth nothing."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "memory_list", "arguments": {}}}
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=accept, timeout=300) as http:
        anns, bobs = ({"Authorization": f"Bearer {TOKENS[user]}"} for user in ("ann", "bob"))
        session = (await http.post(served, json=hello, headers=anns)).headers["mcp-session-id"]
        stolen = await http.post(served, json=call, headers={**bobs, "Mcp-Session-Id": session})
        assert stolen.status_code == 404


async def test_arguments_that_name_an_owner_are_refused(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        for name in ("user", "user_id", "app", "app_name", "owner", "scope", "agent"):
            assert "there is no such field" in await call.refused("memory_search", query="x", **{name: "bob"})
            assert "there is no such field" in await call.refused("memory_list", **{name: "bob"})


async def test_the_user_in_metadata_says_whom_a_memory_is_about_and_not_whose_it_is(
    memory: Memory, ann: BoundMemory
) -> None:
    async with in_process(ann) as call, in_process(memory.bind(app="demo", user="bob")) as bob:
        await call.store("Bob is tall", user="bob")
        assert await call.found("tall", filter={"user": "bob"}) == ["Bob is tall"]
        assert await bob.found("tall", collection="*") == []


async def test_a_handle_and_a_token_that_name_different_users_are_refused(ann: BoundMemory) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_beside(ann, StaticTokens(TOKENS)))
        hers, bobs = [await stack.enter_async_context(over_http(url, TOKENS[user])) for user in ("ann", "bob")]
        await hers.store("Ann rows")
        assert "belongs to user 'ann'" in await bobs.refused("memory_search", query="rows")


async def test_a_server_without_an_owner_cannot_be_made(memory: Memory) -> None:
    with pytest.raises(ScopeError, match="the server has no owner"):
        memory_server(memory.bind(app="demo"))
    with pytest.raises(ScopeError, match="belongs to collection 'work'"):
        memory_server(memory.bind(user="ann", collection="work"), collection="sport")


class Machines:
    """An issuer whose tokens say which program calls and for nobody in particular."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="machine", scopes=[])


async def test_a_token_that_names_no_user_reaches_nothing(memory: Memory) -> None:
    async with http_beside(memory.bind(app="demo"), Machines()) as url, over_http(url, "any") as call:
        assert "no token that names a user" in await call.refused("memory_list")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "does not contain a JSON object"),
        ("[1]", "does not contain a JSON object"),
        ("[" * 100_000, "does not contain a JSON object"),
        ("{}", "no tokens are given"),
        ('{"ann": 5}', "must be a string"),
        ('{"ann": "short"}', "of at least 20 characters"),
        ('{"ann": "a-token-that-nobody-can-guess "}', "without white space"),
        ('{"ann": "the-same-token-for-two", "bob": "the-same-token-for-two"}', "have the same token"),
    ],
)
def test_a_file_of_tokens_that_cannot_be_used_is_refused_without_showing_them(
    text: str, complaint: str, tmp_path: Path
) -> None:
    file = token_file(tmp_path, text)
    with pytest.raises(InvalidInputError, match=complaint) as refusal:
        StaticTokens.from_file(file)
    assert "the-same-token" not in str(refusal.value)


def test_a_file_of_tokens_that_others_may_read_or_nobody_can_is_refused(tmp_path: Path) -> None:
    file = token_file(tmp_path)
    file.chmod(0o644)
    with pytest.raises(InvalidInputError, match="chmod 600"):
        StaticTokens.from_file(file)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        StaticTokens.from_file(tmp_path / "missing.json")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 100_000], ids=["not UTF-8", "nested"])
def test_a_file_that_is_no_text_or_no_end_is_refused_with_a_sentence(content: bytes, tmp_path: Path) -> None:
    file = token_file(tmp_path)
    file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"cannot be read|does not contain a JSON object"):
        StaticTokens.from_file(file)


async def test_the_operator_of_a_page_is_a_user_without_memories_here() -> None:
    tokens = StaticTokens({"ann": TOKENS["ann"], "*": "the-token-of-the-operator"})
    access = await tokens.verify_token("the-token-of-the-operator")
    assert access is not None
    assert access.subject == "*"
