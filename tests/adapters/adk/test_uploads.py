"""A file that a person attaches is named in the turn that is remembered."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.save_files_as_artifacts_plugin import SaveFilesAsArtifactsPlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from memory_adk import CapturePolicy, MemoryPlugin, MemoryService
from memory_adk.convert import said
from memory_adk.testing import ScriptedLlm, prompt
from memory_core import Memory
from memory_core.adapting import settled
from tests.adapters.adk.agents import ANN, APP, bytes_in, drafts_of, remember, said_event, session_with, texts

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTRACT = b"%PDF-1.4 the rent is 700 a month " * 100


def blob(name: str | None = "contract.pdf", data: bytes = CONTRACT, kind: str = "application/pdf") -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type=kind, display_name=name))


def file(uri: str, name: str | None = None, kind: str = "application/pdf") -> types.Part:
    return types.Part(file_data=types.FileData(file_uri=uri, mime_type=kind, display_name=name))


def words(text: str) -> types.Part:
    return types.Part(text=text)


def sent(*parts: types.Part, author: str = "user", **fields: Any) -> Event:
    return said_event("", content=types.Content(role="user", parts=list(parts)), author=author, **fields)


def uploads_runner(service: MemoryService, model: ScriptedLlm, *plugins: BasePlugin) -> Runner:
    return Runner(
        app=App(name=APP, root_agent=LlmAgent(name="helper", model=model), plugins=list(plugins)),
        session_service=InMemorySessionService(),
        artifact_service=InMemoryArtifactService(),
        memory_service=service,
        auto_create_session=True,
    )


async def say(runner: Runner, *parts: types.Part, session: str = "s1") -> None:
    message = types.Content(role="user", parts=list(parts))
    async for _ in runner.run_async(user_id=ANN, session_id=session, new_message=message):
        pass


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([words("Remember this"), blob()], "Remember this\nAttached: contract.pdf"),
        ([blob()], "Attached: contract.pdf"),
        ([blob(None)], "Attached: PDF"),
        ([blob(None, kind="image/png")], "Attached: image"),
        ([file("gs://b/lease.pdf"), blob()], "Attached: lease.pdf, contract.pdf"),
        ([file("https://h/v1beta/files/x1", "lease.pdf")], "Attached: lease.pdf"),
        ([words('[Uploaded Artifact: "user:lease.pdf"]')], "Attached: lease.pdf"),
        ([words('[Uploaded Artifact: "a.pdf"]'), file("gs://b/a.pdf/0", "a.pdf")], "Attached: a.pdf"),
        ([words('[Uploaded Artifact: "artifact_e-1_0"]')], "Attached: file"),
        ([words('I saw [Uploaded Artifact: "a"]')], 'I saw [Uploaded Artifact: "a"]'),
        ([words("Hi"), file("artifact://a/u/s/_adk_live/adk_live_audio.pcm#1", kind="audio/pcm")], "Hi"),
    ],
)
def test_a_turn_says_what_was_attached(parts: list[types.Part], text: str) -> None:
    assert said(sent(*parts)) == text


def test_the_content_of_a_file_is_in_no_draft() -> None:
    (draft,) = drafts_of(sent(blob("x.pdf\n" + "y" * 10_000)), "s", {}, NOW)
    assert "rent" not in repr(draft)
    assert base64.b64encode(CONTRACT)[:40].decode() not in repr(draft)
    assert len(draft.text) < 300


@pytest.mark.parametrize("author", ["helper", "model"])
def test_the_images_of_a_model_and_the_files_of_tools_are_not_named(author: str) -> None:
    assert said(sent(words("Here you are"), blob(None, kind="image/png"), author=author)) == "Here you are"
    assert said(sent(blob(None, kind="image/png"), author=author)) == ""


async def test_a_session_added_again_is_one_memory_each(service: MemoryService, memory: Memory) -> None:
    session = session_with(sent(words("Remember this"), blob()), sent(blob(), at=1), sent(blob(), at=2))
    for _ in range(3):
        await service.add_session_to_memory(session)
    assert (await memory.bind(app=APP, user=ANN).stats()).records == 3


@pytest.mark.parametrize("saves", [False, True])
async def test_an_upload_is_found_by_its_name_in_the_next_session(tmp_path: Path, saves: bool) -> None:  # noqa: FBT001
    service, plugin = MemoryService(tmp_path / "memory.db"), MemoryPlugin()
    model = ScriptedLlm(script=["Noted.", "Thanks.", "contract.pdf"])
    runner = uploads_runner(service, model, *([SaveFilesAsArtifactsPlugin()] if saves else []), plugin)
    await say(runner, words("Please remember this"), blob())
    await say(runner, blob("photo.jpg", b"\xff\xd8jpeg", "image/jpeg"), session="s2")
    await plugin.flush()
    await settled(service.handle(APP, ANN))
    await say(runner, words("Which contract did I send you?"), session="s3")
    assert 'user: "Please remember this Attached: contract.pdf"' in prompt(model.requests[-1])
    await remember(runner, service, ANN, "s1")
    await remember(runner, service, ANN, "s2")
    assert (await texts(service, "photo"))[0] == "Attached: image photo.jpg"
    assert next(text for text in await texts(service, "contract") if "Attached: " in text).endswith("contract.pdf")
    await runner.close()
    await service.close()
    assert b"rent is 700" not in bytes_in(tmp_path)


@pytest.mark.parametrize("part", [blob(), file("gs://bucket/contract.pdf")], ids=["blob", "file"])
async def test_an_upload_that_the_prompt_shows_is_not_recalled(service: MemoryService, part: types.Part) -> None:
    model, plugin = ScriptedLlm(script=["Noted.", "contract.pdf"]), MemoryPlugin()
    runner = uploads_runner(service, model, plugin)
    await say(runner, part)
    await plugin.flush()
    await say(runner, words("Which contract was that?"))
    assert "Attached: " not in prompt(model.requests[-1])
    await runner.close()


async def test_a_policy_redacts_the_names_of_files(service: MemoryService) -> None:
    policy = CapturePolicy(redact=lambda text: text.replace("Bob", "[name]"))
    event = policy.apply(sent(words("For Bob"), blob("Bob.pdf"), file("gs://b/Bob%20Ross.pdf"), file("gs://b/x")))
    assert event is not None
    assert said(event) == "For [name]\nAttached: [name].pdf, [name] Ross.pdf, PDF"


async def test_a_message_whose_words_are_redacted_away_is_not_stored() -> None:
    policy = CapturePolicy(redact=lambda text: "" if "secret" in text else text)
    assert policy.apply(sent(words("secret"), blob())) is None
    event = policy.apply(sent(words("hello"), blob("secret.pdf"), file("gs://b/secret.pdf")))
    assert event is not None
    assert said(event) == "hello\nAttached: PDF"


async def test_what_is_in_a_file_is_not_read(service: MemoryService, memory: Memory) -> None:
    plugin = MemoryPlugin()
    runner = uploads_runner(service, ScriptedLlm(script=["Noted."]), plugin)
    await say(runner, blob(data=b"The rent is 700", kind="text/plain"))
    await plugin.flush()
    assert await texts(service, "rent") == []
    await runner.close()


class Sanitizer(BasePlugin):
    """Takes the files out of messages."""

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        return types.Content(role="user", parts=[part for part in user_message.parts or [] if part.text])


async def test_a_file_that_another_plugin_took_out_is_not_named(service: MemoryService, memory: Memory) -> None:
    plugin = MemoryPlugin()
    runner = uploads_runner(service, ScriptedLlm(script=["Noted."]), plugin, Sanitizer("sanitizer"))
    await say(runner, words("Read this"), blob("a.txt", b"The rent is 700", "text/plain"))
    await plugin.flush()
    assert {record.text for record in (await memory.bind(app=APP, user=ANN).list()).records} == {"Read this", "Noted."}
    await runner.close()
