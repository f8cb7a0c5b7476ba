"""One memory, four frameworks: a SPADE agent learns facts that ADK, LangChain and an MCP client recall.

python examples/one_memory.py
python examples/one_memory.py --input conversation.jsonl --questions questions.txt
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # keeps spade_llm's import off the network

import typer

from demo import transcript
from demo.conversation import BadLine, ingest, read
from memory_core import Draft, InvalidInputError, Memory, MemoryCoreError

MAX_BAD_LINES = 10
"""Maximum number of bad lines to report."""


def main(
    input: Annotated[Path | None, typer.Option(help="A conversation, one JSON object per line.")] = None,  # noqa: A002
    questions: Annotated[Path | None, typer.Option(help="Questions to ask, one per line.")] = None,
    store: Annotated[Path | None, typer.Option(help="The memory file; for a conversation .demo/NAME.db.")] = None,
) -> None:
    """Show four frameworks with one memory, or store your own conversation and query it."""
    if input is None:
        from demo import day  # noqa: PLC0415  (four frameworks take seconds to import; a conversation needs none)

        with tempfile.TemporaryDirectory() as folder:
            path = store or Path(folder) / "ann.db"
            asyncio.run(day.stored_and_asked(path))
            day.asked_at_four(path)
            day.asked_at_six(path)
            day.next_morning(path)
    else:
        asked = [] if questions is None else read_questions(questions)
        bad = asyncio.run(own_conversation(input, asked, store or Path(".demo") / f"{input.stem}.db"))
        raise typer.Exit(1 if bad else 0)


def read_questions(path: Path) -> list[str]:
    """The non-blank lines of a file."""
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} cannot be read as questions: it is not text in UTF-8 ({error})") from error


async def own_conversation(path: Path, questions: list[str], store: Path) -> int:
    """Store a conversation in a memory file, ask the questions, and return the number of bad lines."""
    lines = list(read(path))
    turns = [line for line in lines if isinstance(line, Draft)]
    bad = [line for line in lines if isinstance(line, BadLine)]
    async with Memory(store) as memory:
        owner = memory.bind(app="demo", user="ann")
        before = (await owner.stats()).records
        with transcript.progress(f"remembering {path.name}", len(turns)) as advance:
            async for done in ingest(owner, turns):
                advance(done)
        after = (await owner.stats()).records
        transcript.note(f"{len(turns)} lines read, {after - before} of them new, {after} memories in {store}")
        for question in questions:
            transcript.why(question, await owner.search(question, limit=3, explain=True))
    for line in bad[:MAX_BAD_LINES]:
        transcript.error(f"{path.name}, line {line.number}: {line.reason}")
    if len(bad) > MAX_BAD_LINES:
        transcript.error(f"… and {len(bad) - MAX_BAD_LINES} more")
    if bad:
        transcript.error(f"{len(bad)} of {len(lines)} lines could not be used")
    return len(bad)


if __name__ == "__main__":
    try:
        typer.run(main)
    except (MemoryCoreError, OSError) as problem:
        transcript.error(str(problem))
        sys.exit(2)
