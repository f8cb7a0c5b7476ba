"""The program: its commands, those of adapters, and every error as one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any, Final

try:
    import rich as _rich  # noqa: F401  # pyright: ignore[reportUnusedImport]  (both are of one extra)
    import typer
    from typer.core import TyperGroup
except ImportError as error:
    extra = "serve" if sys.argv[1:2] == ["serve"] else "cli"
    raise ImportError(f"`memory-core` needs typer and rich: pip install 'memory-core[{extra}]'") from error

from memory_core.app import doctor, evaluating, files, importing, reading, serving, showing, writing
from memory_core.app.command import Work, add_command
from memory_core.app.settings import settings
from memory_core.errors import InvalidInputError, MemoryCoreError, reason_for_log

NAME: Final = "memory-core"
ENTRY_POINTS: Final = "memory_core.commands"
FAILED, INTERRUPTED, BROKEN = 2, 130, 70
"""Exit codes besides 0 and 1: a request that cannot be carried out, Ctrl-C, and a defect of this program."""

HELP: Final = """One durable, searchable memory for your agents.

Start with: memory-core add "The spare key is with Mrs Okafor", then: memory-core search "Where is the key?"

Every command takes the memory and its owner from --file, --app and --user, from MEMORY_CORE_FILE, MEMORY_CORE_APP and
MEMORY_CORE_USER, or from the keys file, app and user of memory-core.toml in ~/.config. Exit codes: 0 done; 1 done, but
something is not as it should be; 2 not done, and standard error says why.
"""

GROUPS: Final[Mapping[str, Mapping[str, Work]]] = {
    "Write": writing.COMMANDS,
    "Read": reading.COMMANDS,
    "Serve": serving.COMMANDS,
    "Bring in and take out": {**importing.COMMANDS, **files.TRANSFERS},
    "Keep the file well": {**files.UPKEEP, **doctor.COMMANDS, **evaluating.COMMANDS},
}
"""The commands of this package, as `--help` lists them."""


class _Grouped(TyperGroup):
    """Lists the commands under the titles of their groups, and those of adapters last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  (typer gives both)
        own = {name for commands in GROUPS.values() for name in commands}
        groups: Mapping[str, Iterable[str]] = {
            **GROUPS,
            "Adapters": [name for name in self.commands if name not in own],
        }
        width = max(map(len, self.commands))
        for title, names in groups.items():
            with formatter.section(title):
                room = formatter.width - width - 6
                rows = [(name.ljust(width), self.commands[name].get_short_help_str(room)) for name in names]
                formatter.write_dl(rows)


@cache
def program() -> typer.Typer:
    """The commands of this package and of the installed adapters."""
    made = typer.Typer(name=NAME, help=HELP, cls=_Grouped, pretty_exceptions_enable=False, rich_markup_mode=None)
    made.callback()(_options)
    for commands in GROUPS.values():
        for name, work in commands.items():
            add_command(made, name, work)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        _add_foreign(made, point)
    return made


def _version(wanted: bool) -> None:  # noqa: FBT001  (typer's)
    if wanted:
        typer.echo(f"{NAME} {version(NAME)}")
        raise typer.Exit


def _options(
    *,
    version: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version and exit.")] = False,
) -> None:
    """The options of the program itself."""


def _add_foreign(made: typer.Typer, point: EntryPoint) -> None:
    """The command of an adapter: a function of arguments, which get --file, --app and --user first."""

    @made.command(
        point.name,
        help=f"Run {point.value.partition('.')[0]}; see `{NAME} {point.name} --help`.",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    )
    def run(context: typer.Context) -> None:
        try:
            work: Callable[[Sequence[str]], object] = point.load()
        except ImportError as error:
            raise InvalidInputError(str(error)) from error
        given = settings(file=None, app=None, user=None, embedder=None)
        user = ["--user", given.user] if given.named_user else []
        code = work(["--file", given.file, "--app", given.app, *user, *context.args])
        if code == INTERRUPTED:
            sys.exit(INTERRUPTED)  # the adapter has said so itself
        raise typer.Exit(code if isinstance(code, int) else 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code. Nothing that goes wrong is shown as a traceback."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        found = typer.main.get_command(program())
        code = found.main(args=given or ["--help"], prog_name=NAME, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort:
        showing.complain("nothing was changed")
        return FAILED
    except (MemoryCoreError, OSError, ImportError) as error:
        showing.complain(showing.sentence(error))
        return FAILED
    except typer.TyperException as error:
        showing.complain(_usage(error))
        return FAILED
    except Exception as error:  # noqa: BLE001  (a defect: no text of a memory must be shown, nor a traceback)
        showing.complain(f"a defect of memory-core, please report it: {reason_for_log(error)}")
        return BROKEN


def _usage(error: typer.TyperException) -> str:
    """The sentence that says what is wrong with the arguments, and where to read on."""
    said, context = error.format_message().removesuffix("."), getattr(error, "ctx", None)
    if "unexpected extra argument" in said:
        said += "; put a text of several words in quotes, and name a memory file with --file"
    if any(said.startswith(f"No such command '{word}'") for word in ("delete", "remove", "rm")):
        said = f"{said.split('.')[0]}; `{NAME} forget` deletes a memory"
    return f"{said}; see {NAME if context is None else context.command_path} --help"
