"""The memories that are recalled, and the form in which a prompt shows them."""

from __future__ import annotations

from pathlib import Path

from langchain_core.runnables import RunnableConfig

from memory_core import BoundMemory, Draft, Memory, RecallOptions, Where, run_sync
from memory_langchain import with_memory
from memory_langchain.testing import ScriptedChatModel

TUESDAY: RunnableConfig = {"configurable": {"session_id": "tuesday"}}


def test_recall_goes_by_meaning_where_the_memory_has_an_embedder(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        ann = memory.bind(app="demo", user="ann")
        run_sync(ann.add_many, ["My cat is called Oskar", "The train leaves at nine", "Rent is due on Friday"])
        model = ScriptedChatModel(script=["Oskar"])
        with_memory(model, ann, recall=RecallOptions(limit=1)).invoke("Do I have a pet?", TUESDAY)
    assert "Oskar" in model.prompts[0][0].text


def test_the_options_of_a_recall_are_the_chains_to_choose(ann: BoundMemory) -> None:
    run_sync(ann.add_many, [Draft("Ann drinks tea", kind="preference"), Draft("The tea is in the tin", kind="note")])
    model = ScriptedChatModel(script=["Tea"])
    options = RecallOptions(max_chars=400, where=Where(kinds=["note"]), format=lambda record, text: f"{text}!")
    with_memory(model, ann, recall=options).invoke("tea", TUESDAY)
    shown = model.prompts[-1][0].text
    assert "- The tea is in the tin!" in shown
    assert "Ann drinks" not in shown
