"""The CPU of a coding client's hook before a prompt: from the file, and through the server that listens beside it.

    python tests/benchmarks/hook.py

Medians of the user and system time of whole processes, beside a Python that does nothing.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from memory_core import Draft, Memory

ROUNDS = 11
NOTES = 1_000
EVENT = json.dumps({"prompt": "Where is the key of room 7?", "session_id": "monday"})


def cpu(command: Sequence[str]) -> float:
    """Seconds of user and system time that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=EVENT, text=True, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the medians."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "memory.db")
        with Memory(file) as memory:
            memory.bind(user="ann").sync.add_many([Draft(f"The key of room {n} is blue") for n in range(NOTES)])
        nothing = [sys.executable, "-c", "pass"]
        hook = [sys.executable, "-m", "memory_mcp", "hook", "--file", file, "--user", "ann"]
        from_file = median(cpu(hook) for _ in range(ROUNDS))
        serve = [sys.executable, "-m", "memory_core", "serve", "--file", file, "--user", "ann", "--port", "0"]
        with subprocess.Popen(serve, stderr=subprocess.PIPE) as server:
            assert server.stderr is not None
            server.stderr.readline()  # the link: it listens
            through_server = median(cpu(hook) for _ in range(ROUNDS))
            server.terminate()
        bare = median(cpu(nothing) for _ in range(ROUNDS))
    for name, seconds in (("python", bare), ("from the file", from_file), ("through the server", through_server)):
        sys.stdout.write(f"{name:20} {seconds:.3f} s, {seconds / bare:.1f} times a Python that does nothing\n")


if __name__ == "__main__":
    main()
