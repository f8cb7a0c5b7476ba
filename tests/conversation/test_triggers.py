from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import InvalidInputError, TriggerDetector
from memory_core.adapting import Detection, LastMessages
from memory_core.conversation.messages.triggers import FACT_TRIGGERS, MEMORY_TRIGGERS

DETECTOR = TriggerDetector()
KINDS = [(trigger, "memories") for trigger in MEMORY_TRIGGERS] + [(t, "important_fact") for t in FACT_TRIGGERS]


@pytest.mark.parametrize(("trigger", "kind"), KINDS)
def test_every_documented_trigger_detects_its_kind_in_any_case(trigger: str, kind: str) -> None:
    for before, written in itertools.product(
        ("", "Well, "), (trigger, trigger.lower(), trigger.upper(), trigger.title())
    ):
        found = DETECTOR.detect(f"{before}{written} the gate code is 4711 #beto_home")
        assert found is not None
        assert (found.kind, found.tags, found.previous) == (kind, ("beto_home",), False)
        assert found.text.endswith("the gate code is 4711")


@pytest.mark.parametrize(
    "message",
    [
        "artifact: x",
        "unimportant: y",
        "in-memory: z",
        "restore this factory",
        "An artifact: a vase",
        "unimportant: the colour",
        "an in-memory: cache",
        "we restore this factory",
        "how we designedly fail",
        "nothing of the kind #beto_home",
        "",
    ],
)
def test_a_trigger_inside_another_word_is_none(message: str) -> None:
    assert DETECTOR.detect(message) is None


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Hi Bob. important: use Python 3.10+", "use Python 3.10+"),
        ("The code is 4711. Important: ", "The code is 4711. Important:"),
        ("Hi Bob. Yesterday we built it with Ann. It works.", "Yesterday we built it with Ann. It works."),
        ("Let\u2019s save this: a red gate", "Let\u2019s save this: a red gate"),
        ("remember: above the bakery is a dentist", "above the bakery is a dentist"),
        ("note this: the file_kit #beto_kit is #beto_kit_2 done", "the file_kit is done"),
    ],
)
def test_what_is_remembered_is_what_follows_a_sign_or_the_sentence_of_a_phrase(message: str, text: str) -> None:
    found = DETECTOR.detect(message)
    assert found is not None
    assert (found.text, found.previous) == (text, False)


@pytest.mark.parametrize(
    "message", ["Let's save this", "remember: my previous message", "save this design @beto_arch", "important: above!"]
)
def test_a_message_that_says_nothing_itself_means_the_one_before(message: str) -> None:
    found = DETECTOR.detect(message)
    assert found is not None
    assert (found.previous, found.text) == (True, "")


def test_tags_keep_their_prefix_count_once_and_are_not_found_in_addresses() -> None:
    assert DETECTOR.tags("@beto_b #beto_a #beto_b me@beto_z #other") == ("beto_b", "beto_a")


def test_triggers_can_be_replaced_and_blank_ones_are_refused() -> None:
    detector = TriggerDetector(["document this"], ["note down"])
    assert detector.detect("important: the gate is red") is None
    found = detector.detect("Note down the gate is red")
    assert found == Detection(kind="important_fact", text="Note down the gate is red", tags=(), previous=False)
    with pytest.raises(InvalidInputError, match="blank"):
        TriggerDetector([" "])


@given(st.text(), st.sampled_from([trigger for trigger, _ in KINDS]), st.text())
def test_a_detected_text_is_part_of_the_message_or_empty(before: str, trigger: str, after: str) -> None:
    message = f"{before} {trigger} {after}"
    found = DETECTOR.detect(message)
    assert found is not None
    assert found.previous == (not found.text)
    if "beto_" not in message:
        assert found.text in message


def test_long_texts_that_lead_nowhere_are_searched_in_linear_time() -> None:
    for filler in (" ", "!", "\n", "we ", "#", "let's save "):
        DETECTOR.detect(filler * 100_000 + " important: x")  # the suite's time-out is the assertion


def test_the_last_message_of_one_user_is_never_another_users() -> None:
    last = LastMessages(conversations=2)
    last.note("Ann's secret", user="ann", session="s")
    assert last.last(user="mallory", session="s") is None
    assert last.last(user="ann", session="t") is None
    assert last.last(user="ann", session="s") == "Ann's secret"
    last.note("one", user="bob")
    last.note("two", user="eve")
    assert last.last(user="ann", session="s") is None
