"""The memory that a call reaches, with its conversation and its agent: for every class of this package.

| key | names, the first counts | if no place has it |
|---|---|---|
| user | `user_id` | the user that LangGraph's server authenticated, else the user of the handle, else an error |
| session | `session_id`, `thread_id`, `conversation_id` | an error if required |
| agent | `agent_id` | none |
| where the person is (`bind(zone=)`) | `zone` | the zone of the handle |

Two places name them: the context of the run (LangGraph's `context=`: a dataclass, a model or a mapping), where `None`
names nothing, and then `config["configurable"]`, where `None` is an error. Defaults are LangChain's own:
`chain.with_config(configurable={"session_id": "monday"})`.

An empty key is an error. One exception: LangGraph's server puts an empty `user_id` into the configuration of a run that
names none, and there it names nothing. A handle that is bound to a user accepts no other user, and an authenticated
user cannot reach another user's memory.

The memory may also be a function that makes the handle of each call. Where a handle has spaces, what is recalled, found
and shown to a model comes from them too, while conversations are stored in the user's own memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from memory_core import BoundMemory, InvalidInputError, Memory, MemoryCoreError, ScopeError, StoreUnavailableError
from memory_core.adapting import Deadline, check_key, check_zone, owned_by

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

MemoryOf = Callable[[str, object], BoundMemory]
"""Makes the handle of a call from its user and its context (`None` without one). It decides what the user may read, so
it must not grant on the word of a context that a client has sent."""
Given = BoundMemory | Memory | MemoryOf
"""The values that the classes of this package take as memory; a `Memory` means its app `"default"`."""

_SESSION: Final = ("session_id", "thread_id", "conversation_id")
_RUNTIME: Final = "__pregel_runtime"
"""Key of a LangGraph run's `Runtime` (langgraph 1.2, `_internal/_constants.py`); read without importing LangGraph."""
_AUTHENTICATED: Final = "langgraph_auth_user"
"""Key of the user whom LangGraph's server authenticated (langgraph 1.2, `pregel/main.py`); `None` without
authentication (langgraph-api 0.8 and later)."""
_AUTHENTICATED_ID: Final = "langgraph_auth_user_id"
"""Key of that user's name; it is all that some versions pass on to scheduled runs. Empty without authentication."""


class NoMemoryError(StoreUnavailableError, InvalidInputError):
    """The function that makes the memory of a call has failed, or has made something else."""


@dataclass(frozen=True, slots=True)
class CallScope:
    """The resolved scope of one call."""

    reach: BoundMemory
    """The memories that may be recalled: the user's own, with its spaces."""
    session: str | None
    agent: str | None

    @property
    def memory(self) -> BoundMemory:
        """The user's own memory, bound to app and user; it reads all conversations of that user."""
        return self.reach.own


