"""`eval` measures what an independent count finds, refuses what is no question, and says why something was missed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from memory_core import Draft, Memory, MultilingualEmbedder, RecallOptions, run_sync
from memory_core.retrieval.question import parse, without_names
from tests.app.conftest import Run
from tests.corpora.loading import Owner, owners

KEY, SPORT, FERRY = "The spare key is with Mrs Okafor", "Ann rows on Sundays", "The ferry leaves at nine"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [KEY, SPORT, FERRY, *(f"Shelf {n} holds jam" for n in range(12))])
        run_sync(memory.bind(user="bob").add, "Bob has a boat")
    return path


def lines(tmp_path: Path, *questions: object) -> str:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(question)}\n" for question in questions))
    return str(file)


async def counted(owner: Owner, ks: Sequence[int] = (1, 5, 10)) -> dict[str, dict[str, float]]:
    """R@k of the search and of the cosine, as the definitions say."""
    embedder = MultilingualEmbedder()
    texts, keys = [draft.text for draft in owner.records], [str(draft.source_key) for draft in owner.records]
    vectors = np.asarray(await embedder.embed_documents(texts)).astype(np.float16)  # as they are stored
    names = {draft.author.lower() for draft in owner.records if draft.author}  # of which each text of theirs reminds
    shares: dict[str, list[list[float]]] = {"memory-core": [], "cosine": []}
    async with Memory("memory.db") as memory:
        handle = memory.bind(user="ann")
        await handle.add_many(owner.records)
        for question in owner.questions:
            hits = await handle.search(question.text, limit=10)
            vector = await embedder.embed_query(without_names(question.text, parse(question.text).names & names))
            order = np.argsort(-(vectors @ vector), kind="stable")
            for name, found in (
                ("memory-core", [str(hit.record.source_key) for hit in hits]),
                ("cosine", [keys[place] for place in order]),
            ):
                shares[name].append(
                    [len(question.evidence.intersection(found[:k])) / len(question.evidence) for k in ks]
                )
    await embedder.close()
    return {name: {str(k): fmean(row[at] for row in rows) for at, k in enumerate(ks)} for name, rows in shares.items()}


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["facts", "agent_logs", "changing"])
def test_the_figures_are_those_of_an_independent_count(corpus: str, run: Run, tmp_path: Path) -> None:
    owner = owners(corpus)[0]
    expected = run_sync(counted, owner)
    with Memory("memory.db") as memory:
        page = run_sync(memory.bind(user="ann").list, limit=10_000)
    ids = {record.source_key: record.id for record in page.records}
    asked = [
        {"question": question.text, "expect": [ids[key] for key in question.evidence]} for question in owner.questions
    ]
    found = run("eval", lines(tmp_path, *asked), "--json").value
    assert found["questions"] == found["answerable"] == len(owner.questions)
    assert found["found"]["memory-core"] == pytest.approx(expected["memory-core"], abs=1e-4)
    assert found["found"]["cosine"] == pytest.approx(expected["cosine"], abs=0.02)  # long texts in parts
    assert {miss["question"] for miss in found["misses"]} <= {question["question"] for question in asked}
    ahead = found["ahead"]["BM25"]["10"]["by"]
    assert ahead == pytest.approx(found["found"]["memory-core"]["10"] - found["found"]["BM25"]["10"], abs=2e-4)


def test_blocks_and_silence_are_measured(file: Path, run: Run, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = [
        {"question": "Who can let me in?", "expect": ["mrs   OKAFOR"]},
        {"question": "Which sport does Ann do, and when does the ferry leave?", "expect": [SPORT, FERRY]},
        {"question": "What is the capital of Peru?"},
        {"question": "shelf jam", "expect": []},
    ]
    found = run("eval", lines(tmp_path, *asked), "--json").value
    assert (found["questions"], found["answerable"]) == (4, 2)
    assert found["silent"] == 0.5
    with Memory(file) as memory:
        for budget, share in found["blocks"].items():
            whole = []
            for question in asked[:2]:
                options = RecallOptions(max_chars=int(budget))
                block = run_sync(memory.bind(user="ann").recall, str(question["question"]), options).text
                wanted = [KEY] if question is asked[0] else [SPORT, FERRY]
                whole.append(all(text in block for text in wanted))
            assert share == fmean(whole)
    table = run("eval", lines(tmp_path, *asked)).out
    assert "1 of 2 questions without an answer found nothing." in table
    for word in ("BM25", "cosine", "fusion", "block of 1,500 characters"):
        assert word in table


def test_a_miss_has_its_reason(run: Run, file: Path, tmp_path: Path) -> None:
    with Memory(file) as memory:
        archived = run_sync(memory.bind(user="ann").add, Draft("The museum opens at ten"))
        run_sync(memory.bind(user="ann").supersede, archived.id, "The museum is closed")
    asked = [
        {"question": "How many marbles fit into an aquarium?", "expect": "The ferry leaves"},
        {"question": "When does the museum open?", "expect": archived.id},
    ]
    with pytest.raises(AssertionError, match="no memory has the id"):
        run("eval", lines(tmp_path, *asked))
    found = run("eval", lines(tmp_path, asked[0]), "--json").value
    (miss,) = found["misses"]
    assert miss["question"] == asked[0]["question"]
    assert "rank" in miss["why"] or "nothing" in miss["why"] or "no word" in miss["why"]
    assert "not whole among the first ten" in run("eval", lines(tmp_path, asked[0])).out


def test_models_stand_side_by_side_with_the_error_of_the_difference(run: Run, file: Path, tmp_path: Path) -> None:
    asked = [{"question": "Who can let me in?", "expect": KEY}, {"question": "jam on shelf 3", "expect": "Shelf 3"}]
    found = run("eval", lines(tmp_path, *asked), "--beside", "none", "--json").value
    assert list(found["found"]) == ["memory-core", "with none", "BM25", "cosine", "fusion"]
    assert found["found"]["with none"]["10"] == 0.5
    gaps = [1.0, 0.0]
    assert found["ahead"]["with none"]["10"] == {
        "by": 0.5,
        "error": pytest.approx(stdev(gaps) / len(gaps) ** 0.5, abs=1e-4),
    }
    words = run("eval", lines(tmp_path, *asked), "--embedder", "none", "--json").value
    assert list(words["found"]) == ["memory-core", "BM25"]


def test_rerankers_stand_beside_our_own_order(run: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "judges.py").write_text(
        "class Shortest:\n    async def rerank(self, query, texts):\n        return [-len(text) for text in texts]\n"
    )
    asked = [{"question": "Who can let me in?", "expect": KEY}]
    found = run("eval", lines(tmp_path, *asked), "--reranker", "judges:Shortest", "--json").value
    assert list(found["found"])[:2] == ["memory-core", "by judges:Shortest"]
    assert found["found"]["memory-core"]["1"] == 1
    assert found["found"]["by judges:Shortest"]["1"] == 0  # the key's text is the longest
    for wrong in ("judges:Nobody", "nowhere:Shortest", "json:dumps", "judges"):
        said = run("eval", lines(tmp_path, *asked), "--reranker", wrong, code=2).err
        assert "reranker" in said


def test_settings_stand_beside_our_own_search(run: Run, file: Path, tmp_path: Path) -> None:
    asked = [{"question": "Who can let me in?", "expect": KEY}]
    found = run(
        *("eval", lines(tmp_path, *asked), "--json"),
        *("--setting", '{"mode": "lexical"}', "--setting", '{"recency": 0.3, "diversity": 0.2}'),
    ).value
    assert list(found["found"])[:3] == [
        "memory-core",
        'with {"mode": "lexical"}',
        'with {"recency": 0.3, "diversity": 0.2}',
    ]
    assert found["found"]["memory-core"]["10"] == 1
    assert found["found"]['with {"mode": "lexical"}']["10"] == 0  # the question shares no word with the memory
    for wrong in ("{", "7", '{"limit": 5}', '{"recency": "much"}', '{"mode": "magic"}'):
        said = run("eval", lines(tmp_path, *asked), "--setting", wrong, code=2).err
        assert any(name in said for name in ("setting", "recency", "mode")), said


def test_templates_are_for_a_person_to_edit(run: Run, file: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    assert run("eval", "--make", "5", str(made), "--json").value == {"file": str(made), "questions": 5}
    templates = [json.loads(line) for line in made.read_text().splitlines()]
    assert all(template["question"].startswith("EDIT: ") for template in templates)
    assert "there are still questions that begin with 'EDIT:' (5)" in run("eval", str(made), code=2).err
    assert "exists" in run("eval", "--make", "5", str(made), code=2).err
    edited = [{**template, "question": "Which shelf holds the jam?"} for template in templates]
    assert run("eval", lines(tmp_path, *edited), "--json").value["questions"] == 5
    assert "no memories to ask about" in run("eval", "--make", "5", "x.jsonl", "--user", "eve", code=2).err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no questions"),
        ("nonsense", "line 1 is not JSON"),
        ("[]", "line 1 is no question"),
        ('{"question": " "}', "line 1 is no question"),
        ('{"question": "x", "expect": 5}', "line 1 is no question"),
        ('{"question": "x", "expect": [""]}', "line 1 is no question"),
        ('\n{"question": "x", "expect": ["Bob has a boat"]}', "no memory has the id or the words"),
    ],
)
def test_what_is_no_question_is_refused_by_its_line(text: str, said: str, run: Run, file: Path) -> None:
    assert said in run("eval", "-", stdin=text, code=2).err


def test_a_missing_file_is_refused(run: Run, file: Path) -> None:
    assert "cannot be read" in run("eval", "nowhere.jsonl", code=2).err


def test_asking_counts_as_no_read(run: Run, file: Path, tmp_path: Path) -> None:
    run("eval", lines(tmp_path, {"question": "Who can let me in?", "expect": KEY}))
    with Memory(file) as memory:
        records: list[Any] = list(run_sync(memory.bind(user="ann").list).records)
    assert all(record.access_count == 0 for record in records)


SEPARATED = "Who\u2028has\x85the\x0cspare\u2029key?"
"""A text that `str.splitlines` takes for five lines."""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_of_questions_ends_at_a_line_end_and_nowhere_else(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    asked = {"question": SEPARATED.replace("\x0c", " "), "expect": KEY}
    line = json.dumps(asked, ensure_ascii=False) + end
    (tmp_path / "asked.jsonl").write_bytes(2 * line.encode())
    for place, stdin in (("asked.jsonl", ""), ("-", 2 * line)):
        done = run("eval", place, "--user", "ann", "--embedder", "none", "--json", stdin=stdin)
        assert done.value["questions"] == 2


def test_templates_of_texts_with_separators_are_questions_once_they_are_edited(run: Run, tmp_path: Path) -> None:
    run("add", SEPARATED, "--embedder", "none")
    run("eval", "made.jsonl", "--make", "1", "--embedder", "none")
    made = tmp_path / "made.jsonl"
    made.write_bytes(made.read_bytes().replace(b"EDIT: ", b""))
    assert run("eval", "made.jsonl", "--embedder", "none", "--json").value["questions"] == 1
