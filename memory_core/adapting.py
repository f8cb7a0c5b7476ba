"""The names that an adapter needs beside `memory_core`, the API for applications.

An adapter imports from `memory_core` and from here, and from nowhere else in the core; an importer or an exporter also
from `memory_core.formats`, a store also from `memory_core.storing`.

**A conversation**, told in facts: `Conversations`, `Conversation`, `Visible`, `OF_THE_APPLICATION`, and under it, for
a framework whose own record is read in another way: `known`, `stored`, `leave`, `resume`, `follow_branch`,
`remember_drafts`, `reachable`, `when_embedded`, `settled`.

**A message**: its kind (`MESSAGE_KIND`), its key (`message_key`, `key_in_scope`, `FRAMEWORK_MESSAGE`), messages without
ids (`known_messages`, `identity_by_words`), what a chat API sends (`read_messages`, `USER_QUERY`), its
files (`SentFile`, `with_files`, `without_files`, `name_in_uri`), what it asks to remember (`Detection`,
`LastMessages`), its size (`shortened_data`, `is_shortened`, `MAX_TEXT_CHARS`) and its characters (`storable`,
`without_blocks`).

**The block of a turn**: `Asked`, `block_of_turn`, `block_for`, `remembered_block`, `NOTHING`, `one_of`,
`cut_query`, `count_reads`; of a client that knows only its prompt: `before_prompt`, `once_a_session`, `forget_shown`;
the profile in it: `with_profile`, `PINNED`, `PINNED_BY_MODEL`; names and texts of others in it:
`named`, `quoted`.

**The tools of an agent**: `STORE_MEMORY`, `SEARCH_MEMORIES`, `LIST_MEMORIES`, `UPDATE_MEMORY`, `FORGET_MEMORY`,
`MEMORY_PIN`, `REMEMBER_INTERACTION_INFO`, each a `Tool` with a `ToolContext`, `Arguments` and a `ToolResult`; three of
them as `EDITING_TOOLS`; `store_where_chosen`, `with_context`, `without_context`, `operations`, `correcting`.

**Waiting**: `Deadline`, `LateError`, `limits`; the core loop and threads (`core_loop`, `on_core`, `call_in_thread`).

**Handles and records**: `AgentMemory`, `owned_by`, `whole_owner`, `scrubbed`, `PRIVATE`, `complete`, `every_record`,
`made_of`, `EVERYTHING`, `ANY_STATE`, `STATES`, `Mode`, `Order`, `share_of_words`, `equal_form`.

**A memory by its address**: `memory_at`, `is_server`.

**Values, checked**: `check_count`, `check_key`, `check_path`, `check_seconds`, `check_unit`, `check_where`,
`complaints`, `new_id`; zones: `check_zone`, `MACHINE_ZONE`, `zoned`, `zoned_text`; for a log: `one_line`,
`reason_for_log`, `without_key`; of a server: `is_loopback`, `digest_of`, `names_by_token`, `tokens_in_file`.

**A server over HTTP**: `WebServer` (loaded when it is accessed; it needs uvicorn), on what `listening_on` opens at an
`address_of`; its process: `log_plainly`, `survive_errors`, `prepare_to_serve`, `end_in_time`; a limit of what it
reads: `has_many_values`, `MAX_VALUES`, and of what it answers: `short_page`, `each_record`,
`PAGE_BYTES`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memory_core.addresses import is_server, memory_at
from memory_core.agent_memory import AgentMemory
from memory_core.concurrency.loop import core_loop, on_core
from memory_core.concurrency.threads import call_in_thread
from memory_core.conversation import limits
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
from memory_core.conversation.messages.alignment import identity_by_words, known_messages
from memory_core.conversation.messages.known_messages import key_in_scope, message_key
from memory_core.conversation.messages.message_to_draft import read_messages
from memory_core.conversation.messages.remember import reachable, remember_drafts
from memory_core.conversation.messages.sent_files import SentFile, name_in_uri, with_files, without_files
from memory_core.conversation.messages.triggers import Detection, LastMessages
from memory_core.conversation.recalling import NOTHING, block_for, block_of_turn, one_of
from memory_core.conversation.shown import forget as forget_shown
from memory_core.errors import reason_for_log
from memory_core.every_record import every_record
from memory_core.handle import correcting, known, owned_by, scrubbed, settled, whole_owner
from memory_core.made_of import made_of
from memory_core.models import STATES, Mode, Order
from memory_core.profile import PINNED, PINNED_BY_MODEL, with_profile
from memory_core.recall.asked import Asked
from memory_core.recall.block import remembered_block
from memory_core.recall.quoting import named, quoted
from memory_core.recall.reads import count_reads
from memory_core.records.draft_to_record import complete
from memory_core.records.kinds import MESSAGE_KIND, USER_QUERY
from memory_core.records.superseding import FRAMEWORK_MESSAGE
from memory_core.retrieval.equal_texts import equal_form
from memory_core.retrieval.hits import share_of_words
from memory_core.short_page import each_record, short_page
from memory_core.spaces import PRIVATE
from memory_core.tools import operations
from memory_core.tools.arguments import Arguments
from memory_core.tools.memory_tools import (
    EDITING_TOOLS,
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
    store_where_chosen,
    with_context,
    without_context,
)
from memory_core.values.checks import check_count, check_key, check_seconds, check_unit
from memory_core.values.complaints import complaints
from memory_core.values.frame import without_blocks
from memory_core.values.hosts import is_loopback
from memory_core.values.ids import new_id
from memory_core.values.json_size import MAX_VALUES, has_many_values
from memory_core.values.limits import MAX_TEXT_CHARS, PAGE_BYTES
from memory_core.values.places import check_path, without_key
from memory_core.values.printable import one_line
from memory_core.values.query_text import cut_query
from memory_core.values.shortening import is_shortened, shortened_data
from memory_core.values.storable import storable
from memory_core.values.tokens import digest_of, names_by_token, tokens_in_file
from memory_core.values.zones import MACHINE_ZONE, check_zone, zoned, zoned_text
from memory_core.web.listening import address_of, listening_on
from memory_core.web.process import end_in_time, log_plainly, prepare_to_serve, survive_errors
from memory_core.where.checks import check_where
from memory_core.where.where import ANY_STATE, EVERYTHING

if TYPE_CHECKING:
    from memory_core.web.server import WebServer


def __getattr__(name: str) -> Any:  # typed by the import above
    if name != "WebServer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("memory_core.web.server").WebServer


__all__ = [
    "ANY_STATE",
    "EDITING_TOOLS",
    "EVERYTHING",
    "FORGET_MEMORY",
    "FRAMEWORK_MESSAGE",
    "LIST_MEMORIES",
    "MACHINE_ZONE",
    "MAX_TEXT_CHARS",
    "MAX_VALUES",
    "MEMORY_PIN",
    "MESSAGE_KIND",
    "NOTHING",
    "OF_THE_APPLICATION",
    "PAGE_BYTES",
    "PINNED",
    "PINNED_BY_MODEL",
    "PRIVATE",
    "REMEMBER_INTERACTION_INFO",
    "SEARCH_MEMORIES",
    "STATES",
    "STORE_MEMORY",
    "UPDATE_MEMORY",
    "USER_QUERY",
    "AgentMemory",
    "Arguments",
    "Asked",
    "Conversation",
    "Conversations",
    "Deadline",
    "Detection",
    "LastMessages",
    "LateError",
    "Mode",
    "Order",
    "SentFile",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Visible",
    "WebServer",
    "address_of",
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
    "check_zone",
    "complaints",
    "complete",
    "core_loop",
    "correcting",
    "count_reads",
    "cut_query",
    "digest_of",
    "each_record",
    "end_in_time",
    "equal_form",
    "every_record",
    "follow_branch",
    "forget_shown",
    "has_many_values",
    "identity_by_words",
    "is_loopback",
    "is_server",
    "is_shortened",
    "key_in_scope",
    "known",
    "known_messages",
    "leave",
    "limits",
    "listening_on",
    "log_plainly",
    "made_of",
    "memory_at",
    "message_key",
    "name_in_uri",
    "named",
    "names_by_token",
    "new_id",
    "on_core",
    "once_a_session",
    "one_line",
    "one_of",
    "operations",
    "owned_by",
    "prepare_to_serve",
    "quoted",
    "reachable",
    "read_messages",
    "reason_for_log",
    "remember_drafts",
    "remembered_block",
    "resume",
    "scrubbed",
    "settled",
    "share_of_words",
    "short_page",
    "shortened_data",
    "storable",
    "store_where_chosen",
    "stored",
    "survive_errors",
    "tokens_in_file",
    "when_embedded",
    "whole_owner",
    "with_context",
    "with_files",
    "with_profile",
    "without_blocks",
    "without_context",
    "without_files",
    "without_key",
    "zoned",
    "zoned_text",
]
