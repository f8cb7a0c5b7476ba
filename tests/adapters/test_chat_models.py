"""Each framework's model manages a memory: the same conversation, the same fact."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from memory_core import ChatModel, Memory, Where
from memory_core.lifecycle import PROMPT, LanguageModel, Manager, maintain
from memory_core.lifecycle.openai_chat import OpenAiChat

ANSWER = "add T1 fact: Ann broke her hand"


async def facts(model: ChatModel) -> list[str]:
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.remember([("user", "I broke my hand"), ("assistant", "Oh no")])
        done = await maintain(ann, model=Manager(model, attempts=1))
        assert done.usage.calls == 1
        return [record.text for record in await ann.list(where=Where(kinds=["fact"]))]


async def test_a_langchain_chat_model() -> None:
    pytest.importorskip("langchain_core")
    from memory_langchain import LangChainModel
    from memory_langchain.testing import ScriptedChatModel

    model = ScriptedChatModel(script=[ANSWER])
    assert await facts(LangChainModel(model)) == ["Ann broke her hand"]
    assert [message.type for message in model.prompts[0]] == ["system", "human"]
    assert model.prompts[0][0].text == PROMPT
    assert "T1 " in model.prompts[0][1].text


async def test_a_model_of_google_adk() -> None:
    pytest.importorskip("google.adk")
    from memory_adk import AdkModel
    from memory_adk.testing import ScriptedLlm

    model = ScriptedLlm(script=[ANSWER])
    assert await facts(AdkModel(model)) == ["Ann broke her hand"]
    (request,) = model.requests
    assert request.config.system_instruction == PROMPT
    assert "T1 " in str(request.contents[0].parts)


async def test_a_provider_of_spade_llm() -> None:
    pytest.importorskip("spade_llm")
    from memory_spade import ProviderModel
    from memory_spade.testing.provider import ScriptedProvider

    provider = ScriptedProvider(lambda _: ANSWER)
    assert await facts(ProviderModel(provider)) == ["Ann broke her hand"]
    (request,) = provider.requests
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.messages[0]["content"] == PROMPT


async def test_a_model_of_xaibo() -> None:
    pytest.importorskip("xaibo")
    from memory_xaibo import XaiboModel
    from tests.adapters.xaibo.talking import Told

    model = Told(lambda _: ANSWER)
    assert await facts(XaiboModel(model)) == ["Ann broke her hand"]
    (prompt,) = model.prompts
    assert [message.role.value for message in prompt] == ["system", "user"]
    assert prompt[0].content[0].text == PROMPT


async def test_a_function() -> None:
    assert await facts(LanguageModel(lambda prompt: ANSWER if prompt.startswith(PROMPT) else "nothing")) == [
        "Ann broke her hand"
    ]


@contextmanager
def served(status: int, body: object) -> Iterator[tuple[str, list[tuple[str, str | None, Any]]]]:
    """A server that answers every request so: its URL, and what it was asked (path, key, body)."""
    asked: list[tuple[str, str | None, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers.get("Authorization"), given))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_url_that_speaks_openais_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with served(200, {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}) as (url, asked):
        assert await facts(OpenAiChat("small", base_url=url)) == ["Ann broke her hand"]
        assert await facts(OpenAiChat("small", base_url=url, api_key="sk-1")) == ["Ann broke her hand"]
    assert [(path, key) for path, key, _ in asked] == [
        ("/v1/chat/completions", None),
        ("/v1/chat/completions", "Bearer sk-1"),
    ]
    assert asked[0][2]["model"] == "small"
    assert asked[0][2]["messages"][0] == {"role": "system", "content": PROMPT}


async def test_a_key_of_the_environment_is_for_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with served(200, {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}) as (url, asked):
        await facts(OpenAiChat("small", base_url=url))
    assert [key for _, key, _ in asked] == [None]


@pytest.mark.parametrize(("status", "body"), [(429, {"error": {"message": "slow down"}}), (200, {"choices": []})])
async def test_a_server_that_refuses_or_answers_something_else_has_not_answered(status: int, body: object) -> None:
    with served(status, body) as (url, _), pytest.raises((httpx.HTTPStatusError, LookupError)):
        await facts(OpenAiChat("small", base_url=url, api_key="sk-1"))
