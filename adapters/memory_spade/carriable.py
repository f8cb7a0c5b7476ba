"""The door from an agent to XMPP, which is XML 1.0: every stanza that leaves has only characters that XML can carry.

XML has no control characters but the tab and the ends of lines, no halves of characters, no U+FFFE and no U+FFFF. A
server ends the connection of an agent that sends one, and SPADE does not connect again. U+FFFD takes their place.
"""

from __future__ import annotations

import re
from typing import Any, Final

REPLACEMENT: Final = "\ufffd"
_NOT_CARRIED: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def carriable(text: str) -> str:
    """The text with U+FFFD for each character that XML 1.0 cannot carry (section 2.2 of its specification)."""
    return _NOT_CARRIED.sub(REPLACEMENT, text)


def carriable_stanza(stanza: Any) -> Any:  # slixmpp's stanzas have no useful types
    """A stanza whose texts and attributes are carriable; it is changed in place, as slixmpp's filters do."""
    for element in stanza.xml.iter():
        element.text = element.text and carriable(element.text)
        element.tail = element.tail and carriable(element.tail)
        for name, value in element.attrib.items():
            element.set(name, carriable(value))
    return stanza
