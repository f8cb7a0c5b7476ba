"""The form of a command: an async function of an `Invocation` and its own options, which returns an `Answer`.

The decorator adds the options that every command has, opens and closes the memory, and prints the answer.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, cast

import typer
from rich.console import RenderableType
from rich.text import Text

from memory_core.addresses import FORMS, exists, is_server, memory_at
from memory_core.app import showing
from memory_core.app.settings import NONE, Settings, embedder_of, settings
from memory_core.errors import InvalidInputError, StoreUnavailableError
from memory_core.handle import BoundMemory
from memory_core.memory import Memory
from memory_core.supplied import Reranker
from memory_core.values.limits import CACHE_BYTES
from memory_core.values.places import check_path, without_key
from memory_core.values.progress import ProgressCallback, progress_bar
from memory_core.values.zones import MACHINE_ZONE

File = Annotated[
    str | None,
    typer.Option("--file", "-f", help=f"The memory: {FORMS}. Default: memory.db."),
]
App = Annotated[str | None, typer.Option("--app", help="The app of the owner. Default: default.")]
User = Annotated[str | None, typer.Option("--user", "-u", help="The user of the owner. Default: your login.")]
EmbedderName = Annotated[
    str | None,
    typer.Option("--embedder", help="The model of the vectors: english, openai:MODEL, module:attribute, ... or none."),
]
WordsOnly = Annotated[bool, typer.Option("--words-only", help="The same as --embedder none: no model is loaded.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before what cannot be undone.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of a command, and its exit code."""

    json: object
    view: RenderableType | None
    """`None` if the command wrote to standard output itself."""
    code: int = 0
    """0: done; 1: done, but not everything is as asked for, and the view says what."""


def insist_on_existing(address: str, way_out: str = "`memory-core add` creates it") -> None:
    """Refuse a file that does not exist, because opening it would create a file for a misspelt name.

    Args:
        way_out: The end of the error.

    Raises:
        StoreUnavailableError: There is no such file.
    """
    if exists(address):
        return
    path = Path(address).expanduser()
    if path.exists():
        raise StoreUnavailableError(f"{address!r} is not a file; give the path of a memory file")
    if not path.parent.is_dir():
        raise StoreUnavailableError(f"there is no folder {str(path.parent)!r}, so no memory file {address!r}")
    raise StoreUnavailableError(f"there is no memory file {address!r}; {way_out}")


