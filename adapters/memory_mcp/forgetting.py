"""Deletion by conditions, which a person confirms: through the client where it can ask, else by a code.

What is deleted is what was agreed: the memories that the question counted and showed go, each in the version that was
shown, or none goes. The code names them, so a question about others is another question.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Final

from memory_core import BoundMemory, ConflictError, Deleted, InvalidInputError, Where
from memory_core.adapting import check_where, each_record, made_of, scrubbed, whole_owner
from memory_mcp.showing import MARK, MOST_ASKED, first_lines, note_of_deletion, quoted, with_derived
from memory_mcp.signatures import Tool, with_parameters
from memory_mcp.values import Filter, ForgetAnswer

try:
    from mcp.server.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.resolve import Elicit, Resolve
    from pydantic import BaseModel, Field
except ImportError as error:
    raise ImportError("`memory_mcp` needs the MCP SDK: pip install 'memory-core[mcp]'") from error

Selected = Callable[[str | None, Filter], Awaitable[tuple[BoundMemory, Where]]]
"""The memories of a call, from its collection and its filter."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The memories that a question is about."""

    versions: Mapping[str, int] = field(default_factory=dict[str, int])
    """The memories that satisfy the conditions: their versions by id."""
    derived: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same of the memories that were made of their words, and go with them."""
    first: Mapping[str, str] = field(default_factory=dict[str, str])
    """The lines that a question shows of the first of those that satisfy the conditions, by their ids. Their texts may
    be long, and a question is kept until somebody answers it."""

    @property
    def counted(self) -> str:
        """The number of memories that go, in words."""
        return with_derived(Deleted(len(self.versions), len(self.derived)))

    @property
    def satisfying(self) -> str:
        """The number of memories that satisfy the conditions, and of those that go with them, in words."""
        made = f", and {len(self.derived)} were made from them" if self.derived else ""
        return f"{len(self.versions)} memories satisfy the filter{made}"


NOTHING_SHOWN: Final = Selection()


class Agreement(BaseModel):
    """The question that the user is asked."""

    delete: bool = Field(description="Delete them for good")


Answered = AcceptedElicitation[Agreement] | DeclinedElicitation | CancelledElicitation
"""The answer of the user."""


def asking(tool: Tool, selected: Selected) -> Tool:
    """Asks the user before it deletes. No client can pass its arguments `agreed`, the answer, and `shown`,
    what the question was about."""

    async def select(
        filter: Filter,  # noqa: A002  (the tool's)
        collection: str | None,
    ) -> Selection:
        return await chosen(*await selected(collection, filter))

    async def ask(shown: Selection, context: Context[Any, Any]) -> Agreement | Elicit[Agreement]:
        if not shown.versions or not can_ask(context):
            return Agreement(delete=False)
        return Elicit(question(shown), Agreement)

    selection = Annotated[Selection, Resolve(select)]
    ask.__annotations__["shown"] = selection  # the name is not one of the module
    return with_parameters(tool, {"agreed": (Annotated[Answered, Resolve(ask)], None), "shown": (selection, None)})


async def chosen(handle: BoundMemory, where: Where) -> Selection:
    """The memories that satisfy the conditions, and what goes with them.

    Raises:
        InvalidInputError: There is no condition.
    """
    if check_where(where) == _EVERYTHING:
        raise InvalidInputError("the filter is empty, and all memories would be deleted; give at least one condition")
    versions, first = dict[str, int](), dict[str, str]()
    async for record in each_record(handle, where):
        versions[record.id] = record.version
        if len(first) < MOST_ASKED:
            first[record.id] = quoted(record.text)
    return Selection(versions, await made_of(whole_owner(handle), versions), first)


def code_of(shown: Selection) -> str:
    """Names these memories in these versions; a client that cannot ask its user passes it as `expected`."""
    versions = sorted([*shown.versions.items(), *shown.derived.items()])
    return f"{len(versions)}-{sha256(json.dumps(versions).encode()).hexdigest()[:_CODE_CHARS]}"


def question(shown: Selection) -> str:
    """The question to the user: how many memories go, which are the first, and the code of all of them."""
    head = f"Delete {shown.counted} for good? They cannot be brought back."
    return "\n".join([head, *first_lines(shown.first, of=len(shown.versions)), f"Selection {code_of(shown)}"])


async def forget(
    handle: BoundMemory,
    shown: Selection,
    *,
    expected: str | None,
    agreed: Answered | None,
    has_asked: bool,
) -> ForgetAnswer:
    """Delete the memories that were shown, if the user agreed or the expected code is theirs.

    Args:
        handle: The memories.
        shown: The selection that the user was asked about.
        expected: The code, from a client that cannot ask.
        agreed: The answer of the user of a client that can.
        has_asked: True if the client can ask.

    Raises:
        ConflictError: One of them has changed or is gone since; none was deleted.
    """
    is_agreed = isinstance(agreed, AcceptedElicitation) and agreed.data.delete
    if not shown.versions or not (is_agreed or expected == code_of(shown)):
        return _refused(shown, has_asked=has_asked)
    try:
        gone = await handle.delete_exactly(shown.versions)
    except ConflictError as conflict:
        raise ConflictError("a memory has changed since the user was asked; none was deleted: ask again") from conflict
    is_clean = await scrubbed(handle.memory)
    return ForgetAnswer(
        note=f"{with_derived(gone)}: {note_of_deletion(is_clean=is_clean)}",
        matching=gone.records,
        deleted=gone.records,
        derived=gone.derived,
        ids=[*shown.versions],
        shown=[],
        filesClean=is_clean,
    )


def text_of_forgotten(answer: ForgetAnswer) -> str:
    """The memories that were deleted by conditions, or what it takes to delete them."""
    return "\n".join([answer.note, *answer.shown])


def _refused(shown: Selection, *, has_asked: bool) -> ForgetAnswer:
    """Nothing was deleted, and what can be done about it."""
    code = code_of(shown) if shown.versions and not has_asked else None
    if not shown.versions:
        note = "Nothing was deleted: no memory satisfies the filter."
    elif has_asked:
        note = (
            f"Nothing was deleted: {shown.satisfying}, and the user has not agreed, or their "
            "client could not show them the question. Do not ask again with this tool. If the user says in the "
            f"conversation which of them shall go, delete each of these with memory_delete. {MARK}"
        )
    else:
        note = (
            f"Nothing was deleted: {shown.satisfying}, and the user has not been asked. Show "
            f"them these, and if they agree, call memory_forget again with expected={code}. {MARK}"
        )
    return ForgetAnswer(
        note=note,
        matching=len(shown.versions),
        deleted=0,
        derived=len(shown.derived),
        ids=[],
        expected=code,
        shown=first_lines(shown.first, of=len(shown.versions), with_ids=has_asked),
    )


def can_ask(context: Context[Any, Any]) -> bool:
    """True if the client can ask its user."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


_EVERYTHING: Final = Where()
_CODE_CHARS: Final = 16
