"""`eval`: how well the memory answers questions of your own."""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from memory_core.app import showing
from memory_core.app.command import Answer, Invocation, Work
from memory_core.app.json_options import json_object
from memory_core.app.settings import NONE, embedder_of, reranker_of
from memory_core.app.showing import counted
from memory_core.app.why import NOTHING_IN_COMMON, explained
from memory_core.errors import InvalidInputError
from memory_core.evaluation.evaluation import BUDGETS, KS, LIMIT, OURS, Evaluation, QuestionRanks, evaluate, search_of
from memory_core.evaluation.questions import read_questions, resolve, templates
from memory_core.every_record import every_record
from memory_core.handle import BoundMemory, settled
from memory_core.memory import Memory
from memory_core.transfer.copying import copy_memory
from memory_core.values.checks import shown
from memory_core.values.places import check_path, without_key
from memory_core.values.private_files import new_private_file
from memory_core.values.progress import Progress
from memory_core.values.text_lines import lines_in

SETTINGS: Final = ("mode", "every_word", "floor", "context", "diversity", "recency", "importance")
"""Arguments of a search that `--setting` may vary."""


async def eval_(
    invocation: Invocation,
    *,
    questions: Annotated[str, typer.Argument(metavar="QUESTIONS", help="A file, one JSON object a line; - reads it.")],
    make: Annotated[
        int | None,
        typer.Option("--make", min=1, metavar="N", help="Write the file instead: N questions for a person to edit."),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", metavar="EMBEDDER", help="Also with another model of vectors; can be repeated."),
    ] = None,
    rerankers: Annotated[
        list[str] | None,
        typer.Option("--reranker", metavar="MODULE:ATTRIBUTE", help="Also in a reranker's order; can be repeated."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            metavar="JSON",
            help='Also with other settings of a search, such as {"recency": 0.3}; can be repeated.',
        ),
    ] = None,
) -> Answer:
    """Measure how well the memory answers questions of your own.

    A line of QUESTIONS is {"question": "Who has a key?", "expect": ["an id, or words of the memory"]}; without
    "expect", nothing is to be found. Beside the search are BM25, the cosine, and their fusion over the same memories.
    """
    owner = await invocation.owner()
    if make is not None:
        check_path("the file to make", questions)
        return await _made(owner, Path(questions), make)
    asked = read_questions(_lines(questions))
    resolve(asked, await every_record(owner))  # before a model is loaded or anything is copied
    varied = {f"with {given}": search_of(owner, **_setting(given)) for given in settings or ()}
    async with _others(invocation, beside or (), rerankers or ()) as others:
        with invocation.progress("asking") as tell:
            done = await evaluate(
                owner,
                asked,
                others={**varied, **{name: search_of(other) for name, other in others.items()}},
                has_vectors=invocation.settings.embedder != NONE,
                tell=lambda done, total: tell(Progress(done, total, "questions")),
            )
    misses = [(each, await _why(owner, each)) for each in done.missed]
    return Answer(_value(done, misses), Group(*_view(done, misses)))


def _setting(given: str) -> dict[str, Any]:
    """The settings of a search in JSON; what they may be is checked with the first question."""
    wanted = f"a JSON object with some of {', '.join(SETTINGS)}"
    settings = json_object("--setting", given, wanted)
    if not set(settings) <= set(SETTINGS):
        raise InvalidInputError(f"--setting must be {wanted}, not {shown(given)}")
    return settings


