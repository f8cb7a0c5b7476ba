"""Whose memory a call reaches, and which conversation it belongs to: decided here for every class of this package.

A key is looked for in this order, and the first place that names it decides; `None` or an empty value there is an
error, never a reason to look further:

1. the context of the run (LangGraph's `context=`: a dataclass, a pydantic model or a mapping),
2. `config["configurable"]`,
3. the constructor of the class.

| key | names | when nobody gives it |
|---|---|---|
| user | `user_id` | the user LangGraph's server authenticated, else the one the handle is bound to, else an error |
| session | `session_id`, `thread_id`, `conversation_id`, in this order within a place | an error where one is needed |
| agent | `agent_id` | none |

A handle that fixes a user accepts no other one, and an authenticated user cannot ask for somebody else's memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from memory_core import BoundMemory, Memory, ScopeError
from memory_core.adapting import owned_by

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

USER_KEYS: Final = ("user_id",)
SESSION_KEYS: Final = ("session_id", "thread_id", "conversation_id")
AGENT_KEYS: Final = ("agent_id",)

_RUNTIME: Final = "__pregel_runtime"
"""Where a LangGraph run keeps its `Runtime` (langgraph 1.2, `_internal/_constants.py`); read without importing it."""
_AUTHENTICATED: Final = "langgraph_auth_user"
"""Where LangGraph's server puts the user it authenticated (langgraph 1.2, `pregel/main.py`)."""

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class CallScope:
    """The answer for one call."""

    memory: BoundMemory
    """Bound to app and user; reads reach all conversations of that user."""
    user: str
    session: str | None
    agent: str | None


@dataclass(frozen=True, slots=True)
class ScopeResolver:
    """A memory with the defaults a constructor was given.

    Args:
        memory: A handle (its user may be open), or a memory, which stands for its app `"default"`.
        user_id: The user, unless a call names one.
        session_id: The conversation, unless a call names one.
        agent_id: The agent, unless a call names one.

    Raises:
        ScopeError: A default is empty, or names a user other than the handle's.
    """

    memory: BoundMemory | Memory
    user_id: object = None
    session_id: object = None
    agent_id: object = None

    def __post_init__(self) -> None:
        for name in ("user_id", "session_id", "agent_id"):
            value = getattr(self, name)
            if value is not None:
                as_key(name, value)
        if self.user_id is not None:
            owned_by(self.handle, as_key("user_id", self.user_id))

    @property
    def handle(self) -> BoundMemory:
        """The handle as it was given, before a call names its user."""
        return self.memory.bind() if isinstance(self.memory, Memory) else self.memory

    def resolve(
        self, config: RunnableConfig | None = None, *, context: object = None, needs_session: bool = False
    ) -> CallScope:
        """The scope of one call.

        Args:
            config: The configuration of the run, complete (as `ensure_config` returns it).
            context: The context of the run, where the caller has it at hand; otherwise it is taken from `config`.
            needs_session: Refuse a call that names no conversation.

        Raises:
            ScopeError: A key is missing, empty or not text, or names somebody else than the handle is bound to.
        """
        configurable: Mapping[str, object] = {} if config is None else config.get("configurable") or {}
        if context is None:
            context = getattr(configurable.get(_RUNTIME), "context", None)
        places = (context, configurable)
        handle = self._owned(places, _authenticated(configurable))
        session = self._named("session", places, SESSION_KEYS, self.session_id, handle.scope.session)
        if session is None and needs_session:
            raise ScopeError(
                "no conversation is named: pass config={'configurable': {'session_id': ...}} (or thread_id, or "
                "conversation_id), the same in the context, or session_id= to the constructor"
            )
        agent = self._named("agent", places, AGENT_KEYS, self.agent_id, handle.scope.agent)
        handle.bind(session=session, agent=agent)  # refuses what contradicts the handle
        return CallScope(handle, handle.scope.user or "", session, agent)

    def _owned(self, places: Iterable[object], authenticated: str | None) -> BoundMemory:
        given = self.handle
        user = self._named("user", places, USER_KEYS, self.user_id, authenticated or given.scope.user)
        if user is None:
            raise ScopeError(
                "no user is named: pass config={'configurable': {'user_id': ...}}, a context with user_id, user_id= "
                "to the constructor, or a handle that is bound to one; memories without an owner are never shared"
            )
        if authenticated is not None and user != authenticated:
            raise ScopeError(f"the run is authenticated as {authenticated!r} and asks for the memory of {user!r}")
        return owned_by(given, user)

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
    """`memory` if it is a handle that fixes the user, as classes need it that never see the configuration of a run.

    Raises:
        ScopeError: It is not; the message shows the example.
    """
    if not isinstance(memory, BoundMemory) or memory.scope.user is None:
        raise ScopeError(f"this belongs to one owner, so it takes a handle that fixes the user: {example}")
    return memory


def as_key(name: str, value: object) -> str:
    """`value` as a scope key. Numbers and UUIDs, common as ids, stand for their usual text.

    Raises:
        ScopeError: It is `None`, blank, or something else.
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
    """Whom the server authenticated; nobody, if it does not ask who calls (a user of the name "")."""
    user = configurable.get(_AUTHENTICATED)
    if user is None:
        return None
    identity = _look_up(user, "identity")
    named = None if identity is _ABSENT else identity
    return None if named == "" else as_key("the identity of the authenticated user", named)
