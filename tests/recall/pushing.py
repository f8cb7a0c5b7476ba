"""The memories that are pushed into prompts: small talk has to bring nothing, a question its evidence, and a follow-up
as much.

Memories: forty everyday chats, each the memory of a user (`everyday_chats`); fifty facts of one user, the facts of
`follow_ups.jsonl`; and all of it together as the memory of one user.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memory_core import PULLED, PUSHED, BoundMemory, Draft, Memory, RecallOptions
from tests.corpora.loading import owners as people
from tests.recall.everyday_chats import chats, fill

CORPORA: Final = Path(__file__).parents[1] / "corpora"
SMALL_TALK: Final[Sequence[dict[str, str]]] = [
    json.loads(line) for line in (CORPORA / "small_talk.jsonl").read_text("utf-8").splitlines()
]
FOLLOW_UPS: Final[Sequence[dict[str, Any]]] = [
    json.loads(line) for line in (CORPORA / "follow_ups.jsonl").read_text("utf-8").splitlines()
]


@dataclass(slots=True)
class Pushes:
    """The counts of what was pushed into prompts from one kind of memory."""

    silent: list[bool] = field(default_factory=list[bool])
    """For each message of small talk, whether nothing was pushed."""
    kept: list[bool] = field(default_factory=list[bool])
    """For each question with its answer in the pulled block, whether it is in the pushed one."""
    answered: list[bool] = field(default_factory=list[bool])
    """For each of these questions, whether anything was pushed."""
    lines: list[int] = field(default_factory=list[int])
    """Lines of each pushed block that has the answer."""
    misses: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Owner:
    """A memory, and what is asked of it."""

    kind: str
    handle: BoundMemory
    questions: Sequence[tuple[str, str]]
    """Question and answer."""
    small_talk: Sequence[str]


@asynccontextmanager
async def owners(kinds: Sequence[str] = ("chats", "facts", "together")) -> AsyncGenerator[list[Owner]]:
    """The memories, filled."""
    said = [each["text"] for each in SMALL_TALK]
    facts = [Draft(each["fact"]) for each in FOLLOW_UPS]
    about_facts = [(each["full"], each["answer"]) for each in FOLLOW_UPS]
    async with Memory(":memory:") as memory:
        found: list[Owner] = []
        whole = memory.bind(app="push", user="together")
        for number, chat in enumerate(chats()):
            questions = [(each["q"], each["answer"]) for each in chat["questions"]]
            if "chats" in kinds:
                user = memory.bind(app="push", user=chat["name"])
                await fill(user, chat)
                found.append(Owner("chats", user, questions, said[number::40]))
            if "together" in kinds:
                named = {**chat, "sessions": [{**s, "id": f"{chat['name']} {s['id']}"} for s in chat["sessions"]]}
                await fill(whole, named)
        for kind, user in (("facts", memory.bind(app="push", user="facts")), ("together", whole)):
            if kind in kinds:
                await user.add_many(facts)
                found.append(Owner(kind, user, about_facts, said))
        yield found


async def measure(
    options: RecallOptions = PUSHED, kinds: Sequence[str] = ("chats", "facts", "together")
) -> dict[str, Pushes]:
    """The counts of what is pushed from each kind of memory."""
    async with owners(kinds) as found:
        pushes = {owner.kind: Pushes() for owner in found}
        for owner in found:
            await _push(owner, options, pushes[owner.kind])
    return pushes


async def _push(owner: Owner, options: RecallOptions, to: Pushes) -> None:
    for text in owner.small_talk:
        block = await owner.handle.recall(text, options)
        to.silent.append(not block)
        if block:
            to.misses.append(f"not silent: {text!r}: {block.hits[0].record.text[:60]!r}")
    for question, answer in owner.questions:
        if answer not in _unquoted(str(await owner.handle.recall(question, PULLED))):
            continue
        block = await owner.handle.recall(question, options)
        to.answered.append(bool(block))
        to.kept.append(answer in _unquoted(str(block)))
        if to.kept[-1]:
            to.lines.append(len(block.hits))
        else:
            to.misses.append(f"lost: {question!r} -> {answer!r} ({len(block.hits)} lines)")


def _unquoted(block: str) -> str:
    return block.replace('\\"', '"')


@dataclass(slots=True)
class FollowedUp:
    """The number of follow-ups that have their answer in a pushed block."""

    alone: int = 0
    in_conversation: int = 0
    full: int = 0
    """The same question, asked as it would be without a conversation."""
    after_another: int = 0
    """The full question after a conversation about something else."""
    silent: int = 0
    """Of as many messages of small talk in these conversations, how many bring nothing."""
    misses: list[str] = field(default_factory=list[str])


async def follow_up(kind: str, options: RecallOptions = PUSHED) -> FollowedUp:
    """Ask every follow-up of a memory of the kind `facts` or `together`."""
    counted = FollowedUp()
    async with owners([kind]) as found:
        user = found[0].handle
        for number, each in enumerate(FOLLOW_UPS):
            said = [(role, text) for role, text in each["conversation"]]
            other = [(role, text) for role, text in FOLLOW_UPS[number - 7]["conversation"]]
            answer = each["answer"]
            counted.alone += answer in str(await user.recall(each["question"], options))
            is_found = answer in str(await user.recall(each["question"], options, conversation=said))
            counted.in_conversation += is_found
            counted.full += answer in str(await user.recall(each["full"], options))
            counted.after_another += answer in str(await user.recall(each["full"], options, conversation=other))
            text = SMALL_TALK[4 * number]["text"]
            is_silent = not await user.recall(text, options, conversation=said)
            counted.silent += is_silent
            if not is_found:
                counted.misses.append(f"follow-up: {said} {each['question']!r} -> {answer!r}")
            if not is_silent:
                counted.misses.append(f"not silent after {said}: {text!r}")
    return counted


@dataclass(frozen=True, slots=True)
class InLanguage:
    """The outcome for a person who writes one language."""

    kept: list[bool]
    """True for each question whose evidence is in the pushed block."""
    silent: list[bool]
    """True for each message of small talk in that language to which nothing was pushed."""


async def by_language(options: RecallOptions = PUSHED) -> dict[str, InLanguage]:
    """Ask the questions of `languages.jsonl` and `italian_portuguese.jsonl`, and say the small talk of their
    languages."""
    found: dict[str, InLanguage] = {}
    async with Memory(":memory:") as memory:
        for person in [*people("languages"), *people("italian_portuguese")]:
            user = memory.bind(app="push", user=person.name)
            await user.add_many(person.records)
            blocks = [(await user.recall(each.text, options), each.evidence) for each in person.questions]
            kept = [set(evidence) <= {record.source_key for record in block.records} for block, evidence in blocks]
            said = [each["text"] for each in SMALL_TALK if each["language"] == person.name]
            found[person.name] = InLanguage(kept, [not await user.recall(text, options) for text in said])
    return found