def _lines(place: str) -> list[str]:
    if place == "-":
        return lines_in(sys.stdin.read())
    try:
        return lines_in(Path(place).read_text(encoding="utf-8"))
    except OSError as error:  # its own words name the place
        raise InvalidInputError(f"the questions in {without_key(place)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"the questions in {without_key(place)!r} are not text in UTF-8: {error}") from error


async def _made(owner: BoundMemory, file: Path, count: int) -> Answer:
    """Write templates of questions."""
    records = [record for record in await every_record(owner) if record.text.strip()]
    if not records:
        raise InvalidInputError(f"{owner.scope.app}/{owner.scope.user} has no memories to ask about")
    lines = list(templates(records, count))
    try:
        with new_private_file(file) as out:
            out.writelines(f"{line}\n".encode() for line in lines)
    except FileExistsError as error:
        raise InvalidInputError(f"{str(file)!r} exists; give another name, or delete it first") from error
    made = counted(len(lines), "template")
    said = f"{made} in {file}: write each question as a person would ask it, in words of their own"
    return Answer({"file": str(file), "questions": len(lines)}, Text(showing.plain(said)))


@asynccontextmanager
async def _others(
    invocation: Invocation, embedders: Sequence[str], rerankers: Sequence[str]
) -> AsyncGenerator[dict[str, BoundMemory]]:
    """The same memories with other models of vectors, and in the order of rerankers."""
    async with AsyncExitStack() as stack:
        others: dict[str, BoundMemory] = {}
        for name in embedders:
            copy = await stack.enter_async_context(Memory(":memory:", embedder=embedder_of(name)))
            with invocation.progress(f"vectors of {name}") as tell:
                await copy_memory(await invocation.memory(), copy, progress=tell)
            others[f"with {name}"] = copy.bind(app=invocation.settings.app, user=invocation.settings.user)
            if name != NONE:
                await settled(others[f"with {name}"])
        for name in rerankers:
            judged = await stack.enter_async_context(invocation.unopened(read_only=True, reranker=reranker_of(name)))
            others[f"by {name}"] = judged.bind(app=invocation.settings.app, user=invocation.settings.user)
        yield others


async def _why(owner: BoundMemory, missed: QuestionRanks) -> str:
    """The reason why an expected memory is not among the first hits."""
    lacking = next(
        wanted for wanted, rank in zip(missed.wanted, missed.ranks[OURS], strict=True) if rank is None or rank > LIMIT
    )
    found = await explained(owner, missed.question.text, min(lacking))
    if found is None:
        return NOTHING_IN_COMMON
    reason = "it is below the first ten" if found.reason == "shown" else showing.REASONS[found.reason]
    return f"rank {found.rank}: {reason}"


def _value(done: Evaluation, misses: Sequence[tuple[QuestionRanks, str]]) -> dict[str, Any]:
    answerable = done.answerable
    return {
        "questions": len(done.found),
        "answerable": len(answerable),
        "found": {name: {str(k): _share(done.share(name, k)) for k in KS} for name in done.systems},
        "ahead": {
            name: {str(k): dict(zip(("by", "error"), map(_share, done.difference(name, k)), strict=True)) for k in KS}
            for name in done.systems
            if name != OURS
        },
        "blocks": {str(budget): _share(done.in_block(budget)) for budget in BUDGETS},
        "silent": _share(done.silent),
        "misses": [
            {"question": each.question.text, "expected": list(each.question.expected), "why": why}
            for each, why in misses
        ],
    }


def _share(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def _view(done: Evaluation, misses: Sequence[tuple[QuestionRanks, str]]) -> list[RenderableType]:
    head = [counted(len(done.answerable), "question"), *(f"first {k}" for k in KS), "memory-core ahead, first 10"]
    rows = [
        (
            name,
            *(_percent(done.share(name, k)) for k in KS),
            "" if name == OURS else _ahead(*done.difference(name, LIMIT)),
        )
        for name in done.systems
    ]
    views: list[RenderableType] = [showing.table(head, rows)] if done.answerable else []
    if done.answerable:
        shares = [_percent(done.in_block(budget)) for budget in BUDGETS]
        blocks = [f"block of {budget:,} characters" for budget in BUDGETS]
        views.append(showing.table(("whole answer in a", "% of questions"), list(zip(blocks, shares, strict=True))))
    if len(done.found) > len(done.answerable):
        count = len(done.found) - len(done.answerable)
        silent = round(count * done.silent)
        views.append(Text(f"{silent} of {counted(count, 'question')} without an answer found nothing."))
    if misses:
        lines = [(showing.line(each.question.text), why) for each, why in misses]
        views.append(showing.table(("not whole among the first ten", "why"), lines))
    return views


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f}"


def _ahead(by: float, error: float) -> str:
    return f"{100 * by:+.0f}" + ("" if math.isnan(error) else f" +- {100 * error:.0f}")


COMMANDS: Final[Mapping[str, Work]] = {"eval": eval_}
