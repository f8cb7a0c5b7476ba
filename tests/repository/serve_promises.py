"""The promises of docs/serve.md, as they stand there, and the tests that keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

SERVE: Final[Mapping[str, Sequence[str]]] = {
    "a link such as `http://127.0.0.1:8765/sign-in?key=…`": [
        "../app/serve/test_page.py::test_the_link_of_the_server_signs_in_and_nothing_else_does",
    ],
    "they see the memories of every user of the file, and with `--write` change and erase them": [
        "../app/serve/test_page.py::test_statistics_and_people",
        "../app/serve/test_page.py::test_erase_a_person_with_a_receipt_as_a_file",
    ],
    "requests in progress are answered for 5 seconds, and the memory is closed": [
        "../app/serve/test_serving.py::test_a_signal_ends_it_in_an_orderly_way",
        "../app/serve/test_promises.py::test_the_page_says_what_the_server_does",
    ],
    "is ended with the process, with code 1; what was acknowledged is stored": [
        "../app/serve/test_strangers.py::test_a_process_ends_in_time_even_if_no_thread_of_it_gets_a_turn",
        "../app/serve/test_serving.py::test_what_it_acknowledged_before_a_signal_at_any_moment_is_stored",
    ],
    "a file, or `qdrant://host/collection`": [
        "../app/serve/test_on_qdrant.py::test_a_memory_is_stored_found_changed_and_erased",
    ],
    "without it they only read, and the file is opened read-only": [
        "../app/serve/test_page.py::test_without_write_the_page_shows_and_changes_nothing",
        "../app/serve/test_api.py::test_a_server_that_only_reads_refuses_every_change",
    ],
    "needed to listen for other machines": [
        "../app/serve/test_serving.py::test_without_tokens_it_serves_this_machine_only",
    ],
    "a name of this server besides those of loopback": [
        "../app/serve/test_promises.py::test_a_server_answers_under_the_names_that_it_is_told",
    ],
    "everybody also reads the memories of that user, under the label, and changes them with `:write`": [
        "../app/serve/test_spaces.py::test_the_page_searches_all_of_them_together_and_names_each",
        "../app/serve/test_spaces.py::test_a_writable_space_is_changed_by_all_and_erased_by_none_of_them",
    ],
    "A space without memories is named at the start": [
        "../app/serve/test_spaces.py::test_a_space_without_memories_is_named_when_the_server_starts",
    ],
    "listen on another [local socket](#the-local-socket), too": [
        ("../app/serve/test_serving.py::test_it_listens_beside_its_file_where_a_second_server_does_not_take_its_place"),
    ],
    "a line for each request on standard error: method, route, status, time and bytes, no text, name or id": [
        "../app/serve/test_health.py::test_requests_are_counted_and_logged_by_route_without_a_word_of_theirs",
    ],
    "OpenTelemetry spans of requests, by route and without a name or id": [
        "../app/serve/test_health.py::test_a_span_of_a_request_lies_below_that_of_its_caller_and_has_no_text",
    ],
    "which other users of the machine must not be able to read": [
        "../app/serve/test_access.py::test_unusable_tokens_are_refused_without_showing_them",
    ],
    "Each user reaches the memories of their own name in the app of the server": [
        "../app/serve/test_access.py::test_no_route_gives_another_user_anything",
        "../app/serve/test_beside.py::test_each_token_reaches_its_own_memories_and_the_spaces",
    ],
    "it is a user without memories": [
        "mcp/test_owners.py::test_the_operator_of_a_page_is_a_user_without_memories_here",
    ],
    "A token has at least 20 characters": [
        "../app/serve/test_access.py::test_unusable_tokens_are_refused_without_showing_them",
    ],
    "results as you type, each score as a bar on the scale of the best hit, with one legend; a click shows numbers": [
        "../app/serve/test_page.py::test_search_as_you_type_draws_the_parts_of_each_score",
    ],
    "the kinds with their counts, the 50 most frequent ones, to choose from": [
        "../app/serve/test_lists.py::test_kinds_stand_above_the_list_with_their_counts_and_follow_the_question",
        "../app/serve/test_lists.py::test_many_kinds_conditions_and_data_make_no_page_of_very_many_links",
    ],
    "A line says where relevance ends; the five nearest of the rest follow it": [
        "../app/serve/test_lists.py::test_a_line_says_where_relevance_ends_and_the_best_of_the_rest_follow_it",
    ],
    "what kept a memory that you expected out of the results": [
        "../app/serve/test_page.py::test_why_not_this_one",
    ],
    "as a link to those that have the same": [
        "../app/serve/test_page.py::test_conditions_are_links",
    ],
    "Conditions add up and are part of the address, so a view can be a bookmark": [
        "../app/serve/test_forms.py::test_a_facet_keeps_the_query_and_the_other_conditions",
    ],
    "each with its first words, the number of its memories and its date, the latest first": [
        "../app/serve/test_lists.py::test_conversations_stand_once_each_with_their_first_words",
    ],
    "the conversation around it, its history, what it comes from, replaces and is replaced by": [
        "../app/serve/test_page.py::test_a_record_with_its_conversation_and_its_sources",
    ],
    "a link leads back to the results, also after it was forgotten": [
        ("../app/serve/test_lists.py::test_a_memory_leads_back_to_the_results_also_after_changes_and_after_forgetting"),
    ],
    "all but the last can be undone at once": [
        "../app/serve/test_page.py::test_correct_and_undo",
        "../app/serve/test_page.py::test_replace_and_undo",
        "../app/serve/test_page.py::test_pin_archive_and_forget",
    ],
    "what an agent would get for a question, its length, and what was considered": [
        "../app/serve/test_page.py::test_the_block_that_an_agent_gets",
    ],
    "what every prompt gets": [
        "../app/serve/test_page.py::test_the_profile_is_what_is_pinned",
    ],
    "for the newest memories, about 4 MB of them": [
        "../app/serve/test_forms.py::test_proposals_are_about_the_newest_memories_and_the_page_says_how_many",
    ],
    "what is refused is not proposed again": [
        "../app/serve/test_page.py::test_proposals_are_accepted_and_refused",
        "../app/serve/test_forms.py::test_what_is_refused_stays_refused_however_much_is_refused_later",
    ],
    "shared memories, in the list, the search and the block with their label, or by themselves": [
        "../app/serve/test_spaces.py::test_the_page_searches_all_of_them_together_and_names_each",
        "../app/serve/test_spaces.py::test_a_space_by_itself_has_its_own_memories_only",
    ],
    "a person is erased, with the receipt as a file": [
        "../app/serve/test_page.py::test_erase_a_person_with_a_receipt_as_a_file",
    ],
    "all users with their counts and dates, for the operator": [
        "../app/serve/test_lists.py::test_people_have_counts_and_dates_and_pages",
    ],
    "signs out: every browser that is signed in with the same token": [
        (
            "../app/serve/test_forms.py::test_signing_out_ends_the_sessions_of_the_caller_in_all_browsers_and_of_no"
            "body_else"
        ),
    ],
    "or at the list of people without that option": [
        "../app/serve/test_forms.py::test_an_operator_without_memories_begins_at_the_people",
    ],
    "Times are relative, or the day in the zone where it was said; each has its moment in UTC as the title": [
        "../app/serve/test_lists.py::test_a_time_is_said_as_people_say_it",
        "../app/serve/test_lists.py::test_an_old_time_is_the_day_where_it_was_and_its_title_is_in_utc",
    ],
    "A form that is older than the memory changes nothing and keeps what was typed": [
        "../app/serve/test_page.py::test_a_page_that_is_out_of_date_changes_nothing",
        "../app/serve/test_forms.py::test_what_was_typed_is_kept_when_a_form_is_out_of_date",
    ],
    (
        "Everything works with the keyboard (`/` to search, from there arrow keys through the memories), in dark "
        "mode, on a phone, and without scripts"
    ): [
        "../app/serve/test_keyboard.py::test_everything_is_done_with_the_keyboard_alone",
        "../app/serve/test_page.py::test_axe_finds_nothing",
        "../app/serve/test_page.py::test_nothing_is_wider_than_the_window",
        "../app/serve/test_forms.py::test_an_accepted_proposal_leads_to_the_memory_that_it_archived",
    ],
    "Every route but `/v1/health` and `/v1/live` needs `Authorization: Bearer <token>`": [
        "../app/serve/test_access.py::test_no_route_gives_or_takes_anything_without_a_token",
    ],
    "remember a conversation, each message once": [
        "../app/serve/test_api.py::test_a_conversation_is_remembered_once",
    ],
    "and about 4 MB of the memories in it": [
        "../app/serve/test_api.py::test_a_recall_of_long_memories_answers_few_of_them_and_names_the_rest",
    ],
    "search again with them as `where.ids`": [
        "../app/serve/test_api.py::test_a_search_of_long_texts_ends_early_and_names_the_rest",
    ],
    "at most `limit` records and about 4 MB a page": [
        "../app/serve/test_api.py::test_a_page_of_long_texts_ends_early_and_its_cursor_leads_to_the_rest",
        "../app/serve/test_conditions.py::test_every_condition_is_a_parameter",
    ],
    "replace, and keep the fields that are not given; earlier texts": [
        "../app/serve/test_api.py::test_superseding_archives_the_old_record",
        "../app/serve/test_api.py::test_a_change_to_what_has_changed_is_refused",
    ],
    "all records as JSON Lines for `memory-core import`": [
        "../app/serve/test_api.py::test_an_export_is_what_the_command_imports",
    ],
    "the answer is the receipt": [
        "../app/serve/test_api.py::test_erasing_returns_a_receipt",
    ],
    "of which clients can be generated": [
        "../app/serve/test_generated_client.py::test_a_generated_client_adds_searches_and_deletes",
        "../app/serve/test_openapi.py::test_every_call_is_answered_as_described",
    ],
    "readiness: 200 if a write that changes no record succeeds": [
        "../app/serve/test_health.py::test_a_server_whose_file_was_moved_is_alive_and_not_ready",
        "../app/serve/test_health.py::test_asking_whether_it_is_ready_changes_no_record",
        "../app/serve/test_full_disk.py::test_a_full_disk_refuses_writes_and_loses_nothing",
    ],
    "for the operator's token": [
        "../app/serve/test_health.py::test_only_the_operator_sees_metrics",
    ],
    "reaches the same routes for every owner below `/v1/owners/{app}/{user}`": [
        "../app/serve/test_api.py::test_ids_and_owners_may_contain_anything",
    ],
    (
        "Other tokens reach the spaces of `--share` there: `recall` reads them together with the user's own "
        "memories, all other routes read one owner"
    ): [
        "../app/serve/test_spaces.py::test_the_block_of_the_api_reads_the_spaces_too",
        "../app/serve/test_spaces.py::test_a_space_by_itself_has_its_own_memories_only",
    ],
    "Only its owner and the operator erase a space": [
        "../app/serve/test_spaces.py::test_a_writable_space_is_changed_by_all_and_erased_by_none_of_them",
    ],
    "with the library's sentence in `detail`": [
        "../app/serve/test_api.py::test_what_cannot_be_used_is_said_in_one_sentence",
        "../app/serve/test_api.py::test_no_error_names_python",
    ],
    "and nothing is written if the record has changed (412)": [
        "../app/serve/test_api.py::test_a_change_to_what_has_changed_is_refused",
        "../app/serve/test_if_match.py::test_of_all_that_name_one_version_one_is_done",
        "../app/serve/test_if_match.py::test_what_is_ended_was_never_changed_before",
    ],
    "sending it again adds nothing, even after a restart, and sending another text with it changes the record": [
        "../app/serve/test_api.py::test_an_idempotency_key_adds_once_even_after_a_restart",
        "../app/serve/test_api.py::test_another_text_with_an_idempotency_key_changes_the_record",
    ],
    "A request has at most 16 MB, and 20,000 items outside of `data`, and 100,000 values in all": [
        "../app/serve/test_access.py::test_a_body_of_very_many_items_is_refused_at_once",
        "../app/serve/test_access.py::test_a_body_of_very_many_values_is_refused_before_it_is_read",
        "../app/serve/test_api.py::test_what_cannot_be_used_is_said_in_one_sentence",
    ],
    "The server also listens on a local socket beside the file, `agents.db-socket`, and removes it at the end": [
        ("../app/serve/test_serving.py::test_it_listens_beside_its_file_where_a_second_server_does_not_take_its_place"),
        "../app/serve/test_serving.py::test_a_server_does_not_remove_the_socket_of_a_later_one",
    ],
    "It needs no token, and only processes of your own user can speak to it (mode 0600)": [
        "../app/serve/test_serving.py::test_the_local_socket_is_for_its_user_alone_and_needs_no_token",
        "../app/serve/test_serving.py::test_the_local_socket_hangs_up_on_another_user_even_if_its_mode_lets_them_in",
    ],
    "The block is the one that every adapter puts into a prompt: nothing for small talk": [
        "mcp/test_local_server.py::test_a_prompt_is_answered_as_from_the_file_and_nothing_is_imported_for_it",
    ],
    "`session` leaves out what the prompt shows already and lets a short question be understood": [
        "../app/serve/test_api.py::test_a_prompt_gets_the_profile_and_nothing_that_it_shows",
    ],
    "It still opens the file to remember if the server has no `--write`": [
        "mcp/test_local_server.py::test_beside_a_server_that_only_reads_a_turn_is_remembered_in_the_file",
        "mcp/test_local_server.py::test_a_server_of_another_version_model_or_file_does_not_answer",
    ],
    "the server says so and goes on without it": [
        "../app/serve/test_serving.py::test_what_stands_beside_the_file_is_left_alone",
    ],
    "with the same tokens, spaces and rules": [
        "../app/serve/test_beside.py::test_each_token_reaches_its_own_memories_and_the_spaces",
        "../app/serve/test_beside.py::test_nobody_is_answered_who_may_not_ask",
    ],
    (
        "Without `--write` it offers the six tools that only read. The operator's token has the memories of "
        "`--user` here"
    ): [
        "../app/serve/test_beside.py::test_a_server_that_only_reads_offers_tools_that_only_read",
        "../app/serve/test_beside.py::test_each_token_reaches_its_own_memories_and_the_spaces",
    ],
    "or that of one owner who needs more": [
        "../storage/test_cache_bytes.py::test_the_names_of_authors_and_sessions_count_for_the_limit",
    ],
    "8 MB for the connection that writes, and for each of at most 8 connections for reading": [
        "../storage/test_long_reads.py::test_a_connection_keeps_8_mb_of_the_pages_that_it_has_read",
        "../app/serve/test_promises.py::test_the_page_says_what_the_server_does",
    ],
    "An answer has about 4 MB of memories, and of one caller at most 16 are worked on or wait to be read": [
        "../app/serve/test_strangers.py::test_few_answers_of_a_caller_wait_to_be_read",
        "../app/serve/test_exports.py::test_an_export_has_few_long_records_in_memory",
    ],
    "are worked on at once, until their answers begin, and 16 until they are sent; others of the same caller wait": [
        (
            "../app/serve/test_strangers.py::test_few_requests_of_a_caller_are_worked_on_at_once_until_their_answer"
            "s_begin"
        ),
        "../app/serve/test_strangers.py::test_a_caller_has_one_share_however_they_sign_in",
    ],
    (
        "A call over MCP counts until the server answers it, or asks a person something for it; if its client hangs up"
        " before, for at most a minute more. An event stream that waits for news takes no place"
    ): [
        "../app/serve/test_strangers.py::test_a_turn_lasts_until_a_stream_of_events_has_an_answer",
        "mcp/test_turns.py::test_whoever_hangs_up_keeps_the_turn_of_what_goes_on",
        "mcp/test_turns.py::test_idle_event_streams_and_questions_to_a_person_take_no_turn",
    ],
    "while the caller has a quarter of all connections in use": [
        "../app/serve/test_strangers.py::test_one_caller_has_a_limited_number_of_requests_in_progress",
    ],
    "under another host's name": [
        "../app/serve/test_access.py::test_no_route_answers_a_page_of_another_origin_or_under_another_name",
    ],
    "with a form that the page did not make, or a change without `--write`": [
        "../app/serve/test_access.py::test_no_form_is_accepted_that_this_page_did_not_make",
        "../app/serve/test_api.py::test_a_server_that_only_reads_refuses_every_change",
    ],
    "a sign-in link on any page, which could have the token of somebody else": [
        "../app/serve/test_access.py::test_a_link_on_a_page_signs_nobody_in",
    ],
    "as many connections as half of the descriptors that the system lets it have, at most 2,048": [
        "../app/serve/test_strangers.py::test_half_of_the_descriptors_are_for_connections",
    ],
    (
        "for the head of a request, 60 for the body, or leaves an answer unread for 60, and after two minutes "
        "without a request"
    ): [
        "../app/serve/test_strangers.py::test_a_client_that_does_not_end_its_request_is_hung_up_on",
        "../app/serve/test_strangers.py::test_a_client_that_does_not_read_is_hung_up_on",
        "../app/serve/test_strangers.py::test_a_client_that_sends_no_further_request_is_hung_up_on",
    ],
    "the one that has kept the server waiting longest is ended": [
        "../app/serve/test_strangers.py::test_whoever_has_waited_longest_makes_room",
        (
            "../app/serve/test_strangers.py::test_more_half_requests_than_descriptors_keep_nobody_out_and_the_serve"
            "r_ends"
        ),
    ],
    "Stored text is escaped everywhere, and the browser is told to run no script but those of the server": [
        "../app/serve/test_page.py::test_a_hostile_memory_does_nothing",
        "../app/serve/test_promises.py::test_browsers_are_told_to_run_no_script_but_those_of_the_server",
    ],
    "Logs have neither texts nor tokens": [
        "../app/serve/test_serving.py::test_nothing_of_a_request_is_logged",
    ],
}
