"""What all middleware for agents does: it shows the model a block, and goes on without a memory that fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from memory_core import ClosedError, MemoryCoreError, StorageError
from memory_core.adapting import LateError, reason_for_log
from memory_langchain.turns import with_memories

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest

logger = logging.getLogger(__name__)
T = TypeVar("T")


def filled(request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
    """The request with a block behind the instructions."""
    return request.override(system_message=with_memories(request.system_message, block)) if block else request


async def spared(call: Awaitable[T], lack: str) -> T | None:
    """The result of a call of the memory; `None` if it fails or is late, which is logged and does not end the run.

    Args:
        call: The call.
        lack: What the run goes on without, for the log.

    Raises:
        MemoryCoreError: An error of the application, such as an owner that is not named or a memory that is closed.
    """
    try:
        return await call
    except ClosedError:
        raise
    except LateError:  # logged, and it goes on
        return None
    except Exception as error:  # a store of the application may raise anything, and LangGraph would end the run
        if isinstance(error, MemoryCoreError) and not isinstance(error, StorageError):
            raise
        logger.error("%s: %s", lack, reason_for_log(error))  # noqa: TRY400  (a traceback may quote)
        return None
