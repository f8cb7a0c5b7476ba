"""What is shown before a prompt to a program that knows nothing but the prompt and the name of its conversation."""

from __future__ import annotations

from typing import Final

from memory_core.conversation.recalling import Asked, block_for
from memory_core.handle import BoundMemory
from memory_core.models import MemoryRecord
from memory_core.profile import with_profile
from memory_core.recall.values import PUSHED, RecallOptions
from memory_core.spaces import SharedMemory
from memory_core.where.where import Where

_BEFORE: Final = 3
"""Messages before the prompt that may say what it is about; the prompt itself may be among them."""


async def before_prompt(
    memory: BoundMemory | SharedMemory, prompt: str, session: str | None, options: RecallOptions = PUSHED
) -> str:
    """The profile and the memories that are relevant for a prompt.

    Args:
        memory: The owner's memory, perhaps with spaces that are recalled too.
        prompt: What the person says now.
        session: The conversation that the prompt is from. The model sees its messages, so they are not returned, but
            the last ones say what a short prompt is about.
        options: How much may be recalled.
    """
    own = memory.own if isinstance(memory, SharedMemory) else memory
    owner = own.scope.app, own.scope.user

    def is_shown(record: MemoryRecord) -> bool:
        return session is not None and record.session == session and (record.app, record.user) == owner

    before: list[str] = []
    if session is not None:
        page = await own.list(where=Where(session=session, roles=["user"]), limit=_BEFORE)
        before = [record.text for record in reversed(page.records)]
    block = (await block_for(memory, Asked(prompt, before, is_shown), options)).text
    return await with_profile(memory, block)
