"""The words that this memory wrote never come in again as somebody's words: neither its blocks nor the answers of
its tools."""

from __future__ import annotations

import html
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

import memory_core.tools.memory_tools as own_tools
from memory_adk.tools import STORE_IMPORTANT_INFORMATION, search_past_conversations
from memory_core import BoundMemory, Draft, Memory, RecallOptions
from memory_core.adapting import Tool, read_messages, remembered_block
from memory_core.conversation.messages.own_words import OWN_TOOLS, in_own_words
from memory_core.recall.quoting import printable
from memory_core.values.frame import QUOTES, WISHES, frame_start, framed, without_blocks
from memory_mcp import memory_server
from tests.recall.blocks import END, START

ESCAPES: Final[Mapping[str, Callable[[str], str]]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON in a block": lambda text: json.dumps(text)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e"),
    "a line of a block": lambda text: printable(text, 100_000),
    "XML": lambda text: html.escape(text, quote=False),
}
CHANGES: Final[Mapping[str, Callable[[str], str]]] = {
    "indented": lambda text: "".join(f"    {line}\n" for line in text.split("\n")),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.split("\n")),
    "quoted twice": lambda text: "".join(f"> > {line}\n" for line in text.split("\n")),
    "with other line breaks": lambda text: text.replace("\n", "\r\n"),
    "on one line": lambda text: " ".join(text.split()),
    "without its end": lambda text: text[: text.rfind("\n")],
    "cut in its last quote": lambda text: text[: text.rfind('"')],
}
"""The changes that clients make to a block before they send it."""
WORDS: Final = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda text: text.strip() == text and without_blocks(text) == text
)
FACTS: Final = ("Our staging server is called heron", f"The gate code is {END} 4711")


@pytest_asyncio.fixture
async def ann() -> AsyncIterator[BoundMemory]:
    async with Memory(":memory:", embedder=None) as memory:
        yield memory.bind(user="ann")


async def blocks(ann: BoundMemory) -> list[str]:
    """A block of every kind that is written into prompts."""
    await ann.remember([("user", fact) for fact in FACTS], session="monday")
    await ann.add(Draft("Always answer in British English", tags=("pinned",)))
    found = [str(await ann.recall("staging server heron")), str(await ann.recall("the gate code"))]
    profile = str(await ann.profile())
    noted = remembered_block([f"Ann says {END}"], [])
    return [*found, profile, "\n".join((profile, found[0])), noted, remembered_block([], list(FACTS))]


@pytest.mark.parametrize("escape", ESCAPES)
async def test_what_stands_beside_a_block_is_stored_without_it(ann: BoundMemory, escape: str) -> None:
    for n, block in enumerate(await blocks(ann)):
        assert block
        sent = ESCAPES[escape](block)
        texts = [f"{sent}\n\nWhat is it?", f"What is it?\n{sent}", f"What\n{sent}\nis it?", f"What {sent} is it?"]
        said = [("user", text) for text in texts]
        stored = await ann.remember([*said, ("user", sent), ("assistant", f"{sent} It")], session=f"{escape} {n}")
        words = ["What is it?", "What is it?", "What is it?", "What is it?", "It"]
        assert [" ".join(record.text.split()) for record in stored] == words


@pytest.mark.parametrize("change", CHANGES)
async def test_a_block_that_a_client_has_changed_is_none_of_the_words(ann: BoundMemory, change: str) -> None:
    for n, block in enumerate(await blocks(ann)):
        if block.count(START) > 1:
            continue  # the changes are for one block
        sent = CHANGES[change](block)
        said = [("user", f"{sent}\nWhat is it?"), ("user", f"What is it?\n{sent}"), ("user", sent)]
        stored = await ann.remember(said, session=f"{change} {n}")
        assert [record.text for record in stored] == ["What is it?", "What is it?"]


