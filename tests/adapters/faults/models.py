"""The models of each framework as managers of a memory, with a fault."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr, SkipValidation
from xaibo.core.models.llm import LLMMessage, LLMOptions, LLMResponse

from memory_adk import AdkModel
from memory_adk.testing import ScriptedLlm
from memory_core import ChatModel
from memory_core.lifecycle import LanguageModel
from memory_langchain import LangChainModel
from memory_langchain.testing import ScriptedChatModel
from memory_xaibo import XaiboModel
from tests.adapters.faults.parties import Fault
from tests.adapters.xaibo.talking import Told

ANSWER = "add T1 fact: Ann keeps bees"
_RUBBISH = "a poem"


def of_langchain(fault: Fault) -> ChatModel:
    """A chat model of LangChain."""
    return LangChainModel(_Chat(script=(), fault=fault))


def of_adk(fault: Fault) -> ChatModel:
    """A model of ADK."""
    model = _Llm(script=[])
    model._fault = fault
    return AdkModel(model)


def of_spade(fault: Fault) -> ChatModel:
    """A provider of spade_llm."""
    pytest.importorskip("spade_llm")
    from memory_spade import ProviderModel
    from memory_spade.testing.provider import ScriptedProvider

    class Provider(ScriptedProvider):
        async def get_llm_response(self, *_given: Any, **_options: Any) -> dict[str, Any]:
            return {"text": await _answer(fault)}

    return ProviderModel(Provider(lambda _: ANSWER))


def of_xaibo(fault: Fault) -> ChatModel:
    """A model of Xaibo."""

    class Model(Told):
        async def generate(self, messages: list[LLMMessage], options: LLMOptions | None = None) -> LLMResponse:
            return LLMResponse(content=await _answer(fault))

    return XaiboModel(Model())


def of_a_function(fault: Fault) -> ChatModel:
    """An async function."""

    async def ask(_prompt: str) -> str:
        return await _answer(fault)

    return LanguageModel(ask, timeout=None)


def of_a_blocking_function(fault: Fault) -> ChatModel:
    """A function that blocks its thread."""
    return LanguageModel(lambda _: _RUBBISH if fault.meet_blocking() else ANSWER, timeout=None)


async def _answer(fault: Fault) -> str:
    return _RUBBISH if await fault.meet() else ANSWER


class _Chat(ScriptedChatModel):
    fault: SkipValidation[Fault]

    async def _agenerate(self, *_given: Any, **_options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(await _answer(self.fault)))])


class _Llm(ScriptedLlm):
    _fault: Fault = PrivateAttr()

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002  (ADK's signature)
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.ModelContent(await _answer(self._fault)))
