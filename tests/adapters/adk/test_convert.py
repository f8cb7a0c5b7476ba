"""The pure parts: what an event says, and how memories are quoted."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from memory_adk.convert import content_text, labels, moment, said, shortened
from memory_adk.recall import end_of_history
from memory_adk.shown import uncompacted
from tests.adapters.adk.agents import drafts_of, said_event

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RETURNED = types.Part(function_response=types.FunctionResponse(name="f", response={}))
PARTS = st.lists(
    st.one_of(
        st.builds(lambda text, thought: types.Part(text=text, thought=thought), st.text(), st.booleans()),
        st.builds(lambda data: types.Part(inline_data=types.Blob(data=data, mime_type="image/png")), st.binary()),
        st.builds(lambda name: types.Part(function_call=types.FunctionCall(name="f", args={"a": name})), st.text()),
    ),
    max_size=6,
)


@given(PARTS)
def test_an_event_says_its_text_parts_and_what_a_person_attached(parts: list[types.Part]) -> None:
    content = types.Content(parts=parts)
    spoken = "\n".join(part.text.strip() for part in parts if part.text and not part.thought).strip()
    image = ["Attached: image"] if any(part.inline_data for part in parts) else []
    assert said(said_event("", content=content, author="helper")) == spoken
    assert said(said_event("", content=content)) == "\n".join(filter(None, [spoken, *image]))


@given(st.text(alphabet=st.characters(exclude_categories=()), min_size=1))
def test_whatever_was_said_can_be_stored_as_utf_8(text: str) -> None:
    content_text(types.Content(parts=[types.Part.model_construct(text=text)])).encode()


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_timestamp_is_a_time_or_none(timestamp: float) -> None:
    assert moment(timestamp) is None or math.isfinite(timestamp)


def test_content_wins_over_a_transcription_of_it() -> None:
    heard = types.Transcription(text="i drink tee", finished=True)
    assert said(said_event("I drink tea", input_transcription=heard)) == "I drink tea"


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20), st.text(), st.text())
def test_keys_of_different_sessions_and_events_differ(one: str, two: str, first: str, second: str) -> None:
    def key(session: str, event_id: str) -> str | None:
        return drafts_of(said_event("x", id=event_id), session, {}, NOW)[0].source_key

    same = (one, first or "?") == (two, second or "?")
    assert (key(one, first or "?") == key(two, second or "?")) == same


def test_only_small_public_labels_of_an_event_are_kept() -> None:
    metadata = {"mood": "calm", "a2a:response": {"token": "x"}, "_internal": 1, "long": "x" * 600, "odd": {1, 2}}
    assert labels(metadata) == {"mood": "calm", "odd": [1, 2]}


def test_no_metadata_of_an_event_poses_as_what_adk_says_of_it() -> None:
    given: dict[str, Any] = {
        "event_id": "other",
        "invocation_id": "i9",
    }
    event = said_event("Hello", id="e1", invocation_id="", custom_metadata=given)
    for metadata in (given, {"metadata": given}):
        (draft,) = drafts_of(event, "s1", metadata, datetime.now(UTC))
        assert draft.data == {"event_id": "e1"}
    (draft,) = drafts_of(event, "s1", {"thread": "support"}, datetime.now(UTC))
    assert draft.data["thread"] == "support"


def test_a_label_that_cannot_be_json_costs_neither_the_event_nor_its_other_labels() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    metadata = {"a": endless, "b": b"\xff", "c": 10**5_000, "\ud800": 1, "d": object, "half": "\ud800", "mood": "calm"}
    assert labels(metadata).items() >= {"half": "?", "mood": "calm"}.items()
    assert not {"a", "b", "c"} & labels(metadata).keys()


@given(st.text(), st.integers(1, 50))
def test_a_shortened_text_fits_and_a_short_one_stays(text: str, room: int) -> None:
    short = shortened(text, room)
    assert len(short) <= room
    assert short == text or short.endswith("…")
    assert short == text or len(text) > room


def test_what_a_compaction_summarised_is_not_in_the_prompt_any_more() -> None:
    old, new = said_event("old", at=0), said_event("new", at=10)
    summary = said_event(
        "",
        at=11,
        content=None,
        actions={
            "compaction": {
                "start_timestamp": old.timestamp,
                "end_timestamp": old.timestamp + 5,
                "compacted_content": {"parts": [{"text": "summary"}]},
            }
        },
    )
    assert uncompacted([old, new]) == [old, new]
    assert uncompacted([old, new, summary]) == [new, summary]


def _content(role: str, *, response: bool = False) -> types.Content:
    part = types.Part(function_response=types.FunctionResponse(name="f")) if response else types.Part(text="x")
    return types.Content(role=role, parts=[part])


def test_memories_go_before_the_latest_user_messages_and_after_a_tools_answer() -> None:
    user, model, answer = _content("user"), _content("model"), _content("user", response=True)
    assert end_of_history([]) == 0
    assert end_of_history([user]) == 0
    assert end_of_history([user, model, user, user]) == 2
    assert end_of_history([user, model, answer]) == 3
    assert end_of_history([user, model, answer, user]) == 3


@pytest.mark.parametrize(
    ("author", "content", "role"),
    [
        ("user", types.Content(parts=[types.Part(text="tea")]), "user"),
        ("helper", types.Content(role="user", parts=[types.Part(text="tea")]), "assistant"),
        ("helper", types.Content(parts=[types.Part(text="tea"), RETURNED]), "tool"),
        ("user", types.Content(parts=[types.Part(text="tea"), RETURNED]), "user"),
        ("", types.Content(role="model", parts=[types.Part(text="tea")]), "assistant"),
        ("", types.Content(role="user", parts=[types.Part(text="tea")]), "user"),
        ("", types.Content(parts=[types.Part(text="tea")]), None),
    ],
)
def test_the_author_of_an_event_says_who_spoke(author: str, content: types.Content, role: str | None) -> None:
    (draft,) = drafts_of(Event(author=author, content=content), "s", {}, NOW)
    assert (draft.role, draft.text) == (role, "tea")


@pytest.mark.parametrize(("author", "role"), [("user", "user"), ("helper", "assistant")])
def test_a_finished_transcription_has_a_role_too(author: str, role: str) -> None:
    heard = types.Transcription(text="tea", finished=True)
    (draft,) = drafts_of(Event(author=author, output_transcription=heard), "s", {}, NOW)
    assert draft.role == role


def test_an_event_without_a_possible_time_is_stored_as_said_now() -> None:
    event = Event(author="user", timestamp=math.inf, content=types.Content(parts=[types.Part(text="hi")]))
    assert drafts_of(event, "s", {}, NOW)[0].occurred_at is None
