"""Documents of strangers, read in a process of their own.

A file that somebody sends may have been made to fill the memory of a machine, or to keep a parser busy for ever. So it
is read in a process that has limits, that can be ended, and that knows no secrets of this one.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache, partial
from pathlib import PurePath
from typing import Final, cast
from weakref import WeakKeyDictionary

from memory_core.concurrency.at_exit import before_threads_end
from memory_core.concurrency.threads import in_thread
from memory_core.errors import InvalidInputError
from memory_core.transfer.documents import Part, parts_of

MAX_BYTES: Final = 20 * 1024 * 1024
"""The largest document: what a message of Gemini can contain."""
MAX_CHARS: Final = 2_000_000
"""Characters of the text of a document: a thousand pages."""
SECONDS: Final = 30.0
"""How long reading may take, also in seconds of the processor."""
MEMORY_BYTES: Final = 1 << 30
"""Address space of the process; most of it is the interpreter's."""
AT_ONCE: Final = 2
"""Processes at a time; further documents wait."""
_KEPT: Final = ("LD_LIBRARY_PATH", "PYTHONHOME")
"""Variables without which an interpreter may not start; the process gets no others."""
_NAME: Final = "document"
_SUFFIXES: Final = {"application/pdf": ".pdf", "text/html": ".html", "application/xhtml+xml": ".html"}
_READABLE: Final = frozenset({".pdf", ".html", ".htm", ".txt", ".md"})
_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()
_running: Final[dict[int, int]] = {}
"""The processes that read, and the process that has started each: a fork has none."""


def suffix_for(name: str, media_type: str) -> str | None:
    """The suffix that says how a document is read, by its media type or else by its name; `None` if it is not read."""
    media_type = media_type.casefold().partition(";")[0].strip()
    suffix = PurePath(name).suffix.casefold()
    if media_type.startswith("text/"):
        return _SUFFIXES.get(media_type, ".txt")
    return _SUFFIXES.get(media_type) or (suffix if suffix in _READABLE else None)


async def read_apart(content: bytes, suffix: str) -> list[Part]:
    """The parts of a document, read in another process.

    Args:
        content: The bytes of the file.
        suffix: From `suffix_for`.

    Raises:
        InvalidInputError: It cannot be read, or not within the limits. The reason quotes nothing of it.
    """
    if len(content) > MAX_BYTES:
        raise InvalidInputError(f"it has more than {MAX_BYTES >> 20} MiB")
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
        _end_at_exit()
        said = await in_thread(partial(_answer, content, suffix))
    try:
        answer = json.loads(said)
    except ValueError as error:  # it was ended by a limit
        raise InvalidInputError("reading it fails, or takes too much time or memory") from error
    if isinstance(answer, str):
        raise InvalidInputError(answer)
    return [Part(*part) for part in cast("list[tuple[str, int, int, str]]", answer)]


def _answer(content: bytes, suffix: str) -> bytes:
    """What the process says; nothing if it was ended. Not through asyncio, which leaves processes to the event loop
    policy of the application."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", __name__, suffix]
    try:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter)
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except (OSError, ValueError, TypeError) as error:  # an embedded interpreter may have no path
        raise InvalidInputError("no process can be started to read it") from error
    with process:
        _running[process.pid] = os.getpid()
        try:
            return process.communicate(content, timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            return b""
        finally:
            del _running[process.pid]
            process.kill()


@cache
def _end_at_exit() -> None:
    before_threads_end(_end)


def _end() -> None:
    """End what an exiting process leaves running. It is registered after the handler that waits for writes, and so is
    called before it."""
    for reader, owner in list(_running.items()):
        if owner == os.getpid():
            with suppress(ProcessLookupError):
                os.kill(reader, signal.SIGKILL)


def _main(suffix: str) -> None:
    """Read a document from standard input, and write its parts, or the reason why it cannot be read, as JSON."""
    import resource  # noqa: PLC0415  (only this process needs it, and not every system has it)

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS)))
    try:
        answer: list[Part] | str = _within_limits(sys.stdin.buffer.read(), suffix)
    except InvalidInputError as error:
        # What parsers say may quote the document.
        reason = str(error) if isinstance(error.__cause__, ImportError) else re.split(r" \(|:", str(error))[0]
        answer = reason.replace(_NAME + suffix, "it", 1)
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _within_limits(content: bytes, suffix: str) -> list[Part]:
    room, parts = MAX_CHARS, list[Part]()
    for part in parts_of(_NAME + suffix, content):
        room -= len(part.text)
        if room < 0:
            raise InvalidInputError(f"its text has more than {MAX_CHARS} characters")
        parts.append(part._replace(text=part.text.encode(errors="replace").decode()))
    if not parts:
        raise InvalidInputError("it has no text")
    return parts


if __name__ == "__main__":
    _main(sys.argv[1])
