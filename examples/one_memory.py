"""One memory, four frameworks: a SPADE agent learns facts that ADK, LangChain and an MCP client recall.

python examples/one_memory.py
python examples/one_memory.py --input conversation.jsonl --questions questions.txt
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Final

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # keeps spade_llm's import off the network

import typer

from demo import transcript
from memory_core import MemoryCoreError
from memory_core.app.main import main as memory_core

FOLDER: Final = Path(".demo")
DEMO_FILE: Final = FOLDER / "ann.db"


def main(
    input: Annotated[Path | None, typer.Option(help="A conversation, one JSON object per line.")] = None,  # noqa: A002
    questions: Annotated[Path | None, typer.Option(help="Questions to ask, one per line.")] = None,
    store: Annotated[Path | None, typer.Option(help="The memory file; for a conversation .demo/NAME.db.")] = None,
) -> None:
    """Show four frameworks with one memory, or store your own conversation and query it."""
    asked = [] if questions is None else _questions(questions)
    if store is None:
        FOLDER.mkdir(exist_ok=True)
    if input is None:
        from demo import day  # noqa: PLC0415  (four frameworks take seconds to import; a conversation needs none)

        if store is None:  # begin without what an earlier demo has left
            for left in FOLDER.glob(f"{DEMO_FILE.name}*"):
                left.unlink()
        path = store or DEMO_FILE
        asyncio.run(day.stored_and_asked(path))
        day.asked_at_four(path)
        day.asked_at_six(path)
        day.next_morning(path)
        _ask(asked, path, "your question, to what the agents have stored")
        transcript.commands(path, app="demo", user="ann")
    else:
        file = store or FOLDER / f"{input.stem}.db"
        code = memory_core(["import", "--format", "conversation", "--yes", *_owner(file), "--", str(input)])
        _ask(asked, file, "your question, to your conversation")
        raise typer.Exit(code)


def _questions(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        transcript.error(f"the questions in {path} cannot be read: {reason}")
        raise typer.Exit(2) from error
    return [line.strip() for line in lines if line.strip()]


def _ask(questions: list[str], file: Path, of_what: str) -> None:
    for question in questions:
        transcript.scene(question, of_what)
        memory_core(["search", "--limit", "3", *_owner(file), "--", question])


def _owner(file: Path) -> list[str]:
    return ["--file", str(file), "--app", "demo", "--user", "ann"]


if __name__ == "__main__":
    try:
        typer.run(main)
    except (MemoryCoreError, OSError) as problem:
        transcript.error(str(problem))
        sys.exit(2)
