"""A text that the embedder always refuses keeps nobody else's vectors from being computed."""

from __future__ import annotations

import pytest

from memory_core import run_sync
from memory_core.adapting import settled
from memory_core.storage.qdrant import background
from tests.storage.embedders import RefusingEmbedder
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import pending


def test_other_texts_get_their_vectors(connect: Open, loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "BATCH", 4)
    memory = connect(embedder=RefusingEmbedder())
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    refused = run_sync(ann.add_many, [f"forbidden {n}" for n in range(9)], embed="later")
    run_sync(bob.add_many, [f"Bob's memory {n}" for n in range(5)], embed="later")
    run_sync(settled, bob, timeout=5)
    assert sorted(pending(loopback)) == sorted(record.id for record in refused)
