"""Facts, summaries and patterns from weeks of conversations, with a stand-in for a model, and taken back at the end.

python examples/facts_from_chats.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from memory_core import BoundMemory, ChatMessage, Draft, MaintainPolicy, Memory, Where, maintain, undo_maintenance
from memory_core.lifecycle import ExtractiveSummarizer, PatternReflector

MONDAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
SAID = (
    ("user", "How should authentication with tokens work?"),
    ("assistant", "Sign the tokens, and let them expire after an hour."),
    ("user", "Good. By the way, I'm allergic to peanuts. What can I cook tonight?"),
    ("assistant", "Try rice with lentils, carrots and ginger."),
)


def week(number: int) -> list[Draft]:
    """A conversation on Monday, and a remark on every other day."""
    home = "I live in Oslo." if number < 4 else "I moved to Bergen."
    said = [(minute, role, text) for minute, (role, text) in enumerate((*SAID, ("user", home)))]
    said += [(24 * 60 * day, "user", "The build is green.") for day in range(1, 7)]
    return [
        Draft(
            text,
            kind="message",
            role="user" if role == "user" else "assistant",
            author="Ann" if role == "user" else "bot",
            session=f"week {number}",
            occurred_at=MONDAY + timedelta(days=7 * number, minutes=minute),
        )
        for minute, role, text in said
    ]


class StandIn:
    """Answers like a model, so that this runs anywhere; pass a real chat model instead (see docs/knowledge.md)."""

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """One line for each thing to remember."""
        facts, _, turns = messages[1]["content"].partition("Conversation:")
        homes = {
            "Bergen" if "Bergen" in line else "Oslo": line.split()[0] for line in facts.splitlines() if "lives" in line
        }
        said: list[str] = []
        for turn in turns.splitlines():
            number, home = turn.partition(" ")[0], "Bergen" if "Bergen" in turn else "Oslo"
            if "peanuts" in turn and "allergic" not in facts:
                said.append(f"add {number} fact: Ann is allergic to peanuts")
            elif ("I live" in turn or "I moved" in turn) and home not in homes:
                known = next(iter(homes.values()), None)
                said.append(
                    f"correct {number} {known}: Ann lives in {home}"
                    if known
                    else f"add {number} fact: Ann lives in {home}"
                )
        return "\n".join(said) or "nothing"


async def show(ann: BoundMemory, title: str, *kinds: str) -> None:
    """Print the active memories of some kinds."""
    page = await ann.list(where=Where(kinds=kinds), order="oldest")
    print(f"{title}:", *(f"  {line}" for record in page.records for line in record.text.splitlines()[:3]), sep="\n")


async def main() -> None:
    """Derive, show, recall, undo."""
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="demo", user="Ann")  # the name under which she speaks
        for number in range(8):
            await ann.add_many(week(number))
        done = await maintain(
            ann,
            MaintainPolicy(contradictions="supersede"),
            model=StandIn(),
            summarizer=ExtractiveSummarizer(),
            reflector=PatternReflector(),
        )
        await show(ann, "Facts", "fact", "preference", "event")
        await show(ann, "Patterns", "insight")
        print("Summaries:", len((await ann.list(where=Where(kinds=["summary"]))).records))
        print((await ann.recall("What is Ann allergic to?", limit=1)).text.splitlines()[3])
        await undo_maintenance(ann, done)
        print("Taken back:", (await ann.stats()).by_state["active"], "memories")


if __name__ == "__main__":
    asyncio.run(main())
