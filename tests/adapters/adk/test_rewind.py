"""A turn that a user took back by rewinding a session is not remembered."""

from __future__ import annotations

import pytest
from google.adk.agents import RunConfig
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from hypothesis import given
from hypothesis import strategies as st

from memory_adk import MemoryPlugin, MemoryService
from memory_adk.rewind import live_events
from memory_adk.testing import ScriptedLlm, ask, prompt, user_says
from tests.adapters.adk.agents import ANN, APP, remember, runner_of, said_event, session_of, session_with, texts


def rewind(to: str, *, at: float = 0, invocation_id: str = "r") -> Event:
    actions = EventActions(rewind_before_invocation_id=to)
    return said_event("", at=at, invocation_id=invocation_id, content=None, actions=actions)


async def rewound(runner: Runner) -> None:
    """Rewind the session `s1` to before its second turn."""
    session = await session_of(runner, ANN, "s1")
    (second,) = [e.invocation_id for e in session.events if e.author == "user" and "passphrase" in str(e.content)]
    await runner.rewind_async(user_id=ANN, session_id="s1", rewind_before_invocation_id=second)


async def test_a_rewound_turn_is_not_remembered_and_what_follows_is(service: MemoryService) -> None:
    model = ScriptedLlm(script=["Noted.", "Noted, xyzzy.", "Nice weather."])
    async with runner_of(service, model) as runner:
        await ask(runner, "I drink jasmine tea", user_id=ANN, session_id="s1")
        await ask(runner, "my passphrase is xyzzy", user_id=ANN, session_id="s1")
        await rewound(runner)
        await ask(runner, "the weather is fine", user_id=ANN, session_id="s1")
        await remember(runner, service, ANN, "s1")
    assert await texts(service, "passphrase xyzzy") == []
    remembered = await texts(service, "jasmine tea") + await texts(service, "weather fine")
    assert {"I drink jasmine tea", "the weather is fine"} <= set(remembered)
    assert not any("xyzzy" in text for text in remembered)


async def test_a_turn_remembered_before_it_was_rewound_is_forgotten(service: MemoryService) -> None:
    model = ScriptedLlm(script=["Noted.", "Noted, xyzzy."])
    async with runner_of(service, model) as runner:
        await ask(runner, "I drink jasmine tea", user_id=ANN, session_id="s1")
        await ask(runner, "my passphrase is xyzzy", user_id=ANN, session_id="s1")
        await remember(runner, service, ANN, "s1")
        assert "Noted, xyzzy." in await texts(service, "passphrase xyzzy")
        await rewound(runner)
        await remember(runner, service, ANN, "s1")
    assert not any("xyzzy" in text for text in await texts(service, "passphrase xyzzy"))
    assert (await texts(service, "jasmine tea"))[0] == "I drink jasmine tea"


async def test_a_rewind_of_what_a_cut_list_lacks_undoes_it_in_the_whole_session(service: MemoryService) -> None:
    model, plugin = ScriptedLlm(script=["Noted.", "Noted, xyzzy.", "Fine."]), MemoryPlugin(recall=False)
    async with runner_of(service, model, plugins=[plugin]) as runner:
        await ask(runner, "I drink jasmine tea", user_id=ANN, session_id="s1")
        await ask(runner, "my passphrase is xyzzy", user_id=ANN, session_id="s1")
        await plugin.flush()
        await rewound(runner)
        cut = RunConfig(get_session_config=GetSessionConfig(num_recent_events=1))
        said = user_says("the weather is fine")
        events = runner.run_async(user_id=ANN, session_id="s1", new_message=said, run_config=cut)
        assert [event.author async for event in events] == ["helper"]
        await plugin.flush()
    active = (await service.handle(APP, ANN).list(order="oldest")).records
    assert [record.text for record in active] == ["I drink jasmine tea", "Noted.", "the weather is fine", "Fine."]


async def test_a_cut_list_leaves_nothing(service: MemoryService) -> None:
    events = [said_event(f"This is message {n}", at=n, invocation_id=f"i{n}") for n in range(5)]
    await service.add_session_to_memory(session_with(*events))
    await service.add_session_to_memory(session_with(*events[-2:]))
    assert (await service.handle(APP, ANN).stats()).records == len(events)


