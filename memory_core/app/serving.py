"""The command that serves: serve."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from memory_core.addresses import is_server
from memory_core.app.command import Answer, Invocation, Work
from memory_core.app.settings import DEFAULT_NAME
from memory_core.app.showing import MAX_SENTENCE_CHARS
from memory_core.errors import InvalidInputError
from memory_core.models import Scope
from memory_core.values.hosts import is_loopback
from memory_core.values.limits import CACHE_BYTES
from memory_core.values.printable import one_line
from memory_core.where.where import ANY_STATE

if TYPE_CHECKING:
    from memory_core.app.serve.callers import Caller
    from memory_core.app.serve.served import Served, Space

Share = Annotated[
    list[str] | None,
    typer.Option(
        "--share", metavar="LABEL=USER[:write]", help="Show everybody the memories of a user, too; can be repeated."
    ),
]
Hosts = Annotated[list[str] | None, typer.Option("--allow-host", help="A host name of this server; can be repeated.")]
LocalSocket = Annotated[
    Path | None, typer.Option("--socket", metavar="PATH", help="Also listen on a local socket, for you alone.")
]
AccessLog = Annotated[
    bool, typer.Option("--access-log", help="Log each request: method, route, status, time; no texts or names.")
]
Spans = Annotated[
    bool, typer.Option("--otel", help="OpenTelemetry spans of requests and operations; needs the extra otel.")
]
DEFAULT_PORT: Final = 8765
INTERRUPTED: Final = 130
MB: Final = 1024 * 1024


async def serve(  # noqa: PLR0913  (one parameter per option)
    invocation: Invocation,
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65_535, help="0 for any that is free.")
    ] = DEFAULT_PORT,
    write: Annotated[bool, typer.Option("--write", help="Let the page and the API change memories.")] = False,
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help='Users and their tokens: {"ann": "…"}; "*" is the operator.'),
    ] = None,
    allow_host: Hosts = None,
    share: Share = None,
    socket: LocalSocket = None,
    access_log: AccessLog = False,
    otel: Spans = False,
    cache_mb: Annotated[
        int, typer.Option("--cache-mb", min=0, metavar="MB", help="Memory for the users searched lately; of a file.")
    ] = CACHE_BYTES // MB,
) -> Answer:
    """Serve a page, an HTTP API, and MCP over HTTP at /mcp. Read-only unless --write is given.

    Without --tokens it listens on this machine only, and the link that it prints lets you in.
    """
    from memory_core.app.serve.callers import THE_OPERATOR, Signer  # noqa: PLC0415
    from memory_core.app.serve.served import Served  # noqa: PLC0415
    from memory_core.telemetry import observe  # noqa: PLC0415
    from memory_core.web.process import log_plainly  # noqa: PLC0415

    log_plainly("memory-core", requests=access_log)
    if otel:
        observe()
    known, key = _callers(host, tokens)
    memory = await invocation.memory(create=write, read_only=not write, cache_bytes=cache_mb * MB)
    served = Served(
        memory=memory,
        owner=Scope(invocation.settings.app, invocation.settings.user),
        tokens=known,
        signer=Signer(secrets.token_bytes(32)),
        hosts=frozenset([*(allow_host or ()), host]),
        writable=write,
        hooked=_hooked(invocation),
        spaces=_spaces(share or ()),
    )
    served.reach(served.own(THE_OPERATOR))  # refuses labels that cannot be used
    entry = "" if key is None else f"sign-in?key={key}"
    notes = await _empty_spaces(served)
    received = await _listen(invocation, served, (host, port), socket, entry, notes, traced=otel)
    return Answer(None, None, INTERRUPTED if received == signal.SIGINT else 0)


async def _empty_spaces(served: Served) -> list[str]:
    """A line for each space that has no memories: its user may be misspelt."""
    return [
        f"the space {label!r} is empty: the user {space.owner!r} has no memories"
        for label, space in served.spaces.items()
        if not await served.memory.bind(app=served.owner.app, user=space.owner).list(where=ANY_STATE, limit=1)
    ]


async def _listen(
    invocation: Invocation,
    served: Served,
    address: tuple[str, int],
    path: Path | None,
    entry: str,
    notes: Sequence[str],
    *,
    traced: bool,
) -> int | None:
    """Serve until a signal comes, which is returned; `entry` is the part of the page's address that lets one in."""
    from memory_core.app.serve.application import application  # noqa: PLC0415  (takes half a second)
    from memory_core.app.serve.beside import served_beside  # noqa: PLC0415
    from memory_core.app.serve.local_socket import HAS_LOCAL_SOCKETS, place_beside  # noqa: PLC0415
    from memory_core.app.serve.serving import listening, serve_until_signal  # noqa: PLC0415
    from memory_core.app.serve.shares import share_of  # noqa: PLC0415
    from memory_core.web.process import prepare_to_serve  # noqa: PLC0415
    from memory_core.web.requests import Requests  # noqa: PLC0415

    beside = place_beside(invocation.path) if HAS_LOCAL_SOCKETS and not is_server(invocation.settings.file) else None
    with listening(*address, path=path, beside=beside) as (shown, sockets, unheard):
        link = f"http://{shown}/{entry}"
        said = [f"for the operator, who reaches the memories of every user: {link}" if entry else link]
        said += notes
        said += [] if unheard is None else [f"hooks do not ask this server: {unheard}"]
        async with served_beside(served) as others:
            said += others.missing
            requests = Requests()
            app = application(served, others.apps, requests)
            prepare_to_serve()
            return await serve_until_signal(
                app, sockets, lambda: _print(said), caller_of=share_of(served), requests=requests, traced=traced
            )


def _print(said: Sequence[str]) -> None:
    sys.stderr.writelines(f"memory-core: {one_line(each, MAX_SENTENCE_CHARS)}\n" for each in said)
    sys.stderr.flush()


def _hooked(invocation: Invocation) -> tuple[int, int] | None:
    """The file that hooks may leave to the server: with another model it would recall something else than they."""
    if is_server(invocation.settings.file) or invocation.settings.embedder != DEFAULT_NAME:
        return None
    found = invocation.path.stat()
    return found.st_dev, found.st_ino


def _callers(host: str, tokens: Path | None) -> tuple[Mapping[bytes, Caller], str | None]:
    """The callers; without a file, anybody who has the key, which is in the link."""
    from memory_core.app.serve.callers import OPERATOR, tokens_in, tokens_of  # noqa: PLC0415

    if tokens is not None:
        return tokens_in(tokens.expanduser()), None
    if not is_loopback(host):
        raise InvalidInputError(f"--host {host} is open to other machines; name its users with --tokens")
    key = secrets.token_urlsafe(32)
    return tokens_of({OPERATOR: key}), key


def _spaces(given: Sequence[str]) -> dict[str, Space]:
    """The spaces that are shared, by label.

    Raises:
        InvalidInputError: One is not written `LABEL=USER` or `LABEL=USER:write`, or two have one label or owner.
    """
    from memory_core.app.serve.served import Space  # noqa: PLC0415

    spaces: dict[str, Space] = {}
    for text in given:
        label, _, owner = text.partition("=")
        space = Space(owner.removesuffix(":write"), owner.endswith(":write"))
        if not label or not space.owner:
            raise InvalidInputError(
                f"--share {text!r} is not LABEL=USER or LABEL=USER:write; write for example team=team:red"
            )
        if label in spaces or space.owner in {other.owner for other in spaces.values()}:
            raise InvalidInputError(f"--share {text!r} repeats a label or a user; share each once")
        spaces[label] = space
    return spaces


COMMANDS: Final[Mapping[str, Work]] = {"serve": serve}
