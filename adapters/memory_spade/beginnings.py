"""The times at which an agent logged in and joined each room: only then are messages delivered that were said earlier.

A server delivers what it has stored for an agent right after the login, a room its history right after the join. A
message at any other time was said when it arrived, whatever it says of a delay: servers pass on what a peer writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

BACKLOG_SECONDS: Final = 60.0
"""The time after a login or a join within which a message may have been said earlier."""
_OWN_PRESENCE, _NEW_NICK = 110, 303
"""Status codes of XEP-0045."""


class Beginnings:
    """The moments from which the backlog is counted.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._login: float | None = None
        self._joins: dict[str, float] = {}

    def logged_in(self, _: object = None) -> None:
        """The session has started; rooms have to be joined again."""
        self._login, self._joins = self._clock(), {}

    def presence_in_room(self, stanza: Any) -> None:  # slixmpp's stanzas have no useful types
        """A presence of a room: the agent's own begins and ends its stay, and a new nick does neither."""
        codes: set[int] = stanza["muc"]["status_codes"]
        if _OWN_PRESENCE not in codes:
            return
        room = str(stanza["from"].bare)
        if stanza["type"] != "unavailable":
            self._joins.setdefault(room, self._clock())
        elif _NEW_NICK not in codes:
            self._joins.pop(room, None)

    def is_backlog(self, room: str | None) -> bool:
        """True if a message that arrives now may have been said earlier; `None` is for one that no room delivers."""
        began = self._login if room is None else self._joins.get(room)
        return began is not None and self._clock() - began <= BACKLOG_SECONDS