@pytest.mark.parametrize("rewound_at", [20, 110])
async def test_a_clock_that_is_set_back_changes_nothing_about_a_rewind(
    service: MemoryService, rewound_at: float
) -> None:
    kept, undone = said_event("I drink tea", at=100, invocation_id="i0"), said_event("xyzzy", at=45, invocation_id="i1")
    events = [kept, undone, rewind("i1", at=rewound_at), said_event("It rains", at=120, invocation_id="i2")]
    for count in range(1, len(events) + 1):
        await service.add_session_to_memory(session_with(*events[:count]))
    active = (await service.handle(APP, ANN).list(order="oldest")).records
    assert [record.text for record in active] == ["I drink tea", "It rains"]


async def test_no_metadata_of_an_event_keeps_it_from_being_undone(service: MemoryService) -> None:
    metadata = {"invocation_id": "i9", "event_id": "other"}
    undone = said_event("xyzzy", at=1, author="remote", invocation_id="i1", custom_metadata=metadata)
    await service.add_session_to_memory(session_with(undone))
    await service.add_session_to_memory(session_with(undone, rewind("i1", at=3)))
    assert await texts(service, "xyzzy") == []


async def test_a_turn_is_remembered_again_when_its_rewind_is_undone(service: MemoryService) -> None:
    model, plugin = ScriptedLlm(script=["Noted.", "Noted, xyzzy.", "What passphrase?", "Of course."]), MemoryPlugin()
    async with runner_of(service, model, plugins=[plugin]) as runner:
        await ask(runner, "I drink jasmine tea", user_id=ANN, session_id="s1")
        await ask(runner, "my passphrase is xyzzy", user_id=ANN, session_id="s1")
        await plugin.flush()
        await rewound(runner)
        await ask(runner, "Do you know my passphrase?", user_id=ANN, session_id="s1")
        await plugin.flush()
        assert not any("xyzzy" in text for text in await texts(service, "my passphrase"))
        session = await session_of(runner, ANN, "s1")
        (first,) = [event.invocation_id for event in session.events if event.actions.rewind_before_invocation_id]
        await runner.rewind_async(user_id=ANN, session_id="s1", rewind_before_invocation_id=first)
        await ask(runner, "Thank you", user_id=ANN, session_id="s1")
        await plugin.flush()
    assert "my passphrase is xyzzy" in prompt(model.requests[-1])  # in the session again
    said = await texts(service, "my passphrase xyzzy")
    assert "my passphrase is xyzzy" in said
    assert "Do you know my passphrase?" not in said


async def test_a_rewind_leaves_other_sessions_alone(service: MemoryService) -> None:
    event = said_event("xyzzy", at=1, invocation_id="i1")
    await service.add_session_to_memory(session_with(event, session_id="other"))
    await service.add_session_to_memory(session_with(event, rewind("i1", at=3), session_id="s1"))
    assert await texts(service, "xyzzy") == ["xyzzy"]


async def test_a_rewind_that_is_undone_without_a_session_leaves_every_session_alone(service: MemoryService) -> None:
    other = [said_event("xyzzy", id="1", at=1, invocation_id="i1"), rewind("i1", at=3)]
    await service.add_session_to_memory(session_with(other[0], session_id="other"))
    await service.add_session_to_memory(session_with(*other, session_id="other"))
    same_id = said_event("plugh", id="1", at=1, invocation_id="i1")
    events = [same_id, rewind("i2", invocation_id="i2"), rewind("i2", invocation_id="i3")]
    await service.add_events_to_memory(app_name=APP, user_id=ANN, events=events)
    assert await texts(service, "xyzzy") == []


_TURNS = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=12)


@given(_TURNS)
def test_rewinds_undo_exactly_what_adk_undoes(turns: list[tuple[str, bool]]) -> None:
    from google.adk.events._rewind_events import _apply_rewinds  # what ADK's own prompts follow

    events: list[Event] = []
    for number, (invocation, is_rewind) in enumerate(turns):
        known = any(event.invocation_id == invocation for event in events)
        if is_rewind and known:
            events.append(rewind(invocation, at=number, invocation_id=f"r{number}"))
        else:
            events.append(said_event(str(number), at=number, invocation_id=invocation))
    assert [event.id for event in live_events(events)] == [event.id for event in _apply_rewinds(events)]


@given(_TURNS)
def test_a_list_without_rewinds_is_live_as_it_is(turns: list[tuple[str, bool]]) -> None:
    events = [said_event(text, invocation_id=text) for text, _ in turns]
    assert live_events(events) == events
