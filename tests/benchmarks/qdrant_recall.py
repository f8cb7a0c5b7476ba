"""How often the turns that answer a question are among the first ten, in SQLite and through `QdrantStore`.

    python -m tests.benchmarks.qdrant_recall LOCOMO.json [--together]

The file has the format of LoCoMo's `locomo10.json`. It is remembered in a SQLite file, one owner for each conversation
(with `--together` one for all), and moved to Qdrant's own engine behind a loopback server, with its graph and its int8
vectors. Both answer every question. Exits 1 if recall differs by more than a point.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_core import Draft, Memory, run_sync
from memory_core.embedding.minilm import MiniLmEmbedder
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.transfer.migrate import migrate
from tests.storage.qdrant.edge_engine import EdgeEngine
from tests.storage.qdrant.loopback import Loopback

FIRST = 10
MOST_APART = 0.01


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("locomo", type=Path)
    parser.add_argument("--together", action="store_true", help="all conversations belong to one owner")
    given = parser.parse_args()
    conversations: list[dict[str, Any]] = json.loads(given.locomo.read_text())
    engine = EdgeEngine()
    engine.keep_calls = False
    with tempfile.TemporaryDirectory() as folder, Loopback(engine) as server:
        store = QdrantStore(Server(url=server.url, timeout_seconds=60), embedder=MiniLmEmbedder())
        with Memory(f"{folder}/m.db") as ours, Memory(store) as theirs:
            for conversation in conversations:
                handle = ours.bind(user=owner(conversation, together=given.together))
                run_sync(handle.add_many, list(turns(conversation)))
            moved = run_sync(migrate, ours, theirs)
            server.on_loop(engine.optimize)
            found = [recall(memory, conversations, together=given.together) for memory in (ours, theirs)]
        engine.close()
    print(f"{moved.records} records of {len(moved.owners)} owners, {len(found[0])} questions")
    means = [statistics.mean(some.values()) for some in found]
    same = sum(found[0][question] == found[1][question] for question in found[0])
    print(f"recall@{FIRST}: SQLite {means[0]:.4f}, Qdrant {means[1]:.4f}; {same} questions with the same recall")
    return abs(means[0] - means[1]) > MOST_APART


def owner(conversation: Mapping[str, Any], *, together: bool) -> str:
    return "everybody" if together else str(conversation["sample_id"])


def turns(conversation: Mapping[str, Any]) -> Iterator[Draft]:
    held = conversation["conversation"]
    for name in sorted((key for key in held if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])):
        said = " ".join(held[f"{name}_date_time"].split())
        when = datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in held[name]:
            caption = turn.get("blip_caption")
            yield Draft(
                turn["text"] + (f" [shares {caption}]" if caption else ""),
                author=turn["speaker"],
                session=f"{conversation['sample_id']} {name}",
                occurred_at=when,
                source_key=f"{conversation['sample_id']} {turn['dia_id']}",
            )


def recall(memory: Memory, conversations: list[dict[str, Any]], *, together: bool) -> dict[tuple[str, str], float]:
    """By question: which part of its evidence is found."""
    found: dict[tuple[str, str], float] = {}
    for conversation in conversations:
        name = conversation["sample_id"]
        handle = memory.bind(user=owner(conversation, together=together))
        there = {draft.source_key for draft in turns(conversation)}
        for question in conversation["qa"]:
            pairs = re.findall(r"D:?(\d+):(\d+)", " ".join(question.get("evidence") or ()))
            evidence = {f"{name} D{int(session)}:{int(turn)}" for session, turn in pairs} & there
            if evidence:
                hits = run_sync(handle.search, question["question"], limit=FIRST)
                keys = {hit.record.source_key for hit in hits}
                found[name, question["question"]] = len(evidence & keys) / len(evidence)
    return found


if __name__ == "__main__":
    sys.exit(main())