@dataclass(frozen=True, slots=True)
class ScopeResolver:
    """Finds the scope of each call of a memory.

    Raises:
        InvalidInputError: `memory` has another type.
    """

    memory: Given

    def __post_init__(self) -> None:
        if self.handle is None and not callable(self.memory):
            raise InvalidInputError(
                "memory must be a handle, a Memory, or a function from user and context to a handle, not "
                f"{self.memory!r:.80}"
            )

    @property
    def handle(self) -> BoundMemory | None:
        """The handle, before a call names its user; `None` if each call makes its own."""
        if isinstance(self.memory, Memory):
            return self.memory.bind()
        return self.memory if isinstance(self.memory, BoundMemory) else None

    def resolve(
        self, config: RunnableConfig | None = None, *, context: object = None, needs_session: bool = False
    ) -> CallScope:
        """Return the scope of one call.

        Args:
            config: The complete configuration of the run, as `ensure_config` returns it.
            context: The context of the run; without it, the context is read from `config`.
            needs_session: True if a call must name a conversation.

        Raises:
            ScopeError: A key is missing, empty or not a string, or contradicts the user of the handle.
        """
        configurable: dict[str, Any] = {} if config is None else config.get("configurable") or {}
        if context is None:
            context = getattr(configurable.get(_RUNTIME), "context", None)
        reach = self._memory_of(self._user(context, configurable), context).bind(zone=_zone(context, configurable))
        bound = reach.own.scope
        session = _named(_SESSION, context, configurable) or bound.session
        if session is None and needs_session:
            raise ScopeError(
                "no conversation is named: pass config={'configurable': {'session_id': ...}} (or thread_id, or "
                "conversation_id), or the same in the context"
            )
        agent = _named(("agent_id",), context, configurable) or bound.agent
        reach.own.bind(session=session, agent=agent)  # raises if they contradict the handle
        return CallScope(reach, session, agent)

    async def resolved(
        self,
        deadline: Deadline,
        config: RunnableConfig | None = None,
        *,
        context: object = None,
        needs_session: bool = False,
    ) -> CallScope:
        """`resolve`, in time and without blocking anybody else, also if a function makes the memory."""
        resolve = partial(self.resolve, config, context=context, needs_session=needs_session)
        if self.handle is not None:
            return resolve()
        return await deadline.ask("asking for the memory of a call", resolve)

    def _user(self, context: object, configurable: Mapping[str, object]) -> str:
        authenticated = _authenticated(configurable)
        if _AUTHENTICATED in configurable and configurable.get("user_id") == "":  # of the server
            configurable = {name: value for name, value in configurable.items() if name != "user_id"}
        bound = None if self.handle is None else self.handle.scope.user
        user = _named(("user_id",), context, configurable) or authenticated or bound
        if user is None:
            raise ScopeError(
                "no user is named: pass config={'configurable': {'user_id': ...}}, a context with user_id, or a handle "
                "that is bound to a user; memories without an owner are never shared"
            )
        if authenticated is not None and user != authenticated:
            raise ScopeError(f"the run is authenticated as {authenticated!r} and cannot use the memory of {user!r}")
        return user

    def _memory_of(self, user: str, context: object) -> BoundMemory:
        """The memory of that user, and of nobody else unless it is shared."""
        if self.handle is not None:
            return owned_by(self.handle, user)
        try:
            made: object = cast("Callable[[str, object], object]", self.memory)(user, context)
        except MemoryCoreError:
            raise
        except Exception as error:
            raise NoMemoryError("the function that makes the memory of a call has failed") from error
        if not isinstance(made, BoundMemory):
            raise NoMemoryError(f"the function must return a handle, but it made {made!r:.80}")
        return owned_by(made, user)


def _zone(context: object, configurable: Mapping[str, object]) -> tzinfo | None:
    """The zone that the context or the configuration names; `None` without one."""
    named = field_of(context, "zone")
    named = configurable.get("zone") if named is None else named
    return None if named is None else check_zone(named)


def of_one_owner(memory: object, example: str) -> BoundMemory:
    """Return `memory` if it is a handle with a user and without spaces, for classes that do not see the configuration
    of a run and have no place for a label.

    Raises:
        ScopeError: It is not such a handle; the message shows the example.
    """
    if not isinstance(memory, BoundMemory) or memory.scope.user is None:
        raise ScopeError(f"this class belongs to one owner, so it needs a handle that is bound to a user: {example}")
    if memory.spaces:
        raise ScopeError("this class reads one owner; pass handle.own, and for a space another one on its handle")
    return memory


def _named(names: tuple[str, ...], context: object, configurable: Mapping[str, object]) -> str | None:
    """The value of the first place that has one of the names."""
    for name in names:
        if (value := field_of(context, name)) is not None:
            return _as_key(name, value)
    return next((_as_key(name, configurable[name]) for name in names if name in configurable), None)


def _as_key(name: str, value: object) -> str:
    """A scope key. Numbers and UUIDs, which are common ids, become their text; `None` and blanks are errors."""
    is_number = isinstance(value, uuid.UUID) or (isinstance(value, int) and not isinstance(value, bool))
    return check_key(name, str(value) if is_number else value, ScopeError)


def field_of(place: object, name: str) -> object:
    """The value under a name in a mapping, a dataclass or a model; `None` without one."""
    return cast("Mapping[str, object]", place).get(name) if isinstance(place, Mapping) else getattr(place, name, None)


def _authenticated(configurable: Mapping[str, object]) -> str | None:
    """The user whom the server authenticated, or `None` if it has no authentication.

    Raises:
        ScopeError: It has, and the user has no name: nobody knows whose memory that is.
    """
    user = configurable.get(_AUTHENTICATED)
    if user is not None:
        return _as_key("the identity of the authenticated user", field_of(user, "identity"))
    name = configurable.get(_AUTHENTICATED_ID)
    return _as_key(_AUTHENTICATED_ID, name) if name else None
