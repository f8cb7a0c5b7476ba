"""Notes of conversations under `kill -9`: two processes write notes to one file and are killed again and again.

    python tests/benchmarks/spade_notes.py [--count COUNT] [ours|stock ...]

A note counts as acknowledged when its process has said so, by a system call of its own, after `add_information`
returned. Killed writers go on where they stopped until both have acknowledged half of COUNT, 10,000 by default. That is
much for stock, which rewrites its file for every note.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGES = {"ours": "memory_spade.memory", "stock": "spade_llm.memory"}
KILLS = 24

ATTACK = """
import logging, os, random, signal, sys, time
from {package} import AgentInteractionMemory

logging.disable(logging.WARNING)
folder, each, kills = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dice = random.Random(7)

def acknowledged(name):
    path = os.path.join(folder, name)
    return os.path.getsize(path) if os.path.exists(path) else 0

def write(name):
    first = acknowledged(name)
    notes = AgentInteractionMemory("agent@example.com", folder)
    log = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(first, each):
        notes.add_information(name, f"note {{number}}")
        os.write(log, b"x")
    os._exit(0)

while True:
    before = {{name: acknowledged(name) for name in ("c0", "c1")}}
    left = [name for name, count in before.items() if count < each]
    if not left:
        break
    children = []
    for name in left:  # forked, so that the package is imported once
        child = os.fork()
        if not child:
            write(name)
        children.append(child)
    if kills > 0:
        while any(acknowledged(name) == before[name] for name in left):
            time.sleep(0.001)
        time.sleep(dice.random() * each / 5_000)
        for child in children:
            os.kill(child, signal.SIGKILL)
        kills -= len(children)
    for child in children:
        os.waitpid(child, 0)
print(int(sys.argv[3]) - kills)
"""

COUNT = """
import logging, sys
from {package} import AgentInteractionMemory

logging.disable(logging.WARNING)
notes = AgentInteractionMemory("agent@example.com", sys.argv[1])
print(sum(len(set(notes.get_information(name))) for name in ("c0", "c1")))
"""


def run(code: str, package: str, *arguments: str) -> int:
    command = [sys.executable, "-c", code.format(package=package), *arguments]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout)


def valid(folder: str) -> bool:
    try:
        json.loads(Path(folder, "agent_example.com_interactions.json").read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def main(names: list[str], count: int) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            kills = run(ATTACK, PACKAGES[name], folder, str(count // 2), str(KILLS))
            seconds, is_valid = time.perf_counter() - began, valid(folder)
            lost = count - run(COUNT, PACKAGES[name], folder)
        state = "valid" if is_valid else "torn"
        print(f"{name:5} {kills} kills, {count} acknowledged in {seconds:.0f} s, {lost} lost, file {state}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="ours|stock", default=list(PACKAGES))
    parser.add_argument("--count", type=int, default=10_000)
    given = parser.parse_args()
    main(given.names, given.count)
