"""Write files with mem0 and Chroma, and read our exports with mem0 and LangGraph; run by `.ci/peers` where they are.

python tests/app/peers.py write FOLDER    makes peers.zip, from which test_peers.py takes its files
python tests/app/peers.py read FOLDER     prints as JSON what is in FOLDER/mem0
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(Path(sys.argv[2]).resolve() / "settings"))


def write(folder: Path) -> None:
    import chromadb
    from mem0.memory.storage import SQLiteManager
    from mem0.vector_stores.qdrant import Qdrant

    made = folder / "peers"
    store = Qdrant(collection_name="mem0", embedding_model_dims=2, path=str(made / "mem0" / "qdrant"), on_disk=True)
    payloads: list[dict[str, Any]] = [
        {"data": "Ann keeps bees", "user_id": "ann", "created_at": "2026-03-02T09:00:00+00:00", "topic": "bees"},
        {"user_id": "ann"},
    ]
    ids = ["6f1c1a52-8f0f-4c7e-9d4c-000000000001", "6f1c1a52-8f0f-4c7e-9d4c-000000000002"]
    store.insert(vectors=[[1.0, 0.0], [0.0, 1.0]], payloads=payloads, ids=ids)
    store.client.close()
    history = SQLiteManager(str(made / "mem0" / "history.db"))
    history.add_history("m1", None, "Ann lives in Oslo", "ADD", created_at="2026-03-02T09:00:00+00:00")
    history.add_history("m1", "Ann lives in Oslo", "Ann lives in Rome", "UPDATE")
    history.add_history("m2", None, "Ann has a boat", "ADD")
    history.add_history("m2", "Ann has a boat", None, "DELETE", is_deleted=1)
    history.close()
    client = chromadb.PersistentClient(path=str(made / "chroma"))
    collection = client.get_or_create_collection("skynet_memories")
    metadata: dict[str, Any] = {"type": "fact", "user": "ann", "importance": 0.9, "emotion": "joy", "tags": "a, b"}
    collection.add(
        ids=["mem_1", "mem_2"],
        documents=["Ann keeps bees", "wrong"],
        embeddings=[[1.0], [0.0]],
        metadatas=[{**metadata, "timestamp": 1.7e12, "x": True}, {"importance": 7}],
    )
    shutil.make_archive(str(folder / "peers"), "zip", made)


def read(folder: Path) -> None:
    from mem0 import Memory

    qdrant = {
        "collection_name": "mem0",
        "embedding_model_dims": 384,
        "path": str(folder / "mem0/qdrant"),
        "on_disk": True,
    }
    unused = {"provider": "openai", "config": {"api_key": "none is needed to read"}}
    memory = Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": qdrant},
        "history_db_path": str(folder / "mem0" / "history.db"),
        "llm": unused,
        "embedder": unused,
    })  # fmt: skip
    everything = memory.get_all(filters={"user_id": "ann"}, top_k=100)["results"]
    points, _ = memory.vector_store.client.scroll("mem0", with_vectors=True)
    nearest = [memory.vector_store.search("", point.vector, top_k=1)[0].payload["data"] for point in points]
    found: dict[str, Any] = {
        "mem0": everything,
        "history": {each["id"]: memory.history(each["id"]) for each in everything},
        "nearest": {point.payload["data"]: text for point, text in zip(points, nearest, strict=True)},
    }
    sys.stdout.write(json.dumps(found, default=str))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]).resolve())
