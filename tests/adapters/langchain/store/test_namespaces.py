"""Namespaces as paths: injective, prefix-true, and with a label for any id."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition
from langgraph.store.memory import InMemoryStore

from memory_langchain import MemoryStore, id_of_label, namespace_label
from memory_langchain.namespaces import from_path, matches, to_path

LABELS = st.text(st.characters(exclude_characters=".\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
NAMESPACES = st.lists(st.sampled_from(["a", "a/b", "%2F", "/", " ", "é", "*"]) | LABELS, min_size=1, max_size=4).map(
    tuple
)


@given(NAMESPACES)
def test_a_namespace_comes_back_as_it_was(namespace: tuple[str, ...]) -> None:
    assert from_path(to_path(namespace)) == namespace


@given(NAMESPACES, NAMESPACES)
@example(("a/b",), ("a", "b"))
@example(("a%2Fb",), ("a/b",))
def test_two_namespaces_never_share_a_path(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (to_path(one) == to_path(other)) == (one == other)
    assert to_path(other).startswith(to_path(one) + "/") == (one == other[: len(one)] and one != other)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))
@example("alice@example.com")
@example("a.b")
@example("%2E")
def test_any_id_has_a_label_of_its_own(given_id: str) -> None:
    label = namespace_label(given_id)
    assert not {".", "\0"} & set(label)
    assert id_of_label(label) == given_id


@pytest.mark.parametrize("user", ["alice@example.com", "a.b", "a/b", "é", 7, uuid.UUID(int=5), "%2E", " "], ids=repr)
def test_users_of_every_spelling_keep_to_themselves(store: MemoryStore, user: Any) -> None:
    others = ["alice@example%2Ecom", "a", "b", "e", "70", "a%2Eb", "alice@example", "%"]
    for label in others:
        store.put((namespace_label(label),), "k", {"whose": label})
    store.put((namespace_label(user), "prefs"), "k", {"whose": "mine"})
    (found,) = store.search((namespace_label(user),), query="whose")
    assert found.value == {"whose": "mine"}
    assert id_of_label(found.namespace[0]) == str(user)
    assert store.get((namespace_label(user), "prefs"), "k") == store.search((namespace_label(user),))[0]
    assert (namespace_label(user), "prefs") in store.list_namespaces()


@pytest.mark.parametrize("bad", ["", None, True, 1.5, b"a"], ids=repr)
def test_what_is_no_id_has_no_label(bad: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        namespace_label(bad)


@pytest.mark.parametrize(
    "path", [(), ("",), ("x" * 513,), ("é" * 100, " " * 100, "/" * 100)], ids=lambda path: str(path)[:20]
)
def test_a_namespace_that_cannot_be_stored_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        to_path(path)


CONDITIONS = st.builds(
    MatchCondition,
    st.sampled_from(["prefix", "suffix"]),
    st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3).map(tuple),
)


@given(
    st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple), unique=True, max_size=6),
    st.lists(CONDITIONS, max_size=2),
)
def test_conditions_match_as_in_langgraph(namespaces: list[tuple[str, ...]], conditions: list[MatchCondition]) -> None:
    reference = InMemoryStore()
    for namespace in namespaces:
        reference.put(namespace, "k", {})
    (wanted,) = reference.batch([ListNamespacesOp(match_conditions=tuple(conditions))])
    found = [one for one in namespaces if all(matches(one, condition) for condition in conditions)]
    assert sorted(found) == wanted


def test_a_match_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="infix"):
        matches(("a",), MatchCondition("infix", ("a",)))  # type: ignore[arg-type]


def test_a_label_of_an_id_is_no_wildcard_and_no_reserved_label(store: MemoryStore) -> None:
    for user in ("*", "langgraph", "ann"):
        store.put(("users", namespace_label(user)), "k", {"v": 1})
        store.put((namespace_label(user), "notes"), "k", {"v": 1})
        assert id_of_label(namespace_label(user)) == user
    starred = ("users", namespace_label("*"))
    assert store.list_namespaces(prefix=starred) == [starred]
