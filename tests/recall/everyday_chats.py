"""Does a block hold the answer as often as a plain list? Forty everyday chats, `recall` beside the hits of `search`.

    python -m tests.recall.everyday_chats [--budgets 600 1500 4000] [--missing]

Each chat of `tests/corpora/everyday_chats.jsonl` is the memory of a user, filled by `remember`. A question counts where
its answer stands in the text. The plain list holds the hits of `search`, best first, each as "role: text" on a line of
its own; a text that does not fit is passed over. It has no header, quotes or dates, so it has room for more than the
block. The dated list has the date before each line, since the block shows dates too.
The best hit counts as present if it is in the block, as a line or beside one.

--missing   print the questions that the list answers and the block does not, and the best hits that are missing
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from memory_core import PULLED, BoundMemory, Hit, Memory, Message

CHATS: Final = Path(__file__).parents[1] / "corpora" / "everyday_chats.jsonl"
BUDGETS: Final = (600, 1_500, 4_000)
"""Characters of a block."""
_LISTED: Final = 50
"""Hits of the plain list: more than the largest budget holds."""


@dataclass(slots=True)
class Tally:
    """The evidence that one budget held."""

    questions: int = 0
    found: int = 0
    """Questions for which the search found anything."""
    in_block: int = 0
    in_dated_list: int = 0
    in_list: int = 0
    best_in_block: int = 0
    missing: list[str] = field(default_factory=list[str])


def chats() -> Iterator[dict[str, Any]]:
    """The chats of the corpus."""
    with CHATS.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


async def fill(user: BoundMemory, chat: dict[str, Any]) -> None:
    """Remember a chat as an application hands it over, turn by turn."""
    for session in chat["sessions"]:
        at = datetime.fromisoformat(session["at"])
        turns = [
            Message(text, role=role, occurred_at=at + timedelta(minutes=n))
            for n, (role, text) in enumerate(session["turns"])
        ]
        await user.remember(turns, session=session["id"])


def plain_list(hits: Sequence[Hit], budget: int, *, dated: bool = False) -> str:
    """The texts of the hits that fit, best first."""
    lines: list[str] = []
    for hit in hits:
        date = f"{hit.record.occurred_at:%Y-%m-%d} " if dated else ""
        line = f"{date}{hit.record.role}: {hit.record.text}"
        if len(line) + 1 <= budget:
            lines.append(line)
            budget -= len(line) + 1
    return "\n".join(lines)


async def ask(user: BoundMemory, question: str, answer: str, tallies: dict[int, Tally]) -> None:
    """Count one question at every budget."""
    hits = await user.search(question, limit=_LISTED)
    for budget, tally in tallies.items():
        recalled = await user.recall(question, PULLED, max_chars=budget)
        # The block is quoted as JSON strings are; the answers of the corpus have quotation marks at times.
        shown = recalled.text.replace('\\"', '"')
        listed = plain_list(hits, budget)
        tally.questions += 1
        tally.found += bool(hits)
        tally.in_block += answer in shown
        tally.in_dated_list += answer in plain_list(hits, budget, dated=True)
        tally.in_list += answer in listed
        best = bool(hits) and hits[0].record.id in {record.id for record in recalled.records}
        tally.best_in_block += best
        if answer in listed and answer not in shown:
            tally.missing.append(f"{budget}: {question} -> {answer}")
        if hits and not best:
            tally.missing.append(f"{budget}: {question}: the best hit {hits[0].record.text[:80]!r}")


async def measure(budgets: Sequence[int] = BUDGETS) -> dict[int, Tally]:
    """Ask every question of every chat, each chat in a memory of its own user."""
    tallies = {budget: Tally() for budget in budgets}
    async with Memory(":memory:") as memory:
        for chat in chats():
            user = memory.bind(app="chats", user=chat["name"])
            await fill(user, chat)
            for each in chat["questions"]:
                await ask(user, each["q"], each["answer"], tallies)
    return tallies


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", nargs="+", type=int, default=BUDGETS)
    parser.add_argument("--missing", action="store_true")
    arguments = parser.parse_args()
    for budget, tally in asyncio.run(measure(arguments.budgets)).items():
        sys.stdout.write(
            f"{budget:>6} characters: answer in the block {tally.in_block}, in the list {tally.in_list}, "
            f"with dates {tally.in_dated_list}, of {tally.questions}; best hit in the block {tally.best_in_block} of "
            f"{tally.found}\n"
        )
        if arguments.missing:
            sys.stdout.writelines(f"        {line}\n" for line in tally.missing)


if __name__ == "__main__":
    main()
