"""The table of events and what they mean for a memory, which `docs/conversations.md` shows.

A row says what happens in a framework, what the memory makes of it, and which tests prove that. Run
`python -m tests.repository.conversations` after a change here: it writes the tables into the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.repository.architecture import ROOT

PAGE: Final = ROOT / "docs" / "conversations.md"
TABLE: Final = re.compile(r"(?ms)^## ([^:\n]+)(.*?)^\| event \| meaning \|\n.*?(?=\n\n|\Z)")
TESTS: Final = ROOT / "tests" / "adapters"
MEANINGS: Final = ("said", "not said", "edited", "left", "resumed", "shown differently", "deleted", "not followed")
"""With what a meaning begins; the first table of the page explains them."""


@dataclass(frozen=True, slots=True)
class Row:
    event: str
    """The act of somebody, or an event."""
    meaning: str
    """One of `MEANINGS`, perhaps with what it is about."""
    proof: Sequence[str]
    """Tests, each as `file::name` in `tests/adapters`."""


def row(event: str, meaning: str, *proof: str) -> Row:
    return Row(event, meaning, proof)


LANGGRAPH: Final = (
    row(
        "the human messages of the input of a run, as other middleware has redacted them before the first model call",
        "said by the person of this run",
        "langchain/test_run_start.py::test_a_plain_turn_brings_its_question_and_changes_nothing",
        "langchain/test_middleware.py::test_what_another_middleware_redacts_is_never_stored",
    ),
    row(
        "a human message that `update_state` adds directly before a run of the same person",
        "said",
        "langchain/test_run_start.py::test_what_update_state_adds_is_said_with_the_next_question",
        "langchain/test_run_start.py::test_what_another_user_added_is_not_said_by_this_one",
    ),
    row(
        "what `update_state` changes directly before a `Command(resume=...)` of the same person",
        "said, edited or left, as before any other run",
        "langchain/test_following.py::test_what_its_person_changes_while_a_run_waits_is_followed",
    ),
    row(
        "the answers of this run's model calls, as the thread shows them at the end",
        "said",
        "langchain/test_thread_changes.py::test_answers_are_what_the_model_calls_returned_as_the_state_shows_it",
    ),
    row(
        "messages of nodes, summaries, hand-offs and tasks of supervisors, whatever their role",
        "not said: nobody's words",
        "langchain/test_run_start.py::test_a_summary_is_nobodys",
        "langchain/test_run_start.py::test_the_task_of_a_supervisor_is_nobodys",
        "langchain/test_run_start.py::test_a_task_that_a_node_gives_to_an_agent_is_nobodys",
    ),
    row(
        "`invoke(None)`, `Command(resume=...)`, by whomever",
        "said again",
        "langchain/test_run_start.py::test_a_run_that_another_resumes_brings_nothing",
        "langchain/test_run_start.py::test_a_failed_run_that_another_repeats_brings_nothing",
    ),
    row(
        "a known id with another text in the input of a run, or by `update_state` directly before it",
        "edited",
        "langchain/test_run_start.py::test_an_edit_in_the_input_is_an_edit",
        "langchain/test_run_start.py::test_what_update_state_edits_is_edited",
    ),
    row(
        "a message that `update_state` directly before a run, or its input, removes",
        "left",
        "langchain/test_run_start.py::test_a_removal_in_the_input_leaves",
        "langchain/test_run_start.py::test_what_update_state_removes_is_left",
    ),
    row(
        "a run from a checkpoint that the caller names, if it is not the newest: what the newest shows and the named "
        "one does not",
        "left",
        "langchain/test_run_start.py::test_the_branch_behind_a_named_checkpoint_is_left_and_resumed",
        "langchain/test_run_start.py::test_the_head_that_is_named_leaves_nothing",
    ),
    row(
        "what the named checkpoint shows and was left before",
        "resumed",
        "langchain/test_following.py::test_a_branch_that_is_left_is_compacted_and_active_again_when_it_is_resumed",
    ),
    row(
        "what nodes and middleware trim, summarise or rewrite",
        "shown differently",
        "langchain/test_run_start.py::test_what_a_hook_changes_is_nobodys_wish",
        "langchain/test_run_start.py::test_what_a_node_changes_is_nobodys_wish",
        "langchain/test_run_start.py::test_a_question_that_a_node_rewrites_keeps_the_words_of_its_person",
    ),
    row(
        "two runs of a thread at once, also in two processes",
        "said: both stay",
        "langchain/test_unstored.py::test_two_runs_of_a_thread_at_once_both_stay_with_their_answers",
        "langchain/test_two_processes.py::test_two_questions_at_once_and_their_answers_all_stay",
    ),
    row(
        "a run that fails, is cancelled or waits before its first model call",
        "said with the next model call of its person in this thread, by whomever the run itself is resumed; but not if "
        "it was rewritten since, unless by that person",
        "langchain/test_unstored.py"
        "::test_the_question_of_a_run_that_fails_before_its_first_model_call_is_stored_with_the_next_one",
        "langchain/test_unstored.py"
        "::test_the_question_of_a_run_that_another_person_resumed_is_stored_with_the_next_one_of_its_person",
        "langchain/test_unstored.py"
        "::test_a_message_of_a_failed_run_over_which_another_person_writes_is_not_stored_with_those_words",
    ),
    row(
        "no checkpointer: the human messages at the end of what the client sends",
        "said; those that were sent before, under whatever ids, said again",
        "langchain/test_run_start.py::test_without_a_checkpointer_the_last_question_is_said",
        "langchain/test_following.py"
        "::test_a_client_without_a_record_that_resends_only_its_persons_messages_stores_none_twice",
    ),
    row(
        "no checkpointer: a thread that lacks messages, or shows another text under a known id",
        "not followed: what was said stays as it was said",
        "langchain/test_following.py::test_a_client_that_sends_only_what_is_new_leaves_nothing",
        "langchain/test_following.py::test_what_a_client_changes_without_a_record_stays_as_it_was_said",
    ),
    row(
        'with `durability="exit"`, a human message that a node puts behind the question, or writes over it',
        "not followed: it is taken for what the person said, since no record tells it",
        "langchain/test_run_start.py::test_where_a_run_stores_nothing_until_its_end_nodes_cannot_be_told_from_people",
    ),
    row(
        "a branch of somebody else that a person leaves, by naming an older checkpoint",
        "not followed: what the other one said there stays in the memory of that one",
        "langchain/test_not_followed.py::test_a_branch_that_another_person_leaves_stays",
    ),
    row(
        "checkpoints that are deleted, as by a rollback on a server; a thread that is deleted",
        "not followed: what was said there stays",
        "langchain/test_following.py::test_lost_checkpoints_leave_nothing",
    ),
    row(
        "a thread that is copied",
        "not followed: of the copy, what is said in it is stored",
        "langchain/test_not_followed.py::test_of_a_copied_thread_only_what_is_said_in_it_is_stored",
    ),
    row(
        "a run of an agent inside a graph with `checkpointer=False` whose process was killed, if somebody else repeats "
        "it, and no configuration names them",
        "not followed: its question is taken for words of who repeats it; a `user_id` in the configuration would tell",
        "langchain/test_repeated_in_graphs.py::"
        "test_of_a_run_that_was_killed_nothing_tells_an_agent_without_checkpoints_whose_words_it_has",
        "langchain/test_repeated_in_graphs.py::"
        "test_a_user_in_the_configuration_tells_whose_words_a_run_has_that_was_killed",
    ),
    row(
        "a run that fails or waits in front of `MemoryMiddleware`, and is resumed or repeated",
        "not followed: its question is not said, since nobody tells who asked it",
        "langchain/test_not_followed.py"
        "::test_a_question_that_waits_in_front_of_the_memory_is_not_said_by_who_resumes_it",
        "langchain/test_run_start.py::test_a_failed_run_that_another_repeats_brings_nothing",
    ),
    row(
        "an `update_state` with a run behind it that goes without its memory",
        "not followed: what was said stays as it was said",
        "langchain/test_not_followed.py::test_what_is_edited_before_a_run_without_memory_stays_as_it_was_said",
    ),
)

CHAINS: Final = (
    row(
        "`add_messages`, a question, an answer",
        "said",
        "langchain/test_history.py::test_messages_come_back_in_the_order_they_were_added",
        "langchain/test_runnable.py::test_history_and_memories_reach_the_prompt_and_the_turn_is_saved_once",
    ),
    row(
        "a known id with another text",
        "edited",
        "langchain/test_history.py::test_a_known_id_with_another_content_replaces_the_message",
    ),
    row(
        "a whole conversation sent as the question",
        "said, said again or edited, each by its id, or by its place if its id is unknown",
        "langchain/test_runnable.py::test_a_client_that_sends_the_whole_conversation_has_it_shown_and_kept_once",
    ),
    row(
        "an answer with the id of an earlier one, from a cache of answers",
        "said",
        "langchain/test_runnable.py::test_an_answer_from_langchains_cache_is_said_each_time",
    ),
    row(
        "a chain that fails, or a stream that is abandoned",
        "said: the question, and with `keep_partial=True` the words of the answer so far",
        "langchain/test_runnable_failures.py::test_a_model_failure_keeps_the_question",
        "langchain/test_runnable_failures.py::test_an_abandoned_stream_keeps_the_question",
        "langchain/test_runnable_failures.py::test_keep_partial_keeps_the_words_of_an_answer_that_was_not_finished",
    ),
    row(
        "a `RemoveMessage` in a history or a question, `clear`",
        "deleted, but the ids may come back",
        "langchain/test_history.py::test_a_message_is_removed_as_in_a_graph",
        "langchain/test_history.py::test_a_message_that_a_chain_stored_is_removed",
        "langchain/test_history.py::test_what_was_cleared_can_be_added_again_under_the_same_ids",
    ),
    row(
        "a `RemoveMessage` in an answer: a chain that trims its state",
        "shown differently",
        "langchain/test_history.py::test_what_a_chain_trims_of_its_messages_stays_as_it_was_said",
    ),
)

ADK: Final = (
    row(
        "an event with text, or a finished transcription",
        "said",
        "adk/test_service.py::test_only_finished_transcriptions_are_stored",
        "adk/test_histories.py::test_after_the_next_turn_the_memory_has_the_live_texts_of_the_session",
    ),
    row(
        "`add_session_to_memory`, `add_events_to_memory` with known events, whatever their text",
        "said again",
        "adk/test_service.py::test_adding_a_session_again_changes_neither_the_number_nor_the_ids",
        "adk/test_service.py::test_a_known_event_stays_as_it_is",
    ),
    row(
        "a rewind (`rewind_before_invocation_id`)",
        "left: the turns from the named one up to the rewind; if one of them is a rewind, what it undid is resumed",
        "adk/test_rewind.py::test_a_turn_remembered_before_it_was_rewound_is_forgotten",
        "adk/test_rewind.py::test_a_turn_is_remembered_again_when_its_rewind_is_undone",
        "adk/test_rewind.py::test_rewinds_undo_exactly_what_adk_undoes",
    ),
    row(
        "a partial event",
        "not said",
        "adk/test_service.py::test_events_that_say_nothing_are_not_stored",
    ),
    row(
        "a session that was cut (`num_recent_events`), a compaction",
        "shown differently",
        "adk/test_rewind.py::test_a_cut_list_leaves_nothing",
        "adk/test_convert.py::test_what_a_compaction_summarised_is_not_in_the_prompt_any_more",
    ),
    row(
        "a turn that a guardrail answered",
        "not said; if part of it is stored already, that is left",
        "adk/test_plugin.py::test_a_turn_that_a_guardrail_blocked_is_not_remembered",
        "adk/test_following.py"
        "::test_a_turn_that_a_guardrail_answered_is_not_added_with_its_session_and_leaves_no_tombstone",
    ),
    row(
        "`delete_memory`, `delete_session`, `clear_user`",
        "deleted",
        "adk/test_service.py::test_deleting_a_session_or_a_user_says_how_much_and_lasts",
        "adk/test_service.py::test_a_deleted_memory_stays_deleted_also_after_its_session_is_added_again_elsewhere",
    ),
)

SPADE: Final = (
    row(
        "a message received or sent",
        "said",
        "spade/test_messages.py::test_every_message_said_is_kept_and_none_twice",
    ),
    row(
        "the same stanza again, another copy of a broadcast, another behaviour",
        "said again",
        "spade/test_messages.py::test_a_stanza_that_arrives_again_is_the_same_message_and_an_id_used_again_is_not",
        "spade/test_messages.py::test_each_message_of_a_broadcast_is_one_record_that_names_its_receiver",
        "spade/test_messages.py::test_every_message_said_is_kept_and_none_twice",
    ),
    row(
        "a message that a behaviour passes on, from a room or delayed",
        "said by the agent that passes it on",
        "spade/test_messages.py::test_a_message_of_a_room_that_is_passed_on_is_said_by_who_passes_it_on_and_in_no_room",
    ),
    row(
        "a correction (XEP-0308) of a message by its author",
        "edited; of a message that is not stored, said",
        "spade/test_corrections.py::test_a_correction_edits_the_message_of_its_author_and_of_nobody_else",
        "spade/test_corrections.py"
        "::test_a_correction_of_a_message_that_is_not_stored_is_a_message_and_can_be_corrected",
    ),
    row(
        "a retraction (XEP-0424) of a message by its author",
        "deleted",
        "spade/test_corrections.py::test_a_retraction_deletes_the_message_of_its_author_and_of_nobody_else",
    ),
    row(
        "an error stanza",
        "not said",
        "spade/test_corrections.py::test_errors_presence_carbons_and_items_of_pubsub_nodes_are_never_remembered",
    ),
)

MCP: Final = (
    row(
        "an entry of the transcript",
        "said",
        "mcp/test_hook.py::test_what_a_turn_said_is_remembered_once_and_recalled_before_the_next_prompt",
    ),
    row(
        "a known `uuid` with another text",
        "edited",
        "mcp/test_hook.py::test_an_entry_with_another_text_is_edited",
    ),
    row(
        "an entry that the last prompt no longer descends from, because the person went back to an earlier prompt",
        "left",
        "mcp/test_hook.py::test_what_followed_a_prompt_that_the_user_went_back_before_is_taken_back",
    ),
    row(
        "such an entry on the branch of the last prompt again",
        "resumed",
        "test_generated_conversations.py::test_the_memory_has_what_the_conversation_shows",
        "test_consequences.py::test_a_branch_that_a_person_comes_back_to_every_reader_sees_again",
    ),
    row(
        "a line that is not JSON, an entry of the client itself, a side chain",
        "not said",
        "mcp/test_hook.py::test_a_broken_line_costs_only_its_own_message",
        "mcp/test_hook.py::test_what_a_client_writes_into_a_transcript_itself_was_said_by_nobody",
        "mcp/test_transcripts.py::test_every_word_that_was_said_is_stored_and_no_other",
    ),
)

XAIBO: Final = (
    row(
        "the last message of the user, and the answer; `add_message`; `store_memory`",
        "said",
        "xaibo/test_conversation.py::test_a_conversation_is_remembered_and_goes_on_in_another_life",
    ),
    row(
        "a conversation that a client of Xaibo's servers sends again",
        "said again, each message by its place; another answer is said, too",
        "xaibo/test_conversation.py::test_the_history_that_a_server_supplies_is_remembered_once",
        "xaibo/test_conversation.py::test_a_request_that_a_client_repeats_asks_once",
    ),
    row(
        "another answer in the same turn, after reasoning; `update_memory`",
        "edited",
        "xaibo/test_conversation.py::test_an_agent_that_reasons_is_remembered_by_its_answer",
        "xaibo/test_memories.py::test_k_different_memories_come_back_after_deletes_and_updates",
    ),
    row(
        "messages that the history leaves out",
        "shown differently",
        "test_generated_conversations.py::test_the_memory_has_what_the_conversation_shows",
    ),
    row(
        "a model that fails, or a stream that is abandoned",
        "said: the question",
        "xaibo/test_conversation.py::test_a_question_that_no_model_answers_is_remembered",
        "xaibo/test_conversation.py::test_a_streamed_answer_is_remembered_and_of_an_abandoned_one_the_question",
    ),
    row(
        "`delete_memory`",
        "deleted",
        "xaibo/test_memories.py::test_k_different_memories_come_back_after_deletes_and_updates",
    ),
    row(
        "`clear_history`",
        "deleted, but may be said again",
        "xaibo/test_conversation.py::test_a_history_that_is_cleared_is_empty_and_may_be_said_again",
    ),
)

FRAMEWORKS: Final[Mapping[str, Sequence[Row]]] = {
    "LangGraph agents": LANGGRAPH,
    "LangChain chains and histories": CHAINS,
    "Google ADK": ADK,
    "SPADE": SPADE,
    "MCP": MCP,
    "Xaibo": XAIBO,
}
"""By the headings of the page."""


def page() -> str:
    """The page with the tables of this file."""

    def written(found: re.Match[str]) -> str:
        rows = "\n".join(f"| {one.event} | {one.meaning} |" for one in FRAMEWORKS[found[1]])
        return f"## {found[1]}{found[2]}| event | meaning |\n|---|---|\n{rows}"

    return TABLE.sub(written, PAGE.read_text(encoding="utf-8").rstrip("\n")) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
