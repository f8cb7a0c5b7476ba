"""A plugin stores what its policy keeps, in the words it leaves, for as long as it says."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from memory_adk import CapturePolicy, MemoryPlugin, MemoryService
from memory_adk.testing import ScriptedLlm, ask, user_says
from memory_core import InvalidInputError, Memory, MemoryRecord
from tests.adapters.adk.agents import ANN, APP, bytes_in, runner_of, said_event, session_of

CARD = re.compile(r"\d{4}-\d{4}")


async def stored(memory: Memory) -> list[MemoryRecord]:
    return list((await memory.bind(app=APP, user=ANN).list(order="oldest")).records)


async def talk(service: MemoryService, policy: CapturePolicy, *said: str, answer: str = "Noted.") -> None:
    plugin = MemoryPlugin(capture=policy, recall=False)
    async with runner_of(service, ScriptedLlm(script=[answer] * len(said)), plugins=[plugin]) as runner:
        for text in said:
            await ask(runner, text, user_id=ANN, session_id="s1")


async def test_the_predicate_decides_which_messages_are_stored(service: MemoryService, memory: Memory) -> None:
    policy = CapturePolicy(keep=lambda event: "off the record" not in str(event.content))
    await talk(service, policy, "I drink tea", "off the record: I drink gin")
    assert [record.text for record in await stored(memory)] == ["I drink tea", "Noted.", "Noted."]


async def test_a_redacted_text_is_never_on_the_disk(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        policy = CapturePolicy(redact=lambda text: CARD.sub("[card]", text))
        await talk(MemoryService(memory), policy, "My card is 1234-5678", answer="Your card 1234-5678 is noted.")
        assert [record.text for record in await stored(memory)] == ["My card is [card]", "Your card [card] is noted."]
    assert b"1234-5678" not in bytes_in(tmp_path)


async def test_only_the_chosen_authors_are_stored_and_for_the_chosen_time(
    service: MemoryService, memory: Memory
) -> None:
    await talk(service, CapturePolicy(authors=["user"], ttl=timedelta(days=30)), "I drink tea")
    (record,) = await stored(memory)
    assert record.text == "I drink tea"
    assert record.expires_at is not None
    assert timedelta(days=29) < record.expires_at - record.created_at <= timedelta(days=30)


def broken(_: Any) -> Any:
    raise LookupError("the application's own defect")


@pytest.mark.parametrize("policy", [CapturePolicy(keep=broken), CapturePolicy(redact=broken)])
async def test_a_policy_that_fails_costs_the_message_and_not_the_answer(
    service: MemoryService, memory: Memory, policy: CapturePolicy, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = MemoryPlugin(capture=policy, recall=False)
    async with runner_of(service, ScriptedLlm(script=["Hello."]), plugins=[plugin]) as runner:
        assert await ask(runner, "my secret", user_id=ANN, session_id="s1") == "Hello."
    assert await stored(memory) == []
    assert "not stored because of its capture policy: LookupError" in caplog.text


async def test_after_a_rewind_the_policy_applies_to_the_whole_session_again(
    service: MemoryService, memory: Memory
) -> None:
    plugin = MemoryPlugin(capture=CapturePolicy(authors=["user"]), recall=False)
    async with runner_of(service, ScriptedLlm(script=["one", "two", "three"]), plugins=[plugin]) as runner:
        await ask(runner, "I drink tea", user_id=ANN, session_id="s1")
        await ask(runner, "my passphrase is xyzzy", user_id=ANN, session_id="s1")
        undone = (await session_of(runner, ANN, "s1")).events[2].invocation_id
        await runner.rewind_async(user_id=ANN, session_id="s1", rewind_before_invocation_id=undone)
        await ask(runner, "I eat cake", user_id=ANN, session_id="s1")
    assert [record.text for record in await stored(memory)] == ["I drink tea", "I eat cake"]


def test_a_redaction_changes_copies_of_spoken_texts_and_nothing_else() -> None:
    thought = types.Part(text="my secret", thought=True)
    content = types.Content(role="user", parts=[types.Part(text="my secret"), thought])
    event = said_event("", content=content, custom_metadata={"note": "my secret", "n": 1})
    call = Event(author="user", input_transcription=types.Transcription(text="my secret", finished=True))
    policy = CapturePolicy(redact=lambda text: text.replace("secret", "…"))
    written, spoken = policy.apply(event), policy.apply(call)
    assert written is not None
    assert written.content is not None
    assert written.content.parts == [types.Part(text="my …"), thought]
    assert written.custom_metadata == {"note": "my …", "n": 1}
    assert spoken is not None
    assert spoken.input_transcription is not None
    assert spoken.input_transcription.text == "my …"
    assert event.content == types.Content(role="user", parts=[types.Part(text="my secret"), thought])
    assert policy.apply(said_event("", content=user_says("secret"))) is not None


async def test_a_message_whose_text_is_redacted_completely_is_not_stored(
    service: MemoryService, memory: Memory
) -> None:
    await talk(service, CapturePolicy(redact=lambda text: "" if "secret" in text else text), "my secret")
    assert [record.text for record in await stored(memory)] == ["Noted."]


def test_a_policy_with_impossible_values_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="authors must be a collection"):
        CapturePolicy(authors="user")
    with pytest.raises(InvalidInputError, match="ttl must be longer than zero"):
        CapturePolicy(ttl=timedelta(0))