class Invocation:
    """One call of a command: its settings, and the memory that it works on, opened when it first asks for it."""

    def __init__(self, given: Settings) -> None:
        self.settings = given
        self._memory: Memory | None = None

    @property
    def path(self) -> Path:
        """The path of the memory.

        Raises:
            InvalidInputError: It is not in a file but on a server.
        """
        if is_server(self.settings.file):
            raise InvalidInputError(
                f"{without_key(self.settings.file)!r} is the address of a server, and this command works on a file; "
                "give --file the path of one"
            )
        return Path(self.settings.file).expanduser()

    async def memory(
        self,
        *,
        create: bool = False,
        words_only: bool = False,
        read_only: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> Memory:
        """The open memory; a file is only read if the command says so, or if this user cannot write it.

        Raises:
            StoreUnavailableError: There is no such file, and the command does not create one.
        """
        if self._memory is None:
            if not create:
                insist_on_existing(self.settings.file)
            self._memory = self.unopened(words_only=words_only, read_only=read_only, cache_bytes=cache_bytes)
            await self._memory.open()
        return self._memory

    def unopened(
        self,
        *,
        words_only: bool = False,
        read_only: bool = False,
        reranker: Reranker | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> Memory:
        """The memory, which the caller opens and closes; a file that this user cannot write is only read."""
        embedder = None if words_only else embedder_of(self.settings.embedder)
        if self._is_only_readable() or (read_only and not is_server(self.settings.file)):
            return Memory(
                self.path,
                embedder=embedder,
                read_only=True,
                reranker=reranker,
                cache_bytes=cache_bytes,
                zone=MACHINE_ZONE,
            )
        return memory_at(self.settings.file, embedder, reranker, cache_bytes, MACHINE_ZONE)

    def _is_only_readable(self) -> bool:
        """True if it is a file that cannot be written, or one in a folder where SQLite cannot write beside it."""
        if is_server(self.settings.file) or not self.path.is_file():
            return False
        path = self.path.resolve()
        return os.access(path, os.R_OK) and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))

    async def owner(self, *, create: bool = False) -> BoundMemory:
        """The handle of the owner."""
        memory = await self.memory(create=create)
        return memory.bind(app=self.settings.app, user=self.settings.user)

    async def other_owners(self) -> str | None:
        """A sentence that names owners with memories, if this one has none: the usual reason to find nothing."""
        memory, owner = await self.memory(), await self.owner()
        if (await owner.stats()).records:
            return None
        others = [f"{scope.app}/{scope.user}" for scope in await memory.operator().owners()][:5]
        place = without_key(self.settings.file)
        said = f"{owner.scope.app}/{owner.scope.user} has no memories in {place}; it has those of"
        return f"{said} {', '.join(others)} (choose with --app and --user)" if others else None

    async def close(self) -> None:
        """Close what is open."""
        memory, self._memory = self._memory, None
        if memory is not None:
            await memory.close()

    def confirm(
        self,
        question: str,
        *,
        yes: bool,
        unasked: str = "this cannot be undone, and nobody is there to ask; confirm it with --yes",
    ) -> None:
        """Ask before something that cannot be undone.

        Args:
            unasked: The error if nobody is there to ask.

        Raises:
            InvalidInputError: Nobody is there to ask.
            Abort: The answer is no.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise InvalidInputError(unasked)
        with _interruptible():
            typer.confirm("\n".join(showing.line(each, 1_000) for each in question.splitlines()), abort=True, err=True)

    @contextmanager
    def progress(self, title: str) -> Generator[ProgressCallback]:
        """A bar on standard error, if that is a terminal."""
        if not sys.stderr.isatty():
            yield lambda _: None
            return
        with progress_bar(showing.line(title)) as tell:
            yield tell


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C end a question that blocks the event loop: asyncio's own handler waits for the loop."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except typer.Abort as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from end
        raise
    finally:
        signal.signal(signal.SIGINT, before)


Work = Callable[..., Awaitable[Answer]]
_COMMON: Final[Mapping[str, tuple[Any, object]]] = {  # types of typer's annotations
    "file": (File, None),
    "app": (App, None),
    "user": (User, None),
    "embedder": (EmbedderName, None),
    "words_only": (WordsOnly, False),
    "as_json": (AsJson, False),
}


def add_command(program: typer.Typer, name: str, work: Work) -> None:
    """Make a command of a coroutine function `work(invocation, *, ...)`; typer reads its signature and docstring."""
    own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]
    common = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for key, (kind, default) in _COMMON.items()
    ]

    def run(**given: Any) -> None:  # typer passes what the signature below declares
        values = {key: given.pop(key) for key in _COMMON}
        as_json = values.pop("as_json")
        if values.pop("words_only"):
            values["embedder"] = NONE
        _insist_on_paths(given)
        raise typer.Exit(asyncio.run(_carried_out(work, Invocation(settings(**values)), given, as_json=as_json)))

    parameters = [*own, *common]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what `inspect` looks for
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = work.__doc__
    program.command(name)(run)


def _insist_on_paths(given: Mapping[str, Any]) -> None:
    """Refuse addresses where a command takes files, whichever command and option it is."""
    for name, value in given.items():
        several = cast("list[object]", value) if isinstance(value, list) else [value]
        for one in several:
            if isinstance(one, Path):
                check_path(f"the {name.replace('_', ' ')}", one)


async def _carried_out(work: Work, invocation: Invocation, given: Mapping[str, Any], *, as_json: bool) -> int:
    try:
        answer = await work(invocation, **given)
    finally:
        await invocation.close()
    _print(answer, as_json=as_json)
    return answer.code


def _print(answer: Answer, *, as_json: bool) -> None:
    if answer.view is None:
        return
    if as_json:
        sys.stdout.write(f"{showing.as_json(answer.json)}\n")
    else:
        showing.console().print(answer.view, soft_wrap=isinstance(answer.view, Text))  # a path stays whole
    sys.stdout.flush()
