"""Resolves user, conversation and agent of a call, for every class of this package.

Each key is looked up in this order, and the first place that has it wins. `None` or an empty value there is an error;
the lookup does not continue. One exception: LangGraph's server without authentication, such as `langgraph dev`, puts an
empty `user_id` into the configuration of every run that names none; if the constructor or the handle names a user, that
is the user.

1. the context of the run (LangGraph's `context=`: a dataclass, a pydantic model or a mapping),
2. `config["configurable"]`,
3. the constructor of the class.

| key | names | if it is missing |
|---|---|---|
| user | `user_id` | the user that LangGraph's server authenticated, else the user of the handle, else an error |
| session | `session_id`, `thread_id`, `conversation_id`, in this order within a place | an error if required |
| agent | `agent_id` | none |

A handle that is bound to a user accepts no other user, and an authenticated user cannot reach another user's memory.

The memory may also be a function that makes the handle of each call. Where a handle has spaces, what is recalled, found
and shown to a model comes from them too, while conversations are stored in the user's own memory.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, cast

from memory_core import (
    BoundMemory,
    InvalidInputError,
    Memory,
    MemoryCoreError,
    ScopeError,
    StoreUnavailableError,
)
from memory_core.adapting import Deadline, owned_by

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

USER_KEYS: Final = ("user_id",)
SESSION_KEYS: Final = ("session_id", "thread_id", "conversation_id")
AGENT_KEYS: Final = ("agent_id",)

MemoryOf = Callable[[str, object], BoundMemory]
"""Makes the handle of a call from its user and its context (`None` without one). It decides what the user may read, so
it must not grant on the word of a context that a client has sent."""
Given = BoundMemory | Memory | MemoryOf
"""What the classes of this package take as memory."""

_RUNTIME: Final = "__pregel_runtime"
"""Key of a LangGraph run's `Runtime` (langgraph 1.2, `_internal/_constants.py`); read without importing LangGraph."""
_AUTHENTICATED: Final = "langgraph_auth_user"
"""Key of the user whom LangGraph's server authenticated (langgraph 1.2, `pregel/main.py`)."""

_AUTHENTICATED_ID: Final = "langgraph_auth_user_id"
"""Key of that user's name; it is all that some versions pass on to scheduled runs. Empty without authentication."""

_ABSENT: Final = object()


class NoMemoryError(StoreUnavailableError, InvalidInputError):
    """The function that makes the memory of a call has failed, or has made something else."""


@dataclass(frozen=True, slots=True)
class CallScope:
    """The resolved scope of one call."""

    memory: BoundMemory
    """The user's own memory, bound to app and user; it reads all conversations of that user."""
    user: str
    session: str | None
    agent: str | None
    reach: BoundMemory
    """What may be recalled: `memory`, with its spaces."""


