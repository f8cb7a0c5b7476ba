"""The corpora are consistent in themselves; nothing is embedded here."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.corpora.loading import CORPORA, UNANSWERABLE, lines, owners


def plain(text: str) -> str:
    """The rest of a text for somebody who does not look at case, spaces and punctuation."""
    return "".join(re.findall(r"\w", text.casefold()))


@pytest.mark.parametrize("corpus", CORPORA)
def test_ids_are_unique_and_evidence_exists(corpus: str) -> None:
    for owner in owners(corpus):
        ids = [draft.source_key for draft in owner.records]
        assert len(set(ids)) == len(ids)
        for question in owner.questions:
            assert question.evidence, f"{question.text!r} has no evidence"
            assert question.evidence <= set(ids), f"{question.text!r} names {question.evidence - set(ids)}"


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_question_is_asked_of_an_owner_twice_or_is_the_text_of_its_evidence(corpus: str) -> None:
    for owner in owners(corpus):
        texts = {draft.source_key: plain(draft.text) for draft in owner.records}
        asked = Counter(plain(question.text) for question in (*owner.questions, *owner.unanswerable))
        assert not [question for question, times in asked.items() if times > 1]
        for question in owner.questions:
            assert plain(question.text) not in {texts[key] for key in question.evidence}, question.text


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_record_is_blank_or_there_twice_in_a_session_and_time_goes_forward(corpus: str) -> None:
    for owner in owners(corpus):
        assert all(draft.text.strip() for draft in owner.records)
        said = Counter((draft.session, draft.author, plain(draft.text)) for draft in owner.records)
        assert not [record for record, times in said.items() if times > 1]
        times = [draft.occurred_at for draft in owner.records if draft.occurred_at]
        assert len(times) == len(owner.records)
        assert times == sorted(times)


def test_every_unanswerable_question_belongs_to_an_owner_of_a_corpus() -> None:
    known = {(corpus, owner.name) for corpus in CORPORA for owner in owners(corpus)}
    asked = Counter((line["corpus"], line["owner"]) for line in lines(UNANSWERABLE))
    assert set(asked) == known
    assert min(asked.values()) >= 10
