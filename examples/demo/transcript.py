"""The output of the demo: which agent stored a memory, which one found it, and why it ranked."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from memory_core import Hit, MemoryRecord

console = Console(highlight=False)
BAR = 24
"""Length of the longest bar, in characters."""


def scene(title: str, subtitle: str) -> None:
    """Announce the next part of the demo."""
    console.print()
    console.print(Panel(f"[dim]{escape(subtitle)}[/dim]", title=f"[bold]{escape(title)}[/bold]", title_align="left"))


def line(who: str, text: str, *, color: str = "white") -> None:
    """One line of dialogue."""
    console.print(f"  [bold {color}]{escape(who):>9}[/]  {escape(text)}")


def note(text: str) -> None:
    """An aside."""
    console.print(f"             [dim]{escape(text)}[/dim]")


def error(text: str) -> None:
    """Print an error in one line on standard error."""
    Console(stderr=True, highlight=False).print(f"[red]{escape(text)}[/red]", soft_wrap=True)


def commands(path: Path, *, app: str, user: str) -> None:
    """Print the commands that look at what the agents have stored."""
    scene("Afterwards, your terminal", "the file stays; these commands look at what the agents wrote")
    owner = f"--file {shlex.quote(str(path))} --app {app} --user {user}"
    program = "memory-core" if which("memory-core") else f"{shlex.quote(sys.executable)} -m memory_core"
    for rest in (
        "list",
        'search "Where is the spare key?" --explain',
        'why "What should we not cook for Mia?"',
        "stats",
        "serve --write",
    ):
        console.print(f"  {program} {rest} {owner}", soft_wrap=True, markup=False)
    note("the last one prints a link to a page on all of it: search, correct, erase")


def stored(records: Sequence[MemoryRecord]) -> None:
    """Print the records in the file."""
    table = Table("memory", "kind", "author", "via", "id", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for record in records:
        table.add_row(escape(record.text), record.kind, record.author, record.agent, record.id[-8:])
    console.print(table)


def why(query: str, hits: Sequence[Hit], limit: int = 3) -> None:
    """Print the best hits of a question, each with the parts of its score as bars."""
    console.print(f"  [bold]{escape(query)}[/bold]")
    if not hits:
        console.print("     [dim]nothing relevant is remembered[/dim]")
        return
    best = max(part.weighted for hit in hits[:limit] for part in (hit.components or {}).values())
    for rank, hit in enumerate(hits[:limit], 1):
        record = hit.record
        at = record.occurred_at.strftime("%Y-%m-%d %H:%M:%S")
        console.print(f"   {rank}. [cyan]{escape(record.author or '-')}[/] [dim]{at}[/]  {escape(record.text[:160])}")
        parts = sorted((hit.components or {}).items(), key=lambda item: -item[1].weighted)
        for name, part in parts:
            if part.weighted >= 0.05:
                bar = "█" * max(1, round(BAR * part.weighted / best))
                console.print(f"      [dim]{name:>18} {part.weighted:5.2f}[/] [green]{bar}[/]")
