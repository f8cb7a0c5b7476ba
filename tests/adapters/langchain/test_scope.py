"""The memory that a call reaches."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from memory_core import BoundMemory, Memory, ScopeError
from memory_langchain.scope import ScopeResolver


@dataclass
class Context:
    user_id: object
    session_id: object = "from context"


class Model(BaseModel):
    user_id: str


def config(**configurable: object) -> RunnableConfig:
    return {"configurable": dict(configurable)}


@pytest.mark.parametrize("context", [Context("ann"), {"user_id": "ann"}, Model(user_id="ann")])
def test_the_context_may_be_a_dataclass_a_mapping_or_a_model(open_handle: BoundMemory, context: object) -> None:
    assert ScopeResolver(open_handle).resolve(config(), context=context).memory.scope.user == "ann"


def test_the_context_of_a_graph_run_is_found_in_its_config(open_handle: BoundMemory) -> None:
    running = config(__pregel_runtime=SimpleNamespace(context=Context("ann")))
    scope = ScopeResolver(open_handle).resolve(running)
    assert (scope.memory.scope.user, scope.session) == ("ann", "from context")


def test_context_goes_before_config(open_handle: BoundMemory) -> None:
    resolver = ScopeResolver(open_handle)
    asked = config(user_id="asked", thread_id="asked", agent_id="asked")
    scope = resolver.resolve(asked)
    assert (scope.memory.scope.user, scope.session, scope.agent) == ("asked", "asked", "asked")
    given = resolver.resolve(asked, context=Context("given"))
    assert (given.memory.scope.user, given.session, given.agent) == ("given", "from context", "asked")


@pytest.mark.parametrize("name", ["session_id", "thread_id", "conversation_id"])
def test_a_conversation_has_three_names_for_the_same_scope(ann: BoundMemory, name: str) -> None:
    assert ScopeResolver(ann).resolve(config(**{name: "monday"}), needs_session=True).session == "monday"


def test_among_the_names_of_a_conversation_session_id_comes_first(ann: BoundMemory) -> None:
    both = config(conversation_id="c", thread_id="t", session_id="s")
    assert ScopeResolver(ann).resolve(both).session == "s"


@pytest.mark.parametrize("value", [None, "", "  ", True, 1.5, object(), ["ann"]])
@pytest.mark.parametrize("name", ["user_id", "session_id", "thread_id", "agent_id"])
def test_a_key_that_is_named_but_empty_is_an_error(ann: BoundMemory, name: str, value: object) -> None:
    with pytest.raises(ScopeError, match=name):
        ScopeResolver(ann).resolve(config(**{name: value}))


def test_none_in_a_context_names_nothing(open_handle: BoundMemory, ann: BoundMemory) -> None:
    silent = Context(user_id=None, session_id=None)
    asked = config(user_id="ann", thread_id="monday")
    for resolver in (ScopeResolver(open_handle), ScopeResolver(ann)):
        for context in (silent, {"user_id": None}):
            scope = resolver.resolve(asked, context=context, needs_session=True)
            assert (scope.memory.scope.user, scope.session) == ("ann", "monday")
    with pytest.raises(ScopeError, match="no user is named"):
        ScopeResolver(open_handle).resolve(config(), context=silent)
    with pytest.raises(ScopeError, match="authenticated as 'ann'"):
        ScopeResolver(open_handle).resolve(
            config(langgraph_auth_user=SimpleNamespace(identity="ann"), user_id="bob"), context=silent
        )


@pytest.mark.parametrize("value", ["", " ", True, 1.5])
def test_an_empty_key_of_a_context_is_an_error(ann: BoundMemory, value: object) -> None:
    with pytest.raises(ScopeError, match="user_id"):
        ScopeResolver(ann).resolve(config(user_id="ann"), context=Context(value))


def test_a_missing_user_or_conversation_is_an_error_that_names_the_way_out(open_handle: BoundMemory) -> None:
    with pytest.raises(ScopeError, match=r"configurable.*user_id"):
        ScopeResolver(open_handle).resolve(config(session_id="s"))
    with pytest.raises(ScopeError, match=r"configurable.*session_id"):
        ScopeResolver(open_handle).resolve(config(user_id="ann"), needs_session=True)


def test_numbers_and_uuids_stand_for_their_text(open_handle: BoundMemory) -> None:
    thread = uuid.uuid4()
    scope = ScopeResolver(open_handle).resolve(config(user_id=7, thread_id=thread))
    assert (scope.memory.scope.user, scope.session) == ("7", str(thread))


def test_a_handle_that_fixes_the_user_accepts_no_other(ann: BoundMemory) -> None:
    assert ScopeResolver(ann).resolve().memory.scope.user == "ann"
    assert ScopeResolver(ann).resolve(config(user_id="ann")).memory.scope.user == "ann"
    with pytest.raises(ScopeError, match="bob"):
        ScopeResolver(ann).resolve(config(user_id="bob"))


def test_a_handle_that_fixes_the_conversation_accepts_no_other(memory: Memory) -> None:
    narrow = memory.bind(app="demo", user="ann", session="monday")
    assert ScopeResolver(narrow).resolve(needs_session=True).session == "monday"
    with pytest.raises(ScopeError, match="tuesday"):
        ScopeResolver(narrow).resolve(config(session_id="tuesday"))


def test_an_authenticated_user_is_the_owner_and_cannot_ask_for_another(open_handle: BoundMemory) -> None:
    signed_in = SimpleNamespace(identity="ann")
    assert ScopeResolver(open_handle).resolve(config(langgraph_auth_user=signed_in)).memory.scope.user == "ann"
    with pytest.raises(ScopeError, match="authenticated as 'ann'"):
        ScopeResolver(open_handle).resolve(config(langgraph_auth_user=signed_in, user_id="bob"))


def test_an_authenticated_user_without_a_name_is_not_taken_for_whom_the_call_names(open_handle: BoundMemory) -> None:
    for unknown in (SimpleNamespace(identity=None), SimpleNamespace(), {"identity": " "}):
        with pytest.raises(ScopeError, match="identity"):
            ScopeResolver(open_handle).resolve(config(langgraph_auth_user=unknown, user_id="bob"))
    numbered = SimpleNamespace(identity=7)
    assert (
        ScopeResolver(open_handle).resolve(config(langgraph_auth_user=numbered, user_id="7")).memory.scope.user == "7"
    )


def test_without_authentication_a_call_may_name_the_user(open_handle: BoundMemory) -> None:
    open_server = config(langgraph_auth_user=None, langgraph_auth_user_id="", user_id="bob")
    assert ScopeResolver(open_handle).resolve(open_server).memory.scope.user == "bob"


def test_without_authentication_the_empty_user_of_the_server_leaves_the_one_that_the_developer_named(
    open_handle: BoundMemory, ann: BoundMemory
) -> None:
    of_server = config(langgraph_auth_user=None, langgraph_auth_user_id="", user_id="", thread_id="t")
    assert ScopeResolver(ann).resolve(of_server).memory.scope.user == "ann"
    with pytest.raises(ScopeError, match="no user is named"):
        ScopeResolver(open_handle).resolve(of_server)


@pytest.mark.parametrize("value", [" ", None, 0.5])
def test_of_a_server_only_the_empty_text_counts_as_no_user(ann: BoundMemory, value: object) -> None:
    with pytest.raises(ScopeError, match="user_id must"):
        ScopeResolver(ann).resolve(config(langgraph_auth_user=None, user_id=value))


def test_an_empty_user_that_no_server_has_set_is_an_error(ann: BoundMemory) -> None:
    for call in (config(user_id=""), config(langgraph_auth_user_id="", user_id="")):
        with pytest.raises(ScopeError, match="user_id must"):
            ScopeResolver(ann).resolve(call)
    server = config(langgraph_auth_user=None, user_id="")
    with pytest.raises(ScopeError, match="user_id must"):
        ScopeResolver(ann).resolve(server, context=Context(""))


@pytest.mark.parametrize("user", [{"identity": ""}, SimpleNamespace(identity="", is_authenticated=False)])
@pytest.mark.parametrize("named", [{}, {"user_id": ""}, {"user_id": "bob"}])
def test_with_authentication_an_empty_user_is_an_error_whoever_else_is_named(
    open_handle: BoundMemory, ann: BoundMemory, user: object, named: dict[str, object]
) -> None:
    for resolver in (ScopeResolver(open_handle), ScopeResolver(ann)):
        with pytest.raises(ScopeError, match="the identity of the authenticated user"):
            resolver.resolve(config(langgraph_auth_user=user, langgraph_auth_user_id="", **named))


def test_a_user_whose_name_is_all_that_the_server_passes_on_is_authenticated(
    open_handle: BoundMemory, memory: Memory
) -> None:
    scheduled = {"langgraph_auth_user": None, "langgraph_auth_user_id": "ann"}
    assert ScopeResolver(open_handle).resolve(config(**scheduled)).memory.scope.user == "ann"
    with pytest.raises(ScopeError, match="authenticated as 'ann'"):
        ScopeResolver(open_handle).resolve(config(**scheduled, user_id="bob"))
    assert ScopeResolver(open_handle).resolve(config(**scheduled, user_id="")).memory.scope.user == "ann"
    with pytest.raises(ScopeError, match="'bob'"):
        ScopeResolver(memory.bind(app="demo", user="bob")).resolve(config(**scheduled, user_id=""))


def test_a_memory_without_a_handle_stands_for_the_default_app(memory: Memory) -> None:
    assert ScopeResolver(memory).resolve(config(user_id="ann")).memory.scope.app == "default"
