"""A text that the embedder always refuses keeps nobody else's vectors from being computed."""

from __future__ import annotations

import pytest

from memory_core import run_sync
from memory_core.adapting import settled
from memory_core.storage.qdrant import background
from memory_core.storage.shared import refusals
from tests.storage.embedders import RefusingEmbedder, WordEmbedder
from tests.storage.qdrant.conftest import Open
from tests.storage.qdrant.loopback import Loopback
from tests.storage.qdrant.settled import pending, settle, wait_for


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "POINTS_AT_ONCE", 4)


def test_other_texts_get_their_vectors(connect: Open, loopback: Loopback) -> None:
    memory = connect(embedder=RefusingEmbedder())
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    run_sync(ann.add_many, [f"forbidden {n}" for n in range(9)], embed="later")
    run_sync(bob.add_many, [f"Bob's memory {n}" for n in range(5)], embed="later")
    run_sync(settled, bob, timeout=300)
    assert len(pending(loopback)) == run_sync(ann.stats).vectors_pending == 9


def test_a_refused_text_is_tried_again(connect: Open, loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (background, "FIRST_ROUND_SECONDS"),
        (refusals, "FIRST_PAUSE_SECONDS"),
        (refusals, "LONGEST_PAUSE_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.01)
    embedder = RefusingEmbedder()
    ann = connect(embedder=embedder).bind(user="ann")
    run_sync(ann.add_many, ["forbidden", "allowed"])
    wait_for(lambda: len(embedder.calls) > 9)  # those of several tries
    assert len(pending(loopback)) == 1
    embedder.refused = "nothing"
    settle(loopback)


def test_another_embedder_does_not_wait_for_what_the_one_before_refused(connect: Open, loopback: Loopback) -> None:
    memory = connect(embedder=RefusingEmbedder())
    ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
    run_sync(ann.add, "forbidden", embed="later")
    run_sync(bob.add, "allowed", embed="later")
    run_sync(settled, bob, timeout=300)
    run_sync(memory.reembed, WordEmbedder("other"))
    settle(loopback)
