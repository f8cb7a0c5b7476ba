"""`python -m memory_core.transfer SOURCE TARGET` copies all memories of one store to another, and verifies them.

Each is a memory file, or `qdrant://[key@]host[:port][/collection]` (`qdrant+https://` for TLS). It can be interrupted
at any time and continues when it is started again.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path

from memory_core.errors import MemoryCoreError, StoreUnavailableError
from memory_core.loop import run_sync
from memory_core.memory import Memory
from memory_core.progress import Progress, ProgressCallback, progress_bar
from memory_core.transfer.migrate import migrate


def main(arguments: list[str] | None = None) -> int:
    """Copy SOURCE to TARGET. Returns 0 if both agree, 2 if the source changed meanwhile, 1 with a message if it
    failed."""
    parser = argparse.ArgumentParser(prog="python -m memory_core.transfer", description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--words-only", action="store_true", help="the memories have no embedder, and so no vectors")
    given = parser.parse_args(arguments)
    try:
        _insist_on_source(given.source)
        with (
            _opened(given.source, words_only=given.words_only) as source,
            _opened(given.target, words_only=given.words_only) as target,
            _shown() as tell,
        ):
            report = run_sync(migrate, source, target, progress=tell)
    except MemoryCoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for owner in report.owners:
        sys.stdout.write(f"{owner.checksum}  {owner.records:>8}  {owner.scope.app}  {owner.scope.user}\n")
    now = f"({report.copied} copied, {report.removed} removed now)"
    if report.behind:
        sys.stdout.write(f"{report.behind} records changed meanwhile {now}; run it again when nothing writes to it\n")
        return 2
    sys.stdout.write(f"{report.records} records of {len(report.owners)} owners agree {now}\n")
    return 0


def _insist_on_source(name: str) -> None:
    """Refuse a source that does not exist: opening it would create a file for a misspelt name."""
    if not _is_server(name) and not Path(name).expanduser().is_file():
        raise StoreUnavailableError(f"there is no memory file {name!r} to copy from; nothing was created")


def _is_server(name: str) -> bool:
    return name.startswith(("qdrant://", "qdrant+https://"))


def _opened(name: str, *, words_only: bool) -> Memory:
    if not _is_server(name):
        return Memory(name, embedder=None) if words_only else Memory(name)
    from memory_core.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415  (numpy and onnxruntime)
    from memory_core.storage.qdrant.store import QdrantStore  # noqa: PLC0415  (an extra)

    return Memory(QdrantStore.from_uri(name, embedder=None if words_only else MiniLmEmbedder()))


def _shown() -> AbstractContextManager[ProgressCallback]:
    """A progress bar if rich (the `cli` extra) is installed; else a line for each owner."""
    return progress_bar("comparing") if find_spec("rich") else nullcontext(_line)


def _line(progress: Progress) -> None:
    if progress.done == progress.total:
        sys.stderr.write(f"{progress.part}: {progress.total} records\n")


if __name__ == "__main__":
    sys.exit(main())
