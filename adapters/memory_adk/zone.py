"""The zone in which the person of a session is: its state names it, under `zone`, or under `user:zone` for all
sessions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Final

from memory_core import InvalidInputError
from memory_core.adapting import check_zone, one_line

logger = logging.getLogger(__name__)

_KEYS: Final = ("zone", "user:zone")


def zone_of(state: Mapping[str, Any]) -> tzinfo | None:
    """The zone that the state names, the session's before the user's; `None` if it names none.

    A model may have written the state, so what is no zone is passed over, with a warning.
    """
    named = next((state[key] for key in _KEYS if state.get(key) is not None), None)
    try:
        return None if named is None else check_zone(named)
    except InvalidInputError as error:
        logger.warning("the state of a session names no time zone: %s", one_line(str(error)))
        return None
