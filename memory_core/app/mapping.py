"""The record that a memory of another program becomes: whose it is, and which of its fields say when, where and by
whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from memory_core.app.settings import Settings
from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Scope
from memory_core.transfer.foreign_values import name_of, text_of, time_of
from memory_core.transfer.formats import Found
from memory_core.values.checks import check_key, shown

PERSON_KEYS: Final = ("user_id", "userId", "user", "username", "owner", "person", "customer_id", "account_id", "email")
"""Fields that name people in most programs."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Fields of the source that the command names; the importer's guess counts where it names none."""

    user: str | None = None
    session: str | None = None
    time: str | None = None
    kind: str | None = None
    author: str | None = None


class Ownership:
    """Makes an owner and a draft of what an importer found."""

    def __init__(self, given: Settings, keys: Keys | None = None, *, one_user: bool = False) -> None:
        self.default = Scope(given.app, given.user)
        self._keys = Keys() if keys is None else keys
        self._one_user = one_user

    @property
    def may_merge(self) -> bool:
        """True if people whom the importer did not recognise become one owner without a word of the command."""
        return not self._one_user and self._keys.user is None

    def of(self, item: Found) -> tuple[Scope, Draft]:
        """The owner of a memory, and the memory.

        Raises:
            InvalidInputError: A field that the command names is missing, or has no such value.
        """
        given = {**item.given, **item.draft.data}
        draft = self._named(item.draft, given)
        user, app = item.user, self.default.app if item.app is None else item.app
        if self._one_user:
            # Who it belonged to is not lost.
            data = {**({} if user is None else {"user_id": user}), **draft.data}
            return self.default, replace(draft, data=data)
        if self._keys.user is not None:
            user = name_of(given.get(self._keys.user))
            if user is None:
                raise _no(self._keys.user, given, "the name of a user")
        return Scope(check_key("app", app), check_key("user", self.default.user if user is None else user)), draft

    def _named(self, draft: Draft, given: Mapping[str, Any]) -> Draft:
        """The draft with the fields that the command names."""
        keys, changed = self._keys, dict[str, Any]()
        for name, key in (("session", keys.session), ("kind", keys.kind), ("author", keys.author)):
            if key is not None:
                changed[name] = text_of(given.get(key)) or name_of(given.get(key))
                if changed[name] is None:
                    raise _no(key, given, f"the name of a {name}" if name != "author" else "the name of an author")
        if keys.time is not None:
            changed["occurred_at"] = time_of(given.get(keys.time))
            if changed["occurred_at"] is None:
                raise _no(keys.time, given, "a time")
        return replace(draft, **changed) if changed else draft


def _no(key: str, given: Mapping[str, Any], what: str) -> InvalidInputError:
    return InvalidInputError(f"its metadata {key!r} is {shown(given.get(key))}, not {what}")