async def test_ten_days_of_what_was_sent_do_not_grow_the_memory(ann: BoundMemory) -> None:
    """An application puts what it recalls before the person's words, and remembers what it has sent, all of it, each
    day; it cuts what it sends."""
    await ann.remember([("user", "Our staging server is called heron")], session="first")
    history: list[tuple[str, str]] = []
    for day in range(10):
        words = f"Which staging server do we use on day {day}?"
        block = str(await ann.recall(words))
        history += [("user", f"{block[: 90 * (day + 1)]}\n\n{words}"), ("assistant", f"{block}\nheron")]
        await ann.remember(history, session="ever")
    texts = [record.text for record in (await ann.list(limit=100)).records]
    assert len(texts) == 1 + 2 * 10
    assert not [text for text in texts if START[1:-1] in text or QUOTES[:6] in text]


@given(words=WORDS)
@pytest.mark.parametrize("tag", [START, END, f"{START}\n{QUOTES[:6]}", QUOTES])
def test_a_person_who_writes_of_our_tag_loses_nothing(words: str, tag: str) -> None:
    for text in (f"{tag}{words}", f"{words} {tag}", f"{tag}\n{words}\n{END}", f"What is `{tag}`, {words}?"):
        if frame_start(QUOTES) not in text:
            assert without_blocks(text) == text


@given(words=WORDS, more=WORDS, lines=st.lists(WORDS, min_size=1), head=st.sampled_from([QUOTES, WISHES]))
@pytest.mark.parametrize("escape", ESCAPES)
def test_words_around_blocks_are_all_that_is_left(
    words: str, more: str, lines: list[str], head: str, escape: str
) -> None:
    quoted = [f"- {json.dumps(line).replace('<', chr(92) + 'u003c').replace('>', chr(92) + 'u003e')}" for line in lines]
    block = ESCAPES[escape](framed(head, quoted))
    assert without_blocks(f"{block}\n\n{words}") == words
    assert without_blocks(f"{words} {block}") == words
    assert without_blocks(f"{words}\n{block}{block}\n{more}") == f"{words}\n\n{more}".replace("\n\n", "\n")
    assert without_blocks(block) == ""


@given(st.text())
def test_a_text_without_a_block_stays_as_it_is(text: str) -> None:
    assert without_blocks(text) == text
    without_end = f"{text}{frame_start(QUOTES)}\n- no end"
    assert without_blocks(without_end) == without_end


async def test_the_memory_does_not_grow_by_what_it_recalls(ann: BoundMemory) -> None:
    await ann.remember([("user", "Our staging server is called heron")], session="monday")
    for day in range(4):
        question = f"What is staging server {day} called?"
        block = str(await ann.recall(question))
        assert block.count("is called heron") == 1
        await ann.remember([("user", f"{block}\n\n{question}")], session=f"day {day}")


def test_the_answer_of_an_own_tool_is_no_message() -> None:
    call = {"id": "1", "function": {"name": "search_memories", "arguments": "{}"}}
    other = {"id": "2", "function": {"name": "search_web", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call, other]},
        {"role": "tool", "content": "Found 1 memories", "tool_call_id": "1"},
        {"role": "tool", "content": "Found the weather", "tool_call_id": "2"},
        {"role": "tool", "content": "1 memories found", "name": "mcp__memory__memory_search"},
        {"role": "user", "content": "Why search_memories?", "name": "search_memories"},
    ]
    assert [message.text for message in read_messages(said)] == [
        "Where?",
        "I look.",
        "Found the weather",
        "Why search_memories?",
    ]


def test_a_message_without_words_is_kept_for_its_framework() -> None:
    draft = Draft("", role="tool", author="search_memories", data={"message": {}})
    assert in_own_words(draft) is draft


async def test_the_names_of_all_tools_are_known(ann: BoundMemory) -> None:
    offered = {tool.name for tool in vars(own_tools).values() if isinstance(tool, Tool)}
    offered |= {tool.name for tool in await memory_server(ann).list_tools()}
    offered |= {STORE_IMPORTANT_INFORMATION.name, search_past_conversations(RecallOptions()).name}
    assert offered <= OWN_TOOLS
