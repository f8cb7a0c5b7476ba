"""The API for adapters and stores, beyond the API for applications: tools, the core loop, capture, formats, rules.

An adapter or a store imports from `memory_core` and from here, and from nowhere else in the core. Names that
need SQLite or numpy are loaded when they are accessed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from memory_core.capture.alignment import known_messages, said
from memory_core.capture.known_messages import message_key, within
from memory_core.capture.message_to_draft import read_messages
from memory_core.capture.remember import reachable, remember_drafts
from memory_core.capture.sent_files import SentFile, name_in_uri, with_files, without_files
from memory_core.capture.triggers import Detection, LastMessages
from memory_core.capture.turns import turn_drafts
from memory_core.concurrency.loop import core_loop, on_core
from memory_core.concurrency.threads import call_in_thread
from memory_core.conversation import limits
from memory_core.conversation.access import Access
from memory_core.conversation.before_prompt import before_prompt, once_a_session
from memory_core.conversation.branches import follow_branch, leave, resume, stored
from memory_core.conversation.conversation import (
    OF_THE_APPLICATION,
    Conversation,
    Conversations,
    Visible,
    when_embedded,
)
from memory_core.conversation.deadline import Deadline, LateError
from memory_core.conversation.recalling import NOTHING, TURN, block_for, block_of_turn, those
from memory_core.conversation.shown import forget as forget_shown
from memory_core.conversation.writes import Writes
from memory_core.errors import reason_for_log
from memory_core.every_record import every_record
from memory_core.handle import correcting, known, owned_by, scrubbed, settled
from memory_core.models import STATES, Mode, Order
from memory_core.profile import PINNED, PINNED_BY_MODEL, tags_of_pin, with_profile
from memory_core.protocols import AgentMemory, ListRequest, SearchRequest
from memory_core.recall.asked import Asked
from memory_core.recall.block import remembered_block
from memory_core.recall.quoting import named, quoted
from memory_core.recall.reads import count_reads
from memory_core.records.draft_to_record import complete, patched
from memory_core.records.kinds import USER_QUERY
from memory_core.records.superseding import FRAMEWORK_MESSAGE, retired
from memory_core.retrieval.equal_texts import equal_form
from memory_core.retrieval.hits import covered
from memory_core.spaces import PRIVATE
from memory_core.tools.arguments import Arguments
from memory_core.tools.known import known_already
from memory_core.tools.memory_tools import (
    FORGET_MEMORY,
    LIST_MEMORIES,
    MEMORY_PIN,
    REMEMBER_INTERACTION_INFO,
    SEARCH_MEMORIES,
    STORE_MEMORY,
    UPDATE_MEMORY,
    Tool,
    ToolContext,
    ToolResult,
    with_context,
    without_context,
)
from memory_core.transfer.foreign_files import database, file_at, json_of, lines_of
from memory_core.transfer.foreign_values import fields_of, items_of, time_of, word
from memory_core.transfer.formats import Exporter, Found, Refused
from memory_core.values.checks import check_count, check_key, check_seconds, check_unit
from memory_core.values.complaints import complaints
from memory_core.values.frame import without_blocks
from memory_core.values.hosts import is_loopback
from memory_core.values.ids import new_id
from memory_core.values.limits import MAX_TEXT_CHARS
from memory_core.values.places import check_path, without_key
from memory_core.values.printable import one_line
from memory_core.values.query_text import cut_query
from memory_core.values.shortening import is_shortened, shortened_data
from memory_core.values.storable import storable
from memory_core.values.tokens import digest_of, names_by_token, tokens_in_file
from memory_core.where.checks import check_where
from memory_core.where.meaning import satisfies
from memory_core.where.where import ANY_STATE

if TYPE_CHECKING:
    from memory_core.retrieval.ranking import rank
    from memory_core.storage import rules
    from memory_core.storage.qdrant.points import ForeignPoint, foreign_points
    from memory_core.storage.shared.prepared import Prepared, prepare
    from memory_core.storage.shared.versions import versions_of
    from memory_core.storage.sqlite.files import file_header, prepare_file
    from memory_core.storage.sqlite.problems import file_problems_explained
    from memory_core.storage.sqlite.store import SqliteStore


_AT_FIRST_USE: Final = {
    "ForeignPoint": "memory_core.storage.qdrant.points",
    "Prepared": "memory_core.storage.shared.prepared",
    "SqliteStore": "memory_core.storage.sqlite.store",
    "file_header": "memory_core.storage.sqlite.files",
    "file_problems_explained": "memory_core.storage.sqlite.problems",
    "foreign_points": "memory_core.storage.qdrant.points",
    "prepare": "memory_core.storage.shared.prepared",
    "prepare_file": "memory_core.storage.sqlite.files",
    "rank": "memory_core.retrieval.ranking",
    "rules": "memory_core.storage",
    "versions_of": "memory_core.storage.shared.versions",
}


def __getattr__(name: str) -> Any:  # typed by the imports above
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "rules":
        return import_module("memory_core.storage.rules")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


__all__ = [
    "ANY_STATE",
    "FORGET_MEMORY",
    "FRAMEWORK_MESSAGE",
    "LIST_MEMORIES",
    "MAX_TEXT_CHARS",
    "MEMORY_PIN",
    "NOTHING",
    "OF_THE_APPLICATION",
    "PINNED",
    "PINNED_BY_MODEL",
    "PRIVATE",
    "REMEMBER_INTERACTION_INFO",
    "SEARCH_MEMORIES",
    "STATES",
    "STORE_MEMORY",
    "TURN",
    "UPDATE_MEMORY",
    "USER_QUERY",
    "Access",
    "AgentMemory",
    "Arguments",
    "Asked",
    "Conversation",
    "Conversations",
    "Deadline",
    "Detection",
    "Exporter",
    "ForeignPoint",
    "Found",
    "LastMessages",
    "LateError",
    "ListRequest",
    "Mode",
    "Order",
    "Prepared",
    "Refused",
    "SearchRequest",
    "SentFile",
    "SqliteStore",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Visible",
    "Writes",
    "before_prompt",
    "block_for",
    "block_of_turn",
    "call_in_thread",
    "check_count",
    "check_key",
    "check_path",
    "check_seconds",
    "check_unit",
    "check_where",
    "complaints",
    "complete",
    "core_loop",
    "correcting",
    "count_reads",
    "covered",
    "cut_query",
    "database",
    "digest_of",
    "equal_form",
    "every_record",
    "fields_of",
    "file_at",
    "file_header",
    "file_problems_explained",
    "follow_branch",
    "foreign_points",
    "forget_shown",
    "is_loopback",
    "is_shortened",
    "items_of",
    "json_of",
    "known",
    "known_already",
    "known_messages",
    "leave",
    "limits",
    "lines_of",
    "message_key",
    "name_in_uri",
    "named",
    "names_by_token",
    "new_id",
    "on_core",
    "once_a_session",
    "one_line",
    "owned_by",
    "patched",
    "prepare",
    "prepare_file",
    "quoted",
    "rank",
    "reachable",
    "read_messages",
    "reason_for_log",
    "remember_drafts",
    "remembered_block",
    "resume",
    "retired",
    "rules",
    "said",
    "satisfies",
    "scrubbed",
    "settled",
    "shortened_data",
    "storable",
    "stored",
    "tags_of_pin",
    "those",
    "time_of",
    "tokens_in_file",
    "turn_drafts",
    "versions_of",
    "when_embedded",
    "with_context",
    "with_files",
    "with_profile",
    "within",
    "without_blocks",
    "without_context",
    "without_files",
    "without_key",
    "word",
]
