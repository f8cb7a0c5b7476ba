"""Progress of long operations: the value they report, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of `reembed`, `backup`, `maintain` or `copy`.

    An operation reports it before it begins, after every batch, and when it is done.

    The function that is given as `progress=` is called with one before the first step, after each batch, and at the
    end. It runs on the core loop and must return at once; an error that it raises ends the operation like any other
    failure.
    """

    done: int
    """Finished steps: records, vectors or pages, depending on the operation."""
    total: int
    """All steps known so far; concurrent writes may add some. 0 while their number is not known."""
    part: str = ""
    """The part of the operation that the steps belong to, such as "owner 2 of 7"; empty if there is only one."""


ProgressCallback = Callable[[Progress], None]
"""Called on the core loop, so it must return at once. An exception it raises ends the operation like any failure."""


@contextmanager
def progress_bar(title: str) -> Generator[ProgressCallback]:
    """Show a bar on standard error while the block runs, and yield the callback that moves it.

    ```python
    from memory_core import DEFAULT_EMBEDDER, Memory, progress_bar, run_sync

    with Memory(":memory:", embedder=None) as memory, progress_bar("computing vectors") as progress:
        run_sync(memory.reembed, DEFAULT_EMBEDDER, progress=progress)
    ```

    Raises:
        ImportError: rich is missing; the extra `cli` installs it.
    """
    try:
        from rich.console import Console  # noqa: PLC0415  (an extra)
        from rich.markup import escape  # noqa: PLC0415
        from rich.progress import Progress as Bars  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("`progress_bar` needs rich: pip install 'memory-core[cli]'") from error
    with Bars(console=Console(stderr=True)) as bars:
        task = bars.add_task(escape(title), total=None)

        def show(progress: Progress) -> None:
            counted = "" if progress.total or not progress.done else f"{progress.done:,}"
            description = escape(", ".join(filter(None, (title, progress.part, counted))))
            bars.update(task, description=description, completed=progress.done, total=progress.total or None)

        yield show
