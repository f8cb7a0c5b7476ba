"""How far a long operation has come: what it reports, and a bar that shows it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an operation has come: `add_many`, `reembed`, `backup` or `migrate`.

    An operation reports the first time before it begins, again after every batch, and the last time when it is done.
    """

    done: int
    """Steps that are finished: records, vectors or pages, whatever the operation counts."""
    total: int
    """All steps, as far as they are known now: what others write meanwhile may add some."""
    part: str = ""
    """The part of the operation that the steps belong to, such as "owner 2 of 7"; empty where there is only one."""


ProgressCallback = Callable[[Progress], None]
"""Called on the memory's own loop, so it has to return at once. What it raises ends the operation like any failure."""


@contextmanager
def whole(progress: ProgressCallback | None, total: int) -> Generator[None]:
    """Report the beginning of an operation, and its end if it ends well."""
    if progress is not None:
        progress(Progress(0, total))
    yield
    if progress is not None:
        progress(Progress(total, total))


@contextmanager
def progress_bar(title: str) -> Generator[ProgressCallback]:
    """Show a bar on standard error while the block runs, and yield the callback that moves it.

    ```python
    from memory_core import Memory, progress_bar, run_sync

    ann = Memory(":memory:", embedder=None).bind(user="ann")
    with progress_bar("adding") as progress:
        run_sync(ann.add_many, ["green tea", "black tea"], progress=progress)
    ```

    Raises:
        ImportError: rich is missing; the extra `cli` brings it.
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
            description = escape(f"{title}, {progress.part}" if progress.part else title)
            bars.update(task, description=description, completed=progress.done, total=progress.total)

        yield show
