"""`import`: bring in an export of this package, or what other programs have written after a look at what it becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer
from rich.console import Group

from memory_core.app import showing
from memory_core.app.batches import import_all
from memory_core.app.command import Answer, DryRun, Invocation, Work, Yes
from memory_core.app.formats import EXPORTERS, IMPORTERS, LOSSLESS, entry_of, format_of, names, sources
from memory_core.app.import_look import look_at
from memory_core.app.lossless import import_lossless, is_export
from memory_core.app.mapping import Keys, Ownership
from memory_core.errors import InvalidInputError
from memory_core.transfer.foreign_values import fields_of
from memory_core.transfer.formats import Importer

UNASKED: Final = "nothing is imported yet, and nobody is there to ask; look with --dry-run, and confirm with --yes"
_EXTRA: Final = re.compile(r"memory-core\[[^]]+\]")


def _key(metavar: str, what: str) -> Any:  # typer's option
    return typer.Option(metavar=metavar, help=f"The field of the source that {what}.")


async def import_(  # noqa: PLR0913  (an option each)
    invocation: Invocation,
    *,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A file, a folder or an address; - is an export on standard input."),
    ],
    format_: Annotated[
        str | None,
        typer.Option("--format", help="What the source is, if that cannot be seen.", autocompletion=sources),
    ] = None,
    user_from: Annotated[str | None, _key("KEY", "names the user of each memory")] = None,
    session_from: Annotated[str | None, _key("KEY", "names the session")] = None,
    time_from: Annotated[str | None, _key("KEY", "says when")] = None,
    kind_from: Annotated[str | None, _key("KEY", "names the kind")] = None,
    author_from: Annotated[str | None, _key("KEY", "names who said it")] = None,
    one_user: Annotated[
        bool, typer.Option("--one-user", help="Everything becomes --user's, also what the source gives to others.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> Answer:
    """Bring in what `export` or another program wrote.

    What another program wrote is shown first, as what it would become. Users that the source names are owners of their
    own; what names none is --user's. Importing twice adds nothing, so an interrupted import is run again.
    """
    if format_ is None and is_export(source):
        return await import_lossless(invocation, source, dry_run=dry_run)
    if user_from is not None and one_user:
        raise InvalidInputError("--user-from names many users and --one-user one; give only one of them")
    importer: Importer = entry_of(IMPORTERS, format_ or format_of(source))
    keys = Keys(user=user_from, session=session_from, time=time_from, kind=kind_from, author=author_from)
    ownership = Ownership(invocation.settings, keys, one_user=one_user)
    look = await look_at(importer(source), ownership)
    if ownership.may_merge:
        look.insist_on_one_person(ownership.default)
        look.insist_on_an_owner()
    if not dry_run and not yes:
        showing.console(errors=True).print(look.table())
        invocation.confirm("Import them?", yes=False, unasked=UNASKED)
    total = sum(share.memories for share in look.shares.values())
    done = await import_all(invocation, importer(source), ownership, dry_run=dry_run, total=total)
    view = Group(look.table(), done.view) if dry_run and done.view is not None else done.view
    return Answer({"owners": look.to_dict(), **fields_of(done.json)}, view, done.code)


async def formats_(_invocation: Invocation) -> Answer:
    """List the formats of `import` and `export`."""
    rows = [("import and export", LOSSLESS, "a text file without loss, one JSON object a line")]
    for command, group in (("import", IMPORTERS), ("export", EXPORTERS)):
        for name in names(group):
            try:
                said = (entry_of(group, name).__doc__ or "").strip().partition("\n")[0].rstrip(".")
            except InvalidInputError as error:
                extra = _EXTRA.search(str(error))
                said = str(error) if extra is None else f"needs: {extra[0]}"
            rows.append((command, name, said))
    keys = ("command", "format", "what")
    return Answer([dict(zip(keys, row, strict=True)) for row in rows], showing.table(keys, rows))


COMMANDS: Final[Mapping[str, Work]] = {"import": import_, "formats": formats_}
