"""The writers that work beside each other on one memory until a moment; each function returns the texts that are
stored then."""

from __future__ import annotations

import asyncio
import time

import httpx
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai.types import Content, Part
from spade.message import Message

from memory_adk import MemoryService
from memory_core import Memory
from tests.adapters.chats.spade import BOT, PERSON, Hearing, Plain
from tests.app.serve.conftest import Running

MOST_SAID = 300
"""Messages of an ADK session, which is handed over whole after each."""


def client_of(server: Running, name: int, until: float) -> list[str]:
    """A client of the API, which looks for what it has stored."""
    sent: list[str] = []
    with httpx.Client(
        base_url=server.address, headers={"Authorization": f"Bearer {server.key}"}, timeout=300
    ) as client:
        while not sent or time.monotonic() < until:
            sent.append(f"client {name} note {len(sent)}")
            assert client.post("/v1/records", json={"text": sent[-1]}).status_code == 201
            found = client.post("/v1/search", json={"query": sent[-1], "limit": 3})
            assert found.status_code == 200
    return sent


def sessions_of(service: MemoryService, name: int, until: float) -> list[str]:
    """An ADK agent that hands over a conversation again and again as it grows."""
    said, events = list[str](), list[Event]()
    while not said or (time.monotonic() < until and len(said) < MOST_SAID):
        said.append(f"agent {name} says {len(said)}")
        content = Content(role="user", parts=[Part(text=said[-1])])
        events.append(Event(author="user", id=f"{name}-{len(said)}", content=content))
        session = Session(id=f"s{name}", app_name="default", user_id="ann", events=events)
        asyncio.run(service.add_session_to_memory(session))
    return said


async def heard(memory: Memory, name: int, until: float) -> list[str]:
    """A SPADE agent whose behaviour receives messages."""
    said = list[str]()
    agent, hearing = Plain(BOT, "secret", memory=memory.bind(user="ann")), Hearing()
    await agent.home.begin()
    agent.behaviours.append(hearing)
    hearing.set_agent(agent)
    while not said or time.monotonic() < until:
        said.append(f"person {name} asks {len(said)}")
        assert hearing.queue is not None
        await hearing.queue.put(Message(to=BOT, sender=f"{PERSON}/phone", body=said[-1], thread=f"t{name}"))
        await hearing.receive()
    return said
