"""The wishes of a query, read from its words."""

import pytest

from memory_core.retrieval.question import parse, without_names


@pytest.mark.parametrize(
    ("query", "user", "assistant"),
    [
        ("Where did I park the car?", True, False),
        ("What is my sister called?", True, False),
        ("What did you recommend to me?", False, True),
        ("Which steps have you already suggested?", False, True),
        ("What was your advice on my knee?", False, True),
        ("What did the assistant say about Rome?", False, True),
        ("Could you show me a recipe?", True, False),
        ("When does the ferry leave?", False, False),
        ("spoke length that i put in", True, False),
        ("What bothers me about Rome?", True, False),
        ("\u00bfA qui\u00e9n me parezco?", True, False),
        ("", False, False),
    ],
)
def test_a_query_says_whose_words_it_asks_for(query: str, user: bool, assistant: bool) -> None:  # noqa: FBT001
    found = parse(query)
    assert (found.about_user, found.about_assistant) == (user, assistant)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("What did Caroline paint in Lisbon?", {"carolin", "lisbon"}),
        ("Did it rain? Caroline was there, of course.", set[str]()),
        ("Where is the car", set[str]()),
        ("Wo finde ich das Passwort des Druckers?", set[str]()),
        ("caroline", set[str]()),
        ("What did we plan for Monday, May 7?", set[str]()),
    ],
)
def test_names_are_capitals_inside_an_english_sentence(query: str, names: set[str]) -> None:
    assert parse(query).proper == names


def test_participants_are_cut_out_of_what_is_embedded() -> None:
    assert without_names("What did Ann's brother tell Bob?", ["ann", "bob"]) == "What did brother tell"
    assert without_names("Ann?", ["ann"]) == "Ann?"
