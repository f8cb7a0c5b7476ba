"""Recall of evidence turns on a file in LoCoMo's format, through the public API.

    python tests/benchmarks/recall.py [FILE] [--words] [--together] [--apart] [--ablation] [--without RULE ...]

LoCoMo (Maharana et al., ACL 2024) is licensed for non-commercial use, so its file is not part of this repository. Every
turn is a record (text, shared caption, speaker, session, time), every conversation an owner. Recall@k is the share of a
question's evidence turns among the first k hits, averaged over the questions that have evidence.

Without a file it is measured on records that are no conversation, Python's own documentation (`python_docs.py`).

--words      no vectors: `embedder=None`
--together   one owner holds all conversations
--apart      every turn by itself: records of no session
--without    leave a rule out, any number of times; --ablation leaves out each in turn
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final
from unittest import mock

from memory_core import Draft, Memory
from memory_core.retrieval import ranking
from memory_core.settings import DEFAULT_EMBEDDER
from python_docs import records

KS: Final = (5, 10, 25)
CATEGORIES: Final = {4: "single-hop", 1: "multi-hop", 2: "temporal", 3: "open-domain", 5: "adversarial"}
RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "words": {"WORDS": 0.0},
    "doubt": {"DOUBT": 0.0},
    "neighbors": {"LENT": 0.0},
    "session": {"SESSION": 0.0},
    "hints": {"HINT": 0.0},
    "role": {"ROLE": 0.0},
    "length": {"LENGTH": 0.0},
    "floor": {},
}
"""The settings of the ranking by which each rule is left out; the floor is an argument of the search."""


@dataclass(frozen=True)
class Question:
    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    name: str
    turns: Sequence[Draft]
    questions: Sequence[Question]


def load(path: Path) -> list[Conversation]:
    """The conversations of a file; turns are named `conversation/D3:12`."""
    return [_conversation(sample) for sample in json.loads(path.read_text())]


def documentation() -> Conversation:
    """Records that are no conversation, each the evidence of one question."""
    known = records()
    questions = [Question(asked, "documentation", frozenset([str(draft.source_key)])) for draft, asked in known]
    return Conversation("python", [draft for draft, _ in known], questions)


def _conversation(sample: Mapping[str, Any]) -> Conversation:
    name, held = sample["sample_id"], sample["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in held if re.fullmatch(r"session_\d+", key))
    turns = [turn for number in numbers for turn in _turns(name, number, held)]
    known = {str(turn.source_key) for turn in turns}
    questions = [
        Question(asked["question"], CATEGORIES[asked["category"]], frozenset(_named(name, asked) & known))
        for asked in sample["qa"]
    ]
    return Conversation(name, turns, [question for question in questions if question.evidence])


def _turns(name: str, number: int, held: Mapping[str, Any]) -> Iterator[Draft]:
    said = " ".join(held[f"session_{number}_date_time"].split())
    when = datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    for turn in held[f"session_{number}"]:
        caption = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        yield Draft(
            turn["text"] + caption,
            kind="message",
            author=turn["speaker"],
            session=f"{name}/{number}",
            occurred_at=when,
            source_key=f"{name}/{turn['dia_id']}",
        )


def _named(name: str, asked: Mapping[str, Any]) -> set[str]:
    """The evidence of a question; the file writes some of it as "D8:6; D9:17" or "D:11:26"."""
    found = re.findall(r"D:?(\d+):(\d+)", " ".join(asked.get("evidence") or ()))
    return {f"{name}/D{int(session)}:{int(turn)}" for session, turn in found}


async def measure(
    memory: Memory, conversations: Sequence[Conversation], *, together: bool, without: Sequence[str] = ()
) -> dict[str, list[tuple[float, ...]]]:
    """Recall at `KS` of each question, by category."""
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    with ExitStack() as stack:
        for rule in without:
            if RULES[rule]:
                stack.enter_context(mock.patch.multiple(ranking, **RULES[rule]))
        for conversation in conversations:
            handle = memory.bind(app="recall", user=_owner(conversation, together=together))
            for question in conversation.questions:
                hits = await handle.search(question.text, limit=max(KS), floor="floor" not in without)
                keys = [hit.record.source_key for hit in hits]
                recall = tuple(len(question.evidence & set(keys[:k])) / len(question.evidence) for k in KS)
                found[question.category].append(recall)
    return found


def _owner(conversation: Conversation, *, together: bool) -> str:
    return "all" if together else conversation.name


def line(title: str, recalls: Sequence[tuple[float, ...]]) -> str:
    means = " ".join(f"{100 * fmean(column):6.1f}" for column in zip(*recalls, strict=True))
    return f"{title:28}{len(recalls):5} {means}"


def overall(title: str, found: Mapping[str, Sequence[tuple[float, ...]]]) -> str:
    return line(title, [recall for recalls in found.values() for recall in recalls])


async def main(arguments: argparse.Namespace) -> None:
    conversations = load(arguments.file) if arguments.file else [documentation()]
    together, without = arguments.together, arguments.without
    async with Memory(":memory:", embedder=None if arguments.words else DEFAULT_EMBEDDER) as memory:
        for conversation in conversations:
            turns = [replace(turn, session=None) if arguments.apart else turn for turn in conversation.turns]
            await memory.bind(app="recall", user=_owner(conversation, together=together)).add_many(turns)
        print(f"{'':28}    n " + " ".join(f"{f'R@{k}':>6}" for k in KS))
        found = await measure(memory, conversations, together=together, without=without)
        for category, recalls in found.items():
            print(line(category, recalls))
        print(overall("all", found))
        for rule in RULES if arguments.ablation else ():
            found = await measure(memory, conversations, together=together, without=[*without, rule])
            print(overall(f"all without {rule}", found), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--without", action="append", choices=sorted(RULES), default=[])
    asyncio.run(main(parser.parse_args()))
