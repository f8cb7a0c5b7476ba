"""`python -m memory_core.transfer SOURCE TARGET` copies all memories of one store to another, and verifies them.

Each is a memory file, or `qdrant://[key@]host[:port][/collection]` (`qdrant+https://` for TLS). It can be interrupted
at any time and continues when it is started again.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

from memory_core.errors import MemoryCoreError
from memory_core.loop import run_sync
from memory_core.progress import Progress, ProgressCallback, progress_bar
from memory_core.settings import DEFAULT_EMBEDDER
from memory_core.transfer.addresses import insist_on_existing, memory_at
from memory_core.transfer.migrate import migrate


def main(arguments: list[str] | None = None) -> int:
    """Copy SOURCE to TARGET. Returns 0 if both agree, 2 if the source changed meanwhile, 1 with a message if it
    failed."""
    parser = argparse.ArgumentParser(prog="python -m memory_core.transfer", description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--words-only", action="store_true", help="the memories have no embedder, and so no vectors")
    given = parser.parse_args(arguments)
    embedder = None if given.words_only else DEFAULT_EMBEDDER
    try:
        insist_on_existing(given.source)
        with (
            memory_at(given.source, embedder) as source,
            memory_at(given.target, embedder) as target,
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


def _shown() -> AbstractContextManager[ProgressCallback]:
    """A progress bar if rich (the `cli` extra) is installed; else a line for each owner."""
    return progress_bar("comparing") if find_spec("rich") else nullcontext(_line)


def _line(progress: Progress) -> None:
    if progress.done == progress.total:
        sys.stderr.write(f"{progress.part}: {progress.total} records\n")


if __name__ == "__main__":
    sys.exit(main())
