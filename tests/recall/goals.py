"""The table of goals of a block: what it holds, what it pushes, what a stranger costs, and how long it takes.

    python -m tests.recall.goals [--quick]

The small talk, the follow-ups and the everyday chats were written and committed before anything was run on them; the
phrases of small talk that a message is compared with were written later, by the same hand.

--quick   a part of the questions, for a first look
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from statistics import fmean, median

from memory_core import Draft, Memory
from tests.recall import everyday_chats, poison, pushing

_NOTES = 5_000
_TIMED = 40


async def times() -> tuple[float, float]:
    """The median times of a search and of a recall among short notes, in milliseconds."""
    async with Memory(":memory:") as memory:
        ann = memory.bind(user="ann")
        things = ("bicycle", "laptop", "garden shed", "passport", "printer", "balcony", "fridge", "camera")
        for start in range(0, _NOTES, 1_000):
            await ann.add_many(
                [Draft(f"The {things[n % 8]} of room {n // 8} was repaired") for n in range(start, start + 1_000)]
            )
        queries = [f"When was the {things[n % 8]} of room {n} repaired?" for n in range(_TIMED)]
        await ann.recall(queries[0])
        taken: list[float] = []
        for call in (ann.search, ann.recall):
            each: list[float] = []
            for query in queries:
                began = time.perf_counter()
                await call(query)
                each.append(1_000 * (time.perf_counter() - began))
            taken.append(median(each))
        return taken[0], taken[1]


async def table(*, quick: bool) -> None:
    """Print the goals, one line each."""
    for budget, tally in (await everyday_chats.measure()).items():
        _print(
            f"everyday chats, {budget} characters",
            f"{tally.in_block}; list {tally.in_list}, with dates {tally.in_dated_list}, of {tally.questions}",
        )
    for kind, pushes in (await pushing.measure(kinds=("chats", "facts"))).items():
        _print(f"small talk that pushes nothing, {kind}", f"{fmean(pushes.silent):.1%} of {len(pushes.silent)}")
        _print(f"questions that push, {kind}", f"{fmean(pushes.answered):.1%} of {len(pushes.answered)}")
        _print(f"of these with the answer of the pulled block, {kind}", f"{fmean(pushes.kept):.1%}")
        _print(f"lines of a right pushed block, median, {kind}", f"{median(pushes.lines):.0f}")
    found = await pushing.follow_up("facts")
    asked = len(pushing.FOLLOW_UPS)
    _print("follow-ups", f"{found.in_conversation}; alone {found.alone}, full question {found.full} of {asked}")
    _print("full questions after another conversation", f"{found.after_another} of {asked}")
    _print("small talk in the midst of a conversation that pushes nothing", f"{found.silent} of {asked}")
    for language, pushed in (await pushing.by_language()).items():
        _print(f"evidence pushed, {language}", f"{fmean(pushed.kept):.1%} of {len(pushed.kept)}")
        if pushed.silent:
            _print(f"small talk that pushes nothing, {language}", f"{fmean(pushed.silent):.1%} of {len(pushed.silent)}")
    for who, answered in (("a stranger", False), ("an answered stranger", True)):
        for budget, loss in (await poison.measure(every=4 if quick else 1, answered=answered)).items():
            for name, lost in loss.lost.items():
                _print(
                    f"lost to {who}, {name}, {budget} characters; begins with them",
                    f"{lost / loss.clean:.0%} of {loss.clean}; {loss.led[name] / loss.asked:.0%}",
                )
    search, recall = await times()
    _print(f"a recall among {_NOTES} notes", f"{recall:.1f} ms, {recall / search:.2f} times a search")


def _print(what: str, value: str) -> None:
    sys.stdout.write(f"{what:<66} {value}\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    asyncio.run(table(quick=parser.parse_args().quick))


if __name__ == "__main__":
    main()