@dataclass(frozen=True, slots=True)
class ScopeResolver:
    """A memory and the default keys of a constructor.

    Args:
        memory: A handle, with or without a user, a memory, which means its app `"default"`, or a function from the user
            and the context of a call to a handle.
        user_id: Default user for calls that name none.
        session_id: Default conversation for calls that name none.
        agent_id: Default agent for calls that name none.

    Raises:
        ScopeError: A default is empty or contradicts the user of the handle.
        InvalidInputError: `memory` has another type.
    """

    memory: Given
    user_id: object = None
    session_id: object = None
    agent_id: object = None

    def __post_init__(self) -> None:
        if self.handle is None and not callable(self.memory):
            raise InvalidInputError(
                "memory must be a handle, a Memory, or a function from user and context to a handle, not "
                f"{self.memory!r:.80}"
            )
        for name in ("user_id", "session_id", "agent_id"):
            value = getattr(self, name)
            if value is not None:
                as_key(name, value)
        if self.user_id is not None and self.handle is not None:
            owned_by(self.handle, as_key("user_id", self.user_id))

    @property
    def handle(self) -> BoundMemory | None:
        """The handle as passed to the constructor, before a call names its user; `None` if each call makes its own."""
        if isinstance(self.memory, Memory):
            return self.memory.bind()
        return self.memory if isinstance(self.memory, BoundMemory) else None

    def default(self, key: Literal["user", "session", "agent"]) -> object:
        """The key of a call that names none: the one of the constructor, else of the handle."""
        given = getattr(self, f"{key}_id")
        return getattr(self.handle.scope, key) if given is None and self.handle is not None else given

    def resolve(
        self, config: RunnableConfig | None = None, *, context: object = None, needs_session: bool = False
    ) -> CallScope:
        """Return the scope of one call.

        Args:
            config: The complete configuration of the run, as `ensure_config` returns it.
            context: The context of the run; without it, the context is read from `config`.
            needs_session: Whether a call must name a conversation.

        Raises:
            ScopeError: A key is missing, empty or not a string, or contradicts the user of the handle.
        """
        configurable: Mapping[str, object] = {} if config is None else config.get("configurable") or {}
        if context is None:
            context = getattr(configurable.get(_RUNTIME), "context", None)
        if self._is_of_server_without_users(configurable):
            configurable = {name: value for name, value in configurable.items() if name not in USER_KEYS}
        places = (context, configurable)
        reach = self._reached(self._user(places, _authenticated(configurable)), context)
        own = reach.own
        session = self._named("session", places, SESSION_KEYS, self.session_id, own.scope.session)
        if session is None and needs_session:
            raise ScopeError(
                "no conversation is named: pass config={'configurable': {'session_id': ...}} (or thread_id, or "
                "conversation_id), the same in the context, or session_id= to the constructor"
            )
        agent = self._named("agent", places, AGENT_KEYS, self.agent_id, own.scope.agent)
        own.bind(session=session, agent=agent)  # raises if they contradict the handle
        return CallScope(own, own.scope.user or "", session, agent, reach)

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

    def _is_of_server_without_users(self, configurable: Mapping[str, object]) -> bool:
        """Whether the empty user of a run is the server's, and the developer has named one."""
        is_empty = all(configurable.get(name) == "" for name in USER_KEYS)
        is_open = _AUTHENTICATED in configurable and _authenticated(configurable) is None
        return is_empty and is_open and self.default("user") is not None

    def _user(self, places: Iterable[object], authenticated: str | None) -> str:
        bound = None if self.handle is None else self.handle.scope.user
        user = self._named("user", places, USER_KEYS, self.user_id, authenticated or bound)
        if user is None:
            raise ScopeError(
                "no user is named: pass config={'configurable': {'user_id': ...}}, a context with user_id, user_id= "
                "to the constructor, or a handle that is bound to a user; memories without an owner are never shared"
            )
        if authenticated is not None and user != authenticated:
            raise ScopeError(f"the run is authenticated as {authenticated!r} and cannot use the memory of {user!r}")
        return user

    def _reached(self, user: str, context: object) -> BoundMemory:
        """The memory of that user, and of nobody else unless it is shared."""
        return owned_by(self.handle, user) if self.handle is not None else self._made(user, context)

    def _made(self, user: str, context: object) -> BoundMemory:
        try:
            made: object = cast("Callable[[str, object], object]", self.memory)(user, context)
        except MemoryCoreError:
            raise
        except Exception as error:
            raise NoMemoryError("the function that makes the memory of a call has failed") from error
        if not isinstance(made, BoundMemory):
            raise NoMemoryError(f"the function must return a handle, but it made {made!r:.80}")
        return owned_by(made, user)

    @staticmethod
    def _named(
        what: str, places: Iterable[object], names: Iterable[str], default: object, fallback: str | None
    ) -> str | None:
        for place in places:
            for name in names:
                value = _look_up(place, name)
                if value is not _ABSENT:
                    return as_key(name, value)
        return fallback if default is None else as_key(f"{what}_id", default)


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


def as_key(name: str, value: object) -> str:
    """Return `value` as a scope key. Numbers and UUIDs, which are common ids, are converted to strings.

    Raises:
        ScopeError: It is `None`, blank, or of another type.
    """
    if isinstance(value, uuid.UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    raise ScopeError(f"{name} must be a non-empty string, not {value!r}; memories without an owner are never shared")


def _look_up(place: object, name: str) -> object:
    if isinstance(place, Mapping):
        return cast("Mapping[str, object]", place).get(name, _ABSENT)
    return getattr(place, name, _ABSENT)


def _authenticated(configurable: Mapping[str, object]) -> str | None:
    """The user whom the server authenticated, or `None` if it has no authentication.

    Raises:
        ScopeError: It has, and the user has no name: nobody knows whose memory that is.
    """
    user = configurable.get(_AUTHENTICATED)
    if user is None or _is_nobody(user):
        name = configurable.get(_AUTHENTICATED_ID)
        return as_key(_AUTHENTICATED_ID, name) if name else None
    identity = _look_up(user, "identity")
    return as_key("the identity of the authenticated user", None if identity is _ABSENT else identity)


def _is_nobody(user: object) -> bool:
    """Whether a user is the one that a server without authentication makes up, in some of its versions."""
    module = sys.modules.get("starlette.authentication")  # a server has loaded it
    return module is not None and isinstance(user, module.UnauthenticatedUser)
