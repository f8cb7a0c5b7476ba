"""ADK's own tests of its in-memory, SQLite and Vertex services, each as the case that says the same here.

They are the tests of the three services in ADK's repository, one line for each test and each of its parameters, in
their order. Left out is what no other service can do: 24 tests of Vertex's client, its configuration
and its answers' form, and 4 of the tables and the word index in a SQLite file. A case that is named twice is tested
with and without that index there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_SCRIPTS: Final = [f"another script {number}" for number in range(22)]
_IN_MEMORY: Final = [
    "a_session_is_added_without_its_empty_events",
    "events_are_added",
    "events_without_a_session_are_added",
    "events_are_added",
    "events_are_appended_to_a_session",
    "an_event_id_is_stored_once",
    "a_session_without_events_is_fine",
    "a_word_finds_one_of_three_texts",
    "only_the_answer_that_matches_is_found",
    "a_question_finds_both_turns_that_have_its_word",
    "an unrelated word finds nothing",
    "users_are_kept_apart",
    "a_slash_in_a_name_does_not_join_two_names",
    *_SCRIPTS,
    "more_matching_words_of_one_session_rank_higher",
    "the_best_of_many_comes_first_and_the_others_in_their_order",
    "a_search_while_others_write_does_not_fail",
]
_SQLITE: Final = [
    "a URI with an absolute path",
    "a URI with four slashes",
    "an absolute path as text",
    "an absolute path as an object",
    "a URI with a relative path",
    "a relative path",
    "a URI without a file",
    "a path without a file",
    "a URI with mode=ro",
    "a URI with mode=ro and an app",
    "a_uri_alone_creates_nothing",
    "a_session_added_twice_is_stored_once",
    "a_grown_session_adds_what_is_new",
    "events_are_appended_to_a_session",
    "an_event_without_an_id_is_stored_once",
    *["a_file_is_shared_with_adks_sessions"] * 2,
    *["a_question_finds_a_text_with_its_author_and_time"] * 2,
    *["a text with a function word of the question is found as well"] * 2,
    *["what_was_stored_is_found_once_after_a_restart"] * 3,
    *["of similar texts only the one with the word", "an_entry_names_its_session"],
    "a percent sign is no placeholder",
    "a_memory_by_words_can_later_be_searched_by_meaning",
    *["owners_are_pairs_of_app_and_user"] * 2,
    "two_services_on_one_file_store_one_event_once",
    *["punctuation after a word", "a question finds it"],
    "an_event_that_comes_with_another_role_gets_that_role",
    *["events_are_added_concurrently"] * 2,
    "a file that is only read",
    "of_equal_matches_the_newest_comes_first",
    "an accent in another case",
    *["another script 8", "another script 9"],
    "a_file_of_a_newer_version_is_refused",
]
_VERTEX: Final = [
    "a_session_with_a_function_call_is_added",
    "metadata_of_a_call_is_kept",
    "a time to live of revisions",
    "nested_metadata_and_other_keys_are_merged",
    "the option wait_for_completion",
    "a time to live beside an empty one of revisions",
    "events_without_text_store_nothing",
    "the option force_flush",
    "options_without_events_are_fine",
    "memories_are_added_explicitly",
    "consolidation_is_accepted",
    "many_memories_can_be_added_in_one_call",
    "a consolidation that is no boolean",
    "an_explicit_memory_keeps_its_author_and_time",
    "the option allowed_topics",
    "an_explicit_memory_keeps_its_id",
    "the_memory_id_of_the_call_wins",
    "a memory with a file",
    "a memory of a function call",
    "a memory of one blank",
    "a memory of blanks and an image",
    "no memories",
    "texts instead of entries",
    "a content instead of an entry",
    "a_session_without_events_is_fine",
    "an_entry_without_metadata_has_none",
    "a_time_comes_back_as_a_time",
    "nothing was told",
]
PUBLISHED: Final[Mapping[str, Sequence[str]]] = {
    "InMemoryMemoryService": _IN_MEMORY,
    "SqliteMemoryService": _SQLITE,
    "VertexAiMemoryBankService": _VERTEX,
}
