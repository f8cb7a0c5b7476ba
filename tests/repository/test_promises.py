"""The promises of pages with "always", "never", "nothing" or "only" are tested: each such sentence names its tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from tests.repository.architecture import ROOT
from tests.repository.serve_promises import SERVE
from tests.repository.test_conversations import names_in

WORDS: Final = re.compile(r"(?i)\b(?:always|never|nothing|only)\b")
CODE: Final = re.compile(r"(?ms)^```.*?^```$")

LANGCHAIN: Final[Mapping[str, Sequence[str]]] = {
    "0 recalls nothing": [
        "langchain/test_recall.py::test_the_options_of_a_recall_are_the_chains_to_choose",
        "langchain/test_middleware.py::test_a_limit_of_0_recalls_nothing_not_even_what_is_pinned",
    ],
    "a `limit` of 0 recalls nothing": [
        "langchain/test_middleware.py::test_a_limit_of_0_recalls_nothing_not_even_what_is_pinned",
    ],
    "If the model fails, the call is cancelled, or the stream is not read to its end, only the question is stored": [
        "langchain/test_runnable_failures.py::test_a_model_failure_keeps_the_question",
        "langchain/test_runnable_failures.py::test_a_cancelled_call_keeps_the_question",
        "langchain/test_runnable_failures.py::test_an_abandoned_stream_keeps_the_question",
        "langchain/test_runnable_failures.py::test_an_abandoned_async_stream_does_the_same",
    ],
    "The output of a model never chooses the owner": [
        "langchain/test_tools.py::test_a_model_cannot_reach_another_users_memory",
        "langchain/test_tools.py::test_another_users_memory_cannot_be_changed_by_its_id",
        "langchain/test_spaces.py::test_no_label_of_a_model_reaches_a_space",
    ],
    "recalls, but stores nothing, if LangGraph's node of tools has its default name": [
        "langchain/test_middleware.py::test_what_a_tool_asks_a_sub_agent_is_not_stored_as_the_users_words",
    ],
    "what other middleware adds to a request only": [
        "langchain/test_middleware.py::test_what_another_middleware_adds_to_a_request_alone_is_shown_but_not_stored",
    ],
    "The content of files, tool results and system messages are part of the history only": [
        "langchain/test_messages.py::test_what_people_and_models_said_is_found_under_their_names",
        "langchain/test_sent_files.py::test_the_history_keeps_the_message_and_search_finds_it",
    ],
    "belongs to one handle and returns only its own documents": [
        "langchain/test_vectorstore.py::test_a_vector_store_belongs_to_one_handle_and_returns_only_its_own_documents",
        "langchain/test_vectorstore.py::test_it_shows_documents_only_and_they_are_memories_like_others",
    ],
}
STORE: Final[Mapping[str, Sequence[str]]] = {
    "Namespaces only say which user an item is about": [
        "langchain/store/test_store.py::test_namespaces_only_say_which_user_an_item_is_about",
    ],
    "Only numbers and strings are ordered": [
        "langchain/store/test_store_filters.py::test_only_numbers_and_strings_are_ordered",
    ],
    "expired items are never returned, regardless of `omit_expired`": [
        "langchain/store/test_store_ttl.py::test_expired_items_are_never_returned",
    ],
    "nothing is embedded, and items with words of the query come first": [
        (
            "langchain/store/test_store_making.py"
            "::test_without_an_index_nothing_is_embedded_and_items_with_the_words_come_first"
        ),
    ],
    "changes the scores and never the order": [
        "langchain/store/test_store_making.py::test_a_distance_type_changes_the_scores_and_never_the_order",
    ],
    "`ann_index_config` changes nothing": [
        "langchain/store/test_store_making.py::test_ann_index_config_changes_nothing",
    ],
    "For a store that only LangMem uses": ["langchain/store/test_store_use.py::test_langmems_tools_work_on_it"],
}
CONVERSATIONS: Final[Mapping[str, Sequence[str]]] = {
    "Nothing is inferred from what is absent, from names or from texts": [
        "langchain/test_following.py::test_lost_checkpoints_leave_nothing",
        "langchain/test_following.py::test_a_client_that_sends_only_what_is_new_leaves_nothing",
        "langchain/test_run_start.py::test_agents_with_checkpointers_of_their_own_leave_nothing_of_each_other",
        "adk/test_rewind.py::test_a_cut_list_leaves_nothing",
    ],
    "nothing: a message is one record": [
        "test_one_conversation.py::test_a_framework_keeps_a_conversation_once_however_it_is_handed_over",
        "test_one_conversation.py::test_two_processes_at_once_keep_a_conversation_once",
    ],
    "(nodes and middleware that trim, summarise or rewrite inside a run) | nothing: what was said stays": [
        (
            "langchain/test_histories_of_memories.py"
            "::test_each_memory_holds_the_words_of_its_person_alone_and_all_that_were_not_taken_back"
        ),
    ],
    "(nobody's words) | nothing": [
        (
            "langchain/test_histories_of_memories.py"
            "::test_each_memory_holds_the_words_of_its_person_alone_and_all_that_were_not_taken_back"
        ),
    ],
    "(no record tells it) | nothing: what was said stays as it was said": [
        "langchain/test_not_followed.py::test_a_branch_that_another_person_leaves_stays",
        "langchain/test_not_followed.py::test_what_is_edited_before_a_run_without_memory_stays_as_it_was_said",
    ],
    "Where a framework keeps no record, what was said last and its answers are kept, and nothing is ever left": [
        "langchain/test_run_start.py::test_without_a_checkpointer_the_last_question_is_said",
        "langchain/test_following.py::test_what_a_client_changes_without_a_record_stays_as_it_was_said",
        "langchain/test_following.py::test_a_client_that_sends_only_what_is_new_leaves_nothing",
    ],
    "only a process that is killed before that loses it": [
        "matrix/test_hanging.py::test_a_memory_that_does_not_answer_costs_no_answer",
        (
            "langchain/test_histories_of_memories.py"
            "::test_each_memory_holds_the_words_of_its_person_alone_and_all_that_were_not_taken_back"
        ),
    ],
    "more only where an agent stands behind nodes of a graph": [
        "langchain/test_run_start.py::test_a_plain_turn_loads_at_most_two_checkpoints",
        "langchain/test_run_start.py::test_a_named_checkpoint_costs_no_third_load",
        "langchain/test_run_start.py::test_an_agent_of_a_graph_loads_what_lies_between_it_and_the_input",
    ],
}
SPADE: Final[Mapping[str, Sequence[str]]] = {
    "SPADE without spade_llm fetches nothing": [
        "spade/test_lifecycle.py::test_the_mixin_loads_spade_only_and_the_package_not_even_that",
    ],
    "Nothing that the agent has heard is lost then": [
        "spade/test_sigterm.py::test_sigterm_loses_nothing_that_a_program_of_spade_run_has_heard",
    ],
    "The model of an `LLMAgent` receives only messages with the metadata": [
        "spade/test_promises.py::test_the_model_receives_only_messages_that_are_for_it",
    ],
    "`search_memories` never shows one peer the notes about another; a memory that is bound": [
        "spade/test_promises.py::test_in_an_agents_own_memory_a_search_never_shows_one_peer_the_notes_about_another",
    ],
    "A tool call belongs to the conversation of the running task, never to one that the model names": [
        (
            "spade/test_promises.py"
            "::test_a_tool_call_belongs_to_the_running_conversation_and_never_to_one_that_the_model_names"
        ),
    ],
    "reaches a space only if your code or its model stores it there": [
        "spade/test_shared.py::test_a_message_stays_private",
        "spade/test_shared.py::test_the_model_chooses_among_the_writable_spaces_and_no_label_of_its_own_reaches_one",
    ],
}
SPADE_AGENTS: Final[Mapping[str, Sequence[str]]] = {
    "is recognised only as a whole": [
        (
            "test_one_conversation.py"
            "::test_what_an_agent_hears_of_a_conversation_that_is_stored_already_is_kept_as_said_again"
        ),
    ],
    "The stamp is always in": [
        "spade/test_corrections.py::test_a_peer_cannot_choose_when_its_message_was_said",
    ],
}
BANK: Final[Mapping[str, Sequence[str]]] = {
    "compression destroys nothing": [
        "../bank/test_bank.py::test_what_is_compressed_is_still_found_and_linked_from_its_summary",
        "spade/test_promises.py::test_every_tool_call_is_a_numbered_step_and_compression_destroys_nothing",
    ],
    "never the newest entry": [
        "../bank/test_bank.py::test_important_entries_survive_longest_and_the_newest_is_never_compressed",
    ],
    "Two processes that work on one task at the same time lose nothing": [
        "../bank/test_bank.py::test_two_processes_that_work_on_one_task_lose_nothing",
    ],
}
PROMISES: Final = {
    "spade": SPADE,
    "spade-agents": SPADE_AGENTS,
    "bank": BANK,
    "langchain": LANGCHAIN,
    "langgraph-store": STORE,
    "conversations": CONVERSATIONS,
    "serve": SERVE,
}
"""By page the promises, as they stand there, and the tests that keep them."""


@pytest.mark.parametrize("page", PROMISES)
def test_every_promise_of_a_page_is_tested(page: str) -> None:
    source = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    text, promises = " ".join(CODE.sub("", source).split()), PROMISES[page]
    assert [promise for promise in promises if promise not in text] == [], "no longer on the page"
    places = [range(start, start + len(promise)) for promise in promises for start in _starts(promise, text)]
    untested = [found for found in WORDS.finditer(text) if not any(found.start() in place for place in places)]
    assert [text[max(found.start() - 80, 0) : found.end() + 80] for found in untested] == []
    for tests in promises.values():
        for test in tests:
            file, _, name = test.partition("::")
            assert name in names_in(file), f"there is no {test}"


def _starts(promise: str, text: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(promise), text)]
