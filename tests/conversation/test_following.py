"""Whatever a person does with a conversation, the memory has what it shows: once, and nothing that was taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory_core import BoundMemory, Draft, Memory, utc_now
from memory_core.adapting import Thread, Visible, digest, keep

SESSION = "monday"


@dataclass(frozen=True)
class Step:
    """One turn: what a person does before it, and what the run itself does to the thread."""

    text: str
    edits: int | None = None
    """The place of a message that is edited."""
    removes: int | None = None
    """The place of a message that is removed. Not the first one: threads are trimmed at their beginning."""
    returns: int | None = None
    """The earlier turn after which the conversation goes on, on its branch."""
    trims: bool = False
    """Whether the run drops all but the last two messages."""
    rewrites: bool = False
    """Whether the run clears the first message."""
    again: bool = False
    """Whether the turn is handed over twice, as by a retry or a replay."""
    set_by: int = 0
    """By how many hours the clock is set before the turn."""


Turn = tuple[tuple[Visible, ...], dict[str, str]]


@dataclass
class Chat:
    """A chat with branches, and what a person has said on the visible one."""

    handle: BoundMemory
    visible: tuple[Visible, ...] = ()
    said: dict[str, str] = field(default_factory=dict[str, str])
    """The text of each message by id, in order."""
    turns: list[Turn] = field(default_factory=list["Turn"])
    count: int = 0

    async def step(self, step: Step) -> None:
        is_fork = bool(self.turns) and step.returns is not None
        if is_fork:
            visible, said = self.turns[(step.returns or 0) % len(self.turns)]
            self.visible, self.said = visible, dict(said)
        self._edit(step)
        self._say("user", step.text)
        began = {message.id or "": digest(message.text) for message in self.visible}
        self._run(step)
        for _ in range(1 + step.again):
            await self._keep(Thread(self.visible, began, is_whole=True, is_fork=is_fork), [len(self.visible) - 1])
        self._say("assistant", f"answer {self.count}")
        for _ in range(1 + step.again):
            await self._keep(Thread(self.visible, began, is_whole=True, is_over=True), [len(self.visible) - 1])
        self.turns.append((self.visible, dict(self.said)))

    def _say(self, role: str, text: str) -> None:
        self.count += 1
        message = Visible("user" if role == "user" else "assistant", text, str(self.count))
        self.visible = (*self.visible, message)
        self.said[str(self.count)] = text

    def _edit(self, step: Step) -> None:
        if step.removes is not None and len(self.visible) > 1:
            place = 1 + step.removes % (len(self.visible) - 1)
            self.said.pop(str(self.visible[place].id))
            self.visible = (*self.visible[:place], *self.visible[place + 1 :])
        if step.edits is not None and self.visible:
            place = step.edits % len(self.visible)
            message = replace(self.visible[place], text=f"edited {self.count} {step.text}")
            self.visible = (*self.visible[:place], message, *self.visible[place + 1 :])
            self.said[str(message.id)] = message.text

    def _run(self, step: Step) -> None:
        if step.rewrites and len(self.visible) > 1:
            first = replace(self.visible[0], text=f"[cleared {self.count}]")
            if step.edits is not None:  # it is stored as redacted, never as typed
                self.said[str(first.id)] = first.text
            self.visible = (first, *self.visible[1:])
        if step.trims:
            gone, self.visible = self.visible[:-2], self.visible[-2:]
            for message in gone[: step.edits is not None]:  # the new words were never shown, and the old ones retracted
                self.said.pop(str(message.id))

    async def _keep(self, thread: Thread, new: Sequence[int]) -> None:
        async def drafts(places: Sequence[int]) -> list[Draft]:
            given = [thread.messages[place] for place in places]
            return [Draft(each.text, role=each.role, kind="message", session=SESSION) for each in given]

        await keep(self.handle, SESSION, thread, new, drafts)


async def remembered(steps: Sequence[Step]) -> tuple[list[str], list[str]]:
    ahead = timedelta()
    async with Memory(":memory:", embedder=None, clock=lambda: utc_now() + ahead) as memory:
        chat = Chat(memory.bind(user="ann"))
        for step in steps:
            ahead += timedelta(hours=step.set_by)
            await chat.step(step)
        page = await chat.handle.list(order="oldest", limit=1_000)
        return [record.text for record in page.records], list(chat.said.values())


TEXTS = st.sampled_from(["yes", "no", "hi", "my cat is called Pepper"])
PLACES = st.none() | st.integers(0, 9)
CLOCKS = st.integers(-2, 2)
PERSONS = st.builds(Step, TEXTS, edits=PLACES, removes=PLACES, returns=PLACES, again=st.booleans(), set_by=CLOCKS)
RUNS = st.builds(
    Step,
    TEXTS,
    edits=st.none() | st.just(0),
    trims=st.booleans(),
    rewrites=st.booleans(),
    again=st.booleans(),
    set_by=CLOCKS,
)


@given(st.lists(PERSONS, max_size=6))
def test_what_a_person_changes_is_followed(steps: list[Step]) -> None:
    found, said = asyncio.run(remembered(steps))
    assert sorted(found) == sorted(said)


@given(st.lists(RUNS, max_size=6))
def test_what_a_run_changes_is_not(steps: list[Step]) -> None:
    found, said = asyncio.run(remembered(steps))
    assert sorted(found) == sorted(said)
