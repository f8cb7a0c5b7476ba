"""Notes of conversations under `kill -9`: two processes write 10,000 notes to one file and are killed again and again.

    python tests/benchmarks/spade_notes.py [ours|stock ...]

A note counts as acknowledged when its process has printed it after `add_information` returned. Killed writers go on
where they stopped until both have acknowledged 5,000.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGES = {"ours": "memory_spade.memory", "stock": "spade_llm.memory"}
EACH = 5_000
KILLS = 12

WRITER = """
import logging, sys
from {package} import AgentInteractionMemory
logging.disable(logging.WARNING)
notes = AgentInteractionMemory("agent@example.com", sys.argv[1])
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    notes.add_information("c" + sys.argv[2], f"note {{number}}")
    print(number, flush=True)
"""


def start(package: str, folder: str, name: int, first: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER.format(package=package), folder, str(name), str(first), str(EACH)]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)


def acknowledged(process: subprocess.Popen[str], first: int) -> int:
    """One more than the last number the process has printed in full."""
    lines = [line for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) + 1 if lines else first


def attack(package: str, folder: str) -> tuple[int, float]:
    """Let both write, and kill them; returns how many kills there were and the seconds it took."""
    dice, done, kills, began = random.Random(7), [0, 0], 0, time.perf_counter()
    while min(done) < EACH:
        running = [start(package, folder, name, done[name]) for name in range(2)]
        if kills < KILLS:
            for process in running:
                process.stdout.readline() if process.stdout else ""  # it has begun
            time.sleep(dice.random())
            for process in running:
                process.kill()
            kills += 2
        # The line read above is below what was acknowledged later, or is the only one.
        done = [max(done[name] + 1, acknowledged(running[name], done[name] + 1)) for name in range(2)]
        done = [min(count, EACH) for count in done]
    return kills, time.perf_counter() - began


def kept(package: str, folder: str) -> tuple[int, bool]:
    """How many of the acknowledged notes can be read, and whether the file is valid JSON."""
    code = (
        f"from {package} import AgentInteractionMemory\nimport logging, sys\nlogging.disable(logging.WARNING)\n"
        "notes = AgentInteractionMemory('agent@example.com', sys.argv[1])\n"
        "print(sum(len(set(notes.get_information(c))) for c in ('c0', 'c1')))"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=False)
    try:
        json.loads(Path(folder, "agent_example.com_interactions.json").read_text(encoding="utf-8"))
    except ValueError:
        return 0, False
    return int(done.stdout or 0), True


def main(names: list[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            kills, seconds = attack(PACKAGES[name], folder)
            count, valid = kept(PACKAGES[name], folder)
        print(
            f"{name:5} {kills} kills, {2 * EACH} acknowledged in {seconds:.0f} s, {2 * EACH - count} lost, "
            f"file {'valid' if valid else 'torn'}"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["ours", "stock"])
